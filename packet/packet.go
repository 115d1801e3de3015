// Package packet reads the names in a session's own packets: DNS messages and TLS client hellos become
// events, and everything that was copied can be written as pcapng.
//
// It is for bytes that anybody may have sent: every length is checked, what it holds at once is bounded,
// and what it cannot read it says. It imports event and google/gopacket (IP, TCP, UDP and DNS decoding,
// pcapng); it opens no files and asks no clock.
package packet

import (
	"net/netip"
	"strconv"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ryehq/rye/event"
)

// A Record is one packet from its IP header on.
type Record struct {
	TimeNS uint64
	Cookie uint64            // of the socket, 0 when it has none
	Proc   *event.ProcessKey // who made the socket, nil when that is not known
	Out    bool              // sent by the session
	Len    int               // of the packet; Data may be less of it
	Data   []byte
}

// A Reader follows the streams of one session. The zero value is ready.
type Reader struct {
	streams map[streamKey]*stream
	order   []streamKey // oldest first
	other   map[streamKey]bool
	dropped uint64
}

// Dropped is how many streams were let go, for want of room, before their name was read.
func (r *Reader) Dropped() uint64 { return r.dropped }

// A streamKey is one direction of one socket.
type streamKey struct {
	cookie        uint64
	local, remote netip.AddrPort
	out           bool
}

const (
	maxStreams = 1024     // whose beginning is being put together
	maxStream  = 64 << 10 // bytes of one
	maxHeld    = 8 << 20  // bytes of all
)

// Add reads one packet and returns what it completes.
func (r *Reader) Add(rec Record) []event.Event {
	p := gopacket.NewPacket(rec.Data, network(rec.Data), gopacket.DecodeOptions{NoCopy: true, Lazy: true})
	ip := p.NetworkLayer()
	if ip == nil {
		return nil
	}
	flow := ip.NetworkFlow()
	src, ok1 := netip.AddrFromSlice(flow.Src().Raw())
	dst, ok2 := netip.AddrFromSlice(flow.Dst().Raw())
	if !ok1 || !ok2 {
		return nil
	}
	switch t := p.TransportLayer().(type) {
	case *layers.UDP:
		e := ends(rec, src, dst, uint16(t.SrcPort), uint16(t.DstPort))
		return r.datagram(rec, e, t.Payload, t.Length)
	case *layers.TCP:
		e := ends(rec, src, dst, uint16(t.SrcPort), uint16(t.DstPort))
		return r.segment(rec, e, t)
	}
	return r.neither(rec, p, src, dst)
}

const maxOther = 4096

// neither tells of the first packet to an address by a protocol that is not TCP's or UDP's kind, such as
// ping's: sockets for those pass no connect, and what they send passes none of its hooks.
func (r *Reader) neither(rec Record, p gopacket.Packet, src, dst netip.Addr) []event.Event {
	family, proto := "inet", uint8(0)
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		if ip.FragOffset != 0 {
			return nil
		}
		proto = uint8(ip.Protocol)
	case *layers.IPv6:
		family, proto = "inet6", uint8(ip.NextHeader)
	}
	name := strconv.Itoa(int(proto))
	switch layers.IPProtocol(proto) {
	case layers.IPProtocolTCP, layers.IPProtocolUDP, layers.IPProtocolUDPLite, layers.IPProtocolSCTP, 33: // DCCP
		return nil // cut before their ports; they connect, or send with an address
	case layers.IPProtocolICMPv4, layers.IPProtocolICMPv6:
		name = "icmp"
	}
	if !rec.Out {
		return nil
	}
	k := ends(rec, src, dst, 0, uint16(proto))
	if r.other[k] {
		return nil
	}
	if r.other == nil || len(r.other) >= maxOther {
		r.other = make(map[streamKey]bool) // some are told again
	}
	r.other[k] = true
	return one(rec, &event.NetConnect{Family: family, Proto: name, Local: netip.AddrPortFrom(src, 0).String(), Remote: netip.AddrPortFrom(dst, 0).String(),
		Count: 1, Marks: []string{"from-packet"}})
}

func network(b []byte) gopacket.Decoder {
	if len(b) > 0 && b[0]>>4 == 6 {
		return layers.LayerTypeIPv6
	}
	return layers.LayerTypeIPv4
}

// ends are a packet's addresses as the session sees them.
func ends(rec Record, src, dst netip.Addr, sport, dport uint16) streamKey {
	k := streamKey{cookie: rec.Cookie, out: rec.Out, local: netip.AddrPortFrom(src, sport), remote: netip.AddrPortFrom(dst, dport)}
	if !rec.Out {
		k.local, k.remote = k.remote, k.local
	}
	return k
}

func (k streamKey) dns() bool { return k.local.Port() == 53 || k.remote.Port() == 53 }

func (r *Reader) datagram(rec Record, k streamKey, payload []byte, length uint16) []event.Event {
	if k.dns() {
		cut := ""
		if rec.Len > len(rec.Data) || int(length) > len(payload)+8 {
			cut = "the packet was not copied whole"
		}
		return one(rec, readDNS(payload, k, "udp", cut))
	}
	if v, ok := quicInitial(payload); ok && rec.Out {
		return r.quic(rec, k, v, payload)
	}
	return nil
}

func one(rec Record, body event.Body) []event.Event {
	return []event.Event{event.New(rec.TimeNS, rec.Proc, body)}
}
