package rules

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// Claude reads a settings file of Claude Code. Beside permissions.allow, ask and deny it reports, as rules
// with tools of their own, what grants as much as a rule does: the default mode (defaultMode), folders
// beside the workspace (additionalDirectory), and commands that run on their own (hook, statusline).
//
// Keys are compared exactly, as JavaScript does; encoding/json's struct matching would also take
// "Permissions".
func Claude(path, level string, b []byte) *event.RulesLoaded {
	f := file("claude", path, level, b)
	const whole = "Claude Code does not apply a settings file that it cannot read"
	if len(b) > MaxBytes {
		f.Error = NotRead + ": the file is too long"
		return f
	}
	top, err := object(bytes.TrimPrefix(b, []byte("\ufeff")))
	if err != nil {
		f.Error = err.Error()
		note(f, whole)
		return f
	}
	if raw, ok := top["permissions"]; ok {
		p, err := object(raw)
		if err != nil {
			f.Error = "permissions: " + err.Error()
			note(f, whole)
			return f
		}
		claudePermissions(f, p, b)
	}
	if line, err := object(top["statusLine"]); err == nil {
		var command string
		if json.Unmarshal(line["command"], &command) == nil && command != "" {
			add(f, event.Rule{Decision: "allow", Tool: "statusline", Pattern: cut(command, maxText)})
		}
	}
	hooks(f, top["hooks"])
	if is(top["disableAllHooks"]) {
		note(f, "all hooks are switched off")
	}
	if level == Project && len(f.Rules) > 0 {
		note(f, "allow rules of a project hold only where the user trusted the folder")
	}
	return f
}

func claudePermissions(f *event.RulesLoaded, p map[string]json.RawMessage, b []byte) {
	lines := newLines(b)
	for _, decision := range []string{"deny", "ask", "allow"} { // the order Claude Code asks them in
		list, odd := stringList(p[decision])
		if odd > 0 {
			note(f, "%d entries of permissions.%s are no strings", odd, decision)
		}
		for _, text := range list {
			r, ok := claudeRule(text, decision)
			if !ok {
				note(f, "an entry of permissions.%s has no form that is known", decision)
				continue
			}
			r.Line = lines.of(text)
			if !add(f, r) {
				note(f, "more than %d rules: the rest is left out", maxRules)
				return
			}
		}
	}
	var mode string
	if json.Unmarshal(p["defaultMode"], &mode) == nil && mode != "" {
		decision := "ask"
		switch mode {
		case "acceptEdits", "auto", "bypassPermissions":
			decision = "allow"
		}
		add(f, event.Rule{Decision: decision, Tool: "defaultMode", Pattern: cut(mode, 80)})
	}
	dirs, _ := stringList(p["additionalDirectories"])
	for _, d := range dirs {
		if len(d) <= maxText {
			add(f, event.Rule{Decision: "allow", Tool: "additionalDirectory", Pattern: d, Line: lines.of(d)})
		}
	}
	for _, k := range []string{"disableBypassPermissionsMode", "disableAutoMode"} {
		if raw, ok := p[k]; ok && (is(raw) || string(raw) == `"disable"`) {
			note(f, "%s is set", k)
		}
	}
}

// claudeRule reads `Tool` or `Tool(specifier)`. `Tool(*)` is `Tool`.
func claudeRule(text, decision string) (event.Rule, bool) {
	text = strings.TrimSpace(text)
	tool, rest, has := strings.Cut(text, "(")
	r := event.Rule{Decision: decision, Tool: tool}
	if tool == "" || len(text) > maxText || strings.ContainsAny(tool, " \t\r\n)") {
		return r, false
	}
	if !has {
		return r, true
	}
	spec, closed := strings.CutSuffix(rest, ")")
	// An empty specifier must not be read as "everything".
	if !closed || spec == "" {
		return r, false
	}
	if spec != "*" {
		r.Pattern = spec
	}
	return r, true
}

// hooks reports commands that the assistant runs at its events. They run with the user's rights, and one
// before a tool may also allow it or rewrite what it does.
func hooks(f *event.RulesLoaded, raw json.RawMessage) {
	if raw == nil {
		return
	}
	events, err := object(raw)
	if err != nil {
		note(f, "hooks: %v", err)
		return
	}
	var names []string
	for name, raw := range events {
		var groups []json.RawMessage
		if json.Unmarshal(raw, &groups) != nil {
			continue
		}
		for _, g := range groups {
			group, err := object(g)
			var list []json.RawMessage
			if err != nil || json.Unmarshal(group["hooks"], &list) != nil {
				continue
			}
			for _, h := range list {
				if one, err := object(h); err == nil {
					if !slices.Contains(names, name) {
						names = append(names, name)
					}
					hook(f, one)
				}
			}
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		note(f, "hooks at %s", cut(strings.Join(names, ", "), 300))
		slices.SortStableFunc(f.Rules, func(a, b event.Rule) int { return strings.Compare(hookKey(a), hookKey(b)) })
	}
}

// hookKey sorts hooks, which come out of a map, behind the rules, which stay in order.
func hookKey(r event.Rule) string {
	if strings.HasPrefix(r.Tool, "hook") {
		return r.Tool + "\x00" + r.Pattern
	}
	return ""
}

func hook(f *event.RulesLoaded, h map[string]json.RawMessage) {
	// Only a command starts a program of its own; the other kinds ask a server or a model.
	var command string
	tool := "hook"
	for _, kind := range [][2]string{{"command", "hook"}, {"url", "hook.http"}, {"prompt", "hook.prompt"}} {
		if json.Unmarshal(h[kind[0]], &command) == nil && command != "" {
			tool = kind[1]
			break
		}
	}
	r := event.Rule{Decision: "allow", Tool: tool, Pattern: cut(command, maxText)}
	if command == "" || slices.ContainsFunc(f.Rules, func(o event.Rule) bool { return o.Tool == tool && o.Pattern == r.Pattern }) {
		return
	}
	add(f, r)
}

// Hooks reads a file that holds hooks alone, such as Codex's hooks.json.
func Hooks(agent, path, level string, b []byte) *event.RulesLoaded {
	f := file(agent, path, level, b)
	if len(b) > MaxBytes {
		f.Error = NotRead + ": the file is too long"
		return f
	}
	top, err := object(b)
	if err != nil {
		f.Error = err.Error()
		return f
	}
	hooks(f, top["hooks"])
	return f
}
