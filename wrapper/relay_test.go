package wrapper

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLastOutput: what was written just before the exit arrives, every time.
func TestLastOutput(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 3
	}
	for i := range rounds {
		x := newOuter(t, outerOptions{recordTo: "none", noEvents: true}, "sh", "-c", `head -c 300000 /dev/zero | tr "\0" x; printf end`)
		x.wantExit(0)
		out := x.output()
		if want := strings.Repeat("x", 300000) + "end"; string(out) != want {
			t.Fatalf("round %d: %d bytes, want %d; tail %q", i, len(out), len(want), tail(out))
		}
		x.close()
	}
}

// TestSlowTerminal: a terminal that is not read for a while loses nothing either.
func TestSlowTerminal(t *testing.T) {
	x := newOuter(t, outerOptions{paused: true}, "sh", "-c", `head -c 500000 /dev/zero | tr "\0" y; printf end`)
	time.Sleep(300 * time.Millisecond)
	x.mu.Lock()
	x.paused = false
	x.grew.Broadcast()
	x.mu.Unlock()
	x.wantExit(0)
	if out := x.output(); len(out) != 500003 || !bytes.HasSuffix(out, []byte("yend")) {
		t.Errorf("%d bytes, tail %q", len(out), tail(out))
	}
}

// TestStuckTerminal: one that is never read holds the session's end up until a signal says to go.
func TestStuckTerminal(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	x := newOuter(t, outerOptions{paused: true}, "sh", "-c", "echo $$ > "+pidFile+"; head -c 300000 /dev/zero & sleep 0.3")
	wantGone(t, pidFrom(t, pidFile))
	select {
	case <-x.exited:
		t.Fatal("ended although output was left")
	case <-time.After(500 * time.Millisecond):
	}
	x.signal(15)
	select {
	case <-x.exited:
	case <-time.After(patienceInTests):
		t.Fatal("does not end on SIGTERM")
	}
	x.wantRestored()
}

// TestBackgroundGrandchild: a process left behind has the terminal open and does not hold up the end.
func TestBackgroundGrandchild(t *testing.T) {
	for _, tt := range []struct{ name, job string }{
		{"silent", `sleep 9`},
		{"slow writer", `for i in $(seq 100); do echo . 2>/dev/null || exit; sleep .05; done`},
		{"fast writer", `yes 2>/dev/null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			start := time.Now()
			x := newOuter(t, outerOptions{recordTo: "none", noEvents: true}, "sh", "-c",
				fmt.Sprintf(`trap "" HUP; (%s) & echo $! > %s; echo started; exit 4`, tt.job, pidFile))
			x.expect("started")
			started := time.Since(start)
			x.wantExit(4)
			if d := time.Since(start) - started; d > 2*time.Second {
				t.Errorf("ended %v after the command", d)
			}
			x.wantRestored()
			killFromFile(t, pidFile)
		})
	}
}

// TestGrandchildSurvives: at a shell prompt a background process outlives the command that started it. So it does
// here, though its terminal is gone.
func TestGrandchildSurvives(t *testing.T) {
	dir := t.TempDir()
	x := newOuter(t, outerOptions{}, "sh", "-c", fmt.Sprintf(`sleep 0.5 && touch %s/survived & exit 0`, dir))
	x.wantExit(0)
	for end := time.Now().Add(patienceInTests); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(dir + "/survived"); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the background process was killed")
		}
	}
}

func TestNothing(t *testing.T) {
	x := newOuter(t, outerOptions{}, "true")
	x.wantExit(0)
	if out := x.output(); len(out) != 0 {
		t.Errorf("output %q", out)
	}
	x.wantRestored()
}

// TestBothDirectionsFull: a large paste while the command prints and does not read.
func TestBothDirectionsFull(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", `stty raw -echo; echo READY; head -c 2000000 /dev/zero | tr '\0' o; head -c 200000 | sha256sum`)
	x.expect("READY")
	paste := strings.Repeat("x", 200000)
	x.send(paste)
	sum := sha256.Sum256([]byte(paste))
	x.expect(hex.EncodeToString(sum[:]))
	x.wantExit(0)
	if n := bytes.Count(x.output(), []byte("o")); n < 2000000 {
		t.Errorf("%d bytes of output, want 2000000", n)
	}
	if r := x.result(); r.InputBytes != 200000 {
		t.Errorf("InputBytes = %d", r.InputBytes)
	}
}

// TestInputNobodyReads: input that the command never takes does not hold up its end.
func TestInputNobodyReads(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", `stty raw -echo; echo READY; sleep 0.7; exit 6`)
	x.expect("READY")
	go func() { // the terminal stops taking input once rye does
		x.master.SetWriteDeadline(time.Now().Add(3 * time.Second))
		x.master.Write(bytes.Repeat([]byte("z"), 300000))
	}()
	x.wantExit(6)
	x.wantRestored()
}

// TestBytesUntouched: every byte passes in both directions, whatever it means.
func TestBytesUntouched(t *testing.T) {
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	all = append(all, "\x1b[?1049h\x1b[?1049l\xf0\x9f\x98\x80\xe2\x82\x1b]52;c;"...)
	all = append(all, bytes.Repeat([]byte{0xff, 0x00, 0x1b}, 1000)...)
	in := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(in, all, 0o600); err != nil {
		t.Fatal(err)
	}
	x := newOuter(t, outerOptions{}, "sh", "-c", fmt.Sprintf(`stty raw -echo; printf READY; head -c %d > %s.got; cat %s`, len(all), in, in))
	x.expect("READY")
	x.send(string(all))
	x.wantExit(0)
	got, err := os.ReadFile(in + ".got")
	if err != nil || !bytes.Equal(got, all) {
		t.Errorf("the command read %d bytes (%v), want the %d sent", len(got), err, len(all))
	}
	// The output ends inside a control string, which rye then closes.
	out := bytes.TrimPrefix(x.output(), []byte("READY"))
	if !bytes.HasPrefix(out, all) {
		t.Errorf("output differs: %d bytes, want %d", len(out), len(all))
	}
}

// TestLongControlString: a clipboard write of a megabyte passes as it is.
func TestLongControlString(t *testing.T) {
	payload := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("Do you want to proceed? 1. Yes "), 30000))
	want := "\x1b]52;c;" + payload + "\x07END"
	name := filepath.Join(t.TempDir(), "osc")
	if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	x := newOuter(t, outerOptions{}, "sh", "-c", "stty raw -echo; cat "+name)
	x.wantExit(0)
	if out := x.output(); string(out) != want {
		t.Errorf("%d bytes, want %d", len(out), len(want))
	}
}

// TestNestedTerminal: script and tmux open terminals of their own inside.
func TestNestedTerminal(t *testing.T) {
	need(t, "script")
	x := newOuter(t, outerOptions{rows: 31, cols: 97}, "script", "-qec", "stty size; exit 5", "/dev/null")
	x.wantExit(5)
	if out := string(x.output()); !strings.Contains(out, "31 97\r\n") {
		t.Errorf("output %q", out)
	}
	x.wantRestored()
}

func TestWrappedTwice(t *testing.T) {
	// The inner one is this test binary too; rye's test variables are not passed on by the outer one.
	x := newOuter(t, outerOptions{rows: 40, cols: 111}, "env", envWrap+"=1", testBinary(t), "sh", "-c", "stty size; read x; echo got $x; exit 9")
	x.expect("40 111")
	x.send("hello\r")
	x.expect("got hello")
	x.wantExit(9)
	x.wantRestored()
}

func testBinary(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestForgedInput: a program pushes bytes into its own terminal's input. They never came from the user, and what
// rye relayed says so.
func TestForgedInput(t *testing.T) {
	need(t, "python3")
	x := newOuter(t, outerOptions{}, "python3", "-c", `
import fcntl, os, sys, termios, tty
tty.setraw(0)
try:
    fcntl.ioctl(0, termios.TIOCSTI, b'1')
except OSError as e:
    print('refused', flush=True); sys.exit(0)
print('got', os.read(0, 1), flush=True)`)
	x.wantExit(0)
	out := string(x.output())
	if strings.Contains(out, "refused") {
		t.Skip("this kernel refuses TIOCSTI")
	}
	if !strings.Contains(out, "got b'1'") {
		t.Fatalf("output %q", out)
	}
	if r := x.result(); r.InputBytes != 0 {
		t.Errorf("InputBytes = %d for forged input", r.InputBytes)
	}
	for _, e := range x.events() {
		if e.Kind == "i" {
			t.Errorf("input event %+v for forged input", e)
		}
	}
}
