package wrapper

import (
	"sync"
	"time"
)

type itemKind uint8

const (
	itemOutput itemKind = iota
	itemInput
	itemResize
	itemIdle
)

// item is one thing that happened on the terminal.
type item struct {
	kind    itemKind
	n       int    // bytes in the ring
	time    uint64 // boottime ns
	skipped uint64 // bytes of this kind lost before this item
	cols    int    // itemResize
	rows    int
}

// queue carries items to one slow reader without ever delaying the writers: what does not fit is counted
// instead. Output may fill only a part of it, so that a flood of output does not push out what the user types
// meanwhile.
type queue struct {
	mu     sync.Mutex
	more   sync.Cond
	closed bool

	ring        []byte
	head, used  int // of ring
	outputLimit int
	items       []item // ring too
	first, n    int

	woke time.Time // when the reader last had to be woken

	skipped [2]uint64 // output, input: not yet told
}

const maxItems = 1 << 14

// newQueue makes a queue for size bytes, an eighth of it kept for input.
func newQueue(size int) *queue {
	q := &queue{ring: make([]byte, size), outputLimit: size - size/8, items: make([]item, maxItems)}
	q.more.L = &q.mu
	return q
}

// put adds output or input.
func (q *queue) put(kind itemKind, p []byte, time uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit, itemLimit := len(q.ring), maxItems-1 // the last place is for a size
	if kind == itemOutput {
		limit, itemLimit = q.outputLimit, maxItems-maxItems/8
	}
	if q.used+len(p) > limit || q.n >= itemLimit {
		q.skipped[kind] += uint64(len(p))
		return
	}
	at := (q.head + q.used) % len(q.ring)
	copied := copy(q.ring[at:], p)
	copy(q.ring, p[copied:])
	q.used += len(p)
	q.push(item{kind: kind, n: len(p), time: time, skipped: q.skipped[kind]})
	q.skipped[kind] = 0
}

// putSize adds a size. Of sizes that follow each other directly only the last is kept, so there is always room.
func (q *queue) putSize(cols, rows int, time uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := item{kind: itemResize, time: time, cols: cols, rows: rows}
	if q.n > 0 {
		if last := &q.items[(q.first+q.n-1)%maxItems]; last.kind == itemResize {
			*last = it
			return
		}
	}
	q.push(it)
}

// putIdle says that nothing is waiting: what the reader has taken is all that happened up to time.
func (q *queue) putIdle(time uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 && !q.closed {
		q.push(item{kind: itemIdle, time: time})
	}
}

func (q *queue) push(it item) {
	q.items[(q.first+q.n)%maxItems] = it
	q.n++
	if q.n == 1 {
		q.more.Signal()
	}
}

// take waits for the next item and copies its bytes to buf[:0]. It returns false when the queue is closed and
// empty. What was lost last comes as items without bytes.
func (q *queue) take(buf []byte) (item, []byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wait()
	if q.n == 0 {
		for k, lost := range q.skipped {
			if lost > 0 {
				q.skipped[k] = 0
				return item{kind: itemKind(k), skipped: lost}, nil, true
			}
		}
		return item{}, nil, false
	}
	it := q.items[q.first]
	q.first = (q.first + 1) % maxItems
	q.n--
	end := min(q.head+it.n, len(q.ring))
	buf = append(buf[:0], q.ring[q.head:end]...)
	buf = append(buf, q.ring[:it.n-(end-q.head)]...)
	q.head = (q.head + it.n) % len(q.ring)
	q.used -= it.n
	if q.n == 0 { // start over: most sessions then never touch most of the memory
		q.head, q.first = 0, 0
	}
	return it, buf, true
}

// wait waits for an item. While they come thick and fast it lets some gather: waking a goroutine for each would cost the
// writers more than putting it.
func (q *queue) wait() {
	if q.n == 0 && !q.closed && time.Since(q.woke) < gather {
		q.mu.Unlock()
		time.Sleep(gather)
		q.mu.Lock()
	}
	if q.n > 0 || q.closed {
		return
	}
	for q.n == 0 && !q.closed {
		q.more.Wait()
	}
	q.woke = time.Now()
}

const gather = 2 * time.Millisecond

// empty reports whether a take would wait now.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n == 0
}

// close lets take end after what is queued.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}
