package grid

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// A Cell is one character position.
type Cell struct {
	// Text is the character with the marks and zero-width characters that follow it. It is "" for a
	// cell that was erased or never written, which a drawn blank (" ") is not.
	Text  string
	Width uint8 // columns taken: 1, 2, or 0 for the right half of a wide character
	link  uint16
	Style Style
}

// A Style is how a cell is painted.
type Style struct {
	Attr   Attr
	Fg, Bg Color
}

// Attr is a set of SGR attributes.
type Attr uint8

// The attributes.
const (
	Bold Attr = 1 << iota
	Dim
	Italic
	Underline
	Blink
	Reverse
	Conceal
	Strike
)

// A Color is 0 for the default, Palette|n for one of 256, RGB|0xrrggbb for a direct colour.
type Color uint32

// Marks of a Color's kind.
const (
	Palette Color = 1 << 24
	RGB     Color = 2 << 24
)

// A Row is a copy of one line of the screen.
type Row struct {
	Cells []Cell
	// Wrapped says that the text ran over the right edge into the next row by itself.
	Wrapped bool
	// Lead holds zero-width characters printed at column 0, which belong to no cell.
	Lead string
	// Blank says that every cell is erased in the default colours. It may be false for such a row.
	Blank bool
}

// Row returns row y of the screen on display. The cells must not be changed and are only valid
// until the next Write or Resize.
func (g *Grid) Row(y int) Row {
	if y < 0 || y >= g.rows {
		return Row{}
	}
	l := &g.cur.lines[y]
	return Row{Cells: l.cells, Wrapped: l.wrapped, Lead: l.lead, Blank: l.clean}
}

// RowVersion changes whenever row y of the screen on display may have changed.
func (g *Grid) RowVersion(y int) uint64 {
	if y < 0 || y >= g.rows {
		return 0
	}
	return g.cur.lines[y].version
}

// Text is what the row reads to an eye: erased cells as blanks, blanks at the end and characters
// without width and ink left out.
func (r Row) Text() string { return r.text(Visible) }

// Raw is Text with the invisible characters kept where they were printed.
func (r Row) Raw() string { return r.Lead + r.text(func(s string) string { return s }) }

func (r Row) text(of func(string) string) string {
	if r.Blank {
		return ""
	}
	var b strings.Builder
	blanks := 0
	for i := range r.Cells {
		c := &r.Cells[i]
		switch {
		case c.Width == 0 && i > 0:
			continue
		case c.Text == "" || c.Text == " ":
			blanks++
			continue
		}
		for ; blanks > 0; blanks-- {
			b.WriteByte(' ')
		}
		b.WriteString(of(c.Text))
	}
	return b.String()
}

// Visible returns a cell's text without the characters that have no width and no ink. Combining
// marks stay.
func Visible(text string) string {
	if len(text) == 1 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if Invisible(r) {
			return -1
		}
		return r
	}, text)
}

// Invisible reports whether r takes no column and leaves no ink: format characters (bidi controls,
// zero-width space and joiner, tags) and the line and paragraph separators.
func Invisible(r rune) bool {
	return r >= 0x80 && (unicode.Is(unicode.Cf, r) && r != 0xad || r == 0x2028 || r == 0x2029)
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r >= 0x1160 && r <= 0x11ff, // Hangul vowels and finals join the syllable before them
		unicode.In(r, unicode.Mn, unicode.Me), Invisible(r):
		return 0
	case r >= 0x1f1e6 && r <= 0x1f1ff: // regional indicators: a pair makes a flag of two columns
		return 1
	}
	return max(uniseg.StringWidth(string(r)), 1)
}

// special is the DEC special graphics set, from 0x5f to 0x7e.
var special = []rune("\u00a0◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
