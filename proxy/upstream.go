package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// dialTunnel connects to a host, through the upstream proxy where one is configured.
func (p *Proxy) dialTunnel(ctx context.Context, target string) (net.Conn, error) {
	via, err := p.c.Upstream(&url.URL{Scheme: "https", Host: target})
	if err != nil {
		return nil, fmt.Errorf("choose upstream proxy: %w", err)
	}
	if via == nil {
		return p.c.Dialer.DialContext(ctx, "tcp", target)
	}
	port, ok := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[via.Scheme]
	if !ok {
		return nil, fmt.Errorf("upstream proxy of scheme %q is not supported", via.Scheme)
	}
	if via.Port() != "" {
		port = via.Port()
	}
	conn, err := p.c.Dialer.DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), port))
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	up, err := p.through(ctx, conn, via, target)
	if err != nil {
		conn.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	return up, nil
}

// through asks the proxy at the other end of conn for a connection to target.
func (p *Proxy) through(ctx context.Context, conn net.Conn, via *url.URL, target string) (net.Conn, error) {
	switch via.Scheme {
	case "socks5", "socks5h": // names are for the proxy to resolve, in both
		return conn, socks5(conn, via.User, target)
	case "https":
		t := tls.Client(conn, &tls.Config{ServerName: via.Hostname(), RootCAs: p.c.RootCAs, MinVersion: tls.VersionTLS12})
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("ask upstream proxy: %w", err)
		}
		conn = t
	}
	return connectThrough(conn, via.User, target)
}

func connectThrough(conn net.Conn, user *url.Userinfo, target string) (net.Conn, error) {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if user != nil {
		password, _ := user.Password()
		auth := &http.Request{Header: http.Header{}}
		auth.SetBasicAuth(user.Username(), password)
		req.Header.Set("Proxy-Authorization", auth.Header.Get("Authorization"))
	}
	r := bufio.NewReader(conn)
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("ask upstream proxy: %w", err)
	}
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, fmt.Errorf("ask upstream proxy: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, proxyError{res.StatusCode}
	}
	return &clientConn{Conn: conn, r: r}, nil
}

// A proxyError is a refusal of the user's own proxy.
type proxyError struct{ status int }

func (e proxyError) Error() string { return fmt.Sprintf("upstream proxy answers %d", e.status) }

var errSocks = errors.New("upstream proxy does not speak SOCKS5 as expected")

// socks5 asks for a connection (RFC 1928), with a user and password (RFC 1929) if there are any.
func socks5(conn io.ReadWriter, user *url.Userinfo, target string) error {
	host, portText, err := net.SplitHostPort(target)
	if err != nil {
		return fmt.Errorf("ask upstream proxy: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || len(host) > 255 {
		return errors.New("ask upstream proxy: no host and port")
	}
	method := byte(0)
	if user != nil {
		method = 2
	}
	var in [262]byte
	ask := func(out []byte, answer []byte) error {
		if _, err := conn.Write(out); err != nil {
			return fmt.Errorf("ask upstream proxy: %w", err)
		}
		if _, err := io.ReadFull(conn, answer); err != nil {
			return fmt.Errorf("ask upstream proxy: %w", err)
		}
		return nil
	}
	if err := ask([]byte{5, 1, method}, in[:2]); err != nil {
		return err
	}
	if in[0] != 5 || in[1] != method {
		return errSocks
	}
	if user != nil {
		name := user.Username()
		password, _ := user.Password()
		if len(name) == 0 || len(name) > 255 || len(password) > 255 {
			return errors.New("ask upstream proxy: user or password of no length that SOCKS5 has")
		}
		out := append([]byte{1, byte(len(name))}, name...)
		out = append(append(out, byte(len(password))), password...)
		if err := ask(out, in[:2]); err != nil {
			return err
		}
		if in[1] != 0 {
			return proxyError{http.StatusProxyAuthRequired}
		}
	}
	out := []byte{5, 1, 0}
	switch ip := net.ParseIP(host); {
	case ip.To4() != nil:
		out = append(append(out, 1), ip.To4()...)
	case ip != nil:
		out = append(append(out, 4), ip...)
	default:
		out = append(append(out, 3, byte(len(host))), host...)
	}
	if err := ask(binary.BigEndian.AppendUint16(out, uint16(port)), in[:5]); err != nil {
		return err
	}
	if in[0] != 5 {
		return errSocks
	}
	if in[1] != 0 {
		return proxyError{int(in[1])}
	}
	rest := map[byte]int{1: 4 + 2 - 1, 4: 16 + 2 - 1, 3: int(in[4]) + 2}[in[3]]
	if rest == 0 {
		return errSocks
	}
	if _, err := io.ReadFull(conn, in[5:5+rest]); err != nil {
		return fmt.Errorf("ask upstream proxy: %w", err)
	}
	return nil
}
