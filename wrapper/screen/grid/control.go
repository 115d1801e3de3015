package grid

import "github.com/charmbracelet/x/ansi"

// control obeys a C0 control character.
func (g *Grid) control(c byte) {
	b := g.cur
	switch c {
	case '\b':
		b.x = max(b.x-1, 0)
		b.pending = false
	case '\t':
		g.tab(1)
	case '\n', '\v', '\f':
		g.index()
		if g.newline {
			b.x = 0
		}
	case '\r':
		b.x = 0
		b.pending = false
	case 0x0e:
		g.shift = 1
	case 0x0f:
		g.shift = 0
	default:
		return // NUL, BEL, DEL and the rest move nothing
	}
	g.joinable = false
}

// index is a line feed: down one row, and at the bottom of the scroll region the rows move up.
func (g *Grid) index() {
	b := g.cur
	switch {
	case b.y == b.bottom-1:
		g.scroll(b.top, b.bottom, 1)
	case b.y < g.rows-1:
		b.y++
	}
	b.pending = false
}

func (g *Grid) reverseIndex() {
	b := g.cur
	switch {
	case b.y == b.top:
		g.scroll(b.top, b.bottom, -1)
	case b.y > 0:
		b.y--
	}
	b.pending = false
}

// tab moves n tab stops to the right, or to the left for n < 0.
func (g *Grid) tab(n int) {
	b := g.cur
	for ; n > 0 && b.x < g.cols-1; n-- {
		for b.x++; b.x < g.cols-1 && !g.tabs[b.x]; b.x++ {
		}
	}
	for ; n < 0 && b.x > 0; n++ {
		for b.x--; b.x > 0 && !g.tabs[b.x]; b.x-- {
		}
	}
	b.pending = false
}

func (g *Grid) resetTabs() {
	for i := range g.tabs {
		g.tabs[i] = i%8 == 0
	}
}

// escape obeys ESC and a final byte.
func (g *Grid) escape(cmd ansi.Cmd) {
	g.joinable = false
	b := g.cur
	switch i := cmd.Intermediate(); i {
	case 0:
	case '(', ')', '*', '+': // SCS: which set stands in G0..G3
		g.charset[i-'('] = cmd.Final() == '0'
		return
	case '#':
		if cmd.Final() == '8' { // DECALN
			for y := range g.rows {
				for x := range g.cols {
					b.x, b.y = x, y
					g.put('E', 1)
				}
			}
			b.x, b.y, b.pending = 0, 0, false
		}
		return
	default:
		return
	}
	switch cmd.Final() {
	case '7':
		g.saveCursor()
	case '8':
		g.restoreCursor()
	case 'D':
		g.index()
	case 'E':
		g.index()
		b.x = 0
	case 'H':
		g.tabs[b.x] = true
	case 'M':
		g.reverseIndex()
	case 'N':
		g.single = 2
	case 'O':
		g.single = 3
	case 'c':
		g.reset()
	}
}

func (g *Grid) saveCursor() {
	b := g.cur
	b.saved = saved{b.x, b.y, b.pending, g.origin, g.pen, g.charset, g.shift}
}

func (g *Grid) restoreCursor() {
	b, s := g.cur, g.cur.saved
	b.x, b.y, b.pending = s.x, s.y, s.pending
	g.origin, g.pen, g.charset, g.shift = s.origin, s.pen, s.charset, s.shift
}

// softReset is DECSTR: modes and pen, not the picture.
func (g *Grid) softReset() {
	g.pen, g.penLink, g.charset, g.shift, g.single = Style{}, 0, [4]bool{}, 0, 0
	g.insert, g.origin, g.nowrap, g.newline = false, false, false, false
	g.cur.top, g.cur.bottom = 0, g.rows
	g.cur.saved = saved{}
}

// reset is RIS.
func (g *Grid) reset() {
	g.frame()
	g.softReset()
	g.syncing = false
	g.cur = &g.alt
	g.clear()
	g.cur = &g.main
	g.main.scrolled += uint64(g.rows) // what stood there is not there any more
	g.clear()
	g.resetTabs()
	g.allChanged()
	g.cleared()
}

// clear blanks the screen on display and puts its cursor home.
func (g *Grid) clear() {
	g.eraseRows(0, g.rows)
	b := g.cur
	b.x, b.y, b.pending, b.top, b.bottom, b.saved = 0, 0, false, 0, g.rows, saved{}
}

func (g *Grid) cleared() {
	if g.Hooks.Cleared != nil {
		g.Hooks.Cleared()
	}
}

// frame tells that what stands on the screen is a finished picture that is about to go.
func (g *Grid) frame() {
	if !g.syncing && g.Hooks.Frame != nil {
		g.Hooks.Frame(false)
	}
}
