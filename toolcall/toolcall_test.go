package toolcall

import (
	"reflect"
	"testing"

	"github.com/ryehq/rye/event"
)

func TestDescribe(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n*** Add File: c d.go\n"
	for _, c := range []struct {
		agent string
		in    Input
		want  event.ToolCall
	}{
		{"claude", Input{Name: "Bash", Arguments: []byte(`{"command":"ls","description":"look","dangerouslyDisableSandbox":true}`)}, event.ToolCall{Tool: "Bash", Kind: "command", Command: "ls", Justification: "look", Escalated: true}},
		{"claude", Input{Name: "Edit", Arguments: []byte(`{"file_path":"/a"}`)}, event.ToolCall{Tool: "Edit", Kind: "edit", Paths: []string{"/a"}}},
		{"claude", Input{Name: "NotebookEdit", Arguments: []byte(`{"notebook_path":"/n"}`)}, event.ToolCall{Tool: "NotebookEdit", Kind: "edit", Paths: []string{"/n"}}},
		{"claude", Input{Name: "WebFetch", Arguments: []byte(`{"url":"https://x"}`)}, event.ToolCall{Tool: "WebFetch", Kind: "fetch", Command: "https://x"}},
		{"claude", Input{Name: "mcp__s__t", Arguments: []byte(`7`)}, event.ToolCall{Tool: "mcp__s__t", Kind: "mcp"}},
		{"claude", Input{Name: "shell", Arguments: []byte(`{"command":["ls"]}`)}, event.ToolCall{Tool: "shell", Kind: "other"}},
		{"unknown", Input{Name: "Bash", Arguments: []byte(`{"command":"ls"}`)}, event.ToolCall{Tool: "Bash", Kind: "command", Command: "ls"}},
		{"codex", Input{Name: "exec_command", Arguments: []byte(`{"cmd":"ls","workdir":"/w","sandbox_permissions":"require_escalated","justification":"why"}`)},
			event.ToolCall{Tool: "exec_command", Kind: "command", Command: "ls", CWD: "/w", Escalated: true, Justification: "why"}},
		{"codex", Input{Name: "shell", Arguments: []byte(`{"command":["bash","-lc","ls"]}`)}, event.ToolCall{Tool: "shell", Kind: "command", Command: "ls", Argv: []string{"bash", "-lc", "ls"}}},
		{"codex", Input{Name: "shell", Arguments: []byte(`{"command":"ls"}`)}, event.ToolCall{Tool: "shell", Kind: "command", Command: "ls"}},
		{"codex", Input{Argv: []string{"ls", "-l"}, CWD: "/w", Arguments: []byte(`{}`)}, event.ToolCall{Tool: "local_shell", Kind: "command", Command: "ls -l", Argv: []string{"ls", "-l"}, CWD: "/w"}},
		{"codex", Input{Name: "apply_patch", Arguments: []byte(patch)}, event.ToolCall{Tool: "apply_patch", Kind: "edit", Paths: []string{"a.go", "b.go", "c d.go"}}},
		{"codex", Input{Name: "exec_command", Arguments: []byte(`{"cmd":"apply_patch <<'E'\n*** Add File: x\nE"}`)}, event.ToolCall{Tool: "exec_command", Kind: "edit", Command: "apply_patch <<'E'\n*** Add File: x\nE", Paths: []string{"x"}}},
		{"codex", Input{Name: "write_stdin", Arguments: []byte(`{"chars":"y\n"}`)}, event.ToolCall{Tool: "write_stdin", Kind: "stdin", Command: "y\n"}},
		{"codex", Input{Namespace: "mcp__s", Name: "t", Arguments: []byte(`{`)}, event.ToolCall{Tool: "mcp__s__t", Kind: "mcp"}},
		{"codex", Input{Name: "exec_command", Arguments: []byte(`{"cmd":`)}, event.ToolCall{Tool: "exec_command", Kind: "command"}},
	} {
		got := event.ToolCall{Agent: c.agent}
		Describe(&got, c.in)
		c.want.Agent = c.agent
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %+v:\n got %+v\nwant %+v", c.agent, c.in, got, c.want)
		}
	}
}
