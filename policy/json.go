package policy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
)

// Bounds on what is kept of a body. A name beyond them is not lost silently: over is set.
const (
	maxNames  = 1024 // models and tools
	maxString = 256  // bytes of a key or name
	maxTrack  = 6    // nesting in which names are looked for
)

// A jsonScanner picks model and tool names out of a request body as it passes, one byte at a time but for
// the insides of strings. It does not check that the body is JSON; what is none has no names.
//
// A name that occurs twice is kept twice: which one a server takes is the server's business.
type jsonScanner struct {
	models []string
	tools  []string
	over   bool

	depth int
	stack [maxTrack + 1]frame // containers from the top level
	in    bool                // inside a string
	esc   bool                // after a backslash
	isKey bool
	long  bool // the string is longer than text holds
	keep  bool // the string may be wanted
	text  []byte
}

type frame struct {
	object  bool
	wantKey bool // the next string is a key
	value   bool // a value is due: after a colon
	key     string
}

func (s *jsonScanner) write(b []byte) {
	for len(b) > 0 {
		if s.in {
			b = s.inString(b)
			continue
		}
		c := b[0]
		b = b[1:]
		switch c {
		case '"':
			s.begin()
		case '{', '[':
			s.depth++
			if s.depth <= maxTrack {
				s.stack[s.depth] = frame{object: c == '{', wantKey: c == '{'}
			}
		case '}', ']':
			if s.depth > 0 {
				s.depth--
			}
		case ':':
			if f := s.top(); f != nil {
				f.value = true
			}
		case ',':
			if f := s.top(); f != nil {
				f.wantKey, f.value = f.object, false
			}
		}
	}
}

func (s *jsonScanner) top() *frame {
	if s.depth == 0 || s.depth > maxTrack {
		return nil
	}
	return &s.stack[s.depth]
}

func (s *jsonScanner) begin() {
	s.in, s.esc, s.long, s.text = true, false, false, s.text[:0]
	f := s.top()
	s.isKey = f != nil && f.wantKey
	s.keep = s.isKey || f != nil && f.value && (f.key == "model" || f.key == "name")
}

// inString takes bytes up to the end of the string and returns the rest.
func (s *jsonScanner) inString(b []byte) []byte {
	if s.esc {
		s.esc = false
		s.take(b[:1])
		return b[1:]
	}
	if !s.keep {
		return s.skip(b)
	}
	i := plain(b)
	s.take(b[:i])
	switch {
	case i == len(b):
		return nil
	case b[i] == '"':
		s.end()
		return b[i+1:]
	case i+1 < len(b): // an escape that is here whole
		s.take(b[i : i+2])
		return b[i+2:]
	}
	s.take(b[i:])
	s.esc = true
	return nil
}

// skip passes over a string that is not wanted: to the first quote behind an even number of backslashes. Bodies are
// mostly such strings.
func (s *jsonScanner) skip(b []byte) []byte {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '"')
		if i < 0 {
			s.esc = odd(b)
			return nil
		}
		at += i
		if !odd(b[:at]) {
			s.in = false
			return b[at+1:]
		}
	}
}

// odd reports whether b ends in an odd number of backslashes.
func odd(b []byte) bool {
	n := len(b)
	for n > 0 && b[n-1] == '\\' {
		n--
	}
	return (len(b)-n)%2 == 1
}

// plain is the length of b up to the first quote or backslash. It looks at eight bytes at a time: x-1 borrows
// into the high bit of a byte only where x has a zero byte.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^(ones*'"'), w^(ones*'\\')
		if hit := ((q-ones)&^q | (s-ones)&^s) & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b) && b[i] != '"' && b[i] != '\\'; i++ {
	}
	return i
}

func (s *jsonScanner) take(b []byte) {
	if !s.keep || s.long {
		return
	}
	if len(s.text)+len(b) > maxString {
		s.long = true
		return
	}
	s.text = append(s.text, b...)
}

func (s *jsonScanner) end() {
	s.in = false
	f := s.top()
	if !s.keep || f == nil {
		return
	}
	if s.isKey && bytes.IndexByte(s.text, '\\') < 0 {
		f.key, f.wantKey = knownKey(s.text), false
		if s.long {
			f.key = ""
		}
		return
	}
	text := string(s.text)
	if bytes.IndexByte(s.text, '\\') >= 0 {
		if json.Unmarshal(slices.Concat([]byte{'"'}, s.text, []byte{'"'}), &text) != nil {
			text = ""
		}
	}
	if s.isKey {
		f.key, f.wantKey = knownKey([]byte(text)), false
		if s.long {
			f.key = ""
		}
		return
	}
	f.value = false
	switch {
	case s.depth == 1 && f.key == "model" && text != "":
		s.models = s.add(s.models, text)
	case f.key == "name" && s.inTools():
		s.tools = s.add(s.tools, text)
	}
}

// knownKey is a key that is asked about, "" for any other: most keys then need no memory.
func knownKey(key []byte) string {
	switch string(key) {
	case "model":
		return "model"
	case "name":
		return "name"
	case "tools":
		return "tools"
	case "functions":
		return "functions"
	case "function":
		return "function"
	case "functionDeclarations", "function_declarations":
		return "functionDeclarations"
	}
	return ""
}

func (s *jsonScanner) add(list []string, text string) []string {
	if s.long || len(list) == maxNames {
		s.over = true
		return list
	}
	return append(list, text)
}

// inTools recognises where the APIs put a tool's name: tools[].name (Anthropic, OpenAI Responses),
// tools[].function.name (OpenAI Chat), tools[].functionDeclarations[].name (Gemini).
func (s *jsonScanner) inTools() bool {
	if !s.stack[1].object || s.stack[1].key != "tools" && s.stack[1].key != "functions" || s.stack[2].object {
		return false
	}
	switch s.depth {
	case 3:
		return true
	case 4:
		return s.stack[3].key == "function"
	case 5:
		return s.stack[3].key == "functionDeclarations"
	}
	return false
}
