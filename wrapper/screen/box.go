package screen

import "strings"

// A box is a frame drawn with ╭ ╮ ╰ ╯ (or ┌ ┐ └ ┘): rows and columns of its border.
type box struct {
	top, bottom, left, right int
}

// findBoxes returns the outermost boxes, the highest first.
func findBoxes(lines []line) []box {
	var found []box
	var open []box
	for y, l := range lines {
		if l.blank() {
			continue
		}
		left, right, corner := border(l)
		switch corner {
		case '╭', '┌':
			open = append(open, box{top: y, left: left, right: right})
		case '╰', '└':
			if b, ok := cutBox(lines, y, left, right); ok && len(open) == 0 {
				found = append(found[:0], b)
			}
			for i := len(open) - 1; i >= 0; i-- {
				if open[i].left != left || open[i].right != right {
					continue
				}
				b := open[i]
				b.bottom = y
				open = open[:i]
				if !inner(b, lines) {
					found = append(dropInside(found, b), b)
				}
				break
			}
		}
	}
	return found
}

// cutBox is a box whose upper border has left the screen: sides up to the first row.
func cutBox(lines []line, bottom, left, right int) (box, bool) {
	for y := bottom - 1; y >= 0; y-- {
		if !side(lines[y], left) || !side(lines[y], right) {
			return box{}, false
		}
	}
	return box{top: -1, bottom: bottom, left: left, right: right}, bottom > 1
}

func side(l line, x int) bool {
	return x < len(l.cells) && (l.cells[x].Text == "│" || l.cells[x].Text == "┃")
}

// border reports the columns of a top or bottom border: its corners with only ─ (and a title)
// between them. A border inside of another box's sides counts by its own corners.
func border(l line) (left, right int, corner rune) {
	left = -1
	for x := range l.cells {
		t := l.cells[x].Text
		switch t {
		case "╭", "┌", "╰", "└":
			if left < 0 {
				left = x
				corner = []rune(t)[0]
			}
		case "╮", "┐", "╯", "┘":
			right = x
		case "", " ", "│", "┃", "─":
		default:
			if left < 0 {
				return 0, 0, 0 // text before the corner: no border
			}
		}
	}
	if left < 0 || right <= left+1 {
		return 0, 0, 0
	}
	dashes := 0
	for x := left + 1; x < right; x++ {
		if l.cells[x].Text == "─" {
			dashes++
		}
	}
	if dashes*2 < right-left-1 {
		return 0, 0, 0
	}
	return left, right, corner
}

// inner reports whether the box stands inside of another box's sides.
func inner(b box, lines []line) bool {
	for x := range b.left {
		if t := lines[b.top].cells[x].Text; t == "│" || t == "┃" {
			return true
		}
	}
	return false
}

func dropInside(found []box, b box) []box {
	kept := found[:0]
	for _, f := range found {
		if f.top < b.top || f.bottom > b.bottom {
			kept = append(kept, f)
		}
	}
	return kept
}

// block returns the inside of the box. A row whose border is drawn over is taken as far as the
// screen goes and marked.
func (b box) block(lines []line) block {
	inside := make([]line, 0, b.bottom-b.top)
	for y := b.top + 1; y < b.bottom; y++ {
		inside = append(inside, b.inside(lines[y]))
	}
	return block{lines: inside, width: b.right - b.left - 1, box: true, cut: b.top < 0, left: b.left, top: b.top, end: b.bottom}
}

func (b box) inside(l line) line {
	in := line{y: l.y, lead: l.lead, soft: l.soft}
	from, to := b.left+1, min(b.right, len(l.cells))
	if !side(l, b.left) {
		from, in.over = b.left, true
	}
	if !side(l, b.right) {
		// The text ran past the border: take it all. A side that slid along with it is cut off below.
		to, in.over = len(l.cells), true
	}
	in.cells = l.cells[from:to]
	if in.over {
		n := len(in.cells)
		for n > 0 && (in.cells[n-1].Text == "" || in.cells[n-1].Text == " ") {
			n--
		}
		if n > 0 && in.cells[n-1].Text == "│" {
			in.cells = in.cells[:n-1]
		}
	}
	in.text = in.from(0)
	return in
}

// innerBox returns the lines of the last box inside of lines, and the indices of its border lines.
func innerBox(lines []line) (inside []line, top, bottom int, ok bool) {
	boxes := findBoxes(lines)
	if len(boxes) == 0 {
		return nil, 0, 0, false
	}
	b := boxes[len(boxes)-1]
	for y := b.top + 1; y < b.bottom; y++ {
		inside = append(inside, b.inside(lines[y]))
	}
	return inside, b.top, b.bottom, true
}

// trimCommon removes the blanks that all lines begin with.
func trimCommon(texts []string) []string {
	least := -1
	for _, t := range texts {
		if strings.TrimSpace(t) == "" {
			continue
		}
		if n := len(t) - len(strings.TrimLeft(t, " ")); least < 0 || n < least {
			least = n
		}
	}
	if least <= 0 {
		return texts
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		if len(t) >= least {
			out[i] = t[least:]
		}
	}
	return out
}
