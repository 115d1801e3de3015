package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// A wrapping says how wide the rows of a text can be that an assistant has wrapped.
type wrapping struct {
	// min and max bound the columns a row may hold. What would have fitted into min and stands in
	// the next row was put there by a newline.
	min, max int
	// chars is set when the text is cut at the last column, not between words.
	chars bool
}

// unwrap puts the rows of a wrapped text together again. A wrap between words swallows one blank and
// leaves no trace of it, so where the next word would not have fitted, a wrap, a blank and a newline
// look the same: the likeliest is taken and ambiguous is set.
func unwrap(rows []string, w wrapping) (text string, ambiguous bool) {
	if len(rows) == 0 {
		return "", false
	}
	widest := 0
	for _, r := range rows {
		widest = max(widest, uniseg.StringWidth(r))
	}
	w.min = max(min(w.min, w.max), widest) // a row as wide as that was possible
	var b strings.Builder
	b.WriteString(rows[0])
	for i := 1; i < len(rows); i++ {
		sep, sure := separator(rows[i-1], rows[i], w)
		// Many blanks that were wrapped leave empty rows and an indent.
		sure = sure && !(rows[i-1] == "" && strings.HasPrefix(rows[i], " "))
		ambiguous = ambiguous || !sure
		b.WriteString(sep)
		b.WriteString(rows[i])
	}
	return b.String(), ambiguous
}

func separator(row, next string, w wrapping) (sep string, sure bool) {
	if row == "" || next == "" {
		return "\n", true
	}
	used := uniseg.StringWidth(row)
	first := firstWord(next)
	full := used >= w.min-1 // one less: a wide character may not have fitted
	if w.chars {
		if full {
			return "", false
		}
		return "\n", true
	}
	if strings.HasPrefix(next, " ") {
		return "\n", !full // wraps drop the blank at the break, newlines keep an indent
	}
	if used+1+uniseg.StringWidth(first) <= w.min {
		return "\n", true
	}
	if full && uniseg.StringWidth(lastWord(row))+uniseg.StringWidth(first) > w.min {
		return "", false // a word longer than a row, cut where the row ends
	}
	return " ", false
}

func firstWord(s string) string {
	if i := strings.IndexByte(s, ' '); i >= 0 {
		return s[:i]
	}
	return s
}

func lastWord(s string) string { return s[strings.LastIndexByte(s, ' ')+1:] }

// rowTexts returns the texts of lines from column col on, with what the terminal wrapped by itself
// joined: that is the one break whose meaning is sure. Hidden characters stay in.
func rowTexts(lines []line, col int) []string {
	var out []string
	for i, l := range lines {
		if i > 0 && lines[i-1].soft {
			// A soft break keeps the blanks on both sides of it.
			last := &out[len(out)-1]
			*last += padding(lines[i-1], col) + l.raw(0)
			continue
		}
		out = append(out, l.raw(min(col, l.indent())))
	}
	return out
}

// padding is the blanks at the end of a row that the terminal wrapped, which [line.raw] leaves out.
func padding(l line, col int) string {
	n := 0
	for x := len(l.cells) - 1; x >= col && (l.cells[x].Text == "" || l.cells[x].Text == " ") && l.cells[x].Width == 1; x-- {
		n++
	}
	return strings.Repeat(" ", n)
}

// squeeze removes white space, and the characters a painter may drop, to compare two readings of one
// text that were wrapped differently.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == 0xa0 || r == utf8.RuneError || invisible(r) {
			return -1
		}
		return r
	}, s)
}
