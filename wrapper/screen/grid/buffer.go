package grid

// A line is a row as the buffer keeps it.
type line struct {
	cells   []Cell
	wrapped bool
	lead    string
	clean   bool // erased in the default colours and not touched since
	version uint64
}

// A buffer is one screen: main or alternate.
type buffer struct {
	lines       []line
	x, y        int
	pending     bool // a character stands in the last column, the next one wraps
	top, bottom int  // scroll region, bottom exclusive
	saved       saved
	scrolled    uint64
}

// saved is what DECSC keeps.
type saved struct {
	x, y    int
	pending bool
	origin  bool
	pen     Style
	charset [4]bool
	shift   int
}

func newBuffer(cols, rows int) buffer {
	b := buffer{lines: make([]line, rows), bottom: rows}
	for i := range b.lines {
		b.lines[i].cells, b.lines[i].clean = blank(cols), true
	}
	return b
}

func blank(cols int) []Cell {
	cells := make([]Cell, cols)
	for i := range cells {
		cells[i].Width = 1
	}
	return cells
}

func (b *buffer) resize(cols, rows int) {
	// Rows that no longer fit leave at the top, as far as the cursor needs it, else at the bottom.
	if drop := len(b.lines) - rows; drop > 0 {
		up := min(max(b.y-rows+1, 0), drop)
		b.scrolled += uint64(up)
		b.y -= up
		b.lines = append([]line(nil), b.lines[up:up+rows]...)
	}
	for len(b.lines) < rows {
		b.lines = append(b.lines, line{cells: blank(cols), clean: true})
	}
	for i := range b.lines {
		l := &b.lines[i]
		if n := cols - len(l.cells); n > 0 {
			l.cells = append(l.cells, blank(n)...)
			l.wrapped = false
		} else if n < 0 {
			l.cells = append([]Cell(nil), l.cells[:cols]...)
			if last := &l.cells[cols-1]; last.Width == 2 { // its right half is gone
				*last = Cell{Width: 1}
			}
			l.wrapped = false
		}
	}
	b.top, b.bottom = 0, rows
	b.x, b.y = min(b.x, cols-1), min(b.y, rows-1)
	b.saved.x, b.saved.y = min(b.saved.x, cols-1), min(b.saved.y, rows-1)
	b.pending, b.saved.pending = false, false
}

// erase blanks the cells from x0 up to x1 of row y. Both halves of a wide character go together.
func (g *Grid) erase(y, x0, x1 int) {
	x0, x1 = max(x0, 0), min(x1, g.cols)
	fill := Cell{Width: 1, Style: Style{Bg: g.pen.Bg}} // erased cells take the background only
	plain := fill.Style == Style{}
	if x0 >= x1 || plain && g.cur.lines[y].clean {
		return
	}
	l := g.touch(y)
	if x0 > 0 && l.cells[x0].Width == 0 {
		l.cells[x0-1] = Cell{Width: 1}
	}
	if x1 < g.cols && l.cells[x1].Width == 0 {
		l.cells[x1] = Cell{Width: 1}
	}
	for x := x0; x < x1; x++ {
		l.cells[x] = fill
	}
	if x1 == g.cols {
		l.wrapped = false
	}
	if x0 == 0 {
		l.lead = ""
		l.clean = plain && x1 == g.cols
	}
}

// eraseRows blanks whole rows from y0 up to y1.
func (g *Grid) eraseRows(y0, y1 int) {
	for y := max(y0, 0); y < min(y1, g.rows); y++ {
		g.erase(y, 0, g.cols)
	}
}

// touch returns line y to be changed.
func (g *Grid) touch(y int) *line {
	g.version++
	l := &g.cur.lines[y]
	l.version, l.clean = g.version, false
	return l
}

// scroll moves the rows from top up to bottom by n: up for n > 0, down for n < 0.
func (g *Grid) scroll(top, bottom, n int) {
	b := g.cur
	height := bottom - top
	if height <= 0 || n == 0 {
		return
	}
	n = min(max(n, -height), height)
	if n > 0 && top == 0 && b == &g.main {
		b.scrolled += uint64(n)
	}
	region := b.lines[top:bottom]
	rotate(region, n)
	g.version++
	for i := range region {
		region[i].version = g.version
	}
	if n > 0 {
		g.eraseRows(bottom-n, bottom)
	} else {
		g.eraseRows(top, top-n)
	}
	// A row that ran over into one that is gone no longer does.
	if top > 0 {
		b.lines[top-1].wrapped = false
	}
	b.lines[bottom-1].wrapped = false
}

// rotate moves l's first n lines to its end (n > 0) or its last -n to its start.
func rotate(l []line, n int) {
	n = ((n % len(l)) + len(l)) % len(l)
	if n == 1 { // a new line at the bottom: what output is full of
		first := l[0]
		copy(l, l[1:])
		l[len(l)-1] = first
		return
	}
	reverse(l[:n])
	reverse(l[n:])
	reverse(l)
}

func reverse(l []line) {
	for i, j := 0, len(l)-1; i < j; i, j = i+1, j-1 {
		l[i], l[j] = l[j], l[i]
	}
}
