package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/policy"
)

// A lab is a proxy, an origin that is model.test and other.test at once, and what they saw.
type lab struct {
	t        *testing.T
	p        *Proxy
	ca       *CA
	caFile   string // what clients trust for model.test
	origin   *httptest.Server
	originCA *x509.CertPool
	originPF string // PEM file of the origin's own CA: what clients need inside a tunnel
	url      *url.URL
	env      []string // more of the environment of run

	mu     sync.Mutex
	seen   []string // requests that reached the origin: METHOD path body
	events []event.Event
}

// toOrigin sends every connection to the origin, whatever its name.
type toOrigin struct{ addr string }

func (d toOrigin) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	var n net.Dialer
	return n.DialContext(ctx, network, d.addr)
}

func pool(t *testing.T, ca *CA) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("no certificate")
	}
	return p
}

func newLab(t *testing.T, bundle string, handler http.HandlerFunc, change func(*Config)) *lab {
	t.Helper()
	l := &lab{t: t}
	if handler == nil {
		handler = func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			l.mu.Lock()
			l.seen = append(l.seen, r.Method+" "+r.URL.RequestURI()+" "+string(b))
			l.mu.Unlock()
			w.Header().Set("X-Origin-Proto", r.Proto)
			io.WriteString(w, "answer to "+string(b))
		}
	}
	originCA, err := NewCA([]string{"model.test", "other.test"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.originCA = pool(t, originCA)
	l.origin = httptest.NewUnstartedServer(handler)
	l.origin.EnableHTTP2 = true
	l.origin.TLS = &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return originCA.leaf(h.ServerName, time.Now())
	}}
	l.origin.StartTLS()
	t.Cleanup(l.origin.Close)

	if l.ca, err = NewCA([]string{"model.test"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l.caFile, l.originPF = filepath.Join(dir, "rye.pem"), filepath.Join(dir, "origin.pem")
	if err := os.WriteFile(l.caFile, l.ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.originPF, originCA.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := policy.Parse([]byte(bundle))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	c := Config{
		CA: l.ca, Bundle: func() *policy.Bundle { return b }, RootCAs: l.originCA,
		Dialer:   toOrigin{l.origin.Listener.Addr().String()},
		Boottime: func() uint64 { return uint64(time.Since(start)) + 1 },
		Emit: func(e event.Event) {
			l.mu.Lock()
			l.events = append(l.events, e)
			l.mu.Unlock()
		},
	}
	if change != nil {
		change(&c)
	}
	if l.p, err = New(c); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.p.Serve(ln) }()
	t.Cleanup(func() {
		l.p.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	l.url = &url.URL{Scheme: "http", Host: ln.Addr().String()}
	return l
}

// client is a Go client of the proxy that trusts both CAs.
func (l *lab) client(h2 bool) *http.Client {
	roots := l.originCA.Clone()
	roots.AppendCertsFromPEM(l.ca.PEM())
	tr := &http.Transport{Proxy: http.ProxyURL(l.url), TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: h2}
	l.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

// decision waits for the nth decision.
func (l *lab) decision(n int) *event.ProxyDecision {
	l.t.Helper()
	for range 500 {
		if list := bodies[*event.ProxyDecision](l); len(list) > n {
			return list[n]
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.t.Fatalf("no decision %d", n)
	return nil
}

// bodies are the events of one type so far.
func bodies[B event.Body](l *lab) []B {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []B
	for _, e := range l.events {
		if b, ok := e.Body.(B); ok {
			list = append(list, b)
		}
	}
	return list
}

// shim serves a shim in front of an upstream and returns what a tool would be told.
func (l *lab) shim(upstream string) string {
	l.t.Helper()
	s, err := l.p.NewShim(upstream)
	if err != nil {
		l.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	go func() {
		if err := s.Serve(ln); err != nil {
			l.t.Error(err)
		}
	}()
	return s.URL(ln)
}

func (l *lab) reached() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.seen, "\n")
}

// ledger is all events as they would be written.
func (l *lab) ledger() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b []byte
	for i := range l.events {
		b = append(l.events[i].AppendJSON(b), '\n')
	}
	return string(b)
}
