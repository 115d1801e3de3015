package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ryehq/rye/policy"
)

const handshakeTimeout = 30 * time.Second

// connect answers CONNECT (RFC 9110, 9.3.6): it opens the connection when the host is one of the
// configured domains, and else tunnels it if the policy allows.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || host == "" || port == "" {
		http.Error(w, "rye: CONNECT needs host:port", http.StatusBadRequest)
		return
	}
	x := p.begin(r, r.Host)
	x.ev.Path = ""
	if p.opens(host) {
		p.open(w, r, host, x)
		return
	}
	defer x.finish()
	x.ev.Tunnel = true
	x.decided(policy.Decide(p.c.Bundle(), policy.Request{Head: policy.Head{Method: r.Method, Host: r.Host, Header: r.Header}}))
	x.ask(r)
	if x.ev.Decision != string(policy.Allow) {
		x.refuse(w, http.StatusForbidden)
		return
	}
	up, err := p.dialTunnel(r.Context(), r.Host)
	if err != nil {
		x.fail(w, err)
		return
	}
	if !p.track(up) {
		return
	}
	defer p.untrack(up)
	client, err := hijack(w)
	if err != nil {
		x.ev.Error = "client-gone"
		return
	}
	if !p.track(client) {
		return
	}
	defer p.untrack(client)
	x.ev.Status = http.StatusOK
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		x.ev.Error = "client-gone"
		return
	}
	var sent, received int64
	var both sync.WaitGroup
	both.Go(func() {
		name, first, err := serverName(client)
		if err == nil {
			err = x.askedName(host, name)
		}
		if err == nil {
			_, err = up.Write(first)
		}
		if err != nil && err != io.EOF {
			up.Close()
			client.Close()
			return
		}
		sent = int64(len(first)) + pass(up, client)
	})
	both.Go(func() { received = pass(client, up) })
	both.Wait()
	x.ev.RequestBytes, x.ev.ResponseBytes = uint64(sent), uint64(received)
}

// pass copies to the end of one direction and hands the end on.
func pass(to, from net.Conn) int64 {
	n, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		to.Close()
		from.Close()
	}
	return n
}

// open ends the client's TLS here, with a certificate for the host that CONNECT named.
func (p *Proxy) open(w http.ResponseWriter, r *http.Request, host string, x *record) {
	conn, err := hijack(w)
	if err != nil {
		return
	}
	if !p.track(conn) {
		return
	}
	conn.target = r.Host
	conn.closed = func() { p.mu.Lock(); delete(p.conns, conn); p.mu.Unlock() }
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		conn.Close()
		return
	}
	leaf, err := p.c.CA.leaf(host, time.Now())
	if err != nil {
		conn.Close()
		x.ev.Error = "leaf"
		x.finish()
		return
	}
	t := tls.Server(conn, &tls.Config{
		Certificates: []tls.Certificate{*leaf},
		NextProtos:   []string{"h2", "http/1.1"},
		MinVersion:   tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			x.ev.SNI = clean(h.ServerName)
			if h.ServerName != "" && !sameName(h.ServerName, host) {
				return nil, errMismatch
			}
			return nil, nil // the one above
		},
	})
	if err := t.HandshakeContext(ctx); err != nil {
		// Most often a client that was not told to trust the CA. Nothing was decided; that it came is a fact.
		conn.Close()
		x.ev.Error = "client-tls"
		if errors.Is(err, errMismatch) {
			x.mismatch("on a connection to another host the client asks for " + x.ev.SNI)
		}
		x.finish()
		return
	}
	if !p.opened.put(t) {
		t.Close()
	}
}

// A clientConn is a client's connection taken over from the outer server.
type clientConn struct {
	net.Conn
	r      *bufio.Reader // may hold bytes that came right behind the CONNECT
	target string
	closed func()
	once   sync.Once
}

func (c *clientConn) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c *clientConn) Close() error {
	if c.closed != nil {
		c.once.Do(c.closed)
	}
	return c.Conn.Close()
}

func (c *clientConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func hijack(w http.ResponseWriter) (*clientConn, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over connection: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("take over connection: %w", err)
	}
	return &clientConn{Conn: conn, r: rw.Reader}, nil
}

// openedConns is the listener of the inner server.
type openedConns struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newOpenedConns() *openedConns {
	return &openedConns{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (o *openedConns) put(c net.Conn) bool {
	select {
	case o.conns <- c:
		return true
	case <-o.done:
		return false
	}
}

func (o *openedConns) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	case <-o.done:
		return nil, net.ErrClosed
	}
}

func (o *openedConns) Close() error   { o.once.Do(func() { close(o.done) }); return nil }
func (o *openedConns) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
