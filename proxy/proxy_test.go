package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
)

const bundle = `
id: lab
version: 4
default: allow
rules:
- {id: key, version: 2, action: deny, reason: a private key, when: {secrets: any}}
- {id: big, action: deny, when: {body_larger_than: 2MB}}
- {id: nomodel, action: require_approval, when: {domains: model.test, methods: POST, paths: /v1/*, model_missing: true}}
- {id: closed, action: deny, when: {domains: closed.test}}
`

const planted = "AKIAIOSFODNN7EXAMPLE"

func TestAllowedRequest(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		l := newLab(t, bundle, nil, nil)
		body := `{"model":"m"}`
		res, err := l.client(h2).Post("https://model.test/v1/x?key=hidden", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		if err != nil || string(answer) != "answer to "+body || res.Header.Get("X-Origin-Proto") != "HTTP/2.0" {
			t.Errorf("%q %v %v", answer, err, res.Header)
		}
		want := "HTTP/1.1"
		if h2 {
			want = "HTTP/2.0"
		}
		d := l.decision(0)
		in, out := sha256.Sum256([]byte(body)), sha256.Sum256(answer)
		if res.Proto != want || d.Proto != want || d.Method != "POST" || d.Host != "model.test:443" || d.Path != "/v1/x" || d.Decision != "allow" ||
			d.Bundle != "lab@4" || d.Status != 200 || d.RequestBytes != 13 || d.ResponseBytes != uint64(len(answer)) ||
			d.RequestSHA256 != hex.EncodeToString(in[:]) || d.ResponseSHA256 != hex.EncodeToString(out[:]) || d.RequestCut || d.ResponseCut || d.Error != "" {
			t.Errorf("h2 %v: %+v", h2, d)
		}
		if _, port, err := net.SplitHostPort(d.Local); err != nil || port == "0" {
			t.Errorf("local: %q", d.Local)
		}
		if l.reached() != "POST /v1/x?key=hidden "+body || strings.Contains(l.ledger(), "hidden") {
			t.Errorf("reached %q, recorded %s", l.reached(), l.ledger())
		}
	}
}

func TestRefused(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, `{"model":"m","x":"`+planted+`"}`)
	z.Close()
	for _, c := range []struct {
		name, path, body, encoding string
		rule, version, decision    string
	}{
		{"secret", "/v1/x", `{"model":"m","x":"` + planted + `"}`, "", "key", "2", "deny"},
		{"secret, gzip", "/v1/x", packed.String(), "gzip", "key", "2", "deny"},
		{"no gzip at all", "/v1/x", `{"model":"m"}`, "gzip", "key", "2", "deny"},
		{"no model", "/v1/x", `{}`, "", "nomodel", "", "require_approval"},
		{"large", "/", strings.Repeat("x", 2e6+1), "", "big", "", "deny"},
	} {
		for _, h2 := range []bool{false, true} {
			l := newLab(t, bundle, nil, nil)
			req, err := http.NewRequest("POST", "https://model.test"+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.encoding != "" {
				req.Header.Set("Content-Encoding", c.encoding)
			}
			res, err := l.client(h2).Do(req)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			var got map[string]map[string]string
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			d := l.decision(0)
			e := got["error"]
			if res.StatusCode != 403 || e["type"] != "rye_policy" || e["rule_id"] != c.rule || e["rule_version"] != c.version ||
				e["bundle"] != "lab@4" || e["decision"] != c.decision || e["reason"] == "" || e["request_id"] != d.ID {
				t.Errorf("%s: %d %v", c.name, res.StatusCode, got)
			}
			if d.Decision != c.decision || d.Rule != c.rule || d.Status != 403 || d.RequestBytes != uint64(len(c.body)) {
				t.Errorf("%s: %+v", c.name, d)
			}
			if l.reached() != "" {
				t.Errorf("%s reached the origin: %.80q", c.name, l.reached())
			}
			if strings.Contains(l.ledger(), planted) {
				t.Errorf("%s: the secret is in the events", c.name)
			}
		}
	}
}

// A secret anywhere in a request leaves no trace in an event.
func TestSecretsAreNotRecorded(t *testing.T) {
	l := newLab(t, "id: open\nversion: 1\ndefault: allow\nrules: []\n", nil, nil)
	key := "sk-ant-api03-" + strings.Repeat("a1B2", 20)
	req, err := http.NewRequest("POST", "https://model.test/p/"+key+"?k="+key, strings.NewReader(key))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	res, err := l.client(true).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	if d := l.decision(0); d.Path != "[cut]" || d.Status != 200 {
		t.Errorf("%+v", d)
	}
	if strings.Contains(l.ledger(), key[:20]) {
		t.Errorf("recorded: %s", l.ledger())
	}
	if !strings.Contains(l.reached(), key) {
		t.Error("the request was changed on its way")
	}
}

func TestTunnel(t *testing.T) {
	l := newLab(t, bundle, nil, nil)
	c := l.client(false)
	c.Transport.(*http.Transport).DisableKeepAlives = true // the tunnel ends with the request
	res, err := c.Post("https://other.test/y", "text/plain", strings.NewReader(planted))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	if res.TLS.PeerCertificates[0].CheckSignatureFrom(l.ca.cert) == nil {
		t.Error("a tunnel was opened")
	}
	d := l.decision(0)
	if !d.Tunnel || d.Method != "CONNECT" || d.Host != "other.test:443" || d.Decision != "allow" || d.RequestBytes == 0 || d.ResponseBytes == 0 || d.RequestSHA256 != "" {
		t.Errorf("%+v", d)
	}
	if _, err := c.Get("https://closed.test/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a denied tunnel: %v", err)
	}
	if d := l.decision(1); d.Rule != "closed" || d.Decision != "deny" || d.Status != 403 {
		t.Errorf("%+v", d)
	}
}

func TestStreamIsNotBuffered(t *testing.T) {
	const tries = 20
	for _, h2 := range []bool{false, true} {
		sent := make(chan time.Time, 1)
		next := make(chan struct{})
		l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range tries {
				fmt.Fprint(w, "data: x\n\n")
				sent <- time.Now()
				w.(http.Flusher).Flush()
				<-next // nothing more until the client has had this one
			}
		}, nil)
		res, err := l.client(h2).Post("https://model.test/v1/x", "application/json", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		best := time.Hour
		buf := make([]byte, 9)
		for range tries {
			if _, err := io.ReadFull(res.Body, buf); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(<-sent))
			next <- struct{}{}
		}
		t.Logf("h2 %v: %v from the origin to the client at best", h2, best)
		if best > 5*time.Millisecond {
			t.Errorf("h2 %v: %v", h2, best)
		}
	}
}

func TestUpstreamIsVerified(t *testing.T) {
	l := newLab(t, bundle, nil, func(c *Config) { c.RootCAs = pool(t, c.CA) })
	res, err := l.client(true).Get("https://model.test/")
	if err != nil {
		t.Fatal(err)
	}
	if d := l.decision(0); res.StatusCode != 502 || d.Error != "upstream-certificate" || l.reached() != "" {
		t.Errorf("%d %+v", res.StatusCode, d)
	}
}

// An answer that breaks off must not look whole.
func TestResponseCut(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, nil)
		res, err := l.client(h2).Get("https://model.test/")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("h2 %v: %q without an error", h2, b)
		}
		if d := l.decision(0); !d.ResponseCut || d.ResponseBytes != 4 {
			t.Errorf("%+v", d)
		}
	}
}

func TestRefusedWithoutARule(t *testing.T) {
	l := newLab(t, "id: open\nversion: 1\ndefault: allow\nrules: []\n", nil, func(c *Config) { c.MaxBody = 1000 })
	do := func(change func(*http.Request), body string) int {
		req, err := http.NewRequest("POST", "https://model.test/v1/x", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		res, err := l.client(false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		status int
		change func(*http.Request)
		body   string
	}{
		{421, func(r *http.Request) { r.Host = "other.test" }, ""},
		{403, func(r *http.Request) { r.Header.Set("Connection", "Upgrade"); r.Header.Set("Upgrade", "h2c") }, ""},
		{413, func(r *http.Request) { r.ContentLength = -1 }, strings.Repeat("x", 100_000)},
	} {
		if got := do(c.change, c.body); got != c.status {
			t.Errorf("status %d, want %d", got, c.status)
		}
	}
	if d := l.decision(2); l.reached() != "" || d.Decision != "deny" || !d.RequestCut {
		t.Errorf("reached %q; %+v", l.reached(), d)
	}
	if held := l.p.held.Load(); held != 0 {
		t.Errorf("%d bytes still counted as held", held)
	}
}

func TestClientThatDoesNotTrust(t *testing.T) {
	l := newLab(t, bundle, nil, nil)
	c := l.client(true)
	c.Transport.(*http.Transport).TLSClientConfig.RootCAs = l.originCA
	if _, err := c.Get("https://model.test/"); err == nil {
		t.Error("trusted")
	}
	if d := l.decision(0); d.Error != "client-tls" || d.Decision != "" {
		t.Errorf("%+v", d)
	}
}

func TestOnlyLoopback(t *testing.T) {
	l := newLab(t, bundle, nil, nil)
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := l.p.Serve(ln); err == nil {
		t.Error("served on every interface")
	}
}

// Close waits for the events of what it ends.
func TestCloseEmits(t *testing.T) {
	started := make(chan struct{})
	l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(started)
		<-r.Context().Done()
	}, nil)
	res, err := l.client(true).Get("https://model.test/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	<-started
	l.p.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) != 1 || !l.events[0].Body.(*event.ProxyDecision).ResponseCut {
		t.Errorf("%+v", l.events)
	}
}

// A plain request is judged like an opened one, and what concerns only the connection stays behind.
func TestPlainRequest(t *testing.T) {
	got := make(chan http.Header, 1)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		w.Header().Set("Connection", "X-Mine")
		w.Header().Set("X-Mine", "y")
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header()["Content-Type"] = nil
		io.WriteString(w, "ok")
	}))
	defer plain.Close()
	l := newLab(t, bundle, nil, func(c *Config) { c.Dialer = toOrigin{plain.Listener.Addr().String()} })
	ask := func(body string) *http.Response {
		req, err := http.NewRequest("POST", "http://other.test/z", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Connection": {"X-Hop"}, "X-Hop": {"1"}, "X-End": {"2"}, "Proxy-Authorization": {"Basic eA=="}, "User-Agent": nil}
		res, err := l.client(false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	res := ask("x")
	h := <-got
	l.decision(0)
	if h.Get("X-End") != "2" || h.Get("X-Hop") != "" || h.Get("Proxy-Authorization") != "" || h.Get("User-Agent") != "" || h.Get("Accept-Encoding") != "gzip" {
		t.Errorf("sent on: %v", h)
	}
	if res.StatusCode != 200 || res.Header.Get("X-Mine") != "" || res.Header.Get("Alt-Svc") != "" || res.Header.Get("Content-Type") != "" {
		t.Errorf("passed back: %v", res.Header)
	}
	if res := ask(planted); res.StatusCode != 403 || len(got) != 0 {
		t.Errorf("a plain request with a secret: %d", res.StatusCode)
	}
	if d := l.decision(1); d.Rule != "key" || d.Host != "other.test" || d.Tunnel {
		t.Errorf("%+v", d)
	}
}
