package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/ryehq/rye/policy"
)

// maxHello bounds what is read of a tunnel before its first message is whole.
const maxHello = 64 << 10

var (
	errMismatch = errors.New("the name in the TLS handshake is another")
	errHello    = errors.New("hello read")
	errLong     = errors.New("hello too long")
)

// A helloConn lets a TLS server read the client's first message and keeps what it read. What the server would answer
// goes nowhere.
type helloConn struct {
	net.Conn
	seen []byte
	next int // of seen
}

func (c *helloConn) Read(p []byte) (int, error) {
	if c.next < len(c.seen) {
		n := copy(p, c.seen[c.next:])
		c.next += n
		return n, nil
	}
	if len(c.seen) >= maxHello {
		return 0, errLong
	}
	n, err := c.Conn.Read(p)
	c.seen = append(c.seen, p[:n]...)
	c.next = len(c.seen)
	return n, err
}

func (c *helloConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *helloConn) Close() error                { return nil }

// serverName reads what a client sends first. It is the name that a TLS client asks for (RFC 6066, 3), "" when there
// is none, and the bytes that were read for it, which are still to be sent on. However the client splits its
// message, over reads or over TLS records, the name is the same.
func serverName(conn net.Conn) (name string, seen []byte, err error) {
	c := &helloConn{Conn: conn}
	var first [512]byte
	n, err := conn.Read(first[:]) // may take long: in some protocols the server speaks first
	c.seen = append(c.seen, first[:n]...)
	if n == 0 || c.seen[0] != 22 { // no TLS handshake
		return "", c.seen, err
	}
	conn.SetReadDeadline(time.Now().Add(handshakeTimeout))
	t := tls.Server(c, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, errHello
	}})
	_ = t.HandshakeContext(context.Background()) // always an error: this is no server
	conn.SetReadDeadline(time.Time{})
	return name, c.seen, nil
}

// askedName judges the name that a client asks for inside a tunnel. The host that the policy allowed and the name
// have to be one; where the host is an address, the policy is asked about the name as well.
func (x *record) askedName(host, name string) error {
	if name == "" {
		return nil
	}
	x.ev.SNI = clean(name)
	if sameName(host, name) {
		return nil
	}
	if net.ParseIP(host) == nil {
		x.mismatch("inside a tunnel to another host the client asks for " + x.ev.SNI)
		return errMismatch
	}
	if x.p.opens(name) {
		x.mismatch("inside a tunnel to an address the client asks for " + x.ev.SNI + ", whose connections are opened")
		return errMismatch
	}
	d := policy.Decide(x.p.c.Bundle(), policy.Request{Head: policy.Head{Method: x.ev.Method, Host: name}})
	if d.Action != policy.Allow {
		x.decided(d)
		x.ev.Error = "name-mismatch"
		return errMismatch
	}
	return nil
}

func (x *record) mismatch(reason string) {
	x.refusedByProxy(reason)
	x.ev.Error = "name-mismatch"
}

func sameName(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}
