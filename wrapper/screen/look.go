package screen

import (
	"slices"
	"strings"
)

// A moment is why the screen is looked at, and so how sure it is that the picture is whole.
type moment int

const (
	paused   moment = iota // the output paused: most likely whole
	before                 // a key comes: this is what the user answers
	finished               // the picture is about to be erased
	whole                  // a synchronized update ended
	still                  // the picture has stood unchanged for a while
	last                   // the session ends
)

// look reads the screen, if it changed, and takes what it shows.
func (s *Screen) look(why moment, timeNS uint64) {
	if s.stale && why != last || s.gaveUp() {
		return
	}
	if s.grid.Syncing() && why != last && (why != before || s.lastIn < s.syncSince+syncNS) {
		return // the terminal still shows the frame before
	}
	if why == paused && !s.grid.Whole() {
		return
	}
	if s.looked && s.grid.Version() == s.sampled && why != last && !s.awaitsAnother(why) {
		if s.open != nil && why == whole {
			s.open.stands(timeNS) // painted again, the same
		}
		return
	}
	s.sampled, s.looked = s.grid.Version(), true
	s.view.refresh(s.grid, s.offset())
	var d *dialog
	for _, g := range s.grammars {
		if d = g.read(&s.view); d != nil {
			break
		}
	}
	s.take(d, why, timeNS)
}

// awaitsAnother reports whether a second look at the same picture would make something sure.
func (s *Screen) awaitsAnother(why moment) bool {
	return why != paused && (s.candidate != nil || s.open != nil && s.open.missing > 0)
}

// sure reports whether what is not on the screen at this moment is really gone.
func (m moment) sure() bool { return m != paused && m != before }

// take compares what the screen shows with what stood there before.
func (s *Screen) take(d *dialog, why moment, timeNS uint64) {
	if d != nil && d.notFor {
		d = nil
	}
	if d != nil {
		d.alternate = s.view.alternate
	}
	fresh := s.rows.fresh(readRows(&s.view, s.leaving != nil || s.open != nil))
	if st := s.open; st != nil {
		fresh = s.standing(st, d, fresh, why, timeNS)
	}
	if s.leaving != nil {
		fresh = s.settle(fresh, timeNS)
	}
	s.loose(fresh, timeNS)
	if s.open != nil {
		s.denials = denials(&s.view)
		return
	}
	if d == nil {
		s.forget(why, timeNS)
		return
	}
	if s.done != nil && s.done.d.absTop == d.absTop && s.done.d.sameAs(d) {
		return // answered long ago and never erased
	}
	s.appear(d, why, timeNS)
}

// standing updates the open dialog st, or lets it go. It returns the rows that st does not explain.
func (s *Screen) standing(st *standing, d *dialog, fresh []decisionRow, why moment, timeNS uint64) []decisionRow {
	if d != nil && st.d.sameAs(d) && !st.again(d) {
		if st.d.row {
			for i, r := range fresh {
				if r.styled && r.tells(&st.d) { // decided, and an equal request stands in its place
					s.open = nil
					s.rows.took(r)
					s.resolve(st, &r, timeNS)
					return append(fresh[:i:i], fresh[i+1:]...)
				}
			}
		}
		st.repaint(d, timeNS)
		return fresh
	}
	decided := slices.ContainsFunc(fresh, func(r decisionRow) bool { return r.tells(&st.d) })
	if d == nil && st.answer == nil && !why.sure() && st.missing == 0 && !decided {
		st.missing = timeNS + 1 // perhaps between two frames: look again
		return fresh
	}
	s.open = nil
	switch {
	case st.answer == nil && st.d.offer:
	case st.answer == nil && st.d.alternate && !s.view.alternate:
		// The assistant gave up its screen, as it does when it ends. That answers nothing.
	case st.d.unread != "":
		s.unreadable(st, timeNS)
	case st.answer == nil && st.other != "" && d == nil:
		s.dropAside(timeNS)
		st.gone = timeNS
		s.aside = st // ctrl+t, a full-screen view: not an answer
	case st.d.row:
		st.gone = timeNS
		s.leaving = st
	default:
		s.resolve(st, nil, timeNS)
	}
	return fresh
}

// appear opens a dialog that was not on the screen at the last look.
func (s *Screen) appear(d *dialog, why moment, timeNS uint64) {
	if st := s.aside; st != nil && st.d.sameAs(d) {
		s.aside, s.open = nil, st
		st.other = ""
		st.repaint(d, timeNS)
		return
	}
	c := s.candidate
	if why == paused && (c == nil || !d.grows(&c.d)) {
		s.flushCandidate(timeNS)
		s.candidate = &standing{d: *d, since: timeNS}
		return
	}
	since := timeNS
	if c != nil {
		if d.grows(&c.d) {
			since = c.since
		} else {
			s.flushCandidate(timeNS)
		}
	}
	s.candidate, s.done = nil, nil
	s.opened(&standing{d: *d, since: since})
}

// forget drops what is not on the screen any more.
func (s *Screen) forget(why moment, timeNS uint64) {
	if why.sure() {
		s.flushCandidate(timeNS)
		s.done = nil
	}
}

// flushCandidate tells a dialog that stood there for one look only. It was on the screen, if briefly;
// what was half drawn is none.
func (s *Screen) flushCandidate(timeNS uint64) {
	c := s.candidate
	s.candidate = nil
	if c == nil || c.d.fallback || c.d.unread != "" {
		return
	}
	s.opened(c)
	s.open = nil
	if c.d.row {
		c.gone = timeNS
		s.leaving = c
		return
	}
	s.resolve(c, nil, timeNS)
}

func (s *Screen) opened(st *standing) {
	s.dropLeaving(st.since)
	if st.d.unread == "" {
		s.dropAside(st.since)
		s.prompted(st)
	}
	s.open = st
	if s.early != "" && st.since < s.earlyAt+earlyNS {
		st.early = s.early
	}
	st.doubts(s.torn, "output was skipped before it was drawn")
	s.denials = denials(&s.view)
}

// grows reports whether d is o, or o drawn further.
func (d *dialog) grows(o *dialog) bool {
	if d.sameAs(o) {
		return true
	}
	return d.agent == o.agent && d.kind == o.kind && d.absTop == o.absTop && strings.HasPrefix(squeeze(d.command), squeeze(o.command))
}

// denials counts the lines with which Claude Code says that something was not allowed.
func denials(v *view) int {
	n := 0
	for _, l := range v.lines {
		for _, t := range []string{"Interrupted · What should Claude do instead?", "No (tell Claude what to do differently)", "User rejected "} {
			if strings.Contains(l.text, t) {
				n++
			}
		}
	}
	return n
}
