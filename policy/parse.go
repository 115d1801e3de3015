package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds on a bundle.
const (
	maxBundle = 1 << 20 // bytes
	maxRules  = 1000
)

// A ParseError says where a bundle is wrong.
type ParseError struct {
	Line, Col int // from 1; Col is 0 where the YAML reader gives only a line, Line too when neither is known
	Msg       string
}

func (e *ParseError) Error() string {
	switch {
	case e.Line == 0:
		return "parse policy: " + e.Msg
	case e.Col == 0:
		return fmt.Sprintf("parse policy: line %d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("parse policy: line %d, column %d: %s", e.Line, e.Col, e.Msg)
}

func bad(n *yaml.Node, format string, args ...any) error {
	return &ParseError{n.Line, n.Column, fmt.Sprintf(format, args...)}
}

// Parse reads a bundle, YAML or JSON. A bundle with anything wrong in it, unknown keys and duplicates
// included, is refused whole; the error is a [*ParseError].
func Parse(text []byte) (*Bundle, error) {
	if len(text) > maxBundle {
		return nil, &ParseError{Msg: fmt.Sprintf("larger than %d bytes", maxBundle)}
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" ")) // JSON may be indented with tabs, YAML may not
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, yamlError(err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, bad(&more, "more than one document")
	}
	return newParser().bundle(doc.Content[0])
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func yamlError(err error) error {
	if errors.Is(err, io.EOF) {
		return &ParseError{Msg: "empty"}
	}
	msg, line := err.Error(), 0
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	return &ParseError{Line: line, Msg: strings.TrimPrefix(msg, "yaml: ")}
}

type parser struct {
	b       *Bundle
	needles []needle
	texts   map[string]int // body_contains -> needle
	kinds   map[string][]int
	npat    int
	prefix  int // longest of the patterns'
}

func newParser() *parser { return &parser{b: &Bundle{}, texts: map[string]int{}} }

func (p *parser) bundle(n *yaml.Node) (*Bundle, error) {
	b := p.b
	var rules *yaml.Node
	err := mapping(n, func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "id":
			b.ID, err = name(v)
		case "version":
			b.Version, err = name(v)
		case "default":
			b.Default, err = action(v, Allow, Deny)
		case "rules":
			rules = v
		default:
			err = bad(k, "unknown key %q", key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case b.ID == "":
		return nil, bad(n, "id is missing")
	case b.Version == "":
		return nil, bad(n, "version is missing")
	case b.Default == "":
		return nil, bad(n, "default is missing: allow or deny")
	case rules == nil:
		return nil, bad(n, "rules are missing")
	case rules.Kind != yaml.SequenceNode:
		return nil, bad(rules, "rules is not a list")
	case len(rules.Content) > maxRules:
		return nil, bad(rules, "more than %d rules", maxRules)
	}
	seen := map[string]int{}
	for _, rn := range rules.Content {
		r, err := p.rule(rn)
		if err != nil {
			return nil, err
		}
		if line := seen[r.ID]; line > 0 {
			return nil, bad(rn, "rule id %q is used in line %d already", r.ID, line)
		}
		seen[r.ID] = r.Line
		b.Rules = append(b.Rules, r)
	}
	b.scan = newScanner(p.needles)
	b.scan.reach = max(b.scan.reach, p.prefix)
	return b, nil
}

func (p *parser) rule(n *yaml.Node) (Rule, error) {
	r := Rule{Line: n.Line}
	r.when.larger = -1
	var when *yaml.Node
	err := mapping(n, func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "id":
			r.ID, err = name(v)
		case "version":
			r.Version, err = name(v)
		case "action":
			r.Action, err = action(v, Allow, Deny, RequireApproval, Log)
		case "reason":
			r.Reason, err = text(v)
		case "when":
			when = v
		default:
			err = bad(k, "unknown key %q", key)
		}
		return err
	})
	switch {
	case err != nil:
		return r, err
	case r.ID == "":
		return r, bad(n, "rule has no id")
	case r.Action == "":
		return r, bad(n, "rule %s has no action", r.ID)
	case when == nil:
		return r, bad(n, "rule %s has no when; what holds for every request is the bundle's default", r.ID)
	case when.Kind == yaml.MappingNode && len(when.Content) == 0:
		return r, bad(when, "rule %s has an empty when", r.ID)
	}
	return r, mapping(when, func(key string, k, v *yaml.Node) error { return p.condition(&r.when, key, k, v) })
}

// mapping calls f for each key of n.
func mapping(n *yaml.Node, f func(key string, k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return bad(n, "not a mapping")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Tag != "!!str" {
			return bad(k, "key is not a plain word")
		}
		if seen[k.Value] {
			return bad(k, "key %q twice", k.Value)
		}
		seen[k.Value] = true
		if err := f(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}

// text is a string; a number counts as its spelling, so that `version: 3` is what it seems.
func text(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!int" && n.Tag != "!!float" {
		return "", bad(n, "not a text")
	}
	if n.Value == "" {
		return "", bad(n, "empty text")
	}
	return n.Value, nil
}

var nameShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

func name(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil && !nameShape.MatchString(s) {
		err = bad(n, "%q is not a name (letters, digits, . _ / -)", s)
	}
	return s, err
}

func action(n *yaml.Node, may ...Action) (Action, error) {
	s, err := text(n)
	if err != nil {
		return "", err
	}
	for _, a := range may {
		if string(a) == s {
			return a, nil
		}
	}
	return "", bad(n, "action %q is none of %v", s, may)
}

// list is a list of texts; one text counts as a list of one.
func list(n *yaml.Node) ([]*yaml.Node, error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	if len(nodes) == 0 {
		return nil, bad(n, "empty list")
	}
	for _, e := range nodes {
		if _, err := text(e); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}
