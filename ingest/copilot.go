package ingest

import (
	"encoding/json"
	"strings"

	"github.com/ryehq/rye/event"
)

// Copilot CLI keeps ~/.copilot/session-state/SESSION/events.jsonl, one event a line. A call stands in the message
// of the model (toolRequests), what became of the question about it in permission.completed, how it ended in
// tool.execution_complete. Seen: 1.0.102.

type copilotRow struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      struct {
		SessionID string `json:"sessionId"`
		Version   string `json:"copilotVersion"`
		Context   struct {
			CWD string `json:"cwd"`
		} `json:"context"`

		ToolRequests []struct {
			ID        string          `json:"toolCallId"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolRequests"`

		ToolCallID string          `json:"toolCallId"`
		Source     string          `json:"decisionSource"`
		Result     json.RawMessage `json:"result"`
		Success    *bool           `json:"success"`
		Shell      struct {
			ExitCode *int `json:"exitCode"`
		} `json:"shellExecution"`
		PermissionMode string `json:"permissionMode"`
	} `json:"data"`
}

func copilotLine(f *File, b []byte, offset int64) []Row {
	var r copilotRow
	if !f.parse(b, &r) {
		return nil
	}
	at, d := parseTime(r.Timestamp), &r.Data
	switch r.Type {
	case "session.start", "session.resume":
		if d.SessionID != "" {
			f.thread = d.SessionID
		}
		f.version, f.cwd = d.Version, d.Context.CWD
		return []Row{{at, &event.TurnContext{Agent: "copilot", Thread: f.thread, CWD: f.cwd, Version: f.version, File: f.Path, Offset: offset}}}
	case "assistant.message":
		var rows []Row
		for _, q := range d.ToolRequests {
			c := &event.ToolCall{ID: q.ID, Agent: "copilot", Source: "transcript", Thread: f.thread, Tool: q.Name, Kind: "other", CWD: f.cwd, File: f.Path, Offset: offset}
			describeCopilot(c, q.Arguments)
			rows = append(rows, Row{at, c})
		}
		return rows
	case "permission.requested":
		if d.PermissionMode != "" && d.PermissionMode != f.turn {
			f.turn = d.PermissionMode
			return []Row{{at, &event.TurnContext{Agent: "copilot", Thread: f.thread, CWD: f.cwd, ApprovalPolicy: f.turn, Version: f.version, File: f.Path, Offset: offset}}}
		}
	case "permission.completed", "tool.execution_complete":
		if d.ToolCallID != "" {
			return []Row{{at, copilotResult(f, &r, offset)}}
		}
	}
	return nil
}

// copilotResult is how a question, or a call, ended.
func copilotResult(f *File, r *copilotRow, offset int64) event.Body {
	d := &r.Data
	t := &event.ToolResult{ID: d.ToolCallID, Agent: "copilot", Source: "transcript", Thread: f.thread, File: f.Path, Offset: offset}
	var result struct {
		Kind    string `json:"kind"`
		Content string `json:"content"`
	}
	_ = json.Unmarshal(d.Result, &result) // of any shape
	if r.Type == "tool.execution_complete" {
		t.Record, t.Status, t.ExitCode, t.OutputBytes = "output", "completed", d.Shell.ExitCode, len(result.Content)
		if d.Success != nil && !*d.Success {
			t.Status = "failed"
		}
		return t
	}
	t.Record, t.Status, t.Decision, t.DecisionBy = "permission", "approved", result.Kind, d.Source
	switch d.Source {
	case "human_response":
		t.DecisionBy = "user"
	case "":
		t.DecisionBy = "unknown"
	}
	if !strings.HasPrefix(result.Kind, "approved") {
		t.Status = "rejected"
	}
	return t
}

func describeCopilot(c *event.ToolCall, arguments []byte) {
	var a struct {
		Command     string `json:"command"`
		Description string `json:"description"`
		Path        string `json:"path"`
		URL         string `json:"url"`
	}
	_ = json.Unmarshal(arguments, &a) // a tool's input may have any shape
	switch c.Tool {
	case "bash", "shell":
		c.Kind, c.Command, c.Justification = "command", a.Command, a.Description
	case "create", "edit", "str_replace_editor", "apply_patch":
		c.Kind = "edit"
		if a.Path != "" {
			c.Paths = []string{a.Path}
		}
	case "view", "grep", "glob":
		if a.Path != "" {
			c.Paths = []string{a.Path}
		}
	case "web_fetch", "fetch":
		c.Kind, c.Command = "fetch", a.URL
	}
	if strings.Contains(c.Tool, "__") || strings.HasPrefix(c.Tool, "mcp") {
		c.Kind = "mcp"
	}
}
