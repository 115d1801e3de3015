package ingest

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	maxPlain  = 4 << 30   // bytes of one record, decompressed
	maxWindow = 128 << 20 // bytes the decoder may keep
)

// Decompress reads a compressed record to its end, however many frames it has, and returns its rows. Read again, it
// goes on where it was: rows that were returned do not come twice. A record that is cut off gives the rows of
// what is there, and an error.
func (f *File) Decompress(r io.Reader) ([]Row, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxPlain))
	if err != nil {
		return nil, fmt.Errorf("decompress record: %w", err)
	}
	defer d.Close()
	skip := f.offset + int64(len(f.buf))
	if _, err := io.CopyN(io.Discard, d, skip); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil // nothing new
		}
		return nil, fmt.Errorf("decompress record: %w", err)
	}
	var rows []Row
	buf := make([]byte, 64<<10)
	for total := skip; ; {
		n, err := d.Read(buf)
		rows = append(rows, f.Feed(buf[:n])...)
		if total += int64(n); total > maxPlain {
			return rows, fmt.Errorf("decompress record: over %d bytes", int64(maxPlain))
		}
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, fmt.Errorf("decompress record: %w", err)
		}
	}
}
