package wrapper

import (
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// end finishes the session after the command has ended.
func (s *Session) end() {
	if s.term != nil {
		s.in.end()
		s.out.end()
		s.drain()
		s.Restore()
		if s.restoreErr != nil {
			s.res.Terminal = s.restoreErr
		}
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
	// Better a descriptor left open than one closed under a reader or writer.
	if !s.relaysEnded() {
		return
	}
	if s.in != nil {
		s.in.close()
	}
	if s.out != nil {
		s.out.close()
	}
	if s.master != nil {
		s.master.close()
	}
	if s.term != nil {
		s.term.close()
		if s.term.guard != nil {
			s.term.guard.close()
		}
	}
}

func (s *Session) relaysEnded() bool {
	if s.in == nil || !s.in.started { // both are started together
		return true
	}
	select {
	case <-s.out.done:
	default:
		return false
	}
	return s.in.wait()
}
