package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Codex's Starlark has annotations and f-strings, which this parser does not read.
var otherDialect = regexp.MustCompile(`\bf["']|->|(?m:^\s*\w+\s*:)|def [^\n]*\(.*:.*\)`)

// errBounds: the file may be fine for Codex, but rye does not go so far to find out.
var errBounds = errors.New("beyond what rye runs")

// parse reads a file and lets only those constructs through whose cost the step counter bounds. Starlark
// counts steps, not bytes: list(range(1<<40)), "x" * 1<<30 and x + x in a row take few steps and all the
// memory there is, and comparing nested lists takes one. So operators, methods and the built-in functions
// are refused before anything runs.
func parseRules(opts *syntax.FileOptions, b []byte) (*syntax.File, error) {
	tree, err := opts.Parse("rules", b, 0)
	if e, ok := errors.AsType[syntax.Error](err); ok && strings.Contains(e.Msg, "excessive nesting") {
		return nil, fmt.Errorf("%w: line %d nests too deep", errBounds, e.Pos.Line) // the parser's own bound
	}
	if err != nil {
		if otherDialect.Match(b) {
			return nil, fmt.Errorf("%w: %w", errBounds, plain(err))
		}
		return nil, plain(err)
	}
	syntax.Walk(tree, func(n syntax.Node) bool {
		if n != nil && err == nil {
			err = permitted(n)
		}
		return err == nil
	})
	return tree, err
}

func permitted(n syntax.Node) error {
	refuse := func(what string) error {
		start, _ := n.Span()
		return fmt.Errorf("%w: line %d uses %s", errBounds, start.Line, what)
	}
	switch n := n.(type) {
	case *syntax.LoadStmt:
		return errors.New("load is not allowed")
	case *syntax.WhileStmt:
		return errors.New("while is not allowed")
	case *syntax.LambdaExpr:
		return refuse("lambda")
	case *syntax.DotExpr:
		return refuse("a method")
	case *syntax.DictExpr, *syntax.DictEntry:
		return refuse("a dictionary")
	case *syntax.SliceExpr:
		return refuse("a slice")
	case *syntax.BinaryExpr:
		switch n.Op {
		case syntax.EQ, syntax.AND, syntax.OR: // name=value of a call is an operator too
			return nil
		}
		return refuse("operator " + n.Op.String())
	case *syntax.UnaryExpr:
		if n.Op != syntax.NOT {
			return refuse("operator " + n.Op.String())
		}
	case *syntax.AssignStmt:
		if n.Op != syntax.EQ {
			return refuse("operator " + n.Op.String())
		}
	case *syntax.CallExpr:
		if _, ok := n.Fn.(*syntax.Ident); !ok {
			return refuse("another function")
		}
	case *syntax.Ident:
		// A built-in function must not get in under another name either, nor may its name be bound: what
		// is bound in one function is still the built-in one elsewhere.
		switch n.Name {
		case "True", "False", "None":
			return nil
		case "print":
			return errors.New("print is not known")
		}
		if starlark.Universe.Has(n.Name) {
			return refuse("a built-in function")
		}
	}
	return nil
}

// plain is an error of Starlark's in one line.
func plain(err error) error {
	if e, ok := errors.AsType[syntax.Error](err); ok {
		return fmt.Errorf("line %d: %s", e.Pos.Line, e.Msg)
	}
	if list, ok := errors.AsType[resolve.ErrorList](err); ok && len(list) > 0 {
		return fmt.Errorf("line %d: %s", list[0].Pos.Line, list[0].Msg)
	}
	if e, ok := errors.AsType[*starlark.EvalError](err); ok {
		if strings.HasSuffix(e.Msg, "called recursively") {
			return fmt.Errorf("%w: %s", errBounds, e.Msg)
		}
		for i := len(e.CallStack) - 1; i >= 0; i-- {
			if p := e.CallStack[i].Pos; p.Line > 0 {
				return fmt.Errorf("line %d: %w", p.Line, e.Unwrap())
			}
		}
	}
	return err
}

var (
	errNoText = errors.New("is no string")
	errNoList = errors.New("is no list")
)

func text(v starlark.Value) (string, error) {
	s, ok := starlark.AsString(v)
	if !ok {
		return "", errNoText
	}
	if len(s) > maxText {
		return "", fmt.Errorf("is too long: %w", errBounds)
	}
	return s, nil
}

const maxWords = 64 // of one pattern, one element's alternatives or one example

// elements are the elements of a list.
func elements(v starlark.Value) ([]starlark.Value, error) {
	var list []starlark.Value
	switch v := v.(type) {
	case *starlark.List:
		if v.Len() > maxWords {
			return nil, fmt.Errorf("is too long: %w", errBounds)
		}
		for i := range v.Len() {
			list = append(list, v.Index(i))
		}
	default: // Codex takes no tuple either
		return nil, errNoList
	}
	return list, nil
}

func words(list []starlark.Value) ([]string, error) {
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, err := text(v)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// patternOf reads a token prefix: each element a string or a list of alternatives.
func patternOf(v starlark.Value) ([][]string, error) {
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	out := make([][]string, 0, len(list))
	for _, v := range list {
		if s, err := text(v); err == nil {
			out = append(out, []string{s})
			continue
		}
		alternatives, err := elements(v)
		if err != nil {
			return nil, fmt.Errorf("has an element that is neither string nor list")
		}
		w, err := words(alternatives)
		if err != nil {
			return nil, fmt.Errorf("has an alternative that %w", err)
		}
		if len(w) == 0 {
			return nil, errors.New("has an element without alternatives")
		}
		out = append(out, w)
	}
	return out, nil
}

// exampleWords reads an example: a list of words or a line of them.
func exampleWords(v starlark.Value) ([]string, error) {
	if s, err := text(v); err == nil {
		w, ok := split(s)
		if !ok || len(w) == 0 {
			return nil, errors.New("cannot be split into words")
		}
		return w, nil
	}
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	w, err := words(list)
	if err == nil && len(w) == 0 {
		err = errors.New("is empty")
	}
	return w, err
}

// split is POSIX word splitting with quotes and backslashes and nothing else.
func split(s string) (out []string, ok bool) {
	var w strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			w.WriteByte(c)
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\':
			if i++; i == len(s) {
				return nil, false
			}
			if quote == '"' && !strings.ContainsRune("$`\"\\\n", rune(s[i])) {
				w.WriteByte('\\')
			}
			if s[i] != '\n' {
				w.WriteByte(s[i])
			}
			in = true
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if in {
				out, in = append(out, w.String()), false
				w.Reset()
			}
		case c == '#' && !in:
			for i < len(s) && s[i] != '\n' {
				i++
			}
		default:
			w.WriteByte(c)
			in = true
		}
	}
	if in {
		out = append(out, w.String())
	}
	return out, quote == 0
}
