package wrapper

// escParser splits terminal output into escape sequences. It is the state machine of ECMA-48 as terminals
// build it: C0 controls inside a sequence are executed, ESC starts over, CAN and SUB abandon. Of a control
// string it keeps only whether it is OSC 8 and opens a link.
type escParser struct {
	state byte

	// The sequence that step reported, or the one in progress.
	kind     byte
	prefix   byte // of a CSI: one of <=>? or 0
	inter    byte // last intermediate byte, 0x20 to 0x2f, or 0
	final    byte
	n        int               // parameters begun
	params   [maxParams]uint16 // saturating
	present  [maxParams]bool   // has digits
	sub      [maxParams]bool   // began after a colon
	osc      uint16            // number of an OSC
	oscField byte              // ';' seen
	linkOpen bool              // OSC 8 with a target
}

// maxParams is what xterm takes (30) and a little more; further parameters are ignored, as terminals do.
const maxParams = 32

const (
	stGround byte = iota
	stEsc
	stCSI
	stCSIIgnore // malformed: skip to the final byte
	stOSC
	stString // DCS, APC, PM, SOS
)

const (
	seqEsc byte = iota + 1
	seqCSI
	seqLink
)

// step takes one byte and reports whether it completed a sequence.
func (p *escParser) step(c byte) bool {
	switch c {
	case 0x18, 0x1a: // CAN, SUB
		p.state = stGround
		return false
	case 0x1b:
		// It ends a control string whatever follows; the backslash of ST is then an escape sequence
		// of its own, without effect.
		done := p.state == stOSC && p.endOSC()
		p.state, p.inter = stEsc, 0
		return done
	}
	switch p.state {
	case stEsc:
		return p.esc(c)
	case stCSI, stCSIIgnore:
		return p.csi(c)
	case stOSC:
		return p.oscByte(c)
	}
	return false
}

func (p *escParser) esc(c byte) bool {
	switch {
	case c < 0x20:
		return false
	case c < 0x30:
		p.inter = c
		return false
	case c >= 0x7f:
		p.state = stGround
		return false
	}
	p.state = stGround
	if p.inter == 0 {
		switch c {
		case '[':
			p.state, p.prefix, p.n = stCSI, 0, 0
			return false
		case ']':
			p.state, p.osc, p.oscField, p.linkOpen = stOSC, 0, 0, false
			return false
		case 'P', '_', '^', 'X':
			p.state = stString
			return false
		}
	}
	p.kind, p.final = seqEsc, c
	return true
}

func (p *escParser) csi(c byte) bool {
	switch {
	case c < 0x20 || c == 0x7f: // executed or ignored in place
	case c >= 0x80: // text cannot be here
		p.state = stGround
	case c >= 0x40:
		done := p.state == stCSI
		p.state, p.kind, p.final = stGround, seqCSI, c
		return done
	case c < 0x30:
		p.inter = c
	case p.inter != 0: // a parameter after an intermediate
		p.state = stCSIIgnore
	case c >= 0x3c:
		if p.n > 0 || p.prefix != 0 {
			p.state = stCSIIgnore
		}
		p.prefix = c
	case c == ';' || c == ':':
		if p.n == 0 { // the first one was left out
			p.open(false)
		}
		p.open(c == ':')
	default:
		if p.n == 0 {
			p.open(false)
		}
		if p.n <= maxParams {
			i := p.n - 1
			p.present[i] = true
			p.params[i] = saturate(p.params[i], c-'0')
		}
	}
	return false
}

// open begins a parameter.
func (p *escParser) open(sub bool) {
	if p.n < maxParams {
		p.params[p.n], p.present[p.n], p.sub[p.n] = 0, false, sub
	}
	// n stays one above the limit for all that are ignored.
	p.n = min(p.n+1, maxParams+1)
}

// count is the number of parameters kept, at least one: no parameter is one left out.
func (p *escParser) count() int { return max(1, min(p.n, maxParams)) }

// param returns a parameter, or def if it was left out.
func (p *escParser) param(i int, def uint16) uint16 {
	if i >= min(p.n, maxParams) || !p.present[i] {
		return def
	}
	return p.params[i]
}

func (p *escParser) oscByte(c byte) bool {
	switch {
	case c == 0x07:
		p.state = stGround
		return p.endOSC()
	case p.oscField == 2: // OSC 8 ; parameters ; target
		p.linkOpen = true
	case c == ';':
		p.oscField++
	case p.oscField == 0 && c >= '0' && c <= '9':
		p.osc = saturate(p.osc, c-'0')
	case p.oscField == 0: // not a number: not one that matters here
		p.osc, p.oscField = 0, 2
	}
	return false
}

func (p *escParser) endOSC() bool {
	p.kind = seqLink
	return p.osc == 8 && p.oscField == 2
}

func saturate(n uint16, digit byte) uint16 {
	return uint16(min(uint32(n)*10+uint32(digit), 0xffff))
}
