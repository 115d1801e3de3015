package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/verify"
)

// A saved rule lets a command run outside Codex's sandbox without a question.
func TestPrivCodexRulesFile(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "!git tag -l")
	codex := l.codex(m, "--no-daemon", "do it")
	l.file(filepath.Join(l.home, ".codex/rules/default.rules"), "prefix_rule(pattern=[\"git\", [\"tag\", \"log\"]], decision=\"allow\")\n")
	testutil.Drive(t, l.ryeCmd(append([]string{"wrap", "--"}, codex...)...), 100, 40, leave("DONE"))
	r := l.verdict()
	a := find(r, "git tag -l")
	if a == nil || a.Allowed.Source != "rule" || a.Allowed.Rule != "git tag|log" || r.Verdict != verify.Verified {
		show(t, r)
		t.Fatalf("action %+v; %s", a, codes(r))
	}
	out, err := l.ryeCmd("rules", "--json").Output()
	var list ruleList
	if err != nil || json.Unmarshal(out, &list) != nil || len(list.permissions()) != 1 {
		t.Fatalf("rye rules: %v\n%s", err, out)
	}
	if x := list.permissions()[0]; x.ID != a.Allowed.ApprovalID || x.Level != "user" || x.First == nil || x.First.At != "start" || x.Granted != nil || x.Used != 1 {
		t.Errorf("%+v", x)
	}
}

// One mistake in one file, and Codex drops the rules of all: the command is asked for again.
func TestPrivCodexRulesBroken(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "!git tag -l")
	codex := l.codex(m, "--no-daemon", "do it")
	l.file(filepath.Join(l.home, ".codex/rules/default.rules"), "prefix_rule(pattern=[\"git\", \"tag\"], decision=\"allow\")\n")
	l.file(filepath.Join(l.home, ".codex/rules/other.rules"), "prefix_rule(pattern=[\"ls\"], match=[\"id\"])\n")
	testutil.Drive(t, l.ryeCmd(append([]string{"wrap", "--"}, codex...)...), 100, 40,
		append([]testutil.Key{{Wait: "Would you like to run the following command?", Send: "y"}}, leave("DONE")...))
	r := l.verdict()
	a := find(r, "git tag -l")
	if a == nil || a.Allowed.Source != "terminal" || a.Allowed.Type != "this_time" || r.Verdict != verify.Verified {
		show(t, r)
		t.Fatalf("action %+v; %s", a, codes(r))
	}
}

// permissions are the rules about commands: beside them stand modes and folders that are trusted.
func (l *ruleList) permissions() []standing {
	return slices.DeleteFunc(slices.Clone(l.Rules), func(r standing) bool { return r.Decision == "mode" || r.Decision == "trust" })
}
