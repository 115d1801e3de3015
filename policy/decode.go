package policy

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Bounds on decoding: a small body may not become a large amount of work or memory.
const (
	maxDecoded  = 64 << 20
	maxWindow   = 8 << 20 // of zstd; RFC 8878 asks decoders for this much
	maxEncoding = 3       // encodings on top of each other
)

// A decoder undoes a body's content encoding (RFC 9110, 8.4) as bytes arrive. What it hands on is for
// judging only; the body itself is not touched.
type decoder struct {
	out   func([]byte)
	outer *feed // nil when the body is not encoded
	total int64
	why   string // why the body could not be decoded whole
}

var errBomb = errors.New("decodes to more than is judged")

func newDecoder(encodings []string, out func([]byte)) *decoder {
	d := &decoder{out: out}
	var names []string
	for _, line := range encodings {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name != "" && name != "identity" {
				names = append(names, strings.TrimPrefix(name, "x-"))
			}
		}
	}
	if len(names) == 0 {
		return d
	}
	d.outer = newFeed(func(f *feed) {
		if err := d.run(f, names); err != nil {
			d.why = fmt.Sprintf("decode body (%s): %v", strings.Join(names, ", "), err)
		}
	})
	return d
}

// run decodes to the end. The encoding applied last is undone first.
func (d *decoder) run(in *feed, names []string) error {
	if len(names) > maxEncoding {
		return fmt.Errorf("more than %d encodings", maxEncoding)
	}
	var r io.Reader = in
	for i := len(names) - 1; i >= 0; i-- {
		next, free, err := open(names[i], r)
		if err != nil {
			return err
		}
		defer free()
		r = next
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if d.total += int64(n); d.total > maxDecoded {
			return errBomb
		}
		d.out(buf[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func open(name string, r io.Reader) (io.Reader, func(), error) {
	switch name {
	case "gzip":
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	case "deflate":
		z, err := zlib.NewReader(r)
		return z, func() {}, err
	case "br":
		return brotli.NewReader(r), func() {}, nil
	case "zstd":
		// One at a time: the decoder must read in the caller's coroutine.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return nil, nil, errors.New("unknown encoding")
}

func (d *decoder) write(p []byte) {
	if d.outer == nil {
		d.out(p)
		return
	}
	if left := d.outer.write(p); left > 0 && d.why == "" {
		d.why = "bytes after the end of the encoded body"
	}
}

// close ends the body and says why it could not be decoded whole, "" when it was.
func (d *decoder) close() string {
	if d.outer != nil {
		d.outer.close()
	}
	return d.why
}
