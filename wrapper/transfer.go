package wrapper

import (
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// transfer moves bytes through a nonblocking descriptor for one goroutine, with as little as possible between the kernel's
// queues. A terminal moves at most 4095 bytes a call, so a flood of output is a flood of calls, and a system call that
// the Go scheduler sees blocking costs several others that wake and park threads. While data flows, waiting is a
// short poll(2) that the scheduler does not hear of. After a millisecond without data it becomes an ordinary one, so
// a quiet terminal costs nothing and the rest of the program is never held up for longer than that.
type transfer struct {
	fd   int
	stop latch // ends a wait with errStopped

	last time.Time // of the last transfer
	spin bool
	idle atomic.Bool // waiting, with nothing taken from the descriptor that the caller has not got
}

const (
	hotWait = time.Millisecond
	hotFor  = 5 * time.Millisecond // after the last transfer
)

var (
	errStopped = errors.New("stopped")
	errTimeout = errors.New("timed out")
)

func newTransfer(fd int, stop latch) *transfer {
	// With one processor nothing else of the program could run during the short poll.
	return &transfer{fd: fd, stop: stop, spin: runtime.GOMAXPROCS(0) > 1}
}

// read waits for bytes, for ever if timeout is negative. The end of a terminal is EIO or io.EOF.
func (t *transfer) read(p []byte, timeout time.Duration) (int, error) {
	for {
		n, err := t.try(unix.SYS_READ, unix.POLLIN, p)
		if err == nil && n == 0 {
			return 0, io.EOF
		}
		if err != unix.EAGAIN {
			return n, err
		}
		if err := t.wait(unix.POLLIN, timeout); err != nil {
			return 0, err
		}
	}
}

// write writes all of p.
func (t *transfer) write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := t.try(unix.SYS_WRITE, unix.POLLOUT, p[written:])
		if err == nil {
			written += n
			continue
		}
		if err != unix.EAGAIN {
			return written, err
		}
		if err := t.wait(unix.POLLOUT, -1); err != nil {
			return written, err
		}
	}
	return written, nil
}

// try makes one call, after a short wait if the descriptor was busy lately. These calls bypass the scheduler's bookkeeping,
// which is right only because the descriptor is nonblocking.
func (t *transfer) try(call uintptr, event int16, p []byte) (int, error) {
	for waited := false; ; {
		n, _, errno := unix.RawSyscall(call, uintptr(t.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch {
		case errno == 0:
			t.last = time.Now()
			return int(n), nil
		case errno == unix.EINTR:
			continue
		case errno != unix.EAGAIN || waited || !t.spin || time.Since(t.last) > hotFor:
			return 0, errno
		}
		waited = true
		fds := [1]unix.PollFd{{Fd: int32(t.fd), Events: event}}
		limit := unix.NsecToTimespec(int64(hotWait))
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	}
}

func (t *transfer) wait(event int16, timeout time.Duration) error {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	fds := [2]unix.PollFd{{Fd: int32(t.fd), Events: event}, {Fd: int32(t.stop.fd), Events: unix.POLLIN}}
	t.idle.Store(true)
	n, err := unix.Poll(fds[:], ms)
	t.idle.Store(false)
	switch {
	case err == unix.EINTR:
		return nil // tried again: a signal must not end a wait, and timeouts here need not be exact
	case err != nil:
		return err
	case fds[1].Revents != 0:
		return errStopped
	case n == 0:
		return errTimeout
	}
	return nil
}
