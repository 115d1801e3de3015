package wrapper

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// inputRelay copies what the user types to the pseudo-terminal. It can be paused: as long as rye has not the
// terminal to itself, nothing is read that could be meant for another program.
type inputRelay struct {
	master *os.File
	term   *terminal
	seen   func(p []byte)
	wake   int // eventfd
	done   chan struct{}
	hungUp chan struct{} // closed when the user's terminal is gone

	mu      sync.Mutex
	enabled bool
	ended   bool
	started bool
	bytes   atomic.Uint64
}

func newInputRelay(master *os.File, term *terminal, seen func([]byte)) (*inputRelay, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &inputRelay{master: master, term: term, seen: seen, wake: wake, done: make(chan struct{}), hungUp: make(chan struct{})}, nil
}

// run uses poll(2) in a thread of its own and not the runtime's poller, which does not know descriptors that
// must stay blocking.
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
		fds := []unix.PollFd{{Fd: int32(in.wake), Events: unix.POLLIN}, {Fd: -1}}
		if enabled {
			fds[1] = unix.PollFd{Fd: int32(in.term.in), Events: unix.POLLIN}
		}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return
		}
		if fds[0].Revents != 0 {
			var b [8]byte
			_, _ = unix.Read(in.wake, b[:])
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
	n, err = in.master.Write(p)
	in.bytes.Add(uint64(n))
	return err == nil
}

func (in *inputRelay) enable(on bool) {
	in.mu.Lock()
	in.enabled = on
	in.mu.Unlock()
	in.poke()
}

// end stops the relay. A write that the command does not take is given up; the command has ended.
func (in *inputRelay) end() {
	in.mu.Lock()
	in.ended = true
	in.mu.Unlock()
	_ = in.master.SetWriteDeadline(time.Unix(1, 0))
	in.poke()
}

func (in *inputRelay) poke() {
	_, _ = unix.Write(in.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
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

func (in *inputRelay) close() { unix.Close(in.wake) }
