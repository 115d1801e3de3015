package scripted

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// claude plays Claude Code 2.1: a dialog under a rule, commands in an eval behind the shell snapshot, a
// transcript below ~/.claude/projects.
type claude struct {
	transcript
	session, cwd, snapshot, last, tool string
	source                             string // who decided the last question
}

const claudeVersion = "2.1.332"

func newClaude(mode string) (*claude, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find home folder: %w", err)
	}
	c := &claude{session: newUUID()}
	if c.cwd, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("find working folder: %w", err)
	}
	state := filepath.Join(home, ".claude")
	c.snapshot = filepath.Join(state, "shell-snapshots", "snapshot-bash-1796128134020-sk2ri0.sh")
	if err := os.MkdirAll(filepath.Dir(c.snapshot), 0o755); err != nil {
		return nil, fmt.Errorf("make snapshot: %w", err)
	}
	if err := os.WriteFile(c.snapshot, []byte("# Snapshot file\nunalias -a 2>/dev/null || true\n"), 0o644); err != nil {
		return nil, fmt.Errorf("make snapshot: %w", err)
	}
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, c.cwd)
	if c.transcript, err = newTranscript(filepath.Join(state, "projects", slug, c.session+".jsonl")); err != nil {
		return nil, err
	}
	if mode == "" {
		mode = "default"
	}
	if err := c.row(object{"type": "permission-mode", "permissionMode": mode, "sessionId": c.session}); err != nil {
		return nil, err
	}
	return c, c.write("user", object{"role": "user", "content": "do it"}, object{"permissionMode": mode})
}

func (c *claude) write(kind string, message, more object) error {
	r := object{"type": kind, "message": message, "uuid": newUUID(), "timestamp": now(), "sessionId": c.session, "cwd": c.cwd,
		"version": claudeVersion, "userType": "external", "entrypoint": "cli", "isSidechain": false}
	if c.last != "" {
		r["parentUuid"] = c.last
	}
	for k, v := range more {
		r[k] = v
	}
	c.last = r["uuid"].(string)
	return c.row(r)
}

func (c *claude) dialog(p *player, s *Step) (string, []option) {
	width := p.width()
	var b strings.Builder
	rule, dashes := strings.Repeat("─", width), strings.Repeat("╌", width)
	title, question := "Bash command", "Do you want to proceed?"
	if s.Edit != nil {
		title, question = "Create file", "Do you want to create "+filepath.Base(s.Edit.Path)+"?"
	}
	fmt.Fprintf(&b, "● %s\r\n\r\n\x1b[38;5;153m%s\x1b[39m\r\n \x1b[38;5;153m\x1b[1m%s\x1b[22m\x1b[39m\r\n", s.Say, rule, title)
	if s.Edit != nil {
		fmt.Fprintf(&b, " %s\r\n%s\r\n", s.Edit.Path, dashes)
		for i, row := range rows(strings.TrimSuffix(s.Edit.Text, "\n"), width-8) {
			fmt.Fprintf(&b, " %d %s\r\n", i+1, row)
		}
		fmt.Fprintf(&b, "%s\r\n", dashes)
	} else {
		fmt.Fprintf(&b, " \x1b[38;5;246mscripted step\x1b[39m\r\n%s\r\n", dashes)
		for _, row := range rows(shown(s), width-5) {
			fmt.Fprintf(&b, " %s\r\n", row)
		}
		fmt.Fprintf(&b, "%s\r\n This command requires approval\r\n\r\n", dashes)
	}
	fmt.Fprintf(&b, " %s\r\n", question)
	const mark, none = " \x1b[38;5;153m❯ ", "   "
	options := []option{{label: "Yes", mark: mark, plain: none, yes: true}}
	if s.Always != "" {
		options = append(options, option{label: "Yes, and don’t ask again for: " + s.Always, mark: mark, plain: none, yes: true, save: true})
	}
	return b.String(), append(options, option{label: "No", mark: mark, plain: none})
}

func (*claude) footer() string { return "\r\n Esc to cancel · Tab to amend · ctrl+e to explain" }

func (c *claude) answered(s *Step, o option) string {
	c.source = "user_temporary"
	if o.save {
		c.source = "user_permanent"
	}
	if !o.yes {
		return "● Bash(" + firstLine(shown(s)) + ")\r\n  ⎿ \u00a0User rejected tool use\r\n"
	}
	return "● Bash(" + firstLine(shown(s)) + ")\r\n"
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func (c *claude) command(_ *Step, text string) (argv, env []string) {
	// The folder file's name in the temporary folder is four hex digits, as real ones are.
	wrapped := fmt.Sprintf("source %s 2>/dev/null || true && \\builtin shopt -u extglob 2>/dev/null || true && eval %s < /dev/null && pwd -P >| %s",
		c.snapshot, quote(text), filepath.Join(os.TempDir(), fmt.Sprintf("claude-%04x-cwd", os.Getpid()&0xffff)))
	return []string{"/bin/bash", "-c", wrapped}, []string{
		"AI_AGENT=claude-code_2-1-332_agent", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ID=" + c.session,
		fmt.Sprintf("CLAUDE_PID=%d", os.Getpid()), "GIT_EDITOR=true",
	}
}

func (c *claude) called(s *Step) error {
	c.tool, c.source = "toolu_"+strings.ReplaceAll(newUUID(), "-", "")[:24], ""
	use := object{"type": "tool_use", "id": c.tool, "name": "Bash", "input": object{"command": recorded(s), "description": "scripted step"}}
	if s.Edit != nil {
		use["name"], use["input"] = "Write", object{"file_path": s.Edit.Path, "content": s.Edit.Text}
	}
	return c.write("assistant", object{"role": "assistant", "content": []any{use}}, nil)
}

func (c *claude) ended(_ *Step, how, output string) error {
	result := object{"type": "tool_result", "tool_use_id": c.tool, "content": output, "is_error": how != ran}
	more := object{}
	switch {
	case how == refused:
		result["content"] = "The user doesn't want to proceed with this tool use. The tool use was rejected."
		more["toolDenialKind"] = "user-rejected"
	case how == unstarts:
		result["content"] = "could not start"
	case c.source != "":
		more["permissionDecision"] = object{"decision": "accept", "source": c.source, "grantScope": "once"}
	}
	return c.write("user", object{"role": "user", "content": []any{result}}, more)
}

// always writes the rule into the project's local settings.
func (c *claude) always(s *Step) error {
	rule := s.Rule
	if rule == "" {
		rule = "Bash(" + s.Always + ")"
	}
	path := filepath.Join(c.cwd, ".claude", "settings.local.json")
	var settings struct {
		Permissions struct {
			Allow []string `json:"allow"`
		} `json:"permissions"`
	}
	if b, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(b, &settings); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	settings.Permissions.Allow = append(settings.Permissions.Allow, rule)
	b, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
