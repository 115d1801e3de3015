package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/ryehq/rye/event"
)

const toolStream = `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"curl -H 'x-api-key: ` + planted + `' x\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

`

func encoded(t *testing.T, name, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	switch name {
	case "gzip":
		z = gzip.NewWriter(&b)
	case "br":
		z = brotli.NewWriter(&b)
	case "zstd":
		e, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		z = e
	default:
		return []byte(s)
	}
	if _, err := io.WriteString(z, s); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What the model asks for is recorded on the opened connection and at the shim, encoded or not, and the client
// gets every byte as it was sent.
func TestToolCalls(t *testing.T) {
	for _, encoding := range []string{"", "gzip", "br", "zstd"} {
		sent := encoded(t, encoding, toolStream)
		l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			for i := 0; i < len(sent); i += 50 {
				w.Write(sent[i:min(i+50, len(sent))])
				w.(http.Flusher).Flush()
			}
		}, nil)
		shim := l.shim("https://model.test/")
		for i, base := range []string{"https://model.test/", shim} {
			req, err := http.NewRequest("POST", base+"v1/messages", strings.NewReader(`{"model":"m"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("User-Agent", "claude-cli/2.1.332 (external, cli)")
			req.Header.Set("Accept-Encoding", "gzip, br, zstd") // or Go's client would decode it
			client := l.client(true)
			if base == shim {
				client = &http.Client{}
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%q: %d bytes of %d, %v", encoding, len(got), len(sent), err)
			}
			d := l.decision(i)
			calls := bodies[*event.ToolCall](l)
			if d.ToolCalls != 1 || d.ResponseUnread != "" || len(calls) != i+1 {
				t.Fatalf("%q: %+v, %d calls", encoding, d, len(calls))
			}
			c := calls[i]
			arguments := `{"command":"curl -H 'x-api-key: ` + planted + `' x"}`
			sum := sha256.Sum256([]byte(arguments))
			if c.ID != "toolu_1" || c.Agent != "claude" || c.Source != "api" || c.API != "anthropic" || c.Request != d.ID || c.Kind != "command" || c.Tool != "Bash" ||
				c.Command != "curl -H 'x-api-key: [cut: aws_key]' x" || !c.ArgumentsCut || c.ArgumentsBytes != uint64(len(arguments)) ||
				c.ArgumentsSHA256 != hex.EncodeToString(sum[:]) || c.AskedTimeNS == 0 || c.Unfinished {
				t.Errorf("%q: %+v", encoding, c)
			}
			if strings.Contains(l.ledger(), planted) {
				t.Error("the secret is recorded")
			}
		}
	}
}

func TestToolCallsUnread(t *testing.T) {
	l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/zip") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		io.WriteString(w, `{"choices":[{"message"`)
	}, nil)
	for i, path := range []string{"/zip", "/"} {
		req, err := http.NewRequest("GET", "https://model.test"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := l.client(true).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		if d := l.decision(i); d.ResponseUnread == "" || d.ToolCalls != 0 {
			t.Errorf("%+v", d)
		}
	}
}

func TestShim(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Host, r.URL.RequestURI(), r.Header.Get("X-Api-Key"), b)
	}))
	defer gateway.Close()
	l := newLab(t, bundle, nil, func(c *Config) { c.Dialer, c.CA = nil, nil })
	base := l.shim(gateway.URL + "/team%2Fa/llm")
	if !strings.HasSuffix(base, "/team%2Fa/llm") {
		t.Fatal(base)
	}
	ask := func(host, body string) (int, string) {
		req, err := http.NewRequest("POST", base+"/v1/x?beta=true", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "mine")
		req.Host = host
		res, err := (&http.Client{}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	addr := strings.TrimPrefix(gateway.URL, "http://")
	if status, got := ask("", `{"model":"m"}`); status != 200 || got != addr+` /team%2Fa/llm/v1/x?beta=true mine {"model":"m"}` {
		t.Errorf("%d %s", status, got)
	}
	d := l.decision(0)
	if d.Shim != gateway.URL+"/team%2Fa/llm" || d.Host != addr || d.Path != "/team%2Fa/llm/v1/x" || d.Decision != "allow" || d.Proto != "HTTP/1.1" {
		t.Errorf("%+v", d)
	}
	if status, got := ask("", planted); status != 403 || !strings.Contains(got, `"rule_id":"key"`) {
		t.Errorf("%d %s", status, got)
	}
	if d := l.decision(1); d.Rule != "key" || d.Shim == "" {
		t.Errorf("%+v", d)
	}
	if status, _ := ask("evil.example", "x"); status != 421 {
		t.Errorf("a page of another name: %d", status)
	}
}

func TestShimRefuses(t *testing.T) {
	l := newLab(t, bundle, nil, nil)
	for _, u := range []string{"", "model.test", "http://model.test/", "ftp://model.test", "https://user:pw@model.test", "https://model.test/?k=v", "https://model.test/#f", "https:opaque", "http://10.0.0.1", ":"} {
		if _, err := l.p.NewShim(u); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", u, err)
		}
	}
	for _, u := range []string{"https://model.test", "http://127.0.0.1:8080/v1", "http://[::1]:80", "http://localhost/"} {
		if _, err := l.p.NewShim(u); err != nil {
			t.Errorf("%q: %v", u, err)
		}
	}
}
