package verify

import (
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

func codexLab(t *testing.T) (*lab, *proc) {
	l := newLab(t, codexBin, "-a", "on-request", "-s", "workspace-write", "--no-daemon")
	c := newCodex(l)
	codexStartup(c)
	l.mode("codex", "on-request", "workspace-write")
	return l, c
}

// The everyday run: asked, approved, ran. Everything Codex did for itself is listed and not judged.
func TestCodexApproved(t *testing.T) {
	l, c := codexLab(t)
	cmd := "touch /srv/proj/rye-a && ls -l /srv/proj/rye-a"
	l.call("codex", "call_1", cmd, func(c *event.ToolCall) { c.Escalated = true })
	id := l.prompt("codex", cmd).grant()
	p := codexRun(c, "call_1", cmd)
	p.run("touch", "/srv/proj/rye-a")
	p.exec("ls", "-l", "/srv/proj/rye-a").exit()
	l.result("codex", "call_1", func(r *event.ToolResult) { r.Record, r.Command = "item", []string{"/bin/bash", "-lc", cmd} })
	r := l.judge()
	want(t, r, Verified, "")
	if len(r.Actions) != 1 {
		t.Fatalf("actions:\n%s", brief(r))
	}
	a := r.Actions[0]
	allowed(t, a, "terminal", id, "this_time")
	if a.Link != "CODEX_TOOL_CALL_ID" || a.Command != cmd || relations(a) != "bash:named touch:named ls:named" {
		t.Errorf("chain: %s", brief(r))
	}
	if a.Root.TGID != p.key.TGID || a.Root.Argv[2] != cmd || a.Asked.ID != "call_1" {
		t.Errorf("root %+v asked %+v", a.Root, a.Asked)
	}
	if len(a.Wrapper) != 2 || a.Wrapper[0] != "codex-process-setup" || a.Wrapper[1] != "codex-snapshot-preamble" {
		t.Errorf("wrapper %q", a.Wrapper)
	}
	kinds := map[string]int{}
	for _, h := range r.Housekeeping {
		kinds[h.Kind]++
		if h.Presumed {
			t.Errorf("%v is only presumed", h)
		}
	}
	if kinds["git-status"] != 7 || kinds["shell-snapshot"] != 2 || kinds["plugin-check"] != 1 || kinds["assistant"] != 1 {
		t.Errorf("housekeeping: %v", kinds)
	}
}

// In the sandbox nobody is asked; the kernel's sight of the sandbox is what covers it.
func TestCodexSandboxed(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_1", "touch x.txt")
	p := codexSandboxed(c, "call_1", "touch x.txt")
	p.exec("touch", "x.txt").exit()
	r := l.judge()
	want(t, r, Verified, "")
	allowed(t, r.Actions[0], "mode", "", "sandbox:workspace-write")
	if relations(r.Actions[0]) != "bash:named touch:named" {
		t.Error(brief(r))
	}
	probe := false
	for _, h := range r.Housekeeping {
		probe = probe || h.Kind == "sandbox-probe" && h.Below == 1
	}
	if !probe {
		t.Errorf("the sandbox probe is not listed:\n%s", brief(r))
	}
}

// What the sandbox let through must be what the assistant recorded of it.
func TestSandboxClaim(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       func(p *proc)
		findings string
	}{
		{"inside", func(p *proc) { p.open(labWork+"/x", wronly, creat); p.open("/tmp/x", wronly, creat) }, ""},
		{"in a recorded write root", func(p *proc) { p.open("/srv/root/x", wronly, creat) }, "w:write-outside"},
		{"outside", func(p *proc) { p.open("/srv/x", wronly, creat); p.open("/srv/y", wronly, creat) }, "d:sandbox-claim-broken/write w:write-outside w:write-outside"},
		{"a connection that was made", func(p *proc) { p.do(&event.NetConnect{Proto: "tcp", Remote: "93.184.216.34:443"}) }, "d:sandbox-claim-broken/network"},
		{"a connection that failed", func(p *proc) {
			p.do(&event.NetConnect{Proto: "tcp", Remote: "93.184.216.34:443", Result: -101, Error: "ENETUNREACH"})
		}, ""},
	} {
		l := newLab(t, codexBin)
		l.add(nil, &event.TurnContext{Agent: "codex", Thread: "t1", ApprovalPolicy: "on-request", Sandbox: "workspace-write", WriteRoots: []string{"/srv/root"}, Network: "restricted"})
		p := codexSandboxed(l.root, "call_1", "make")
		c.do(p.exec("make"))
		if r := l.judge(); codes(r) != c.findings {
			t.Errorf("%s: %s", c.name, brief(r))
		}
	}
}

// A line that says an earlier answer covers a command needs that answer, and its words.
func TestAlwaysLine(t *testing.T) {
	for _, c := range []struct{ cmd, rule, findings string }{
		{"npm test -- -u", "", "i:approved-not-run"},
		{"make", "", "d:rule-exceeded i:approved-not-run"},
		{"make", "a99", "d:approval-unattested i:approved-not-run"},
	} {
		l, p := codexLab(t)
		id := l.prompt("codex", "npm test").grant(func(g *event.ApprovalGranted) { g.Decision, g.Prefix = event.DecisionAlways, []string{"npm", "test"} })
		l.add(nil, &event.ApprovalGranted{ID: "a9", Agent: "codex", Kind: "command", Command: c.cmd, Decision: event.DecisionAlwaysRule, Rule: firstOf(c.rule, id)})
		codexRun(p, "", c.cmd).exec(strings.Fields(c.cmd)...).exit()
		r := l.judge()
		if codes(r) != c.findings {
			t.Errorf("%+v: %s", c, brief(r))
		}
		if c.rule == "" {
			allowed(t, r.Actions[len(r.Actions)-1], "terminal", id, "always_rule_match")
		}
	}
}

// The same command outside the sandbox needs an answer.
func TestCodexUnapproved(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_1", "touch x.txt")
	codexRun(c, "call_1", "touch x.txt").exec("touch", "x.txt").exit()
	want(t, l.judge(), Discrepancy, "d:exec-unapproved/no-approval-seen")
}

func TestCodexAlwaysCoversLaterRuns(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_1", "git status --short")
	id := l.prompt("codex", "git status --short").grant(func(g *event.ApprovalGranted) { g.Decision, g.Prefix = event.DecisionAlways, []string{"git", "status"} })
	codexRun(c, "call_1", "git status --short").exec("git", "status", "--short").exit()
	l.call("codex", "call_2", "git status -s && git status")
	p := codexRun(c, "call_2", "git status -s && git status")
	p.run("git", "status", "-s")
	p.exec("git", "status").exit()
	r := l.judge()
	want(t, r, Verified, "")
	allowed(t, r.Actions[0], "terminal", id, "always")
	allowed(t, r.Actions[1], "terminal", id, "always_rule_match")
	// Another command in the line is not covered by the saved words.
	l, c = codexLab(t)
	l.prompt("codex", "git status").grant(func(g *event.ApprovalGranted) { g.Decision, g.Prefix = event.DecisionAlways, []string{"git", "status"} })
	codexRun(c, "call_1", "git status").exec("git", "status").exit()
	p = codexRun(c, "call_2", "git status && rm x")
	p.run("git", "status")
	p.exec("rm", "x").exit()
	want(t, l.judge(), Discrepancy, "d:exec-unapproved/no-approval-seen")
}

func TestCodexRules(t *testing.T) {
	rules := func(decision string, words ...string) *event.RulesLoaded {
		var w [][]string
		for _, s := range words {
			w = append(w, []string{s})
		}
		return &event.RulesLoaded{Agent: "codex", Path: "/home/dev/.codex/rules/default.rules", Level: "user", At: "start", Rules: []event.Rule{{ID: "r1", Decision: decision, Words: w}}}
	}
	l, c := codexLab(t)
	l.add(nil, rules("allow", "npm", "test"))
	codexRun(c, "", "npm test").exec("npm", "test").exit()
	r := l.judge()
	want(t, r, Verified, "")
	allowed(t, r.Actions[0], "rule", "r1", "allow")

	for name, f := range map[string]*event.RulesLoaded{
		"another command": rules("allow", "npm", "run"),
		"a prompt rule":   rules("prompt", "npm", "test"),
		"a broken file":   {Agent: "codex", Path: "/r", Level: "user", At: "start", Error: "parse error", Rules: rules("allow", "npm", "test").Rules},
		"another agent":   {Agent: "claude", Path: "/r", Level: "user", At: "start", Rules: rules("allow", "npm", "test").Rules},
	} {
		l, c := codexLab(t)
		l.add(nil, f)
		codexRun(c, "", "npm test").exec("npm", "test").exit()
		if r := l.judge(); r.Verdict != Discrepancy {
			t.Errorf("%s covers the run: %s", name, brief(r))
		}
	}
	// A file that rye could not read may allow it; the rules of other files stand.
	unread := &event.RulesLoaded{Agent: "codex", Path: "/home/dev/app/.codex/rules/a.rules", Level: "project", At: "start", Error: "not read by rye: line 1 uses a method"}
	l, c = codexLab(t)
	l.add(nil, unread)
	codexRun(c, "", "npm test").exec("npm", "test").exit()
	want(t, l.judge(), Indeterminate, "w:evidence-lost/rules-unread")
	l, c = codexLab(t)
	l.add(nil, unread)
	l.add(nil, rules("allow", "npm", "test"))
	codexRun(c, "", "npm test").exec("npm", "test").exit()
	want(t, l.judge(), Verified, "")
	// One that a session made unreadable excuses nothing.
	l, c = codexLab(t)
	later := *unread
	later.At = "change"
	l.add(nil, &later)
	codexRun(c, "", "npm test").exec("npm", "test").exit()
	want(t, l.judge(), Discrepancy, "d:exec-unapproved/no-approval-seen")
	// Hooks that do not parse drop no rules.
	l, c = codexLab(t)
	l.add(nil, &event.RulesLoaded{Agent: "codex", Path: "/home/dev/.codex/hooks.json", Level: "user", At: "start", Error: "not a JSON object"})
	l.add(nil, rules("allow", "npm", "test"))
	codexRun(c, "", "npm test").exec("npm", "test").exit()
	want(t, l.judge(), Verified, "")
	// A redirection makes Codex treat the line as a whole: no inner rule applies.
	l, c = codexLab(t)
	l.add(nil, rules("allow", "npm", "test"))
	codexRun(c, "", "npm test > log").exec("npm", "test").exit()
	if r := l.judge(); r.Verdict != Discrepancy {
		t.Errorf("rule applied to a line with a redirection: %s", brief(r))
	}
	// What a rule forbids and runs anyway.
	l, c = codexLab(t)
	l.add(nil, rules("forbidden", "npm", "test"))
	l.prompt("codex", "npm test").grant()
	codexRun(c, "", "npm test").exec("npm", "test").exit()
	want(t, l.judge(), Discrepancy, "d:denied-but-ran/rule")
}

func TestCodexModes(t *testing.T) {
	for _, c := range []struct {
		approval, sandbox string
		findings          string
		verdict           Verdict
		typ               string
	}{
		{"on-request", "danger-full-access", "", Verified, "danger-full-access"},
		{"never", "danger-full-access", "", Verified, "danger-full-access"},
		{"on-request", "disabled", "", Verified, "disabled"},
		{"never", "workspace-write", "d:sandbox-claim-broken/no-sandbox", Discrepancy, "never"},
		{"on-request", "workspace-write", "d:exec-unapproved/no-approval-seen", Discrepancy, "none"},
	} {
		l := newLab(t, codexBin)
		l.mode("codex", c.approval, c.sandbox)
		codexRun(l.root, "", "make").exec("make").exit()
		r := l.judge()
		want(t, r, c.verdict, c.findings)
		if r.Actions[0].Allowed.Type != c.typ {
			t.Errorf("%v: type %q", c, r.Actions[0].Allowed.Type)
		}
	}
	// The user's own flags count when the assistant wrote nothing down.
	l := newLab(t, codexBin, "--dangerously-bypass-approvals-and-sandbox")
	codexRun(l.root, "", "make").exec("make").exit()
	want(t, l.judge(), Verified, "")
}

// !cmd is the user's own command: no process setup, no call.
func TestCodexUserShell(t *testing.T) {
	l, c := codexLab(t)
	p := c.fork()
	p.exec("/bin/bash", "-c", snapshotPreamble("echo usershell; id -u"))
	p.exec("/bin/bash", "-c", "echo usershell; id -u")
	p.run("id", "-u")
	p.exit()
	l.result("codex", "uuid-1", func(r *event.ToolResult) {
		r.UserShell, r.Record, r.Command = true, "item", []string{"/bin/bash", "-lc", "echo usershell; id -u"}
	})
	r := l.judge()
	want(t, r, Verified, "")
	allowed(t, r.Actions[0], "user-shell", "", "user-shell")
}

// A PreToolUse hook rewrote the command: the dialog and the kernel agree, the model's request differs.
func TestCodexHookRewrite(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_1", "echo REWRITE")
	l.prompt("codex", "echo rewritten > rw.txt").grant()
	codexRun(c, "call_1", "echo rewritten > rw.txt").exit()
	want(t, l.judge(), Discrepancy, "d:asked-differs/no-hook") // a hook would have been seen
	l, c = codexLab(t)
	l.call("codex", "call_1", "echo REWRITE")
	l.add(nil, &event.RulesLoaded{Agent: "codex", Path: "/home/dev/.codex/hooks.json", At: "start", Rules: []event.Rule{{ID: "h", Decision: "allow", Tool: "hook", Pattern: "rewrite"}}})
	c.fork().exec("/bin/sh", "-c", "rewrite").exit()
	l.prompt("codex", "echo rewritten > rw.txt").grant()
	codexRun(c, "call_1", "echo rewritten > rw.txt").exit()
	want(t, l.judge(), Verified, "w:asked-differs")
	// Rewritten after the dialog.
	l, c = codexLab(t)
	l.call("codex", "call_1", "ls")
	l.prompt("codex", "ls").grant()
	codexRun(c, "call_1", "ls -la /").exec("ls", "-la", "/").exit()
	want(t, l.judge(), Discrepancy, "d:exec-differs/text")
}

// The daemon was there before; its children are the session's, its parent is init.
func TestCodexDaemon(t *testing.T) {
	l := newLab(t, codexBin)
	l.mode("codex", "on-request", "workspace-write")
	d := &proc{l: l, key: event.ProcessKey{TGID: 500, StartNS: 7 * second}, parent: event.ProcessKey{TGID: 1, StartNS: 1}, env: map[string]string{"PATH": labPath}, cwd: labWork}
	ipc := l.root.do(&event.IPCConnect{Path: "/home/dev/.codex/app-server.sock", Peer: &event.Peer{TGID: 500, StartNS: 7 * second, Exe: codexBin}})
	d.do(&event.ProcessAdopted{Exe: "/home/dev/.codex/packages/app-server-daemon/releases/0.171.0/bin/codex", Argv: []string{"codex", "app-server", "--listen", "unix://"}, Reason: "assistant-daemon", By: ipc})
	l.call("codex", "call_1", "touch d1")
	l.prompt("codex", "touch d1").grant()
	codexRun(d, "call_1", "touch d1").exec("touch", "d1").exit()
	r := l.judge()
	want(t, r, Verified, "")
	if r.Actions[0].Link != "CODEX_TOOL_CALL_ID" || relations(r.Actions[0]) != "bash:named touch:named" {
		t.Error(brief(r))
	}
	// Another terminal's thread in the same daemon cannot be told from a hidden command.
	p := codexRun(d, "call_9", "make")
	p.exec("make").exit()
	l.events = l.events[:len(l.events)-6] // without exit, end and the run above
	p = d.fork()
	p.env["CODEX_TOOL_CALL_ID"], p.env["CODEX_THREAD_ID"] = "call_9", "t9"
	p.exec("/bin/bash", "-c", snapshotPreamble("make")).exec("/bin/bash", "-c", "make").exec("make").exit()
	want(t, l.judge(), Indeterminate, "w:evidence-lost/other-thread")
}

// The model's call id in the environment is inherited, and a command can fake it for its children: what
// descends from one action stays in it.
func TestCallIDCannotMoveAnExec(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_1", "make")
	l.call("codex", "call_2", "rm -rf build")
	l.prompt("codex", "make").grant()
	p := codexRun(c, "call_1", "make").exec("make")
	p.fork().with("CODEX_TOOL_CALL_ID", "call_2").exec("/bin/bash", "-c", "rm -rf build").exec("rm", "-rf", "build").exit()
	p.exit()
	r := l.judge()
	other, run := r.Actions[0], r.Actions[1]
	if run.Command != "make" || run.ExecCount != 4 || other.Command != "rm -rf build" || other.Root != nil {
		t.Errorf("a faked call id moved an exec:\n%s", brief(r))
	}
}

// A script is known by its own name, not its interpreter's.
func TestCodexSystemInfo(t *testing.T) {
	l, c := codexLab(t)
	c.spawnAs(event.ProcessExec{Argv: []string{"/bin/sh", "/usr/bin/lsb_release", "-a"}, Path: "/usr/bin/lsb_release", Interp: "/bin/sh", Exe: "/usr/bin/dash"}).spawn("getopt", "--name", "lsb_release")
	c.run("/bin/sh", "-c", "if command -v flock >/dev/null 2>&1; then exit 1; else exit 2; fi")
	c.open("/home/dev/.codex/shell_snapshots/01a2322b.tmp-1", wronly, creat)
	r := l.judge()
	want(t, r, Verified, "")
	if kinds(r)["system-info"] != 2 {
		t.Error(brief(r))
	}
}

func TestCodexNoise(t *testing.T) {
	// git with the model's own flags is not housekeeping.
	for _, argv := range [][]string{
		{"git", "-c", "safe.bareRepository=explicit", "push"},
		{"git", "status"},
		{"git", "-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=/tmp/x", "status"},
		{"git", "-c", "safe.bareRepository=explicit", "config", "user.name", "x"},
		{"curl", "https://example.com"},
	} {
		l, c := codexLab(t)
		c.run(argv...)
		if r := l.judge(); r.Verdict != Discrepancy {
			t.Errorf("%q taken for housekeeping:\n%s", argv, brief(r))
		}
	}
}

// A server that starts with the assistant and stays is listed as one, and said to be presumed.
func TestMCPServer(t *testing.T) {
	l, c := codexLab(t)
	srv := c.spawn("npx", "-y", "@acme/mcp-server")
	srv.spawn("node", "/home/dev/.npm/_npx/x/server.js")
	l.call("codex", "call_1", "ls")
	l.prompt("codex", "ls").grant()
	codexRun(c, "call_1", "ls").exec("ls").exit()
	srv.exit()
	r := l.judge()
	want(t, r, Verified, "")
	found := false
	for _, h := range r.Housekeeping {
		found = found || h.Kind == "mcp-server" && h.Presumed && h.Below == 1
	}
	if !found {
		t.Error(brief(r))
	}
	// A configured hook is known by its settings, not presumed.
	l, c = codexLab(t)
	l.add(nil, &event.RulesLoaded{Agent: "codex", Path: "/home/dev/.codex/hooks.json", At: "start", Rules: []event.Rule{{ID: "h", Tool: "hook", Decision: "allow", Pattern: "lint --fix"}}})
	c.spawn("/bin/sh", "-c", "lint --fix").exec("lint", "--fix").exit()
	want(t, l.judge(), Verified, "")
}
