package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/verify/shell"
)

// judgeText compares the three texts: what the model asked for, what the person saw, what ran.
func (v *judge) judgeText(it *item) {
	k := it.cand
	ran := it.ran()
	if k.root.Truncated || k.root.Marked("argv-unreadable") {
		v.judgeCut(it)
		return
	}
	if d := it.decision; d != nil && !d.denied {
		v.judgeShown(it, d)
	}
	c := it.call
	if c == nil || c.kind != "command" || c.text() == "" || c.Tool == "" && c.Kind == "" {
		return
	}
	if k.runs(c.text()) >= invisible {
		return
	}
	d := it.decision
	f := Finding{Code: AskedDiffers, Severity: Warning, Records: append(c.records(), k.root.Seq)}
	switch {
	case d != nil && !d.denied && d.matches(it) >= invisible:
		f.Message = sayf("The model asked for %s; what was shown, approved and run is %s. A hook or the assistant rewrote it.", quote(c.text()), quote(ran))
		f.Records = append(f.Records, d.records()...)
		if !v.hookAround(it) {
			f.Severity, f.Reason = Contradicts, "no-hook"
			f.Message = sayf("The assistant recorded that the model asked for %s; what was shown, approved and run is %s, and no hook was there to rewrite it.", quote(c.text()), quote(ran))
		}
	case d != nil && d.shows(c.text()) >= invisible:
		return // said as exec-differs: shown and asked agree, the run does not
	case d != nil:
		f.Message = sayf("The model asked for %s, the dialog showed %s, and %s ran.", quote(c.text()), quote(d.command), quote(ran))
	default:
		f.Message = sayf("The model asked for %s; %s ran. A hook or the assistant rewrote it.", quote(c.text()), quote(ran))
	}
	v.find(it, f)
}

// hookAround: a hook that may have rewritten a call was set up, or was seen to run before it.
func (v *judge) hookAround(it *item) bool {
	if v.hooked(it) || slices.ContainsFunc(v.rulesAt(it.agent(), it.start()), func(r ruleRef) bool { return strings.HasPrefix(r.Tool, "hook") && r.level != "rye" }) {
		return true
	}
	return slices.ContainsFunc(v.cast.candidates, func(k *candidate) bool {
		if k.keep != nil && k.keep.kind == ryeHook || k == it.cand || k.startNS > it.cand.startNS || k.startNS+slack < it.call.ns || k.agent != it.cand.agent {
			return false
		}
		// A hook, or what may be one: a text that the assistant does not mark as the model's.
		_, _, text := shellText(k.first())
		return k.keep != nil && k.keep.kind == "hook" || k.keep == nil && text && k.callID == "" && !strings.HasPrefix(k.carried.grammar, "claude-")
	})
}

// judgeShown compares what the person saw with what ran.
func (v *judge) judgeShown(it *item, d *decision) {
	k := it.cand
	ran := it.ran()
	seqs := append(d.records(), k.root.Seq)
	whole := it.call != nil && it.call.kind == "command" && k.runs(it.call.text()) == equal
	if d.prompt != nil && len(d.prompt.Hidden) > 0 {
		v.find(it, Finding{Code: ApprovalHidden, Severity: Warning, Reason: "hidden-characters", Records: seqs,
			Message: sayf("The dialog for %s held characters the eye does not see (%s); read the command with them written out.", quote(ran), strings.Join(d.prompt.Hidden, ", "))})
	}
	switch d.matches(it) {
	case equal:
		if d.prompt != nil && d.prompt.Cut {
			v.find(it, Finding{Code: ApprovalHidden, Severity: Warning, Reason: "cut", Records: seqs,
				Message: sayf("Only part of %s was on the screen when it was approved.", quote(ran))})
		}
	case invisible:
		if d.prompt == nil || len(d.prompt.Hidden) == 0 {
			v.find(it, Finding{Code: ApprovalHidden, Severity: Warning, Reason: "hidden-characters", Records: seqs,
				Message: sayf("%s holds characters that the screen did not show.", quote(ran))})
		}
	case blanks:
		if !whole {
			v.doubt(it, ApprovalHidden, "wrapped", sayf("The dialog wrapped %s so that blanks and line breaks in it cannot be told; nothing else shows the text that was asked for.", quote(ran)), seqs...)
		}
	case partOf:
		if whole {
			v.find(it, Finding{Code: ApprovalHidden, Severity: Warning, Reason: "cut", Records: append(seqs, it.call.records()...),
				Message: sayf("Only %s was shown of %s; the rest is known from the assistant's record alone.", quote(d.command), quote(ran))})
		} else {
			v.doubt(it, ApprovalHidden, "cut", sayf("Only %s was shown of %s; nothing else shows that the rest was what was asked for.", quote(d.command), quote(ran)), seqs...)
		}
	default:
		v.find(it, v.differs(it, d, seqs))
	}
}

// differs words what ran instead of what was approved.
func (v *judge) differs(it *item, d *decision, seqs []uint64) Finding {
	k := it.cand
	f := Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "text", Records: seqs,
		Message: sayf("You approved %s, but what ran is %s.", quote(d.command), quote(it.ran()))}
	// The approved text did run, but something that nobody approved stood in front of it.
	for _, x := range v.execsOf(k) {
		if x == k.root {
			continue
		}
		c := carriedBy(k.agent, x)
		if slices.Contains(c.texts, d.command) || len(k.carried.texts) == 0 && len(c.texts) == 0 && argvAlike(d.command, x) == equal {
			f.Reason = "wrapper"
			f.Records = append(f.Records, x.Seq)
			f.Message = sayf("You approved %s, but it was run through %s, which the approval does not name.", quote(d.command), quoteArgv(k.root.Argv))
			return f
		}
	}
	if words, ok := shell.Words(d.command); ok && len(k.root.Argv) > 0 && slices.Equal(words[1:], k.root.Argv[1:]) {
		f.Reason = "program"
	}
	return f
}

// judgeCut is a run whose arguments the witness could not take down whole.
func (v *judge) judgeCut(it *item) {
	k := it.cand
	seqs := []uint64{k.root.Seq}
	known := ""
	if d := it.decision; d != nil && !d.denied {
		seqs = append(seqs, d.records()...)
		known = d.command
	} else if it.call != nil {
		known = it.call.text()
	}
	// What is there of it must at least begin like what was approved.
	begin := strings.TrimRight(it.ran(), "\x00")
	if known != "" && begin != "" && k.carried.grammar != "argv" && !strings.HasPrefix(known, begin) && !strings.HasPrefix(begin, known) && strings.HasPrefix(k.carried.grammar, "shell") {
		v.find(it, Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "text", Records: seqs,
			Message: sayf("You approved %s, but what ran begins %s.", quote(known), quote(begin))})
		return
	}
	v.doubt(it, EvidenceLost, "arguments-cut", sayf("The arguments of %s are %d bytes long and were not recorded whole, so they cannot be compared with the approval.", quote(program(k.root)), k.root.ArgvBytes), seqs...)
}
