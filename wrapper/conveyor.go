package wrapper

import "sync"

// conveyor joins the goroutine that reads a terminal with the one that writes the other. While one piece is written,
// what is read gathers into the next, up to a limit; then the reader waits, and so does the program that prints.
type conveyor struct {
	mu      sync.Mutex
	change  sync.Cond
	pending []byte
	taken   bool // a piece is being written
	closed  bool // no more comes
	off     bool // nothing is taken any more
}

// conveyorLimit is a little more than the kernel holds for a terminal.
const conveyorLimit = 128 << 10

func newConveyor() *conveyor {
	c := &conveyor{}
	c.change.L = &c.mu
	return c
}

// put adds bytes, waiting for room.
func (c *conveyor) put(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) >= conveyorLimit && !c.off {
		c.change.Wait()
	}
	if c.off {
		return
	}
	c.pending = append(c.pending, p...)
	c.change.Broadcast()
}

// take waits for bytes and returns them, in exchange for a buffer that the caller has done with. It returns false at the
// end. The bytes count as on their way until written is called.
func (c *conveyor) take(used []byte) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) == 0 && !c.closed {
		c.change.Wait()
	}
	if len(c.pending) == 0 {
		return nil, false
	}
	p := c.pending
	c.pending, c.taken = used[:0], true
	c.change.Broadcast()
	return p, true
}

func (c *conveyor) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = false
}

// close lets take end after what is pending.
func (c *conveyor) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.change.Broadcast()
}

// discard drops what is pending and what still comes.
func (c *conveyor) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off, c.pending = true, nil
	c.change.Broadcast()
}

// empty reports whether all that was put has been written.
func (c *conveyor) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) == 0 && !c.taken
}
