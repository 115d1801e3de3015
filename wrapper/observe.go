package wrapper

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// observers get a copy of what passes over the terminal: the callbacks and the recording, each through a queue of its
// own. One lock gives both the same order, and times that do not go back.
type observers struct {
	mu     sync.Mutex
	clock  func() uint64
	master *ttyFile
	feed   *feed     // nil without callbacks
	rec    *recorder // nil without a recording
}

func newObservers(o Options, master *ttyFile) *observers {
	return &observers{clock: o.Clock, master: master, feed: newFeed(o), rec: newRecorder(o.Recording)}
}

func (ob *observers) run(h castHeader) {
	if ob.feed != nil {
		ob.feed.q.putSize(h.cols, h.rows, h.start)
		go ob.feed.run()
		if ob.feed.idle != nil {
			go ob.tick()
		}
	}
	if ob.rec != nil {
		ob.rec.head = h
		go ob.rec.run()
	}
}

// idleEvery bounds how late a picture that nothing follows is looked at.
const idleEvery = 50 * time.Millisecond

// tick tells when nothing is waiting. Under the lock, so that nothing that happened before is told after.
func (ob *observers) tick() {
	t := time.NewTicker(idleEvery)
	defer t.Stop()
	for {
		select {
		case <-ob.feed.done:
			return
		case <-t.C:
			ob.mu.Lock()
			ob.feed.q.putIdle(ob.clock())
			ob.mu.Unlock()
		}
	}
}

func (ob *observers) output(p []byte) { ob.put(itemOutput, p, p) }

func (ob *observers) input(p []byte) { ob.put(itemInput, p, ob.veil(p)) }

func (ob *observers) put(kind itemKind, p, recorded []byte) {
	if ob.feed == nil && ob.rec == nil {
		return
	}
	ob.mu.Lock()
	defer ob.mu.Unlock()
	t := ob.clock()
	if ob.feed != nil {
		ob.feed.q.put(kind, p, t)
	}
	if ob.rec != nil {
		ob.rec.q.put(kind, recorded, t)
	}
}

func (ob *observers) resize(cols, rows int) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	t := ob.clock()
	if ob.feed != nil {
		ob.feed.q.putSize(cols, rows, t)
	}
	if ob.rec != nil {
		ob.rec.q.putSize(cols, rows, t)
	}
}

// veil keeps passwords out of the recording. A terminal in line mode without echo is how they are asked for;
// full-screen programs switch line mode off as well.
func (ob *observers) veil(p []byte) []byte {
	tio, err := ob.master.termios()
	if err != nil || tio.Lflag&(unix.ICANON|unix.ECHO) != unix.ICANON {
		return p
	}
	v := make([]byte, len(p))
	for i, c := range p {
		if v[i] = '*'; c == '\r' || c == '\n' {
			v[i] = c
		}
	}
	return v
}

// patience is how long the end of a session waits for its observers.
const patience = 5 * time.Second

var errLate = errors.New("not finished in time after the end of the command")

// close waits until all is told and recorded. undo is what rye itself wrote to the terminal at the end: part of the
// recording, but not of the command's output.
func (ob *observers) close(undo []byte) (callbacks, recording error) {
	late, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if ob.rec != nil {
		if len(undo) > 0 {
			ob.rec.q.put(itemOutput, undo, ob.clock())
		}
		ob.rec.q.close()
	}
	if ob.feed != nil {
		ob.feed.q.close()
		select {
		case <-ob.feed.done:
			callbacks = ob.feed.err
		case <-late.Done():
			callbacks = errLate
		}
	}
	if ob.rec != nil {
		select {
		case <-ob.rec.done:
			recording = ob.rec.result()
		case <-late.Done():
			recording = errLate
		}
	}
	return callbacks, recording
}
