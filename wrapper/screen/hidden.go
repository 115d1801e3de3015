package screen

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ryehq/rye/wrapper/screen/grid"
)

func invisible(r rune) bool { return grid.Invisible(r) }

const (
	manyBlanks    = 16 // blanks in a row, with text after them, that push text out of sight
	manyBlankRows = 3
	maxHidden     = 16 // findings of one dialog
)

// hiddenIn lists what the eye may miss in the lines of a command, from column col on.
func hiddenIn(v *view, lines []line, col int) []string {
	var found []string
	add := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); len(found) < maxHidden && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	blankRows := 0
	for _, l := range lines {
		if l.over {
			add("drawn over the border of the dialog")
		}
		for _, r := range l.lead {
			if n := nameOf(r, ' '); n != "" {
				add("%s", n)
			}
		}
		if l.from(col) == "" {
			blankRows++
			continue
		}
		if blankRows >= manyBlankRows {
			add("padding: %d blank rows", blankRows)
		}
		blankRows = 0
		blanks := 0
		for x := min(col, l.indent()); x < len(l.cells); x++ {
			c := l.cells[x]
			if c.Width == 0 {
				continue
			}
			if c.Text == "" || c.Text == " " {
				blanks++
				continue
			}
			if blanks >= manyBlanks {
				add("padding: %d blanks", blanks)
			}
			blanks = 0
			base, _ := utf8.DecodeRuneInString(c.Text)
			for _, r := range c.Text {
				if n := nameOf(r, base); n != "" {
					add("%s", n)
				}
			}
			if to := v.g.Link(c); to != "" && (x == 0 || v.g.Link(l.cells[x-1]) != to) {
				if shown := linkText(v, l, x, to); !strings.HasSuffix(to, shown) {
					add("a link to %q shown as %q", to, shown)
				}
			}
			if unseen(c.Style) {
				add("text painted in the colour of its background")
			}
		}
	}
	return found
}

// linkText is what the link to an address that begins at column x is shown as.
func linkText(v *view, l line, x int, to string) string {
	end := x
	for end < len(l.cells) && v.g.Link(l.cells[end]) == to {
		end++
	}
	return grid.Row{Cells: l.cells[x:end]}.Text()
}

// unseen reports a style in which letters leave nothing to see.
func unseen(s grid.Style) bool {
	return s.Attr&grid.Conceal != 0 || s.Fg != 0 && s.Fg == s.Bg
}

// nameOf names a character that looks like nothing or like another, "" for any other. base is the
// character whose cell it is in.
func nameOf(r, base rune) string {
	switch {
	case r < 0x80:
		return ""
	case unicode.Is(unicode.Bidi_Control, r):
		return fmt.Sprintf("bidi control U+%04X", r)
	case r == 0x200d && base >= 0x2190:
		return "" // joins emoji
	case invisible(r):
		return fmt.Sprintf("zero-width U+%04X", r)
	case r == unicode.ReplacementChar:
		return "replacement character U+FFFD"
	case unicode.Is(unicode.Zs, r) || strings.ContainsRune("\u115f\u1160\u3164\uffa0\u2800", r):
		return fmt.Sprintf("unicode blank U+%04X", r)
	}
	return ""
}
