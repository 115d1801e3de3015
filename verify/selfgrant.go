package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// judgeRules looks for permissions that appeared during the session. One that an "always" answer
// explains is its effect; any other was given by somebody who was not asked.
func (v *judge) judgeRules() {
	known := make(map[string]bool)
	for _, f := range v.facts.rules {
		if f.At == "start" {
			for _, r := range f.Rules {
				known[f.Path+"\x00"+r.ID] = true
			}
		}
	}
	for _, f := range v.facts.rules {
		if f.At == "start" {
			continue
		}
		for i := range f.Rules {
			r := &f.Rules[i]
			k := f.Path + "\x00" + r.ID
			if known[k] || r.Decision != "allow" {
				continue
			}
			known[k] = true
			ref := ruleRef{Rule: r, file: f.Path, seq: f.seq, agent: f.Agent}
			if d := v.grantedRule(ref, f.ns); d != nil {
				continue
			}
			v.find(nil, Finding{Code: RuleSelfGranted, Severity: Contradicts, Reason: "new-rule", Path: f.Path, Records: []uint64{f.seq},
				Message: sayf("The rule %s appeared in %s during the session, and no \"always\" answer of yours explains it.", quote(ref.text()), quote(f.Path))})
		}
	}
}

// grantedRule is the answer that explains a new rule: an "always" before it whose words are the rule's.
func (v *judge) grantedRule(r ruleRef, ns uint64) *decision {
	if strings.HasPrefix(r.Tool, "hook") || r.Tool == "statusline" {
		return nil // no dialog saves a program to run by itself
	}
	for _, d := range v.facts.decisions {
		if d.denied || !d.attested || d.answered() > ns || d.decision != event.DecisionAlways && d.decision != event.DecisionSession {
			continue
		}
		if d.agent != r.agent && d.agent != unknown {
			continue
		}
		if len(d.prefix) == 0 {
			if kindOf(d) != "command" && (r.Tool == "Bash" || len(r.Words) > 0) {
				continue // "all edits" is no word about commands
			}
			return d // the dialog did not say which words it would save
		}
		var words []string
		for _, alt := range r.Words {
			if len(alt) != 1 {
				words = nil
				break
			}
			words = append(words, alt[0])
		}
		if slices.Equal(words, d.prefix) || len(words) == 0 && coversPattern(d.prefix, pattern(r.Rule)) {
			return d
		}
	}
	return nil
}

// coversPattern: the answer named the pattern, or one that is wider: "git tag" covers "git tag one *", not
// "git *". A dialog names several rules at once, or one in several words.
func coversPattern(prefix []string, pattern string) bool {
	trim := func(s string) string { return strings.TrimSpace(strings.TrimRight(s, "*: ")) }
	p := trim(pattern)
	if p == "" {
		return false
	}
	return slices.ContainsFunc(append([]string{strings.Join(prefix, " ")}, prefix...), func(s string) bool {
		s = trim(s)
		return s != "" && (p == s || strings.HasPrefix(p, s+" "))
	})
}

// judgeSpoofs finds approvals that belong to no action and were answered by nobody: a program can draw
// such a line.
func (v *judge) judgeSpoofs() {
	for _, d := range v.facts.decisions {
		if d.item != nil || d.denied || v.valid(d) {
			continue
		}
		v.find(nil, Finding{Code: ApprovalUnattested, Severity: Warning, Records: d.records(),
			Message: sayf("The screen showed an approval of %s that no key press stands behind and that belongs to nothing that ran.", quote(firstOf(d.command, d.row, d.kind)))})
	}
}
