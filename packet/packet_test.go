package packet

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/ryehq/rye/event"
)

// hello is what Go's own TLS client sends first.
func hello(t testing.TB, name string, protos ...string) []byte {
	t.Helper()
	us, them := net.Pipe()
	defer us.Close()
	go tls.Client(them, &tls.Config{ServerName: name, NextProtos: protos, InsecureSkipVerify: true}).Handshake()
	us.SetReadDeadline(time.Now().Add(5 * time.Second))
	b := make([]byte, 1<<16)
	n, err := us.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

type ends2 struct{ src, dst string }

func serialize(t testing.TB, parts ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, parts...); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(buf.Bytes())
}

func ip(t testing.TB, e ends2, proto layers.IPProtocol) (gopacket.SerializableLayer, gopacket.NetworkLayer, netip.AddrPort, netip.AddrPort) {
	t.Helper()
	src, dst := netip.MustParseAddrPort(e.src), netip.MustParseAddrPort(e.dst)
	if src.Addr().Is6() {
		l := &layers.IPv6{Version: 6, NextHeader: proto, HopLimit: 64, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		return l, l, src, dst
	}
	l := &layers.IPv4{Version: 4, Protocol: proto, TTL: 64, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
	return l, l, src, dst
}

func tcp(t testing.TB, e ends2, seq uint32, payload []byte) []byte {
	l, n, src, dst := ip(t, e, layers.IPProtocolTCP)
	h := &layers.TCP{SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()), Seq: seq, ACK: true, PSH: true}
	h.SetNetworkLayerForChecksum(n)
	return serialize(t, l, h, gopacket.Payload(payload))
}

func udp(t testing.TB, e ends2, payload []byte) []byte {
	l, n, src, dst := ip(t, e, layers.IPProtocolUDP)
	h := &layers.UDP{SrcPort: layers.UDPPort(src.Port()), DstPort: layers.UDPPort(dst.Port())}
	h.SetNetworkLayerForChecksum(n)
	return serialize(t, l, h, gopacket.Payload(payload))
}

func sent(b []byte) Record { return Record{TimeNS: 5, Cookie: 9, Out: true, Len: len(b), Data: b} }

var web = ends2{"10.0.0.2:40000", "93.184.216.34:443"}

// The name is found wherever the hello is split, in whatever order the pieces come, once, twice or of two records.
func TestHelloSplit(t *testing.T) {
	h := hello(t, "late.test", "h2", "http/1.1")
	want := event.NetTLSHello{Proto: "tcp", Local: web.src, Remote: web.dst, Sent: true, Name: "late.test", ALPN: []string{"h2", "http/1.1"}}
	check := func(what string, list []event.Event) {
		t.Helper()
		if len(list) != 1 {
			t.Fatalf("%s: %d events", what, len(list))
		}
		got := *list[0].Body.(*event.NetTLSHello)
		if got.Name != want.Name || !slices.Equal(got.ALPN, want.ALPN) || got.Local != want.Local || got.Remote != want.Remote || !got.Sent || got.Unread != "" || got.ECH {
			t.Fatalf("%s: %+v", what, got)
		}
	}
	for i := 1; i < len(h); i++ {
		for _, order := range [][]int{{0, 1}, {0, 0, 1}, {0, 1, 1}} {
			var r Reader
			parts, seqs := [][]byte{h[:i], h[i:]}, []uint32{0xffffff00, 0xffffff00 + uint32(i)}
			var got []event.Event
			for _, n := range order {
				got = append(got, r.Add(sent(tcp(t, web, seqs[n], parts[n])))...)
			}
			check(fmt.Sprintf("split at %d, order %v", i, order), got)
		}
	}
	// Three pieces, the last two swapped.
	var r Reader
	a, b := len(h)/3, 2*len(h)/3
	list := r.Add(sent(tcp(t, web, 1, h[:a])))
	list = append(list, r.Add(sent(tcp(t, web, 1+uint32(b), h[b:])))...)
	list = append(list, r.Add(sent(tcp(t, web, 1+uint32(a), h[a:b])))...)
	check("swapped", list)
	// Two records.
	for i := 1; i < len(h)-5; i += 7 {
		two := slices.Concat([]byte{22, 3, 1, byte(i >> 8), byte(i)}, h[5:5+i], []byte{22, 3, 1, byte((len(h) - 5 - i) >> 8), byte(len(h) - 5 - i)}, h[5+i:])
		var r Reader
		check("two records", r.Add(sent(tcp(t, web, 1, two))))
	}
}

func TestHelloIsNot(t *testing.T) {
	h := hello(t, "x.test")
	cutName := bytes.Replace(h, []byte("\x00\x06x.test"), []byte("\xff\xffx.test"), 1)
	for _, c := range []struct {
		name, unread string
		b            []byte
		whole        bool
	}{
		{"plain text", "", []byte("GET / HTTP/1.1\r\n\r\n"), true},
		{"a server's hello", "", []byte{22, 3, 3, 0, 4, 2, 0, 0, 0}, true},
		{"no name", "it has no name", hello(t, ""), true},
		{"a name longer than its place", "its name is malformed", cutName, true},
		{"cut", "it was not seen to its end", h[:len(h)-1], false},
		{"too long", "", []byte{22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff}, true},
	} {
		var r Reader
		got := r.Add(sent(tcp(t, web, 1, c.b)))
		if c.whole == (len(got) == 0) && c.unread != "" {
			t.Errorf("%s: %d events", c.name, len(got))
		}
		got = append(got, r.End(7)...)
		switch {
		case c.unread == "" && len(got) != 0, c.unread != "" && len(got) != 1:
			t.Errorf("%s: %d events", c.name, len(got))
		case c.unread != "" && (got[0].Body.(*event.NetTLSHello).Unread != c.unread || got[0].Body.(*event.NetTLSHello).Name != ""):
			t.Errorf("%s: %+v", c.name, got[0].Body)
		}
	}
}

func TestBounded(t *testing.T) {
	var r Reader
	big := append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xf0}, make([]byte, 16000)...)
	for i := range 2000 {
		e := ends2{fmt.Sprintf("10.0.0.2:%d", 1024+i), web.dst}
		r.Add(Record{Cookie: uint64(i), Out: true, Data: tcp(t, e, 1, big), Len: 1})
	}
	held := 0
	for _, s := range r.streams {
		held += s.size()
	}
	if len(r.streams) > maxStreams || held > maxHeld || len(r.order) != len(r.streams) || r.Dropped() != uint64(2000-len(r.streams)) {
		t.Errorf("%d streams of %d bytes are held", len(r.streams), held)
	}
}

// The keys of RFC 9001, A.1.
func TestQUICKeys(t *testing.T) {
	k, err := newQUICKeys(quicVersions[1], []byte{0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08})
	if err != nil || fmt.Sprintf("%x", k.iv) != "fa044b2f42a3fd3b46fb255c" {
		t.Fatalf("%x, %v", k.iv, err)
	}
	// A.2: the header protection of the sample d1b1c98dd7689fb8ec11d242b123dc9b.
	var mask [16]byte
	k.header.Encrypt(mask[:], []byte{0xd1, 0xb1, 0xc9, 0x8d, 0xd7, 0x68, 0x9f, 0xb8, 0xec, 0x11, 0xd2, 0x42, 0xb1, 0x23, 0xdc, 0x9b})
	if fmt.Sprintf("%x", mask[:5]) != "437b9aec36" {
		t.Errorf("mask %x", mask[:5])
	}
}

// protect makes a client's first packet of frames.
func protect(t testing.TB, version uint32, number byte, frames []byte) []byte {
	t.Helper()
	v, id := quicVersions[version], []byte("rye-test")
	k, err := newQUICKeys(v, id)
	if err != nil {
		t.Fatal(err)
	}
	frames = append(frames, make([]byte, max(0, 1200-len(frames)-36))...)
	size := 2 + len(frames) + 16
	p := slices.Concat([]byte{0xc1 | v.initial<<4, byte(version >> 24), byte(version >> 16), byte(version >> 8), byte(version), byte(len(id))}, id,
		[]byte{0, 0, 0x40 | byte(size>>8), byte(size)})
	at := len(p)
	p = append(p, 0, number)
	nonce := slices.Clone(k.iv)
	nonce[11] ^= number
	p = append(p, k.body.Seal(nil, nonce, frames, p)...)
	var mask [16]byte
	k.header.Encrypt(mask[:], p[at+4:at+20])
	p[0] ^= mask[0] & 0x0f
	p[at] ^= mask[1]
	p[at+1] ^= mask[2]
	return p
}

func crypto(at int, b []byte) []byte {
	return slices.Concat([]byte{6, 0x40 | byte(at>>8), byte(at), 0x40 | byte(len(b)>>8), byte(len(b))}, b)
}

func TestQUIC(t *testing.T) {
	e := ends2{"[fd00::2]:50000", "[2606:2800::1]:443"}
	msg := hello(t, "quic.test", "h3")[5:]
	half := len(msg) / 2
	ack := []byte{2, 5, 0, 1, 0, 0, 0}
	for _, version := range []uint32{1, 0x6b3343cf} {
		for what, frames := range map[string][][]byte{
			"one packet":          {crypto(0, msg[:half]), crypto(half, msg[half:])},
			"swapped in a packet": {append(crypto(half, msg[half:]), crypto(0, msg[:half])...)},
			"two packets":         {append([]byte{1}, crypto(0, msg[:half])...), append(ack, crypto(half, msg[half:])...)},
			"swapped":             {crypto(half, msg[half:]), crypto(0, msg[:half])},
		} {
			var r Reader
			var got []event.Event
			for i, f := range frames {
				got = append(got, r.Add(sent(udp(t, e, protect(t, version, byte(i), f))))...)
			}
			got = append(got, r.End(1)...)
			if len(got) != 1 {
				t.Fatalf("%s: %d events", what, len(got))
			}
			h := got[0].Body.(*event.NetTLSHello)
			if h.Proto != "quic" || h.Name != "quic.test" || !slices.Equal(h.ALPN, []string{"h3"}) || h.Remote != e.dst || !h.Sent || h.Unread != "" {
				t.Errorf("%s: %+v", what, h)
			}
		}
	}
	first := protect(t, 1, 0, crypto(0, msg[:half]))
	broken := slices.Clone(first)
	broken[len(broken)-1] ^= 1
	for what, b := range map[string][]byte{"half a hello": first, "a packet that does not open": broken} {
		var r Reader
		got := append(r.Add(sent(udp(t, e, b))), r.End(1)...)
		if len(got) != 1 || got[0].Body.(*event.NetTLSHello).Unread == "" || got[0].Body.(*event.NetTLSHello).Proto != "quic" {
			t.Errorf("%s: %v", what, got)
		}
	}
	for _, b := range [][]byte{first[:600], append([]byte{0xf3}, first[1:]...), append([]byte{0x43}, first[1:]...)} {
		var r Reader
		if got := append(r.Add(sent(udp(t, e, b))), r.End(1)...); len(got) != 0 {
			t.Errorf("%x… is taken for a client's first packet", b[:6])
		}
	}
}

// Whatever is inside a packet that opens, nothing panics.
func FuzzQUIC(f *testing.F) {
	f.Add(crypto(0, hello(f, "quic.test")[5:]))
	f.Add([]byte{3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 6, 0, 4, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, frames []byte) {
		if len(frames) > 1100 {
			return
		}
		var r Reader
		list := r.Add(sent(udp(t, ends2{"10.0.0.2:1", "10.0.0.1:443"}, protect(t, 1, 0, frames))))
		for _, e := range append(list, r.End(1)...) {
			if got, err := event.ParseJSON(e.AppendJSON(nil)); err != nil || got.Type != e.Type {
				t.Fatal(err)
			}
		}
	})
}

// Ping's sockets pass no hook of a connect: the packet is what shows them.
func TestOtherProtocols(t *testing.T) {
	var r Reader
	for _, c := range []struct {
		e     ends2
		proto layers.IPProtocol
		want  string
	}{
		{ends2{"10.0.0.2:0", "198.51.100.9:0"}, layers.IPProtocolICMPv4, "icmp 198.51.100.9:0"},
		{ends2{"[fd00::2]:0", "[fd01::9]:0"}, layers.IPProtocolICMPv6, "icmp [fd01::9]:0"},
		{ends2{"10.0.0.2:0", "198.51.100.9:0"}, 47, "47 198.51.100.9:0"},
		{ends2{"10.0.0.2:0", "198.51.100.9:0"}, layers.IPProtocolSCTP, ""},
		{ends2{"10.0.0.2:0", "198.51.100.9:0"}, layers.IPProtocolTCP, ""}, // cut
	} {
		l, _, _, _ := ip(t, c.e, c.proto)
		b := serialize(t, l, gopacket.Payload{8, 0, 0xf7, 0xff})
		var got string
		for range 3 {
			for _, e := range r.Add(sent(b)) {
				n := e.Body.(*event.NetConnect)
				got += n.Proto + " " + n.Remote
			}
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.proto, got, c.want)
		}
		if list := r.Add(Record{Cookie: 99, Data: b, Len: len(b)}); len(list) != 0 {
			t.Errorf("%v: an answer is told", c.proto)
		}
	}
}

func message(t testing.TB, answer bool) []byte {
	d := &layers.DNS{ID: 4660, RD: true, QR: answer, Questions: []layers.DNSQuestion{{Name: []byte("Example.com"), Type: layers.DNSTypeAAAA, Class: layers.DNSClassIN}}}
	if answer {
		d.Answers = []layers.DNSResourceRecord{
			{Name: []byte("example.com"), Type: layers.DNSTypeCNAME, Class: layers.DNSClassIN, CNAME: []byte("cdn.test")},
			{Name: []byte("cdn.test"), Type: layers.DNSTypeA, Class: layers.DNSClassIN, IP: net.IP{93, 184, 216, 34}},
			{Name: []byte("cdn.test"), Type: layers.DNSTypeAAAA, Class: layers.DNSClassIN, IP: net.ParseIP("2606:2800::1")},
			{Name: []byte("cdn.test"), Type: layers.DNSTypeTXT, Class: layers.DNSClassIN, TXTs: [][]byte{[]byte("secret")}},
		}
	}
	return serialize(t, d)
}

func TestDNS(t *testing.T) {
	server := ends2{"10.0.0.2:5353", "10.0.0.1:53"}
	var r Reader
	q := r.Add(sent(udp(t, server, message(t, false))))
	if len(q) != 1 {
		t.Fatal(q)
	}
	if d := q[0].Body.(*event.NetDNS); d.Answer || !d.Sent || d.ID != 4660 || d.Remote != server.dst || len(d.Questions) != 1 || d.Questions[0] != (event.DNSQuestion{Name: "Example.com", Kind: "AAAA"}) || d.Cut != "" {
		t.Errorf("%+v", d)
	}
	back := udp(t, ends2{server.dst, server.src}, message(t, true))
	a := r.Add(Record{Data: back, Len: len(back)})
	if len(a) != 1 {
		t.Fatal(a)
	}
	want := []event.DNSAnswer{{Name: "example.com", Kind: "CNAME", Value: "cdn.test"}, {Name: "cdn.test", Kind: "A", Value: "93.184.216.34"},
		{Name: "cdn.test", Kind: "AAAA", Value: "2606:2800::1"}, {Name: "cdn.test", Kind: "TXT"}}
	if d := a[0].Body.(*event.NetDNS); !d.Answer || d.Sent || d.Local != server.src || d.Remote != server.dst || !slices.Equal(d.Answers, want) {
		t.Errorf("%+v", d)
	}
	// What is no DNS message, or not all of one, is told without its content.
	for _, b := range [][]byte{[]byte("exfiltrated by port alone"), message(t, true)[:20], bytes.Repeat([]byte{0xc0, 0x0c}, 100)} {
		got := r.Add(sent(udp(t, server, b)))
		if len(got) != 1 || got[0].Body.(*event.NetDNS).Cut == "" || len(got[0].Body.(*event.NetDNS).Questions) != 0 {
			t.Errorf("%q: %+v", b, got[0].Body)
		}
	}
	cut := sent(udp(t, server, message(t, false)))
	cut.Len += 100
	if got := r.Add(cut); len(got) != 1 || got[0].Body.(*event.NetDNS).Cut == "" {
		t.Errorf("%+v", got)
	}
	// Over TCP: two messages, split anywhere.
	m := message(t, true)
	stream := slices.Concat([]byte{byte(len(m) >> 8), byte(len(m))}, m, []byte{byte(len(m) >> 8), byte(len(m))}, m)
	for i := 1; i < len(stream); i++ {
		var r Reader
		got := append(r.Add(sent(tcp(t, server, 1, stream[:i]))), r.Add(sent(tcp(t, server, 1+uint32(i), stream[i:])))...)
		if len(got) != 2 || got[1].Body.(*event.NetDNS).Proto != "tcp" || len(got[1].Body.(*event.NetDNS).Answers) != 4 {
			t.Fatalf("split at %d: %v", i, got)
		}
	}
}

func TestPcapng(t *testing.T) {
	var b bytes.Buffer
	boot := time.Unix(1_800_000_000, 0)
	w, err := NewWriter(&b, boot, "s1", 2000)
	if err != nil {
		t.Fatal(err)
	}
	out, in := sent(tcp(t, web, 1, []byte("question"))), sent(tcp(t, ends2{web.dst, web.src}, 1, []byte("answer")))
	out.Len, in.Out, in.TimeNS = 5000, false, 1_000_000_007
	for _, r := range []Record{out, in, sent(make([]byte, 3000))} {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if w.Left() != 1 {
		t.Errorf("%d packets found no room", w.Left())
	}
	if err := w.Close(10, 2); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&b, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Record{out, in} {
		data, ci, err := r.ReadPacketData()
		if err != nil || !bytes.Equal(data, want.Data) || ci.Length != want.Len || !ci.Timestamp.Equal(boot.Add(time.Duration(want.TimeNS))) {
			t.Errorf("packet %d: %+v, %v", i, ci, err)
		}
	}
	if _, _, err := r.ReadPacketData(); err == nil {
		t.Error("a third packet")
	}
}

// Whatever bytes come, nothing panics, what is held stays bounded, and every event can be written down.
func FuzzReader(f *testing.F) {
	f.Add(tcp(f, web, 1, hello(f, "x.test", "h2")), true)
	f.Add(udp(f, ends2{"10.0.0.2:5353", "10.0.0.1:53"}, message(f, true)), false)
	f.Add(tcp(f, ends2{"[fd00::2]:1", "[fd00::1]:53"}, 1, append([]byte{0, 5}, message(f, true)...)), false)
	f.Add(udp(f, ends2{"10.0.0.2:1", "10.0.0.1:443"}, append([]byte{0xc3, 0, 0, 0, 1, 8}, make([]byte, 1300)...)), true)
	f.Fuzz(func(t *testing.T, b []byte, out bool) {
		var r Reader
		var list []event.Event
		for range 2 {
			list = append(list, r.Add(Record{Cookie: 1, Out: out, Len: len(b), Data: b})...)
		}
		for _, e := range append(list, r.End(1)...) {
			line := e.AppendJSON(nil)
			if got, err := event.ParseJSON(line); err != nil || got.Type != e.Type {
				t.Fatalf("%v: %s", err, line)
			}
		}
	})
}

// The same stream in two pieces says the same as in one.
func FuzzHello(f *testing.F) {
	f.Add(hello(f, "x.test", "h2"), 10)
	f.Add(hello(f, strings.Repeat("a.", 100)+"test"), 300)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		if len(b) < 2 || len(b) > 30000 || b[0] != recordHandshake {
			return
		}
		at = 1 + (at&0x7fffffff)%(len(b)-1)
		show := func(parts ...[]byte) string {
			var s stream
			for i, p := range parts {
				s.add(uint32(at*i), p)
			}
			h, need := readHello(s.b)
			if h == nil {
				return fmt.Sprint("none ", need)
			}
			return fmt.Sprintf("%+v", *h)
		}
		if one, two := show(b), show(b[:at], b[at:]); one != two {
			t.Fatalf("whole %s, split at %d %s", one, at, two)
		}
	})
}
