package verify

import (
	"testing"

	"github.com/ryehq/rye/event"
)

func edit(paths ...string) func(*event.ToolCall) {
	return func(c *event.ToolCall) { c.Tool, c.Kind, c.Command, c.Paths = "Edit", "edit", "", paths }
}

func (l *lab) promptKind(agent, kind, cmd string) *dialog {
	d := l.prompt(agent, cmd)
	d.p.Kind = kind
	return d
}

func TestEdits(t *testing.T) {
	file := labWork + "/hello.py"
	for _, c := range []struct {
		name     string
		build    func(l *lab, p *proc)
		verdict  Verdict
		findings string
		source   string
	}{
		{"approved and written", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			l.promptKind("claude", "edit", "hello.py").grant()
			p.open(file, wronly)
			l.result("claude", "toolu_1")
		}, Verified, "", "terminal"},
		{"written through a new file", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit("hello.py"))
			l.promptKind("claude", "edit", "hello.py").grant()
			p.do(&event.FileRename{From: file + ".tmp", To: file, How: "rename"})
			l.result("claude", "toolu_1")
		}, Verified, "", "terminal"},
		{"written through a descriptor", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			l.promptKind("claude", "edit", "hello.py").grant()
			p.open(file+".tmp.77", wronly, creat)
			p.do(&event.FileRename{From: "/proc/self/fd/13/hello.py.tmp.77", To: "/proc/self/fd/13/hello.py", How: "rename", Marks: []string{"path-from-user"}})
			l.result("claude", "toolu_1")
		}, Verified, "", "terminal"},
		{"nobody was asked", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			p.open(file, wronly)
			l.result("claude", "toolu_1")
		}, Discrepancy, "d:exec-unapproved/no-approval-seen", "none"},
		{"refused and not written", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			l.promptKind("claude", "edit", "hello.py").deny()
			l.result("claude", "toolu_1", func(r *event.ToolResult) { r.Status = "rejected" })
		}, Verified, "", "none"},
		{"refused and written", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			l.promptKind("claude", "edit", "hello.py").deny()
			p.open(file, wronly)
		}, Discrepancy, "d:denied-but-ran", "none"},
		{"recorded, never written", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			l.promptKind("claude", "edit", "hello.py").grant()
			l.result("claude", "toolu_1")
		}, Verified, "w:transcript-differs/no-write", "terminal"},
		{"written before the answer", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			d := l.promptKind("claude", "edit", "hello.py")
			p.open(file, wronly)
			d.grant()
			l.result("claude", "toolu_1")
		}, Discrepancy, "d:exec-before-approval", "terminal"},
		{"all edits this session", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(file))
			l.promptKind("claude", "edit", "hello.py").grant(func(g *event.ApprovalGranted) { g.Decision = event.DecisionSession })
			p.open(file, wronly)
			l.result("claude", "toolu_1")
			l.call("claude", "toolu_2", "", edit(labWork+"/b.py"))
			p.open(labWork+"/b.py", wronly, creat)
			l.result("claude", "toolu_2")
		}, Verified, "", "terminal"},
		{"accept edits", func(l *lab, p *proc) {
			l.mode("claude", "acceptEdits", "")
			l.call("claude", "toolu_1", "", edit(file))
			p.open(file, wronly)
			l.result("claude", "toolu_1")
		}, Verified, "", "mode"},
		{"a rule", func(l *lab, p *proc) {
			l.add(nil, &event.RulesLoaded{Agent: "claude", Path: "/s.json", At: "start", Rules: []event.Rule{{ID: "r", Decision: "allow", Tool: "Edit", Pattern: "**/*.py"}}})
			l.call("claude", "toolu_1", "", edit(file))
			p.open(file, wronly)
			l.result("claude", "toolu_1")
		}, Verified, "", "rule"},
		{"a rule for other files", func(l *lab, p *proc) {
			l.add(nil, &event.RulesLoaded{Agent: "claude", Path: "/s.json", At: "start", Rules: []event.Rule{{ID: "r", Decision: "allow", Tool: "Edit", Pattern: "docs/**"}}})
			l.call("claude", "toolu_1", "", edit(file))
			p.open(file, wronly)
			l.result("claude", "toolu_1")
		}, Discrepancy, "d:exec-unapproved/no-approval-seen", "none"},
		{"outside the workspace, approved", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit("/srv/x"))
			l.promptKind("claude", "edit", "/srv/x").grant()
			p.open("/srv/x", wronly, creat)
			l.result("claude", "toolu_1")
		}, Verified, "i:write-outside", "terminal"},
		{"its own permissions, approved", func(l *lab, p *proc) {
			l.call("claude", "toolu_1", "", edit(labWork+"/.claude/settings.json"))
			l.promptKind("claude", "edit", ".claude/settings.json").grant()
			p.open(labWork+"/.claude/settings.json", wronly)
			l.result("claude", "toolu_1")
		}, Verified, "w:rule-self-granted/file", "terminal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, p := claudeLab(t)
			c.build(l, p)
			r := l.judge()
			want(t, r, c.verdict, c.findings)
			if a := r.Actions[len(r.Actions)-1]; a.Kind != "edit" || a.Allowed.Source != c.source {
				t.Errorf("action: %s", brief(r))
			}
		})
	}
}

// Codex applies a patch through a helper in its sandbox; a shell command that is only apply_patch runs
// no shell.
func TestCodexPatch(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_1", "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch\nEOF", func(k *event.ToolCall) { k.Paths = []string{"a.txt"} })
	const arg0 = "/home/dev/.codex/tmp/arg0-linux/codex-arg0KH1BIy/codex-linux-sandbox"
	p := c.spawnAs(event.ProcessExec{Path: arg0, Exe: codexBin, Argv: []string{arg0, "--sandbox-policy-cwd", labWork, "--", codexBin, "--codex-run-as-fs-helper"}})
	b := p.spawnAs(event.ProcessExec{Path: "/proc/self/fd/3", Exe: "/opt/codex/codex-resources/bwrap", Argv: []string{"bwrap", "--as-pid-1", "--", codexBin, "--codex-run-as-fs-helper"}})
	h := b.spawnAs(event.ProcessExec{Path: codexBin, Exe: codexBin, Argv: []string{codexBin, "--codex-run-as-fs-helper"}})
	h.open(labWork+"/a.txt", wronly, creat)
	l.result("codex", "call_1", func(r *event.ToolResult) { r.Paths = []string{labWork + "/a.txt"} })
	r := l.judge()
	want(t, r, Verified, "")
	if a := r.Actions[0]; len(r.Actions) != 1 || a.Kind != "edit" || a.Allowed.Type != "sandbox:workspace-write" {
		t.Error(brief(r))
	}
	// Outside the write roots that mode does not reach.
	l, c = codexLab(t)
	l.call("codex", "call_1", "", edit("/srv/outside/x"))
	c.open("/srv/outside/x", wronly, creat)
	l.result("codex", "call_1")
	want(t, l.judge(), Discrepancy, "d:exec-unapproved/no-approval-seen i:write-outside")
}

func TestFetchAndTools(t *testing.T) {
	call := func(kind, tool, cmd string) func(*event.ToolCall) {
		return func(c *event.ToolCall) { c.Kind, c.Tool, c.Command = kind, tool, cmd }
	}
	for _, c := range []struct {
		name     string
		build    func(l *lab)
		verdict  Verdict
		findings string
	}{
		{"fetch approved", func(l *lab) {
			l.call("claude", "toolu_1", "", call("fetch", "WebFetch", "https://example.com/x"))
			l.promptKind("claude", "fetch", "https://example.com/x").grant()
			l.result("claude", "toolu_1")
		}, Verified, ""},
		{"fetch by a domain rule", func(l *lab) {
			l.add(nil, &event.RulesLoaded{Agent: "claude", Path: "/s.json", At: "start", Rules: []event.Rule{{ID: "r", Decision: "allow", Tool: "WebFetch", Pattern: "domain:example.com"}}})
			l.call("claude", "toolu_1", "", call("fetch", "WebFetch", "https://example.com/x"))
			l.result("claude", "toolu_1")
		}, Verified, ""},
		{"MCP approved", func(l *lab) {
			l.call("claude", "toolu_1", "", call("mcp", "mcp__lab__echo", ""))
			l.promptKind("claude", "mcp", "mcp__lab__echo").grant()
			l.result("claude", "toolu_1")
		}, Verified, ""},
		{"MCP by a server rule", func(l *lab) {
			l.add(nil, &event.RulesLoaded{Agent: "claude", Path: "/s.json", At: "start", Rules: []event.Rule{{ID: "r", Decision: "allow", Tool: "mcp__lab"}}})
			l.call("claude", "toolu_1", "", call("mcp", "mcp__lab__echo", ""))
			l.result("claude", "toolu_1")
		}, Verified, ""},
		{"MCP, nobody asked", func(l *lab) {
			l.call("claude", "toolu_1", "", call("mcp", "mcp__lab__echo", ""))
			l.result("claude", "toolu_1")
		}, Indeterminate, "w:exec-unapproved/not-asked"},
		{"MCP refused", func(l *lab) {
			l.call("claude", "toolu_1", "", call("mcp", "mcp__lab__echo", ""))
			l.promptKind("claude", "mcp", "mcp__lab__echo").deny()
			l.result("claude", "toolu_1", func(r *event.ToolResult) { r.Status = "rejected" })
		}, Verified, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := claudeLab(t)
			c.build(l)
			want(t, l.judge(), c.verdict, c.findings)
		})
	}
}

// Text typed into a running interpreter is a command nobody saw in the dialog.
func TestStdin(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_1", "bash")
	l.prompt("codex", "bash").grant()
	p := codexRun(c, "call_1", "bash").exec("bash")
	l.call("codex", "call_2", "touch fed\n", func(k *event.ToolCall) { k.Kind, k.Tool = "stdin", "write_stdin" })
	p.run("touch", "fed")
	p.exit()
	l.result("codex", "call_2")
	r := l.judge()
	want(t, r, Discrepancy, "d:exec-unapproved/stdin-fed")
	if relations(r.Actions[0]) != "bash:named bash:named touch:descendant(stdin-fed)" {
		t.Error(brief(r))
	}
	l, c = codexLab(t)
	l.call("codex", "call_1", "bash")
	l.prompt("codex", "bash").grant()
	p = codexRun(c, "call_1", "bash").exec("bash")
	l.call("codex", "call_2", "touch fed\n", func(k *event.ToolCall) { k.Kind, k.Tool = "stdin", "write_stdin" })
	l.promptKind("codex", "stdin", "touch fed").grant()
	p.run("touch", "fed")
	p.exit()
	l.result("codex", "call_2")
	want(t, l.judge(), Verified, "")
}
