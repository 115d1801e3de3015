package wrapper

// sgr is which graphic renditions differ from the default. Programs often end one attribute with its own
// code (22, 39, 49) instead of 0, so "the last SGR was a reset" would not do.
type sgr struct {
	font, intensity, italic, underline, blink, inverse, hidden, strike bool
	fg, bg, proportional, frame, overline, underlineColour             bool
	ideogram, script                                                   bool
}

// apply follows CSI ... m.
func (s *sgr) apply(p *escParser) {
	for i := 0; i < p.count(); i++ {
		if i < p.n && i < maxParams && p.sub[i] {
			continue // belongs to the parameter before
		}
		v := p.param(i, 0)
		switch {
		case v == 0:
			*s = sgr{}
		case v == 1 || v == 2:
			s.intensity = true
		case v == 22:
			s.intensity = false
		case v == 3 || v == 20:
			s.italic = true
		case v == 23:
			s.italic = false
		case v == 4 || v == 21:
			// 4:0 is no underline, 4:1 to 4:5 are its styles.
			none := v == 4 && i+1 < min(p.n, maxParams) && p.sub[i+1] && p.param(i+1, 0) == 0
			s.underline = !none
		case v == 24:
			s.underline = false
		case v == 5 || v == 6 || v == 25:
			s.blink = v != 25
		case v == 7 || v == 27:
			s.inverse = v == 7
		case v == 8 || v == 28:
			s.hidden = v == 8
		case v == 9 || v == 29:
			s.strike = v == 9
		case v >= 10 && v <= 19:
			s.font = v != 10
		case v == 26 || v == 50:
			s.proportional = v == 26
		case v >= 30 && v <= 37 || v >= 90 && v <= 97:
			s.fg = true
		case v == 39:
			s.fg = false
		case v >= 40 && v <= 47 || v >= 100 && v <= 107:
			s.bg = true
		case v == 49:
			s.bg = false
		case v == 38:
			s.fg = true
			i += colourArguments(p, i)
		case v == 48:
			s.bg = true
			i += colourArguments(p, i)
		case v == 58:
			s.underlineColour = true
			i += colourArguments(p, i)
		case v == 59:
			s.underlineColour = false
		case v == 51 || v == 52 || v == 54:
			s.frame = v != 54
		case v == 53 || v == 55:
			s.overline = v == 53
		case v >= 60 && v <= 65:
			s.ideogram = v != 65
		case v >= 73 && v <= 75:
			s.script = v != 75
		}
	}
}

// colourArguments is how many of the parameters after i belong to 38, 48 or 58 in the form with semicolons
// (38;5;n and 38;2;r;g;b). In the form with colons they are sub-parameters already.
func colourArguments(p *escParser, i int) int {
	if i+1 >= min(p.n, maxParams) || p.sub[i+1] {
		return 0
	}
	switch p.param(i+1, 0) {
	case 5:
		return 2
	case 2:
		return 4
	}
	return 0
}
