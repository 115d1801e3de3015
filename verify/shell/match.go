package shell

import (
	"slices"
	"strings"
)

// Match reports whether a program started with those arguments agrees with the command, word by
// word. names are what the command word may have called the program: argv[0], the path it was
// started by, for a program looked up in PATH the last element of that path. args are the arguments
// after argv[0].
func (c *Command) Match(names, args []string) bool {
	w := c.Words
	if w[0].kind == one {
		return slices.ContainsFunc(names, w[0].Fits) && agree(w[1:], args)
	}
	// The command word itself may become several arguments, or none.
	for _, n := range names {
		if agree(w, append([]string{n}, args...)) {
			return true
		}
	}
	return false
}

// MatchArgs reports whether arguments agree with the command's own arguments.
func (c *Command) MatchArgs(args []string) bool { return agree(c.Words[1:], args) }

// MatchTail reports whether the last arguments agree with the command's. A wrapper that puts options
// of its own first (grep shadowed by another program) leaves the rest as it was.
func (c *Command) MatchTail(args []string) bool {
	for i := range len(args) + 1 {
		if agree(c.Words[1:], args[i:]) {
			return true
		}
	}
	return false
}

const maxCells = 1 << 22 // of the table below: a bound on work, far beyond real commands

// agree is glob matching on lists: can the words become exactly these arguments?
// row[j] says that the words so far can have become args[:j].
func agree(words []Word, args []string) bool {
	if len(words)*(len(args)+1) > maxCells {
		return false
	}
	row := make([]bool, len(args)+1)
	row[0] = true
	next := make([]bool, len(args)+1)
	for i := range words {
		w := &words[i]
		for j := range next {
			next[j] = false
		}
		switch w.kind {
		case one:
			for j, a := range args {
				next[j+1] = row[j] && w.Fits(a)
			}
		case each:
			for j, a := range args {
				next[j+1] = (row[j] || next[j]) && w.Fits(a)
			}
		case fields:
			w.fields(row, next, args)
		}
		row, next = next, row
	}
	return row[len(args)]
}

// fields fills in next for a word that splits into any number of arguments. Literal text at its ends
// stays at the ends: a$x gives a first argument that starts with a.
func (w *Word) fields(row, next []bool, args []string) {
	first, last := w.parts[0], w.parts[len(w.parts)-1]
	inside := false // the split has begun
	for j := range next {
		if w.Blank() && row[j] {
			next[j] = true // it can vanish
			inside = true
			continue
		}
		if j == 0 {
			continue
		}
		a := args[j-1]
		begins := row[j-1] && (first.any || strings.HasPrefix(a, first.lit))
		inside = inside || begins
		if inside && (last.any || strings.HasSuffix(a, last.lit)) {
			next[j] = true
		}
	}
}
