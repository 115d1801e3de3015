package content

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

type flusher interface {
	io.WriteCloser
	Flush() error
}

func encoder(t testing.TB, coding string, w io.Writer) flusher {
	t.Helper()
	switch coding {
	case "gzip":
		return gzip.NewWriter(w)
	case "deflate":
		return zlib.NewWriter(w)
	case "br":
		return brotli.NewWriter(w)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// What a server flushes comes out decoded at once: a stream of events is read while it runs.
func TestPrompt(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		var wire bytes.Buffer
		z := encoder(t, coding, &wire)
		var got strings.Builder
		d := NewDecoder([]string{coding}, func(p []byte) { got.Write(p) })
		var want string
		for i := range 20 {
			text := fmt.Sprintf("event %d\n", i)
			want += text
			if _, err := io.WriteString(z, text); err != nil {
				t.Fatal(err)
			}
			if err := z.Flush(); err != nil {
				t.Fatal(err)
			}
			d.Write(wire.Next(wire.Len()))
			if got.String() != want {
				t.Errorf("%s: after event %d: %q", coding, i, got.String())
				break
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		d.Write(wire.Bytes())
		if why := d.Close(); why != "" || got.String() != want {
			t.Errorf("%s: %q %q", coding, why, got.String())
		}
	}
}

// A connection that breaks off leaves what was decoded, and says so.
func TestCut(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		var wire bytes.Buffer
		z := encoder(t, coding, &wire)
		io.WriteString(z, "text")
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		d := NewDecoder([]string{coding}, func(p []byte) { got.Write(p) })
		d.Write(wire.Bytes())
		if why := d.Close(); why == "" || got.String() != "text" {
			t.Errorf("%s: %q %q", coding, why, got.String())
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		var wire bytes.Buffer
		z := encoder(f, coding, &wire)
		io.WriteString(z, "some text, some text")
		if err := z.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(coding, wire.Bytes(), uint16(3))
	}
	f.Add("gzip, br", []byte("x"), uint16(1))
	f.Fuzz(func(t *testing.T, codings string, b []byte, step uint16) {
		run := func(step int) (string, string) {
			var got []byte
			d := NewDecoder([]string{codings}, func(p []byte) { got = append(got, p[:min(len(p), 1<<20-min(len(got), 1<<20))]...) })
			for rest := b; len(rest) > 0; {
				n := min(step, len(rest))
				d.Write(rest[:n])
				rest = rest[n:]
			}
			return string(got), d.Close()
		}
		got, why := run(len(b) + 1)
		again, whyAgain := run(int(step) + 1)
		if got != again || (why == "") != (whyAgain == "") {
			t.Fatalf("in steps of %d: %q %q, want %q %q", step+1, again, whyAgain, got, why)
		}
	})
}
