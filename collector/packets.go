package collector

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ryehq/rye/bpf"
	"github.com/ryehq/rye/event"
)

// A Packet is a packet of the session as the kernel copied it, from its IP header on.
type Packet struct {
	TimeNS uint64
	Cookie uint64            // of the socket
	Owner  *event.ProcessKey // who made the socket, nil when that is not known
	Out    bool              // sent by the session
	Len    int               // of the packet; Data may be less of it
	Data   []byte            // valid during the call only
}

// Packets reads the ring of copied packets. It has one of its own, so that a flood of packets costs
// packets and never an exec.
type Packets struct {
	reader *ringbuf.Reader
	sink   func(Packet) error
	stop   atomic.Bool
}

// NewPackets returns a reader that hands every packet to sink.
func NewPackets(ring *ebpf.Map, sink func(Packet) error) (*Packets, error) {
	r, err := ringbuf.NewReader(ring)
	if err != nil {
		return nil, fmt.Errorf("open packet ring: %w", err)
	}
	return &Packets{reader: r, sink: sink}, nil
}

// Run reads until Stop, and then what is still in the ring.
func (p *Packets) Run() error {
	var rec ringbuf.Record
	p.reader.SetDeadline(time.Now().Add(pollEvery))
	for {
		err := p.reader.ReadInto(&rec)
		switch {
		case err == nil:
			pk, err := decodePacket(rec.RawSample)
			if err != nil {
				return err
			}
			if err := p.sink(pk); err != nil {
				return err
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.reader.SetDeadline(time.Now().Add(pollEvery))
		case errors.Is(err, ringbuf.ErrFlushed):
			if p.stop.Load() {
				return nil
			}
		case errors.Is(err, ringbuf.ErrClosed):
			return nil
		default:
			return fmt.Errorf("read packet ring: %w", err)
		}
	}
}

// Stop makes Run return once the ring is empty.
func (p *Packets) Stop() error {
	p.stop.Store(true)
	if err := p.reader.Flush(); err != nil {
		return fmt.Errorf("flush packet ring: %w", err)
	}
	return nil
}

// Close releases the ring. Run must have returned.
func (p *Packets) Close() error { return p.reader.Close() }

func decodePacket(raw []byte) (Packet, error) {
	var r bpf.ProbePacketRecord
	rest, err := fixed(raw, &r)
	if err != nil {
		return Packet{}, err
	}
	if uint64(r.Kept) > uint64(len(rest)) {
		return Packet{}, fmt.Errorf("%w: packet of %d bytes in %d", ErrRecord, r.Kept, len(rest))
	}
	p := Packet{TimeNS: r.TimeNs, Cookie: r.Cookie, Out: r.Out != 0, Len: int(r.Len), Data: rest[:r.Kept]}
	if r.Owner.Tgid != 0 {
		k := procKey(r.Owner)
		p.Owner = &k
	}
	return p, nil
}
