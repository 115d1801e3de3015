package wrapper

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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

// TestQueueOverflow: what does not fit is counted per kind and told with the next item of that kind; a flood of output
// leaves room for input and sizes.
func TestQueueOverflow(t *testing.T) {
	q := newQueue(800)
	for range 20 {
		q.put(itemOutput, bytes.Repeat([]byte("o"), 100), 1)
	}
	q.put(itemInput, []byte("key"), 2)
	q.putSize(1, 1, 3)
	kept, input := 0, 0
	for q.n > 0 {
		it, p, _ := q.take(nil)
		switch it.kind {
		case itemOutput:
			kept += len(p)
			if it.skipped != 0 {
				t.Errorf("item says %d bytes before it were skipped", it.skipped)
			}
		case itemInput:
			input += len(p)
		}
	}
	if kept != 700 || input != 3 {
		t.Errorf("kept %d bytes of output, %d of input; want 700 and 3", kept, input)
	}
	q.put(itemOutput, []byte("next"), 4)
	if it, p, _ := q.take(nil); it.skipped != 1300 || string(p) != "next" {
		t.Errorf("after the flood: %+v %q", it, p)
	}
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
		if i == 10 {
			q.putSize(1, 1, 1)
		}
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
	q := newQueue(4 << 10)
	r := rand.New(rand.NewPCG(1, 2))
	sent := make([]byte, 200_000)
	for i := range sent {
		sent[i] = byte(r.Uint32())
	}
	go func() {
		for p := sent; len(p) > 0; {
			n := min(1+int(p[0])*4, len(p))
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
