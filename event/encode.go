package event

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// AppendJSON appends e as one line of JSON without the newline.
//
// The form is canonical: keys in the order of the Go structs (seq, time_ns, type, proc, then the
// body's), no white space, map keys sorted, no escapes but those JSON requires. Equal events are
// equal bytes.
//
// Strings from the kernel need not be UTF-8. A byte that is not part of a valid UTF-8 sequence is
// written as the lone surrogate escape \udc80 … \udcff (0xdc00 + byte), which no valid text contains.
// This is the encoding of PEP 383: Python's os.fsencode(json.loads(line)["path"]) gives back the exact
// bytes, and so does [ParseJSON].
func (e *Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"time_ns":`...)
	b = strconv.AppendUint(b, e.TimeNS, 10)
	b = append(b, `,"type":`...)
	b = appendString(b, string(e.Type))
	if e.Proc != nil {
		b = append(b, `,"proc":`...)
		b = appendKey(b, *e.Proc)
	}
	if e.Body != nil {
		v := reflect.ValueOf(e.Body).Elem()
		b = appendFields(b, v, planOf(v.Type()), true)
	}
	return append(b, '}')
}

// MarshalJSON implements json.Marshaler.
func (e *Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

func appendKey(b []byte, k ProcessKey) []byte {
	b = append(b, `{"tgid":`...)
	b = strconv.AppendUint(b, uint64(k.TGID), 10)
	b = append(b, `,"start_ns":`...)
	b = strconv.AppendUint(b, k.StartNS, 10)
	return append(b, '}')
}

// A field is what the codec needs to know of a struct field, worked out once per type.
type field struct {
	name  string
	key   string // `"name":`
	index int
	omit  bool
}

var plans sync.Map // reflect.Type -> []field

func planOf(t reflect.Type) []field {
	if p, ok := plans.Load(t); ok {
		return p.([]field)
	}
	var p []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("json")
		name, opt, _ := strings.Cut(tag, ",")
		if name == "" || name == "-" {
			continue
		}
		p = append(p, field{name: name, key: strconv.Quote(name) + ":", index: i, omit: opt == "omitempty"})
	}
	plans.Store(t, p)
	return p
}

func appendFields(b []byte, v reflect.Value, plan []field, comma bool) []byte {
	for i := range plan {
		f := &plan[i]
		fv := v.Field(f.index)
		if f.omit && isEmpty(fv) {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(b, f.key...)
		b = appendValue(b, fv)
	}
	return b
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return appendString(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return appendValue(b, v.Elem())
	case reflect.Struct:
		b = append(b, '{')
		b = appendFields(b, v, planOf(v.Type()), false)
		return append(b, '}')
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, v.Index(i))
		}
		return append(b, ']')
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, k.String())
			b = append(b, ':')
			b = appendValue(b, v.MapIndex(k))
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("event: no JSON form for %s", v.Type())) // a body with such a field fails the tests
}

const hex = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		b = append(b, s[start:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, '\\', 'u', 'd', 'c', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
