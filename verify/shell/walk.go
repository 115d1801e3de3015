package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walk fills in what the text names from its syntax tree.
func (s *Script) walk(f *syntax.File) {
	s.functions = make(map[string]bool)
	s.collectVars(f)
	var fed []syntax.Node // right sides of pipes
	redirs := make(map[syntax.Command][]*syntax.Redirect)
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				s.functions[n.Name.Value] = true
			}
			for _, name := range n.Names {
				s.functions[name.Value] = true
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				fed = append(fed, n.Y)
			}
		case *syntax.Stmt:
			redirs[n.Cmd] = n.Redirs
			for _, r := range n.Redirs {
				s.redirect(r)
			}
		}
		return true
	})
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.call(n, redirs[n], fed)
		case *syntax.DeclClause:
			s.assigns(n.Args)
		}
		return s.words < maxWords
	})
	if s.words >= maxWords {
		s.Dynamic = true // what is left of the text was not read; do not claim to know it
	}
}

// collectVars notes variables that the text sets. One set once, to a literal, is known where it is
// used; everything else is a wildcard.
func (s *Script) collectVars(f *syntax.File) {
	s.vars = make(map[string][]Word)
	dirty := make(map[string]bool)
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name == nil {
				return true
			}
			name := n.Name.Value
			if n.Value == nil || n.Append || n.Index != nil || n.Array != nil || len(s.vars[name]) > 0 {
				dirty[name] = true
				return true
			}
			w := s.parts(n.Value.Parts)
			if _, ok := w.Static(); !ok {
				dirty[name] = true
			}
			s.vars[name] = []Word{w}
		case *syntax.WordIter:
			dirty[n.Name.Value] = true
		case *syntax.CallExpr:
			// FOO=1 cmd sets FOO for cmd alone; the words of cmd do not see it.
			if len(n.Args) > 0 {
				for _, a := range n.Assigns {
					if a.Name != nil {
						dirty[a.Name.Value] = true
					}
				}
				// read, getopts, printf -v, unset … set variables by name.
				if l := n.Args[0].Lit(); setsVariables[l] {
					for _, a := range n.Args[1:] {
						dirty[a.Lit()] = true
					}
				}
			}
		}
		return true
	})
	for name := range dirty {
		delete(s.vars, name)
	}
}

var setsVariables = map[string]bool{
	"read": true, "getopts": true, "printf": true, "unset": true, "mapfile": true, "readarray": true,
	"wait": true, "let": true, "source": true, ".": true,
}

func (s *Script) redirect(r *syntax.Redirect) {
	write := false
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.AppAll,
		syntax.RdrAllClob, syntax.AppAllClob, syntax.RdrInOut:
		write = true
	case syntax.RdrIn:
	case syntax.DplOut:
		// >&file writes a file, >&2 copies a descriptor.
		if v := r.Word.Lit(); v == "-" || strings.Trim(v, "0123456789") == "" {
			return
		}
		write = true
	default:
		return
	}
	for _, w := range s.word(r.Word) {
		s.Redirects = append(s.Redirects, Redirect{Target: w, Write: write})
	}
}

// call adds a simple command with everything it names.
func (s *Script) call(n *syntax.CallExpr, redirs []*syntax.Redirect, fed []syntax.Node) {
	c := &Command{Source: s.source(n), Assigns: s.assigns(n.Assigns)}
	for _, a := range n.Args {
		c.Words = append(c.Words, s.word(a)...)
	}
	s.words += 1 + len(c.Words)
	if len(c.Words) == 0 {
		return
	}
	for _, p := range fed {
		if p.Pos().Offset() <= n.Pos().Offset() && n.End().Offset() <= p.End().Offset() {
			c.Stdin = "pipe"
		}
	}
	for _, r := range redirs {
		switch r.Op {
		case syntax.RdrIn:
			c.Stdin = "file"
		case syntax.WordHdoc:
			c.Stdin = "here"
			if ws := s.word(r.Word); len(ws) == 1 {
				c.here = &ws[0]
			}
		case syntax.Hdoc, syntax.DashHdoc:
			c.Stdin = "here"
			if r.Hdoc != nil {
				w := s.heredoc(r)
				c.here = &w
			}
		}
	}
	s.add(c)
}

// heredoc is the text of a here-document. With a quoted delimiter it is taken as it stands.
func (s *Script) heredoc(r *syntax.Redirect) Word {
	for _, p := range r.Word.Parts {
		if l, ok := p.(*syntax.Lit); !ok || strings.Contains(l.Value, `\`) {
			var w Word
			for _, p := range r.Hdoc.Parts {
				if l, ok := p.(*syntax.Lit); ok {
					w.add(l.Value)
				} else {
					w.wild(one)
				}
			}
			return w
		}
	}
	var w Word
	s.quoted(&w, &syntax.DblQuoted{Parts: r.Hdoc.Parts})
	return w
}

func (s *Script) assigns(list []*syntax.Assign) []Assign {
	var out []Assign
	for _, a := range list {
		if a.Name == nil || a.Naked {
			continue
		}
		v := Assign{Name: a.Name.Value}
		if a.Value != nil {
			v.Value = s.parts(a.Value.Parts)
			v.Value.Source = s.source(a.Value)
		}
		out = append(out, v)
		if s.words < maxWords {
			s.words++
			s.Assigns = append(s.Assigns, v)
		}
	}
	return out
}
