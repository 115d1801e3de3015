// Package grid is the terminal as the user's eyes have it: bytes in, a grid of cells out.
//
// It models what xterm, VTE, tmux and their kin agree on, and keeps for each cell what a reader of
// approval dialogs must know beyond the letters: whether a blank was drawn or never written, the
// style, and the zero-width characters a terminal swallows. For each row it keeps whether it ran
// over into the next one (autowrap), which is the only proof that a line break is not in the text.
//
// It may import charmbracelet/x/ansi (the escape sequence state machine), uniseg (widths) and the
// standard library. It does no I/O, starts nothing, reads no clock, and its memory is bounded by the
// size of the screen: nothing that a program prints makes it grow.
//
// The charmbracelet/x/vt emulator was measured first and not taken: at v0.1.0 a window title with a
// ✳ in it spills onto the screen (the byte 9C inside the character ends the OSC), a combining
// mark that arrives in the next write destroys its base letter, a wide character at the right edge
// is lost, an incomplete UTF-8 sequence eats the ESC that follows, and ESC[3J clears the screen.
// TestTerminal holds those cases.
package grid

import (
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// Limits of the model. A terminal larger than this is drawn into a grid of this size, and
// [Grid.Clamped] says so.
const (
	MaxCols = 1000
	MaxRows = 500

	maxString  = 4096 // bytes kept of one OSC, DCS, APC, PM or SOS string
	maxCluster = 64   // bytes kept of one cell's text: base character and marks
	maxParam   = 1 << 15
)

// A Grid is one terminal: a main and an alternate screen, and the state machine that draws on them.
// Methods must not be called concurrently.
type Grid struct {
	Hooks Hooks

	cols, rows int
	clamped    bool
	main, alt  buffer
	cur        *buffer // the one on display

	parser *ansi.Parser
	utf8   [4]byte // a character whose bytes have not all arrived
	utf8N  int
	number int // the parameter being read, -1 for none

	pen      Style
	penLink  uint16
	links    []string // addresses that cells lead to, numbered from 1
	charset  [4]bool  // G0..G3 is DEC special graphics
	shift    int      // the set in use: 0 or 1 (SI, SO)
	single   int      // set for the next character alone (SS2, SS3), 0 for none
	last     rune     // for REP
	wide     rune     // the last character outside of ASCII, and its text
	wideText string
	joinable bool // the cell before the cursor was just printed: marks attach to it
	tabs     [MaxCols]bool

	insert, origin, nowrap, newline bool
	syncing                         bool
	version                         uint64 // counts changes of any cell
	written                         uint64
}

// Hooks tell of moments the cells alone do not show. A nil hook is not called.
type Hooks struct {
	// Frame is called when the grid is whole: after the last change of a synchronized update
	// (sync), or before an erase or screen switch outside of one takes a finished frame away.
	Frame func(sync bool)
	// Cleared is called when all of the screen was erased: nothing drawn before is on it.
	Cleared func()
}

// New returns a blank terminal. Sizes below 1 and above the limits are clamped.
func New(cols, rows int) *Grid {
	g := &Grid{parser: ansi.NewParser()}
	g.parser.SetDataSize(maxString)
	g.parser.SetHandler(ansi.Handler{
		Print:     g.print,
		Execute:   g.control,
		HandleCsi: g.csi,
		HandleEsc: g.escape,
		HandleOsc: g.osc,
		// DCS, APC, PM and SOS draw nothing that a dialog is made of (sixels and kitty images do,
		// and no assistant writes its dialogs with them); leaving the handlers out drops them.
	})
	g.cols, g.rows, g.clamped = clampSize(cols, rows)
	g.main, g.alt = newBuffer(g.cols, g.rows), newBuffer(g.cols, g.rows)
	g.cur = &g.main
	g.resetTabs()
	return g
}

func clampSize(cols, rows int) (c, r int, clamped bool) {
	c, r = min(max(cols, 1), MaxCols), min(max(rows, 1), MaxRows)
	return c, r, cols > MaxCols || rows > MaxRows
}

// Size returns the number of columns and rows.
func (g *Grid) Size() (cols, rows int) { return g.cols, g.rows }

// Clamped reports whether the real terminal is larger than the model.
func (g *Grid) Clamped() bool { return g.clamped }

// Cursor returns the cursor's cell, from 0.
func (g *Grid) Cursor() (col, row int) { return g.cur.x, g.cur.y }

// Alternate reports whether the alternate screen is on display.
func (g *Grid) Alternate() bool { return g.cur == &g.alt }

// Syncing reports whether a synchronized update (DEC mode 2026) is open: the terminal still shows
// the frame before it.
func (g *Grid) Syncing() bool { return g.syncing }

// Whole reports whether the output ended between characters and sequences, outside of a
// synchronized update.
func (g *Grid) Whole() bool {
	return !g.syncing && g.utf8N == 0 && g.parser.State() == parser.GroundState
}

// Version changes whenever a cell may have changed.
func (g *Grid) Version() uint64 { return g.version }

// Written is the number of bytes taken so far. Inside of a hook it counts the byte that led to it.
func (g *Grid) Written() uint64 { return g.written }

// Scrolled is the number of rows that have left the top of the main screen so far. Scrolled plus a
// row's index names that row for as long as it is not redrawn elsewhere.
func (g *Grid) Scrolled() uint64 { return g.main.scrolled }

// Resize changes the size. Like xterm and unlike terminals that re-flow, it cuts and pads: what the
// assistant redraws afterwards is what counts, and the caller knows that a resize happened.
func (g *Grid) Resize(cols, rows int) {
	g.cols, g.rows, g.clamped = clampSize(cols, rows)
	g.main.resize(g.cols, g.rows)
	g.alt.resize(g.cols, g.rows)
	g.joinable = false
	g.allChanged()
}

// allChanged gives every row on display a new version.
func (g *Grid) allChanged() {
	g.version++
	for i := range g.cur.lines {
		g.cur.lines[i].version = g.version
	}
}

// Write draws p. Pieces of one stream may be cut anywhere.
func (g *Grid) Write(p []byte) {
	for len(p) > 0 {
		if n := g.Run(p); n > 0 {
			p = p[n:]
			continue
		}
		g.writeByte(p[0])
		p = p[1:]
	}
}

// Run draws the beginning of p that is plain ASCII and stays on its row, and returns how many bytes that is: 0 when p
// begins with anything else. It does what Write does, in one step; no hook is called.
func (g *Grid) Run(p []byte) int {
	b := g.cur
	if g.utf8N > 0 || g.single > 0 || g.charset[g.shift] || g.insert || b.pending || g.parser.State() != parser.GroundState {
		return 0
	}
	// The last column is left to print, which knows of wraps.
	n, room := 0, min(g.cols-1-b.x, len(p))
	for n < room && p[n] >= 0x20 && p[n] < 0x7f {
		n++
	}
	if n == 0 {
		return 0
	}
	g.putRun(p[:n])
	g.written += uint64(n)
	return n
}

func (g *Grid) writeByte(b byte) {
	g.written++
	g.take(b)
}

func (g *Grid) take(b byte) {
	if g.utf8N > 0 || b >= 0x80 {
		g.decode(b)
		return
	}
	if b >= 0x20 && b < 0x7f && g.parser.State() == parser.GroundState {
		g.print(rune(b))
		return
	}
	if !g.numberFits(b) {
		return
	}
	g.parser.Advance(b)
}

// numberFits keeps parameters in the range in which the state machine counts right: past 31 bits it
// would take some other, smaller number for them, and draw where no terminal does.
func (g *Grid) numberFits(b byte) bool {
	switch g.parser.State() {
	case parser.CsiEntryState, parser.CsiParamState:
	default:
		g.number = -1
		return true
	}
	if b < '0' || b > '9' {
		g.number = -1
		return true
	}
	switch {
	case g.number < 0:
		g.number = int(b - '0')
	case g.number == 0 && b == '0', g.number >= 10000:
		return false // no terminal is that large, one digit more or less
	default:
		g.number = g.number*10 + int(b-'0')
	}
	return true
}

// Abort gives up an unfinished character, sequence or synchronized update: what should have ended it
// was not seen.
func (g *Grid) Abort() {
	g.utf8N = 0
	g.parser.Reset()
	g.syncing = false
}
