package wrapper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Options says what to run and who looks on.
type Options struct {
	Argv []string // argv[0] and arguments
	Path string   // executable; "" to look up Argv[0] in the PATH of Env
	Env  []string // the command's whole environment; nil for rye's own
	Dir  string   // working directory; "" for rye's own

	Stdin, Stdout, Stderr *os.File // nil for rye's own

	// CgroupFD is an open cgroup v2 directory in which the command is born (clone3 with CLONE_INTO_CGROUP), so
	// that no moment of it passes elsewhere. 0 or less for none.
	CgroupFD int

	// BeforeExec is called once the command's parent exists and before the command does: all that parent starts
	// is the command. An error ends the start.
	BeforeExec func(parentPID int) error

	// Output, Input and Resize see the terminal: bytes the command wrote, bytes the user typed, and the size
	// (once at the start, then at each change). All are called from one goroutine, in the order in which these
	// things happened; a key is queued before the command can read it. They never delay the relay: what their
	// queue cannot take is left out, and the next call of the same function says how many bytes that were. p is
	// valid during the call only. Times are Clock's, taken when the bytes were read.
	Output func(p []byte, timeNS, skipped uint64)
	Input  func(p []byte, timeNS, skipped uint64)
	Resize func(cols, rows int, timeNS uint64)

	// Idle is called now and then, from the same goroutine, when nothing is waiting: the other functions were
	// told all that happened up to timeNS.
	Idle func(timeNS uint64)

	// Recording takes an asciicast v2 of the terminal; see castWriter. Without a terminal nothing is written.
	Recording io.Writer

	Clock func() uint64 // ns; nil for CLOCK_BOOTTIME
}

// Result is how a session ended.
type Result struct {
	ExitCode    int            // 0 to 255; 128+N when signal N ended the command
	Signal      syscall.Signal // 0 when it exited
	InputBytes  uint64         // typed by the user and given to the command's terminal
	OutputBytes uint64         // written by the command to its terminal
	Recording   error          // why the recording is not whole, nil if it is
	Callbacks   error          // why Output, Input and Resize did not see everything to the end
	Terminal    error          // why the user's terminal may not be as it was
}

// SignalName is the name of the signal that ended the command ("SIGTERM"), "" when it exited.
func (r Result) SignalName() string {
	if r.Signal == 0 {
		return ""
	}
	if name := unix.SignalName(r.Signal); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(r.Signal)) // real-time signals
}

// ErrMonitor says that the command's parent ended before the command. How the command ends is then unknown.
var ErrMonitor = errors.New("the session's monitor process ended before the command")

// A Session is one run of a command.
type Session struct {
	opts    Options
	term    *terminal // nil without one
	master  *os.File
	monitor *os.Process
	ctl     *os.File
	msgs    <-chan message
	sigs    chan os.Signal
	ignored signalSet // when rye started
	pid     int
	onPTY   [3]bool // which standard files are the terminal
	size    unix.Winsize
	start   uint64

	out  *outputRelay
	in   *inputRelay
	seen *observers

	initial         unix.Termios // of the pseudo-terminal
	settled         bool         // and no longer to be changed by rye
	childForeground bool         // the command's group was given the pseudo-terminal's foreground
	resumedAt       time.Time

	finish sync.Once
	undo   []byte // what was written to undo modes
	done   chan struct{}
	res    Result
	err    error
}

// Start starts the command. Once it returned without an error, Wait must be called. An [*ExecError] says
// that the command could not be executed, a [*CgroupError] that it could not be put into the cgroup; in both
// cases nothing of it ran and the terminal is as before.
//
// From here to the end of Wait the session handles SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
// SIGTSTP, SIGCONT and SIGWINCH: most are passed on to the command.
func Start(o Options) (*Session, error) {
	if isMonitor() {
		return nil, errors.New("start session: this process is a monitor")
	}
	if len(o.Argv) == 0 {
		return nil, errors.New("start session: no command")
	}
	o.defaults()
	if o.Path == "" {
		path, err := LookPath(o.Argv[0], o.Env, o.Dir)
		if err != nil {
			return nil, err
		}
		o.Path = path
	}
	s := &Session{opts: o, done: make(chan struct{}), start: o.Clock()}
	if err := s.begin(); err != nil {
		s.abandon()
		return nil, err
	}
	go s.run()
	return s, nil
}

func (o *Options) defaults() {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Clock == nil {
		o.Clock = boottime
	}
}

func (s *Session) begin() error {
	std := [3]*os.File{s.opts.Stdin, s.opts.Stdout, s.opts.Stderr}
	term, err := openTerminal(std)
	if err != nil {
		return err
	}
	var slave *os.File
	if s.term = term; term != nil {
		for i, f := range std {
			dev, ok := terminalDevice(int(f.Fd()))
			s.onPTY[i] = ok && dev == term.dev
		}
		if term.guard, err = newGuard(); err != nil {
			return err
		}
		if slave, err = s.openPTY(); err != nil {
			return err
		}
		defer slave.Close()
	}
	if err := s.notify(); err != nil {
		return err
	}
	if err := s.startMonitor(std, slave); err != nil {
		return err
	}
	if f := s.opts.BeforeExec; f != nil {
		if err := f(s.monitor.Pid); err != nil {
			return fmt.Errorf("prepare session: %w", err)
		}
	}
	s.childForeground = term != nil && term.foreground() && !pipeline(std)
	if s.settled = s.childForeground; s.childForeground {
		if err := term.setRaw(); err != nil {
			return err
		}
	}
	if err := s.prepareRelays(); err != nil {
		return err
	}
	if err := s.release(); err != nil {
		return err
	}
	s.startRelays()
	return nil
}

// pipeline reports whether other programs of a shell pipeline may want the keyboard, as less does in
// "rye wrap -- git log | less".
func pipeline(std [3]*os.File) bool {
	for _, f := range std {
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) == nil && (st.Mode&unix.S_IFMT == unix.S_IFIFO || st.Mode&unix.S_IFMT == unix.S_IFSOCK) {
			return true
		}
	}
	return false
}

// openPTY makes the pseudo-terminal like the user's terminal in settings and size.
func (s *Session) openPTY() (slave *os.File, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open pseudo-terminal: %w", err)
	}
	defer master.Close()
	// creack/pty leaves the master blocking, and a read of it could not be interrupted.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		slave.Close()
		return nil, fmt.Errorf("duplicate pseudo-terminal: %w", err)
	}
	_ = unix.SetNonblock(fd, true)
	s.master = os.NewFile(uintptr(fd), "/dev/ptmx")
	s.initial = s.term.saved
	// Fd also makes the slave blocking, as the command expects it.
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, &s.initial); err != nil {
		slave.Close()
		return nil, fmt.Errorf("set pseudo-terminal: %w", err)
	}
	if ws, err := s.term.size(); err == nil {
		s.size = ws
		_ = s.setSize(ws)
	}
	return slave, nil
}

func (s *Session) setSize(ws unix.Winsize) error {
	return control(s.master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &ws) })
}

func (s *Session) prepareRelays() error {
	if s.term == nil {
		return nil
	}
	s.seen = newObservers(s.opts, s.master)
	s.out = newOutputRelay(s.master, s.term, s.seen.output)
	s.out.rows.Store(int32(s.size.Row))
	var err error
	if s.in, err = newInputRelay(s.master, s.term, s.seen.input); err != nil {
		return fmt.Errorf("create event descriptor: %w", err)
	}
	s.in.enabled = s.childForeground
	return nil
}

func (s *Session) startRelays() {
	if s.term == nil {
		return
	}
	s.seen.run(castHeader{int(s.size.Col), int(s.size.Row), s.start, time.Now(), s.opts.Argv, s.opts.Env})
	s.in.started = true
	go s.out.run()
	go s.in.run()
}

// PID is the command's process id.
func (s *Session) PID() int { return s.pid }

// Terminal reports whether the command has a pseudo-terminal, and its size at the start.
func (s *Session) Terminal() (cols, rows int, ok bool) {
	return int(s.size.Col), int(s.size.Row), s.term != nil
}

// Wait waits for the end of the command and of everything that follows from it: the last output is written, the
// terminal restored, the callbacks made, the recording closed.
func (s *Session) Wait() (Result, error) {
	<-s.done
	return s.res, s.err
}

// Restore puts the user's terminal back as it was and undoes the modes the command left on. Wait does so too;
// this is for a program that is about to end without it, as after a panic in main.
func (s *Session) Restore() {
	if s.term != nil {
		s.finish.Do(func() {
			s.undo = s.term.guard.undo()
			if len(s.undo) > 0 {
				_ = s.term.out.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = s.term.out.Write(s.undo)
			}
			s.res.Terminal = s.term.restore()
		})
	}
}

// notify asks for the signals to handle. Those that were ignored when rye started stay ignored, in rye and in
// the command (nohup).
func (s *Session) notify() error {
	ignored, err := ignoredSignals()
	if err != nil {
		return err
	}
	s.ignored = ignored
	s.sigs = make(chan os.Signal, 32)
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH} {
		if !ignored.has(sig) {
			signal.Notify(s.sigs, sig)
		}
	}
	return nil
}
