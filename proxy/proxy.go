// Package proxy is rye's proxy for model APIs: it runs on loopback, opens the TLS connections to the
// domains it is configured for, asks the policy about every request before anything of it is sent on, and
// passes responses through as they come. Connections to other hosts are tunnels: decided on by host, never
// opened.
//
// It is net/http on both sides and nothing else: its server and its transport speak HTTP/1.1 and HTTP/2
// over any connection they are given, stream with a Flush, and have the strictest parsers at hand. A proxy
// library would add hooks that rye has no use for, and a certificate store of its own.
//
// What models ask for in the answers of opened connections becomes tool.call events. A [Shim] does the same as the
// proxy for a tool that takes a base URL.
//
// It imports event, policy, modelapi, toolcall and approvals. What happened leaves it as event values; it keeps no record itself.
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ryehq/rye/approvals"
	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/policy"
)

// Defaults of Config.
const (
	DefaultMaxBody  = 128 << 20
	DefaultMaxHeld  = 64 << 20
	DefaultMaxSpool = 2 << 30
)

// A Config is what a proxy needs. Bundle, Emit and Boottime must be set.
type Config struct {
	CA       *CA                   // nil: no connection is opened, all are tunnels
	Bundle   func() *policy.Bundle // asked for each request, so that a new bundle holds at once
	Emit     func(event.Event)     // called from many goroutines
	Boottime func() uint64         // nanoseconds, CLOCK_BOOTTIME

	Approvals *approvals.Store // nil: nobody can be asked, and require_approval is a refusal
	Session   string           // id, for those who are asked

	RootCAs  *x509.CertPool                   // for upstream servers; nil is the system's
	Upstream func(*url.URL) (*url.URL, error) // the proxy to go through, nil for none
	Dialer   interface {                      // nil is a net.Dialer
		DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	}
	MaxBody  int64  // bytes of one request; a larger one is refused
	MaxHeld  int64  // bytes held in memory for all requests while they are judged, 256 KiB at most for one
	MaxSpool int64  // bytes held in files
	SpoolDir string // where these are; "" is os.TempDir. They have no names
}

// A Proxy serves until Close.
type Proxy struct {
	c         Config
	domains   []string
	transport *http.Transport
	outer     *http.Server // what clients connect to
	inner     *http.Server // what they find inside an opened CONNECT
	opened    *openedConns
	held      atomic.Int64
	spooled   atomic.Int64

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // hijacked: no server knows them any more
	wg     sync.WaitGroup
	closed bool
	shims  []*Shim
}

// A route is where requests that came in one way go.
type route struct {
	scheme string
	target string // host:port
	host   string // the Host that the server is to see; "" for the client's own
	shim   string // base URL of the shim's upstream, "" for the proxy
	opened bool   // what the model answers is looked at
}

const readHeaderTimeout = 30 * time.Second

// New returns a proxy that opens the connections to the domains its CA is constrained to.
func New(c Config) (*Proxy, error) {
	if c.Bundle == nil || c.Emit == nil || c.Boottime == nil {
		return nil, errors.New("make proxy: Bundle, Emit and Boottime are needed")
	}
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.MaxHeld == 0 {
		c.MaxHeld = DefaultMaxHeld
	}
	if c.MaxSpool == 0 {
		c.MaxSpool = DefaultMaxSpool
	}
	if c.Dialer == nil {
		c.Dialer = &net.Dialer{Timeout: 30 * time.Second}
	}
	if c.Upstream == nil {
		c.Upstream = func(*url.URL) (*url.URL, error) { return nil, nil }
	}
	p := &Proxy{c: c, conns: map[net.Conn]struct{}{}}
	if c.CA != nil {
		p.domains = c.CA.Domains()
	}
	p.transport = &http.Transport{
		Proxy:               func(r *http.Request) (*url.URL, error) { return c.Upstream(r.URL) },
		DialContext:         c.Dialer.DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 15 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true, // the client's Accept-Encoding is the one that counts
		MaxIdleConnsPerHost: 64,
		WriteBufferSize:     32 << 10, // most requests then leave in one piece
		ReadBufferSize:      32 << 10,
		IdleConnTimeout:     90 * time.Second,
		// A client that asks before it sends its body is answered by the server, not by us alone.
		ExpectContinueTimeout: time.Second,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
			if res.StatusCode != http.StatusOK {
				return proxyError{res.StatusCode}
			}
			return nil
		},
	}
	quiet := log.New(io.Discard, "", 0) // failures are events
	p.outer = &http.Server{Handler: http.HandlerFunc(p.serveOuter), ReadHeaderTimeout: readHeaderTimeout, ErrorLog: quiet}
	p.opened = newOpenedConns()
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	p.inner = &http.Server{
		Handler: http.HandlerFunc(p.serveInner), ReadHeaderTimeout: readHeaderTimeout, ErrorLog: quiet, Protocols: both,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if t, ok := c.(*tls.Conn); ok {
				return context.WithValue(ctx, targetKey{}, t.NetConn().(*clientConn).target)
			}
			return ctx
		},
	}
	return p, nil
}

type targetKey struct{} // context: host:port that the client's CONNECT named

// Serve accepts clients on l, which must be on loopback, until Close.
func (p *Proxy) Serve(l net.Listener) error {
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return fmt.Errorf("serve proxy: %v is not a loopback address", l.Addr())
	}
	if !p.enter() {
		return nil // closed already
	}
	go func() {
		defer p.wg.Done()
		_ = p.inner.Serve(p.opened) // ends with opened, by Close
	}()
	if err := p.outer.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve proxy: %w", err)
	}
	return nil
}

// Close ends all connections at once and returns when their events are emitted.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	conns := slices.Collect(maps.Keys(p.conns))
	shims := p.shims
	p.mu.Unlock()
	for _, c := range conns { // a connection that closes takes itself out of conns
		c.Close()
	}
	var err error
	for _, s := range shims {
		err = errors.Join(err, s.server.Close())
	}
	err = errors.Join(err, p.outer.Close(), p.inner.Close(), p.opened.Close())
	p.wg.Wait()
	p.transport.CloseIdleConnections()
	return err
}

// track notes a connection that Close is to end. It reports false after Close.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) untrack(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	c.Close()
}

// enter counts a request that Close is to wait for. It reports false after Close.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.wg.Add(1)
	}
	return !p.closed
}

// opens reports whether connections to host are opened.
func (p *Proxy) opens(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, d := range p.domains {
		if host == d || strings.HasSuffix(host, "."+d) && net.ParseIP(host) == nil {
			return true
		}
	}
	return false
}

func (p *Proxy) serveOuter(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.wg.Done()
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.exchange(w, r, route{scheme: "http", target: r.URL.Host})
	default:
		http.Error(w, "rye: this is a proxy; it was asked for no host", http.StatusBadRequest)
	}
}

func (p *Proxy) serveInner(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.wg.Done()
	target, ok := r.Context().Value(targetKey{}).(string)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	p.exchange(w, r, route{scheme: "https", target: target, opened: true})
}
