package wrapper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A Session is one run of a command.
type Session struct {
	opts    Options
	term    *terminal // nil without one
	master  *ttyFile  // of the pseudo-terminal
	monitor *os.Process
	ctl     *os.File
	msgs    <-chan message
	sigs    chan os.Signal
	ignored signalSet // when rye started
	pid     int
	onPTY   [3]bool // which standard files are the terminal
	sizeMu  sync.Mutex
	size    unix.Winsize // of both terminals
	cols    int          // at the start
	rows    int
	start   uint64

	out  *outputRelay
	in   *inputRelay
	seen *observers

	initial         unix.Termios // of the pseudo-terminal
	settled         bool         // and no longer to be changed by rye
	childForeground bool         // the command's group was given the pseudo-terminal's foreground
	resumedAt       time.Time

	finish     sync.Once
	undo       []byte // what was written to undo modes
	restoreErr error
	done       chan struct{}
	res        Result
	err        error
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
// "rye wrap -- git log | less". Standard error does not count: it goes to programs like tee.
func pipeline(std [3]*os.File) bool {
	for _, f := range std[:2] {
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
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		slave.Close()
		return nil, fmt.Errorf("duplicate pseudo-terminal: %w", err)
	}
	_ = unix.SetNonblock(fd, true)
	s.master = &ttyFile{fd: fd}
	s.initial = s.term.saved
	// Fd also makes the slave blocking, as the command expects it.
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, &s.initial); err != nil {
		slave.Close()
		return nil, fmt.Errorf("set pseudo-terminal: %w", err)
	}
	if ws, err := s.term.file.size(); err == nil {
		s.size, s.cols, s.rows = ws, int(ws.Col), int(ws.Row)
		_ = s.master.setSize(ws)
	}
	return slave, nil
}

func (s *Session) prepareRelays() error {
	if s.term == nil {
		return nil
	}
	s.seen = newObservers(s.opts, s.master)
	var err error
	if s.out, err = newOutputRelay(s.master, s.term, s.seen.output); err != nil {
		return err
	}
	s.out.rows.Store(int32(s.size.Row))
	if s.in, err = newInputRelay(s.master, s.term, func(p []byte) {
		s.resize()
		s.seen.input(p)
	}); err != nil {
		return err
	}
	s.in.enabled = s.childForeground
	return nil
}

func (s *Session) startRelays() {
	if s.term == nil {
		return
	}
	s.seen.run(castHeader{s.cols, s.rows, s.start, time.Now(), s.opts.Argv, s.opts.Env})
	s.in.started = true
	go s.out.run()
	go s.in.run()
}

// PID is the command's process id.
func (s *Session) PID() int { return s.pid }

// Terminal reports whether the command has a pseudo-terminal, and its size at the start.
func (s *Session) Terminal() (cols, rows int, ok bool) {
	return s.cols, s.rows, s.term != nil
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
	if s.term != nil && s.term.guard != nil {
		s.finish.Do(func() {
			s.undo = s.term.guard.undo()
			// A terminal that takes nothing more must not hold up the end here.
			ready := []unix.PollFd{{Fd: int32(s.term.file.fd), Events: unix.POLLOUT}}
			if n, _ := unix.Poll(ready, 1000); len(s.undo) > 0 && n > 0 {
				_, _ = unix.Write(s.term.file.fd, s.undo)
			}
			s.restoreErr = s.term.restore()
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
