package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/verify"
)

func TestGrantNamesRule(t *testing.T) {
	words := func(w ...[]string) event.Rule { return event.Rule{Words: w} }
	for _, c := range []struct {
		prefix []string
		rule   event.Rule
		want   bool
	}{
		{[]string{"git", "tag"}, words([]string{"git"}, []string{"tag"}), true},
		{[]string{"git"}, words([]string{"git"}, []string{"tag"}), false},
		{[]string{"git", "tag"}, words([]string{"git"}, []string{"tag", "log"}), false},
		{[]string{"git tag *"}, event.Rule{Tool: "Bash", Pattern: "git tag *"}, true},
		{[]string{"git", "tag"}, event.Rule{Tool: "Bash", Pattern: "git tag:*"}, true},
		{[]string{"touch a", "make -n"}, event.Rule{Tool: "Bash", Pattern: "make -n *"}, true},
		{[]string{"git tag *"}, event.Rule{Tool: "Bash", Pattern: "git *"}, false}, // more was saved than was said
		{[]string{"git"}, event.Rule{Tool: "Bash"}, false},
		{nil, event.Rule{Tool: "Bash", Pattern: "git"}, false},
	} {
		if got := names(c.prefix, c.rule); got != c.want {
			t.Errorf("%q names %+v: %v", c.prefix, c.rule, got)
		}
	}
}

// The history of a rule from a ledger's events: first sight, the answer before it, and what it let run.
func TestRuleHistory(t *testing.T) {
	rule := event.Rule{ID: "r1", Decision: "allow", Tool: "Bash", Pattern: "git tag *"}
	clock := func(ns uint64) string { return strings.Repeat("i", int(ns)) }
	grant := func(id string, ns uint64, prefix ...string) *grantSeen {
		return &grantSeen{&event.ApprovalGranted{ID: id, Agent: "claude", Decision: event.DecisionAlways, Attested: true, Prefix: prefix, Command: "git tag x"}, ns}
	}
	loaded := &event.RulesLoaded{Agent: "claude", Path: "/p/s.json", At: "change", Rules: []event.Rule{rule}}
	fresh := func() *ruleList {
		return &ruleList{Rules: []standing{{Rule: rule, Agent: "claude", Path: "/p/s.json", used: map[string]bool{}}}}
	}

	l := fresh()
	l.snapshot("s1", loaded, 5, clock, []*grantSeen{grant("a1", 2, "git tag *"), grant("a2", 3), grant("a3", 7, "git tag *")})
	r := &l.Rules[0]
	if r.First == nil || r.First.Session != "s1" || r.Granted == nil || r.Granted.Approval != "a1" || r.Granted.By != "words" {
		t.Fatalf("%+v, %+v", r.First, r.Granted)
	}
	l.snapshot("s2", loaded, 1, clock, []*grantSeen{grant("a9", 1, "git tag *")})
	if r.First.Session != "s1" || r.Granted.Session != "s1" {
		t.Errorf("a later session took over: %+v %+v", r.First, r.Granted)
	}
	root := &verify.Root{}
	l.uses("s1", &verify.Report{Findings: []verify.Finding{{Code: verify.RuleExceeded}}, Actions: []verify.Action{
		{Kind: "command", Command: "git tag y", Root: root, Allowed: verify.Allowed{Source: "terminal", ApprovalID: "a1", Type: event.DecisionAlwaysRule}},
		{Kind: "command", Command: "git tag y", Root: root, Allowed: verify.Allowed{Source: "rule", ApprovalID: "r1", Detail: "/p/s.json"}, Findings: []int{0}},
		{Kind: "command", Command: "git tag z", Allowed: verify.Allowed{Source: "rule", ApprovalID: "r1", Detail: "/p/s.json"}},            // never ran
		{Kind: "command", Command: "git tag w", Root: root, Allowed: verify.Allowed{Source: "rule", ApprovalID: "r1", Detail: "/other"}},   // the same rule elsewhere
		{Kind: "command", Command: "git tag x", Root: root, Allowed: verify.Allowed{Source: "terminal", ApprovalID: "a1", Type: "always"}}, // the answer's own command
	}})
	l.uses("s2", &verify.Report{Actions: []verify.Action{
		{Kind: "command", Command: "id", Root: root, Allowed: verify.Allowed{Source: "terminal", ApprovalID: "a1", Type: event.DecisionAlwaysRule}}, // another session's a1
	}})
	if r.Used != 2 || r.Beyond != 1 || !slices.Equal(r.Ran, []string{"git tag y"}) {
		t.Errorf("used %d, beyond %d, ran %q", r.Used, r.Beyond, r.Ran)
	}

	l = fresh()
	l.snapshot("s1", loaded, 5, clock, []*grantSeen{grant("a1", 2, "npm *"), grant("a2", 6, "git tag *")})
	if g := l.Rules[0].Granted; g != nil {
		t.Errorf("explained by %+v", g)
	}
	var b bytes.Buffer
	l.Files = []ruleSource{{Path: "/p/s.json", Error: "bad\x1b[2J"}}
	printRules(&b, l)
	if s := b.String(); !strings.Contains(s, "no recorded answer explains it") || strings.Contains(s, "\x1b") {
		t.Errorf("%q", s)
	}
}
