package screen

import (
	"fmt"

	"github.com/ryehq/rye/event"
)

// prompted tells a dialog that became readable.
func (s *Screen) prompted(st *standing) {
	s.prompts++
	st.id = fmt.Sprintf("p%d", s.prompts)
	d := &st.d
	cols, rows := s.grid.Size()
	s.tell(st.since, &event.ApprovalPrompted{
		ID: st.id, Agent: d.agent, Grammar: d.grammar, Kind: d.kind, Command: d.command,
		Ambiguous: d.ambiguous, Cut: d.cut, Hidden: d.hidden, Reason: d.reason,
		Options: labels(d.options), Prefix: d.alwaysPrefix(), Thread: d.thread, Screen: d.screen,
		Cols: cols, Rows: rows, OutputOffset: d.offset,
	})
}

func (s *Screen) unreadable(st *standing, timeNS uint64) {
	if !st.told {
		st.told = true
		s.tell(timeNS, &event.ScreenUnreadable{Why: st.d.unread, Screen: st.d.screen})
	}
}

// resolve tells how a dialog was decided: by the row, if the assistant printed one, else by the key
// that was typed before it went away.
func (s *Screen) resolve(st *standing, row *decisionRow, timeNS uint64) {
	d := &st.d
	decision := st.meaning()
	doubt := append([]string{d.doubt}, st.doubt...)
	if a := st.answer; a != nil {
		doubt = append(doubt, a.doubt)
		if a.stood > a.timeNS+slowNS {
			doubt = append(doubt, fmt.Sprintf("the dialog stood for %d s after the key", (a.stood-a.timeNS)/1e9))
		}
		if decision == "" && row == nil {
			doubt = append(doubt, "what the key chose is not known")
		}
	}
	switch {
	case row != nil:
		if st.answer != nil && decision != "" && decision != row.decision {
			doubt = append(doubt, fmt.Sprintf("the key %q meant %s, the decision row says %s", st.answer.key, decision, row.decision))
		}
		decision = row.decision
	case st.answer == nil:
		doubt = append(doubt, "went away without an answer from this terminal")
		if st.early != "" {
			doubt = append(doubt, fmt.Sprintf("the key %q was typed before it was drawn", st.early))
		}
	case d.row && st.gone > 0:
		doubt = append(doubt, "no decision row was seen")
	}
	if row == nil && d.agent == "claude" && denials(&s.view) > s.denials && (decision == "" || granted(decision)) {
		if decision != "" {
			doubt = append(doubt, fmt.Sprintf("the key meant %s, but it was denied", decision))
		}
		decision = event.DecisionDenied
	}
	s.decided(st, row, decision, reasons(doubt...), timeNS)
}

// decided tells the decision of a dialog.
func (s *Screen) decided(st *standing, row *decisionRow, decision, uncertain string, timeNS uint64) {
	d := &st.d
	s.answers++
	id := fmt.Sprintf("a%d", s.answers)
	var text string
	var cut bool
	if row != nil {
		text, cut = row.text, row.cut
	}
	key, keyNS, shown := "", uint64(0), d.screen
	if a := st.answer; a != nil {
		key, keyNS, shown = a.key, a.timeNS, a.screen
	}
	if d.stays && st.answer != nil {
		s.done = st
	}
	switch decision {
	case event.DecisionDenied, event.DecisionCancelled, event.DecisionTimeout:
		by := ""
		if st.answer != nil {
			by = "user"
		}
		s.tell(timeNS, &event.ApprovalDenied{
			ID: id, Prompt: st.id, Agent: d.agent, Kind: d.kind, Command: d.command, Row: text, RowCut: cut,
			Decision: decision, Attested: st.answer != nil, By: by, Key: key, KeyTimeNS: keyNS,
			Screen: shown, Uncertain: uncertain, OutputOffset: s.offset(),
		})
		return
	case "":
		decision = event.DecisionThisTime
	}
	if decision == event.DecisionSession && d.agent == "codex" && !d.cut && !d.ambiguous {
		s.save(savedRule{id: id, agent: d.agent, kind: d.kind, exact: d.command})
	}
	var prefix []string
	if decision == event.DecisionAlways {
		prefix = st.prefix()
		if row != nil && row.always && !row.cut {
			prefix = shellWords(row.subject)
		}
		s.save(savedRule{id: id, agent: d.agent, kind: d.kind, prefix: prefix})
	}
	s.tell(timeNS, &event.ApprovalGranted{
		ID: id, Prompt: st.id, Agent: d.agent, Kind: d.kind, Command: d.command, Row: text, RowCut: cut,
		Decision: decision, Prefix: prefix, Attested: st.answer != nil, Key: key, KeyTimeNS: keyNS,
		Screen: shown, Uncertain: uncertain, OutputOffset: s.offset(),
	})
}

// settle looks for the decision row of the dialog that left, and returns the rows that are not its.
func (s *Screen) settle(fresh []decisionRow, timeNS uint64) []decisionRow {
	st := s.leaving
	for i, r := range fresh {
		if r.tells(&st.d) {
			s.leaving = nil
			s.rows.took(r)
			s.resolve(st, &r, timeNS)
			return append(fresh[:i:i], fresh[i+1:]...)
		}
	}
	// The row may read like one of an earlier decision, which has scrolled away meanwhile. It is
	// believed if the key says the same.
	if r, ok := s.rows.lowest(); ok && r.tells(&st.d) && st.answer != nil && granted(st.meaning()) == granted(r.decision) && st.meaning() != "" {
		s.leaving = nil
		s.rows.took(r)
		s.resolve(st, &r, timeNS)
	}
	return fresh
}

// loose tells decision rows that no dialog explains: a reviewer's, or a program's drawing.
func (s *Screen) loose(fresh []decisionRow, timeNS uint64) {
	for _, r := range fresh {
		if r.plain { // without the glyph it is only believed beside its dialog
			continue
		}
		s.rows.took(r)
		s.answers++
		id := fmt.Sprintf("a%d", s.answers)
		by, uncertain := "", "a decision row without a dialog"
		if !r.styled {
			uncertain = "a decision row without a dialog, not painted as Codex does"
		}
		if r.reviewer {
			by = "reviewer"
			if r.styled {
				uncertain = ""
			}
		}
		if !granted(r.decision) {
			s.tell(timeNS, &event.ApprovalDenied{ID: id, Agent: "codex", Kind: r.kind, Command: r.subject, Row: r.text,
				RowCut: r.cut, Decision: r.decision, By: by, Uncertain: uncertain, OutputOffset: s.offset()})
			continue
		}
		s.tell(timeNS, &event.ApprovalGranted{ID: id, Agent: "codex", Kind: r.kind, Command: r.subject, Row: r.text,
			RowCut: r.cut, Decision: r.decision, Uncertain: uncertain, OutputOffset: s.offset()})
	}
}

// expire gives up on a decision row that does not come.
func (s *Screen) expire(now uint64) {
	defer s.recovered(now)
	if st := s.leaving; st != nil && now > st.gone+rowNS {
		s.dropLeaving(now)
	}
}

func (s *Screen) dropLeaving(timeNS uint64) {
	if st := s.leaving; st != nil {
		s.leaving = nil
		s.resolve(st, nil, timeNS)
	}
}

func (s *Screen) dropAside(timeNS uint64) {
	if st := s.aside; st != nil {
		s.aside = nil
		s.resolve(st, nil, timeNS)
	}
}

// end tells what is known of the dialogs that are still open. One that nobody answered has no
// decision.
func (s *Screen) end(timeNS uint64) {
	if s.candidate != nil {
		st := s.candidate
		s.candidate = nil
		s.opened(st)
	}
	s.dropLeaving(timeNS)
	s.dropAside(timeNS)
	st := s.open
	s.open = nil
	switch {
	case st == nil:
	case st.d.unread != "":
		s.unreadable(st, timeNS)
	case st.answer != nil && !st.answer.marked:
		st.doubts(!st.d.stays && granted(st.meaning()), "the session ended before the dialog went away")
		s.resolve(st, nil, timeNS)
	}
}
