package policy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/ryehq/rye/policy/content"
)

// peak is this process's largest resident set since the last reset, in bytes.
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

// 64 MiB are judged to their end in little memory, whatever they are packed in; a byte more of a packed body is too
// much to be known.
func TestLargeBodies(t *testing.T) {
	b := mustParse(t, one("deny", "{secrets: any}"))
	line := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog, again and again and again and again.\n", 10_000))
	pack := func(coding string, size int, end string) []byte {
		var out bytes.Buffer
		var w io.WriteCloser
		switch coding {
		case "gzip":
			w, _ = gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is a good one
		case "deflate":
			w, _ = zlib.NewWriterLevel(&out, zlib.BestSpeed)
		case "br":
			w = brotli.NewWriterLevel(&out, brotli.BestSpeed)
		case "zstd":
			z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
			if err != nil {
				t.Fatal(err)
			}
			w = z
		}
		for left := size - len(end); left > 0; left -= len(line) {
			if _, err := w.Write(line[:min(left, len(line))]); err != nil {
				t.Fatal(err)
			}
		}
		io.WriteString(w, end)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	judge := func(coding string, wire []byte) Decision {
		return inPieces(b, Head{Method: "POST", Host: "h", Path: "/", Header: map[string][]string{"Content-Encoding": {coding}}}, wire, 32<<10)
	}
	const secret = " AKIAIOSFODNN7EXAMPLE"
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		wire, more := pack(coding, content.MaxDecoded, secret), pack(coding, content.MaxDecoded+1, "")
		judge(coding, pack(coding, 1<<20, "")) // what is made once
		before := peak(t, true)
		d := judge(coding, wire)
		grown := peak(t, false) - before
		t.Logf("%s: the resident set grew by %.1f MB", coding, float64(grown)/1e6)
		if d.Action != Deny || d.Unjudged != "" || grown >= 16<<20 {
			t.Errorf("%s: %+v, %d bytes more", coding, d, grown)
		}
		if d := judge(coding, more); d.Action != Deny || !strings.Contains(d.Unjudged, content.ErrTooMuch.Error()) {
			t.Errorf("%s, one more: %+v", coding, d)
		}
	}
	e := NewEvaluator(b, Head{Method: "POST", Host: "h", Path: "/"})
	before := peak(t, true)
	for n := 0; n < content.MaxDecoded; n += len(line) {
		e.Write(line)
	}
	io.WriteString(e, secret)
	d := e.Close()
	if grown := peak(t, false) - before; d.Action != Deny || d.Unjudged != "" || grown >= 16<<20 {
		t.Errorf("plain: %+v, %d bytes more", d, grown)
	}
}
