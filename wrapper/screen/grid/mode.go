package grid

// decMode sets or resets a DEC private mode that changes what is on the screen.
func (g *Grid) decMode(mode int, on bool) {
	switch mode {
	case 6:
		g.origin = on
		g.home()
	case 7:
		g.nowrap = !on
		if g.nowrap {
			g.cur.pending = false
		}
	case 47, 1047:
		g.alternate(on, mode == 1047)
	case 1048:
		if on {
			g.saveCursor()
		} else {
			g.restoreCursor()
		}
	case 1049:
		if on == g.Alternate() {
			return
		}
		if on {
			g.saveCursor()
			g.alternate(true, true)
		} else {
			g.alternate(false, false)
			g.restoreCursor()
		}
	case 2026:
		if g.syncing == on {
			return
		}
		g.syncing = on
		if !on && g.Hooks.Frame != nil {
			g.Hooks.Frame(true)
		}
	}
}

// alternate switches to the alternate screen or back. Only one way of entering it clears it first.
func (g *Grid) alternate(on, clear bool) {
	if on == g.Alternate() {
		return
	}
	g.frame()
	from := g.cur
	if on {
		g.cur = &g.alt
		if clear {
			g.eraseRows(0, g.rows)
		}
	} else {
		g.cur = &g.main
	}
	g.cur.x, g.cur.y, g.cur.pending = from.x, from.y, from.pending
	g.cur.top, g.cur.bottom = 0, g.rows
	g.allChanged() // every row of the other screen is news
	if on && clear {
		g.cleared()
	}
}
