package wrapper

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// ttyFile is a descriptor of a terminal. It is no os.File: that would register it with the runtime's poller, which
// wakes up for every few bytes a terminal moves, wanted or not, and that costs more than moving them.
//
// Reads and writes use the number directly (see [transfer]); who closes the file makes sure that they have ended.
type ttyFile struct {
	mu sync.RWMutex
	fd int // -1 when closed
}

// control runs an ioctl on the file.
func (f *ttyFile) control(do func(fd int) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.fd < 0 {
		return unix.EBADF
	}
	return do(f.fd)
}

func (f *ttyFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}

func (f *ttyFile) termios() (unix.Termios, error) {
	var tio unix.Termios
	err := f.control(func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			tio = *got
		}
		return err
	})
	return tio, err
}

func (f *ttyFile) setTermios(tio *unix.Termios) error {
	return f.control(func(fd int) error { return unix.IoctlSetTermios(fd, unix.TCSETS, tio) })
}

func (f *ttyFile) size() (unix.Winsize, error) {
	var ws unix.Winsize
	err := f.control(func(fd int) error {
		got, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			ws = *got
		}
		return err
	})
	return ws, err
}

func (f *ttyFile) setSize(ws unix.Winsize) error {
	return f.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &ws) })
}

// foreground returns the terminal's foreground process group.
func (f *ttyFile) foreground() (pgrp int, err error) {
	err = f.control(func(fd int) error {
		pgrp, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return pgrp, err
}

// latch wakes a goroutine that waits in poll(2). Once set it stays so until it is cleared.
type latch struct{ fd int }

func newLatch() (latch, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return latch{-1}, fmt.Errorf("create event descriptor: %w", err)
	}
	return latch{fd}, nil
}

func (l latch) set() { _, _ = unix.Write(l.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (l latch) clear() {
	var b [8]byte
	_, _ = unix.Read(l.fd, b[:])
}

func (l latch) close() {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
}
