package grid

import "github.com/charmbracelet/x/ansi"

// param returns parameter i as a count or position: missing and 0 are def, and no value is larger
// than a terminal can be, so that a loop over it is short.
func param(p ansi.Params, i, def int) int {
	v, _, ok := p.Param(i, def)
	if !ok || v == 0 {
		return def
	}
	if v < 0 || v > maxParam { // the state machine's number ran over
		return maxParam
	}
	return v
}

// csi obeys a control sequence.
func (g *Grid) csi(cmd ansi.Cmd, p ansi.Params) {
	final := cmd.Final()
	if final != 'b' {
		g.joinable = false
	}
	switch {
	case cmd.Prefix() == '?' && cmd.Intermediate() == 0 && (final == 'h' || final == 'l'):
		for i := range p {
			g.decMode(param(p, i, 0), final == 'h')
		}
		return
	case cmd.Prefix() == 0 && cmd.Intermediate() == '!' && final == 'p':
		g.softReset()
		return
	case cmd.Prefix() == '?' && final == 'J': // DECSED: no character is protected here
	case cmd.Prefix() == '?' && final == 'K': // DECSEL
	case cmd.Prefix() != 0 || cmd.Intermediate() != 0:
		return
	}
	if g.move(final, p) {
		return
	}
	n := param(p, 0, 1)
	b := g.cur
	switch final {
	case '@':
		g.insertCells(n)
	case 'P':
		g.deleteCells(n)
	case 'X':
		g.erase(b.y, b.x, b.x+n)
		b.pending = false
	case 'J':
		g.eraseDisplay(param(p, 0, 0))
	case 'K':
		g.eraseLine(param(p, 0, 0))
	case 'L', 'M':
		if b.y < b.top || b.y >= b.bottom {
			return
		}
		if final == 'L' {
			n = -n
		}
		b.x, b.pending = 0, false
		g.scrollKeep(b.y, b.bottom, n)
	case 'S':
		g.scroll(b.top, b.bottom, n)
	case 'T':
		if len(p) <= 1 { // with five parameters it is mouse tracking
			g.scroll(b.top, b.bottom, -n)
		}
	case 'b':
		if g.last != 0 {
			for range min(n, g.cols*g.rows) {
				g.print(g.last)
			}
		}
	case 'g':
		switch param(p, 0, 0) {
		case 0:
			g.tabs[b.x] = false
		case 3:
			g.tabs = [MaxCols]bool{}
		}
	case 'h', 'l':
		for i := range p {
			switch param(p, i, 0) {
			case 4:
				g.insert = final == 'h'
			case 20:
				g.newline = final == 'h'
			}
		}
	case 'm':
		g.sgr(p)
	case 'r':
		top, bottom := param(p, 0, 1), min(param(p, 1, g.rows), g.rows)
		if top < bottom {
			b.top, b.bottom = top-1, bottom
			g.home()
		}
	case 's':
		g.saveCursor()
	case 'u':
		g.restoreCursor()
	}
}

// scrollKeep scrolls for IL and DL: rows that go are deleted, not scrolled off the screen, so the
// count of rows that left at the top stays.
func (g *Grid) scrollKeep(top, bottom, n int) {
	scrolled := g.cur.scrolled
	g.scroll(top, bottom, n)
	g.cur.scrolled = scrolled
}

// move obeys the sequences that only move the cursor.
func (g *Grid) move(final byte, p ansi.Params) bool {
	b, n := g.cur, param(p, 0, 1)
	switch final {
	case 'A', 'F':
		limit := 0
		if b.y >= b.top {
			limit = b.top
		}
		b.y = max(b.y-n, limit)
	case 'B', 'E', 'e':
		limit := g.rows - 1
		if b.y < b.bottom && final != 'e' {
			limit = b.bottom - 1
		}
		b.y = min(b.y+n, limit)
	case 'C', 'a':
		b.x = min(b.x+n, g.cols-1)
	case 'D':
		b.x = max(b.x-n, 0)
	case 'G', '`':
		b.x = min(n, g.cols) - 1
	case 'd':
		g.goTo(b.x, n-1)
	case 'H', 'f':
		g.goTo(param(p, 1, 1)-1, n-1)
	case 'I':
		g.tab(n)
	case 'Z':
		g.tab(-n)
	default:
		return false
	}
	if final == 'E' || final == 'F' {
		b.x = 0
	}
	b.pending = false
	return true
}

// goTo places the cursor; in origin mode rows count from the top of the scroll region.
func (g *Grid) goTo(x, y int) {
	b, top, bottom := g.cur, 0, g.rows
	if g.origin {
		top, bottom = b.top, b.bottom
	}
	b.x = min(max(x, 0), g.cols-1)
	b.y = min(max(y, 0)+top, bottom-1)
	b.pending = false
}

func (g *Grid) home() { g.goTo(0, 0) }

func (g *Grid) insertCells(n int) {
	b := g.cur
	l := g.touch(b.y)
	n = min(n, g.cols-b.x)
	g.erase(b.y, b.x, b.x) // no cell, only the halves of a wide character at the cut
	copy(l.cells[b.x+n:], l.cells[b.x:g.cols-n])
	g.erase(b.y, b.x, b.x+n)
	l.fixHalves()
	l.wrapped, b.pending = false, false
}

func (g *Grid) deleteCells(n int) {
	b := g.cur
	l := g.touch(b.y)
	n = min(n, g.cols-b.x)
	copy(l.cells[b.x:], l.cells[b.x+n:])
	g.erase(b.y, g.cols-n, g.cols)
	l.fixHalves()
	l.wrapped, b.pending = false, false
}

// fixHalves blanks halves of wide characters that lost their other half in a move.
func (l *line) fixHalves() {
	for x := range l.cells {
		c := &l.cells[x]
		left := c.Width == 2 && (x+1 == len(l.cells) || l.cells[x+1].Width != 0)
		right := c.Width == 0 && (x == 0 || l.cells[x-1].Width != 2)
		if left || right {
			*c = Cell{Width: 1, Style: c.Style}
		}
	}
}

func (g *Grid) eraseDisplay(how int) {
	b := g.cur
	if how == 3 { // the scrollback, which is not kept
		return
	}
	g.frame()
	switch how {
	case 0:
		g.erase(b.y, b.x, g.cols)
		g.eraseRows(b.y+1, g.rows)
	case 1:
		g.eraseRows(0, b.y)
		g.erase(b.y, 0, b.x+1)
	case 2:
		g.eraseRows(0, g.rows)
	}
	if how == 2 || how == 0 && b.x == 0 && b.y == 0 {
		g.cleared()
	}
	b.pending = false
}

func (g *Grid) eraseLine(how int) {
	b := g.cur
	switch how {
	case 0:
		g.erase(b.y, b.x, g.cols)
	case 1:
		g.erase(b.y, 0, b.x+1)
	case 2:
		g.erase(b.y, 0, g.cols)
	}
	b.pending = false
}
