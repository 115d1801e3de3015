package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/verify/shell"
)

// cover finds what let an action run. The answer given to this very action comes first, then what
// covers without a question: an earlier "always", a rule, a mode, the assistant's safe list.
func (v *judge) cover(it *item) {
	it.covered = false
	it.allowed = Allowed{Source: "none", Type: "none"}
	set := func(a Allowed, ok bool) bool {
		if ok {
			it.allowed, it.covered = a, true
		}
		return ok
	}
	switch {
	case it.call != nil && it.call.user:
		set(Allowed{Source: "user-shell", Type: "user-shell", Records: it.call.records()}, true)
	case set(v.coverAnswer(it)):
	case set(v.coverAlways(it)):
	case set(v.coverRule(it)):
	case set(v.coverMode(it)):
	case set(v.coverSafe(it)):
	default:
		set(v.coverHook(it))
	}
}

func (c *call) records() []uint64 {
	seqs := slices.Clone(c.seqs)
	for _, r := range c.results {
		seqs = append(seqs, r.seq)
	}
	return seqs
}

// coverAnswer is an answer on the terminal to this action.
func (v *judge) coverAnswer(it *item) (Allowed, bool) {
	d := it.decision
	if d == nil || d.denied || !v.valid(d) {
		return Allowed{}, false
	}
	a := Allowed{Source: "terminal", ApprovalID: d.id, Type: d.decision, Records: d.records()}
	if d.decision == event.DecisionAlwaysRule && d.rule != "" {
		a.ApprovalID = d.rule
	}
	return a, true
}

// valid: somebody on the user's side of the terminal answered; or, where the assistant says that an
// earlier answer covers it, there was such an answer or rule. A line on the screen alone proves nothing.
func (v *judge) valid(d *decision) bool {
	if d.decision != event.DecisionAlwaysRule || d.attested {
		return d.attested
	}
	for _, o := range v.facts.decisions {
		if o.id == d.rule && o != d && o.attested && !o.denied && o.answered() <= d.answered() {
			return true
		}
	}
	return slices.ContainsFunc(v.rulesAt(d.agent, d.answered()), func(r ruleRef) bool { return r.ID == d.rule && r.Decision == "allow" })
}

func (d *decision) records() []uint64 {
	if d.prompt != nil {
		return []uint64{d.prompt.seq, d.seq}
	}
	return []uint64{d.seq}
}

// coverAlways is an earlier answer that was meant for later too.
func (v *judge) coverAlways(it *item) (Allowed, bool) {
	text := it.text()
	if it.kind == "command" && it.cand == nil || text == "" {
		return Allowed{}, false
	}
	var prefixes []lineRule
	var first *decision
	for _, d := range v.facts.decisions {
		if d.denied || !d.attested || d.answered() > it.start() || d == it.decision ||
			d.decision != event.DecisionAlways && d.decision != event.DecisionSession || d.agent != it.agent() && d.agent != unknown {
			continue
		}
		if kindOf(d) != it.kind {
			continue
		}
		if it.kind != "command" {
			// "Allow all edits this session", "always allow this tool": the same kind again.
			if it.kind == "edit" && d.decision == event.DecisionSession || it.kind != "edit" && d.command != "" && d.command == text {
				return alwaysCover(d), true
			}
			continue
		}
		if alike(d.command, text) >= invisible {
			return alwaysCover(d), true
		}
		if p := prefixWords(d.prefix); len(p) > 0 {
			if first == nil {
				first = d
			}
			rule := &event.Rule{ID: d.id, Decision: "allow", Words: p}
			prefixes = append(prefixes, lineRule{"allow", func(c *shell.Command) bool { return prefixMatches(p, c) }, ruleRef{Rule: rule, seq: d.seq}})
		}
	}
	if len(prefixes) == 0 {
		return Allowed{}, false
	}
	rules := append(prefixes, commandRules(v.rulesAt(it.agent(), it.start()))...)
	c, ok := v.line(it, rules)
	if !ok {
		return Allowed{}, false
	}
	for _, r := range c.rules {
		for _, d := range v.facts.decisions {
			if d.id == r.ID && d.seq == r.seq {
				return alwaysCover(d), true
			}
		}
	}
	return Allowed{}, false
}

func alwaysCover(d *decision) Allowed {
	a := Allowed{Source: "terminal", ApprovalID: d.id, Type: event.DecisionAlwaysRule, Rule: strings.Join(d.prefix, " "), Records: d.records()}
	if d.decision == event.DecisionSession {
		a.Type = event.DecisionSession
	}
	return a
}

// prefixWords are the words of an "always" answer as a rule; a star at the end means what follows is
// free, which a prefix means anyway.
func prefixWords(words []string) [][]string {
	var out [][]string
	for i, w := range words {
		if i == len(words)-1 {
			w = strings.TrimSuffix(strings.TrimSuffix(w, "*"), ":")
			w = strings.TrimSpace(w)
			if w == "" {
				break
			}
		}
		for _, f := range strings.Fields(w) {
			out = append(out, []string{f})
		}
	}
	return out
}

// line tests an action's text against rules the way its assistant splits a line.
func (v *judge) line(it *item, rules []lineRule) (coverage, bool) {
	if it.script == nil {
		return coverage{}, false
	}
	if it.agent() == codex {
		return coverCodex(it.script.Text, rules)
	}
	var safe func(*shell.Command) bool
	if v.isClaude(it) {
		safe = claudeSafe
	}
	return coverLine(it.script, rules, safe)
}

// isClaude: the kernel's record, not only a transcript, says that Claude Code ran it.
func (v *judge) isClaude(it *item) bool {
	return it.cand != nil && (it.cand.agent == claude || it.cand.root != nil && it.cand.root.Env["CLAUDECODE"] == "1")
}

// coverCodex: Codex looks into a line only when it is plain commands; otherwise the whole line counts
// as one command.
func coverCodex(text string, rules []lineRule) (c coverage, ok bool) {
	segments, plain := shell.Plain(text)
	if !plain {
		segments = [][]string{{"/bin/bash", "-lc", text}}
	}
	for _, words := range segments {
		cmd := &shell.Command{Source: strings.Join(words, " ")}
		for _, w := range words {
			cmd.Words = append(cmd.Words, shell.Literal(w))
		}
		r := decide(rules, cmd)
		if r == nil || r.decision != "allow" {
			c.open = cmd.Source
			return c, false
		}
		c.rules = append(c.rules, r.ref)
	}
	return c, true
}

// coverRule is a persisted rule, or rye's own policy.
func (v *judge) coverRule(it *item) (Allowed, bool) {
	refs := v.rulesAt(it.agent(), it.start())
	if len(refs) == 0 {
		return Allowed{}, false
	}
	if it.kind != "command" {
		return v.coverToolRule(it, refs)
	}
	c, ok := v.line(it, commandRules(refs))
	if !ok || len(c.rules) == 0 {
		it.open = c
		return Allowed{}, false
	}
	return ruleCover(c.rules), true
}

func ruleCover(rules []ruleRef) Allowed {
	r := rules[0]
	a := Allowed{Source: "rule", Type: "allow", Rule: r.text(), ApprovalID: r.ID, Detail: r.file}
	for _, r := range rules {
		if !slices.Contains(a.Records, r.seq) {
			a.Records = append(a.Records, r.seq)
		}
	}
	return a
}

// coverToolRule is a rule about an edit, a fetch or an MCP tool.
func (v *judge) coverToolRule(it *item, refs []ruleRef) (Allowed, bool) {
	if it.call == nil {
		return Allowed{}, false
	}
	var allow *ruleRef
	for i := range refs {
		r := &refs[i]
		if !toolMatches(r.Rule, it.call, v.facts.place) {
			continue
		}
		if r.Decision != "allow" {
			return Allowed{}, false
		}
		if allow == nil {
			allow = r
		}
	}
	if allow == nil {
		return Allowed{}, false
	}
	return ruleCover([]ruleRef{*allow}), true
}

func toolMatches(r *event.Rule, c *call, pl *places) bool {
	switch c.kind {
	case "mcp":
		return r.Tool == c.Tool || strings.HasPrefix(r.Tool, "mcp__") && strings.HasPrefix(c.Tool, strings.TrimSuffix(r.Tool, "*")) && (strings.HasSuffix(r.Tool, "*") || strings.HasPrefix(c.Tool, r.Tool+"__"))
	case "fetch":
		host, ok := strings.CutPrefix(r.Pattern, "domain:")
		return r.Tool == "WebFetch" && (r.Pattern == "" || ok && strings.Contains(c.Command+" "+strings.Join(c.Paths, " "), host)) || r.Tool == c.Tool && r.Pattern == ""
	case "edit":
		if r.Tool != "Edit" && r.Tool != "Write" && r.Tool != c.Tool {
			return false
		}
		return !slices.ContainsFunc(c.Paths, func(p string) bool { return !pathPattern(r.Pattern, p, c.CWD, pl) })
	}
	return false
}

// pathPattern is Claude's path rule: //abs, ~/home, relative to the folder it runs in; ** and * as
// usual.
func pathPattern(p, file, cwd string, pl *places) bool {
	if p == "" || p == "*" || p == "**" {
		return true
	}
	switch {
	case strings.HasPrefix(p, "//"):
		p = p[1:]
	case strings.HasPrefix(p, "~/"):
		p = pl.home + p[1:]
	default:
		p = firstOf(pl.workspace, cwd) + "/" + strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
	}
	p = strings.ReplaceAll(p, "**/", "*") // any folders, or none
	return globs(strings.ReplaceAll(p, "**", "*"), file)
}

// coverSafe is the assistant's built-in list of what never needs a question.
func (v *judge) coverSafe(it *item) (Allowed, bool) {
	if it.kind != "command" || it.script == nil || it.script.Err != nil {
		return Allowed{}, false
	}
	switch {
	case v.isClaude(it):
		c, ok := coverLine(it.script, nil, claudeSafe)
		return Allowed{Source: "safe-list", Type: "read-only", Detail: "Claude Code's built-in list"}, ok && (c.safe || len(it.script.SimpleNames()) == 0)
	case it.cand != nil && it.cand.agent == codex:
		segments, plain := shell.Plain(it.script.Text)
		t := v.contextAt(codex, it.cand.thread, it.start())
		ok := plain && t != nil && t.ApprovalPolicy == "untrusted" && !slices.ContainsFunc(segments, func(w []string) bool { return !codexSafe(w) })
		if !ok {
			return Allowed{}, false
		}
		return Allowed{Source: "safe-list", Type: "read-only", Detail: "Codex's built-in list", Records: []uint64{t.seq}}, true
	}
	return Allowed{}, false
}

// coverHook is a hook that the assistant says decided, and that the kernel saw run just before.
func (v *judge) coverHook(it *item) (Allowed, bool) {
	if it.call == nil || it.cand == nil {
		return Allowed{}, false
	}
	for i := range it.call.results {
		r := &it.call.results[i]
		if r.decider() != "hook" || r.Decision == "reject" || r.Decision == "deny" {
			continue
		}
		for _, k := range v.cast.candidates {
			if k.keep != nil && k.keep.kind == "hook" && k.startNS <= it.cand.startNS && k.startNS+slack >= it.call.ns {
				return Allowed{Source: "hook", Type: "hook", Records: []uint64{r.seq, k.first().Seq}, Detail: shell.Join(k.first().Argv)}, true
			}
		}
	}
	return Allowed{}, false
}
