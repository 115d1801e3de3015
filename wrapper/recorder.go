package wrapper

import (
	"fmt"
	"io"
)

// recorder writes the recording in its own goroutine. A slow or failing writer costs the recording, never the
// session: what does not fit into the queue is noted in the recording, and an error ends it.
type recorder struct {
	q    *queue
	w    io.Writer
	head castHeader
	done chan struct{}
	err  error // valid after done
	lost uint64
}

// recordBytes bounds what waits to be written.
const recordBytes = 8 << 20

func newRecorder(w io.Writer) *recorder {
	if w == nil {
		return nil
	}
	return &recorder{q: newQueue(recordBytes), w: w, done: make(chan struct{})}
}

// result is the error of the recording after done: nil if it is whole.
func (r *recorder) result() error {
	if r.err == nil && r.lost > 0 {
		return fmt.Errorf("write recording: %d bytes left out, the writer was too slow", r.lost)
	}
	return r.err
}

func (r *recorder) run() {
	defer close(r.done)
	r.err = r.record()
	var buf []byte
	for { // after an error: keep the queue from filling up
		it, p, ok := r.q.take(buf)
		if !ok {
			return
		}
		buf = p
		r.lost += uint64(it.n) + it.skipped
	}
}

func (r *recorder) record() error {
	c, err := newCastWriter(r.w, r.head)
	if err != nil {
		return err
	}
	var buf []byte
	for {
		// Written out whenever there is nothing to do, so that little is missing after a crash.
		if r.q.empty() {
			if err := c.flush(); err != nil {
				return err
			}
		}
		it, p, ok := r.q.take(buf)
		if !ok {
			return c.close()
		}
		buf = p
		r.lost += it.skipped
		if err := c.write(it, p); err != nil {
			r.lost += uint64(it.n)
			return err
		}
	}
}
