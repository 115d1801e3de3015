package scripted

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// codex plays Codex CLI 0.171: a dialog without a frame, a line after each decision, a rollout below
// ~/.codex/sessions. Commands run outside its sandbox, as those do that the user is asked about.
type codex struct {
	transcript
	thread, turn, cwd, call string
}

func newCodex(mode string) (*codex, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find home folder: %w", err)
	}
	c := &codex{thread: newUUID(), turn: newUUID()}
	if c.cwd, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("find working folder: %w", err)
	}
	t := time.Now().UTC()
	name := fmt.Sprintf("rollout-%s-%s.jsonl", t.Format("2006-01-02T15-04-05"), c.thread)
	if c.transcript, err = newTranscript(filepath.Join(home, ".codex", "sessions", t.Format("2006/01/02"), name)); err != nil {
		return nil, err
	}
	if err := c.write("session_meta", object{"id": c.thread, "cwd": c.cwd, "cli_version": "0.171.0", "originator": "codex-tui", "thread_source": "user"}); err != nil {
		return nil, err
	}
	if mode == "" {
		mode = "on-request"
	}
	return c, c.write("turn_context", object{"turn_id": c.turn, "cwd": c.cwd, "approval_policy": mode, "approvals_reviewer": "user",
		"sandbox_policy": object{"type": "workspace-write", "writable_roots": []string{}, "network_access": false}})
}

func (c *codex) write(kind string, payload object) error {
	return c.row(object{"timestamp": now(), "type": kind, "payload": payload})
}

func (c *codex) dialog(p *player, s *Step) (string, []option) {
	var b strings.Builder
	b.WriteString("\r\n  \x1b[1mWould you like to run the following command?\x1b[22m\r\n\r\n  Environment: \x1b[1mlocal\x1b[22m\r\n\r\n" +
		"  Reason: \x1b[3mscripted step\x1b[23m\r\n\r\n")
	for i, row := range rows("$ "+shown(s), p.width()-4) {
		if i == 0 {
			row = "$ \x1b[38;2;137;180;250m" + strings.TrimPrefix(row, "$ ") + "\x1b[39m"
		}
		b.WriteString("  " + row + "\r\n")
	}
	b.WriteString("\r\n")
	const mark, none = "\x1b[7m\x1b[1m› ", "  "
	options := []option{{label: "Yes, proceed (y)", mark: mark, plain: none, yes: true}}
	if s.Always != "" {
		options = append(options, option{label: "Yes, and don't ask again for commands that start with `" + s.Always + "` (p)", mark: mark, plain: none, yes: true, save: true})
	}
	return b.String(), append(options, option{label: "No, and tell Codex what to do differently (esc)", mark: mark, plain: none})
}

func (*codex) footer() string {
	return "\r\n  \x1b[2mPress \x1b[22m\x1b[1menter\x1b[22m\x1b[2m to confirm or \x1b[22m\x1b[1mesc\x1b[22m\x1b[2m to cancel\x1b[22m"
}

func (c *codex) answered(s *Step, o option) string {
	snippet := snippetOf(shown(s))
	switch {
	case o.save:
		return "\x1b[38;5;2m✔ \x1b[39mYou \x1b[1mapproved\x1b[22m codex to always run commands that start with \x1b[2m" + s.Always + "\x1b[22m\r\n\r\n"
	case o.yes:
		return "\x1b[38;5;2m✔ \x1b[39mYou \x1b[1mapproved\x1b[22m codex to run \x1b[2m" + snippet + "\x1b[22m\x1b[1m this time\x1b[22m\r\n\r\n"
	}
	return "\x1b[38;5;1m✗ \x1b[39mYou \x1b[1mcanceled\x1b[22m the request to run \x1b[2m" + snippet + "\x1b[22m\r\n"
}

// snippetOf shortens a command as the line after a decision does.
func snippetOf(text string) string {
	s, _, more := strings.Cut(text, "\n")
	if more {
		s += " ..."
	}
	if r := []rune(s); len(r) > 80 {
		return string(r[:77]) + "..."
	}
	return s
}

func (c *codex) command(_ *Step, text string) (argv, env []string) {
	return []string{"/bin/bash", "-c", text}, []string{"CODEX_TOOL_CALL_ID=" + c.call, "CODEX_THREAD_ID=" + c.thread}
}

func (c *codex) called(s *Step) error {
	c.call = "call_" + strings.ReplaceAll(newUUID(), "-", "")
	args, err := json.Marshal(object{"cmd": recorded(s), "sandbox_permissions": "require_escalated", "justification": "scripted step"})
	if err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return c.write("response_item", object{"type": "function_call", "name": "exec_command", "arguments": string(args), "call_id": c.call, "status": "completed"})
}

func (c *codex) ended(s *Step, how, output string) error {
	text := "Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n" + output
	switch how {
	case ran:
		item := object{"type": "CommandExecution", "id": c.call, "command": []string{"/bin/bash", "-lc", recorded(s)}, "cwd": "file://" + c.cwd,
			"source": "unified_exec_startup", "status": "completed", "exit_code": 0, "aggregated_output": output}
		if err := c.write("event_msg", object{"type": "item_completed", "thread_id": c.thread, "turn_id": c.turn, "item": item}); err != nil {
			return err
		}
	case refused:
		text = `exec_command failed for ` + recorded(s) + `: CreateProcess { message: "Rejected(\"rejected by user\")" }`
	case unstarts:
		text = "exec_command failed: could not start"
	}
	return c.write("response_item", object{"type": "function_call_output", "call_id": c.call, "output": text})
}

// always appends the prefix to the user's rules, as the real one does.
func (c *codex) always(s *Step) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find home folder: %w", err)
	}
	path := filepath.Join(home, ".codex", "rules", "default.rules")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	words, err := json.Marshal(strings.Fields(s.Always))
	if err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "prefix_rule(pattern=%s, decision=\"allow\")\n", words); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return nil
}
