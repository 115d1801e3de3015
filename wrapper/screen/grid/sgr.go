package grid

import "github.com/charmbracelet/x/ansi"

// sgr sets the pen.
func (g *Grid) sgr(p ansi.Params) {
	if len(p) == 0 {
		g.pen = Style{}
		return
	}
	for i := 0; i < len(p); i++ {
		v, more, _ := p.Param(i, 0)
		if v == 38 || v == 48 || v == 58 {
			color, n := readColor(p[i:])
			switch v {
			case 38:
				g.pen.Fg = color
			case 48:
				g.pen.Bg = color
			}
			i += n - 1
			continue
		}
		g.attribute(v, p, i)
		for more && i+1 < len(p) { // sub-parameters say which kind of underline, nothing more
			i++
			_, more, _ = p.Param(i, 0)
		}
	}
}

func (g *Grid) attribute(v int, p ansi.Params, i int) {
	on := func(a Attr) { g.pen.Attr |= a }
	off := func(a Attr) { g.pen.Attr &^= a }
	switch {
	case v == 0:
		g.pen = Style{}
	case v == 1:
		on(Bold)
	case v == 2:
		on(Dim)
	case v == 3:
		on(Italic)
	case v == 4:
		if kind, _, ok := p.Param(i+1, 1); ok && p[i].HasMore() && kind == 0 {
			off(Underline)
		} else {
			on(Underline)
		}
	case v == 5, v == 6:
		on(Blink)
	case v == 7:
		on(Reverse)
	case v == 8:
		on(Conceal)
	case v == 9:
		on(Strike)
	case v == 21:
		on(Underline) // ECMA-48: doubly underlined
	case v == 22:
		off(Bold | Dim)
	case v == 23:
		off(Italic)
	case v == 24:
		off(Underline)
	case v == 25:
		off(Blink)
	case v == 27:
		off(Reverse)
	case v == 28:
		off(Conceal)
	case v == 29:
		off(Strike)
	case v >= 30 && v <= 37:
		g.pen.Fg = Palette | Color(v-30)
	case v == 39:
		g.pen.Fg = 0
	case v >= 40 && v <= 47:
		g.pen.Bg = Palette | Color(v-40)
	case v == 49:
		g.pen.Bg = 0
	case v >= 90 && v <= 97:
		g.pen.Fg = Palette | Color(v-90+8)
	case v >= 100 && v <= 107:
		g.pen.Bg = Palette | Color(v-100+8)
	}
}

// readColor reads 38;5;n, 38;2;r;g;b and their colon forms (with and without a colour space), and
// returns how many parameters it took.
func readColor(p ansi.Params) (Color, int) {
	kind, _, ok := p.Param(1, 0)
	if !ok {
		return 0, 1
	}
	n := 2
	for n < len(p) && p[n-1].HasMore() {
		n++ // colon form: the parameters that hang together
	}
	colon := p[0].HasMore()
	at := func(i int) Color {
		v, _, _ := p.Param(i, 0)
		return Color(min(max(v, 0), 255))
	}
	switch kind {
	case 5:
		return Palette | at(2), max(min(3, len(p)), n)
	case 2:
		first := 2
		if colon && n >= 6 {
			first = 3 // 38:2:SPACE:r:g:b
		}
		if !colon {
			n = min(5, len(p))
		}
		return RGB | at(first)<<16 | at(first+1)<<8 | at(first+2), n
	}
	return 0, n
}
