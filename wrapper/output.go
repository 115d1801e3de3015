package wrapper

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// outputRelay copies the pseudo-terminal's output to the user's terminal, in one goroutine: nothing is read
// while the terminal takes no more, so a program that prints too fast is slowed down as by the terminal itself.
type outputRelay struct {
	master *ttyFile
	term   *terminal
	modes  *modes
	seen   func(p []byte) // what was read, before it is written
	from   *transfer
	to     *transfer // nil if the terminal's descriptor blocks
	done   chan struct{}

	ending atomic.Bool // the command has ended
	closed atomic.Bool // there is no more to read
	waited time.Duration
	after  int // bytes read since the end

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

func newOutputRelay(master *ttyFile, term *terminal, seen func([]byte)) (*outputRelay, error) {
	o := &outputRelay{master: master, term: term, modes: &modes{}, seen: seen, done: make(chan struct{})}
	stop, err := newLatch()
	if err != nil {
		return nil, err
	}
	o.from = newTransfer(master.fd, stop)
	if term.nonblock {
		if stop, err = newLatch(); err != nil {
			o.from.stop.close()
			return nil, err
		}
		o.to = newTransfer(term.file.fd, stop)
	}
	return o, nil
}

func (o *outputRelay) run() {
	defer close(o.done)
	defer func() { o.write(o.uncook.flush(nil)) }()
	buf := make([]byte, 64<<10)
	for !o.closed.Load() {
		ending := o.ending.Load()
		start := time.Now()
		n, err := o.from.read(buf, o.patience(ending))
		if n > 0 {
			o.relay(buf[:n])
		}
		switch err {
		case nil:
		case errStopped:
			o.from.stop.clear() // what for, the flags say
			continue
		case errTimeout:
			if ending {
				return
			}
			o.write(o.uncook.flush(nil))
		default:
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

// patience is how long to wait for the next bytes.
func (o *outputRelay) patience(ending bool) time.Duration {
	switch {
	case ending:
		return quietAfterEnd
	case o.uncook.held:
		return 5 * time.Millisecond
	}
	return -1
}

// end is called once the command has ended.
func (o *outputRelay) end() {
	o.ending.Store(true)
	o.from.stop.set()
}

// abort ends the relay without reading on.
func (o *outputRelay) abort() {
	o.closed.Store(true)
	o.from.stop.set()
	o.giveUp()
}

// giveUp ends a write that the user's terminal does not take, and all that follow.
func (o *outputRelay) giveUp() {
	if o.to != nil {
		o.to.stop.set()
	}
}

func (o *outputRelay) close() {
	o.from.stop.close()
	if o.to != nil {
		o.to.stop.close()
	}
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
	if err := o.transmit(p); err != nil {
		o.gone = true // hung up, or given up: the command is still read, so that it does not block
	}
}

func (o *outputRelay) transmit(p []byte) error {
	if o.to != nil {
		_, err := o.to.write(p)
		return err
	}
	for len(p) > 0 {
		n, err := unix.Write(o.term.file.fd, p)
		if err != nil && err != unix.EINTR {
			return err
		}
		p = p[max(n, 0):]
	}
	return nil
}

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
	for _, f := range []*ttyFile{o.master, &o.term.file} {
		tio, err := f.termios()
		if err != nil || tio.Oflag&(unix.OPOST|unix.ONLCR) != unix.OPOST|unix.ONLCR {
			return false
		}
	}
	return true
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
