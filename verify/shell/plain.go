package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Plain splits a text into the words of its commands when it is nothing but plain commands joined by
// && || ; and |. Anything else (a redirection, a variable, a substitution, a glob, grouping, an
// assignment, a background job) makes ok false: a rule about one inner command then says nothing
// about the text. This is how Codex decides whether its prefix rules apply.
func Plain(text string) (commands [][]string, ok bool) {
	f, err := parseFile(text, Bash)
	if err != nil {
		return nil, false
	}
	for _, st := range f.Stmts {
		if commands, ok = plainStmt(st, commands); !ok {
			return nil, false
		}
	}
	return commands, len(commands) > 0
}

func plainStmt(st *syntax.Stmt, out [][]string) ([][]string, bool) {
	if st.Negated || st.Background || st.Coprocess || st.Disown || len(st.Redirs) > 0 {
		return nil, false
	}
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		if c.Op == syntax.PipeAll {
			return nil, false
		}
		out, ok := plainStmt(c.X, out)
		if !ok {
			return nil, false
		}
		return plainStmt(c.Y, out)
	case *syntax.CallExpr:
		if len(c.Assigns) > 0 || len(c.Args) == 0 {
			return nil, false
		}
		var words []string
		for _, a := range c.Args {
			w, ok := plainWord(a)
			if !ok {
				return nil, false
			}
			words = append(words, w)
		}
		return append(out, words), true
	}
	return nil, false
}

func plainWord(w *syntax.Word) (string, bool) {
	var s string
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			for i := range len(p.Value) {
				switch p.Value[i] {
				case '\\', '*', '?', '[', ']', '{', '}', '~', '=', '#', '^', '$', '`', '!':
					return "", false
				}
			}
			s += p.Value
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			s += p.Value
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, q := range p.Parts {
				l, ok := q.(*syntax.Lit)
				if !ok {
					return "", false
				}
				for i := range len(l.Value) {
					if l.Value[i] == '\\' {
						return "", false
					}
				}
				s += l.Value
			}
		default:
			return "", false
		}
	}
	return s, true
}

// Words splits a text into words as a shell does, when it is one simple command with nothing to fill
// in. It is the inverse of joining an argv with quotes.
func Words(text string) ([]string, bool) {
	s := Parse(text, Bash)
	if s.Err != nil || len(s.Redirects) > 0 {
		return nil, false
	}
	var first *Command
	for _, c := range s.Commands {
		if c.Via != nil {
			continue
		}
		if first != nil {
			return nil, false
		}
		first = c
	}
	if first == nil || len(first.Assigns) > 0 {
		return nil, false
	}
	return first.Static()
}

// Value is a word's value when nothing in it is filled in at run time.
func Value(w *syntax.Word) (string, bool) {
	return new(Script).parts(w.Parts).Static()
}

// Join writes words as one line of shell, quoted where needed. [Words] is its inverse.
func Join(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,") == "" {
			b.WriteString(w)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'")
	}
	return b.String()
}
