package packet

import (
	"slices"

	"github.com/google/gopacket/layers"

	"github.com/ryehq/rye/event"
)

// A stream is the beginning of one direction of a connection, put together in order.
type stream struct {
	proto   string // "" is tcp
	keys    *quicKeys
	next    uint32 // sequence number that comes next
	started bool
	b       []byte
	later   []piece // came early
	done    bool    // nothing more is wanted of it
}

type piece struct {
	seq uint32
	b   []byte
}

const maxLater = 16

// segment adds a TCP segment to its stream and reads what is whole.
func (r *Reader) segment(rec Record, k streamKey, t *layers.TCP) []event.Event {
	if t.SYN {
		r.forget(k) // the same ends again
		return nil
	}
	if len(t.Payload) == 0 {
		if t.FIN || t.RST {
			return r.ended(rec, k)
		}
		return nil
	}
	s := r.streams[k]
	if s == nil {
		if !k.dns() && t.Payload[0] != recordHandshake {
			return nil // headers only: the kernel copies the payload of nothing else
		}
		s = r.begin(k)
	}
	if s.done {
		return nil
	}
	s.add(t.Seq, t.Payload)
	r.makeRoom()
	if k.dns() {
		return r.dnsStream(rec, k, s)
	}
	h, need := readHello(s.b)
	switch {
	case h == nil && need && len(s.b) < maxStream:
		return nil
	case h == nil && need:
		h = &event.NetTLSHello{Unread: "longer than is put together"}
	case h == nil: // no hello after all
		s.end()
		return nil
	}
	s.end()
	return one(rec, s.hello(h, k))
}

func (s *stream) hello(h *event.NetTLSHello, k streamKey) *event.NetTLSHello {
	h.Proto, h.Local, h.Remote, h.Sent = "tcp", k.local.String(), k.remote.String(), k.out
	if s.proto != "" {
		h.Proto = s.proto
	}
	return h
}

// dnsStream takes whole messages off a stream: two bytes of length, then the message (RFC 1035, 4.2.2).
func (r *Reader) dnsStream(rec Record, k streamKey, s *stream) (out []event.Event) {
	for len(s.b) >= 2 {
		n := int(s.b[0])<<8 | int(s.b[1])
		if len(s.b) < 2+n {
			break
		}
		out = append(out, event.New(rec.TimeNS, rec.Proc, readDNS(s.b[2:2+n], k, "tcp", "")))
		s.b = append([]byte(nil), s.b[2+n:]...)
	}
	return out
}

// ended says what was begun and will not be whole.
func (r *Reader) ended(rec Record, k streamKey) []event.Event {
	s := r.streams[k]
	r.forget(k)
	if s == nil || s.done || len(s.b) == 0 {
		return nil
	}
	return one(rec, s.unfinished(k))
}

func (s *stream) unfinished(k streamKey) event.Body {
	const why = "it was not seen to its end"
	if k.dns() {
		return &event.NetDNS{Proto: "tcp", Local: k.local.String(), Remote: k.remote.String(), Sent: k.out, Cut: why}
	}
	return s.hello(&event.NetTLSHello{Unread: why}, k)
}

// End returns what was begun and never became whole.
func (r *Reader) End(timeNS uint64) (out []event.Event) {
	for _, k := range r.order {
		if s := r.streams[k]; s != nil && !s.done && s.size() > 0 {
			out = append(out, event.New(timeNS, nil, s.unfinished(k)))
		}
	}
	r.streams, r.order = nil, nil
	return out
}

func (r *Reader) begin(k streamKey) *stream {
	if r.streams == nil {
		r.streams = make(map[streamKey]*stream)
	}
	s := new(stream)
	r.streams[k] = s
	r.order = append(r.order, k)
	return s
}

func (r *Reader) forget(k streamKey) {
	if _, ok := r.streams[k]; ok {
		delete(r.streams, k)
		r.order = slices.DeleteFunc(r.order, func(x streamKey) bool { return x == k })
	}
}

// makeRoom lets the oldest streams go when there are too many or they hold too much. What was not read of
// them is counted; it costs a name and no connection: that one is in the kernel's own record.
func (r *Reader) makeRoom() {
	held := 0
	for _, s := range r.streams {
		held += s.size()
	}
	for len(r.order) > 1 && (len(r.order) > maxStreams || held > maxHeld) {
		oldest := r.streams[r.order[0]]
		held -= oldest.size()
		if !oldest.done && !r.order[0].dns() {
			r.dropped++
		}
		delete(r.streams, r.order[0])
		r.order = r.order[1:]
	}
}

func (s *stream) size() int {
	n := len(s.b)
	for _, p := range s.later {
		n += len(p.b)
	}
	return n
}

func (s *stream) end() { s.b, s.later, s.keys, s.done = nil, nil, nil, true }

// add puts a segment where it belongs. Repeated bytes are the first that came: the kernel of the other end
// takes those too.
func (s *stream) add(seq uint32, b []byte) {
	if !s.started {
		s.started, s.next = true, seq
	}
	if int32(seq-s.next) > 0 {
		if len(s.later) < maxLater {
			s.later = append(s.later, piece{seq, slices.Clone(b)})
		}
		return
	}
	s.take(seq, b)
	for moved := true; moved; {
		moved = false
		for i, p := range s.later {
			if int32(p.seq-s.next) <= 0 {
				s.later = slices.Delete(s.later, i, i+1)
				s.take(p.seq, p.b)
				moved = true
				break
			}
		}
	}
}

func (s *stream) take(seq uint32, b []byte) {
	old := s.next - seq
	if old >= uint32(len(b)) {
		return
	}
	b = b[old:]
	s.next += uint32(len(b))
	s.b = append(s.b, b[:min(len(b), maxStream-len(s.b))]...)
}
