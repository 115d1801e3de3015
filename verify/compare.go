package verify

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

func baseOf(p string) string { return path.Base(p) }

// A likeness says how two texts agree.
type likeness uint8

const (
	differs   likeness = iota
	partOf             // what is known of one is part of the other
	blanks             // equal but for white space, where the screen's wrapping left that open
	invisible          // equal but for characters the eye does not see
	equal              // byte for byte
)

// runs compares a text with what a candidate ran.
func (k *candidate) runs(text string) likeness {
	if k.root == nil || text == "" {
		return differs
	}
	best := differs
	for _, t := range k.carried.texts {
		best = max(best, alike(text, t))
	}
	if len(k.carried.texts) == 0 {
		best = max(best, argvAlike(text, k.root))
	}
	return best
}

func alike(a, b string) likeness {
	switch {
	case a == b:
		return equal
	case a == "" || b == "" || a[0] != b[0] && a[0] > ' ' && b[0] > ' ' && a[0] < 0x7f && b[0] < 0x7f:
		return differs
	case unseen(a) == unseen(b):
		return invisible
	}
	return differs
}

// argvAlike compares a text with an argv that no shell read.
func argvAlike(text string, x *proctree.Exec) likeness {
	words, ok := shell.Words(text)
	if !ok {
		if alike(text, shell.Join(x.Argv)) == equal || strings.Join(x.Argv, " ") == text {
			return equal
		}
		return differs
	}
	names, args := callees(x)
	if len(words) == len(args)+1 && slices.Contains(names, words[0]) && slices.Equal(words[1:], args) {
		return equal
	}
	return differs
}

// callees gives what a command word may have called a program, and its arguments. For a script the
// kernel puts the interpreter and the script's path in place of argv[0].
func callees(x *proctree.Exec) (names, args []string) {
	if len(x.Argv) == 0 {
		return nil, nil
	}
	if x.Interp != "" && x.Path != "" {
		if i := slices.Index(x.Argv, x.Path); i >= 0 {
			return []string{x.Path, path.Base(x.Path)}, x.Argv[i+1:]
		}
	}
	names = []string{x.Argv[0]}
	if x.Path != "" && x.Path != x.Argv[0] {
		names = append(names, x.Path)
		if !strings.Contains(x.Argv[0], "/") {
			names = append(names, path.Base(x.Path))
		}
	}
	return names, x.Argv[1:]
}

// unseen drops what a terminal does not show: control characters, zero-width and bidirectional marks.
// A tab shows as a blank.
func unseen(s string) string {
	if strings.IndexFunc(s, isHidden) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == '\n':
			return r
		case isHidden(r):
			return -1
		}
		return r
	}, s)
}

func isHidden(r rune) bool {
	return r == '\t' || r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u3164'
}

func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || isHidden(r) {
			return -1
		}
		return r
	}, s)
}

// shows compares the text of a decision with a command, as far as the screen let it be read.
func (d *decision) shows(command string) likeness {
	if command == "" {
		return differs
	}
	if d.command != "" {
		if l := alike(d.command, command); l != differs {
			return l
		}
		ambiguous := d.prompt != nil && d.prompt.Ambiguous
		if ambiguous && squash(d.command) == squash(command) {
			return blanks
		}
	}
	if d.cut() && contains(command, d.command) {
		return partOf
	}
	return differs
}

// cut reports whether only part of the command was seen.
func (d *decision) cut() bool {
	if d.prompt != nil && d.prompt.Command != "" {
		return d.prompt.Cut
	}
	return d.rowCut || d.prompt != nil && d.prompt.Cut
}

// contains reports whether a shortened text can be a part of the whole: its beginning (a row cut with
// dots), its end (a dialog scrolled up) or some rows of its middle.
func contains(whole, part string) bool {
	p := strings.TrimRight(part, " ")
	p = strings.TrimSuffix(strings.TrimSuffix(p, "..."), "…")
	p = squash(p)
	return strings.Contains(squash(whole), p) // a row that shows nothing but dots fits everything
}

// matches is the best agreement of a decision with an item: with what ran, else with what was asked.
func (d *decision) matches(it *item) likeness {
	if it.cand != nil && it.cand.root != nil {
		best := differs
		for _, t := range it.cand.carried.texts {
			best = max(best, d.shows(t))
		}
		if len(it.cand.carried.texts) == 0 {
			best = max(best, argvAlike(d.command, it.cand.root), d.shows(shell.Join(it.cand.root.Argv)))
		}
		return best
	}
	if it.call != nil {
		return d.shows(it.call.text())
	}
	return differs
}
