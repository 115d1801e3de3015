package verify

import (
	"maps"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// evidence asks what could not be seen and makes the verdicts that depend on it indeterminate.
func (v *judge) evidence() {
	v.judgeLedger()
	v.judgeObserver()
	v.judgeLoss()
	v.judgeEnd()
	if len(v.facts.dropped) > 0 {
		for _, t := range slices.Sorted(maps.Keys(v.facts.dropped)) {
			v.doubt(nil, EvidenceLost, "too-many", sayf("%d records of %s were more than this program keeps and were not judged.", v.facts.dropped[t], t))
		}
	}
}

// all makes every action, and the session, indeterminate for one reason that is told once.
func (v *judge) all(code, reason, message string, records ...uint64) {
	v.doubt(nil, code, reason, message, records...)
	for _, it := range v.items {
		it.doubtful = true
	}
}

func (v *judge) judgeLedger() {
	switch {
	case !v.ledger.OK:
		msg := sayf("The ledger does not prove itself (%s): nothing in it can be relied on.", firstOf(v.ledger.Problem, "no reason given"))
		var seqs []uint64
		if v.ledger.BadRecord >= 0 && v.ledger.Problem != "" {
			seqs = append(seqs, uint64(v.ledger.BadRecord))
			msg = sayf("Record %d of the ledger does not prove itself (%s): nothing in it can be relied on.", v.ledger.BadRecord, v.ledger.Problem)
		}
		v.all(LedgerBroken, "", msg, seqs...)
	case len(v.facts.bad) > 0:
		b := v.facts.bad[0]
		v.all(LedgerBroken, "record", sayf("%s cannot be read (%v).", plural(len(v.facts.bad), "record", "records"), b.err), b.seq)
	}
}

func (v *judge) judgeObserver() {
	f := v.facts
	switch o := f.observer; {
	case o == nil:
		v.all(EvidenceLost, "no-observer", "No kernel observer: the ledger does not say that one was attached, so what ran is not known.")
	case o.Tier == "none" || o.Tier == "":
		v.all(EvidenceLost, "no-observer", sayf("No kernel observer (%s): what ran is not known.", firstOf(o.Detail, "no reason given")), f.obsSeq)
	case o.SelfTest == "failed":
		v.all(EvidenceLost, "self-test", sayf("The observer's self-test failed (%s): it did not see what it should have seen.", firstOf(o.Detail, "no reason given")), f.obsSeq)
	case o.SelfTest == "not-run":
		v.find(nil, Finding{Code: EvidenceLost, Severity: Info, Reason: "self-test", Records: []uint64{f.obsSeq}, Message: "The observer's self-test was not run."})
	}
	if f.start == nil {
		v.all(EvidenceLost, "no-start", "The ledger has no session.start: what the session was is not known.")
	}
	if v.cast.hasAgent && v.cast.root == nil && f.observer != nil && f.observer.Tier != "none" && f.observer.Tier != "" {
		v.all(EvidenceLost, "no-root", "The start of the wrapped command was not seen.")
	}
	if !v.cast.hasAgent && v.cast.root == nil {
		v.all(EvidenceLost, "no-root", "The start of the wrapped command was not seen.")
	}
}

// judgeLoss makes every action indeterminate that was under way when records were lost.
func (v *judge) judgeLoss() {
	for _, l := range v.losses() {
		if n := l.counts[lostPackets]; n > 0 && len(l.counts) == 1 {
			v.lostNames(l, n)
			continue
		}
		var what []string
		for _, t := range slices.Sorted(maps.Keys(l.counts)) {
			if l.counts[t] > 0 {
				what = append(what, sayf("%d × %s", l.counts[t], t))
			}
		}
		v.doubt(nil, EvidenceLost, "lost", sayf("Records were lost between %.3f s and %.3f s after the start (%s): what happened then cannot be told.",
			since(l.fromNS, v.facts.startNS), since(l.toNS, v.facts.startNS), strings.Join(what, ", ")), l.seq)
		for _, it := range v.items {
			if it.start() <= l.toNS && it.end(v.last) >= l.fromNS || it.cand == nil {
				it.doubtful = true
			}
		}
	}
}

func since(ns, start uint64) float64 {
	if ns < start {
		return 0
	}
	return float64(ns-start) / 1e9
}

// losses are the gaps in the kernel's record. The totals at the end add a gap of their own only for
// what no earlier record has told.
func (v *judge) losses() []loss {
	told := make(map[string]uint64)
	var out []loss
	for _, l := range v.facts.lost {
		if l.final {
			continue
		}
		out = append(out, l)
		for t, n := range l.counts {
			told[t] += n
		}
	}
	for _, l := range v.facts.lost {
		if !l.final {
			continue
		}
		rest := make(map[string]uint64)
		for t, n := range l.counts {
			if n > told[t] {
				rest[t] = n - told[t]
			}
		}
		if len(rest) > 0 {
			l.counts = rest
			out = append(out, l)
		}
	}
	return out
}

// whole reports whether nothing of the given types was lost in the session.
func (v *judge) whole(types ...string) bool {
	if o := v.facts.observer; o == nil || o.Tier == "none" || o.Tier == "" || o.SelfTest == "failed" {
		return false
	}
	if v.facts.end == nil || v.ledger.Interrupted || len(v.facts.bad) > 0 {
		return false
	}
	for _, l := range v.facts.lost {
		for t, n := range l.counts {
			if n > 0 && (slices.Contains(types, t) || t == "undecodable" || t == "unknown") {
				return false
			}
		}
	}
	return true
}

func (v *judge) wholeFor(t string) bool {
	if t == "process.exec" {
		return v.whole(t, "process.fork")
	}
	return v.whole(t)
}

func (v *judge) judgeEnd() {
	f := v.facts
	if f.end == nil || v.ledger.Interrupted {
		v.doubt(nil, EvidenceLost, "interrupted", "The record ends without session.end: what followed is not known.")
		for _, it := range v.items {
			if it.cand != nil && it.cand.alive {
				it.doubtful = true
			}
		}
		return
	}
	if len(f.end.DegradedBy) > 0 {
		v.all(EvidenceLost, "degraded", sayf("The record is not whole: %s.", strings.Join(f.end.DegradedBy, "; ")), f.endSeq)
	}
	for _, s := range f.end.Survivors {
		if s.Role == "assistant-daemon" {
			continue
		}
		it, _ := v.account(v.cast.ownerOf(s.Proc))
		v.find(it, Finding{Code: EvidenceLost, Severity: Info, Reason: "still-running", Records: []uint64{f.endSeq},
			Message: sayf("%s (pid %d) was still running when the record ended; what it does from then on is not in it.", quoteArgv(append([]string{}, s.Argv...)), s.Proc.TGID)})
	}
}

// gap reports whether the observer said that it cannot see something.
func (v *judge) gap(what string) bool {
	return v.facts.observer != nil && slices.ContainsFunc(v.facts.observer.Gaps, func(g event.Gap) bool { return strings.Contains(g.What, what) })
}

func (v *judge) coverage() Coverage {
	f := v.facts
	c := Coverage{Lost: make(map[string]uint64), Truncated: f.truncated, Unknown: f.unknown, Events: f.events}
	if o := f.observer; o != nil {
		c.Tier, c.SelfTest = o.Tier, o.SelfTest
		for _, g := range o.Gaps {
			c.Gaps = append(c.Gaps, g.What+": "+g.Why)
		}
	}
	for _, l := range f.lost {
		for t, n := range l.counts {
			if l.final {
				c.Lost[t] = max(c.Lost[t], n)
			}
		}
	}
	sum := make(map[string]uint64)
	for _, l := range f.lost {
		if !l.final {
			for t, n := range l.counts {
				sum[t] += n
			}
		}
	}
	for t, n := range sum {
		c.Lost[t] = max(c.Lost[t], n)
	}
	if f.end != nil {
		c.Survivors, c.Degraded = len(f.end.Survivors), f.end.DegradedBy
	}
	return c
}
