package packet

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"

	"github.com/ryehq/rye/event"
)

// A quicVersion is what differs between versions of QUIC in a client's first packet.
type quicVersion struct {
	initial byte // packet type
	salt    string
	label   string
}

// quicVersions: RFC 9001, 5.2, and RFC 9369, 3.
var quicVersions = map[uint32]quicVersion{
	1:          {0, "\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a", "quic "},
	0x6b3343cf: {1, "\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9", "quicv2 "},
}

// quicInitial reports whether a datagram begins with a client's first packet, which fills at least 1200 bytes
// (RFC 9000, 14.1).
func quicInitial(b []byte) (v quicVersion, ok bool) {
	if len(b) < 1200 || b[0]&0xc0 != 0xc0 {
		return v, false
	}
	v, ok = quicVersions[uint32(b[1])<<24|uint32(b[2])<<16|uint32(b[3])<<8|uint32(b[4])]
	return v, ok && b[0]>>4&3 == v.initial
}

// quicKeys open a client's first packets. They follow from what stands in the clear: the protection is against
// meddling, not against reading.
type quicKeys struct {
	header cipher.Block
	body   cipher.AEAD
	iv     []byte
}

func newQUICKeys(v quicVersion, id []byte) (*quicKeys, error) {
	initial, err := hkdf.Extract(sha256.New, id, []byte(v.salt))
	if err != nil {
		return nil, err
	}
	var keys quicKeys
	client, err := expandLabel(initial, "client in", 32)
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		label string
		size  int
		use   func([]byte) error
	}{
		{"key", 16, func(k []byte) error {
			block, err := aes.NewCipher(k)
			if err == nil {
				keys.body, err = cipher.NewGCM(block)
			}
			return err
		}},
		{"iv", 12, func(k []byte) error { keys.iv = k; return nil }},
		{"hp", 16, func(k []byte) (err error) { keys.header, err = aes.NewCipher(k); return err }},
	} {
		k, err := expandLabel(client, v.label+x.label, x.size)
		if err == nil {
			err = x.use(k)
		}
		if err != nil {
			return nil, err
		}
	}
	return &keys, nil
}

// expandLabel is HKDF-Expand-Label of RFC 8446, 7.1, without context.
func expandLabel(secret []byte, label string, size int) ([]byte, error) {
	label = "tls13 " + label
	info := append([]byte{byte(size >> 8), byte(size), byte(len(label))}, label...)
	return hkdf.Expand(sha256.New, secret, string(append(info, 0)), size)
}

var errQUIC = errors.New("not a packet of QUIC that can be opened")

// open returns a first packet's frames (RFC 9001, 5.4). keys is filled in from the first one.
func openQUIC(v quicVersion, keys **quicKeys, datagram []byte) ([]byte, error) {
	c := cut{b: datagram[5:]}
	id := c.vector(1)
	c.vector(1) // source id
	c.take(c.varint())
	size := c.varint()
	at := len(datagram) - len(c.b)
	if c.short || len(id.b) > 20 || size > len(c.b) || size < 20 {
		return nil, errQUIC
	}
	if *keys == nil {
		k, err := newQUICKeys(v, id.b)
		if err != nil {
			return nil, err
		}
		*keys = k
	}
	p := bytes.Clone(datagram[:at+size])
	var mask [16]byte
	(*keys).header.Encrypt(mask[:], p[at+4:at+20])
	p[0] ^= mask[0] & 0x0f
	n := int(p[0]&3) + 1
	nonce := bytes.Clone((*keys).iv)
	for i := range n {
		p[at+i] ^= mask[1+i]
		nonce[len(nonce)-n+i] ^= p[at+i]
	}
	frames, err := (*keys).body.Open(nil, nonce, p[at+n:], p[:at+n])
	if err != nil {
		return nil, errQUIC
	}
	return frames, nil
}

// varint is RFC 9000, 16.
func (c *cut) varint() int {
	if len(c.b) == 0 {
		c.short = true
		return 0
	}
	n := 1 << (c.b[0] >> 6)
	b := bytes.Clone(c.take(n))
	if c.short {
		return 0
	}
	b[0] &= 0x3f
	v := uint64(0)
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	if v > 1<<30 { // nothing here is that long
		c.short, c.b = true, nil
		return 0
	}
	return int(v)
}

// quic adds one of a client's first packets to its hello, which may be spread over several.
func (r *Reader) quic(rec Record, k streamKey, v quicVersion, datagram []byte) []event.Event {
	s := r.streams[k]
	if s == nil {
		s = r.begin(k)
		s.proto = "quic"
	}
	if s.done {
		return nil
	}
	frames, err := openQUIC(v, &s.keys, datagram)
	if err != nil {
		s.end()
		return one(rec, s.hello(&event.NetTLSHello{Unread: err.Error()}, k))
	}
	s.frames(frames)
	r.makeRoom()
	if len(s.b) < 4 {
		return nil
	}
	whole := 4 + (int(s.b[1])<<16 | int(s.b[2])<<8 | int(s.b[3]))
	if s.b[0] != clientHello || whole > maxStream {
		s.end()
		return one(rec, s.hello(&event.NetTLSHello{Unread: "not a hello"}, k))
	}
	if len(s.b) < whole {
		return nil
	}
	h := helloFields(s.b[4:whole])
	s.end()
	return one(rec, s.hello(h, k))
}

// frames takes the pieces of the handshake out of a packet (RFC 9000, 19). A client's first packets hold little else.
func (s *stream) frames(b []byte) {
	s.started = true // offsets begin at 0
	c := cut{b: b}
	for len(c.b) > 0 && !c.short {
		switch c.varint() {
		case 0, 1: // padding, ping
		case 2, 3:
			kind := b[len(b)-len(c.b)-1]
			c.varint()
			c.varint()
			ranges := c.varint()
			c.varint()
			for ; ranges > 0 && !c.short; ranges-- {
				c.varint()
				c.varint()
			}
			if kind == 3 {
				c.varint()
				c.varint()
				c.varint()
			}
		case 6:
			at := c.varint()
			if piece := c.take(c.varint()); !c.short && at < maxStream {
				s.add(uint32(at), piece)
			}
		default:
			return
		}
	}
}
