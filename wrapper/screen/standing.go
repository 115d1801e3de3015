package screen

import (
	"strings"

	"github.com/ryehq/rye/event"
)

// A standing dialog has been on the screen since a time, and what happened to it so far.
type standing struct {
	d       dialog
	id      string
	since   uint64
	missing uint64 // time+1 of the look that did not show it, 0 for none
	gone    uint64
	answer  *answer
	other   string // the last key that answers nothing
	moves   int    // by which the mark will move once the keys are taken
	digits  int    // typed, for a dialog in which Enter takes the number
	typing  bool   // keys are text
	doubt   []string
	early   string // a key typed shortly before it was drawn
	told    bool   // an unreadable one that was reported
}

// An answer is a key that may have answered the dialog.
type answer struct {
	key      string
	timeNS   uint64
	option   int // index of the option it means, -1 for none
	decision string
	screen   []string
	doubt    string
	stood    uint64 // last time the dialog was seen after it
	marked   bool   // a digit that moved the mark to its option: perhaps it chose nothing yet
}

func (st *standing) doubts(is bool, why string) {
	if is {
		st.doubt = append(st.doubt, why)
	}
}

// again reports whether d is another dialog with the words of st: for those that are never erased it
// stands in another place.
func (st *standing) again(d *dialog) bool {
	return st.d.stays && st.answer != nil && d.absTop > st.d.absTop
}

// repaint takes a new reading of the same dialog. What an option meant when it was first read stays:
// later its label may hold what the user types. Text that was read whole is not replaced by less.
func (st *standing) repaint(d *dialog, timeNS uint64) {
	old := st.d
	st.missing = 0
	if d.marked != old.marked || d.marked < 0 {
		st.moves = 0
	}
	st.d = *d
	if len(d.options) == len(old.options) {
		for i := range d.options {
			o, now := old.options[i], &d.options[i]
			if o.decision == "" {
				continue
			}
			now.input = now.input || o.input || now.label != o.label
			if now.decision != o.decision { // the same one may be a rule that the user edits
				now.decision, now.prefix = o.decision, o.prefix
			}
		}
		if d.marked >= 0 {
			st.d.typed = d.options[d.marked].input
		}
	}
	if d.cut && !old.cut || d.ambiguous && !old.ambiguous {
		st.d.command, st.d.ambiguous, st.d.cut, st.d.hidden = old.command, old.ambiguous, old.cut, old.hidden
		st.d.kind, st.d.thread, st.d.reason = old.kind, old.thread, old.reason
		st.d.doubt = old.doubt
	}
	st.typing = st.d.typed
	if a := st.answer; a != nil && a.option >= 0 && a.option == d.marked && d.marked != old.marked && isDigit(a.key) {
		a.marked = true
	}
	st.stands(timeNS)
}

// stands notes that the dialog was on the screen at timeNS, whatever was typed before.
func (st *standing) stands(timeNS uint64) {
	if a := st.answer; a != nil && timeNS > a.timeNS {
		a.stood = timeNS
	}
}

// press takes one key of the user's.
func (s *Screen) press(k key, timeNS uint64) {
	st := s.open
	if st == nil {
		s.early, s.earlyAt = k.name, timeNS
		return
	}
	if st.d.unread != "" {
		if !moves(k.name) && !st.told {
			st.told = true
			s.tell(timeNS, &event.ScreenUnreadable{Why: st.d.unread, Screen: st.d.screen, AnsweredKey: k.name})
		}
		return
	}
	if old := st.answer; old != nil && old.bound() && !old.marked && old.stood < old.timeNS+settledNS {
		return // the first one was not refused: this key is for what comes after
	}
	a, ok := st.bind(k)
	if !ok || st.answer != nil && !a.bound() {
		return
	}
	a.key, a.timeNS = k.name, timeNS
	a.screen = st.d.screen
	st.answer = &a
}

// bound reports whether it is known what the key means.
func (a *answer) bound() bool { return a.option >= 0 || a.decision != "" }

func moves(key string) bool {
	switch key {
	case "up", "down", "left", "right", "tab", "shift+tab", "home", "end", "pageup", "pagedown", "ctrl+n", "ctrl+p":
		return true
	}
	return false
}

// bind says what a key means in the dialog as it stands. ok is false for a key that answers nothing.
func (st *standing) bind(k key) (a answer, ok bool) {
	d := &st.d
	a.option = -1
	switch k.name {
	case "up", "down", "left", "right", "ctrl+p", "ctrl+n":
		if k.name == "up" || k.name == "left" || k.name == "ctrl+p" {
			st.moves--
		} else {
			st.moves++
		}
		return a, false
	case "enter":
		return st.confirm()
	case "esc", "ctrl+c":
		a.option = d.byKey("esc")
		a.decision = event.DecisionCancelled
		return a, true
	case "mouse":
		a.option = d.optionAt(k.y)
		if d.agent == "opencode" && a.option >= 0 {
			a.option = d.optionUnder(k.x)
		}
		return a, a.option >= 0
	case "tab":
		st.typing = d.agent == "claude"
	}
	if st.typing {
		st.other = "text"
		return a, false
	}
	if i := d.byKey(k.name); i >= 0 {
		a.option = i
		return a, true
	}
	if isDigit(k.text) {
		n := int(k.text[0] - '0')
		switch d.digit {
		case digitActs:
			a.option = d.byNumber(n)
			return a, a.option >= 0
		case digitTyped:
			st.digits = n
			return a, false
		}
	}
	if d.fallback {
		if k.name == "y" {
			a.option = d.byDecision(event.DecisionThisTime)
		} else if k.name == "n" {
			a.option = d.byDecision(event.DecisionDenied)
		}
		if a.option >= 0 {
			return a, true
		}
	}
	if d.row && k.text != "" {
		return a, true // keys can be remapped, and the row tells what it did
	}
	st.other = k.name
	return a, false
}

func isDigit(key string) bool { return len(key) == 1 && key[0] >= '1' && key[0] <= '9' }

// confirm is Enter: the option with the mark, moved by the arrow keys that were not drawn yet.
func (st *standing) confirm() (a answer, ok bool) {
	d := &st.d
	a.option = -1
	if d.digit == digitTyped {
		a.option = d.byNumber(st.digits)
		if a.option < 0 {
			return a, false // nothing was chosen: Enter does nothing
		}
		return a, true
	}
	if d.marked < 0 {
		a.doubt = "the marked option is not on the screen"
		return a, true
	}
	i := d.marked + st.moves
	if i < 0 || i >= len(d.options) {
		a.doubt = "the mark was moved past the end of the options"
		i = ((i % len(d.options)) + len(d.options)) % len(d.options)
	}
	a.option = i
	return a, true
}

// optionUnder returns the option of a row of options that column x is on, or -1.
func (d *dialog) optionUnder(x int) int {
	for i, o := range d.options {
		if x >= o.col-1 && x <= o.col+len(o.label) {
			return i
		}
	}
	return -1
}

// meaning is what the answer decides, "" if that is not known.
func (st *standing) meaning() string {
	a := st.answer
	if a == nil {
		return ""
	}
	if a.decision != "" {
		return a.decision
	}
	if a.option >= 0 && a.option < len(st.d.options) {
		return st.d.options[a.option].decision
	}
	return ""
}

// prefix is what the answer saves, if it is an "always".
func (st *standing) prefix() []string {
	if a := st.answer; a != nil && a.option >= 0 && a.option < len(st.d.options) && st.d.options[a.option].decision == event.DecisionAlways {
		return st.d.options[a.option].prefix
	}
	return st.d.alwaysPrefix()
}

func reasons(list ...string) string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}
