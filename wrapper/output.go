package wrapper

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// outputRelay copies the pseudo-terminal's output to the user's terminal: one goroutine reads, one writes, with a bounded
// buffer between them. A program that prints too fast is slowed down as by the terminal itself.
type outputRelay struct {
	master *ttyFile
	term   *terminal
	seen   func(p []byte) // what was read, at once
	from   *transfer
	to     *transfer // nil if the terminal's descriptor blocks
	belt   *conveyor
	done   chan struct{} // closed when the last byte is written

	ending atomic.Bool // the command has ended
	closed atomic.Bool // there is no more to read
	bytes  atomic.Uint64
	rows   atomic.Int32

	// Of the writing goroutine.
	modes  *modes
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
	o := &outputRelay{master: master, term: term, modes: &modes{}, seen: seen, belt: newConveyor(), done: make(chan struct{})}
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
	go o.deliver()
	o.collect()
	o.belt.close()
}

// collect reads until the end.
func (o *outputRelay) collect() {
	buf := make([]byte, 64<<10)
	waited, after := time.Duration(0), 0
	for !o.closed.Load() {
		ending, patience := o.ending.Load(), time.Duration(-1)
		if ending {
			patience = quietAfterEnd
		}
		start := time.Now()
		n, err := o.from.read(buf, patience)
		if ending {
			waited += time.Since(start)
			after += n
		}
		if n > 0 {
			o.bytes.Add(uint64(n))
			o.seen(buf[:n])
			o.belt.put(buf[:n])
		}
		switch {
		case err == errStopped:
			o.from.stop.clear() // what for, the flags say
		case err != nil:
			// EIO: the last slave is closed, which the monitor puts off until the command has ended. Or all
			// has been quiet since.
			return
		case after >= bytesAfterEnd || waited >= waitAfterEnd:
			return
		}
	}
}

// deliver writes what was collected.
func (o *outputRelay) deliver() {
	defer close(o.done)
	var p []byte
	for ok := true; ok; {
		if o.uncook.held && o.belt.empty() {
			// The \n that would follow this \r at once is not there.
			time.Sleep(5 * time.Millisecond)
			if o.belt.empty() {
				o.write(o.uncook.flush(nil))
			}
		}
		if p, ok = o.belt.take(p); ok {
			o.relay(p)
			o.belt.written()
		}
	}
	o.write(o.uncook.flush(nil))
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
	o.belt.discard()
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

// settle waits until what the command has written is on the user's terminal. A terminal that takes nothing ends it.
func (o *outputRelay) settle() {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		// In this order: nothing more in the kernel, where poll waits for what is on its way through the line
		// discipline; nothing in the hands of the reader; nothing with the writer.
		if !o.readable() && o.from.idle.Load() && o.belt.empty() {
			return
		}
	}
}

func (o *outputRelay) readable() bool {
	fds := []unix.PollFd{{Fd: int32(o.from.fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(fds, 0)
	return n > 0
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
