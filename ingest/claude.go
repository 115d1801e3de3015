package ingest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/toolcall"
)

// Claude Code transcripts: ~/.claude/projects/SLUG/SESSION.jsonl, sub-agents beside it. One line per content
// block; a call is a tool_use block of an assistant row, its end a tool_result block of a user row. Since
// 2.1.310 that row carries permissionDecision; before it nothing records an approval.

type claudeRow struct {
	Type           string          `json:"type"`
	UUID           string          `json:"uuid"`
	Timestamp      string          `json:"timestamp"`
	SessionID      string          `json:"sessionId"`
	CWD            string          `json:"cwd"`
	Version        string          `json:"version"`
	IsSidechain    bool            `json:"isSidechain"`
	AgentID        string          `json:"agentId"`
	PermissionMode string          `json:"permissionMode"`
	DenialKind     string          `json:"toolDenialKind"`
	Message        json.RawMessage `json:"message"`
	Decision       *struct {
		Decision   string `json:"decision"`
		Source     string `json:"source"`
		GrantScope string `json:"grantScope"`
		ReasonType string `json:"reasonType"`
	} `json:"permissionDecision"`
	Sandboxed  *bool           `json:"sandboxed"`
	ToolResult json.RawMessage `json:"toolUseResult"`
}

type claudeBlock struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

func claudeLine(f *File, b []byte, offset int64) []Row {
	var r claudeRow
	if !f.parse(b, &r) {
		return nil
	}
	at := parseTime(r.Timestamp)
	var rows []Row
	if r.SessionID != "" {
		f.thread = r.SessionID
	}
	if r.Version != "" {
		f.version = r.Version
	}
	if r.PermissionMode != "" && (r.Type == "user" || r.Type == "permission-mode") && r.PermissionMode != f.turn {
		f.turn = r.PermissionMode
		rows = append(rows, Row{at, &event.TurnContext{Agent: "claude", Thread: f.thread, CWD: r.CWD, ApprovalPolicy: r.PermissionMode, Version: f.version, File: f.Path, Offset: offset}})
	}
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if len(r.Message) == 0 || json.Unmarshal(r.Message, &m) != nil {
		return rows
	}
	var blocks []claudeBlock
	if json.Unmarshal(m.Content, &blocks) != nil { // a plain string
		if cmd, ok := userShell(rawText(m.Content)); ok && r.Type == "user" {
			rows = append(rows, Row{at, &event.ToolResult{ID: r.UUID, Agent: "claude", Source: "transcript", Thread: f.thread, Record: "item", Status: "completed",
				Command: []string{"bash", "-c", cmd}, UserShell: true, File: f.Path, Offset: offset}})
		}
		return rows
	}
	for _, blk := range blocks {
		switch {
		case blk.Type == "tool_use" && r.Type == "assistant":
			rows = append(rows, Row{at, claudeCall(f, &r, &blk, offset)})
		case blk.Type == "tool_result" && r.Type == "user":
			rows = append(rows, Row{at, claudeResult(f, &r, &blk, offset)})
		}
	}
	return rows
}

// userShell takes a command that the user ran himself (!cmd) out of the row that notes it.
func userShell(content string) (string, bool) {
	rest, ok := strings.CutPrefix(content, "<bash-input>")
	if !ok {
		return "", false
	}
	cmd, _, ok := strings.Cut(rest, "</bash-input>")
	return cmd, ok
}

func claudeCall(f *File, r *claudeRow, blk *claudeBlock, offset int64) event.Body {
	c := &event.ToolCall{ID: blk.ID, Agent: "claude", Source: "transcript", Thread: f.thread, Subagent: r.AgentID, CWD: r.CWD, File: f.Path, Offset: offset}
	if r.IsSidechain && c.Subagent == "" {
		c.Subagent = "sidechain"
	}
	toolcall.Describe(c, toolcall.Input{Name: blk.Name, Arguments: blk.Input})
	return c
}

func claudeResult(f *File, r *claudeRow, blk *claudeBlock, offset int64) event.Body {
	text := claudeText(blk.Content)
	t := &event.ToolResult{ID: blk.ToolUseID, Agent: "claude", Source: "transcript", Thread: f.thread, Record: "output", Status: "completed", OutputBytes: len(text), File: f.Path, Offset: offset}
	if blk.IsError {
		t.Status = "failed"
	}
	switch {
	case r.DenialKind == "user-rejected", strings.HasPrefix(text, "The user doesn't want to"), text == "User rejected tool use":
		t.Status, t.DecisionBy = "rejected", "user"
	case r.DenialKind != "":
		t.Status, t.DecisionBy = "rejected", r.DenialKind
	case strings.HasPrefix(text, "Permission ") && strings.Contains(text, "denied"), strings.Contains(text, "but you haven't granted it yet"), blk.IsError && text == "rejected":
		t.Status = "rejected"
	}
	if d := r.Decision; d != nil {
		t.Decision, t.DecisionBy = d.Decision, d.Source
		if d.ReasonType != "" {
			t.DecisionBy += ":" + d.ReasonType
		}
		if d.Decision == "reject" {
			t.Status = "rejected"
		}
	}
	if r.Sandboxed != nil && *r.Sandboxed {
		t.Record = "output,sandboxed"
	}
	return t
}

func claudeText(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(b, &blocks) != nil {
		return ""
	}
	var out []string
	for _, x := range blocks {
		out = append(out, x.Text)
	}
	return strings.Join(out, "\n")
}

// Boot converts a transcript's wall clock to boottime nanoseconds, given one moment on both clocks.
func Boot(t time.Time, wall time.Time, boot uint64) uint64 {
	if t.IsZero() {
		return 0
	}
	d := int64(boot) + t.Sub(wall).Nanoseconds()
	if d < 0 {
		return 0
	}
	return uint64(d)
}
