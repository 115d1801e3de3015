package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Word is what one word of a text can become: a pattern for the arguments a program gets from it.
type Word struct {
	Source string // as written
	parts  []part
	kind   wordKind
}

// A part is literal bytes, or a stretch only known at run time.
type part struct {
	lit string
	any bool
}

type wordKind uint8

const (
	one    wordKind = iota // exactly one argument that fits the parts
	fields                 // an unquoted expansion: split into none or more, parts hold for the ends
	each                   // a glob: one or more arguments, each fits the parts
)

// Static returns the word's value when nothing in it is filled in at run time.
func (w Word) Static() (string, bool) {
	if w.kind != one {
		return "", false
	}
	switch len(w.parts) {
	case 0:
		return "", true
	case 1:
		return w.parts[0].lit, !w.parts[0].any
	}
	return "", false
}

// Literal returns a word that stands for exactly that argument.
func Literal(s string) Word {
	w := Word{Source: s}
	if s != "" {
		w.parts = []part{{lit: s}}
	}
	return w
}

// Prefix is the literal text the word certainly starts with.
func (w Word) Prefix() string {
	if len(w.parts) > 0 && !w.parts[0].any {
		return w.parts[0].lit
	}
	return ""
}

// Blank reports whether nothing of the word is known before run time.
func (w Word) Blank() bool {
	return len(w.parts) > 0 && !slices.ContainsFunc(w.parts, func(p part) bool { return !p.any })
}

// Fits reports whether one argument fits the word's pattern.
func (w Word) Fits(arg string) bool { return fits(w.parts, arg) }

// fits matches literal parts in order; a stretch matches any bytes. Greedy from the left is enough:
// the last literal is anchored at the end.
func fits(parts []part, s string) bool {
	open := false // an any stands before the current literal
	for i, p := range parts {
		if p.any {
			open = true
			continue
		}
		switch {
		case !open:
			if !strings.HasPrefix(s, p.lit) {
				return false
			}
			s = s[len(p.lit):]
		case i == len(parts)-1:
			return strings.HasSuffix(s, p.lit)
		default:
			n := strings.Index(s, p.lit)
			if n < 0 {
				return false
			}
			s = s[n+len(p.lit):]
		}
		open = false
	}
	return open || s == ""
}

func (w *Word) add(lit string) {
	if lit == "" {
		return
	}
	if n := len(w.parts); n > 0 && !w.parts[n-1].any {
		w.parts[n-1].lit += lit
		return
	}
	w.parts = append(w.parts, part{lit: lit})
}

func (w *Word) wild(kind wordKind) {
	if n := len(w.parts); n == 0 || !w.parts[n-1].any {
		w.parts = append(w.parts, part{any: true})
	}
	// A split can give more arguments than a glob, so it wins.
	if w.kind == one || kind == fields {
		w.kind = kind
	}
}

// replace makes every occurrence of a text in literal parts a wildcard (xargs -I, find's {}).
func (w Word) replace(old string) Word {
	if old == "" {
		return w
	}
	out := Word{Source: w.Source, kind: w.kind}
	for _, p := range w.parts {
		if p.any {
			out.parts = append(out.parts, p)
			continue
		}
		for i, s := range strings.Split(p.lit, old) {
			if i > 0 {
				out.parts = append(out.parts, part{any: true})
			}
			out.add(s)
		}
	}
	return out
}

// from drops the first n bytes of the word, which must be literal.
func (w Word) from(n int) Word {
	out := w
	out.parts = slices.Clone(w.parts)
	if len(out.parts) > 0 {
		if out.parts[0].lit = out.parts[0].lit[n:]; out.parts[0].lit == "" {
			out.parts = out.parts[1:]
		}
	}
	return out
}

// anything is a word that stands for any number of arguments.
func anything() Word { return Word{kind: fields, parts: []part{{any: true}}} }

// word turns a word of the syntax tree into patterns: usually one, several after a brace expansion.
func (s *Script) word(w *syntax.Word) []Word {
	src := s.source(w)
	if s.Lang != POSIX && hasBraces(w) {
		c := &syntax.Word{Parts: slices.Clone(w.Parts)}
		if syntax.SplitBraces(c) {
			var out []Word
			for _, b := range braces(c, 0) {
				v := s.parts(b.Parts)
				v.Source = src
				out = append(out, v)
			}
			return out
		}
	}
	v := s.parts(w.Parts)
	v.Source = src
	return []Word{v}
}

func (s *Script) source(n syntax.Node) string {
	a, b := n.Pos().Offset(), n.End().Offset()
	if a > b || b > uint(len(s.Text)) {
		return ""
	}
	return s.Text[a:b]
}

func (s *Script) parts(parts []syntax.WordPart) Word {
	var w Word
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			v := p.Value
			if i == 0 && strings.HasPrefix(v, "~") {
				// ~ and ~user are somebody's home; where that is the text does not say.
				w.wild(one)
				_, rest, found := strings.Cut(v, "/")
				if v = ""; found {
					v = "/" + rest
				}
			}
			w.literal(v)
		case *syntax.SglQuoted:
			if p.Dollar && s.Lang != POSIX {
				w.add(ansiC(p.Value))
			} else {
				if p.Dollar {
					w.add("$")
				}
				w.add(p.Value)
			}
		case *syntax.DblQuoted:
			s.quoted(&w, p)
		case *syntax.ParamExp:
			s.param(&w, p, false)
		case *syntax.ArithmExp:
			w.wild(one)
		case *syntax.ProcSubst:
			w.wild(one) // /dev/fd/N
		case *syntax.ExtGlob:
			w.wild(each)
		default: // command substitution, and whatever the parser learns next
			w.wild(fields)
		}
	}
	return w
}

// literal adds unquoted text: backslashes quote, and glob characters are wildcards.
func (w *Word) literal(v string) {
	var lit []byte
	for i := 0; i < len(v); i++ {
		switch c := v[i]; c {
		case '\\':
			if i+1 == len(v) {
				lit = append(lit, c)
				continue
			}
			i++
			if v[i] != '\n' { // backslash-newline vanishes, it is not a space
				lit = append(lit, v[i])
			}
		case '*', '?':
			w.add(string(lit))
			lit = lit[:0]
			w.wild(each)
		case '[':
			end := strings.IndexByte(v[i+1:], ']')
			if end < 0 {
				lit = append(lit, c)
				continue
			}
			w.add(string(lit))
			lit = lit[:0]
			w.wild(each)
			i += end + 1
		default:
			lit = append(lit, c)
		}
	}
	w.add(string(lit))
}

func (s *Script) quoted(w *Word, q *syntax.DblQuoted) {
	for _, p := range q.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			w.add(unescapeDouble(p.Value))
		case *syntax.ParamExp:
			s.param(w, p, true)
		default:
			w.wild(one)
		}
	}
}

// unescapeDouble undoes the escapes that mean something between double quotes.
func unescapeDouble(v string) string {
	if !strings.Contains(v, `\`) {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			switch v[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// param adds a parameter expansion. A plain variable that the text itself sets once, to a literal, is
// that literal.
func (s *Script) param(w *Word, p *syntax.ParamExp, quoted bool) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	plain := !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
	if vals, ok := s.vars[name]; ok && plain && len(vals) == 1 && (quoted || !strings.ContainsAny(vals[0].lit(), " \t\n*?[")) {
		w.add(vals[0].lit())
		return
	}
	all := name == "@" || name == "*" && !quoted
	if x, ok := p.Index.(*syntax.Word); ok && (x.Lit() == "@" || x.Lit() == "*" && !quoted) {
		all = true
	}
	if quoted && !all && !p.Excl {
		w.wild(one)
		return
	}
	w.wild(fields)
}

func (w Word) lit() string {
	v, _ := w.Static()
	return v
}
