package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

const open = "id: open\nversion: 1\ndefault: allow\nrules:\n- {id: key, action: deny, when: {secrets: any}}\n- {id: huge, action: deny, when: {body_larger_than: 64MiB}}\n"

// digests answers with the size and SHA-256 of what it got.
func digests(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, r.Body, make([]byte, 32<<10))
	fmt.Fprintf(w, "%d %x %v %v", n, sum.Sum(nil), err, r.TransferEncoding)
}

// A text is n bytes of prose that nobody has to hold, with an end of its own.
func text(n int64, end string) (io.Reader, string) {
	line := []byte("The quick brown fox jumps over the lazy dog, again and again and again and again.\n")
	body := func() io.Reader {
		return io.MultiReader(io.LimitReader(&forever{line: line}, n-int64(len(end))), strings.NewReader(end))
	}
	sum := sha256.New()
	io.Copy(sum, body())
	return body(), hex.EncodeToString(sum.Sum(nil))
}

type forever struct {
	line []byte
	at   int
}

func (f *forever) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], f.line[f.at:])
		n, f.at = n+c, (f.at+c)%len(f.line)
	}
	return n, nil
}

// Bodies of any size pass whole, and a secret at their end is found.
func TestBodySizes(t *testing.T) {
	l := newLab(t, open, digests, func(c *Config) { c.SpoolDir = t.TempDir() })
	n := 0
	for _, h2 := range []bool{false, true} {
		for _, size := range []int64{0, 1, 4096, inMemory - 1, inMemory, inMemory + 1, inMemory + pieceSize, 3 << 20} {
			for _, end := range []string{"", " " + planted} {
				if size < int64(len(end)) {
					continue
				}
				for _, known := range []bool{false, true} {
					body, _ := text(size, end)
					b, err := io.ReadAll(body)
					if err != nil {
						t.Fatal(err)
					}
					sum := sha256.Sum256(b)
					req, err := http.NewRequest("POST", "https://model.test/v1/x", bytes.NewReader(b))
					if err != nil {
						t.Fatal(err)
					}
					if !known {
						req.Body, req.ContentLength, req.GetBody = io.NopCloser(bytes.NewReader(b)), -1, nil
					}
					res, err := l.client(h2).Do(req)
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(res.Body)
					if err != nil {
						t.Fatal(err)
					}
					d := l.decision(n)
					n++
					want := 200
					if end != "" {
						want = 403
					} else if !strings.HasPrefix(string(got), fmt.Sprintf("%d %x <nil>", size, sum)) {
						t.Errorf("h2 %v, %d bytes: %s", h2, size, got)
					}
					if res.StatusCode != want || d.RequestBytes != uint64(size) || d.RequestSHA256 != hex.EncodeToString(sum[:]) || d.RequestCut {
						t.Errorf("h2 %v, %d bytes, end %q: %d %+v", h2, size, end, res.StatusCode, d)
					}
				}
			}
		}
	}
	if held, spooled := l.p.held.Load(), l.p.spooled.Load(); held != 0 || spooled != 0 {
		t.Errorf("%d and %d bytes still counted", held, spooled)
	}
	if left, err := os.ReadDir(l.p.c.SpoolDir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// peak is the largest resident set of this process since the last call with reset.
func peak(t *testing.T, reset bool) int64 {
	t.Helper()
	if reset {
		debug.FreeOSMemory()
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
			t.Skipf("cannot measure: %v", err)
		}
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Skip("no VmHWM")
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// 64 MB pass in little memory: client, proxy and origin together, plain and compressed.
func TestLargeBody(t *testing.T) {
	l := newLab(t, open, digests, nil)
	const size = 64 << 20
	send := func(h2, packed bool, end string) (int, string) {
		t.Helper()
		body, _ := text(size, end)
		req, err := http.NewRequest("POST", "https://model.test/v1/x", body)
		if err != nil {
			t.Fatal(err)
		}
		if packed {
			r, w := io.Pipe()
			go func() {
				z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a good one
				_, err := io.CopyBuffer(struct{ io.Writer }{z}, body, make([]byte, 32<<10))
				if err == nil {
					err = z.Close()
				}
				w.CloseWithError(err)
			}()
			req.Body = r
			req.Header.Set("Content-Encoding", "gzip")
		}
		c := l.client(h2)
		c.Timeout = 3 * time.Minute // a busy machine
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(got)
	}
	_, sum := text(size, "")
	for _, c := range []struct{ h2, packed bool }{{false, false}, {true, false}, {true, true}} {
		before := peak(t, true)
		status, got := send(c.h2, c.packed, "")
		grown := peak(t, false) - before
		t.Logf("%+v: the resident set grew by %.1f MB", c, float64(grown)/1e6)
		if status != 200 || !c.packed && !strings.HasPrefix(got, fmt.Sprintf("%d %s <nil>", size, sum)) {
			t.Errorf("%+v: %d %s", c, status, got)
		}
		if grown >= 16<<20 {
			t.Errorf("%+v: the resident set grew by %d bytes", c, grown)
		}
	}
	if status, _ := send(true, true, " "+planted); status != 403 {
		t.Errorf("a secret at the end: %d", status)
	}
}

func TestSpoolBounds(t *testing.T) {
	l := newLab(t, open, digests, func(c *Config) { c.MaxSpool = 1 << 20 })
	body, _ := text(2<<20, "")
	res, err := l.client(true).Post("https://model.test/", "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	if d := l.decision(0); res.StatusCode != 503 || d.Decision != "deny" || !d.RequestCut {
		t.Errorf("%d %+v", res.StatusCode, d)
	}
	l = newLab(t, open, digests, func(c *Config) { c.SpoolDir = "/nowhere" })
	body, _ = text(2<<20, "")
	if res, err = l.client(true).Post("https://model.test/", "text/plain", body); err != nil {
		t.Fatal(err)
	}
	if d := l.decision(0); res.StatusCode != 507 || d.Error != "spool" || d.Decision != "deny" || l.reached() != "" {
		t.Errorf("%d %+v", res.StatusCode, d)
	}
	if held, spooled := l.p.held.Load(), l.p.spooled.Load(); held != 0 || spooled != 0 {
		t.Errorf("%d and %d bytes still counted", held, spooled)
	}
}
