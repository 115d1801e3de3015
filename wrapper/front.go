package wrapper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CgroupError says that the command could not be started in the cgroup. Nothing of it has run.
type CgroupError struct{ Err error }

func (e *CgroupError) Error() string { return fmt.Sprintf("start command in cgroup: %v", e.Err) }
func (e *CgroupError) Unwrap() error { return e.Err }

// monitorPatience is how long a monitor may take to start. It is only ever reached when something is wrong.
const monitorPatience = 20 * time.Second

// startMonitor starts this executable again as the session's monitor and hands it what it needs.
func (s *Session) startMonitor(std [3]*os.File, slave *os.File) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("create socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "monitor")
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		unix.Close(pair[0])
		return fmt.Errorf("start monitor: %w", err)
	}
	defer null.Close()
	// The socket is descriptor 0 and nothing else is numbered: descriptors that rye inherited for the command
	// keep their numbers all the way.
	s.monitor, err = os.StartProcess("/proc/self/exe", []string{monitorName}, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{theirs, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(pair[0])
		return fmt.Errorf("start monitor: %w", err)
	}
	theirs.Close()

	req := startRequest{Path: []byte(s.opts.Path), Argv: toBytes(s.opts.Argv), Env: toBytes(s.childEnv(slave))}
	if s.opts.Dir != "" {
		req.Dir = []byte(s.opts.Dir)
	}
	var fds []int
	for i, f := range std {
		if s.onPTY[i] {
			f = slave
		}
		fds = append(fds, int(f.Fd()))
	}
	if slave != nil {
		req.PTY = true
		fds = append(fds, int(slave.Fd()))
		fds = append(fds, s.term.file.fd, s.term.guard.fd)
	}
	err = s.sendStart(pair[0], req, fds)
	_ = unix.SetNonblock(pair[0], true)
	s.ctl = os.NewFile(uintptr(pair[0]), "monitor")
	if err != nil {
		return err
	}
	s.msgs = readMessages(s.ctl)
	m, err := s.answer()
	if err == nil && m.kind != msgReady {
		err = fmt.Errorf("start monitor: unexpected answer %d", m.kind)
	}
	return err
}

// childEnv is the command's environment: the one asked for, but for GPG_TTY. It names the user's terminal to gpg-agent,
// whose password prompt would come up there beside rye's relay, and share the keys with it.
func (s *Session) childEnv(slave *os.File) []string {
	tty, ok := lookupEnv(s.opts.Env, "GPG_TTY")
	if slave == nil || !ok {
		return s.opts.Env
	}
	var st unix.Stat_t
	if unix.Stat(tty, &st) != nil || int(st.Rdev) != s.term.dev {
		return s.opts.Env
	}
	env := slices.Clone(s.opts.Env)
	for i := range env {
		if strings.HasPrefix(env[i], "GPG_TTY=") {
			env[i] = "GPG_TTY=" + slave.Name()
		}
	}
	return env
}

func (s *Session) sendStart(sock int, req startRequest, fds []int) error {
	if s.opts.CgroupFD > 0 {
		req.Cgroup = true
		fds = append(fds, s.opts.CgroupFD)
	}
	// A monitor that does not read must not hang the start.
	tv := unix.NsecToTimeval(int64(monitorPatience))
	if err := unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
		return fmt.Errorf("set send timeout: %w", err)
	}
	return sendRequest(sock, req, fds)
}

// answer waits for the monitor's next message and turns its failures into errors.
func (s *Session) answer() (message, error) {
	select {
	case m, ok := <-s.msgs:
		if !ok {
			return m, fmt.Errorf("start monitor: %w", ErrMonitor)
		}
		if m.kind == msgFailed {
			return m, s.startError(m.arg>>16, syscall.Errno(m.arg&0xffff))
		}
		return m, nil
	case <-time.After(monitorPatience):
		return message{}, errors.New("start monitor: no answer")
	}
}

func (s *Session) startError(stage uint32, errno syscall.Errno) error {
	switch stage {
	case stageExec:
		return &ExecError{s.opts.Path, errno}
	case stageCgroup:
		return &CgroupError{errno}
	case stageDir:
		return fmt.Errorf("change to directory %s: %w", s.opts.Dir, errno)
	}
	return fmt.Errorf("create session: %w", errno)
}

// release lets the command start and waits until it has been executed.
func (s *Session) release() error {
	if err := s.tell(msgGo, boolArg(s.childForeground)); err != nil {
		return fmt.Errorf("start command: %w", err)
	}
	m, err := s.answer()
	if err != nil {
		return err
	}
	if m.kind != msgPID {
		return fmt.Errorf("start command: unexpected answer %d", m.kind)
	}
	s.pid = int(m.arg)
	return nil
}

func (s *Session) tell(kind msgKind, arg uint32) error {
	return writeMessage(s.ctl, message{kind, arg})
}

func boolArg(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// abandon undoes a start that did not succeed.
func (s *Session) abandon() {
	s.Restore()
	if s.sigs != nil {
		signal.Stop(s.sigs)
	}
	s.cleanup()
}
