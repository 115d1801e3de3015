package wrapper

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// outer is the user's terminal: a PTY whose session leader is the program under test, run directly or wrapped.
type outer struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	before unix.Termios
	cmd    *exec.Cmd
	files  string // directory of recording, events, result

	mu     sync.Mutex
	grew   *sync.Cond
	buf    []byte
	seen   int
	paused bool
	dead   bool

	exited chan struct{}
	status unix.WaitStatus
	stops  int
}

type outerOptions struct {
	direct     bool // without rye
	rows, cols int
	env        []string
	dir        string
	fault      string
	recordTo   string // instead of a file in files
	noEvents   bool
	files      [3]*os.File // replace standard files
	extra      []*os.File
	paused     bool // do not read at first
	uid        uint32
}

func newOuter(t *testing.T, o outerOptions, argv ...string) *outer {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if o.rows == 0 && o.cols == 0 {
		o.rows, o.cols = 24, 80
	}
	x := &outer{t: t, slave: slave, files: t.TempDir(), exited: make(chan struct{}), paused: o.paused}
	x.grew = sync.NewCond(&x.mu)
	// A nonblocking duplicate, as in the product: closing it must end the reader.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	master.Close()
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	x.master = os.NewFile(uintptr(fd), "master")
	x.resize(o.rows, o.cols)
	tio, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	x.before = *tio

	env := append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	if o.direct {
		x.cmd = exec.Command(argv[0], argv[1:]...)
	} else {
		x.cmd = exec.Command("/proc/self/exe", argv...)
		env = append(env, envWrap+"=1")
		if o.uid == 0 { // another user could not write it
			env = append(env, envResult+"="+x.file("result"))
		}
		if o.recordTo == "" {
			o.recordTo = x.file("cast")
		}
		if o.recordTo != "none" {
			env = append(env, envRecording+"="+o.recordTo)
		}
		if !o.noEvents {
			env = append(env, envEvents+"="+x.file("events"))
		}
		if o.fault != "" {
			env = append(env, envFault+"="+o.fault)
		}
	}
	x.cmd.Env = append(env, o.env...)
	x.cmd.Dir = o.dir
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	if o.files[0] != nil {
		x.cmd.Stdin = o.files[0]
	}
	if o.files[1] != nil {
		x.cmd.Stdout = o.files[1]
	}
	if o.files[2] != nil {
		x.cmd.Stderr = o.files[2]
	}
	x.cmd.ExtraFiles = append([]*os.File{slave}, o.extra...)
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if o.uid != 0 {
		x.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.uid}
	}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go x.read()
	go x.wait()
	t.Cleanup(x.close)
	return x
}

func (x *outer) file(name string) string { return filepath.Join(x.files, name) }

func (x *outer) read() {
	b := make([]byte, 64<<10)
	for {
		x.mu.Lock()
		for x.paused && !x.dead {
			x.grew.Wait()
		}
		x.mu.Unlock()
		n, err := x.master.Read(b)
		x.mu.Lock()
		x.buf = append(x.buf, b[:n]...)
		x.dead = err != nil
		x.grew.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *outer) wait() {
	for {
		var ws unix.WaitStatus
		_, err := unix.Wait4(x.cmd.Process.Pid, &ws, unix.WUNTRACED, nil)
		if err == unix.EINTR {
			continue
		}
		if err == nil && ws.Stopped() {
			x.mu.Lock()
			x.stops++
			x.mu.Unlock()
			continue
		}
		x.status = ws
		close(x.exited)
		return
	}
}

func (x *outer) close() {
	select {
	case <-x.exited:
	default:
		x.cmd.Process.Kill()
		<-x.exited
	}
	x.master.Close()
	x.slave.Close()
	x.mu.Lock()
	x.dead = true
	x.grew.Broadcast()
	x.mu.Unlock()
}

// patienceInTests is for machines under load; nothing takes that long when it works.
const patienceInTests = 20 * time.Second

func (x *outer) resize(rows, cols int) {
	x.t.Helper()
	err := unix.IoctlSetWinsize(int(x.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *outer) send(s string) {
	x.t.Helper()
	x.master.SetWriteDeadline(time.Now().Add(patienceInTests))
	if _, err := io.WriteString(x.master, s); err != nil {
		x.t.Fatalf("send %.40q: %v", s, err)
	}
}

// expect waits for a match after the last one.
func (x *outer) expect(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.AfterFunc(patienceInTests, func() {
		x.mu.Lock()
		x.dead = true
		x.grew.Broadcast()
		x.mu.Unlock()
	})
	defer timeout.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		if loc := re.FindIndex(x.buf[x.seen:]); loc != nil {
			found := string(x.buf[x.seen+loc[0] : x.seen+loc[1]])
			x.seen += loc[1]
			return found
		}
		if x.dead {
			x.t.Fatalf("no match for %q in %q", pattern, tail(x.buf[x.seen:]))
		}
		x.grew.Wait()
	}
}

func tail(b []byte) []byte { return b[max(0, len(b)-600):] }

func (x *outer) signal(sig syscall.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(sig); err != nil {
		x.t.Fatal(err)
	}
}

// end waits for the program's end and returns its exit code as a shell shows it.
func (x *outer) end() int {
	x.t.Helper()
	x.endWithin(patienceInTests)
	if x.status.Signaled() {
		return 128 + int(x.status.Signal())
	}
	return x.status.ExitStatus()
}

func (x *outer) endWithin(d time.Duration) {
	x.t.Helper()
	select {
	case <-x.exited:
	case <-time.After(d):
		x.mu.Lock()
		defer x.mu.Unlock()
		x.t.Fatalf("still running after %v; output %q", d, tail(x.buf))
	}
	x.output() // everything has been read
}

// output returns all output so far; after the end, all of it.
func (x *outer) output() []byte {
	x.t.Helper()
	select {
	case <-x.exited:
		// The slave is open here, so the master gives no EIO: read until nothing comes.
		for last, quiet := -1, 0; quiet < 3; {
			time.Sleep(5 * time.Millisecond)
			x.mu.Lock()
			n := len(x.buf)
			x.mu.Unlock()
			if quiet++; n != last {
				last, quiet = n, 0
			}
		}
	default:
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return bytes.Clone(x.buf)
}

func (x *outer) termios() unix.Termios {
	x.t.Helper()
	tio, err := unix.IoctlGetTermios(int(x.slave.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return *tio
}

func (x *outer) wantRestored() {
	x.t.Helper()
	if got := x.termios(); got != x.before {
		x.t.Errorf("terminal settings are %+v, were %+v", got, x.before)
	}
}

func (x *outer) wantExit(code int) {
	x.t.Helper()
	if got := x.end(); got != code {
		x.t.Errorf("exit status %d, want %d; output %q", got, code, tail(x.output()))
	}
}

func (x *outer) result() testResult {
	x.t.Helper()
	var r testResult
	b, err := os.ReadFile(x.file("result"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

func (x *outer) events() []testEvent {
	x.t.Helper()
	f, err := os.Open(x.file("events"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer f.Close()
	var all []testEvent
	for dec := json.NewDecoder(f); ; {
		var e testEvent
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			x.t.Fatal(err)
		}
		all = append(all, e)
	}
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

// script writes a shell script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(name, []byte(strings.TrimLeft(text, "\n")), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}
