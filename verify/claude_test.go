package verify

import (
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

func claudeLab(t *testing.T) (*lab, *proc) {
	l := newLab(t, claudeBin)
	claudeStartup(l.root)
	l.mode("claude", "default", "")
	return l, l.root
}

func bash(c *event.ToolCall) { c.Tool = "Bash" }

func TestClaudeApproved(t *testing.T) {
	for _, version := range []string{"1.0.60", "2.0.76", "2.1.112", "2.1.332"} {
		l, c := claudeLab(t)
		cmd := `touch built.txt && make -n all 2>&1`
		l.call("claude", "toolu_1", cmd, bash)
		id := l.prompt("claude", cmd).grant()
		p := claudeRun(c, version, cmd)
		if version != "2.1.332" {
			p.run("id", "-u") // sourcing the snapshot starts these inside the approved shell
			p.run("base64", "-d")
		}
		p.run("touch", "built.txt")
		p.run("make", "-n", "all")
		p.exit()
		l.result("claude", "toolu_1")
		r := l.judge()
		want(t, r, Verified, "")
		a := r.Actions[0]
		allowed(t, a, "terminal", id, "this_time")
		rel := "bash:named touch:named make:named"
		if version != "2.1.332" {
			rel = "bash:named id:descendant(shell-startup) base64:descendant(shell-startup) touch:named make:named"
		}
		if a.Command != cmd || a.Link != "text" || relations(a) != rel {
			t.Errorf("%s: %s", version, brief(r))
		}
		if len(r.Housekeeping) != 5 {
			t.Errorf("%s: housekeeping: %s", version, brief(r))
		}
	}
}

// The recorded traces' forms, taken out of their wrapping.
func TestUnwrapClaude(t *testing.T) {
	snap := "source /h/.claude/shell-snapshots/snapshot-bash-1796128216074-164ayi.sh"
	for _, c := range []struct{ text, want, grammar string }{
		{snap + ` && eval 'ls -la && git status --short ' \< /dev/null \| ' head -5' && pwd -P >| /tmp/claude-58e5-cwd`, "ls -la && git status --short | head -5", "claude-eval/1.0.60"},
		{snap + ` && eval 'cd sub && pwd' \< /dev/null && pwd -P >| /tmp/claude-ae39-cwd`, "cd sub && pwd", "claude-eval/1.0.60"},
		{snap + ` && eval pwd \< /dev/null && pwd -P >| /tmp/claude-0330-cwd`, "pwd", "claude-eval/1.0.60"},
		{snap + ` && eval 'ls -la && git status --short < /dev/null | head -5' && pwd -P >| /tmp/claude-4f89-cwd`, "ls -la && git status --short | head -5", "claude-eval/1.0.128"},
		{snap + ` && eval "echo hi < /dev/null | python3 -c 'import sys;print(sys.stdin.read())'" && pwd -P >| /tmp/claude-696c-cwd`, "echo hi | python3 -c 'import sys;print(sys.stdin.read())'", "claude-eval/1.0.128"},
		{snap + " && eval 'git commit --allow-empty -m \"$(cat <<'\"'\"'EOF'\"'\"'\nSubject line\n\nBody\nEOF\n)\"' && pwd -P >| /tmp/claude-2653-cwd", "git commit --allow-empty -m \"$(cat <<'EOF'\nSubject line\n\nBody\nEOF\n)\"", "claude-eval/2.1.112"},
		{snap + ` 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval 'ls | head -5' < /dev/null && pwd -P >| /tmp/claude-a164-cwd`, "ls | head -5", "claude-eval/2.1.112"},
		{"exec 3<&- || exit 126; " + snap + ` 2>/dev/null || true && export TMPDIR=/h/tmp/claude-0 && export GIT_CONFIG_PARAMETERS="${GIT_CONFIG_PARAMETERS:+${GIT_CONFIG_PARAMETERS} }'credential.http://127.0.0.1:3128.helper='" && \builtin shopt -u extglob 2>/dev/null || true && eval 'echo sandboxed > s.txt' < /dev/null && pwd -P >| /h/tmp/claude-0/cwd-5eea`, "echo sandboxed > s.txt", "claude-eval/2.1.112"},
		{claudeScript("2.1.332", `echo 'it'"'"'s' "q\"x" \$HOME`)[2], `echo 'it'"'"'s' "q\"x" \$HOME`, "claude-eval/2.1.112"},
		// Somebody else's text that only looks alike is not stripped.
		{snap + ` && touch x && eval 'ls' < /dev/null && pwd -P >| /tmp/claude-1-cwd`, "", "shell"},
		{`source /tmp/evil.sh && eval 'ls' < /dev/null && pwd -P >| /tmp/claude-1-cwd`, "", "shell"},
		{snap + ` && eval 'ls' < /dev/null && touch x && pwd -P >| /tmp/claude-1-cwd`, "", "shell"},
		{snap + ` && eval 'ls' < /dev/null && pwd -P >| /home/dev/.bashrc`, "", "shell"},
		{snap + ` && eval "$X" < /dev/null && pwd -P >| /tmp/claude-1-cwd`, "", "shell"},
		{snap + ` && { true $(touch x); } && eval 'ls' < /dev/null && pwd -P >| /tmp/claude-1-cwd`, "", "shell"},
		{snap + ` && { true; } > /home/dev/.bashrc && eval 'ls' < /dev/null && pwd -P >| /tmp/claude-1-cwd`, "", "shell"},
		{snap + ` && true & eval 'ls' < /dev/null && pwd -P >| /tmp/claude-1-cwd`, "", "shell"},
		{snap + ` && eval 'ls' < /dev/null && pwd -P >| /tmp/claude-1-cwd; touch x`, "", "shell"},
	} {
		got := &carried{grammar: "shell", texts: []string{c.text}}
		unwrapClaude(got, c.text)
		if c.want == "" {
			c.want = c.text
		}
		if got.text() != c.want || got.grammar != c.grammar {
			t.Errorf("%.90s…\n got %s %q\nwant %s %q", c.text, got.grammar, got.text(), c.grammar, c.want)
		}
	}
}

func FuzzUnwrap(f *testing.F) {
	f.Add(claudeScript("2.1.332", "ls")[2])
	f.Add(claudeScript("1.0.60", "ls")[3])
	f.Add(snapshotPreamble("ls"))
	f.Add("_bgpids_file='x'\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\nls\n)\n__code=$?\nexit $__code")
	f.Fuzz(func(t *testing.T, text string) {
		c := &carried{texts: []string{text}}
		unwrapClaude(c, text)
		unwrapGemini(c, text)
		if len(c.texts) == 0 {
			t.Fatal("text lost")
		}
	})
}

// The shell ran it in the sandbox: five kinds of wrapping, and two socats beside it.
func TestClaudeSandboxed(t *testing.T) {
	l, c := claudeLab(t)
	cmd := "echo sandboxed > s.txt; cat /etc/hostname; ls /proc | head -3"
	l.call("claude", "toolu_1", cmd, bash)
	inner := "exec 3<&- || exit 126; source " + claudeSnap + " 2>/dev/null || true && export TMPDIR=/tmp/claude-0 && eval " + shquote(cmd) + " < /dev/null && pwd -P >| /tmp/claude-0/cwd-5eea"
	setup := "{ socat TCP6-LISTEN:3128,fork UNIX-CONNECT:/tmp/claude-http-c87d.sock; } >/dev/null 2>&1 &\nSRT_ALLOW_NESTED_USERNS=0 ARGV0=apply-seccomp /proc/self/fd/3 /bin/bash -c " + shquote(inner)
	w := c.fork().with("CLAUDECODE", "1").with("AI_AGENT", "claude-code_2-1-332_agent")
	w.exec("/bin/sh", "-c", "{\n  set +euvx\n  read -r line <&7\n} 2>/dev/null &\nif eval \"$1\"; then :; fi\n", "/bin/sh", "bwrap --new-session --unshare-net")
	b := w.spawn("bwrap", "--new-session", "--unshare-net", "--", "/bin/bash", "-c", setup)
	s := b.spawn("/bin/bash", "-c", "/bin/bash -c "+shquote(setup))
	s.exec("/bin/bash", "-c", setup)
	s.run("socat", "TCP6-LISTEN:3128,fork", "UNIX-CONNECT:/tmp/claude-http-c87d.sock")
	a := s.fork().execAs(event.ProcessExec{Argv: []string{"/proc/self/fd/3", "/bin/bash", "-c", inner}, Path: "/proc/self/fd/3", Exe: claudeBin})
	p := a.spawn("/bin/bash", "-c", inner)
	p.run("cat", "/etc/hostname")
	p.run("ls", "/proc")
	p.run("head", "-3")
	p.exit()
	r := l.judge()
	want(t, r, Verified, "")
	allowed(t, r.Actions[0], "mode", "", "sandbox:bwrap")
	if r.Actions[0].Command != cmd || relations(r.Actions[0]) != "bash:named cat:named ls:named head:named" {
		t.Error(brief(r))
	}
}

// Native builds run grep, find and rg as themselves: same file, another argv[0].
func TestClaudeTools(t *testing.T) {
	l, c := claudeLab(t)
	cmd := "grep -rn hello . ; find . -name '*.py' ; rg -n hello"
	l.call("claude", "toolu_1", cmd, bash)
	l.prompt("claude", cmd).grant()
	p := claudeRun(c, "2.1.332", cmd)
	tool := func(argv ...string) {
		p.fork().execAs(event.ProcessExec{Argv: argv, Path: claudeBin, Exe: claudeBin}).exit()
	}
	tool("ugrep", "-G", "--ignore-files", "--hidden", "-I", "--exclude-dir=.git", "-rn", "hello", ".")
	tool("bfs", "-S", "dfs", "-regextype", "findutils-default", ".", "-name", "*.py")
	tool("rg", "-n", "hello")
	p.exit()
	r := l.judge()
	want(t, r, Verified, "")
	if relations(r.Actions[0]) != "bash:named ugrep:named bfs:named rg:named" {
		t.Error(brief(r))
	}
	// Other words are not the approved ones.
	l, c = claudeLab(t)
	l.prompt("claude", "grep -rn hello .").grant()
	p = claudeRun(c, "2.1.332", "grep -rn hello .")
	p.fork().execAs(event.ProcessExec{Argv: []string{"ugrep", "-G", "-rn", "passwd", "/"}, Path: claudeBin, Exe: claudeBin}).exit()
	want(t, l.judge(), Discrepancy, "d:exec-differs/unexplained")
}

// The snapshot brings aliases and functions: ll ran ls -l.
func TestClaudeAlias(t *testing.T) {
	l, c := claudeLab(t)
	l.prompt("claude", "ll; echo $X").grant()
	p := claudeRun(c, "2.1.332", "ll; echo $X")
	p.run("ls", "-l")
	p.exit()
	r := l.judge()
	want(t, r, Verified, "i:approval-hidden/alias-or-function")
	if relations(r.Actions[0]) != "bash:named ls:descendant(alias-or-function ll)" {
		t.Error(brief(r))
	}
	// Where every name of the text ran as itself, an alias explains nothing.
	l, c = claudeLab(t)
	l.prompt("claude", "touch a").grant()
	p = claudeRun(c, "2.1.332", "touch a")
	p.run("touch", "a")
	p.run("curl", "evil")
	want(t, l.judge(), Discrepancy, "d:exec-differs/unexplained")
}

func TestClaudeSafeList(t *testing.T) {
	for cmd, ok := range map[string]bool{
		"git status": true, "ls -la | head -3": true, "id": true, "echo hi": true, "cat a && grep -n x a": true,
		"git tag v1": false, "env -- touch dashdash": false, "ls > out.txt": false, "ls; rm x": false, "xargs ls": false, "find . -delete": false, "cat a | sh": false,
	} {
		l, c := claudeLab(t)
		l.call("claude", "toolu_1", cmd, bash)
		claudeRun(c, "2.1.332", cmd).exit()
		r := l.judge()
		if ok != (r.Verdict == Verified) || ok && r.Actions[0].Allowed.Source != "safe-list" {
			t.Errorf("%q: %s", cmd, brief(r))
		}
	}
}

func TestClaudeModes(t *testing.T) {
	for _, c := range []struct {
		mode, cmd string
		verdict   Verdict
	}{
		{"bypassPermissions", "make", Verified}, {"auto", "make", Verified}, {"default", "make", Discrepancy}, {"plan", "make", Discrepancy},
		{"acceptEdits", "mkdir x && touch x/y", Verified}, {"acceptEdits", "make", Discrepancy}, {"dontAsk", "make", Discrepancy},
	} {
		l := newLab(t, claudeBin)
		l.mode("claude", c.mode, "")
		l.call("claude", "toolu_1", c.cmd, bash)
		claudeRun(l.root, "2.1.332", c.cmd).exit()
		if r := l.judge(); r.Verdict != c.verdict {
			t.Errorf("%v: %s", c, brief(r))
		}
	}
	l := newLab(t, claudeBin, "-p", "do it", "--allowedTools", "Bash(make *)", "Edit")
	l.call("claude", "toolu_1", "make all", bash)
	claudeRun(l.root, "2.1.332", "make all").exit()
	r := l.judge()
	want(t, r, Verified, "")
	if r.Actions[0].Allowed.Source != "rule" || r.Actions[0].Allowed.Detail != "command line" {
		t.Error(brief(r))
	}
}

// Hooks, the MCP server: Claude marks what it starts for itself.
func TestClaudeOwn(t *testing.T) {
	l, c := claudeLab(t)
	h := c.fork().with("AI_AGENT", "claude-code_2-1-332_harness").with("CLAUDE_CODE_SESSION_ID", "c1")
	h.exec("/bin/sh", "-c", "cat > /tmp/hook.json").spawn("cat")
	s := c.fork().with("AI_AGENT", "claude-code_2-1-332_harness")
	s.exec("node", "/srv/mcp/labsrv.js")
	r := l.judge()
	want(t, r, Verified, "")
	kinds := ""
	for _, k := range r.Housekeeping {
		kinds += k.Kind + " "
	}
	if kinds != "assistant git-status git-status shell-environment shell-snapshot hook mcp-server " {
		t.Error(kinds)
	}
	// One that is not marked, where others are, is none of its own.
	l, c = claudeLab(t)
	c.spawn("/bin/sh", "-c", "lint --fix").spawn("lint", "--fix")
	want(t, l.judge(), Discrepancy, "d:exec-unapproved/no-approval-seen")
	// An older version does not mark them: what cannot be told is not called either way.
	l = newLab(t, claudeBin)
	l.mode("claude", "default", "")
	l.root.spawn("/bin/sh", "-c", "lint --fix").spawn("lint", "--fix")
	want(t, l.judge(), Indeterminate, "w:evidence-lost/helper-not-recognised")
	// A model's command is never housekeeping, whatever it looks like.
	l, c = claudeLab(t)
	g := c.fork().with("AI_AGENT", "claude-code_2-1-332_agent")
	g.exec("git", "stash").exit()
	want(t, l.judge(), Discrepancy, "d:exec-unapproved/no-approval-seen")
}

// The transcript says who decided; alone it settles nothing.
func TestClaudeOwnWitness(t *testing.T) {
	for _, c := range []struct {
		by       string
		hook     bool
		verdict  Verdict
		findings string
	}{
		{"user", false, Discrepancy, "d:exec-unapproved/no-approval-seen"},
		{"config", false, Indeterminate, "w:evidence-lost/single-witness"},
		{"classifier", false, Indeterminate, "w:evidence-lost/single-witness"},
		{"hook", false, Indeterminate, "w:evidence-lost/single-witness"},
		{"hook:hook", true, Verified, ""},
		{"config:rule", false, Indeterminate, "w:evidence-lost/single-witness"},
		{"user_temporary", false, Discrepancy, "d:exec-unapproved/no-approval-seen"},
	} {
		l, p := claudeLab(t)
		l.call("claude", "toolu_1", "make", bash)
		if c.hook {
			p.fork().with("AI_AGENT", "claude-code_2-1-332_harness").exec("/bin/sh", "-c", "allow-it").exit()
		}
		claudeRun(p, "2.1.332", "make").exec("make").exit()
		l.result("claude", "toolu_1", func(r *event.ToolResult) { r.Decision, r.DecisionBy = "accept", c.by })
		want(t, l.judge(), c.verdict, c.findings)
	}
}

// A hook rewrote the command before the question: the person saw what ran, the model asked for something else.
func TestClaudeRewrittenThenShown(t *testing.T) {
	run := func(shown, ran string, answer bool, extra func(l *lab)) *Report {
		l, p := claudeLab(t)
		l.call("claude", "toolu_1", "make", bash)
		h := p.fork().with("AI_AGENT", "claude-code_2-1-332_harness")
		h.exec("/bin/sh", "-c", "rewrite").exit()
		if extra != nil {
			extra(l)
		}
		d := l.prompt("claude", shown)
		if answer {
			d.grant()
		}
		claudeRun(p, "2.1.332", ran).exec(strings.Fields(ran)...).exit()
		l.result("claude", "toolu_1", func(r *event.ToolResult) { r.Status = "completed" })
		return l.judge()
	}
	r := run("touch other", "touch other", true, nil)
	want(t, r, Verified, "w:asked-differs")
	if len(r.Actions) != 1 || r.Actions[0].Asked == nil || r.Actions[0].Asked.Command != "make" {
		t.Errorf("%+v", r.Actions)
	}
	// With two calls that nothing ran it cannot be told which one it was, and a claim that nobody sees stays one.
	r = run("touch other", "touch other", true, func(l *lab) {
		l.call("claude", "toolu_2", "make all", bash)
		l.result("claude", "toolu_2", func(r *event.ToolResult) { r.Status = "completed" })
	})
	if r.Verdict != Discrepancy {
		t.Error(brief(r))
	}
	// What was shown is not what ran: no rewriting explains that.
	if r := run("touch other", "touch evil", true, nil); r.Verdict != Discrepancy {
		t.Error(brief(r))
	}
	// And without an answer there is nothing that allowed it.
	if r := run("touch other", "touch other", false, nil); r.Verdict != Discrepancy {
		t.Error(brief(r))
	}
}

// The bare tool allows redirections too, inside the workspace and outside; a pattern does not. A deny rule still counts.
func TestClaudeBareRule(t *testing.T) {
	run := func(text string, exec []string, rules ...event.Rule) *Report {
		l, p := claudeLab(t)
		l.add(nil, &event.RulesLoaded{Agent: "claude", Path: "/home/dev/.claude/settings.json", Level: "user", At: "start", Rules: rules})
		l.call("claude", "toolu_1", text, bash)
		k := claudeRun(p, "2.1.332", text)
		if exec != nil {
			k.spawn(exec...).exit()
		}
		k.exit()
		return l.judge()
	}
	all := event.Rule{ID: "all", Decision: "allow", Tool: "Bash"}
	some := event.Rule{ID: "some", Decision: "allow", Tool: "Bash", Pattern: "echo *"}
	deny := event.Rule{ID: "deny", Decision: "deny", Tool: "Bash", Pattern: "make *"}
	r := run("echo hi > out.txt", nil, all)
	want(t, r, Verified, "")
	allowed(t, r.Actions[0], "rule", "all", "allow")
	want(t, run("make x > out.txt", []string{"make", "x"}, all), Verified, "")
	for name, r := range map[string]*Report{
		"a pattern": run("echo hi > out.txt", nil, some),
		"a denial":  run("make x > out.txt", []string{"make", "x"}, all, deny),
	} {
		if r.Verdict != Discrepancy {
			t.Errorf("%s: %s", name, brief(r))
		}
	}
}

// What an "always" answer saved must be what it said.
func TestClaudeSavedRules(t *testing.T) {
	for _, c := range []struct {
		said     []string
		tool     string
		saved    string
		findings string
	}{
		{[]string{"touch one", "mkdir two"}, "Bash", "mkdir two *", ""},
		{[]string{"make -n all", "git tag *"}, "Bash", "make -n all", ""},
		{[]string{"touch:*", "make:*"}, "Bash", "touch:*", ""},
		{[]string{"git", "tag"}, "Bash", "git tag *", ""},
		{[]string{"git tag *"}, "Bash", "git tag one *", ""},
		{[]string{"git tag *"}, "Bash", "git *", "d:rule-self-granted/new-rule"},
		{[]string{"git tag *"}, "Bash", "git tagx *", "d:rule-self-granted/new-rule"},
		{[]string{"git tag *"}, "Bash", "", "d:rule-self-granted/new-rule"},
		{[]string{"git tag *"}, "Bash", "curl *", "d:rule-self-granted/new-rule"},
		{nil, "additionalDirectory", "/srv", ""},
		{nil, "hook", "curl u", "d:rule-self-granted/new-rule"},
	} {
		l, p := claudeLab(t)
		l.call("claude", "toolu_1", "make", bash)
		l.prompt("claude", "make").grant(func(g *event.ApprovalGranted) { g.Decision, g.Prefix = event.DecisionAlways, c.said })
		claudeRun(p, "2.1.332", "make").exec("make").exit()
		l.add(nil, &event.RulesLoaded{Agent: "claude", Path: "/home/dev/app/.claude/settings.local.json", Level: "local", At: "change",
			Rules: []event.Rule{{ID: "r", Decision: "allow", Tool: c.tool, Pattern: c.saved}}})
		if got := codes(l.judge()); got != c.findings {
			t.Errorf("said %q, saved %s(%s): got [%s] want [%s]", c.said, c.tool, c.saved, got, c.findings)
		}
	}
}

// Leave to edit files for the session explains no rule about commands.
func TestClaudeEditGrantSavesNoCommand(t *testing.T) {
	l, p := claudeLab(t)
	l.call("claude", "toolu_1", "", edit(labWork+"/hello.py"))
	l.promptKind("claude", "edit", "hello.py").grant(func(g *event.ApprovalGranted) { g.Decision = event.DecisionSession })
	p.open(labWork+"/hello.py", wronly)
	l.result("claude", "toolu_1")
	l.add(nil, &event.RulesLoaded{Agent: "claude", Path: "/home/dev/app/.claude/settings.local.json", Level: "local", At: "change",
		Rules: []event.Rule{{ID: "r", Decision: "allow", Tool: "Bash", Pattern: "curl *"}, {ID: "e", Decision: "allow", Tool: "Edit"}}})
	want(t, l.judge(), Discrepancy, "d:rule-self-granted/new-rule")
}
