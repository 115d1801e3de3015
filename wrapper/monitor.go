package wrapper

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monitorName is argv[0] of a monitor.
const monitorName = "rye-pty-monitor"

// init turns a process that was started as a monitor into one before anything else of the program runs: a
// program that uses this package cannot forget to do so, and the monitor starts without the initialisation
// of packages it has no use for. In every other process this does nothing.
func init() {
	if isMonitor() {
		os.Exit(monitorMain(0))
	}
}

func isMonitor() bool { return len(os.Args) == 1 && os.Args[0] == monitorName }

// monitor leads the session of the pseudo-terminal, starts the command in a process group of its own, tells
// the front what becomes of it and passes on signals.
type monitor struct {
	front *os.File
	req   startRequest
	std   [3]int
	slave int // -1 without a terminal
	tty   int // the user's terminal
	guard int
	cg    int

	pid       int
	stopped   bool // and the front was told
	continued bool // by the front
}

func monitorMain(sock int) int {
	// A monitor can be asked for with a suitable argv[0], but serves only the process that started it.
	cred, err := unix.GetsockoptUcred(sock, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || int(cred.Pid) != os.Getppid() {
		return 125
	}
	// The command runs as the same user and must not get at the descriptors here through /proc.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	dropCapabilities()
	unix.CloseOnExec(sock)
	m := &monitor{front: os.NewFile(uintptr(sock), "front"), slave: -1, tty: -1, guard: -1, cg: -1}
	stage, err := m.run()
	if err != nil {
		errno, ok := err.(syscall.Errno)
		if !ok {
			errno = unix.EPROTO
		}
		_ = writeMessage(m.front, message{msgFailed, uint32(stage)<<16 | uint32(errno)})
		return 125
	}
	return 0
}

// run returns once both the command and the front have ended.
func (m *monitor) run() (stage int, err error) {
	req, fds, err := receiveRequest(int(m.front.Fd()))
	if err != nil {
		return stageSession, err
	}
	m.req = req
	copy(m.std[:], fds)
	if req.PTY {
		m.slave, m.tty, m.guard = fds[3], fds[4], fds[5]
		// The front made this process a session leader; a slave opened by another one is not yet ours.
		if err := unix.IoctlSetInt(m.slave, unix.TIOCSCTTY, 0); err != nil {
			return stageSession, err
		}
	}
	if req.Cgroup {
		m.cg = fds[len(fds)-1]
	}
	if err := outlive(); err != nil {
		return stageSession, err
	}
	if err := writeMessage(m.front, message{msgReady, 0}); err != nil {
		return stageSession, nil // the front has gone: nothing was started
	}
	fromFront := readMessages(m.front)
	go_, ok := <-fromFront
	if !ok || go_.kind != msgGo {
		return stageSession, nil
	}
	pid, stage, err := m.spawn(go_.arg == 1)
	if err != nil {
		return stage, err
	}
	m.pid = pid
	m.closeStd()
	_ = writeMessage(m.front, message{msgPID, uint32(pid)})
	m.serve(fromFront)
	return 0, nil
}

// outlive keeps the monitor alive until the command has ended, whatever it is sent. The signals are caught
// and not ignored, because an ignored signal stays ignored in the command.
func outlive() error {
	ignored, err := ignoredSignals()
	if err != nil {
		return err
	}
	drop := make(chan os.Signal, 1)
	for _, sig := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
		if !ignored.has(sig) {
			signal.Notify(drop, sig)
		}
	}
	return nil
}

func (m *monitor) closeStd() {
	for _, fd := range m.std {
		unix.Close(fd)
	}
	if m.cg >= 0 {
		unix.Close(m.cg)
	}
}

// serve passes on what happens until the command has ended and the front has closed its end.
func (m *monitor) serve(fromFront <-chan message) {
	changes, handled := make(chan struct{}), make(chan struct{})
	go watchChild(m.pid, changes, handled)
	running := true
	for {
		select {
		case msg, ok := <-fromFront:
			if !ok {
				if running {
					m.frontDied(changes, handled)
				}
				return
			}
			if running {
				m.obey(msg)
			}
		case _, ok := <-changes:
			if !ok {
				changes = nil
				continue
			}
			running = m.reap()
			handled <- struct{}{}
		}
	}
}

// watchChild tells of changes without taking them: signals are sent only by the goroutine that also reaps, so
// never to a process that has taken over the pid.
func watchChild(pid int, changes chan<- struct{}, handled <-chan struct{}) {
	defer close(changes)
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // ECHILD: reaped
			return
		}
		changes <- struct{}{}
		<-handled
	}
}

// reap takes one change of the command's state and tells the front. It reports whether the command runs on.
func (m *monitor) reap() bool {
	var ws unix.WaitStatus
	pid, err := unix.Wait4(m.pid, &ws, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
	if err != nil || pid != m.pid {
		return err == nil || err == unix.EINTR
	}
	// An end may follow so closely that the continuation before it is not seen.
	if m.stopped && !m.continued && !ws.Stopped() {
		go wakeFront()
	}
	switch {
	case ws.Stopped():
		m.stopped, m.continued = true, false
		_ = writeMessage(m.front, message{msgStopped, uint32(ws.StopSignal())})
	case ws.Continued():
		m.stopped = false
		_ = writeMessage(m.front, message{msgContinued, 0})
	default:
		// The end of a session leader hangs up on the foreground group. The monitor puts itself there, so that
		// what the command left running survives, as it would at a shell prompt.
		m.setForeground(0)
		if m.slave >= 0 {
			unix.Close(m.slave) // the last one, unless something else has it open: the front reads EIO
			m.slave = -1
		}
		_ = writeMessage(m.front, message{msgExit, uint32(ws)})
		return false
	}
	return true
}

// wakeFront continues the front when somebody else continued the command: the front had stopped with it, or is
// about to, and nobody else knows.
func wakeFront() {
	for range 20 {
		if s := processState(os.Getppid()); s == 'T' || s == 't' {
			_ = unix.Kill(os.Getppid(), unix.SIGCONT)
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
}

func (m *monitor) obey(msg message) {
	switch msg.kind {
	case msgSignal:
		pgrp := m.pid
		if msg.arg>>8 == toForeground && m.slave >= 0 {
			fg, err := unix.IoctlGetInt(m.slave, unix.TIOCGPGRP)
			if err == nil && fg > 0 && fg != unix.Getpgrp() {
				pgrp = fg
			}
		}
		_ = unix.Kill(-pgrp, syscall.Signal(msg.arg&0xff))
	case msgForeground:
		if msg.arg == 1 {
			m.setForeground(m.pid)
		} else {
			m.setForeground(0)
		}
	case msgContinue:
		m.continued = true
		_ = unix.Kill(-m.pid, unix.SIGCONT)
	}
}

// setForeground makes pgrp, or the monitor's own group for 0, the pseudo-terminal's foreground group.
func (m *monitor) setForeground(pgrp int) {
	if m.slave < 0 {
		return
	}
	if pgrp == 0 {
		pgrp = unix.Getpgrp()
	}
	_ = withoutTTOU(func() error { return unix.IoctlSetPointerInt(m.slave, unix.TIOCSPGRP, pgrp) })
}

// frontDied cleans up after a front that ended before the command: the user's terminal first, because the
// shell is about to print its prompt, then the hangup that the command gets when a terminal goes away. A
// stopped command must run to see it.
//
// The end of the monitor, a session leader, makes the kernel hang up on the terminal's foreground group,
// which mostly is the command's. It waits a while for the command to end, so that a command that cleans up
// on SIGHUP does not get a second one in the middle.
func (m *monitor) frontDied(changes <-chan struct{}, handled chan<- struct{}) {
	if m.tty >= 0 {
		if s, err := readGuard(m.guard); err == nil {
			_ = withoutTTOU(func() error { return s.putRight(m.tty) })
		}
	}
	_ = unix.Kill(-m.pid, unix.SIGHUP)
	_ = unix.Kill(-m.pid, unix.SIGCONT)
	for late := time.After(hangupPatience); ; {
		select {
		case _, ok := <-changes:
			if !ok || !m.reap() {
				return
			}
			handled <- struct{}{}
		case <-late:
			return
		}
	}
}

const hangupPatience = 5 * time.Second
