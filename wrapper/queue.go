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

// queue carries items to one slow reader without ever delaying the writers: what does not fit is counted instead.
//
// Output may fill only a part of it, so that a flood of output does not push out what the user types meanwhile. Once
// it is full, output is left out until the reader has caught up with most of it: one large gap is worth more than many
// small ones. The newest output is kept aside and delivered after the gap, or before whatever else happens, so that
// the reader's picture of the terminal is right again as soon as it can be.
type queue struct {
	mu     sync.Mutex
	more   sync.Cond
	closed bool

	ring       []byte
	head, used int // of ring
	items      []item
	first, n   int // of items, a ring too

	lost      uint64 // output left out, tail included
	tail      []byte // the newest of it
	tailTime  uint64
	lostInput uint64
	others    uint64 // input and sizes, ever

	woke  time.Time     // when the reader last had to be woken
	rest  time.Duration // of the reader in a flood, see pause
	flood time.Time     // when output was last left out
}

const (
	maxItems = 1 << 14
	maxTail  = 64 << 10
)

// newQueue makes a queue for size bytes, an eighth of it kept for input and the newest output.
func newQueue(size int) *queue {
	q := &queue{ring: make([]byte, size), items: make([]item, maxItems)}
	q.more.L = &q.mu
	return q
}

// put adds output or input.
func (q *queue) put(kind itemKind, p []byte, timeNS uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if kind == itemOutput {
		q.putOutput(p, timeNS)
		return
	}
	q.others++
	q.catchUp()
	if !q.fits(len(p), len(q.ring), maxItems-1) { // the last place is for a size
		q.lostInput += uint64(len(p))
		return
	}
	q.push(item{kind: kind, time: timeNS, skipped: q.lostInput}, p)
	q.lostInput = 0
}

func (q *queue) putOutput(p []byte, timeNS uint64) {
	if q.lost == 0 && q.fits(len(p), q.limit(), maxItems-maxItems/8) {
		q.push(item{kind: itemOutput, time: timeNS}, p)
		return
	}
	q.lost += uint64(len(p))
	q.tailTime, q.flood = timeNS, time.Now()
	p = p[max(0, len(p)-maxTail):]
	if over := len(q.tail) + len(p) - maxTail; over > 0 {
		q.tail = append(q.tail[:0], q.tail[over:]...)
	}
	q.tail = append(q.tail, p...)
}

// catchUp delivers the newest output after a gap: before the reader gets anything that happened later, less of it if
// there is little room.
func (q *queue) catchUp() {
	if q.lost == 0 || q.n >= maxItems-1 {
		return
	}
	n := min(len(q.tail), (len(q.ring)-q.used)/2)
	q.push(item{kind: itemOutput, time: q.tailTime, skipped: q.lost - uint64(n)}, q.tail[len(q.tail)-n:])
	q.lost, q.tail = 0, q.tail[:0]
}

func (q *queue) fits(n, bytes, items int) bool { return q.used+n <= bytes && q.n < items }

// putSize adds a size. Of sizes that follow each other directly only the last is kept, so there is always room.
func (q *queue) putSize(cols, rows int, timeNS uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.others++
	q.catchUp()
	it := item{kind: itemResize, time: timeNS, cols: cols, rows: rows}
	if q.n > 0 {
		if last := &q.items[(q.first+q.n-1)%maxItems]; last.kind == itemResize {
			*last = it
			return
		}
	}
	q.push(it, nil)
}

// putIdle says that nothing is waiting: what the reader has taken is all that happened up to timeNS.
func (q *queue) putIdle(timeNS uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 && q.lost == 0 && !q.closed {
		q.push(item{kind: itemIdle, time: timeNS}, nil)
	}
}

func (q *queue) push(it item, p []byte) {
	it.n = len(p)
	at := (q.head + q.used) % len(q.ring)
	copied := copy(q.ring[at:], p)
	copy(q.ring, p[copied:])
	q.used += len(p)
	q.items[(q.first+q.n)%maxItems] = it
	q.n++
	if q.n == 1 {
		q.more.Signal()
	}
}

// take waits for the next item and copies its bytes to buf[:0]. It returns false when the queue is closed and
// empty. Input that was lost last comes as an item without bytes.
func (q *queue) take(buf []byte) (item, []byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wait()
	if q.n == 0 {
		if lost := q.lostInput; lost > 0 {
			q.lostInput = 0
			return item{kind: itemInput, skipped: lost}, nil, true
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
	if q.used <= q.limit()/4 && q.lost > 0 {
		q.pause()
		q.catchUp()
	}
	return it, buf, true
}

// limit is how much output may wait. After a gap in a flood it is little: more of the flood would only be work.
func (q *queue) limit() int {
	most := len(q.ring) - len(q.ring)/8
	if q.rest > 0 && time.Since(q.flood) < q.rest {
		return most / 8
	}
	return most
}

// pause lets the reader rest in a flood that it cannot follow. Nobody can: what matters is the picture at its end, or
// when the user does something. So it waits for a moment of quiet, for anything but output, or for q.rest.
func (q *queue) pause() {
	const step, quiet = 25 * time.Millisecond, 50 * time.Millisecond
	others := q.others
	for end := time.Now().Add(q.rest); time.Now().Before(end) && !q.closed && q.others == others && time.Since(q.flood) < quiet; {
		q.mu.Unlock()
		time.Sleep(step)
		q.mu.Lock()
	}
}

// gather is how long items may gather while they come thick and fast: waking a goroutine for each would cost the writers
// more than putting it.
const gather = 2 * time.Millisecond

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
