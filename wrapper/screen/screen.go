// Package screen is the screen witness: it reads the terminal as the user does and tells which
// approval dialogs were really on it and how each was answered.
//
// It is fed the terminal's output, the user's input and resizes in the order they happened, draws
// them on a model of the terminal (package grid), and looks at the picture when it is whole: after a
// synchronized update, before an erase, before a key, and where the output pauses. What it sees goes
// through one grammar per assistant ([Screen] asks them in turn) and comes out as
// [event.ApprovalPrompted], [event.ApprovalGranted], [event.ApprovalDenied] and
// [event.ScreenUnreadable].
//
// A decision is never read from a key alone. It takes the dialog, the option that the key meant at
// that moment, and what followed: Codex's decision row, or the dialog going away. A dialog or row
// without an answer from the user's side of the terminal is reported as not attested, because a
// program can draw it. Whether a dialog belongs to a tool call is not decided here: on the screen a
// program's own drawing looks the same, and the verifier has other witnesses.
//
// Prefixes are what the assistant saves for an "always": for Codex the words a command must begin
// with, for Claude Code and Copilot one rule an element, a * at its end standing for any more words.
//
// The package may import event, grid, charmbracelet/x/ansi, uniseg, mvdan.cc/sh and the standard
// library. It starts nothing, reads no clock and does no I/O; its memory is bounded by the size of
// the terminal. A fault in it is reported as an event and never reaches the caller.
package screen

import (
	"fmt"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/wrapper/screen/grid"
)

const maxFaults = 16

// Times, in nanoseconds.
const (
	// quietNS without output makes what stands on the screen a finished picture. Assistants write a
	// frame at once; a pause within one is a few milliseconds.
	quietNS = 25e6
	// stillNS without output leaves no doubt about it.
	stillNS = 100e6
	// escNS after a lone ESC it is the Esc key and not the start of a sequence.
	escNS = 50e6
	// settledNS after which a dialog that still stands has not taken the key.
	settledNS = 50e6
	// rowNS is how long Codex's decision row is waited for.
	rowNS = 2e9
	// syncNS after which terminals give up on a synchronized update that does not end.
	syncNS = 1e9
	// redrawNS after a resize the assistant has drawn everything for the new size.
	redrawNS = 300e6
	// earlyNS before a dialog is drawn a key can have been meant for what stood there before, and
	// answer the dialog all the same.
	earlyNS = 2e9
	// slowNS between key and effect makes it doubtful that one caused the other.
	slowNS = 5e9
)

// A Screen is the witness of one terminal. Its methods must not be called concurrently, and must be
// called in the order things happened.
type Screen struct {
	emit     func(event.Event)
	grid     *grid.Grid
	view     view
	grammars []grammar
	keys     keyParser

	lastOut   uint64 // time of the last output
	lastIn    uint64 // time of the last input
	syncSince uint64
	base      uint64 // bytes skipped or drawn by a model that was given up: offset = base + written
	sampled   uint64 // grid version at the last look
	looked    bool   // there was one
	stale     bool   // resized, and not drawn anew since
	resized   uint64 // when
	torn      bool   // output was skipped, and not all of the screen redrawn since
	faults    int

	candidate *standing // seen once where the output paused, not yet told
	open      *standing // on the screen
	aside     *standing // left the screen at a key that answers nothing; may come back
	leaving   *standing // left the screen, its decision row has not come
	done      *standing // answered, but never erased from the screen
	rows      rowBook
	denials   int // denial lines of Claude's on the screen at the last look with a dialog

	early            string // the last key typed while no dialog was open
	earlyAt          uint64 // when
	prompts, answers int
	rules            []savedRule
}

// New returns the witness of a terminal of the given size. emit is called from within the other
// methods, in the order of what is seen.
func New(cols, rows int, emit func(event.Event)) *Screen {
	s := &Screen{emit: emit, grammars: grammars(), rows: newRowBook()}
	s.newGrid(cols, rows)
	return s
}

func (s *Screen) newGrid(cols, rows int) {
	s.grid = grid.New(cols, rows)
	s.grid.Hooks = grid.Hooks{
		Frame: func(sync bool) {
			if sync {
				s.look(whole, s.lastOut)
				return
			}
			s.look(finished, s.lastOut)
		},
		Cleared: func() { s.torn, s.stale = false, false },
	}
	s.sampled, s.looked = 0, false
	if s.grid.Clamped() {
		s.emit(event.New(s.lastOut, nil, &event.ScreenUnreadable{
			Why: fmt.Sprintf("terminal of %d by %d is larger than the model", cols, rows)}))
	}
}

// Output draws what the terminal was sent. timeNS is when it was read, in boot time.
func (s *Screen) Output(p []byte, timeNS uint64) {
	s.beforeOutput(timeNS)
	for len(p) > 0 && !s.gaveUp() {
		p = p[s.draw(p):]
	}
	s.base += uint64(len(p))
	s.expire(s.lastOut)
}

func (s *Screen) beforeOutput(timeNS uint64) {
	defer s.recovered(timeNS)
	s.flushKeys(s.lastIn + escNS) // what is drawn now may be the answer to it
	s.pause(timeNS)
	s.lastOut = max(timeNS, s.lastOut)
	// Not every assistant erases the screen when its size changes, and what it writes first is not
	// yet for the new size.
	s.stale = s.stale && timeNS < s.resized+redrawNS
}

// draw draws p, up to the byte that led to a fault, and returns how many bytes that is.
func (s *Screen) draw(p []byte) (n int) {
	defer s.recovered(s.lastOut)
	for n < len(p) {
		if k := s.grid.Run(p[n:]); k > 0 {
			n += k
			continue
		}
		was := s.grid.Syncing()
		n++
		s.grid.Write(p[n-1 : n])
		if !was && s.grid.Syncing() {
			s.syncSince = s.lastOut
		}
	}
	return n
}

// Input takes what the user typed, as it is passed on to the assistant.
func (s *Screen) Input(p []byte, timeNS uint64) {
	if s.gaveUp() {
		return
	}
	defer s.recovered(timeNS)
	s.flushKeys(timeNS)
	s.pause(timeNS)
	s.lastIn = max(timeNS, s.lastIn)
	keys := s.keys.take(p)
	if len(keys) > 0 {
		s.look(before, s.lastOut)
	}
	for _, k := range keys {
		s.press(k, timeNS)
	}
}

// Idle says that nothing happened up to timeNS. Calling it now and then is optional: without it a
// dialog is told at the next output or key.
func (s *Screen) Idle(timeNS uint64) {
	defer s.recovered(timeNS)
	s.flushKeys(timeNS)
	s.pause(timeNS)
	s.expire(timeNS)
}

// Resize changes the size of the terminal.
func (s *Screen) Resize(cols, rows int, timeNS uint64) {
	defer s.recovered(timeNS)
	if c, r := s.grid.Size(); c == cols && r == rows {
		return
	}
	s.pause(timeNS)
	s.grid.Resize(cols, rows)
	s.stale, s.resized = true, timeNS // until the assistant draws for the new size, the picture is cut
	s.rows.resized = true
	if s.grid.Clamped() {
		s.tell(timeNS, &event.ScreenUnreadable{
			Why: fmt.Sprintf("terminal of %d by %d is larger than the model", cols, rows)})
	}
}

// Skipped says that n bytes of output were not passed to Output. What stands on the screen is not
// sure from then on until all of it is drawn again.
func (s *Screen) Skipped(n uint64, timeNS uint64) {
	defer s.recovered(timeNS)
	if n == 0 {
		return
	}
	s.pause(timeNS)
	s.base += n
	s.torn = true
	s.grid.Abort()
	s.tell(timeNS, &event.ScreenUnreadable{Why: "output was skipped", Skipped: n})
}

// Close ends the session: what is still open is told as far as it is known.
func (s *Screen) Close(timeNS uint64) {
	defer s.recovered(timeNS)
	for _, k := range s.keys.flush() {
		s.press(k, s.lastIn)
	}
	s.look(last, s.lastOut)
	s.end(timeNS)
}

// flushKeys makes an ESC that nothing followed the Esc key.
func (s *Screen) flushKeys(now uint64) {
	if now < s.lastIn+escNS {
		return
	}
	keys := s.keys.flush()
	if len(keys) > 0 {
		s.look(before, s.lastOut)
	}
	for _, k := range keys {
		s.press(k, s.lastIn)
	}
}

// pause looks at the screen if the output has paused.
func (s *Screen) pause(now uint64) {
	switch gap := int64(now - s.lastOut); {
	case s.lastOut == 0:
	case gap >= stillNS:
		s.look(still, s.lastOut)
	case gap >= quietNS:
		s.look(paused, s.lastOut)
	}
}

func (s *Screen) offset() uint64 { return s.base + s.grid.Written() }

// recovered turns a fault of the model or a grammar into an event. The witness goes on with a blank
// screen: it must not take the session with it.
func (s *Screen) recovered(timeNS uint64) {
	r := recover()
	if r == nil {
		return
	}
	cols, rows := s.grid.Size()
	s.base += s.grid.Written()
	s.candidate, s.open, s.aside, s.leaving, s.done = nil, nil, nil, nil, nil
	s.keys = keyParser{}
	s.torn = true
	s.faults++
	s.tell(timeNS, &event.ScreenUnreadable{Why: fmt.Sprintf("the screen reader failed: %v", r)})
	if s.gaveUp() {
		s.tell(timeNS, &event.ScreenUnreadable{Why: "the screen reader gave up: nothing is read from here on"})
	}
	s.newGrid(cols, rows)
}

// gaveUp reports whether the reader failed so often that what it fails on must be meant to make it
// fail.
func (s *Screen) gaveUp() bool { return s.faults >= maxFaults }

func (s *Screen) tell(timeNS uint64, body event.Body) {
	switch b := body.(type) {
	case *event.ScreenUnreadable:
		b.OutputOffset = s.offset()
	}
	s.emit(event.New(timeNS, nil, body))
}
