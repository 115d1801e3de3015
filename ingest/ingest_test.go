package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

func open(t testing.TB, name string) *File {
	t.Helper()
	path := "/h/.claude/projects/-w/" + name
	if strings.Contains(name, "rollout") {
		path = "/h/.codex/sessions/2026/12/01/rollout-" + name
	}
	f, ok := Open(path, []string{"/h/.codex", "/h/.claude"})
	if !ok {
		t.Fatalf("%s is not taken for a transcript", path)
	}
	return f
}

// describe is a short form of the rows that tests compare.
func describe(rows []Row) []string {
	var out []string
	for _, r := range rows {
		switch b := r.Body.(type) {
		case *event.ToolCall:
			s := fmt.Sprintf("call %s %s %q", b.Tool, b.Kind, b.Command)
			if b.Escalated {
				s += " escalated"
			}
			if b.Paths != nil {
				s += fmt.Sprint(" ", b.Paths)
			}
			out = append(out, s)
		case *event.ToolResult:
			s := fmt.Sprintf("result %s %s", b.Record, b.Status)
			if b.Command != nil {
				s += fmt.Sprintf(" %q", b.Command)
			}
			if b.ExitCode != nil {
				s += fmt.Sprintf(" exit %d", *b.ExitCode)
			}
			if b.DecisionBy != "" {
				s += " " + b.Decision + " by " + b.DecisionBy
			}
			out = append(out, s)
		case *event.TurnContext:
			out = append(out, fmt.Sprintf("mode %s %s %s", b.ApprovalPolicy, b.Sandbox, b.Network))
		}
	}
	return out
}

// The rows of real transcripts, and the same rows however the bytes arrive.
func TestRecordings(t *testing.T) {
	for name, want := range map[string][]string{
		"codex-once.rollout.jsonl": {
			"mode on-request workspace-write restricted",
			`call exec_command command "touch /home/dev/one" escalated`,
			`result item completed ["/bin/bash" "-lc" "touch /home/dev/one"] exit 0`,
			"result output completed",
		},
		"codex-deny.rollout.jsonl": {
			"mode on-request workspace-write restricted",
			`call exec_command command "rm -rf /home/dev/precious" escalated`,
			"result output aborted",
		},
		"claude-once.transcript.jsonl": {
			"mode default  ",
			`call Bash command "python3 -c 'print(6*7)'"`,
			"result output completed",
		},
		"claude-deny.transcript.jsonl": {
			"mode default  ",
			`call Bash command "python3 -c 'print(3)'"`,
			"result output rejected  by user",
		},
		"claude-2.1.332.transcript.jsonl": { // records the decision
			"mode default  ",
			`call Bash command "touch ok.txt` + strings.Repeat(`\t`, 40) + `; touch hidden.txt"`,
			"result output completed accept by user_temporary",
		},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, name)
		got := describe(f.Feed(b))
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
		if f.Skipped != 0 {
			t.Errorf("%s: %d lines skipped", name, f.Skipped)
		}
		for _, size := range []int{1, 7, 4096} {
			f := open(t, name)
			var rows []Row
			for c := range slices.Chunk(b, size) {
				rows = append(rows, f.Feed(c)...)
			}
			if again := describe(rows); !slices.Equal(again, got) {
				t.Errorf("%s in chunks of %d: %v", name, size, again)
			}
		}
	}
}

// What the user ran himself (!cmd) is a row of text.
func TestUserShell(t *testing.T) {
	rows := open(t, "c.jsonl").Feed([]byte(`{"type":"user","uuid":"u1","message":{"role":"user","content":"<bash-input>ls -l</bash-input>"}}` + "\n"))
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	r, ok := rows[0].Body.(*event.ToolResult)
	if !ok || !r.UserShell || r.ID != "u1" || !slices.Equal(r.Command, []string{"bash", "-c", "ls -l"}) {
		t.Errorf("%+v", rows[0].Body)
	}
}

func TestOpen(t *testing.T) {
	homes := []string{"/h/.codex", "/h/.claude"}
	for path, want := range map[string]bool{
		"/h/.codex/sessions/2026/01/02/rollout-x.jsonl": true, "/h/.codex/sessions/2026/01/02/other.jsonl": false,
		"/h/.claude/projects/-w/s.jsonl": true, "/h/.claude/projects/-w/s/subagents/agent-1.jsonl": true,
		"/h/.claude/history.jsonl": false, "/w/projects/x.jsonl": false, "/h/.claude/projects/-w/s.json": false,
	} {
		if _, ok := Open(path, homes); ok != want {
			t.Errorf("%s: %v, want %v", path, ok, want)
		}
	}
}

func FuzzFeed(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.jsonl")
	for _, n := range names {
		b, _ := os.ReadFile(n)
		for i, line := range strings.SplitAfter(string(b), "\n") {
			if i < 40 && len(line) < 3000 {
				f.Add([]byte(line), strings.Contains(n, "rollout"))
			}
		}
	}
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","input":3}]}}`+"\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, codex bool) {
		name := "x.jsonl"
		if codex {
			name = "rollout.jsonl"
		}
		for _, r := range open(t, name).Feed(append(b, '\n')) {
			if r.Body == nil {
				t.Fatal("row without a body")
			}
		}
	})
}
