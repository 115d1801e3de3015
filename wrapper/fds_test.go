package wrapper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// piped runs rye without any terminal and returns what came out.
func piped(t *testing.T, stdin io.Reader, setup func(*exec.Cmd), argv ...string) (stdout, stderr []byte, code int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", argv...)
	cmd.Env = append(os.Environ(), envWrap+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no controlling terminal
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if setup != nil {
		setup(cmd)
	}
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return out.Bytes(), errs.Bytes(), cmd.ProcessState.ExitCode()
}

func TestPipesAreUntouched(t *testing.T) {
	in := "a\n\x00b\x03\x04\xff\r\n" + strings.Repeat("0123456789\n", 30000)
	out, errs, code := piped(t, strings.NewReader(in), nil, "cat")
	if string(out) != in || len(errs) != 0 || code != 0 {
		t.Errorf("cat gave %d bytes, stderr %q, status %d; want %d bytes", len(out), errs, code, len(in))
	}
	out, errs, code = piped(t, nil, nil, "sh", "-c", "echo out; echo err >&2; exit 3")
	if string(out) != "out\n" || string(errs) != "err\n" || code != 3 {
		t.Errorf("stdout %q, stderr %q, status %d", out, errs, code)
	}
}

func TestPipeEndOfFile(t *testing.T) {
	start := time.Now()
	if out, _, code := piped(t, nil, nil, "cat"); len(out) != 0 || code != 0 { // nil is /dev/null
		t.Errorf("output %q, status %d", out, code)
	}
	r, w := io.Pipe()
	go func() {
		time.Sleep(200 * time.Millisecond)
		io.WriteString(w, "late\n")
		w.Close()
	}()
	if out, _, _ := piped(t, r, nil, "cat"); string(out) != "late\n" {
		t.Errorf("output %q", out)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestVerySameDescriptors: the command has the same open file, with its offset and flags, not a copy.
func TestVerySameDescriptors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	out, _, _ := piped(t, f, nil, "sh", "-c", "head -c 3; readlink /proc/self/fd/0; grep flags /proc/self/fdinfo/0")
	if want := fmt.Sprintf("456%s\nflags:\t0102002\n", name); string(out) != want && string(out) != strings.Replace(want, "0102002", "02002", 1) {
		t.Errorf("output %q, want %q", out, want)
	}
	if off, _ := f.Seek(0, io.SeekCurrent); off != 7 {
		t.Errorf("offset %d after the command read 3 bytes from 4", off)
	}
}

// TestMixedDescriptors: each of the three is judged for itself.
func TestMixedDescriptors(t *testing.T) {
	const report = `exec 9>/dev/tty; for i in 0 1 2; do if [ -t $i ]; then echo "$i terminal" >&9; else readlink /proc/$$/fd/$i | sed "s,^,$i ," >&9; fi; done`
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	for mask := range 8 {
		t.Run(fmt.Sprintf("%03b", mask), func(t *testing.T) {
			var o outerOptions
			var want string
			for i := range 3 {
				if mask&(1<<i) != 0 {
					o.files[i] = open(fmt.Sprint(i))
					want += fmt.Sprintf("%d %s/%d\r\n", i, dir, i)
				} else {
					want += fmt.Sprintf("%d terminal\r\n", i)
				}
			}
			x := newOuter(t, o, "sh", "-c", report)
			x.wantExit(0)
			if out := string(x.output()); out != want {
				t.Errorf("descriptors %q, want %q", out, want)
			}
			x.wantRestored()
		})
	}
}

// TestAnotherTerminal: a terminal that is not the session's own is handed over like a file.
func TestAnotherTerminal(t *testing.T) {
	other := newOuter(t, outerOptions{direct: true}, "sleep", "60")
	x := newOuter(t, outerOptions{files: [3]*os.File{1: other.slave}}, "sh", "-c", "tty; tty <&2 >&2")
	x.wantExit(0)
	other.expect("/dev/pts/[0-9]+")
	if out := string(x.output()); strings.Count(out, "/dev/pts/") != 1 {
		t.Errorf("output %q", out)
	}
	if name := other.slave.Name(); name == "" || !strings.Contains(string(other.output()), "/dev/pts/") {
		t.Errorf("nothing on the other terminal")
	}
}

// TestNoDescriptorLeaks looks at every descriptor of the command: the same as without rye, and none to a master of
// a terminal, a socket or a memory file.
func TestNoDescriptorLeaks(t *testing.T) {
	const list = `ls -l /proc/$$/fd`
	target := regexp.MustCompile(`(?m)([0-9]+) -> (\S+)`)
	number := regexp.MustCompile(`[0-9]+`)
	read := func(out []byte) map[string]string {
		fds := make(map[string]string)
		for _, m := range target.FindAllStringSubmatch(string(out), -1) {
			fds[m[1]] = number.ReplaceAllString(m[2], "N")
		}
		return fds
	}
	check := func(name string, direct, wrapped map[string]string) {
		if direct["0"] == "" || direct["1"] == "" || !maps.Equal(direct, wrapped) {
			t.Errorf("%s: descriptors %v, without rye %v", name, wrapped, direct)
		}
		for fd, target := range wrapped {
			if strings.Contains(target, "ptmx") || strings.Contains(target, "socket") || strings.Contains(target, "memfd") || strings.Contains(target, "anon_inode") {
				t.Errorf("%s: descriptor %s is %s", name, fd, target)
			}
		}
	}
	direct := newOuter(t, outerOptions{direct: true}, "sh", "-c", list)
	direct.wantExit(0)
	wrapped := newOuter(t, outerOptions{}, "sh", "-c", list)
	wrapped.wantExit(0)
	check("terminal", read(direct.output()), read(wrapped.output()))

	b, err := exec.Command("sh", "-c", list).Output()
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := piped(t, nil, nil, "sh", "-c", list+"; :")
	d, w := read(b), read(out)
	delete(d, "2") // os/exec gives the direct run no pipe there
	delete(w, "2")
	check("pipes", d, w)
}

// TestInheritedDescriptors: what rye was given for the command, as by bash's <(...), keeps its number.
func TestInheritedDescriptors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(w, "from the pipe\n")
		w.Close()
	}()
	defer r.Close()
	// ExtraFiles start at 3.
	out, _, code := piped(t, nil, func(c *exec.Cmd) { c.ExtraFiles = []*os.File{r} }, "cat", "/dev/fd/3")
	if string(out) != "from the pipe\n" || code != 0 {
		t.Errorf("output %q, status %d", out, code)
	}
}

// TestSurroundings: the command sees the same limits, masks, directory and environment as rye got.
func TestSurroundings(t *testing.T) {
	const show = `ulimit -n; ulimit -c; umask; pwd; grep -E "^Sig(Blk|Ign)" /proc/self/status; echo "$STRANGE" | od -c; cat /proc/self/oom_score_adj; nice`
	set := `cd /tmp; ulimit -n 123; ulimit -c 0; umask 027; trap "" INT HUP TSTP TTIN TTOU; export STRANGE=$(printf "a\377b\ncd"); `
	direct, err := exec.Command("setsid", "sh", "-c", set+"exec sh -c '"+show+"'").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("setsid", "sh", "-c", set+"exec "+testBinary(t)+" sh -c '"+show+"'")
	cmd.Env = append(os.Environ(), envWrap+"=1")
	wrapped, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(direct, wrapped) {
		t.Errorf("wrapped:\n%s\ndirect:\n%s", wrapped, direct)
	}
}

func TestPipesForwardSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1} {
		// The command tells its parent's parent, rye, when it is ready.
		_, _, code := piped(t, nil, nil, "sh", "-c", fmt.Sprintf(
			`ulimit -c 0; (sleep 0.1; kill -%d $(cut -d" " -f4 /proc/$PPID/stat)) & exec sleep 20`, int(sig)))
		if code != 128+int(sig) {
			t.Errorf("%v: status %d", sig, code)
		}
	}
}

// TestNewSession: the command is not in rye's session, and its group is its own.
func TestNewSession(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		const show = `set -- $(cat /proc/self/stat); echo "$$ $5 $6"` // pid, group and session of the shell's child
		var out string
		if terminal {
			x := newOuter(t, outerOptions{}, "sh", "-c", show)
			x.wantExit(0)
			out = string(x.output())
		} else {
			b, _, _ := piped(t, nil, nil, "sh", "-c", show)
			out = string(b)
		}
		var pid, pgrp, sid int
		if _, err := fmt.Sscanf(out, "%d %d %d", &pid, &pgrp, &sid); err != nil {
			t.Fatalf("output %q: %v", out, err)
		}
		if pgrp != pid || sid == pid || sid == 0 {
			t.Errorf("pid %d, group %d, session %d", pid, pgrp, sid)
		}
		if own, err := unix.Getsid(0); err != nil || own == sid {
			t.Errorf("session %d is the test's own (%v)", sid, err)
		}
	}
}

// TestSameTerminalFlags: the descriptors of the command's terminal and its signals are as without rye.
func TestSameTerminalFlags(t *testing.T) {
	const show = `for i in 0 1 2; do grep flags /proc/self/fdinfo/$i; done; grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status; stty -g; stty -a`
	direct := newOuter(t, outerOptions{direct: true}, "sh", "-c", show)
	direct.wantExit(0)
	wrapped := newOuter(t, outerOptions{}, "sh", "-c", show)
	wrapped.wantExit(0)
	if d, w := direct.output(), wrapped.output(); len(d) < 100 || !bytes.Equal(d, w) {
		t.Errorf("wrapped:\n%s\ndirect:\n%s", w, d)
	}
}

// TestTerminalOfAnotherUser: the terminal cannot be opened again, as after su.
func TestTerminalOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	x := newOuter(t, outerOptions{uid: 65534, recordTo: "none", noEvents: true, dir: "/"}, "sh", "-c", "stty size; read x; echo got $x; stty raw; exit 3")
	x.expect("24 80")
	x.send("key\r")
	x.expect("got key")
	x.resize(30, 90)
	x.wantExit(3)
	x.wantRestored()
}
