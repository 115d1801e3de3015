package ingest

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/toolcall"
)

// Codex rollouts: $CODEX_HOME/sessions/YYYY/MM/DD/rollout-….jsonl. Since 2025-09-10 a line is an envelope
// {timestamp, type, payload}; before it a line was the bare item.
//
// A user's approval is in none of them. Calls are (response_item); what ran is since mid-2026 in
// event_msg item_completed, and from February to May 2026 in exec_command_end.

type codexEnvelope struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

type codexPayload struct {
	Type string `json:"type"`

	// session_meta
	ID             string `json:"id"`
	ParentThreadID string `json:"parent_thread_id"`
	CLIVersion     string `json:"cli_version"`
	AgentRole      string `json:"agent_role"`
	AgentNickname  string `json:"agent_nickname"`
	ThreadSource   string `json:"thread_source"`

	// turn_context
	TurnID           string          `json:"turn_id"`
	CWD              string          `json:"cwd"`
	ApprovalPolicy   json.RawMessage `json:"approval_policy"`
	ApprovalReviewer string          `json:"approvals_reviewer"`
	SandboxPolicy    *codexSandbox   `json:"sandbox_policy"`
	Permission       *codexProfile   `json:"permission_profile"`

	// calls and outputs
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	CallID    string          `json:"call_id"`
	Output    json.RawMessage `json:"output"`
	Status    string          `json:"status"`
	Action    *struct {
		Command          []string `json:"command"`
		WorkingDirectory string   `json:"working_directory"`
	} `json:"action"`

	// event_msg
	Item     *codexItem `json:"item"`
	Command  []string   `json:"command"`
	ExitCode *int       `json:"exit_code"`
	Source   string     `json:"source"`
}

// Older payloads have a string in `source` of session_meta, newer an object: see UnmarshalJSON.
func (p *codexPayload) UnmarshalJSON(b []byte) error {
	type plain codexPayload
	var loose struct {
		*plain
		Source    json.RawMessage `json:"source"`
		Command   json.RawMessage `json:"command"`
		Input     json.RawMessage `json:"input"`
		Arguments json.RawMessage `json:"arguments"`
	}
	loose.plain = (*plain)(p)
	if err := json.Unmarshal(b, &loose); err != nil {
		return err
	}
	_ = json.Unmarshal(loose.Source, &p.Source)
	_ = json.Unmarshal(loose.Command, &p.Command)
	p.Input = rawText(loose.Input)
	p.Arguments = rawText(loose.Arguments)
	return nil
}

type codexItem struct {
	Type     string                     `json:"type"`
	ID       string                     `json:"id"`
	Command  json.RawMessage            `json:"command"`
	CWD      string                     `json:"cwd"`
	Source   string                     `json:"source"`
	Status   string                     `json:"status"`
	ExitCode *int                       `json:"exit_code"`
	Output   string                     `json:"aggregated_output"`
	Changes  map[string]json.RawMessage `json:"changes"`
}

type codexSandbox struct {
	Type          string   `json:"type"`
	Mode          string   `json:"mode"` // the tag's name from June to November 2025
	WritableRoots []string `json:"writable_roots"`
	NetworkAccess any      `json:"network_access"`
}

type codexProfile struct {
	Type       string          `json:"type"`
	Network    json.RawMessage `json:"network"`
	FileSystem *struct {
		Type    string `json:"type"`
		Entries []struct {
			Access string `json:"access"`
			Path   struct {
				Type  string `json:"type"`
				Path  string `json:"path"`
				Value struct {
					Kind string `json:"kind"`
				} `json:"value"`
			} `json:"path"`
		} `json:"entries"`
	} `json:"file_system"`
}

func codexLine(f *File, b []byte, offset int64) []Row {
	var env codexEnvelope
	if !f.parse(b, &env) {
		return nil
	}
	body := env.Payload
	if body == nil { // before 2025-09-10: the line is the item
		body, env.Type = b, "response_item"
	}
	var p codexPayload
	if !f.parse(body, &p) {
		return nil
	}
	at := parseTime(env.Timestamp)
	switch env.Type {
	case "session_meta":
		f.thread, f.parent, f.version = p.ID, p.ParentThreadID, p.CLIVersion
		f.agent = p.AgentNickname
		if f.agent == "" {
			f.agent = p.AgentRole
		}
		if f.agent == "" && p.ThreadSource != "" && p.ThreadSource != "user" {
			f.agent = p.ThreadSource
		}
		return nil
	case "turn_context":
		f.turn = p.TurnID
		return []Row{{at, codexContext(f, &p, offset)}}
	case "response_item":
		return codexItemRow(f, &p, at, offset)
	case "event_msg":
		return codexEvent(f, &p, at, offset)
	}
	return nil
}

func codexContext(f *File, p *codexPayload, offset int64) event.Body {
	c := &event.TurnContext{
		Agent: "codex", Thread: f.thread, Turn: p.TurnID, CWD: p.CWD, ApprovalPolicy: rawText(p.ApprovalPolicy),
		ApprovalReviewer: p.ApprovalReviewer, Version: f.version, File: f.Path, Offset: offset,
	}
	if s := p.SandboxPolicy; s != nil {
		c.Sandbox = s.Type + s.Mode
		c.WriteRoots = s.WritableRoots
		switch v := s.NetworkAccess.(type) {
		case bool:
			c.Network = map[bool]string{true: "enabled", false: "restricted"}[v]
		case string:
			c.Network = v
		}
	}
	if q := p.Permission; q != nil {
		switch q.Type {
		case "disabled":
			c.Sandbox = "danger-full-access"
		case "external":
			c.Sandbox = "external-sandbox"
		}
		if n := rawText(q.Network); n == "restricted" || n == "enabled" {
			c.Network = n
		}
		if fs := q.FileSystem; fs != nil {
			c.WriteRoots = nil
			for _, e := range fs.Entries {
				path := e.Path.Path
				if e.Path.Type == "special" {
					path = ":" + e.Path.Value.Kind
				}
				switch {
				case path == "":
				case e.Access == "write":
					c.WriteRoots = append(c.WriteRoots, path)
				case e.Access == "read" && e.Path.Type == "path":
					c.ReadOnlyPaths = append(c.ReadOnlyPaths, path)
				}
			}
		}
	}
	return c
}

func codexItemRow(f *File, p *codexPayload, at time.Time, offset int64) []Row {
	switch p.Type {
	case "function_call", "custom_tool_call", "local_shell_call":
		return []Row{{at, codexCall(f, p, offset)}}
	case "function_call_output", "custom_tool_call_output":
		text := codexOutputText(p.Output)
		r := &event.ToolResult{ID: p.CallID, Agent: "codex", Source: "transcript", Thread: f.thread, Record: "output", Status: codexOutputStatus(text), OutputBytes: len(text), File: f.Path, Offset: offset}
		return []Row{{at, r}}
	}
	return nil
}

func codexCall(f *File, p *codexPayload, offset int64) event.Body {
	c := &event.ToolCall{
		ID: p.CallID, Agent: "codex", Source: "transcript", Thread: f.thread, ParentThread: f.parent, Subagent: f.agent,
		File: f.Path, Offset: offset,
	}
	in := toolcall.Input{Namespace: p.Namespace, Name: p.Name, Arguments: []byte(p.Arguments)}
	if p.Type == "local_shell_call" && p.Action != nil {
		in.Argv, in.CWD = append([]string{}, p.Action.Command...), p.Action.WorkingDirectory
	}
	if p.Input != "" && p.Name == "apply_patch" {
		in.Arguments = []byte(p.Input)
	}
	toolcall.Describe(c, in)
	return c
}

func codexOutputText(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	var o struct {
		Content string `json:"content"`
		Output  string `json:"output"`
	}
	if json.Unmarshal(b, &o) == nil && o.Content+o.Output != "" {
		return o.Content + o.Output
	}
	return string(b)
}

func codexOutputStatus(text string) string {
	switch {
	case strings.Contains(text, "aborted by user"):
		return "aborted"
	case strings.HasPrefix(text, "exec_command failed") && strings.Contains(text, "Rejected("),
		strings.Contains(text, "rejected by user"), strings.HasPrefix(text, "exec command rejected"):
		return "rejected"
	case strings.HasPrefix(text, "exec_command failed"), strings.HasPrefix(text, "failed "):
		return "failed"
	}
	return "completed"
}

func codexEvent(f *File, p *codexPayload, at time.Time, offset int64) []Row {
	r := &event.ToolResult{Agent: "codex", Source: "transcript", Thread: f.thread, Record: "item", File: f.Path, Offset: offset}
	switch {
	case p.Type == "exec_command_end":
		r.ID, r.Command, r.ExitCode, r.Status = p.CallID, p.Command, p.ExitCode, p.Status
		r.UserShell = p.Source == "user_shell"
	case p.Type == "item_completed" && p.Item != nil:
		i := p.Item
		r.ID, r.Status, r.ExitCode, r.OutputBytes = i.ID, i.Status, i.ExitCode, len(i.Output)
		switch i.Type {
		case "CommandExecution":
			_ = json.Unmarshal(i.Command, &r.Command)
			r.UserShell = i.Source == "user_shell"
		case "FileChange":
			for path := range i.Changes {
				r.Paths = append(r.Paths, filePath(path))
			}
		case "McpToolCall":
		default:
			return nil
		}
	default:
		return nil
	}
	return []Row{{at, r}}
}

// filePath undoes the file:// form that items use.
func filePath(s string) string {
	if u, err := url.Parse(s); err == nil && u.Scheme == "file" {
		return u.Path
	}
	return s
}
