package wrapper

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// castWriter writes an asciicast v2 recording: a header line, then one line an event,
//
//	[seconds, "o"|"i"|"r"|"m", text]
//
// for output, input, size ("COLSxROWS") and a note of rye's own. Seconds have six decimals and count from
// the start of the session.
//
// JSON text is Unicode and terminal bytes need not be. A character cut by the end of a piece is held back
// and joined with the next piece of the same direction; every byte that is no part of a character is written
// as U+FFFD, so a recording is not a byte-exact copy of output that is not UTF-8.
type castWriter struct {
	w     *bufio.Writer
	start uint64 // boottime ns
	held  [2]heldBytes
	line  []byte
}

// heldBytes is the beginning of a UTF-8 sequence.
type heldBytes struct {
	b    []byte // at most 3
	time uint64
}

// castHeader is what the recording says of its circumstances.
type castHeader struct {
	cols, rows int
	start      uint64    // boottime ns
	wall       time.Time // the same moment
	command    []string
	env        []string
}

func newCastWriter(w io.Writer, h castHeader) (*castWriter, error) {
	c := &castWriter{w: bufio.NewWriterSize(w, 64<<10), start: h.start}
	env := make(map[string]string)
	for _, name := range []string{"TERM", "SHELL"} {
		if v, ok := lookupEnv(h.env, name); ok {
			env[name] = v
		}
	}
	// Players refuse a size of 0, which a terminal can have.
	if h.cols == 0 || h.rows == 0 {
		h.cols, h.rows = 80, 24
	}
	line, err := json.Marshal(struct {
		Version   int               `json:"version"`
		Width     int               `json:"width"`
		Height    int               `json:"height"`
		Timestamp int64             `json:"timestamp"`
		Command   string            `json:"command"`
		Env       map[string]string `json:"env"`
	}{2, h.cols, h.rows, h.wall.Unix(), shellQuote(h.command), env})
	if err != nil {
		return nil, fmt.Errorf("encode recording header: %w", err)
	}
	if _, err := c.w.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("write recording: %w", err)
	}
	return c, nil
}

// shellQuote joins words so that a shell would split them again.
func shellQuote(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		safe := w != "" && strings.IndexFunc(w, func(r rune) bool {
			return !strings.ContainsRune("%+,-./:=@_", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) < 0
		if !safe {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		q[i] = w
	}
	return strings.Join(q, " ")
}

// write records one item.
func (c *castWriter) write(it item, p []byte) error {
	if it.skipped > 0 {
		what := [2]string{"output", "input"}[it.kind]
		if err := c.note(it.time, fmt.Sprintf("rye: %d bytes of %s not recorded", it.skipped, what)); err != nil {
			return err
		}
	}
	if it.kind == itemResize {
		return c.event(it.time, 'r', fmt.Appendf(nil, "%dx%d", it.cols, it.rows))
	}
	h := &c.held[it.kind]
	text := p
	if len(h.b) > 0 {
		text = append(h.b, p...)
		h.b = nil
	}
	if tail := incompleteTail(text); tail > 0 {
		h.b = append([]byte(nil), text[len(text)-tail:]...)
		h.time = it.time
		text = text[:len(text)-tail]
	}
	if len(text) == 0 {
		return nil
	}
	return c.event(it.time, "oi"[it.kind], text)
}

func (c *castWriter) note(time uint64, text string) error { return c.event(time, 'm', []byte(text)) }

func (c *castWriter) event(time uint64, code byte, text []byte) error {
	us := uint64(0)
	if time > c.start {
		us = (time - c.start) / 1000
	}
	b := append(c.line[:0], '[')
	b = strconv.AppendUint(b, us/1e6, 10)
	b = append(b, '.')
	frac := strconv.AppendUint(nil, us%1e6+1e6, 10)
	b = append(b, frac[1:]...) // the leading 1 kept the zeros
	b = append(b, `, "`...)
	b = append(b, code)
	b = append(b, `", `...)
	b = appendJSONString(b, text)
	b = append(b, "]\n"...)
	c.line = b
	if _, err := c.w.Write(b); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

func (c *castWriter) flush() error {
	if err := c.w.Flush(); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// close writes what was held back for a continuation that did not come.
func (c *castWriter) close() error {
	for i, h := range c.held {
		if len(h.b) > 0 {
			if err := c.event(h.time, "oi"[i], h.b); err != nil {
				return err
			}
		}
	}
	return c.flush()
}

// incompleteTail is the length of an unfinished UTF-8 sequence at the end of p, at most 3.
func incompleteTail(p []byte) int {
	for n := 1; n <= 3 && n <= len(p); n++ {
		if c := p[len(p)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// plainEight reports whether eight bytes are all printable ASCII that JSON takes as it is. (v - ones) & ^v & tops is not
// zero if and only if a byte of v is zero.
func plainEight(x uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	zero := func(v uint64) uint64 { return (v - ones) & ^v & tops }
	special := x&tops | (x-0x20*ones)&^x&tops | zero(x^'"'*ones) | zero(x^'\\'*ones) | zero(x^0x7f*ones)
	return special == 0
}

// appendJSONString appends text as a JSON string, invalid UTF-8 as U+FFFD a byte.
func appendJSONString(b, text []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for start, i := 0, 0; ; {
		for i+8 <= len(text) && plainEight(binary.LittleEndian.Uint64(text[i:])) {
			i += 8
		}
		for i < len(text) && text[i] >= 0x20 && text[i] < 0x7f && text[i] != '"' && text[i] != '\\' {
			i++
		}
		b = append(b, text[start:i]...)
		if i == len(text) {
			return append(b, '"')
		}
		switch ch := text[i]; {
		case ch >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(text[i:])
			b = utf8.AppendRune(b, r)
			i += n
		case ch == '"' || ch == '\\':
			b = append(b, '\\', ch)
			i++
		case ch == '\n':
			b = append(b, `\n`...)
			i++
		case ch == '\r':
			b = append(b, `\r`...)
			i++
		default:
			b = append(b, `\u00`...)
			b = append(b, hex[ch>>4], hex[ch&15])
			i++
		}
		start = i
	}
}
