package testutil

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Model is a scripted model on loopback: a real assistant asks it what to do and gets the next step. It
// speaks enough of the OpenAI Responses API (Codex) and the Anthropic Messages API (Claude Code), both
// streaming. A step is one shell command; a leading "!" makes Codex ask the user (require_escalated). A step
// that begins with "{" is any tool call: {"tool": NAME, "input": {…}}.
type Model struct {
	URL   string
	steps []string
	mu    sync.Mutex
	calls []string // ids given out, in order
	subs  map[string][]string
}

// Sub gives other steps to the conversations whose first message holds the marker: those of a sub-agent.
func (m *Model) Sub(marker string, steps ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.subs == nil {
		m.subs = map[string][]string{}
	}
	m.subs[marker] = steps
}

// NewModel starts a model that ends with the test.
func NewModel(t testing.TB, steps ...string) *Model {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{URL: "http://" + l.Addr().String(), steps: steps}
	srv := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return m
}

// Steps replaces the steps: the next conversation begins with the first of them.
func (m *Model) Steps(steps ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = steps
}

// step is the next step of a conversation that begins with first and has had n answers.
func (m *Model) step(first string, n int) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	steps := m.steps
	for marker, s := range m.subs {
		if strings.Contains(first, marker) {
			steps = s
		}
	}
	if n >= len(steps) {
		return "", false
	}
	return steps[n], true
}

// Calls returns the ids of the tool calls made so far.
func (m *Model) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.calls...)
}

func (m *Model) newID(prefix string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := fmt.Sprintf("%s%d", prefix, time.Now().UnixNano())
	m.calls = append(m.calls, id)
	return id
}

// ServeHTTP implements http.Handler.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodHead:
	case r.Method == http.MethodGet:
		answer(w, map[string]any{"object": "list", "data": []any{}, "models": []any{}})
	case strings.Contains(r.URL.Path, "count_tokens"):
		answer(w, map[string]any{"input_tokens": 10})
	case strings.HasSuffix(r.URL.Path, "/responses"):
		m.openai(w, body)
	case strings.HasPrefix(r.URL.Path, "/v1/messages"):
		m.anthropic(w, body)
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(w, map[string]any{"error": map[string]any{"message": "unknown path"}})
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("content-type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func send(w http.ResponseWriter, kind string, fields map[string]any) {
	fields["type"] = kind
	b, _ := json.Marshal(fields)
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, b)
	w.(http.Flusher).Flush()
}

// call is a step in the vocabulary of the assistant that offers tools.
func call(step string, tools map[string]bool) (string, map[string]any) {
	if strings.HasPrefix(step, "{") {
		var s struct {
			Tool  string         `json:"tool"`
			Input map[string]any `json:"input"`
		}
		if json.Unmarshal([]byte(step), &s) == nil {
			return s.Tool, s.Input
		}
	}
	cmd, escalate := strings.CutPrefix(step, "!")
	if tools["Bash"] {
		return "Bash", map[string]any{"command": cmd, "description": "scripted step"}
	}
	in := map[string]any{"cmd": cmd}
	if escalate {
		in["sandbox_permissions"], in["justification"] = "require_escalated", "scripted step"
	}
	return "exec_command", in
}

func (m *Model) openai(w http.ResponseWriter, body []byte) {
	var req struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Input []struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"input"`
	}
	if json.Unmarshal(body, &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	tools, done, first := map[string]bool{}, 0, ""
	for _, t := range req.Tools {
		tools[t.Name] = true
	}
	for _, i := range req.Input {
		if strings.HasSuffix(i.Type, "_call_output") {
			done++
		}
		if i.Role == "user" && done == 0 {
			first += string(i.Content)
		}
	}
	item := map[string]any{"type": "message", "id": fmt.Sprintf("msg_%d", done), "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": "DONE", "annotations": []any{}}}}
	if step, ok := m.step(first, done); ok && len(tools) > 0 {
		name, in := call(step, tools)
		args, _ := json.Marshal(in)
		item = map[string]any{"type": "function_call", "id": fmt.Sprintf("fc_%d", done), "call_id": m.newID("call_"), "name": name, "arguments": string(args), "status": "completed"}
		if name == "apply_patch" {
			item = map[string]any{"type": "custom_tool_call", "id": fmt.Sprintf("fc_%d", done), "call_id": item["call_id"], "name": name, "input": in["input"], "status": "completed"}
		}
	}
	usage := map[string]any{"input_tokens": 1, "input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens": 1, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": 2}
	id := fmt.Sprintf("resp_%d", time.Now().UnixNano())
	w.Header().Set("content-type", "text/event-stream")
	send(w, "response.created", map[string]any{"response": map[string]any{"id": id, "object": "response", "status": "in_progress", "output": []any{}}})
	send(w, "response.output_item.added", map[string]any{"output_index": 0, "item": item})
	send(w, "response.output_item.done", map[string]any{"output_index": 0, "item": item})
	send(w, "response.completed", map[string]any{"response": map[string]any{"id": id, "object": "response", "status": "completed", "output": []any{item}, "usage": usage}})
}

func (m *Model) anthropic(w http.ResponseWriter, body []byte) {
	var req struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	tools, done := map[string]bool{}, 0
	for _, t := range req.Tools {
		tools[t.Name] = true
	}
	first := ""
	if len(req.Messages) > 0 {
		first = string(req.Messages[0].Content)
	}
	for _, msg := range req.Messages {
		var blocks []struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(msg.Content, &blocks) == nil {
			for _, b := range blocks {
				if b.Type == "tool_result" {
					done++
				}
			}
		}
	}
	base := map[string]any{"id": fmt.Sprintf("msg_%d", time.Now().UnixNano()), "type": "message", "role": "assistant", "model": req.Model, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1}}
	if !req.Stream {
		base["content"], base["stop_reason"] = []any{map[string]any{"type": "text", "text": "ok"}}, "end_turn"
		answer(w, base)
		return
	}
	w.Header().Set("content-type", "text/event-stream")
	base["content"], base["stop_reason"] = []any{}, nil
	send(w, "message_start", map[string]any{"message": base})
	why := "end_turn"
	if step, ok := m.step(first, done); ok && len(tools) > 0 {
		name, in := call(step, tools)
		args, _ := json.Marshal(in)
		send(w, "content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "tool_use", "id": m.newID("toolu_"), "name": name, "input": map[string]any{}}})
		send(w, "content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(args)}})
		why = "tool_use"
	} else {
		send(w, "content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		send(w, "content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": "DONE"}})
	}
	send(w, "content_block_stop", map[string]any{"index": 0})
	send(w, "message_delta", map[string]any{"delta": map[string]any{"stop_reason": why, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	send(w, "message_stop", map[string]any{})
}
