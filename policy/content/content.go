// Package content undoes the content codings of a body (RFC 9110, 8.4) on a copy, as its bytes pass: bytes are
// pushed in and come out decoded, in the caller's goroutine and in bounded memory. The body itself is never
// touched.
//
// It is a leaf: the standard library and decoders for compressed data.
package content

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
	MaxDecoded  = 64 << 20 // of one body
	maxWindow   = 8 << 20  // of zstd; RFC 8878 asks decoders for this much
	maxEncoding = 3        // encodings on top of each other
)

// A Decoder undoes the codings of one body as its bytes arrive. It is for one goroutine.
type Decoder struct {
	out   func([]byte)
	outer *Feed // nil when the body is not encoded
	total int64
	why   string // why the body could not be decoded whole
}

// ErrTooMuch says that a body decodes to more than MaxDecoded.
var ErrTooMuch = errors.New("decodes to more than is judged")

// NewDecoder takes the values of Content-Encoding and hands what it decodes to out.
func NewDecoder(encodings []string, out func([]byte)) *Decoder {
	d := &Decoder{out: out}
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
	d.outer = NewFeed(func(f *Feed) {
		if err := d.run(f, names); err != nil {
			d.why = fmt.Sprintf("decode body (%s): %v", strings.Join(names, ", "), err)
		}
	})
	return d
}

// run decodes to the end. The encoding applied last is undone first.
func (d *Decoder) run(in *Feed, names []string) error {
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
		if d.total += int64(n); d.total > MaxDecoded {
			return ErrTooMuch
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
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(MaxDecoded))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return nil, nil, errors.New("unknown encoding")
}

// Write takes the next bytes as they are on the wire.
func (d *Decoder) Write(p []byte) {
	if d.outer == nil {
		d.out(p)
		return
	}
	if left := d.outer.Write(p); left > 0 && d.why == "" {
		d.why = "bytes after the end of the encoded body"
	}
}

// Close ends the body and says why it could not be decoded whole, "" when it was.
func (d *Decoder) Close() string {
	if d.outer != nil {
		d.outer.Close()
	}
	return d.why
}
