package grid

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi/parser"
)

// decode takes one byte of a multi-byte character. The state machine sees ASCII only: left to
// itself it would read a byte 80..9F in the middle of a character as a control function, and would
// take an ESC for the missing part of an incomplete one.
func (g *Grid) decode(b byte) {
	if g.utf8N > 0 && !utf8.RuneStart(b) {
		g.utf8[g.utf8N] = b
		g.utf8N++
		if !utf8.FullRune(g.utf8[:g.utf8N]) {
			return
		}
		r, n := utf8.DecodeRune(g.utf8[:g.utf8N])
		rest := g.utf8N - n
		g.utf8N = 0
		g.character(r)
		for range rest { // an invalid sequence: the bytes after its first are invalid as well
			g.character(utf8.RuneError)
		}
		return
	}
	if g.utf8N > 0 { // incomplete, and a new character begins
		g.utf8N = 0
		g.character(utf8.RuneError)
		g.take(b)
		return
	}
	g.utf8[0], g.utf8N = b, 1
	if utf8.FullRune(g.utf8[:1]) { // no character begins with it
		g.utf8N = 0
		g.character(utf8.RuneError)
	}
}

// character takes a character outside of ASCII.
func (g *Grid) character(r rune) {
	switch g.parser.State() {
	case parser.GroundState:
	case parser.OscStringState, parser.DcsStringState, parser.ApcStringState, parser.PmStringState, parser.SosStringState:
		g.parser.Advance('?') // part of a string, not of the picture
		return
	default:
		g.parser.Reset() // no sequence holds such a byte: xterm gives the sequence up too
	}
	if r >= 0x80 && r < 0xa0 { // C1 in UTF-8: xterm and VTE obey it, so it must not look like text
		g.parser.Advance(0x1b)
		g.parser.Advance(byte(r) - 0x40)
		return
	}
	g.print(r)
}
