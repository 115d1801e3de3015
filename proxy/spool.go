package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	inMemory  = 256 << 10 // of a body; what is beyond goes to a file without a name
	pieceSize = 64 << 10
)

var (
	errTooLarge = errors.New("body too large to hold")
	errTooMuch  = errors.New("too much held")
	errSpool    = errors.New("body cannot be kept")
)

// A spool keeps a body until it is judged: its beginning in memory, the rest in a file that has no name and is
// readable by nobody else. Both are counted against the proxy's bounds until release.
type spool struct {
	p    *Proxy
	mem  []byte
	file *os.File
	size int64 // of both
}

// fill reads r to its end. each is called with every piece.
func (s *spool) fill(r io.Reader, hint int64, each func([]byte)) error {
	var piece *[pieceSize]byte
	for {
		var buf []byte
		if len(s.mem) < inMemory {
			if err := s.grow(hint); err != nil {
				return err
			}
			buf = s.mem[len(s.mem):min(cap(s.mem), inMemory)]
		} else {
			if piece == nil {
				piece = pieces.Get().(*[pieceSize]byte)
				defer pieces.Put(piece)
			}
			buf = piece[:]
		}
		n, err := r.Read(buf)
		each(buf[:n])
		s.size += int64(n)
		if len(s.mem) < inMemory {
			s.mem = s.mem[:len(s.mem)+n]
		} else if werr := s.write(buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if s.size > s.p.c.MaxBody {
			return errTooLarge
		}
	}
}

// add keeps p behind what is there.
func (s *spool) add(p []byte) error {
	if s.size+int64(len(p)) > s.p.c.MaxBody {
		return errTooLarge
	}
	for len(p) > 0 && len(s.mem) < inMemory {
		if err := s.grow(0); err != nil {
			return err
		}
		n := min(len(p), min(cap(s.mem), inMemory)-len(s.mem))
		s.mem = append(s.mem, p[:n]...)
		s.size += int64(n)
		p = p[n:]
	}
	s.size += int64(len(p))
	return s.write(p)
}

// grow makes room in memory, of the size that the client announced if it did.
func (s *spool) grow(hint int64) error {
	if len(s.mem) < cap(s.mem) {
		return nil
	}
	to := min(max(2*cap(s.mem), 4<<10), inMemory)
	if s.mem == nil && hint > 0 {
		to = int(min(hint+1, inMemory)) // one more, to meet the end without growing
	}
	if !reserve(&s.p.held, int64(to-cap(s.mem)), s.p.c.MaxHeld) {
		return errTooMuch
	}
	next := make([]byte, len(s.mem), to)
	copy(next, s.mem)
	s.mem = next
	return nil
}

func (s *spool) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if s.file == nil {
		f, err := unnamed(s.p.c.SpoolDir)
		if err != nil {
			return fmt.Errorf("%w: %w", errSpool, err)
		}
		s.file = f
	}
	if !reserve(&s.p.spooled, int64(len(b)), s.p.c.MaxSpool) {
		s.size -= int64(len(b)) // not kept, and not counted
		return errTooMuch
	}
	if _, err := s.file.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errSpool, err)
	}
	return nil
}

// reader returns the body from its beginning. Every reader is independent of the others.
func (s *spool) reader() io.ReadCloser {
	if s.size == 0 {
		return http.NoBody
	}
	r := io.Reader(bytes.NewReader(s.mem))
	if s.file != nil {
		r = io.MultiReader(r, io.NewSectionReader(s.file, 0, s.size-int64(len(s.mem))))
	}
	return io.NopCloser(r)
}

// release gives back what the spool holds. A reader that is still in use gets an error from the file.
func (s *spool) release() {
	s.p.held.Add(-int64(cap(s.mem)))
	if s.file != nil {
		s.p.spooled.Add(int64(len(s.mem)) - s.size)
		s.file.Close()
	}
}

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

func reserve(have *atomic.Int64, n, most int64) bool {
	if have.Add(n) <= most {
		return true
	}
	have.Add(-n)
	return false
}

// unnamed opens a new file that has no name in dir.
func unnamed(dir string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	// O_EXCL: nor can it be given one later.
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), "spooled body"), nil
	}
	f, err := os.CreateTemp(dir, "rye-body-*") // file systems that know no such files
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
