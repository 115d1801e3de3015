package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hello is the first message of a TLS client that asks for name.
func hello(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	go func() {
		// Long, as with many protocols or large key shares.
		_ = tls.Client(a, &tls.Config{ServerName: name, NextProtos: []string{strings.Repeat("p", 200), strings.Repeat("q", 200), strings.Repeat("r", 255)}}).Handshake()
	}()
	defer a.Close()
	defer b.Close()
	buf := make([]byte, 8<<10)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// inRecords splits the handshake message over TLS records of n bytes.
func inRecords(b []byte, n int) []byte {
	var out []byte
	for m := b[5:]; len(m) > 0; {
		k := min(n, len(m))
		out = append(append(out, 22, 3, 1, byte(k>>8), byte(k)), m[:k]...)
		m = m[k:]
	}
	return out
}

// scripted is a connection that gives bytes in pieces.
type scripted struct {
	net.Conn
	b    []byte
	step int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b[:min(s.step, len(s.b))])
	s.b = s.b[n:]
	return n, nil
}

func (s *scripted) SetReadDeadline(time.Time) error { return nil }

func TestServerName(t *testing.T) {
	b := hello(t, "late.test")
	for _, wire := range [][]byte{b, inRecords(b, 100), inRecords(b, 1), append(b[:len(b):len(b)], "more"...)} {
		for _, step := range []int{1, 5, 700, len(wire)} {
			name, seen, err := serverName(&scripted{b: wire, step: step})
			if name != "late.test" || err != nil || !bytes.HasPrefix(wire, seen) {
				t.Errorf("in steps of %d: %q %v", step, name, err)
			}
		}
	}
	for _, wire := range []string{"SSH-2.0-x\r\n", "\x16\x03\x01\xff\xff", "\x16", "\x16" + strings.Repeat("\x03", 100_000)} {
		if name, seen, _ := serverName(&scripted{b: []byte(wire), step: 1000}); name != "" || !strings.HasPrefix(wire, string(seen)) {
			t.Errorf("%.20q: %q", wire, name)
		}
	}
}

func FuzzServerName(f *testing.F) {
	f.Add(hello(f, "late.test"), uint16(100))
	f.Add([]byte("\x16\x03\x01\x00\x01\x01"), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, step uint16) {
		name, seen, _ := serverName(&scripted{b: b, step: len(b)})
		again, _, _ := serverName(&scripted{b: b, step: int(step) + 1})
		if name != again {
			t.Fatalf("%q and %q", name, again)
		}
		if !bytes.HasPrefix(b, seen) {
			t.Fatal("what was read is not what came")
		}
	})
}

// The host of the CONNECT, the name in the handshake and the Host field have to agree.
func TestNamesDisagree(t *testing.T) {
	for _, c := range []struct {
		host, sni string
		ok        bool
		rule      string
		status    string
	}{
		{"other.test", "other.test", true, "", ""},
		{"other.test", "OTHER.test", true, "", ""},
		{"other.test", "model.test", false, "", "name-mismatch"},
		{"other.test", "closed.test", false, "", "name-mismatch"},
		{"127.0.0.1", "other.test", true, "", ""},
		{"127.0.0.1", "closed.test", false, "closed", "name-mismatch"},
		{"127.0.0.1", "model.test", false, "", "name-mismatch"},
		{"model.test", "other.test", false, "", "name-mismatch"},
		{"model.test", "", true, "", ""},
	} {
		l := newLab(t, bundle, nil, nil)
		conn, err := net.Dial("tcp", l.url.Host)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", c.host, c.host)
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 200 {
			t.Fatalf("%v %v", res, err)
		}
		err = tls.Client(conn, &tls.Config{ServerName: c.sni, InsecureSkipVerify: true}).Handshake()
		conn.Close()
		if (err == nil) != c.ok && c.sni != "" { // an origin of many names wants one
			t.Errorf("%+v: %v", c, err)
		}
		if c.host == "model.test" && c.ok {
			continue // opened, and nothing asked: there is no event
		}
		d := l.decision(0)
		if d.Error != c.status || d.Rule != c.rule || d.SNI != c.sni || (d.Decision == "allow") != c.ok {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}
