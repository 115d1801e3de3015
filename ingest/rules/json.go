package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

var errNoObject = errors.New("not a JSON object")

// object decodes one level of an object; of a repeated key the last counts, as in JavaScript.
func object(b []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("%w: syntax error at byte %d", errNoObject, syntax.Offset)
		}
		return nil, errNoObject
	}
	if m == nil { // null
		return nil, errNoObject
	}
	return m, nil
}

// stringList returns the strings of an array and how many of its elements were none.
func stringList(raw json.RawMessage) (list []string, odd int) {
	if raw == nil {
		return nil, 0
	}
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil, 1
	}
	for _, one := range all {
		var s *string
		if json.Unmarshal(one, &s) != nil || s == nil {
			odd++
			continue
		}
		list = append(list, *s)
	}
	return list, odd
}

func is(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "true" }

// lines finds the line of a string by looking for it as it would be written.
type lines struct{ b []byte }

func newLines(b []byte) lines { return lines{b} }

// of is the line (from 1) on which a string first stands, 0 when it is written with other escapes.
func (l lines) of(s string) int {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return 0
	}
	i := bytes.Index(l.b, bytes.TrimSpace(buf.Bytes()))
	if i < 0 {
		return 0
	}
	return 1 + bytes.Count(l.b[:i], []byte("\n"))
}
