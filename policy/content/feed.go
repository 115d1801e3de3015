package content

import (
	"io"
	"iter"
	"unicode/utf8"
)

// A Feed turns pushed bytes into an [io.Reader]: the reading side runs as a coroutine that sleeps
// whenever it wants bytes that are not there yet. No goroutine runs beside the caller's.
type Feed struct {
	data  []byte
	eof   bool
	done  bool // the reading side has returned
	yield func(struct{}) bool
	next  func() (struct{}, bool)
	stop  func()
}

// NewFeed starts read when the first bytes come. Close must be called in the end.
func NewFeed(read func(*Feed)) *Feed {
	f := &Feed{}
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		read(f)
	})
	return f
}

// Write hands b to the reading side until it wants more or has returned. It reports bytes left over.
func (f *Feed) Write(b []byte) (left int) {
	if !f.done {
		f.data = b
		f.resume()
	}
	left = len(f.data)
	if f.done && f.data == nil {
		left = len(b)
	}
	f.data = nil
	return left
}

// Close ends the bytes; the reading side is run to its end.
func (f *Feed) Close() {
	if f.eof = true; !f.done {
		f.resume()
	}
	f.stop()
}

// Done reports whether the reading side has returned.
func (f *Feed) Done() bool { return f.done }

func (f *Feed) resume() {
	if _, more := f.next(); !more {
		f.done = true
	}
}

func (f *Feed) wait() bool {
	for len(f.data) == 0 {
		if f.eof || !f.yield(struct{}{}) {
			return false
		}
	}
	return true
}

// Read implements [io.Reader] for the reading side.
func (f *Feed) Read(p []byte) (int, error) {
	if !f.wait() {
		return 0, io.EOF
	}
	n := copy(p, f.data)
	f.data = f.data[n:]
	return n, nil
}

// ReadByte lets decoders read exactly what they need, so that bytes after their end are noticed.
func (f *Feed) ReadByte() (byte, error) {
	if !f.wait() {
		return 0, io.EOF
	}
	c := f.data[0]
	f.data = f.data[1:]
	return c, nil
}

// Runes reads UTF-8 from a feed as package regexp wants it.
type Runes struct{ *Feed }

// ReadRune implements [io.RuneReader].
func (r Runes) ReadRune() (rune, int, error) {
	if !r.wait() {
		return 0, 0, io.EOF
	}
	if c := r.data[0]; c < utf8.RuneSelf {
		r.data = r.data[1:]
		return rune(c), 1, nil
	}
	if utf8.FullRune(r.data) {
		c, n := utf8.DecodeRune(r.data)
		r.data = r.data[n:]
		return c, n, nil
	}
	// A sequence cut by the end of what is here: join it with what comes.
	var buf [utf8.UTFMax]byte
	n := copy(buf[:], r.data)
	have := n
	r.data = nil
	for !utf8.FullRune(buf[:have]) && r.wait() {
		buf[have] = r.data[0]
		have++
		r.data = r.data[1:]
	}
	c, size := utf8.DecodeRune(buf[:have])
	if size < have {
		r.data = append(append([]byte(nil), buf[size:have]...), r.data...)
	}
	return c, size, nil
}
