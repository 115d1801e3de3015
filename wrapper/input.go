package wrapper

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// inputRelay copies what the user types to the pseudo-terminal. It can be paused: as long as rye has not the
// terminal to itself, nothing is read that could be meant for another program.
type inputRelay struct {
	term   *terminal
	to     *transfer // the pseudo-terminal
	seen   func(p []byte)
	wake   latch
	done   chan struct{}
	hungUp chan struct{} // closed when the user's terminal is gone

	mu      sync.Mutex
	enabled bool
	ended   bool
	started bool
	bytes   atomic.Uint64
}

func newInputRelay(master *ttyFile, term *terminal, seen func([]byte)) (*inputRelay, error) {
	in := &inputRelay{term: term, seen: seen, done: make(chan struct{}), hungUp: make(chan struct{})}
	var err error
	if in.wake, err = newLatch(); err != nil {
		return nil, err
	}
	stop, err := newLatch()
	if err != nil {
		in.wake.close()
		return nil, err
	}
	in.to = newTransfer(master.fd, stop)
	return in, nil
}

// run waits with poll(2) before each read: the descriptor may be one that must stay blocking.
func (in *inputRelay) run() {
	defer close(in.done)
	buf := make([]byte, 16<<10)
	for {
		in.mu.Lock()
		enabled, ended := in.enabled, in.ended
		in.mu.Unlock()
		if ended {
			return
		}
		fds := []unix.PollFd{{Fd: int32(in.wake.fd), Events: unix.POLLIN}, {Fd: -1}}
		if enabled {
			fds[1] = unix.PollFd{Fd: int32(in.term.in), Events: unix.POLLIN}
		}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return
		}
		if fds[0].Revents != 0 {
			in.wake.clear()
			continue // the state may have changed: look before reading
		}
		if fds[1].Revents != 0 && !in.relay(buf, fds[1].Revents&unix.POLLHUP != 0) {
			return
		}
	}
}

// relay passes on one read. It returns false when no more will come.
func (in *inputRelay) relay(buf []byte, hup bool) bool {
	n, err := unix.Read(in.term.in, buf)
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return true
	case err != nil || n == 0:
		// End of file in raw mode is a hangup. EIO without one comes from an orphaned process group in
		// the background, for which there never is input.
		if hup || err == nil {
			close(in.hungUp)
		}
		return false
	}
	p := buf[:n]
	in.seen(p) // before the command can react
	n, err = in.to.write(p)
	in.bytes.Add(uint64(n))
	return err == nil
}

func (in *inputRelay) enable(on bool) {
	in.mu.Lock()
	in.enabled = on
	in.mu.Unlock()
	in.wake.set()
}

// end stops the relay. A write that the command does not take is given up; the command has ended.
func (in *inputRelay) end() {
	in.mu.Lock()
	in.ended = true
	in.mu.Unlock()
	in.to.stop.set()
	in.wake.set()
}

// wait waits until the relay has ended and so uses no descriptor any more; it reports whether it has. A read can block
// although there was something to read, when another process was quicker.
func (in *inputRelay) wait() bool {
	if !in.started {
		return true
	}
	select {
	case <-in.done:
		return true
	case <-time.After(time.Second):
		return false
	}
}

func (in *inputRelay) close() {
	in.wake.close()
	in.to.stop.close()
}
