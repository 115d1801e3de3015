package wrapper

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// terminal is the user's terminal, as the front holds it. Its settings are touched only by the session's own
// goroutine; reading, writing and isRaw are safe anywhere.
type terminal struct {
	file     ttyFile // for writing and settings
	in       int     // for reading; -1 if the terminal cannot be read
	nonblock bool    // the descriptors are rye's own and nonblocking
	dev      int     // device number, as TIOCGDEV gives it
	saved    unix.Termios
	raw      unix.Termios
	isRaw    atomic.Bool
	guard    *guard
}

// openTerminal finds the user's terminal: the first of the three standard files that is one, else the
// controlling terminal. It returns nil if there is none.
func openTerminal(std [3]*os.File) (*terminal, error) {
	t := &terminal{in: -1, file: ttyFile{fd: -1}}
	var from []int
	for _, f := range std {
		if dev, ok := terminalDevice(int(f.Fd())); ok && (len(from) == 0 || dev == t.dev) {
			t.dev = dev
			from = append(from, int(f.Fd()))
		}
	}
	if len(from) == 0 {
		fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, nil // ENXIO: no controlling terminal
		}
		defer unix.Close(fd)
		dev, ok := terminalDevice(fd)
		if !ok {
			return nil, nil
		}
		t.dev = dev
		from = append(from, fd)
	}
	if err := t.open(from); err != nil {
		t.close()
		return nil, err
	}
	if err := t.save(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// open makes rye's own descriptors of the terminal. A new open file description is wanted, because
// O_NONBLOCK set on the user's would be seen by the shell and by every other process that has it. Where the
// device cannot be opened again (another user's, TIOCEXCL) the descriptors are duplicates, and a write that
// blocks cannot be given up.
func (t *terminal) open(from []int) error {
	for _, fd := range from {
		own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if dev, ok := terminalDevice(own); !ok || dev != t.dev {
			unix.Close(own)
			continue
		}
		t.file.fd, t.in, t.nonblock = own, own, true
		return nil
	}
	for _, fd := range from {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return fmt.Errorf("read terminal flags: %w", err)
		}
		for _, use := range []struct {
			dst  *int
			mode int
		}{{&t.in, unix.O_RDONLY}, {&t.file.fd, unix.O_WRONLY}} {
			acc := flags & unix.O_ACCMODE
			if *use.dst >= 0 || acc != unix.O_RDWR && acc != use.mode {
				continue
			}
			if *use.dst, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
				return fmt.Errorf("duplicate terminal: %w", err)
			}
		}
	}
	if t.file.fd < 0 {
		return errors.New("open terminal for writing: none of the standard files allows it")
	}
	return nil
}

// terminalDevice returns the device number of a terminal. /dev/tty gives the one it stands for.
func terminalDevice(fd int) (int, bool) {
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		return 0, false
	}
	dev, err := unix.IoctlGetUint32(fd, unix.TIOCGDEV)
	return int(dev), err == nil
}

// save remembers the settings to come back to. They are read anew before each switch to raw mode, because
// the shell or the user may have changed them while rye was stopped.
func (t *terminal) save() error {
	tio, err := t.file.termios()
	if err != nil {
		return fmt.Errorf("read terminal settings: %w", err)
	}
	t.saved, t.raw = tio, makeRaw(tio)
	return nil
}

// makeRaw is cfmakeraw(3).
func makeRaw(tio unix.Termios) unix.Termios {
	tio.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	tio.Oflag &^= unix.OPOST
	tio.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	tio.Cflag = tio.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	tio.Cc[unix.VMIN], tio.Cc[unix.VTIME] = 1, 0
	return tio
}

// setRaw puts the terminal into raw mode, also when it was before: the shell may have changed that while rye was
// stopped. Input typed before stays.
func (t *terminal) setRaw() error {
	before := t.saved
	if err := t.save(); err != nil {
		return err
	}
	if t.isRaw.Load() && t.saved == makeRaw(before) {
		t.saved = before
	}
	if err := t.guard.arm(t.saved, t.raw); err != nil {
		return err
	}
	if err := withoutTTOU(func() error { return t.file.setTermios(&t.raw) }); err != nil {
		return fmt.Errorf("set terminal to raw mode: %w", err)
	}
	t.isRaw.Store(true)
	return nil
}

// restore puts the settings back as they were.
func (t *terminal) restore() error {
	if !t.isRaw.Load() {
		return nil
	}
	t.isRaw.Store(false)
	err := withoutTTOU(func() error { return t.file.setTermios(&t.saved) })
	t.guard.disarm()
	if err != nil {
		return fmt.Errorf("restore terminal settings: %w", err)
	}
	return nil
}

// withoutTTOU runs do with SIGTTOU blocked in its thread: the kernel then lets a background process change
// the terminal instead of stopping it.
func withoutTTOU(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block, old unix.Sigset_t
	block.Val[0] = 1 << (unix.SIGTTOU - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old); err != nil {
		return fmt.Errorf("block SIGTTOU: %w", err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	return do()
}

// foreground reports whether rye's process group is the terminal's foreground group. A terminal that is not
// rye's controlling terminal has no job control for rye, so it counts as foreground.
func (t *terminal) foreground() bool {
	pgrp, err := t.file.foreground()
	return err != nil || pgrp == unix.Getpgrp()
}

func (t *terminal) close() {
	if t.in >= 0 && t.in != t.file.fd {
		unix.Close(t.in)
	}
	t.file.close()
}
