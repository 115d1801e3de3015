package wrapper

import (
	"os/signal"
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
			s.master.Close()
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
		s.resize()
		if s.term != nil && !s.childForeground {
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
// many changes is the one that stays.
func (s *Session) resize() {
	if s.term == nil {
		return
	}
	ws, err := s.term.size()
	if err != nil || ws == s.size {
		return
	}
	s.size = ws
	s.seen.resize(int(ws.Col), int(ws.Row))
	s.out.rows.Store(int32(ws.Row))
	_ = s.setSize(ws)
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
	_ = control(s.master, func(fd int) error {
		now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil || *now != s.initial { // or the command has set them
			return err
		}
		return unix.IoctlSetTermios(fd, unix.TCSETS, &s.term.saved)
	})
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
	taken := false
	_ = control(s.master, func(fd int) error {
		pgrp, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		taken = err == nil && pgrp > 0 && pgrp != s.monitor.Pid
		return err
	})
	if taken {
		s.takeTerminal()
	}
}

// end finishes the session after the command has ended.
func (s *Session) end() {
	if s.term != nil {
		s.in.end()
		s.out.end()
		s.drain()
		s.Restore()
		s.in.wait()
		s.res.InputBytes, s.res.OutputBytes = s.in.bytes.Load(), s.out.bytes.Load()
		s.res.Callbacks, s.res.Recording = s.seen.close(s.undo)
	}
	signal.Stop(s.sigs)
	s.cleanup()
}

// drain waits for the last output to reach the user's terminal. A terminal that takes nothing is waited for, as
// it may be a slow line or a suspended window, until a signal says to stop.
func (s *Session) drain() {
	for {
		select {
		case <-s.out.done:
			return
		case sig := <-s.sigs:
			switch sig {
			case unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT:
				s.out.giveUp()
				select {
				case <-s.out.done:
				case <-time.After(time.Second): // a write that cannot be given up
				}
				return
			case unix.SIGWINCH:
				s.resize()
			}
		}
	}
}

// cleanup releases what the session holds. The monitor ends when its socket closes.
func (s *Session) cleanup() {
	if s.ctl != nil {
		s.ctl.Close()
	}
	if s.monitor != nil {
		kill := time.AfterFunc(time.Second, func() { _ = s.monitor.Kill() })
		_, _ = s.monitor.Wait()
		kill.Stop()
	}
	if s.master != nil {
		s.master.Close()
	}
	if s.in != nil {
		if !s.in.wait() {
			return // better a descriptor left open than one closed under a reader
		}
		s.in.close()
	}
	if s.term != nil {
		s.term.close()
		s.term.guard.close()
	}
}
