package wrapper

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputRelay copies the pseudo-terminal's output to the user's terminal, in one goroutine: nothing is read
// while the terminal takes no more, so a program that prints too fast is slowed down as by the terminal itself.
type outputRelay struct {
	master *os.File
	term   *terminal
	modes  *modes
	seen   func(p []byte) // what was read, before it is written
	done   chan struct{}

	mu       sync.Mutex
	ending   bool // the command has ended
	deadline bool // a read deadline is set
	waited   time.Duration
	after    int // bytes read since the end

	bytes  atomic.Uint64
	last   atomic.Int64 // time of the last read, ns of time.Now().UnixNano
	rows   atomic.Int32
	uncook uncooker
	gone   bool // the user's terminal takes nothing any more
}

// After the command's end its last bytes are still to come. They are followed by EIO, unless a process it
// left behind has the terminal open: then the relay ends after a pause, after more bytes than the kernel
// holds for a terminal, or after some time of waiting, whichever is first.
const (
	quietAfterEnd = 200 * time.Millisecond
	waitAfterEnd  = 600 * time.Millisecond
	bytesAfterEnd = 256 << 10
)

func newOutputRelay(master *os.File, term *terminal, seen func([]byte)) *outputRelay {
	return &outputRelay{master: master, term: term, modes: &modes{}, seen: seen, done: make(chan struct{})}
}

func (o *outputRelay) run() {
	defer close(o.done)
	raw, err := o.master.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for {
		ending := o.arm()
		start := time.Now()
		n, err := readAvailable(raw, buf)
		if n > 0 {
			o.relay(buf[:n])
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if ending {
				return
			}
			// Either the end was announced during the read, or a held carriage return is due.
			o.write(o.uncook.flush(nil))
		case err != nil:
			// EIO: the last slave is closed. The monitor keeps one open as long as the command runs.
			return
		}
		if ending {
			o.waited += time.Since(start)
			if o.after += n; o.after >= bytesAfterEnd || o.waited >= waitAfterEnd {
				return
			}
		}
	}
}

// arm sets the deadline for the next read. Only here, because a deadline that passes while the terminal is slow
// would make the read fail with data waiting.
func (o *outputRelay) arm() (ending bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var d time.Time
	switch {
	case o.ending:
		d = time.Now().Add(quietAfterEnd)
	case o.uncook.held:
		d = time.Now().Add(5 * time.Millisecond)
	case !o.deadline:
		return false
	}
	o.deadline = !d.IsZero()
	_ = o.master.SetReadDeadline(d)
	return o.ending
}

// end is called once the command has ended.
func (o *outputRelay) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending, o.deadline = true, true
	_ = o.master.SetReadDeadline(time.Unix(1, 0))
}

// readAvailable reads at least one byte, and all there is up to the size of buf. The kernel gives at most 4095
// bytes a call; one large write to the user's terminal costs less than many small ones.
func readAvailable(raw syscall.RawConn, buf []byte) (n int, err error) {
	waitErr := raw.Read(func(fd uintptr) bool {
		for n < len(buf) {
			m, e := unix.Read(int(fd), buf[n:])
			if e == unix.EINTR {
				continue
			}
			if e == unix.EAGAIN {
				return n > 0
			}
			if e == nil && m == 0 {
				e = unix.EIO
			}
			if e != nil {
				err = e
				return true
			}
			n += m
		}
		return true
	})
	if err == nil {
		err = waitErr
	}
	return n, err
}

func (o *outputRelay) relay(p []byte) {
	o.bytes.Add(uint64(len(p)))
	o.last.Store(time.Now().UnixNano())
	o.seen(p)
	o.modes.rows = int(o.rows.Load())
	o.modes.write(p)
	if o.modes.takeChanged() {
		o.term.guard.setUndo(o.modes.undo())
	}
	if !o.term.isRaw.Load() {
		p = o.uncook.write(p, o.cookedTwice())
	} else if o.uncook.held {
		o.write(o.uncook.flush(nil))
	}
	o.write(p)
}

func (o *outputRelay) write(p []byte) {
	if len(p) == 0 || o.gone {
		return
	}
	if _, err := o.term.out.Write(p); err != nil {
		o.gone = true // hung up, or given up: the command is still read, so that it does not block
	}
}

// giveUp ends a write that the user's terminal does not take.
func (o *outputRelay) giveUp() { _ = o.term.out.SetWriteDeadline(time.Unix(1, 0)) }

// settle waits until what the command has written is on the user's terminal, as far as can be told.
func (o *outputRelay) settle() {
	const quiet = 15 * time.Millisecond
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		time.Sleep(quiet / 3)
		if time.Since(time.Unix(0, o.last.Load())) >= quiet {
			return
		}
	}
}

// cookedTwice reports whether both terminals turn \n into \r\n.
func (o *outputRelay) cookedTwice() bool {
	both := true
	for _, f := range []*os.File{o.master, o.term.out} {
		err := control(f, func(fd int) error {
			tio, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			if err == nil && tio.Oflag&(unix.OPOST|unix.ONLCR) != unix.OPOST|unix.ONLCR {
				both = false
			}
			return err
		})
		both = both && err == nil
	}
	return both
}

// uncooker takes one \r from each \r\n, for the time when the user's terminal is not in raw mode (rye is in the
// background or in a pipeline) and will put it back: the user sees the same bytes as without rye.
type uncooker struct {
	held bool // a \r that ended a piece
	buf  []byte
}

func (u *uncooker) write(p []byte, active bool) []byte {
	if !active {
		return u.flush(p)
	}
	b := u.buf[:0]
	for _, c := range p {
		if u.held && c != '\n' {
			b = append(b, '\r')
		}
		if u.held = c == '\r'; !u.held {
			b = append(b, c)
		}
	}
	u.buf = b
	return b
}

// flush returns what is held back, then p.
func (u *uncooker) flush(p []byte) []byte {
	if !u.held {
		return p
	}
	u.held = false
	return append([]byte{'\r'}, p...)
}
