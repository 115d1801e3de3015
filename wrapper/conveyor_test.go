package wrapper

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

func TestConveyor(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sent := make([]byte, 3<<20)
	for i := range sent {
		sent[i] = byte(r.Uint32())
	}
	c := newConveyor()
	go func() {
		for p := sent; len(p) > 0; {
			n := min(1+r.IntN(9000), len(p))
			c.put(p[:n])
			p = p[n:]
		}
		c.close()
	}()
	var got, p []byte
	for ok := true; ok; {
		if p, ok = c.take(p); ok {
			if len(p) > conveyorLimit+9000 {
				t.Fatalf("%d bytes at once", len(p))
			}
			if c.empty() {
				t.Fatal("empty while a piece is on its way")
			}
			got = append(got, p...)
			c.written()
		}
	}
	if !bytes.Equal(got, sent) || !c.empty() {
		t.Errorf("%d bytes came out of %d", len(got), len(sent))
	}
}

// TestConveyorDiscard: a reader that waits for room is let go.
func TestConveyorDiscard(t *testing.T) {
	c := newConveyor()
	c.put(make([]byte, conveyorLimit))
	done := make(chan struct{})
	go func() {
		c.put([]byte("more"))
		close(done)
	}()
	select {
	case <-done:
		t.Fatal("there was room beyond the limit")
	case <-time.After(20 * time.Millisecond):
	}
	c.discard()
	<-done
	c.put([]byte("x"))
	c.close()
	if p, ok := c.take(nil); ok {
		t.Errorf("took %q after discard", p)
	}
}
