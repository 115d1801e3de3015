package verify

import (
	"cmp"
	"slices"
	"strings"
)

// judgeOther judges what is not a command: edits by the assistant's own process, fetches, MCP calls,
// text typed into a running program.
func (v *judge) judgeOther(it *item) {
	d, c := it.decision, it.call
	refused := c != nil && c.refused()
	var seqs []uint64
	if d != nil {
		seqs = append(seqs, d.records()...)
	}
	if c != nil {
		seqs = append(seqs, c.records()...)
	}
	if it.kind == "edit" {
		it.writes = v.writesFor(it)
	}
	ran := len(it.writes) > 0
	if ran {
		it.link = "time"
		for _, w := range it.writes[:min(len(it.writes), 8)] {
			seqs = append(seqs, w.seq)
		}
	}
	if c == nil {
		// An answer without a call that rye knows: there is nothing to hold it against.
		if d != nil && !v.valid(d) && !d.denied {
			v.find(it, Finding{Code: ApprovalUnattested, Severity: Warning, Records: seqs,
				Message: sayf("The screen showed an approval of %s that no key press stands behind.", quote(it.text()))})
		}
		return
	}
	done := c.completed()
	switch {
	case d != nil && d.denied || refused:
		if ran && it.kind == "edit" {
			v.find(it, Finding{Code: DeniedButRan, Severity: Contradicts, Records: seqs,
				Message: sayf("The change to %s was refused, and the assistant wrote it anyway.", quote(it.writes[0].path))})
		}
		return
	case !ran && !done:
		return // asked for, and nothing says that it happened
	case it.kind == "edit" && !ran:
		if len(c.Paths) == 0 {
			break
		}
		if v.wholeFor("file.open") && v.sawAssistant() {
			v.find(it, Finding{Code: TranscriptDiffers, Severity: Warning, Reason: "no-write", Records: seqs,
				Message: sayf("The assistant recorded a change to %s; the kernel saw none of its processes write it (a change to the same content writes nothing).", quote(c.Paths[0]))})
		} else {
			v.doubt(it, EvidenceLost, "not-seen", sayf("The change to %s was not seen; the record of opened files is not whole.", quote(c.Paths[0])), seqs...)
		}
	}
	if it.covered {
		if d != nil && it.allowed.ApprovalID == d.id && d.doubt != "" {
			v.doubt(it, EvidenceLost, "uncertain-answer", sayf("The dialog for %s could not be read for sure (%s).", quote(it.text()), d.doubt), seqs...)
		}
		if d != nil && it.allowed.Source == "terminal" && ran && d.keyNS > 0 && it.writes[0].ns < d.keyNS {
			v.find(it, Finding{Code: ExecBeforeApproval, Severity: Contradicts, Records: seqs,
				Message: sayf("%s was written before the change was approved.", quote(it.writes[0].path))})
		}
		return
	}
	switch {
	case d != nil && !v.valid(d):
		v.find(it, Finding{Code: ApprovalUnattested, Severity: Contradicts, Records: seqs,
			Message: sayf("The screen showed an approval of %s, but no key was pressed for it.", quote(it.text()))})
	case v.unread(it) != nil:
		v.doubt(it, EvidenceLost, "prompt-not-recognised", sayf("A prompt that rye could not read was answered before %s.", quote(it.text())), seqs...)
	case it.kind == "edit":
		v.find(it, Finding{Code: ExecUnapproved, Severity: Contradicts, Reason: "no-approval-seen", Records: seqs,
			Message: sayf("The assistant changed %s and nothing allowed it: no answer on the terminal, no rule, no mode.", quote(it.text()))})
	case it.kind == "stdin":
		v.judgeStdin(it, seqs)
	default:
		// Which of these an assistant asks about is its own list; the kernel cannot see them run.
		v.doubt(it, ExecUnapproved, "not-asked", sayf("%s was used without a question that rye saw; the assistant decides by its own list which of these need one.", quote(it.text())), seqs...)
	}
}

// judgeStdin is text for a program that was started earlier. Whoever allowed a shell to run did not
// see what it would be told.
func (v *judge) judgeStdin(it *item, seqs []uint64) {
	if it.call.ns == 0 {
		return
	}
	end := it.call.ns + pairWithin
	for _, o := range v.items {
		if o.cand == nil || o.kind != "command" || o.cand.startNS > it.call.ns {
			continue
		}
		for _, x := range v.execsOf(o.cand) {
			if x.TimeNS < it.call.ns || x.TimeNS > end || x == o.cand.root {
				continue
			}
			if i := slices.IndexFunc(o.execs, func(e Exec) bool { return e.Seq == x.Seq }); i < 0 || o.execs[i].Relation == Named || o.cand.sandbox {
				continue
			}
			v.find(it, Finding{Code: ExecUnapproved, Severity: Contradicts, Reason: "stdin-fed", Records: append(seqs, x.Seq),
				Message: sayf("%s was typed into a program that was already running, nobody was asked, and %s ran.", quote(it.text()), quoteArgv(x.Argv))})
			return
		}
	}
}

func (c *call) completed() bool {
	return slices.ContainsFunc(c.results, func(r result) bool { return r.Status == "completed" || r.Status == "" })
}

// writesFor finds what an edit's call did to its files: writes, renames and deletes by the assistant's
// own process or its helper, near the call.
func (v *judge) writesFor(it *item) []fileRecord {
	if it.call == nil {
		return nil
	}
	want := make(map[string]bool)
	paths := slices.Clone(it.call.Paths)
	for _, r := range it.call.results {
		paths = append(paths, r.Paths...)
	}
	cwd := firstOf(it.call.CWD, v.facts.place.workspace)
	for _, p := range paths {
		if p != "" {
			want[absPath(strings.TrimPrefix(p, "file://"), cwd)] = true
		}
	}
	last := uint64(0)
	for _, r := range it.call.results {
		last = max(last, r.ns)
	}
	var out []fileRecord
	for p := range want {
		for _, w := range v.written[p] {
			if v.edits[w.seq] != nil || it.call.ns > 0 && w.ns+slack < it.call.ns || last > 0 && w.ns > last+slack || !v.ownProcess(w) {
				continue
			}
			v.edits[w.seq] = it
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b fileRecord) int { return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.seq, b.seq)) })
	return out
}

// ownProcess: the assistant itself or a helper it writes files through.
func (v *judge) ownProcess(w fileRecord) bool {
	o := v.cast.ownerOf(w.proc)
	switch {
	case o.kind == assistant:
		return true
	case o.kind == command && o.cand != nil && o.cand.keep != nil:
		return o.cand.keep.kind == "edit-helper"
	}
	return false
}

func (v *judge) sawAssistant() bool { return len(v.cast.main) > 0 }
