package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

func told(f *event.RulesLoaded) []string {
	var out []string
	for _, r := range f.Rules {
		out = append(out, r.Decision+" "+r.Tool+" "+r.Pattern)
	}
	return out
}

func TestServers(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(path, level string, b []byte) *event.RulesLoaded
		text string
		want []string
	}{
		{"project servers", MCP, `{"mcpServers":{"b":{"command":"node","args":["s.js","--x"]},"a":{"type":"http","url":"https://m.invalid/mcp"},"c":7}}`,
			[]string{"allow mcp-server https://m.invalid/mcp", "allow mcp-server node s.js --x"}},
		{"not an object", MCP, `[]`, nil},
		{"claude state", ClaudeState, `{"numStartups":3,"mcpServers":{"x":{"command":"srv"}},"projects":{"/w":{"hasTrustDialogAccepted":true,"mcpServers":{"y":{"command":"srv2"}}},"/v":{"hasTrustDialogAccepted":false}}}`,
			[]string{"allow mcp-server srv", "trust trusted-project /w", "allow mcp-server srv2"}},
		{"codex config", CodexConfig, "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\nnotify = [\"notify-send\", \"done\"]\n[mcp_servers.lab]\ncommand = \"python3\"\nargs = [\"srv.py\"]\n[mcp_servers.far]\nurl = \"https://m.invalid\"\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n[projects.\"/v\"]\ntrust_level = \"untrusted\"\n[[hooks.PreToolUse]]\nmatcher = \".*\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"check.sh\"\n",
			[]string{"allow approval_policy never", "mode sandbox_mode workspace-write", "allow notify notify-send done", "allow mcp-server https://m.invalid", "allow mcp-server python3 srv.py", "trust trusted-project /w", "allow hook check.sh"}},
		{"approval table", CodexConfig, "[approval_policy.granular]\nrules = true\n", nil},
		{"broken", CodexConfig, "a = = 1\n", nil},
		{"requirements", CodexRequirements, "allowed_approval_policies = [\"on-request\", \"untrusted\"]\nallowed_sandbox_modes = [\"read-only\"]\n",
			[]string{"limit allowed_approval_policies on-request untrusted", "limit allowed_sandbox_modes read-only"}},
	} {
		f := c.read("/p", User, []byte(c.text))
		if got := told(f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q (%s)", c.name, got, c.want, f.Note)
		}
		if f.Error != "" {
			t.Errorf("%s: error %q: rules of other files would not count", c.name, f.Error)
		}
		if len(c.want) == 0 && c.name != "approval table" && f.Note == "" {
			t.Errorf("%s: nothing is said", c.name)
		}
	}
	f := MCP("/p", Project, []byte(`{"mcpServers":{"b":{"command":"node","args":["s.js"]}}}`))
	if len(f.Rules) != 1 || len(f.Rules[0].Words) != 2 || f.Rules[0].Words[1][0] != "s.js" {
		t.Errorf("%+v", f.Rules)
	}
	if f := CodexConfig("/p", User, []byte("secret = \"tok-123\"\nx = = \"tok-123\"\n")); strings.Contains(f.Note, "tok-123") {
		t.Errorf("a note repeats a value: %q", f.Note)
	}
}

func FuzzServers(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"b":{"command":"node","args":["s.js"]}},"projects":{"/w":{"hasTrustDialogAccepted":true}}}`))
	f.Add([]byte("[mcp_servers.a]\ncommand = \"x\"\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func(string, string, []byte) *event.RulesLoaded{MCP, ClaudeState, CodexConfig, CodexRequirements} {
			for _, r := range read("/p", User, b).Rules {
				if r.ID == "" || r.Tool == "" || len(r.Pattern) > maxText+8 {
					t.Fatalf("%+v", r)
				}
			}
		}
	})
}
