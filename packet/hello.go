package packet

import (
	"github.com/ryehq/rye/event"
)

// Numbers of RFC 8446, RFC 6066, RFC 7301 and RFC 9849.
const (
	recordHandshake = 22
	clientHello     = 1
	extServerName   = 0
	extALPN         = 16
	extECH          = 0xfe0d
	maxALPN         = 16
)

// A cut reads big-endian fields off the front of bytes. Once something was missing it stays short.
type cut struct {
	b     []byte
	short bool
}

func (c *cut) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.short, c.b = true, nil
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cut) uint(bytes int) int {
	n := 0
	for _, x := range c.take(bytes) {
		n = n<<8 | int(x)
	}
	return n
}

// vector reads a field that is preceded by its length.
func (c *cut) vector(bytes int) cut { return cut{b: c.take(c.uint(bytes))} }

// readHello reads the client hello that a stream begins with: of one record or several, the split may be at
// any byte (RFC 8446, 5.1). need says that there is not enough of it yet.
func readHello(b []byte) (h *event.NetTLSHello, need bool) {
	var msg []byte
	for rest := b; ; {
		if len(rest) < 5 {
			return nil, len(rest) == 0 || rest[0] == recordHandshake
		}
		if rest[0] != recordHandshake || rest[1] != 3 {
			return nil, false
		}
		n := int(rest[3])<<8 | int(rest[4])
		if n == 0 || n > 1<<14 {
			return nil, false
		}
		rest = rest[5:]
		msg = append(msg, rest[:min(n, len(rest))]...)
		if len(msg) > 0 && msg[0] != clientHello {
			return nil, false
		}
		if len(msg) >= 4 {
			whole := 4 + (int(msg[1])<<16 | int(msg[2])<<8 | int(msg[3]))
			if whole > maxStream {
				return nil, false
			}
			if len(msg) >= whole {
				return helloFields(msg[4:whole]), false
			}
		}
		if n >= len(rest) {
			return nil, true
		}
		rest = rest[n:]
	}
}

func helloFields(b []byte) *event.NetTLSHello {
	h := new(event.NetTLSHello)
	c := cut{b: b}
	c.take(2 + 32) // version, random
	c.vector(1)    // session id
	c.vector(2)    // cipher suites
	c.vector(1)    // compression
	if c.short {
		h.Unread = "not a hello"
		return h
	}
	if len(c.b) == 0 { // no extensions: SSL 3 and TLS 1.0
		h.Unread = "it has no name"
		return h
	}
	ext := c.vector(2)
	for len(ext.b) > 0 {
		kind := ext.uint(2)
		body := ext.vector(2)
		if ext.short {
			h.Unread = "not a hello"
			return h
		}
		switch kind {
		case extServerName:
			if name, ok := serverName(body); ok {
				h.Name = name
			} else {
				h.Unread = "its name is malformed"
			}
		case extALPN:
			list := body.vector(2)
			for len(list.b) > 0 && len(h.ALPN) < maxALPN {
				p := list.vector(1)
				if list.short {
					break
				}
				h.ALPN = append(h.ALPN, string(p.b))
			}
		case extECH:
			h.ECH = true
		}
	}
	if h.Name == "" && h.Unread == "" {
		h.Unread = "it has no name"
	}
	return h
}

// serverName: RFC 6066, 3. One host name; other kinds of name do not exist.
func serverName(c cut) (string, bool) {
	list := c.vector(2)
	if list.uint(1) != 0 {
		return "", false
	}
	name := list.vector(2)
	if list.short || len(name.b) == 0 || len(name.b) > maxName {
		return "", false
	}
	return string(name.b), true
}
