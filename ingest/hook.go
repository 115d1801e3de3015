package ingest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/toolcall"
)

// What an assistant tells a hook about a tool call, on the hook's standard input. Claude Code and Codex use the
// same names. PreToolUse has the call as the model made it, PermissionRequest as the user is about to be asked,
// PostToolUse as it was done: another hook may have rewritten it in between.

// A HookCall is one such word.
type HookCall struct {
	Event string // PreToolUse, PermissionRequest, PostToolUse
	Tool  string
	Body  event.Body // *event.ToolCall or *event.ToolResult
}

var errNoHook = errors.New("no hook event that is listened for")

// Hook reads the JSON that an assistant gave a hook.
func Hook(agent string, b []byte) (*HookCall, error) {
	var h struct {
		Event     string          `json:"hook_event_name"`
		Session   string          `json:"session_id"`
		CWD       string          `json:"cwd"`
		Tool      string          `json:"tool_name"`
		Input     json.RawMessage `json:"tool_input"`
		ID        string          `json:"tool_use_id"`
		AgentID   string          `json:"agent_id"`
		AgentType string          `json:"agent_type"`
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("read hook: %w", err)
	}
	call := &event.ToolCall{ID: h.ID, Agent: agent, Source: "hook", Thread: h.Session, Subagent: h.AgentType, CWD: h.CWD}
	if h.AgentID != "" {
		call.Subagent = h.AgentID
	}
	describeHook(call, h.Tool, h.Input)
	if call.CWD == "" {
		call.CWD = h.CWD
	}
	result := &event.ToolResult{ID: h.ID, Agent: agent, Source: "hook", Thread: h.Session, Paths: call.Paths}
	if call.Kind == "command" && call.Command != "" {
		result.Command = []string{"bash", "-c", call.Command}
	}
	switch h.Event {
	case "PreToolUse":
		return &HookCall{h.Event, h.Tool, call}, nil
	case "PermissionRequest":
		result.Record, result.Status = "question", "asked"
	case "PostToolUse":
		result.Record, result.Status = "item", "completed"
	default:
		return nil, fmt.Errorf("read hook %q: %w", h.Event, errNoHook)
	}
	return &HookCall{h.Event, h.Tool, result}, nil
}

// describeHook fills in what is asked for. Codex tells hooks of a Bash tool where its models call exec_command.
func describeHook(c *event.ToolCall, tool string, input []byte) {
	if c.Agent == "codex" && tool == "Bash" {
		var in struct {
			Command json.RawMessage `json:"command"`
		}
		_ = json.Unmarshal(input, &in) // a tool's input may have any shape
		c.Tool, c.Kind, c.Command = tool, "command", rawText(in.Command)
		return
	}
	toolcall.Describe(c, toolcall.Input{Name: tool, Arguments: input})
}
