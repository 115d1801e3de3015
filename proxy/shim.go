package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// A Shim is what a tool's base URL (ANTHROPIC_BASE_URL, OPENAI_BASE_URL …) is pointed at instead of its upstream:
// plain HTTP on loopback, no CA, the same policy and the same events as the proxy's.
type Shim struct {
	p        *Proxy
	upstream *url.URL // as given
	route    route
	server   *http.Server
}

// NewShim puts a shim in front of an upstream: the base URL that the tool would have used, which is https, or
// http on loopback. It shares the proxy's bundle, approvals and connections, and ends with the proxy.
func (p *Proxy) NewShim(upstream string) (*Shim, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, errors.New("make shim: the upstream is not a URL") // its text may hold a password
	}
	port := u.Port()
	switch {
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("make shim: the upstream names no host")
	case u.User != nil:
		return nil, errors.New("make shim: the upstream has a user or password in it")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("make shim: the upstream has a query or fragment")
	case u.Scheme == "https" && port == "":
		port = "443"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("make shim: %s is neither https nor on loopback", u.Hostname())
	case u.Scheme == "http" && port == "":
		port = "80"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("make shim: the upstream's scheme is %q", u.Scheme)
	}
	s := &Shim{p: p, upstream: u}
	s.route = route{scheme: u.Scheme, target: net.JoinHostPort(u.Hostname(), port), host: u.Host, shim: u.String(), opened: true}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: readHeaderTimeout, ErrorLog: p.outer.ErrorLog}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("make shim: the proxy is closed")
	}
	p.shims = append(p.shims, s)
	return s, nil
}

// URL is what the tool's variable is to say when the shim serves on l: the upstream's path stays in it, so that the
// tool asks for the same paths as before.
func (s *Shim) URL(l net.Listener) string {
	u := url.URL{Scheme: "http", Host: l.Addr().String(), Path: s.upstream.Path, RawPath: s.upstream.RawPath}
	return u.String()
}

// Serve accepts clients on l, which must be on loopback, until the proxy is closed.
func (s *Shim) Serve(l net.Listener) error {
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return fmt.Errorf("serve shim: %v is not a loopback address", l.Addr())
	}
	if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve shim: %w", err)
	}
	return nil
}

func (s *Shim) serve(w http.ResponseWriter, r *http.Request) {
	if !s.p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.p.wg.Done()
	// A web page can make a browser ask for a name that its owner has pointed at loopback.
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if r.Method == http.MethodConnect || r.URL.Host != "" || !loopback(strings.Trim(host, "[]")) {
		http.Error(w, "rye: this stands in front of "+s.route.target+" and of nothing else", http.StatusMisdirectedRequest)
		return
	}
	s.p.exchange(w, r, s.route)
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
