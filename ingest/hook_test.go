package ingest

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ryehq/rye/event"
)

const preHook = `{"session_id":"s1","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo hi","description":"x"},"tool_use_id":"toolu_1"}`

func TestHook(t *testing.T) {
	h, err := Hook("claude", []byte(preHook))
	if err != nil {
		t.Fatal(err)
	}
	c, ok := h.Body.(*event.ToolCall)
	if !ok || c.ID != "toolu_1" || c.Source != "hook" || c.Kind != "command" || c.Command != "echo hi" || c.Thread != "s1" || c.CWD != "/w" {
		t.Errorf("%+v", h.Body)
	}
	for _, c := range []struct{ agent, event, tool, input, record, command string }{
		{"claude", "PostToolUse", "Bash", `{"command":"echo other"}`, "item", "echo other"},
		{"claude", "PermissionRequest", "Bash", `{"command":"a\nb"}`, "question", "a\nb"},
		{"codex", "PostToolUse", "Bash", `{"command":"ls"}`, "item", "ls"},
		{"codex", "PostToolUse", "Bash", `7`, "item", ""},
		{"claude", "PostToolUse", "Write", `{"file_path":"/w/a","content":""}`, "item", ""},
	} {
		b, err := json.Marshal(map[string]any{"hook_event_name": c.event, "tool_name": c.tool, "tool_input": json.RawMessage(c.input), "tool_use_id": "i"})
		if err != nil {
			t.Fatal(err)
		}
		h, err := Hook(c.agent, b)
		if err != nil {
			t.Fatal(err)
		}
		r := h.Body.(*event.ToolResult)
		got := ""
		if len(r.Command) == 3 {
			got = r.Command[2]
		}
		if r.Record != c.record || got != c.command || r.ID != "i" || c.tool == "Write" && (len(r.Paths) != 1 || r.Paths[0] != "/w/a") {
			t.Errorf("%v: %+v", c, r)
		}
	}
	for _, bad := range []string{"", "{", "[]", `{"hook_event_name":"Stop"}`} {
		if h, err := Hook("claude", []byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, h)
		}
	}
	if _, err := Hook("claude", []byte(`{"hook_event_name":"Stop"}`)); !errors.Is(err, errNoHook) {
		t.Error(err)
	}
}

func FuzzHook(f *testing.F) {
	f.Add(preHook)
	f.Add(`{"hook_event_name":"PostToolUse","tool_name":"apply_patch","tool_input":{"command":"*** Add File: x"}}`)
	f.Fuzz(func(t *testing.T, s string) {
		for _, agent := range []string{"claude", "codex"} {
			if h, err := Hook(agent, []byte(s)); err == nil && h.Body == nil {
				t.Error("neither a body nor an error")
			}
		}
	})
}
