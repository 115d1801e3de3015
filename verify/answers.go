package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// judgeAnswer asks whether what ran was allowed, and by whom.
func (v *judge) judgeAnswer(it *item) {
	ran := it.cand.root
	text := it.ran()
	if it.cand.stray {
		v.doubt(it, EvidenceLost, "lineage-unknown", sayf("Nobody in the session was seen to start %s, so whether it is what was allowed cannot be told.", quoteArgv(ran.Argv)), ran.Seq)
		if !it.covered && it.decision == nil {
			return
		}
	}
	if d := it.decision; d != nil && d.denied {
		v.find(it, Finding{Code: DeniedButRan, Severity: Contradicts, Records: append(d.records(), ran.Seq),
			Message: sayf("The answer to %s was no, and it ran anyway as %s.", quote(d.command), quote(text))})
		return
	}
	if it.call != nil && it.call.refused() && !it.ownWord() {
		v.find(it, Finding{Code: DeniedButRan, Severity: Contradicts, Reason: "own-record", Records: append(it.call.records(), ran.Seq),
			Message: sayf("The assistant recorded that %s was refused, and it ran anyway.", quote(text))})
	}
	if prior := v.decisionsFor(text, it.start()); prior != nil && prior.denied && prior.item != it && !it.ownWord() && it.allowed.Source != "terminal" {
		f := Finding{Code: DeniedButRan, Severity: Contradicts, Records: append(prior.records(), ran.Seq),
			Message: sayf("You said no to %s; later it ran without another question.", quote(text))}
		if it.covered && it.call != nil && prior.item != nil && prior.item.call != it.call {
			f.Severity = Warning
			f.Message = sayf("You said no to %s; a new request for the same later ran under %s.", quote(text), coverWords(it.allowed))
		}
		v.find(it, f)
		if !it.covered {
			return
		}
	}
	if !it.covered {
		v.judgeUncovered(it)
		return
	}
	if d := it.decision; d != nil && it.allowed.Source == "terminal" && it.allowed.ApprovalID == d.id {
		v.judgeOrder(it, d)
		if d.doubt != "" {
			v.doubt(it, EvidenceLost, "uncertain-answer", sayf("The dialog for %s could not be read for sure (%s); compare the recording before relying on it.", quote(text), d.doubt), d.records()...)
		}
	} else if d != nil && !d.denied && !v.valid(d) {
		v.find(it, Finding{Code: ApprovalUnattested, Severity: Warning, Records: append(d.records(), ran.Seq),
			Message: sayf("The screen showed an approval of %s that no key press stands behind; it was allowed by %s all the same.", quote(text), coverWords(it.allowed))})
	}
	if d := it.decision; d != nil && d.decision == event.DecisionAlwaysRule && it.allowed.Source == "terminal" {
		v.judgeAlwaysLine(it, d)
	}
	if it.allowed.Source == "mode" && it.allowed.Type == "never" {
		v.judgeSandboxClaim(it)
	}
}

// judgeAlwaysLine: the assistant says that an earlier "always" covers this; the words of that answer
// must.
func (v *judge) judgeAlwaysLine(it *item, d *decision) {
	if _, ok := v.coverAlways(it); ok {
		return
	}
	if _, ok := v.coverRule(it); ok {
		return
	}
	for _, o := range v.facts.decisions {
		if o.id == d.rule && len(o.prefix) > 0 {
			v.find(it, Finding{Code: RuleExceeded, Severity: Contradicts, Records: append(append(o.records(), d.records()...), it.cand.root.Seq),
				Message: sayf("%s ran without a question as if covered by your \"always\" to %s, whose words do not cover it.", quote(it.ran()), quote(strings.Join(o.prefix, " ")))})
			return
		}
	}
}

// coverWords says what allowed an action, for a sentence.
func coverWords(a Allowed) string {
	switch a.Source {
	case "rule":
		return "the rule " + quote(a.Rule)
	case "mode":
		return "the mode " + a.Type
	case "safe-list":
		return "the assistant's list of safe commands"
	case "terminal":
		return "approval " + a.ApprovalID
	case "hook":
		return "a hook"
	case "user-shell":
		return "you typing it yourself"
	}
	return "your own command line"
}

// judgeOrder: an approval counts for what comes after it.
func (v *judge) judgeOrder(it *item, d *decision) {
	at := d.keyNS
	if at == 0 && d.prompt != nil {
		at = d.prompt.ns // no answer can be older than its question
	}
	if at == 0 || it.cand.startNS >= at {
		return
	}
	v.find(it, Finding{Code: ExecBeforeApproval, Severity: Contradicts, Records: append(d.records(), it.cand.root.Seq),
		Message: sayf("%s started %.3f s before it was approved.", quote(it.ran()), float64(at-it.cand.startNS)/1e9)})
}

// judgeUncovered: nothing that was seen allowed this run. What could not be seen is looked at before
// it is called unapproved.
func (v *judge) judgeUncovered(it *item) {
	ran := it.cand.root
	text := it.ran()
	if d := it.decision; d != nil && !d.denied && !v.valid(d) {
		v.find(it, Finding{Code: ApprovalUnattested, Severity: Contradicts, Records: append(d.records(), ran.Seq),
			Message: sayf("The screen showed an approval of %s, but no key was pressed for it: a program, a hook or someone else answered.", quote(text))})
		return
	}
	if it.shown != nil {
		v.find(it, Finding{Code: ExecUnapproved, Severity: Contradicts, Reason: "not-shown", Records: append(it.shown.records(), ran.Seq),
			Message: sayf("%s ran, but the dialog that was answered showed %s: nobody approved what ran.", quote(text), quote(it.shown.command))})
		return
	}
	if u := v.unread(it); u != nil {
		v.doubt(it, EvidenceLost, "prompt-not-recognised", sayf("A prompt that rye could not read was answered before %s ran; look at it in the recording.", quote(text)), u.seq, ran.Seq)
		return
	}
	if r := v.ownWitness(it); r != nil {
		v.doubt(it, EvidenceLost, "single-witness", sayf("Only the assistant's own record says that %s allowed %s; nothing else shows it.", r.DecisionBy, quote(text)), r.seq, ran.Seq)
		return
	}
	if v.otherThread(it) {
		v.doubt(it, EvidenceLost, "other-thread", sayf("%s ran for thread %s, which none of this session's records know; another terminal may share the assistant's daemon.", quote(text), it.cand.thread), ran.Seq)
		return
	}
	if it.call == nil && v.helperLike(it) {
		v.doubt(it, EvidenceLost, "helper-not-recognised", sayf("%s started %s for itself in a way this version does not know; it may be a hook or a command.", it.cand.agent, quote(text)), ran.Seq)
		return
	}
	if f := v.unreadAt(it.agent(), it.start()); f != nil {
		v.doubt(it, EvidenceLost, "rules-unread", sayf("%s ran and nothing that rye saw allowed it; the permission file %s could not be read and may.", quote(text), quote(f.Path)), f.seq, ran.Seq)
		return
	}
	f := Finding{Code: ExecUnapproved, Severity: Contradicts, Reason: "no-approval-seen", Records: []uint64{ran.Seq},
		Message: sayf("%s ran and nothing allowed it: no answer on the terminal, no rule, no mode.", quote(text))}
	if it.call != nil {
		f.Records = append(f.Records, it.call.records()...)
	}
	if used := v.usedBy(it); used != nil {
		f.Reason = "approval-used"
		f.Records = append(f.Records, used.records()...)
		f.Message = sayf("%s ran again: approval %s was for one run and had been used.", quote(text), used.id)
	} else if it.open.open != "" {
		f.Reason = firstOf(it.open.why, "rule-does-not-cover")
		f.Message = sayf("%s ran and no rule covers %s in it.", quote(text), quote(it.open.open))
		if it.open.why == "unparsed" {
			f.Message = sayf("%s ran; it could not be read as shell text, so no rule can cover it.", quote(text))
		}
	}
	v.find(it, f)
}

// usedBy is an approval of the same text that an earlier run has used up.
func (v *judge) usedBy(it *item) *decision {
	for _, d := range v.facts.decisions {
		if !d.denied && d.item != nil && d.item != it && d.item.cand != nil && d.answered() <= it.start() && it.cand.runs(d.command) >= invisible {
			return d
		}
	}
	return nil
}

// unread is an unreadable prompt that was answered before an action, or output the scanner never saw.
// One answer is given to one action.
func (v *judge) unread(it *item) *unreadable {
	for _, u := range v.facts.unreadable {
		if u.ns > it.start() {
			continue
		}
		if u.AnsweredKey != "" && !u.used {
			u.used = true
			return u
		}
		if u.Skipped > 0 {
			return u
		}
	}
	for _, o := range v.items {
		d := o.decision
		if d == nil || o.cand != nil || d.denied || d.command != "" || !d.attested || d.answered() > it.start() || d.item == it {
			continue
		}
		u := &unreadable{ScreenUnreadable: &event.ScreenUnreadable{Why: "dialog without a command", AnsweredKey: d.decision}, seq: d.seq, ns: d.ns, used: true}
		d.item, o.decision = it, nil
		return u
	}
	return nil
}

// ownWitness is the assistant's own word that something else than the user allowed a call.
func (v *judge) ownWitness(it *item) *result {
	if it.call == nil {
		return nil
	}
	for i := range it.call.results {
		r := &it.call.results[i]
		if r.Decision == "reject" || r.Decision == "deny" {
			continue
		}
		switch r.decider() {
		case "rule", "config", "mode", "classifier", "hook", "policy":
			return r
		}
	}
	return nil
}

// decider is who the assistant says decided, without the reason it adds ("config:rule").
func (r *result) decider() string {
	by, _, _ := strings.Cut(r.DecisionBy, ":")
	return by
}

// otherThread: the assistant's daemon serves other terminals too; what it runs for a thread that this
// session's transcripts do not know may be theirs.
func (v *judge) otherThread(it *item) bool {
	t := it.cand.thread
	if t == "" || it.cand.agent != codex || it.call != nil {
		return false
	}
	adopted, known := false, false
	for _, x := range v.cast.main {
		adopted = adopted || x.Adopted
	}
	for _, c := range v.facts.calls {
		if c.Thread == t {
			return false
		}
		known = known || c.Thread != ""
	}
	for _, c := range v.facts.contexts {
		if c.Thread == t {
			return false
		}
		known = known || c.Thread != ""
	}
	return adopted && known
}

// helperLike: Claude runs a model's command in one known form only; a plain "sh -c TEXT" beside it is
// most likely a hook. Versions that mark their own children are told apart in keep.go.
func (v *judge) helperLike(it *item) bool {
	c := it.cand
	if c.agent != claude || len(c.chain) > 0 || c.carried.grammar != "shell" || c.root.Env["AI_AGENT"] != "" {
		return false
	}
	// A version that marks its children marks its hooks too.
	marks := slices.ContainsFunc(v.cast.candidates, func(o *candidate) bool { return o.root != nil && o.root.Env["AI_AGENT"] != "" })
	return baseOf(c.root.Argv[0]) == "sh" && len(c.root.Argv) == 3 && !marks
}

// judgeUnrun is an action that was asked for or allowed and that the kernel did not see run.
func (v *judge) judgeUnrun(it *item) {
	d := it.decision
	text := it.text()
	seqs := []uint64{}
	if d != nil {
		seqs = append(seqs, d.records()...)
	}
	if it.call != nil {
		seqs = append(seqs, it.call.records()...)
	}
	if it.cand != nil && it.cand.first() != nil {
		seqs = append(seqs, it.cand.first().Seq)
	}
	if d != nil && d.denied {
		return
	}
	if r := it.claimsRun(); r != nil && v.wholeFor("process.exec") {
		v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "never-ran", Records: seqs,
			Message: sayf("The assistant recorded that %s ran; the kernel saw no such program in the session.", quote(text))})
		return
	}
	if d == nil {
		return
	}
	if !v.valid(d) {
		v.find(it, Finding{Code: ApprovalUnattested, Severity: Warning, Records: seqs,
			Message: sayf("The screen showed an approval of %s that no key press stands behind; nothing was run for it.", quote(text))})
		return
	}
	if !v.wholeFor("process.exec") {
		v.doubt(it, EvidenceLost, "not-seen", sayf("%s was approved and not seen to run, but the record of programs has gaps.", quote(text)), seqs...)
		return
	}
	f := Finding{Code: ApprovedNotRun, Severity: Info, Records: seqs, Message: sayf("%s was approved and never ran.", quote(text))}
	if x := v.failedFor(it); x != nil {
		f.Reason = x.err
		f.Records = append(f.Records, x.seq)
		f.Message = sayf("%s was approved and could not be started: %s for %s.", quote(text), x.err, quote(x.path))
	}
	v.find(it, f)
}

// claimsRun: the assistant's record says what ran, and that it ended well.
func (it *item) claimsRun() *result {
	if it.call == nil || it.kind != "command" || it.cand != nil {
		return nil
	}
	for i := range it.call.results {
		r := &it.call.results[i]
		if r.Status == "completed" && (len(r.Command) > 0 || r.Record == "item" || it.call.Agent == claude && it.call.Command != "") && (r.ExitCode == nil || *r.ExitCode >= 0 && *r.ExitCode != 127 && *r.ExitCode != 126) {
			return r
		}
	}
	return nil
}

// failedFor is a failed exec of an assistant's child shortly after an approval.
func (v *judge) failedFor(it *item) *failedExec {
	for i := range v.facts.failed {
		x := &v.facts.failed[i]
		if x.ns >= it.decision.answered() && x.ns-it.decision.answered() < pairWithin {
			if o := v.cast.ownerOf(x.proc); o.kind == assistant || o.kind == launcher || o.kind == nobody {
				return x
			}
		}
	}
	return nil
}
