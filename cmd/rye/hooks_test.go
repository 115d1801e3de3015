package main

import (
	"cmp"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/verify"
)

// events are the records of the last session of some types.
func (l *lab) records(types ...string) []map[string]any {
	l.t.Helper()
	out, err := l.ryeCmd("show", "last", "--json").Output()
	if err != nil {
		l.t.Fatalf("rye show: %v", err)
	}
	var list []map[string]any
	for line := range strings.Lines(string(out)) {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && slices.Contains(types, e["type"].(string)) {
			list = append(list, e)
		}
	}
	return list
}

func (l *lab) wrapClaudeHooks(m *testutil.Model, settings string, keys ...testutil.Key) *verify.Report {
	l.t.Helper()
	claude := l.claude(m, settings)
	testutil.Drive(l.t, l.ryeCmd(append([]string{"wrap", "--hooks", "--"}, claude...)...), 100, 40, keys)
	return l.verdict()
}

// Claude Code tells rye of a call before it asks, when it asks and after it ran, in this order, and the verdict is
// what it would be without.
func TestPrivClaudeTellsHooks(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "touch one && mkdir two")
	r := l.wrapClaudeHooks(m, "", append([]testutil.Key{{Wait: ask, Send: "1", Pause: time.Second}}, leave("DONE")...)...)
	a := find(r, "touch one")
	if a == nil || a.Verdict != verify.Verified || a.Allowed.Source != "terminal" || r.Verdict != verify.Verified || len(r.Findings) != 0 {
		show(t, r)
		t.Fatalf("action %+v; %s", a, codes(r))
	}
	var order []string
	at := map[string]float64{}
	tell := func(what string, timeNS any) {
		order = append(order, what)
		at[what], _ = timeNS.(float64)
	}
	for _, e := range l.records("tool.call", "tool.result", "process.exec", "approval.granted") {
		switch {
		case e["type"] == "approval.granted":
			tell("granted", e["key_ns"]) // the record comes when the dialog has left the screen
		case e["type"] == "process.exec":
			if argv, _ := e["argv"].([]any); len(argv) == 2 && argv[0] == "touch" && at["ran"] == 0 {
				tell("ran", e["time_ns"])
			}
		case e["source"] == "hook":
			if e["proc"] == nil {
				t.Errorf("nobody's word: %v", e)
			}
			if r, _ := e["record"].(string); r != "" {
				tell(r, e["time_ns"])
			} else {
				tell("call", e["time_ns"])
			}
			if e["id"] != m.Calls()[0] {
				t.Errorf("id %v, want %s", e["id"], m.Calls()[0])
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(at[a], at[b]) })
	if !slices.Equal(order, []string{"call", "question", "granted", "ran", "item"}) {
		t.Errorf("the order is %q", order)
	}
	if left, _ := filepath.Glob(filepath.Join(l.ryeHome, "run", "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Somebody else's hook rewrites the command: rye's own has the model's words before and what ran after.
func TestPrivClaudeHooksSeeRewriting(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	hook := l.file(".claude/rewrite.sh", `#!/bin/sh
echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"touch other","description":"x"}}}'
`)
	m := testutil.NewModel(t, "touch asked")
	r := l.wrapClaudeHooks(m, `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"`+hook+`"}]}]}}`, leave("DONE")...)
	a := find(r, "touch other")
	if a == nil || a.Asked == nil || a.Asked.Command != "touch asked" || !hasFinding(r, verify.AskedDiffers) || hasFinding(r, verify.TranscriptDiffers) {
		show(t, r)
		t.Fatalf("action %+v; %s", a, codes(r))
	}
	words := map[string]string{}
	for _, e := range l.records("tool.call", "tool.result") {
		if e["source"] != "hook" {
			continue
		}
		if c, ok := e["command"].(string); ok {
			words["before"] = c
		} else if argv, ok := e["command"].([]any); ok {
			words["after"] = argv[len(argv)-1].(string)
		}
	}
	if words["before"] != "touch asked" || words["after"] != "touch other" {
		t.Errorf("%q", words)
	}
}

func TestHookFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte(`{"model":"x","hooks":{"PreToolUse":[{"hooks":[]}],"Stop":[]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		argv []string
		rest []string
		mine int // groups under PreToolUse
	}{
		{[]string{"claude", "-p", "x"}, []string{"-p", "x"}, 1},
		{[]string{"claude", "--settings", file, "x"}, []string{"x"}, 2},
		{[]string{"claude", "--settings=" + file}, nil, 2},
		{[]string{"claude", "--settings", `{"hooks":{}}`}, nil, 1},
	} {
		got, err := claudeHooks(c.argv, "rye hook claude /s")
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Model string           `json:"model"`
			Hooks map[string][]any `json:"hooks"`
		}
		if got[0] != "claude" || got[1] != "--settings" || json.Unmarshal([]byte(got[2]), &s) != nil || !slices.Equal(got[3:], c.rest) {
			t.Errorf("%q: %q", c.argv, got)
		}
		if len(s.Hooks["PreToolUse"]) != c.mine || len(s.Hooks["PostToolUse"]) != 1 || c.mine == 2 && s.Model != "x" {
			t.Errorf("%q: %+v", c.argv, s)
		}
	}
	if _, err := claudeHooks([]string{"claude", "--settings", file + "-not-there"}, "x"); err == nil {
		t.Error("settings that are not there were read")
	}
}

// Only the session's own processes are listened to.
func TestHookStranger(t *testing.T) {
	h := &hooks{agent: "claude", last: map[string]string{}}
	if err := h.listen(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	member := false
	heard := make(chan event.Event, 4)
	h.serve(func(e event.Event) { heard <- e }, func(int) (event.ProcessKey, bool) { return event.ProcessKey{}, member })
	say := func() string {
		c, err := net.Dial("unix", h.l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"i"}`))
		c.(*net.UnixConn).CloseWrite()
		b := make([]byte, 8)
		n, _ := c.Read(b)
		return string(b[:n])
	}
	if got := say(); got != "" || len(heard) != 0 {
		t.Errorf("a stranger was answered %q", got)
	}
	member = true
	if got := say(); got != "ok\n" || len(heard) != 1 {
		t.Errorf("answered %q, %d heard", got, len(heard))
	}
	if n := h.close(); n != 1 {
		t.Errorf("%d strangers", n)
	}
}

// git runs git in the project.
func (l *lab) git(args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir, cmd.Env = l.project, l.env
	return cmd.CombinedOutput()
}

// Codex asks once whether to trust rye's hooks; from then on it tells of every call, in this session and the next.
func TestPrivCodexTellsHooks(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "!git tag -l")
	codex := append([]string{"wrap", "--hooks", "--"}, l.codex(m, "--no-daemon", "do it")...)
	trust := testutil.Key{Wait: "Trust all and continue", Send: "\x1b[B\r", Pause: time.Second}
	yes := testutil.Key{Wait: "Would you like to run the following command?", Send: "y", Pause: time.Second}
	for _, keys := range [][]testutil.Key{{trust, yes}, {yes}} {
		testutil.Drive(t, l.ryeCmd(codex...), 100, 40, append(keys, leave("DONE")...))
		r := l.verdict()
		if a := find(r, "git tag -l"); a == nil || a.Verdict != verify.Verified || a.Allowed.Source != "terminal" || r.Verdict != verify.Verified {
			show(t, r)
			t.Fatalf("action %+v; %s", a, codes(r))
		}
		var told []string
		for _, e := range l.records("tool.call", "tool.result") {
			if e["source"] == "hook" {
				record, _ := e["record"].(string)
				told = append(told, record)
			}
		}
		if !slices.Equal(told, []string{"", "question", "item"}) {
			show(t, r)
			t.Fatalf("told %q", told)
		}
	}
}
