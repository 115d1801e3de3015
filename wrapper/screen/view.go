package screen

import (
	"strings"

	"github.com/ryehq/rye/wrapper/screen/grid"
)

// A line is one row of the screen, or the part of it inside of a box.
type line struct {
	y     int    // row on the screen
	text  string // as an eye reads it, blanks at the end left out
	cells []grid.Cell
	lead  string // zero-width characters before the first cell
	soft  bool   // the terminal itself broke the text here
	over  bool   // something was drawn over the box's border
}

// raw is the text with the characters no eye sees, from column x on.
func (l line) raw(x int) string {
	if x >= len(l.cells) {
		return l.lead
	}
	return l.lead + grid.Row{Cells: l.cells[x:]}.Raw()
}

// from is the text from column x on.
func (l line) from(x int) string {
	if x >= len(l.cells) {
		return ""
	}
	return grid.Row{Cells: l.cells[x:]}.Text()
}

// indent is the column of the first thing drawn.
func (l line) indent() int {
	for x := range l.cells {
		if t := l.cells[x].Text; t != "" && t != " " {
			return x
		}
	}
	return len(l.cells)
}

// style is how column x is painted.
func (l line) style(x int) grid.Style {
	if x < 0 || x >= len(l.cells) {
		return grid.Style{}
	}
	return l.cells[x].Style
}

func (l line) blank() bool { return l.text == "" }

// isRule reports whether the line is one of r only, at least n of them.
func (l line) isRule(r rune, n int) bool {
	t := strings.TrimSpace(l.text)
	return strings.Count(t, string(r)) >= n && strings.Trim(t, string(r)) == ""
}

// spans is isRule for a rule across all of the screen. What an assistant shows of a command is
// indented, so that a command cannot draw one.
func (l line) spans(r rune) bool {
	return l.indent() == 0 && l.isRule(r, len(l.cells)-1)
}

// A view is the screen at one moment.
type view struct {
	cols, rows int
	lines      []line
	curX, curY int
	top        uint64 // absolute number of the first row: counts rows scrolled away
	alternate  bool
	offset     uint64 // bytes of output drawn
	boxes      []box
	blocks     []block // places a dialog can be, the lowest first

	versions []uint64
	g        *grid.Grid
}

// refresh reads what changed since the last time.
func (v *view) refresh(g *grid.Grid, offset uint64) {
	cols, rows := g.Size()
	if v.g != g || v.cols != cols || v.rows != rows {
		*v = view{g: g, cols: cols, rows: rows, lines: make([]line, rows), versions: make([]uint64, rows)}
		for y := range v.versions {
			v.versions[y] = ^uint64(0)
		}
	}
	for y := range v.lines {
		if ver := g.RowVersion(y); ver != v.versions[y] {
			r := g.Row(y)
			v.lines[y] = line{y: y, text: r.Text(), cells: r.Cells, lead: r.Lead, soft: r.Wrapped}
			v.versions[y] = ver
		}
	}
	v.curX, v.curY = g.Cursor()
	v.top, v.alternate, v.offset = g.Scrolled(), g.Alternate(), offset
	if v.alternate {
		v.top = 0
	}
	v.boxes = findBoxes(v.lines)
	v.blocks = v.findBlocks()
}

// shown returns rows top up to bottom as they stand on the screen.
func (v *view) shown(top, bottom int) []string {
	top, bottom = max(top, 0), min(bottom, len(v.lines))
	if top >= bottom {
		return nil
	}
	rows := make([]string, 0, bottom-top)
	for _, l := range v.lines[top:bottom] {
		rows = append(rows, l.raw(0))
	}
	return rows
}

// below counts the rows under row y that are not blank.
func (v *view) below(y int) int {
	n := 0
	for i := y + 1; i < len(v.lines); i++ {
		if !v.lines[i].blank() {
			n++
		}
	}
	return n
}

// A block is a part of the screen that is read as one column of text: all of it, or a box.
type block struct {
	lines []line
	width int // columns
	box   bool
	cut   bool // its upper border is above the screen
	left  int  // first column
	top   int  // first row on the screen, the border included
	end   int  // last row, the border included
}

// findBlocks lists the boxes from the lowest up, then the whole screen.
func (v *view) findBlocks() []block {
	blocks := v.blocks[:0]
	for i := len(v.boxes) - 1; i >= 0; i-- {
		blocks = append(blocks, v.boxes[i].block(v.lines))
	}
	return append(blocks, block{lines: v.lines, width: v.cols, end: v.rows - 1})
}
