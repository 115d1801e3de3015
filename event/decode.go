package event

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrUnknownType is returned (wrapped) by [ParseJSON] for a type this version does not know. The
// header is still filled in.
var ErrUnknownType = errors.New("unknown event type")

const maxDepth = 16 // nothing in the vocabulary nests deeper

// ParseJSON reads one line written by [Event.AppendJSON]. It accepts any JSON object whose header
// keys come before the body's; unknown keys are passed over, so that a newer rye's ledger can be read.
func ParseJSON(line []byte) (Event, error) {
	var e Event
	p := parser{b: line}
	if err := p.event(&e); err != nil {
		return e, fmt.Errorf("parse event at byte %d: %w", p.i, err)
	}
	return e, nil
}

// ParseHeader reads only the header: seq, time_ns, type, proc.
func ParseHeader(line []byte) (Header, error) {
	var e Event
	p := parser{b: line, headerOnly: true}
	if err := p.event(&e); err != nil && !errors.Is(err, ErrUnknownType) {
		return e.Header, fmt.Errorf("parse event at byte %d: %w", p.i, err)
	}
	return e.Header, nil
}

type parser struct {
	b          []byte
	i          int
	headerOnly bool
}

var errSyntax = errors.New("not the JSON form of an event")

func (p *parser) event(e *Event) error {
	var body reflect.Value
	var plan []field
	next := 0
	err := p.object(0, func(key []byte) error {
		switch string(key) {
		case "seq":
			return p.uint(&e.Seq)
		case "time_ns":
			return p.uint(&e.TimeNS)
		case "type":
			s, err := p.string()
			if err != nil {
				return err
			}
			e.Type = Type(s)
			if e.Body = newBody(e.Type); e.Body == nil {
				return fmt.Errorf("%w %q", ErrUnknownType, s)
			}
			body = reflect.ValueOf(e.Body).Elem()
			plan = planOf(body.Type())
			return nil
		case "proc":
			e.Proc = new(ProcessKey)
			return p.value(reflect.ValueOf(e.Proc).Elem(), 1)
		}
		if p.headerOnly {
			return errStop
		}
		if !body.IsValid() {
			return fmt.Errorf("%w: key %q before type", errSyntax, key)
		}
		return p.field(body, plan, &next, key, 1)
	})
	if err == errStop {
		return nil
	}
	if err == nil && p.i != len(p.b) {
		return errSyntax
	}
	if err == nil && e.Body == nil {
		return fmt.Errorf("%w: no type", errSyntax)
	}
	return err
}

var errStop = errors.New("stop")

// field decodes one member. Canonical order makes the next field of the plan the likely one.
func (p *parser) field(v reflect.Value, plan []field, next *int, key []byte, depth int) error {
	for n := range plan {
		k := (*next + n) % len(plan)
		if plan[k].name == string(key) {
			*next = k + 1
			return p.value(v.Field(plan[k].index), depth)
		}
	}
	return p.skip(depth)
}

func (p *parser) object(depth int, member func(key []byte) error) error {
	if depth > maxDepth || !p.take('{') {
		return errSyntax
	}
	if p.take('}') {
		return nil
	}
	for {
		key, err := p.stringBytes()
		if err != nil {
			return err
		}
		if !p.take(':') {
			return errSyntax
		}
		if err := member(key); err != nil {
			return err
		}
		if p.take('}') {
			return nil
		}
		if !p.take(',') {
			return errSyntax
		}
	}
}

func (p *parser) array(depth int, element func() error) error {
	if depth > maxDepth || !p.take('[') {
		return errSyntax
	}
	if p.take(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if p.take(']') {
			return nil
		}
		if !p.take(',') {
			return errSyntax
		}
	}
}

func (p *parser) value(v reflect.Value, depth int) error {
	switch v.Kind() {
	case reflect.String:
		s, err := p.string()
		if err == nil {
			v.SetString(s)
		}
		return err
	case reflect.Bool:
		switch {
		case p.word("true"):
			v.SetBool(true)
		case p.word("false"):
			v.SetBool(false)
		default:
			return errSyntax
		}
		return nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(string(p.number()), 10, v.Type().Bits())
		if err != nil {
			return errSyntax
		}
		v.SetInt(n)
		return nil
	case reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(string(p.number()), 10, v.Type().Bits())
		if err != nil {
			return errSyntax
		}
		v.SetUint(n)
		return nil
	case reflect.Pointer:
		if p.word("null") {
			v.SetZero()
			return nil
		}
		n := reflect.New(v.Type().Elem())
		if err := p.value(n.Elem(), depth); err != nil {
			return err
		}
		v.Set(n)
		return nil
	case reflect.Struct:
		plan, next := planOf(v.Type()), 0
		return p.object(depth, func(key []byte) error { return p.field(v, plan, &next, key, depth+1) })
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 4))
		return p.array(depth, func() error {
			v.Grow(1)
			v.SetLen(v.Len() + 1)
			v.Index(v.Len() - 1).SetZero()
			return p.value(v.Index(v.Len()-1), depth+1)
		})
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		return p.object(depth, func(key []byte) error {
			k := string(key)
			e := reflect.New(v.Type().Elem()).Elem()
			if err := p.value(e, depth+1); err != nil {
				return err
			}
			v.SetMapIndex(reflect.ValueOf(k), e)
			return nil
		})
	}
	return errSyntax
}

// skip passes over any JSON value.
func (p *parser) skip(depth int) error {
	if p.i >= len(p.b) {
		return errSyntax
	}
	switch p.b[p.i] {
	case '{':
		return p.object(depth, func([]byte) error { return p.skip(depth + 1) })
	case '[':
		return p.array(depth, func() error { return p.skip(depth + 1) })
	case '"':
		_, err := p.stringBytes()
		return err
	}
	if p.word("true") || p.word("false") || p.word("null") {
		return nil
	}
	start := p.i
	for p.i < len(p.b) && bytes.IndexByte([]byte("+-.eE0123456789"), p.b[p.i]) >= 0 {
		p.i++
	}
	if _, err := strconv.ParseFloat(string(p.b[start:p.i]), 64); err != nil {
		return errSyntax
	}
	return nil
}

func (p *parser) take(c byte) bool {
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parser) word(w string) bool {
	if len(p.b)-p.i >= len(w) && string(p.b[p.i:p.i+len(w)]) == w {
		p.i += len(w)
		return true
	}
	return false
}

// number returns an integer in JSON's form: no leading zeros, no plus sign.
func (p *parser) number() []byte {
	start := p.i
	p.take('-')
	digits := p.i
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
		p.i++
	}
	if n := p.b[digits:p.i]; len(n) > 1 && n[0] == '0' {
		return nil
	}
	return p.b[start:p.i]
}

func (p *parser) uint(to *uint64) error {
	n, err := strconv.ParseUint(string(p.number()), 10, 64)
	if err != nil {
		return errSyntax
	}
	*to = n
	return nil
}

func (p *parser) string() (string, error) {
	b, err := p.stringBytes()
	return string(b), err
}

// stringBytes returns the decoded string. It aliases the input where nothing was escaped.
func (p *parser) stringBytes() ([]byte, error) {
	if !p.take('"') {
		return nil, errSyntax
	}
	start := p.i
	for p.i < len(p.b) {
		switch c := p.b[p.i]; {
		case c == '"':
			p.i++
			return p.b[start : p.i-1], nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return nil, errSyntax
		}
		p.i++
	}
	return nil, errSyntax
}

func (p *parser) escaped(start int) ([]byte, error) {
	out := append(make([]byte, 0, len(p.b)-start), p.b[start:p.i]...)
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch {
		case c == '"':
			return out, nil
		case c < 0x20:
			return nil, errSyntax
		case c != '\\':
			out = append(out, c)
			continue
		}
		if p.i >= len(p.b) {
			return nil, errSyntax
		}
		c = p.b[p.i]
		p.i++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, ok := p.hex4()
			switch {
			case !ok:
				return nil, errSyntax
			case r >= 0xdc80 && r <= 0xdcff: // a byte that was not UTF-8
				out = append(out, byte(r))
				continue
			case utf16.IsSurrogate(r):
				if !p.word(`\u`) {
					return nil, errSyntax
				}
				low, ok := p.hex4()
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return nil, errSyntax
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			return nil, errSyntax
		}
	}
	return nil, errSyntax
}

func (p *parser) hex4() (rune, bool) {
	if len(p.b)-p.i < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.b[p.i:p.i+4]), 16, 16)
	p.i += 4
	return rune(n), err == nil
}
