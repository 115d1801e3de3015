package verify

import (
	"slices"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/proctree"
)

// The model's own answer, read on its way through the proxy, is a witness of what was asked that the assistant does
// not write. Where a transcript has the same call, the transcript stays the one that says whose it is (its thread, its
// sub-agent); the two are held against each other.

// addAsked keeps a call that stood in the model's answer. One that the answer broke off in was never asked whole.
func (f *facts) addAsked(e event.Event, b *event.ToolCall) {
	if b.Unfinished {
		return
	}
	c := f.callByID[b.ID]
	switch {
	case c == nil:
		c = &call{ToolCall: b, seq: e.Seq}
		f.calls = append(f.calls, c)
		f.callByID[b.ID] = c
	case c.Tool == "" && c.Kind == "": // known by its result alone
		c.ToolCall, c.seq = b, e.Seq
	}
	if c.model != nil { // the same answer again, to a client that tried again
		return
	}
	c.model = b
	c.ns = b.AskedTimeNS // on the kernel's clock; a transcript's is the wall's
	c.seqs = append(c.seqs, e.Seq)
	c.modelSeq = e.Seq
}

// ryeHook is the housekeeping that rye itself asked for.
const ryeHook = "rye-hook"

// ownHook: the program is the hook that rye set up for this session.
func (f *facts) ownHook(x *proctree.Exec) bool {
	if x == nil {
		return false
	}
	text, _, ok := shellText(x)
	return ok && slices.ContainsFunc(f.rules, func(r rulesFile) bool {
		return r.Level == "rye" && slices.ContainsFunc(r.Rules, func(rule event.Rule) bool { return rule.Pattern == text })
	})
}

// addHooked keeps a call that the assistant told rye's own hook of, in the moment before it asked or ran: as good a
// word of what it was as the transcript's, and on the kernel's clock.
func (f *facts) addHooked(e event.Event, b *event.ToolCall) {
	c := f.callByID[b.ID]
	switch {
	case c == nil || b.ID == "":
		c = &call{ToolCall: b, seq: e.Seq}
		f.calls = append(f.calls, c)
		f.callByID[b.ID] = c
	case c.Tool == "" && c.Kind == "":
		c.ToolCall, c.seq = b, e.Seq
	}
	if c.hook == nil {
		c.hook, c.hookSeq, c.ns = b, e.Seq, b.AskedTimeNS
	}
	c.seqs = append(c.seqs, e.Seq)
}

// judgeHooked holds the assistant's record against what it told the hook.
func (v *judge) judgeHooked(it *item) {
	c := it.call
	if c == nil || c.hook == nil {
		return
	}
	if c.Source == "hook" {
		if it.cand != nil && it.cand.root != nil && v.readsTranscript(it.cand) {
			v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "not-recorded", Records: []uint64{c.hookSeq, it.cand.root.Seq},
				Message: sayf("The assistant told rye's hook of %s and it ran; its own record does not have the call.", quote(it.text()))})
		}
		return
	}
	if c.ToolCall.Source != "transcript" || c.Kind != "command" || c.hook.Kind != "command" || c.Command == c.hook.Command || redacted(c.Command) {
		return
	}
	v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "asked-other", Records: []uint64{c.seq, c.hookSeq},
		Message: sayf("The assistant recorded that the model asked for %s; it told rye's hook of %s.", quote(c.Command), quote(c.hook.Command))})
}

// judgeModel holds the assistant's record against the model's answer.
func (v *judge) judgeModel(it *item) {
	c := it.call
	if c == nil || c.model == nil {
		return
	}
	if c.Source == "api" {
		if it.cand != nil && it.cand.root != nil && v.readsTranscript(it.cand) {
			v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "not-recorded", Records: []uint64{c.modelSeq, it.cand.root.Seq},
				Message: sayf("The model asked for %s and it ran; the assistant's own record does not have the call.", quote(it.text()))})
		}
		return
	}
	told, asked := c.ToolCall, c.model
	if told.Source != "transcript" || asked.ArgumentsCut || told.Kind != "command" || asked.Kind != "command" || told.Command == asked.Command || redacted(told.Command) {
		return
	}
	v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "asked-other", Records: []uint64{c.seq, c.modelSeq},
		Message: sayf("The assistant recorded that the model asked for %s; the model's own answer has %s.", quote(told.Command), quote(asked.Command))})
}
