package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// Behind a proxy of the company's, both opened connections and tunnels go through it.
func TestUpstreamProxy(t *testing.T) {
	var asked atomic.Int64
	var auth atomic.Value
	var behind *lab
	company := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		asked.Add(1)
		auth.Store(r.Header.Get("Proxy-Authorization"))
		up, err := toOrigin{behind.origin.Listener.Addr().String()}.DialContext(r.Context(), "tcp", "")
		if err != nil {
			t.Error(err)
			return
		}
		defer up.Close()
		conn, err := hijack(w)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		done := make(chan struct{})
		go func() { pass(up, conn); close(done) }()
		pass(conn, up)
		<-done
	}))
	defer company.Close()
	behind = newLab(t, bundle, nil, func(c *Config) {
		c.Dialer = toOrigin{company.Listener.Addr().String()}
		c.Upstream = func(*url.URL) (*url.URL, error) { return url.Parse("http://me:pass@company.test:3128") }
	})
	for i, u := range []string{"https://model.test/", "https://other.test/"} {
		client := behind.client(false)
		client.Transport.(*http.Transport).DisableKeepAlives = true // a tunnel ends with its request
		res, err := client.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "answer to " {
			t.Errorf("%s: %q %v", u, b, err)
		}
		if asked.Load() != int64(i+1) || auth.Load() != "Basic bWU6cGFzcw==" {
			t.Errorf("%s: asked %d times, %v", u, asked.Load(), auth.Load())
		}
	}
	behind.decision(1)
	if strings.Contains(behind.ledger(), "pass") {
		t.Errorf("the upstream proxy's password is recorded: %s", behind.ledger())
	}
}

// A user's proxy that wants to know who asks is told apart from one that is not there.
func TestUpstreamProxyRefuses(t *testing.T) {
	company := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer company.Close()
	for i, at := range []string{company.Listener.Addr().String(), "127.0.0.1:1"} {
		l := newLab(t, bundle, nil, func(c *Config) {
			c.Dialer = nil
			c.Upstream = func(*url.URL) (*url.URL, error) { return url.Parse("http://" + at) }
		})
		want := []string{"upstream-proxy-auth", "upstream-connect"}[i]
		if res, err := l.client(false).Get("https://model.test/"); err != nil || res.StatusCode != http.StatusBadGateway {
			t.Errorf("%v %v", res, err)
		}
		if _, err := l.client(false).Get("https://other.test/"); err == nil {
			t.Error("a tunnel")
		}
		for n := range 2 {
			if d := l.decision(n); d.Error != want && d.Error != "upstream-proxy" || i == 0 && d.Error != want {
				t.Errorf("%s: %+v", want, d)
			}
		}
	}
}

// socksServer takes connections, wants a user, and connects all of them to one address. It hands on what was asked.
func socksServer(t *testing.T, to string, asked chan<- string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		take := func(n byte) []byte {
			b := make([]byte, n)
			if _, err := io.ReadFull(conn, b); err != nil {
				return make([]byte, n)
			}
			return b
		}
		hello := take(2)
		if methods := take(hello[1]); !bytes.Contains(methods, []byte{2}) {
			conn.Write([]byte{5, 0xff})
			return
		}
		conn.Write([]byte{5, 2})
		user := take(take(2)[1])
		password := take(take(1)[0])
		conn.Write([]byte{1, 0})
		head := take(4)
		var host string
		switch head[3] {
		case 1:
			host = net.IP(take(4)).String()
		case 4:
			host = net.IP(take(16)).String()
		case 3:
			host = string(take(take(1)[0]))
		}
		port := binary.BigEndian.Uint16(take(2))
		asked <- strings.Join([]string{string(user), string(password), net.JoinHostPort(host, strconv.Itoa(int(port)))}, " ")
		up, err := net.Dial("tcp", to)
		if err != nil {
			conn.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		defer up.Close()
		conn.Write([]byte{5, 0, 0, 3, 4, 'n', 'a', 'm', 'e', 0, 80})
		done := make(chan struct{})
		go func() { io.Copy(up, conn); close(done) }()
		io.Copy(conn, up)
		conn.Close()
		<-done
	}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return ln.Addr().String()
}

func TestUpstreamSocks(t *testing.T) {
	asked := make(chan string, 8)
	var l *lab
	origin := newLab(t, bundle, nil, nil)
	at := socksServer(t, origin.origin.Listener.Addr().String(), asked)
	l = newLab(t, bundle, nil, func(c *Config) {
		c.Dialer, c.RootCAs = nil, origin.originCA
		c.Upstream = func(*url.URL) (*url.URL, error) { return url.Parse("socks5://me:pass@" + at) }
	})
	roots := origin.originCA.Clone()
	roots.AppendCertsFromPEM(l.ca.PEM())
	for _, host := range []string{"model.test", "other.test"} {
		c := l.client(false)
		c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
		c.Transport.(*http.Transport).DisableKeepAlives = true
		res, err := c.Get("https://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "answer to " {
			t.Errorf("%s: %q %v", host, b, err)
		}
		if got := <-asked; got != "me pass "+host+":443" {
			t.Errorf("%s: %q", host, got)
		}
	}
	l.decision(1)
	if strings.Contains(l.ledger(), "pass") {
		t.Errorf("the upstream proxy's password is recorded: %s", l.ledger())
	}
}

// What a SOCKS server says is not trusted.
func FuzzSocks5(f *testing.F) {
	f.Add([]byte{5, 2, 1, 0, 5, 0, 0, 1, 127, 0, 0, 1, 0, 80}, "example.com:443")
	f.Add([]byte{5, 2, 1, 0, 5, 0, 0, 3, 255}, "[::1]:443")
	f.Add([]byte{5, 0xff}, "10.0.0.1:1")
	f.Fuzz(func(t *testing.T, answer []byte, target string) {
		in := bytes.NewReader(answer)
		err := socks5(struct {
			io.Reader
			io.Writer
		}{in, io.Discard}, url.UserPassword("u", "p"), target)
		if err == nil && (len(answer)-in.Len() < 4+7 || answer[5] != 0) {
			t.Fatalf("taken for a connection: %v", answer)
		}
	})
}
