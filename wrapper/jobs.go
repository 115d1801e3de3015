package wrapper

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run is the session from the command's start to its end, and the only place where its state changes.
func (s *Session) run() {
	defer close(s.done)
	var hungUp <-chan struct{}
	if s.in != nil {
		hungUp = s.in.hungUp
	}
	for {
		var tick <-chan time.Time
		if s.term != nil && !s.childForeground {
			tick = time.After(200 * time.Millisecond)
		}
		select {
		case m, ok := <-s.msgs:
			switch {
			case !ok:
				s.err = ErrMonitor
				s.end()
				return
			case m.kind == msgStopped:
				s.childStopped(syscall.Signal(m.arg))
			case m.kind == msgExit:
				s.exited(unix.WaitStatus(m.arg))
				s.end()
				return
			}
		case sig := <-s.sigs:
			s.signalled(sig.(syscall.Signal))
		case <-hungUp:
			// The command's terminal goes the way the user's went: reads end, writes fail.
			hungUp = nil
			s.hangUp()
			// As the kernel does with a hangup: what is stopped must run to see it.
			_ = s.tell(msgContinue, 0)
		case <-tick:
			s.watchForeground()
		}
	}
}

func (s *Session) exited(ws unix.WaitStatus) {
	if ws.Signaled() {
		s.res.Signal = ws.Signal()
		s.res.ExitCode = 128 + int(ws.Signal())
		return
	}
	s.res.ExitCode = ws.ExitStatus()
}

// signalled handles a signal sent to rye.
func (s *Session) signalled(sig syscall.Signal) {
	switch sig {
	case unix.SIGWINCH:
		if s.resize() && !s.childForeground {
			// The kernel tells the foreground group only, and to the user the command is in it.
			_ = s.tell(msgSignal, uint32(unix.SIGWINCH)|toGroup<<8)
		}
	case unix.SIGCONT:
		s.continued()
	case unix.SIGINT, unix.SIGQUIT:
		_ = s.tell(msgSignal, uint32(sig)|toForeground<<8)
	default:
		_ = s.tell(msgSignal, uint32(sig)|toGroup<<8)
	}
}

// resize gives the command's terminal the size of the user's. The size is read after the signal, so the last of
// many changes is the one that stays. It is also called before a key is passed on: on the user's terminal a size set
// before a key is there when the key is read, and the signal may come later. It reports whether the size has changed.
func (s *Session) resize() bool {
	if s.term == nil {
		return false
	}
	s.sizeMu.Lock()
	defer s.sizeMu.Unlock()
	ws, err := s.term.file.size()
	if err != nil || ws == s.size {
		return false
	}
	s.size = ws
	s.seen.resize(int(ws.Col), int(ws.Row))
	s.out.rows.Store(int32(ws.Row))
	_ = s.master.setSize(ws)
	return true
}

// childStopped follows the command when it stops.
func (s *Session) childStopped(sig syscall.Signal) {
	wantsTerminal := sig == unix.SIGTTIN || sig == unix.SIGTTOU
	if wantsTerminal && s.term != nil && !s.childForeground && s.term.foreground() {
		// It only waits for the terminal, which is ours to give.
		s.toForeground()
		_ = s.tell(msgContinue, 0)
		return
	}
	if s.term != nil {
		s.in.enable(false)
		s.out.settle()
		if err := s.term.restore(); err != nil {
			s.res.Terminal = err
		}
	}
	// Unless somebody else has continued it already. A tracer's stop is shown as t.
	if st := processState(s.pid); st == 'T' || st == 't' {
		s.stopSelf(sig)
	}
	s.resume(wantsTerminal)
}

// stopSelf stops rye's process group with the same signal, as the terminal would have stopped the command's. It
// returns when rye is continued, or at once when the kernel discards the stop because rye's group is orphaned:
// then there is no shell that could continue it.
func (s *Session) stopSelf(sig syscall.Signal) {
	// The rest of the group first, while rye itself ignores the signal. SIGSTOP cannot be ignored, so the
	// others get the stop of the keyboard.
	group := sig
	if sig == unix.SIGSTOP {
		group = unix.SIGTSTP
	}
	if s.term != nil { // a job of a terminal; elsewhere the group may be anybody's
		_ = withDisposition(group, sigIgnore, func() { _ = unix.Kill(0, group) })
	}
	if s.ignored.has(sig) {
		return
	}
	// A signal sent to the process could stop any thread of it now and this one later. Sent to this thread, it
	// acts before the system call returns.
	_ = withDisposition(sig, sigDefault, func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
	})
}

// resume goes on after a stop: terminal first, then the command.
func (s *Session) resume(wantsTerminal bool) {
	s.resumedAt = time.Now()
	if s.term != nil {
		switch {
		case !s.term.foreground():
			s.toBackground()
		case s.childForeground || wantsTerminal:
			s.toForeground()
		}
		s.resize()
	}
	_ = s.tell(msgContinue, 0)
}

// continued handles SIGCONT. The one that ended a stop was dealt with by resume; another one comes from outside
// and is passed on, because full-screen programs redraw on it.
func (s *Session) continued() {
	if time.Since(s.resumedAt) < time.Second {
		s.resize()
		return
	}
	s.resume(false)
}

// toForeground gives the command the terminal.
func (s *Session) toForeground() {
	s.takeTerminal()
	_ = s.tell(msgForeground, 1)
}

// takeTerminal sets the user's terminal up for a command that is in the foreground of its own.
func (s *Session) takeTerminal() {
	s.childForeground = true
	if err := s.term.setRaw(); err != nil {
		s.res.Terminal = err
	}
	if !s.settled {
		s.settled = true
		s.adoptSettings()
	}
	s.resize()
	s.in.enable(true)
}

// adoptSettings is for a command that began in the background. The settings its terminal got then may have been those
// of the shell's line editor; now they are the ones the shell gives a job.
func (s *Session) adoptSettings() {
	now, err := s.master.termios()
	if err == nil && now == s.initial { // or the command has set them
		_ = s.master.setTermios(&s.term.saved)
	}
}

// toBackground takes it away, when the shell has taken it from rye.
func (s *Session) toBackground() {
	s.childForeground = false
	s.in.enable(false)
	s.term.isRaw.Store(false) // the settings are the shell's now
	s.term.guard.disarm()
	_ = s.tell(msgForeground, 0)
}

// watchForeground looks for a command that took its terminal's foreground by itself, as an interactive shell
// does. No signal tells of it.
func (s *Session) watchForeground() {
	if s.term == nil || s.childForeground || !s.term.foreground() {
		return
	}
	pgrp, err := s.master.foreground()
	if err == nil && pgrp > 0 && pgrp != s.monitor.Pid {
		s.takeTerminal()
	}
}

// hangUp closes the pseudo-terminal while the command runs.
func (s *Session) hangUp() {
	s.in.end()
	s.out.abort()
	select {
	case <-s.out.done:
	case <-time.After(time.Second):
	}
	if s.relaysEnded() {
		s.master.close()
	}
}
