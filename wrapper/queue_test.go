package wrapper

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestQueueOrder(t *testing.T) {
	q := newQueue(1 << 10)
	q.putSize(80, 24, 1)
	q.put(itemOutput, []byte("a"), 2)
	q.put(itemInput, []byte("b"), 3)
	q.put(itemOutput, []byte("c"), 4)
	q.putSize(90, 25, 5)
	q.putSize(91, 26, 6) // replaces the one before
	q.close()
	var got string
	for {
		it, p, ok := q.take(nil)
		if !ok {
			break
		}
		got += fmt.Sprintf("%d@%d:%s%dx%d ", it.kind, it.time, p, it.cols, it.rows)
	}
	if want := "2@1:80x24 0@2:a0x0 1@3:b0x0 0@4:c0x0 2@6:91x26 "; got != want {
		t.Errorf("took %q, want %q", got, want)
	}
}

// TestQueueOverflow: output that does not fit is one gap, with the newest of it after; the reader is told the size.
func TestQueueOverflow(t *testing.T) {
	q := newQueue(8 * maxTail)
	piece := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1000) }
	const pieces = 2000
	for i := range pieces {
		q.put(itemOutput, piece(i), uint64(i))
	}
	q.close()
	at, gaps, lastTime := 0, 0, uint64(0)
	for {
		it, p, ok := q.take(nil)
		if !ok {
			break
		}
		if it.skipped > 0 {
			gaps++
			at += int(it.skipped)
		}
		for i, c := range p {
			if want := byte((at + i) / 1000); c != want {
				t.Fatalf("byte %d is of piece %d, want %d", at+i, c, want)
			}
		}
		at += len(p)
		lastTime = it.time
	}
	if at != pieces*1000 || gaps != 1 || lastTime != pieces-1 {
		t.Errorf("%d bytes accounted for in %d gaps, last time %d", at, gaps, lastTime)
	}
}

// TestQueueOverflowOrder: what the user does during a flood finds room, and comes after the newest output before it.
func TestQueueOverflowOrder(t *testing.T) {
	q := newQueue(16 * maxTail)
	flood := func(c byte) {
		for range 40 {
			q.put(itemOutput, bytes.Repeat([]byte{c}, maxTail), 1)
		}
		q.put(itemOutput, []byte("newest "+string(c)), 1)
	}
	flood('a')
	q.put(itemInput, []byte("key"), 2)
	flood('b')
	q.putSize(9, 9, 3)
	q.putIdle(4) // there is something waiting
	q.close()
	var story []string
	for {
		it, p, ok := q.take(nil)
		if !ok {
			break
		}
		switch {
		case it.kind == itemOutput && it.skipped > 0:
			story = append(story, "gap", string(p[max(0, len(p)-8):]))
		case it.kind != itemOutput:
			story = append(story, fmt.Sprint(it.kind))
		}
	}
	if got, want := strings.Join(story, ","), "gap,newest a,1,gap,newest b,2"; got != want {
		t.Errorf("story %q, want %q", got, want)
	}
}

// TestQueueRest: in a flood the reader rests, until the flood pauses, something else happens, or the queue is closed.
func TestQueueRest(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop func(q *queue)
	}{
		{"quiet", func(*queue) {}},
		{"input", func(q *queue) { q.put(itemInput, []byte("key"), 2) }},
		{"closed", func(q *queue) { q.close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := newQueue(16 * maxTail)
			q.rest = time.Minute
			stop := make(chan struct{})
			flood := make(chan struct{})
			go func() {
				defer close(flood)
				for {
					select {
					case <-stop:
						return
					default:
						q.put(itemOutput, make([]byte, maxTail), 1)
						time.Sleep(time.Millisecond)
					}
				}
			}()
			for range 40 {
				q.put(itemOutput, make([]byte, maxTail), 1)
			}
			rested := make(chan struct{})
			go func() {
				defer close(rested)
				for {
					if it, _, ok := q.take(nil); !ok || it.skipped > 0 {
						return
					}
				}
			}()
			select {
			case <-rested:
				t.Fatal("no rest")
			case <-time.After(150 * time.Millisecond):
			}
			if tt.name == "quiet" {
				close(stop)
			} else {
				defer close(stop)
			}
			tt.stop(q)
			select {
			case <-rested:
			case <-time.After(patienceInTests):
				t.Fatal("rests on")
			}
		})
	}
}

// TestQueueInputOverflow: lost input is counted too.
func TestQueueInputOverflow(t *testing.T) {
	q := newQueue(800)
	for range 20 {
		q.put(itemInput, bytes.Repeat([]byte("i"), 100), 5)
	}
	q.close()
	taken, skipped := 0, uint64(0)
	for {
		it, p, ok := q.take(nil)
		if !ok {
			break
		}
		taken += len(p)
		skipped += it.skipped
	}
	if taken != 800 || skipped != 1200 {
		t.Errorf("took %d bytes and was told of %d skipped, want 800 and 1200", taken, skipped)
	}
}

// TestQueueManyItems: the number of items is bounded too, and a size always finds a place.
func TestQueueManyItems(t *testing.T) {
	q := newQueue(1 << 20)
	for i := range 2 * maxItems {
		q.put(itemOutput, []byte("o"), 1)
		q.put(itemInput, []byte("i"), 1)
		q.putSize(i, 1, 1)
	}
	q.close()
	var n, told, last int
	for {
		it, p, ok := q.take(nil)
		if !ok {
			break
		}
		n += len(p)
		told += int(it.skipped)
		if it.kind == itemResize {
			last = it.cols
		}
	}
	if n+told != 4*maxItems || last != 2*maxItems-1 {
		t.Errorf("%d bytes and %d skipped of %d; last size %d", n, told, 4*maxItems, last)
	}
}

// TestQueueConcurrent: bytes come out in order and whole, or are accounted for.
func TestQueueConcurrent(t *testing.T) {
	q := newQueue(1 << 17)
	r := rand.New(rand.NewPCG(1, 2))
	sent := make([]byte, 2_000_000)
	for i := range sent {
		sent[i] = byte(r.Uint32())
	}
	go func() {
		for p := sent; len(p) > 0; {
			n := min(1+int(p[0])*16, len(p))
			q.put(itemOutput, p[:n], 1)
			p = p[n:]
			if n%7 == 0 {
				time.Sleep(time.Microsecond)
			}
		}
		q.close()
	}()
	at := 0
	var buf []byte
	for {
		it, p, ok := q.take(buf)
		if !ok {
			break
		}
		buf = p
		at += int(it.skipped)
		if at+len(p) > len(sent) || !bytes.Equal(p, sent[at:at+len(p)]) {
			t.Fatalf("at %d: %d bytes that were not sent there", at, len(p))
		}
		at += len(p)
	}
	if at != len(sent) {
		t.Errorf("%d bytes accounted for, want %d", at, len(sent))
	}
}

func TestFeedPanic(t *testing.T) {
	calls := 0
	f := newFeed(Options{Output: func([]byte, uint64, uint64) { calls++; panic("no") }, Input: func([]byte, uint64, uint64) { calls++ }})
	f.q.put(itemOutput, []byte("x"), 1)
	f.q.put(itemInput, []byte("x"), 1)
	f.q.close()
	f.run()
	if calls != 1 || f.err == nil {
		t.Errorf("%d calls, error %v", calls, f.err)
	}
	if newFeed(Options{}) != nil {
		t.Error("a feed without callbacks")
	}
}

func BenchmarkQueue(b *testing.B) {
	q := newQueue(feedBytes)
	p := make([]byte, 4095)
	buf := make([]byte, 0, len(p))
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		q.put(itemOutput, p, 1)
		_, buf, _ = q.take(buf)
	}
}
