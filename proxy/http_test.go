package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// Trailers pass in both directions, announced or not.
func TestTrailers(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %v", b, r.Trailer)
			w.(http.Flusher).Flush()
			w.Header().Set("X-Sum", "7")
			w.Header().Set(http.TrailerPrefix+"X-Late", "8")
		}, nil)
		req, err := http.NewRequest("POST", "https://model.test/v1/x", io.NopCloser(strings.NewReader(`{"model":"m"}`)))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = -1
		req.Trailer = http.Header{"X-Mine": {"1"}}
		res, err := l.client(h2).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || string(b) != `{"model":"m"} map[X-Mine:[1]]` {
			t.Errorf("h2 %v: %s %v", h2, b, err)
		}
		if res.Trailer.Get("X-Sum") != "7" || res.Trailer.Get("X-Late") != "8" {
			t.Errorf("h2 %v: %v", h2, res.Trailer)
		}
	}
}

// A client that waits for 100 (Continue) before it sends its body gets it; so does the proxy from the server, which
// can refuse without having read any of it.
func TestExpectContinue(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan string, 2)
	go func() {
		for _, answer := range []string{"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"} {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			r := bufio.NewReader(conn)
			req, err := http.ReadRequest(r)
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(conn, answer)
			if req.Header.Get("Expect") != "100-continue" || strings.Contains(answer, "417") {
				time.Sleep(100 * time.Millisecond) // for a body that should not come
				got <- req.Header.Get("Expect") + fmt.Sprint(r.Buffered())
				conn.Close()
				continue
			}
			b, _ := io.ReadAll(req.Body)
			got <- string(b)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			conn.Close()
		}
	}()
	l := newLab(t, bundle, nil, func(c *Config) { c.Dialer = nil })
	base := l.shim("http://" + ln.Addr().String())
	tr := &http.Transport{ExpectContinueTimeout: 15 * time.Second}
	defer tr.CloseIdleConnections()
	for _, c := range []struct {
		status int
		got    string
	}{{417, "100-continue0"}, {200, `{"model":"m"}`}} {
		req, err := http.NewRequest("POST", base+"/v1/x", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue")
		start := time.Now()
		res, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if g := <-got; res.StatusCode != c.status || g != c.got || time.Since(start) > 10*time.Second {
			t.Errorf("%d, origin: %q, after %v", res.StatusCode, g, time.Since(start))
		}
	}
}

// Addresses in brackets, opened and tunnelled.
func TestIPv6(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	ca, err := NewCA([]string{"::1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.leaf("::1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	origin.Listener.Close()
	origin.Listener = ln
	origin.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	origin.StartTLS()
	defer origin.Close()
	own, err := NewCA([]string{"::1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, opened := range []*CA{own, nil} {
		l := newLab(t, bundle, nil, func(c *Config) { c.Dialer, c.RootCAs, c.CA = nil, pool(t, ca), opened })
		c := l.client(false)
		roots := pool(t, ca)
		if opened != nil {
			roots = pool(t, own)
		}
		c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
		c.Transport.(*http.Transport).DisableKeepAlives = true
		res, err := c.Get("https://" + ln.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != ln.Addr().String() {
			t.Errorf("%s %v", b, err)
		}
		if d := l.decision(0); d.Host != ln.Addr().String() || d.Tunnel != (i == 1) || d.Decision != "allow" {
			t.Errorf("%+v", d)
		}
	}
}

// Each piece of a stream reaches the client soon after the origin sent it, with the policy and the reading of tool
// calls on the way, and no later for being the first.
func TestStreamIsPrompt(t *testing.T) {
	const tries = 30
	for _, way := range []string{"HTTP/1.1", "HTTP/2.0", "shim"} {
		sent := make(chan time.Time, 1)
		l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			sent <- time.Now()
			fmt.Fprintf(w, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}\n\n", strings.Repeat("tool_use ", 100))
			w.(http.Flusher).Flush()
			<-r.Context().Done() // nothing follows that could push it out
		}, nil)
		c, base := l.client(way == "HTTP/2.0"), "https://model.test"
		if way == "shim" {
			c, base = &http.Client{}, l.shim("https://model.test")
		}
		var waits []time.Duration
		for range tries {
			res, err := c.Post(base+"/v1/x", "application/json", strings.NewReader(`{"model":"m"}`))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, 900)); err != nil {
				t.Fatal(err)
			}
			waits = append(waits, time.Since(<-sent))
			res.Body.Close()
		}
		slices.Sort(waits)
		t.Logf("%s: from the origin to the client in %v (half), %v (most)", way, waits[tries/2], waits[tries*9/10])
		if waits[tries/2] > 5*time.Millisecond {
			t.Errorf("%s: %v", way, waits)
		}
	}
}
