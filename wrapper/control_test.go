package wrapper

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

func socketpair(t *testing.T) [2]int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestStartRequest: bytes that are not UTF-8, and more than a socket buffer holds.
func TestStartRequest(t *testing.T) {
	pair := socketpair(t)
	defer unix.Close(pair[1])
	want := startRequest{
		Path: []byte("/bin/\xff"), Argv: [][]byte{[]byte("a"), {}, []byte("\x80\n\"")},
		Env: [][]byte{bytes.Repeat([]byte("x"), 1<<20)}, PTY: true, Cgroup: true,
	}
	sent := make(chan error, 1)
	go func() {
		defer unix.Close(pair[0])
		sent <- sendRequest(pair[0], want, []int{0, 1, 2, 0, 1, 2, 0})
	}()
	got, fds, err := receiveRequest(pair[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) || len(fds) != 7 {
		t.Errorf("received another request, or %d descriptors", len(fds))
	}
	for _, fd := range fds {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is not close-on-exec (%v)", fd, err)
		}
		unix.Close(fd)
	}
}

func TestStartRequestMalformed(t *testing.T) {
	for _, tt := range []struct {
		name string
		send []byte
		fds  []int
		want error
	}{
		{"nothing", nil, nil, io.ErrUnexpectedEOF},
		{"half a length", []byte{1, 0}, nil, io.ErrUnexpectedEOF},
		{"too long", []byte{0xff, 0xff, 0xff, 0xff}, nil, errRequest},
		{"cut", []byte{9, 0, 0, 0, '{'}, nil, io.ErrUnexpectedEOF},
		{"no command", []byte("\x02\x00\x00\x00{}"), []int{0, 1, 2}, errRequest},
		{"no descriptors", []byte("\x0f\x00\x00\x00{\"Argv\":[\"YQ\"]}"), nil, nil},
		{"not JSON", []byte("\x01\x00\x00\x00x"), nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pair := socketpair(t)
			defer unix.Close(pair[1])
			if len(tt.send) > 0 {
				var oob []byte
				if tt.fds != nil {
					oob = unix.UnixRights(tt.fds...)
				}
				if err := unix.Sendmsg(pair[0], tt.send, oob, nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			unix.Close(pair[0])
			_, fds, err := receiveRequest(pair[1])
			for _, fd := range fds {
				unix.Close(fd)
			}
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestMonitorOnlyForItsParent: somebody who starts the executable under the monitor's name gets nothing.
func TestMonitorOnlyForItsParent(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{monitorName}
	cmd.Stdin = bytes.NewReader([]byte("\x02\x00\x00\x00{}"))
	err := cmd.Run()
	var ee *exec.ExitError
	if !errors.As(err, &ee) || ee.ExitCode() != 125 {
		t.Errorf("error %v, want exit status 125", err)
	}
}

func TestGuard(t *testing.T) {
	g, err := newGuard()
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	var saved, raw unix.Termios
	saved.Lflag, raw.Lflag = 1, 2
	g.setUndo([]byte("before"))
	if err := g.arm(saved, raw); err != nil {
		t.Fatal(err)
	}
	g.setUndo([]byte("a longer undo"))
	g.setUndo([]byte("undo"))
	s, err := readGuard(g.fd)
	if err != nil {
		t.Fatal(err)
	}
	if s.Armed != 1 || s.Saved != saved || s.Raw != raw || string(s.undo) != "undo" || string(g.undo()) != "undo" {
		t.Errorf("state %+v", s)
	}
	g.disarm()
	if s, err = readGuard(g.fd); err != nil || s.Armed != 0 {
		t.Errorf("state %+v, %v", s, err)
	}
}

func TestGuardMalformed(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := readGuard(int(f.Fd())); err == nil {
		t.Error("an empty state was read")
	}
	if _, err := f.Write(bytes.Repeat([]byte{0xff}, 200)); err != nil {
		t.Fatal(err)
	}
	if _, err := readGuard(int(f.Fd())); err == nil {
		t.Error("a state with too long an undo was read")
	}
}

func TestParseSignals(t *testing.T) {
	got, err := parseSignals([]byte("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000380003\n"), "SigIgn")
	if err != nil || !got.has(unix.SIGTSTP) || !got.has(unix.SIGHUP) || got.has(unix.SIGTERM) {
		t.Errorf("parseSignals = %x, %v", got, err)
	}
	for _, s := range []string{"", "SigIgn:\tzz\n"} {
		if _, err := parseSignals([]byte(s), "SigIgn"); err == nil {
			t.Errorf("parseSignals(%q) gave no error", s)
		}
	}
}

func TestUncook(t *testing.T) {
	for _, tt := range []struct {
		pieces []string
		want   string
	}{
		{[]string{"a\r\nb\r\n"}, "a\nb\n"},
		{[]string{"a\r", "\nb"}, "a\nb"},
		{[]string{"\r\r\n"}, "\r\n"},
		{[]string{"50%\r", "60%\r"}, "50%\r60%\r"},
		{[]string{"\r", "\r", "\n", "\n"}, "\r\n\n"},
	} {
		var u uncooker
		var got []byte
		for _, p := range tt.pieces {
			got = append(got, u.write([]byte(p), true)...)
		}
		got = append(got, u.flush(nil)...)
		if string(got) != tt.want {
			t.Errorf("%q became %q, want %q", tt.pieces, got, tt.want)
		}
	}
	u := uncooker{held: true}
	if got := u.write([]byte("x\r\n"), false); string(got) != "\rx\r\n" || u.held {
		t.Errorf("inactive: %q", got)
	}
}
