package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// Beside permissions there are files that let an assistant start programs, or say how freely it may act. They are
// reported as rules with tools of their own:
//
//	mcp-server                      a server that it starts or reaches; Words are its command line
//	trusted-project                 a folder whose own settings count; decision "trust"
//	approval_policy, sandbox_mode   decision "allow" where nothing is asked any more, else "mode"
//	allowed_… (requirements.toml)   decision "limit"

// MaxState bounds a file that holds an assistant's state beside its settings.
const MaxState = 16 << 20

// MCP reads .mcp.json, the servers that a project brings.
func MCP(path, level string, b []byte) *event.RulesLoaded {
	f, top := claudeFile(path, level, b, MaxBytes)
	if top == nil {
		return f
	}
	servers(f, top["mcpServers"])
	note(f, "servers of a project run where the user agreed to them")
	return f
}

// claudeFile reads the top of a JSON file of at most limit bytes. It is nil, and the record says why, for one
// that cannot be read.
func claudeFile(path, level string, b []byte, limit int) (*event.RulesLoaded, map[string]json.RawMessage) {
	f := file("claude", path, level, b)
	if len(b) > limit {
		note(f, "the file is too long and was not read")
		return f, nil
	}
	top, err := object(b)
	if err != nil {
		note(f, "%v", err)
		return f, nil
	}
	return f, top
}

// ClaudeState reads ~/.claude.json: the user's servers, and the folders he trusts.
func ClaudeState(path, level string, b []byte) *event.RulesLoaded {
	f, top := claudeFile(path, level, b, MaxState)
	if top == nil {
		return f
	}
	servers(f, top["mcpServers"])
	projects, err := object(top["projects"])
	if err != nil {
		return f
	}
	for _, dir := range slices.Sorted(maps.Keys(projects)) {
		p, err := object(projects[dir])
		if err != nil || len(dir) > maxText {
			continue
		}
		if is(p["hasTrustDialogAccepted"]) {
			add(f, event.Rule{Decision: "trust", Tool: "trusted-project", Pattern: dir})
		}
		servers(f, p["mcpServers"])
	}
	return f
}

// servers reports the servers of one mcpServers object.
func servers(f *event.RulesLoaded, raw json.RawMessage) {
	if raw == nil {
		return
	}
	all, err := object(raw)
	if err != nil {
		note(f, "mcpServers: %v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var s struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
			URL     string   `json:"url"`
		}
		if json.Unmarshal(all[name], &s) != nil {
			note(f, "a server has no form that is known")
			continue
		}
		server(f, s.Command, s.Args, s.URL)
	}
}

func server(f *event.RulesLoaded, command string, args []string, url string) {
	r := event.Rule{Decision: "allow", Tool: "mcp-server", Pattern: cut(url, maxText)}
	size := 0
	if command != "" {
		for _, w := range append([]string{command}, args...) {
			r.Words = append(r.Words, []string{w})
			size += len(w)
		}
		r.Pattern = cut(strings.Join(append([]string{command}, args...), " "), maxText)
	}
	if r.Pattern == "" || size > maxText || len(r.Words) > 256 || slices.ContainsFunc(f.Rules, func(o event.Rule) bool { return o.Tool == r.Tool && o.Pattern == r.Pattern }) {
		return
	}
	if !add(f, r) {
		note(f, "more than %d rules: the rest is left out", maxRules)
	}
}

// CodexConfig reads config.toml.
func CodexConfig(path, level string, b []byte) *event.RulesLoaded {
	f := file("codex", path, level, b)
	top, ok := tomlTable(f, b)
	if !ok {
		return f
	}
	mode(f, top, "approval_policy", "never")
	mode(f, top, "sandbox_mode", "danger-full-access")
	if words := texts(top["notify"]); len(words) > 0 {
		r := event.Rule{Decision: "allow", Tool: "notify", Pattern: cut(strings.Join(words, " "), maxText)}
		for _, w := range words {
			r.Words = append(r.Words, []string{w})
		}
		add(f, r)
	}
	each(top["mcp_servers"], func(_ string, s map[string]any) {
		command, _ := s["command"].(string)
		url, _ := s["url"].(string)
		server(f, command, texts(s["args"]), url)
	})
	each(top["projects"], func(dir string, p map[string]any) {
		if p["trust_level"] == "trusted" && len(dir) <= maxText {
			add(f, event.Rule{Decision: "trust", Tool: "trusted-project", Pattern: dir})
		}
	})
	// The same shape as hooks.json, in another notation.
	if h, ok := top["hooks"]; ok {
		if raw, err := json.Marshal(h); err == nil {
			hooks(f, raw)
		}
	}
	return f
}

// CodexRequirements reads requirements.toml, the limits that an administrator sets.
func CodexRequirements(path, level string, b []byte) *event.RulesLoaded {
	f := file("codex", path, level, b)
	top, ok := tomlTable(f, b)
	if !ok {
		return f
	}
	for _, k := range []string{"allowed_approval_policies", "allowed_approvals_reviewers", "allowed_sandbox_modes", "allowed_permission_profiles"} {
		if list := texts(top[k]); len(list) > 0 {
			add(f, event.Rule{Decision: "limit", Tool: k, Pattern: cut(strings.Join(list, " "), maxText)})
		}
	}
	if top["allow_managed_hooks_only"] == true {
		note(f, "only managed hooks run")
	}
	each(top["mcp_servers"], func(_ string, s map[string]any) {
		command, _ := s["command"].(string)
		url, _ := s["url"].(string)
		server(f, command, texts(s["args"]), url)
	})
	return f
}

// mode reports a setting; its freest value is a permission.
func mode(f *event.RulesLoaded, top map[string]any, key, freest string) {
	v, ok := top[key].(string)
	if !ok || v == "" {
		return
	}
	decision := "mode"
	if v == freest {
		decision = "allow"
	}
	add(f, event.Rule{Decision: decision, Tool: key, Pattern: cut(v, 80)})
}

// tomlTable decodes a file of TOML. What is wrong with it is a note: Codex says so itself and does not start.
func tomlTable(f *event.RulesLoaded, b []byte) (map[string]any, bool) {
	if len(b) > MaxBytes {
		note(f, "the file is too long and was not read")
		return nil, false
	}
	top := map[string]any{}
	if err := decodeTOML(bytes.TrimPrefix(b, []byte("\ufeff")), &top); err != nil {
		note(f, "%s", cut(err.Error(), 200))
		return nil, false
	}
	return top, true
}

// texts are the strings of a list.
func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// each visits the tables of a table in the order of their names.
func each(v any, visit func(name string, table map[string]any)) {
	all, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if t, ok := all[name].(map[string]any); ok {
			visit(name, t)
		}
	}
}
