package grid

import (
	"unicode"
	"unicode/utf8"
)

// print draws one character at the cursor.
func (g *Grid) print(r rune) {
	set := g.shift
	if g.single > 0 {
		set, g.single = g.single, 0
	}
	if r >= 0x5f && r <= 0x7e && g.charset[set] {
		r = special[r-0x5f]
	}
	w := runeWidth(r)
	if w == 0 || g.joins(r) {
		g.attach(r)
		return
	}
	b := g.cur
	if b.pending && !g.nowrap {
		b.lines[b.y].wrapped = true
		g.index()
		b.x = 0
	}
	b.pending = false
	if w > g.cols {
		w = 1 // a two-column character on a one-column terminal: there is no right answer
	}
	if b.x+w > g.cols { // a wide character does not fit into the last column
		if g.nowrap {
			b.x = g.cols - w
		} else {
			g.erase(b.y, b.x, g.cols)
			b.lines[b.y].wrapped = true
			g.index()
			b.x = 0
		}
	}
	if g.insert {
		g.insertCells(w)
	}
	g.put(r, w)
	g.last = r
	if b.x+w >= g.cols {
		b.x = g.cols - 1
		b.pending = !g.nowrap
	} else {
		b.x += w
	}
	g.joinable = true
}

// put writes a character into the cell at the cursor, and blanks what is left of wide characters
// that it cuts in half.
func (g *Grid) put(r rune, w int) {
	x, l := g.cur.x, g.touch(g.cur.y)
	if l.cells[x].Width == 0 && x > 0 {
		l.cells[x-1] = Cell{Width: 1, Style: l.cells[x-1].Style}
	}
	if end := x + w; end < g.cols && l.cells[end].Width == 0 {
		l.cells[end] = Cell{Width: 1, Style: l.cells[end].Style}
	}
	l.cells[x] = Cell{Text: g.textOf(r), Width: uint8(w), Style: g.pen, link: g.penLink}
	if w == 2 {
		l.cells[x+1] = Cell{Style: g.pen, link: g.penLink}
	}
	if x+w >= g.cols {
		l.wrapped = false // until the next character does wrap
	}
}

// putRun writes ASCII characters into the cells from the cursor on. They fit into the row, and leave a column.
func (g *Grid) putRun(p []byte) {
	b := g.cur
	x, l := b.x, g.touch(b.y)
	if l.cells[x].Width == 0 && x > 0 {
		l.cells[x-1] = Cell{Width: 1, Style: l.cells[x-1].Style}
	}
	if end := x + len(p); l.cells[end].Width == 0 {
		l.cells[end] = Cell{Width: 1, Style: l.cells[end].Style}
	}
	cells := l.cells[x : x+len(p)]
	for i, c := range p {
		cells[i] = Cell{Text: printable[c-' ' : c-' '+1], Width: 1, Style: g.pen, link: g.penLink}
	}
	b.x += len(p)
	g.last, g.joinable = rune(p[len(p)-1]), true
}

// printable is the text of the ASCII cells, so that drawing one allocates nothing.
const printable = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

func (g *Grid) textOf(r rune) string {
	switch {
	case r >= ' ' && r <= '~':
		return printable[r-' ' : r-' '+1]
	case r != g.wide:
		g.wide, g.wideText = r, string(r) // rules and bars repeat
	}
	return g.wideText
}

// before returns the cell that the next mark belongs to, or nil.
func (g *Grid) before() *Cell {
	b := g.cur
	x := b.x
	if !b.pending {
		x--
	}
	if x < 0 {
		return nil
	}
	cells := b.lines[b.y].cells
	if cells[x].Width == 0 && x > 0 {
		x--
	}
	return &cells[x]
}

// joins reports whether r continues the emoji before it: a skin tone, or what follows a zero-width
// joiner.
func (g *Grid) joins(r rune) bool {
	if !g.joinable || r < 0x2190 {
		return false
	}
	c := g.before()
	if c == nil {
		return false
	}
	if r >= 0x1f3fb && r <= 0x1f3ff {
		return c.Width == 2
	}
	last, _ := utf8.DecodeLastRuneInString(c.Text)
	return last == '\u200d' && unicode.Is(unicode.So, r)
}

// attach adds a mark or zero-width character to the cell before the cursor. What would make a cell
// longer than any real cluster is dropped; the cell keeps enough to show that there was something.
func (g *Grid) attach(r rune) {
	l := g.touch(g.cur.y)
	c := g.before()
	if c == nil {
		if len(l.lead) < maxCluster {
			l.lead += string(r)
		}
		return
	}
	if c.Text == "" {
		c.Text = " "
	}
	if len(c.Text) < maxCluster {
		c.Text += string(r)
	}
}
