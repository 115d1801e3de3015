package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxBraces = 256 // words one brace expansion is written out to; more become a wildcard

func hasBraces(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.Contains(l.Value, "{")
	})
}

// braces writes out {a,b} in a word that [syntax.SplitBraces] has split. Sequences and very large
// lists become a glob, which stands for one or more arguments of the same shape.
func braces(w *syntax.Word, depth int) []*syntax.Word {
	i := slices.IndexFunc(w.Parts, func(p syntax.WordPart) bool { _, ok := p.(*syntax.BraceExp); return ok })
	if i < 0 {
		return []*syntax.Word{w}
	}
	b := w.Parts[i].(*syntax.BraceExp)
	with := func(mid []syntax.WordPart) *syntax.Word {
		return &syntax.Word{Parts: slices.Concat(w.Parts[:i], mid, w.Parts[i+1:])}
	}
	glob := []syntax.WordPart{&syntax.Lit{Value: "*"}}
	if b.Sequence || depth > 8 {
		return braces(with(glob), depth)
	}
	var out []*syntax.Word
	for _, e := range b.Elems {
		for _, inner := range braces(e, depth+1) {
			out = append(out, braces(with(inner.Parts), depth+1)...)
			if len(out) > maxBraces {
				return braces(with(glob), depth)
			}
		}
	}
	return out
}
