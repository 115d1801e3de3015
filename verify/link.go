package verify

import (
	"path"
	"slices"
	"strings"
)

// slack is how far a transcript's clock (milliseconds, wall time) may be off against the kernel's.
const slack = 3_000_000_000

// pairWithin bounds how long after an answer a run is still taken for its effect when nothing but
// time ties them.
const pairWithin = 120_000_000_000

// link builds the actions. A stronger tie is never given up for a weaker one: first the call id that
// the assistant put into the environment, then the exact text, then time.
func (v *judge) link() {
	for _, k := range v.facts.calls {
		k.kind = callKind(k)
		if k.kind != "" {
			v.newItem(&item{kind: k.kind, call: k})
		}
	}
	marked := slices.ContainsFunc(v.cast.candidates, func(c *candidate) bool { return c.callID != "" })
	for _, c := range v.cast.candidates {
		switch {
		case c.keep == nil:
			v.linkCandidate(c)
		case c.agent == codex && !marked && c.root != nil && !c.keep.presumed:
			// Versions without call ids let a model run an argv as it is; it may look like Codex's own.
			if k := v.callFor(c); k != nil {
				c.keep = nil
				v.attach(k, c, "text")
			}
		}
	}
	decisions := slices.Clone(v.facts.decisions)
	slices.SortStableFunc(decisions, func(a, b *decision) int {
		switch {
		case a.answered() < b.answered():
			return -1
		case a.answered() > b.answered():
			return 1
		}
		return 0
	})
	for _, d := range decisions {
		v.linkDecision(d)
	}
	sortItems(v.items)
}

func (v *judge) newItem(it *item) *item {
	v.items = append(v.items, it)
	if it.call != nil {
		it.call.items = append(it.call.items, it)
	}
	if it.cand != nil {
		it.cand.item = it
	}
	if it.decision != nil {
		it.decision.item = it
	}
	return it
}

// callKind is what a call is for the verdict: "" for tools that do nothing of their own accord.
func callKind(c *call) string {
	if c.Tool == "" && c.Kind == "" { // known by its result alone
		for _, r := range c.results {
			if len(r.Command) > 0 {
				return "command"
			}
			if len(r.Paths) > 0 {
				return "edit"
			}
		}
		return ""
	}
	switch c.Kind {
	case "command":
		// Codex intercepts a shell command that is nothing but apply_patch: no shell runs.
		if t := strings.TrimSpace(c.text()); strings.HasPrefix(t, "apply_patch ") || strings.HasPrefix(t, "applypatch ") || strings.HasPrefix(t, "apply_patch<<") {
			return "edit"
		}
		return c.Kind
	case "edit", "fetch", "mcp", "stdin":
		return c.Kind
	}
	return ""
}

func (v *judge) linkCandidate(c *candidate) {
	if c.callID != "" {
		if k := v.facts.callByID[c.callID]; k != nil {
			v.attach(k, c, "CODEX_TOOL_CALL_ID")
			return
		}
	}
	if k := v.callFor(c); k != nil {
		v.attach(k, c, "text")
		return
	}
	v.newItem(&item{kind: "command", cand: c})
}

// attach ties a run to a call. A second run of the same call is an action of its own: whatever let
// the first one run does not cover it.
func (v *judge) attach(k *call, c *candidate, link string) {
	for _, it := range k.items {
		if it.cand == nil && it.kind == "command" {
			it.cand, it.link, c.item = c, link, it
			return
		}
	}
	v.newItem(&item{kind: "command", call: k, cand: c, link: link, repeat: len(k.items) > 0})
}

// callFor finds the call whose text a candidate ran: the earliest that was asked before it and has
// not run yet. A call that the assistant says was refused is the last to be taken for it.
func (v *judge) callFor(c *candidate) *call {
	var refused *call
	for _, k := range v.facts.calls {
		if k.kind != "command" || k.ns > c.startNS+slack || len(k.items) == 0 || k.items[0].cand != nil || v.over(k, c.startNS) {
			continue
		}
		if c.runs(k.text()) < invisible {
			continue
		}
		if !k.refused() {
			return k
		}
		if refused == nil {
			refused = k
		}
	}
	return refused
}

// over reports whether a call had its result before that time.
func (v *judge) over(k *call, ns uint64) bool {
	if len(k.results) == 0 {
		return false
	}
	last := uint64(0)
	for _, r := range k.results {
		last = max(last, r.ns)
	}
	return last+slack < ns
}

// linkDecision gives an answer to the action it was about.
func (v *judge) linkDecision(d *decision) {
	var best *item
	var bestScore [3]uint64
	for _, it := range v.items {
		s, ok := v.fit(d, it)
		if ok && (best == nil || less(s, bestScore)) {
			best, bestScore = it, s
		}
	}
	if best != nil {
		best.decision, d.item = d, best
		if best.cand != nil && best.link == "" {
			best.link = "text"
		}
		return
	}
	switch d.kind {
	case "command", "edit", "mcp", "stdin", "fetch", "unknown", "":
		v.newItem(&item{kind: kindOf(d), decision: d})
	}
}

func kindOf(d *decision) string {
	if d.kind == "" || d.kind == "unknown" {
		return "command"
	}
	return d.kind
}

func less(a, b [3]uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// fit scores how well a decision goes with an action, lower is better: what ran after the answer
// first, then what has not run, then what ran before it; then the closer text; then the closer time.
func (v *judge) fit(d *decision, it *item) (s [3]uint64, ok bool) {
	if it.decision != nil || it.kind != kindOf(d) && !(it.kind == "fetch" && d.kind == "network") {
		return s, false
	}
	if it.call != nil && (it.call.ns > d.askedNS()+slack || it.call.user) {
		return s, false
	}
	if it.kind != "command" {
		return v.fitByTime(d, it)
	}
	l := d.matches(it)
	if l == differs && it.cand != nil && it.call != nil && it.call.kind == "command" {
		// The answer was to the call; that something else ran is for the comparison to say.
		if l = d.shows(it.call.text()); l != differs {
			s[1] = 4
		}
	}
	if l == differs {
		return s, false
	}
	s[1] += uint64(equal - l)
	at := d.answered()
	switch {
	case it.cand == nil:
		s[0] = 1
		if d.denied || it.call != nil && it.call.Escalated {
			s[0] = 0
		}
		if it.call != nil {
			s[2] = distance(at, it.call.ns)
		}
	case it.cand.startNS >= at:
		s[2] = it.cand.startNS - at
		if d.denied {
			s[0] = 1
		}
		// A run inside the assistant's sandbox needs no answer; one outside it does.
		if it.cand.sandbox && it.call != nil && !it.call.Escalated {
			s[1] += 8
		}
	default:
		s[0], s[2] = 2, at-it.cand.startNS
		if d.denied {
			return s, false
		}
	}
	return s, true
}

func distance(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return b - a
}

// fitByTime is for edits, fetches and tool calls: their dialogs name a file or a tool, not always all
// of it.
func (v *judge) fitByTime(d *decision, it *item) (s [3]uint64, ok bool) {
	if it.call == nil {
		return s, false
	}
	shown := d.command + "\n" + strings.Join(d.screen, "\n")
	if d.prompt != nil {
		shown += "\n" + strings.Join(d.prompt.Screen, "\n") + "\n" + d.prompt.Reason
	}
	names := slices.Clone(it.call.Paths)
	if it.call.Command != "" {
		names = append(names, it.call.Command)
	}
	if it.kind == "mcp" || it.kind == "fetch" {
		names = append(names, it.call.Tool)
	}
	named := false
	for _, n := range names {
		named = named || n != "" && (strings.Contains(shown, n) || strings.Contains(shown, path.Base(n)))
	}
	if !named {
		s[0] = 1
	}
	if v.over(it.call, d.askedNS()) {
		return s, false
	}
	s[2] = distance(d.askedNS(), it.call.ns)
	return s, s[2] < pairWithin || it.call.ns == 0
}

// pair joins what is left by time alone: an answer with a run whose text differs, a call with a run.
// It runs after covers are known, so that what a mode or rule explains is left out.
func (v *judge) pair() {
	defer func() { v.items = slices.DeleteFunc(v.items, func(it *item) bool { return it.gone }) }()
	for _, it := range v.items {
		if it.gone || it.kind != "command" || it.cand == nil || it.decision != nil || it.covered || it.cand.stray || it.cand.root == nil {
			continue
		}
		if g := v.waiting(it); g != nil {
			v.pairAnswer(it, g)
			continue
		}
		if it.call != nil {
			continue
		}
		if o := v.unrun(it); o != nil {
			it.call, it.link, it.allowed = o.call, "time", Allowed{}
			o.call.items = []*item{it}
			o.gone = true
		}
	}
	for _, it := range v.items {
		if o := v.reworded(it); o != nil {
			it.call = o.call
			o.call.items = []*item{it}
			o.gone = true
		}
	}
}

// reworded is the call that a run which was shown and answered stands for: a hook changed its text before the
// question. The assistant says that the call was done, nothing ran it, and this ran between asking and result.
// With two such calls neither is taken.
func (v *judge) reworded(it *item) (found *item) {
	if it.gone || it.kind != "command" || it.call != nil || it.cand == nil || it.cand.root == nil || it.cand.stray || it.cand.callID != "" ||
		it.decision == nil || it.decision.denied || !v.valid(it.decision) {
		return nil
	}
	for _, o := range v.items {
		if o.gone || o.kind != "command" || o.cand != nil || o.call == nil || o.decision != nil || o.call.user || o.call.ns == 0 ||
			o.call.Agent != it.agent() || o.call.refused() || !o.call.completed() || len(o.call.results) == 0 {
			continue
		}
		if o.call.ns > it.decision.askedNS()+slack || v.over(o.call, it.cand.startNS) {
			continue
		}
		if found != nil {
			return nil
		}
		found = o
	}
	return found
}

// waiting is the grant nearest before a run that nothing has used yet.
func (v *judge) waiting(it *item) *item {
	var best *item
	for _, o := range v.items {
		d := o.decision
		if o.gone || o.kind != "command" || o.cand != nil || d == nil || d.denied || d.decision == "always_rule_match" || d.command == "" && !d.cut() {
			continue
		}
		at := d.answered()
		if at > it.cand.startNS || it.cand.startNS-at > pairWithin {
			continue
		}
		if best == nil || at > best.decision.answered() {
			best = o
		}
	}
	return best
}

func (v *judge) pairAnswer(it, g *item) {
	switch {
	case it.call == nil:
		// The call and its answer agree; what ran is something else.
		it.decision, g.decision.item, it.link = g.decision, it, "time"
		if g.call != nil {
			it.call = g.call
			g.call.items = []*item{it}
		}
		g.gone = true
	case g.call == nil:
		// The call and what ran agree; the person was shown something else.
		it.shown = g.decision
		g.decision.item = it
		g.gone = true
	}
}

// unrun is a call that should have run about then and did not.
func (v *judge) unrun(it *item) *item {
	var best *item
	for _, o := range v.items {
		if o.gone || o.kind != "command" || o.cand != nil || o.call == nil || o.decision != nil || o.call.user || o.call.ns == 0 {
			continue
		}
		if o.call.ns > it.cand.startNS+slack || it.cand.startNS > o.call.ns+pairWithin || v.over(o.call, it.cand.startNS) || o.call.refused() {
			continue
		}
		if best == nil || o.call.ns > best.call.ns {
			best = o
		}
	}
	return best
}

// refused: the assistant's own record says the call was not run.
func (c *call) refused() bool {
	return slices.ContainsFunc(c.results, func(r result) bool { return r.Status == "declined" || r.Status == "rejected" })
}
