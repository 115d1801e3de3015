// Command goproxy is elazarl/goproxy as a plain opening proxy, for rye's to be measured beside. It is a module of its
// own, so that rye does not depend on what it is measured against.
//
//	goproxy ADDR CERT KEY
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"

	"github.com/elazarl/goproxy"
)

// certs keeps leaf certificates, as any use in earnest would.
type certs struct {
	mu   sync.Mutex
	have map[string]*tls.Certificate
}

func (s *certs) Fetch(host string, gen func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.have[host]; c != nil {
		return c, nil
	}
	c, err := gen()
	if err == nil {
		s.have[host] = c
	}
	return c, err
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "goproxy:", err)
		os.Exit(1)
	}
}

func run(addr, cert, key string) error {
	ca, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	p := goproxy.NewProxyHttpServer()
	p.Logger = log.New(io.Discard, "", 0)
	// The origin's certificate is not verified here: it would be once per connection.
	p.Tr = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 64}
	p.CertStore = &certs{have: map[string]*tls.Certificate{}}
	open := &goproxy.ConnectAction{Action: goproxy.ConnectMitm, TLSConfig: goproxy.TLSConfigFromCA(&ca)}
	p.OnRequest().HandleConnectFunc(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) { return open, host })
	return http.ListenAndServe(addr, p)
}
