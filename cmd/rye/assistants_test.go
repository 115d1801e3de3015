package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/verify"
)

// A sub-agent of Claude Code asks for a command; the user is asked, and the action says who wanted it.
func TestPrivClaudeSubagent(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, `{"tool":"Agent","input":{"description":"Sub task","prompt":"SUBTASK do it","subagent_type":"general-purpose"}}`, "git tag by-main")
	m.Sub("SUBTASK", "touch by-sub && git tag by-sub")
	if out, err := l.git("commit", "-q", "--allow-empty", "-m", "x"); err != nil {
		t.Fatalf("git commit: %v %s", err, out)
	}
	r := l.wrapClaude(m, "", 100, append([]testutil.Key{{Wait: ask, Send: "1", Pause: time.Second}, {Wait: ask, Send: "1", Pause: time.Second}}, leave("DONE")...)...)
	sub, main := find(r, "by-sub"), find(r, "by-main")
	if sub == nil || main == nil || sub.Asked == nil || main.Asked == nil || sub.Allowed.Source != "terminal" || r.Verdict != verify.Verified {
		show(t, r)
		t.Fatalf("%+v, %+v; %s", sub, main, codes(r))
	}
	for _, e := range l.records("tool.call") {
		who, _ := e["subagent"].(string)
		switch e["id"] {
		case sub.Asked.ID:
			if who == "" {
				t.Error("the sub-agent's call is nobody's")
			}
		case main.Asked.ID:
			if who != "" {
				t.Errorf("the main conversation's call is %s's", who)
			}
		}
	}
}

// Codex changes a file of the project by itself, in its own process, where its mode lets it.
func TestPrivCodexEdit(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	l.file("notes.txt", "one\ntwo\n")
	m := testutil.NewModel(t, "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: notes.txt\n@@\n one\n-two\n+three\n*** Add File: new.txt\n+hello\n*** End Patch\nEOF")
	r := l.wrapCodex(m, 100, leave("DONE")...)
	if b, _ := os.ReadFile(filepath.Join(l.project, "notes.txt")); string(b) != "one\nthree\n" {
		t.Fatalf("the file was not changed: %q", b)
	}
	a := find(r, "notes.txt")
	if a == nil || a.Kind != "edit" || a.Verdict != verify.Verified || a.Allowed.Source != "mode" || r.Verdict != verify.Verified || hasFinding(r, verify.ExecUnapproved) {
		show(t, r)
		t.Fatalf("action %+v; %s", a, codes(r))
	}
}

// A PreToolUse hook of the project rewrites the command: the dialog and the kernel agree, the model asked for another.
func TestPrivCodexHookRewrites(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	hook := l.file(".codex/rewrite.sh", `#!/bin/sh
cat > /dev/null
echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"touch other"}}}'
`)
	l.file(".codex/hooks.json", `{"hooks":{"PreToolUse":[{"matcher":".*","hooks":[{"type":"command","command":"`+hook+`"}]}]}}`)
	m := testutil.NewModel(t, "!touch asked")
	codex := l.codex(m, "--no-daemon", "--dangerously-bypass-hook-trust", "do it")
	testutil.Drive(t, l.ryeCmd(append([]string{"wrap", "--"}, codex...)...), 100, 40,
		append([]testutil.Key{{Wait: "Would you like to run the following command?", Send: "y", Pause: time.Second}}, leave("DONE")...))
	r := l.verdict()
	a := find(r, "touch other")
	if a == nil || a.Allowed.Source != "terminal" || a.Asked == nil || a.Asked.Command != "touch asked" || !hasFinding(r, verify.AskedDiffers) || a.Verdict != verify.Verified {
		show(t, r)
		t.Fatalf("action %+v; %s", a, codes(r))
	}
}

// A rule for a program covers its words, not what the program can be told to start.
func TestPrivCodexRuleExceeded(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	l.file("f", "line\n")
	r := l.codexWithRule("sed", "!sed '1e touch x' f", leave("DONE")...)
	if _, err := os.Stat(filepath.Join(l.project, "x")); err != nil {
		t.Fatal("this Codex did not let it run")
	}
	a := find(r, "sed '1e")
	if a == nil || a.Allowed.Source != "rule" || !hasFinding(r, verify.RuleExceeded) || a.Verdict != verify.Discrepancy {
		show(t, r)
		t.Fatalf("action %+v; %s", a, codes(r))
	}
}

// Codex does not take its own rule for words that can hold another program: it asks, and the answer counts.
func TestPrivCodexAsksDespiteRule(t *testing.T) {
	testutil.Privileged(t)
	for program, command := range map[string]string{"git": "git -c alias.z='!touch y' z", "env": "env A=1 touch y"} {
		l := newLab(t)
		r := l.codexWithRule(program, "!"+command,
			append([]testutil.Key{{Wait: "Would you like to run the following command?", Send: "y", Pause: time.Second}}, leave("DONE")...)...)
		a := find(r, command)
		if a == nil || a.Allowed.Source != "terminal" || a.Verdict != verify.Verified || r.Verdict != verify.Verified {
			show(t, r)
			t.Fatalf("action %+v; %s", a, codes(r))
		}
	}
}

func (l *lab) codexWithRule(program, step string, keys ...testutil.Key) *verify.Report {
	l.t.Helper()
	codex := l.codex(testutil.NewModel(l.t, step), "--no-daemon", "do it")
	l.file(filepath.Join(l.home, ".codex/rules/default.rules"), fmt.Sprintf("prefix_rule(pattern=[%q], decision=\"allow\")\n", program))
	testutil.Drive(l.t, l.ryeCmd(append([]string{"wrap", "--"}, codex...)...), 100, 40, keys)
	return l.verdict()
}
