package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
)

// frame is one frame; a client's is masked.
func frame(first byte, payload string, masked bool) []byte {
	b := []byte{first}
	bit := byte(0)
	if masked {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, bit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
	p := []byte(payload)
	if masked {
		h := frameHead{mask: [4]byte{1, 2, 3, 4}}
		b = append(b, h.mask[:]...)
		h.unmask(p, 0)
	}
	return append(b, p...)
}

// talk is an origin that answers each text message with a document and hands on all frames it gets.
func talk(t *testing.T, got chan<- []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-Websocket-Extensions") != "" {
			t.Error("an extension was offered")
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: accepted\r\n\r\n")
		for {
			h, err := readFrameHead(rw)
			if err != nil {
				close(got)
				return
			}
			b := make([]byte, h.size)
			if _, err := io.ReadFull(rw, b); err != nil {
				return
			}
			raw := append(append([]byte(nil), h.raw[:h.n]...), b...)
			got <- raw
			if h.final && !h.control() {
				answer := frame(0x81, `{"type":"response.output_item.done","item":{"type":"function_call","call_id":"call_`+fmt.Sprint(len(b))+`","name":"f","arguments":"{}"}}`, false)
				conn.Write(answer[:7]) // in two pieces
				conn.Write(answer[7:])
			}
		}
	}
}

// socket opens a web socket through the proxy.
func (l *lab) socket() (net.Conn, *bufio.Reader) {
	l.t.Helper()
	conn, err := net.Dial("tcp", l.url.Host)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprint(conn, "CONNECT model.test:443 HTTP/1.1\r\nHost: model.test:443\r\n\r\n")
	r := bufio.NewReader(conn)
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 200 {
		l.t.Fatalf("%v %v", res, err)
	}
	c := tls.Client(conn, &tls.Config{ServerName: "model.test", RootCAs: pool(l.t, l.ca)})
	fmt.Fprint(c, "GET /v1/responses HTTP/1.1\r\nHost: model.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Extensions: permessage-deflate\r\nUser-Agent: codex_cli_rs/0.171.0\r\n\r\n")
	r = bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 101 || res.Header.Get("Sec-WebSocket-Accept") != "accepted" {
		l.t.Fatalf("%v %v", res, err)
	}
	return c, r
}

func next(t *testing.T, r io.Reader) (frameHead, string) {
	t.Helper()
	h, err := readFrameHead(r)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, h.size)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return h, string(b)
}

func TestWebSocket(t *testing.T) {
	got := make(chan []byte, 16)
	l := newLab(t, bundle, talk(t, got), nil)
	c, r := l.socket()
	long := strings.Repeat("x", 1<<20)
	sent := [][]byte{
		frame(0x81, `{"model":"m"}`, true), frame(0x89, "ping", true), frame(0x01, `{"model":`, true), frame(0x80, `"m2"}`, true), frame(0x82, long, true),
	}
	for _, b := range sent {
		for i := 0; i < len(b); i += 100_001 { // in pieces
			if _, err := c.Write(b[i:min(i+100_001, len(b))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range sent {
		if b := <-got; !bytes.Equal(b, want) {
			t.Errorf("%.20q became %.20q", want, b)
		}
	}
	for range 3 {
		if h, text := next(t, r); h.opcode != opText || !strings.Contains(text, "function_call") {
			t.Errorf("%+v %q", h, text)
		}
	}
	c.Write(frame(0x88, "\x03\xe8", true))
	c.Close()
	d := l.decision(0)
	calls := bodies[*event.ToolCall](l)
	if d.Upgraded != "websocket" || d.Messages != 3 || d.Decision != "allow" || d.Status != 101 || d.RequestBytes != 13+9+5+1<<20 || d.ToolCalls != 3 || d.ResponseUnread != "" || len(calls) != 3 {
		t.Errorf("%+v", d)
	} else if calls[0].ID != "call_13" || calls[0].Agent != "codex" || calls[0].Request != d.ID {
		t.Errorf("%+v", calls[0])
	}
}

func TestWebSocketRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		send   []byte
		code   uint16
		reason string
		rule   string
	}{
		{"a secret", append(frame(0x01, `{"k":"AKIAIOSFOD`, true), frame(0x80, `NN7EXAMPLE"}`, true)...), closePolicy, "a private key", "key"},
		{"not masked", frame(0x81, "x", false), closeProtocol, "not WebSocket", ""},
		{"compressed", frame(0xc1, "x", true), closeProtocol, "extension", ""},
		{"a fragment of nothing", frame(0x80, "x", true), closeProtocol, "not WebSocket", ""},
		{"a long ping", frame(0x89, strings.Repeat("x", 126), true), closeProtocol, "not WebSocket", ""},
		{"too large", frame(0x82, strings.Repeat("x", 2<<20), true), closePolicy, "larger", ""},
	} {
		got := make(chan []byte, 16)
		l := newLab(t, bundle, talk(t, got), func(c *Config) { c.MaxBody = 1 << 20 })
		conn, r := l.socket()
		go conn.Write(c.send)
		h, text := next(t, r)
		if h.opcode != opClose || len(text) < 2 || binary.BigEndian.Uint16([]byte(text)) != c.code || !strings.Contains(text, c.reason) {
			t.Errorf("%s: %+v %q", c.name, h, text)
		}
		conn.Close()
		d := l.decision(0)
		if d.Decision != "deny" || d.Rule != c.rule || d.Upgraded != "websocket" {
			t.Errorf("%s: %+v", c.name, d)
		}
		if b, any := <-got; any {
			t.Errorf("%s: the origin got %.20q", c.name, b)
		}
		if held, spooled := l.p.held.Load(), l.p.spooled.Load(); held != 0 || spooled != 0 {
			t.Errorf("%s: %d and %d bytes still counted", c.name, held, spooled)
		}
	}
}

// An origin that speaks no WebSocket answers as it does.
func TestWebSocketNotAccepted(t *testing.T) {
	l := newLab(t, bundle, nil, nil)
	req, err := http.NewRequest("GET", "https://model.test/v1/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	res, err := l.client(false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || string(b) != "answer to " {
		t.Errorf("%d %q %v", res.StatusCode, b, err)
	}
	if d := l.decision(0); d.Upgraded != "" || d.Status != 200 || d.Decision != "allow" {
		t.Errorf("%+v", d)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(append(frame(0x01, "he", false), frame(0x80, "llo", false)...))
	f.Add(frame(0x82, strings.Repeat("x", 70000), false))
	f.Add(frame(0x89, "ping", true))
	f.Fuzz(func(t *testing.T, b []byte) {
		var text []byte
		err := readMessages(bytes.NewReader(b), func(p []byte) { text = append(text, p...) })
		if len(text) > len(b) {
			t.Fatalf("%d bytes of text in %d, %v", len(text), len(b), err)
		}
		if err == nil && len(b) > 0 && len(text) == len(b) {
			t.Fatal("frames without heads")
		}
	})
}
