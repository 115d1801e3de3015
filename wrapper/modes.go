package wrapper

import (
	"bytes"
	"strconv"
)

// modes follows what a program does to the terminal's modes, so that those it left on when it crashed can
// be undone, and only those. It reads the program's output as a terminal does (ECMA-48, xterm's ctlseqs,
// the kitty keyboard protocol) but keeps no text: its size does not depend on the input.
//
// It assumes UTF-8 mode, where the bytes 0x80 to 0x9f are text and not C1 controls, and that the terminal
// was in its default modes when the program started, as it is at a shell prompt.
type modes struct {
	parser escParser
	rows   int // of the terminal, 0 unknown: tells a full scroll region from a smaller one

	private  [len(privateModes)]bool // differs from the default
	saved    [len(privateModes)]bool // by XTSAVE
	alt      uint16                  // 47, 1047 or 1049 while the alternate screen is shown, else 0
	altSaved uint16
	keyboard [2]kittyKeyboard // of the main and the alternate screen
	keypad   bool             // DECKPAM
	insert   bool             // IRM
	otherKey bool             // xterm's modifyOtherKeys
	region   bool             // scroll region smaller than the screen
	cursor   bool             // DECSCUSR other than the default
	charset  bool             // G0 is not ASCII
	link     bool             // inside an OSC 8 hyperlink
	sgr      sgr

	changed bool // since the last call of takeChanged
}

// privateModes are the DEC private modes that are followed, and their defaults. The alternate screen is not
// here because its three numbers are one mode.
var privateModes = [...]struct {
	number uint16
	on     bool
}{
	{2026, false},                                                          // synchronised output: first, the rest should show
	{1000, false}, {1001, false}, {1002, false}, {1003, false}, {9, false}, // mouse
	{1005, false}, {1006, false}, {1015, false}, {1016, false}, // mouse encodings
	{1004, false}, // focus events
	{2004, false}, // bracketed paste
	{2031, false}, // colour scheme reports
	{2048, false}, // size reports
	{1, false},    // cursor keys
	{5, false},    // reverse video
	{6, false},    // origin
	{69, false},   // left and right margins
	{7, true},     // autowrap
	{25, true},    // cursor shown
}

// kittyKeyboard is one screen's stack of keyboard flags.
type kittyKeyboard struct {
	pushed int
	base   bool // flags set without a push
}

// maxPushes bounds the pops written at the end. Terminals keep fewer entries than this.
const maxPushes = 64

// write follows a piece of output. Pieces may end anywhere.
func (m *modes) write(p []byte) {
	for len(p) > 0 {
		if m.parser.state == stGround {
			// Most output is text, and in text only ESC matters here.
			i := bytes.IndexByte(p, 0x1b)
			if i < 0 {
				return
			}
			p = p[i:]
		}
		if m.parser.step(p[0]) {
			m.dispatch()
		}
		p = p[1:]
	}
}

// takeChanged reports whether the answer of undo may differ from the one at the last call.
func (m *modes) takeChanged() bool {
	// A sequence in progress changes undo too, and chunks seldom end in one.
	c := m.changed || m.parser.state != stGround
	m.changed = m.parser.state != stGround
	return c
}

func (m *modes) screen() *kittyKeyboard {
	if m.alt != 0 {
		return &m.keyboard[1]
	}
	return &m.keyboard[0]
}

func (m *modes) dispatch() {
	p := &m.parser
	m.changed = true
	switch p.kind {
	case seqEsc:
		m.escape(p.inter, p.final)
	case seqLink:
		m.link = p.linkOpen
	case seqCSI:
		m.control()
	}
}

func (m *modes) escape(inter, final byte) {
	switch {
	case inter == '(':
		m.charset = final != 'B'
	case inter != 0:
	case final == '=':
		m.keypad = true
	case final == '>':
		m.keypad = false
	case final == 'c': // RIS
		*m = modes{parser: m.parser, rows: m.rows, changed: true}
	}
}

func (m *modes) control() {
	p := &m.parser
	switch {
	case p.prefix == '?' && p.inter == 0:
		switch p.final {
		case 'h', 'l', 's', 'r':
			for i := range p.count() {
				m.privateMode(p.param(i, 0), p.final)
			}
		}
	case p.prefix == '>' && p.inter == 0:
		switch p.final {
		case 'u':
			k := m.screen()
			k.pushed = min(k.pushed+1, maxPushes)
		case 'm':
			if p.param(0, 0) == 4 {
				m.otherKey = p.param(1, 0) != 0
			}
		case 'n':
			if p.param(0, 0) == 4 {
				m.otherKey = false
			}
		}
	case p.prefix == '<' && p.inter == 0 && p.final == 'u':
		k := m.screen()
		k.pushed -= int(max(p.param(0, 1), 1))
		if k.pushed < 0 { // an emptied stack resets the flags
			*k = kittyKeyboard{}
		}
	case p.prefix == '=' && p.inter == 0 && p.final == 'u':
		m.setKeyboard(p.param(0, 0), p.param(1, 1))
	case p.prefix != 0:
	case p.inter == '!' && p.final == 'p': // DECSTR
		m.softReset()
	case p.inter == ' ' && p.final == 'q':
		m.cursor = p.param(0, 0) != 0
	case p.inter != 0:
	case p.final == 'm':
		m.sgr.apply(p)
	case p.final == 'r':
		top, bottom := int(p.param(0, 1)), int(p.param(1, 0))
		m.region = top > 1 || bottom > 0 && (m.rows == 0 || bottom < m.rows)
	case p.final == 'h' || p.final == 'l':
		for i := range p.count() {
			if p.param(i, 0) == 4 {
				m.insert = p.final == 'h'
			}
		}
	}
}

func (m *modes) privateMode(n uint16, final byte) {
	if n == 47 || n == 1047 || n == 1049 {
		switch final {
		case 'h':
			m.alt = n
		case 'l':
			m.alt = 0
		case 's':
			m.altSaved = m.alt
		case 'r':
			m.alt = m.altSaved
		}
		return
	}
	for i := range privateModes {
		if privateModes[i].number != n {
			continue
		}
		switch final {
		case 'h':
			m.private[i] = !privateModes[i].on
		case 'l':
			m.private[i] = privateModes[i].on
		case 's':
			m.saved[i] = m.private[i]
		case 'r':
			m.private[i] = m.saved[i]
		}
	}
}

// setKeyboard is CSI = flags ; how u, which changes the top of the stack. Only a change of the bottom
// outlives the pops.
func (m *modes) setKeyboard(flags, how uint16) {
	k := m.screen()
	switch {
	case k.pushed > 0 || how == 3:
	case how == 2:
		k.base = k.base || flags != 0
	default:
		k.base = flags != 0
	}
}

func (m *modes) softReset() {
	for i := range privateModes {
		switch privateModes[i].number {
		case 1, 6, 25:
			m.private[i] = false
		}
	}
	m.keypad, m.insert, m.region, m.charset = false, false, false, false
	m.sgr = sgr{}
}

// undo returns the bytes that bring the terminal back to its defaults, none if it is there.
func (m *modes) undo() []byte {
	var b []byte
	csi := func(s string) { b = append(b, "\x1b["+s...) }
	switch m.parser.state {
	case stGround:
	case stString, stOSC:
		// CAN discards the string where the terminal does that; ST ends it where not.
		b = append(b, "\x18\x1b\\"...)
	default:
		b = append(b, 0x18)
	}
	for i, off := range m.private {
		if off {
			csi("?" + strconv.Itoa(int(privateModes[i].number)) + onOff(privateModes[i].on))
		}
	}
	keyboard := func(k kittyKeyboard) {
		for range k.pushed {
			csi("<u")
		}
		if k.base {
			csi("=0u")
		}
	}
	if m.alt != 0 {
		// The stacks are per screen: the alternate screen's while it is shown, the main one's after.
		keyboard(m.keyboard[1])
		csi("?" + strconv.Itoa(int(m.alt)) + "l")
	}
	keyboard(m.keyboard[0])
	if m.otherKey {
		csi(">4m")
	}
	if m.keypad {
		b = append(b, "\x1b>"...)
	}
	if m.insert {
		csi("4l")
	}
	if m.charset {
		b = append(b, "\x1b(B"...)
	}
	if m.link {
		b = append(b, "\x1b]8;;\x1b\\"...)
	}
	if m.sgr != (sgr{}) {
		csi("0m")
	}
	if m.region {
		// DECSTBM homes the cursor, the shell's prompt should not be there.
		b = append(b, "\x1b7\x1b[r\x1b8"...)
	}
	if m.cursor {
		csi("0 q")
	}
	return b
}

func onOff(on bool) string {
	if on {
		return "h"
	}
	return "l"
}
