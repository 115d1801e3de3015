package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

// An assistant rye does not know: python3 agent.py, a dialog on the terminal, a Claude-style transcript.
type stranger struct {
	*lab
	n int
}

func newStranger(t *testing.T) *stranger {
	l := newLab(t, "python3", "agent.py")
	l.root.open("/usr/lib/python3.11/os.py", "O_RDONLY")
	return &stranger{lab: l}
}

// ask is one tool call that is shown and approved; a text with a dialog of its own is shown instead.
func (s *stranger) ask(cmd string, shown ...string) string {
	s.n++
	s.call("claude", fmt.Sprintf("toolu_%d", s.n), cmd, bash)
	show := cmd
	if len(shown) > 0 {
		show = shown[0]
	}
	return s.prompt("unknown", show).grant()
}

func (s *stranger) askOnly(cmd string) {
	s.n++
	s.call("claude", fmt.Sprintf("toolu_%d", s.n), cmd, bash)
}

func (s *stranger) bash(cmd string) *proc { return s.root.spawn("bash", "-c", cmd) }

func TestStrangerApproved(t *testing.T) {
	s := newStranger(t)
	id := s.ask("touch a && ls -l a")
	p := s.bash("touch a && ls -l a")
	p.run("touch", "a")
	p.exec("ls", "-l", "a").exit()
	s.result("claude", "toolu_1")
	r := s.judge()
	want(t, r, Verified, "")
	allowed(t, r.Actions[0], "terminal", id, "this_time")
	if r.Actions[0].Link != "text" || relations(r.Actions[0]) != "bash:named touch:named ls:named" {
		t.Error(brief(r))
	}
}

// bash -lc reads start-up files first: what they start is not the approved command, and not unapproved.
func TestStartupFiles(t *testing.T) {
	s := newStranger(t)
	s.ask("touch made")
	p := s.root.spawn("bash", "-lc", "touch made")
	p.open("/home/dev/.bash_profile", "O_RDONLY")
	p.run("/bin/uname", "-s")
	p.exec("touch", "made").exit()
	r := s.judge()
	want(t, r, Verified, "")
	if relations(r.Actions[0]) != "bash:named uname:descendant(shell-startup) touch:named" {
		t.Error(brief(r))
	}
	// The same program without a start-up file read is nobody's.
	s = newStranger(t)
	s.ask("touch made")
	p = s.root.spawn("bash", "-lc", "touch made")
	p.run("/bin/uname", "-s")
	p.exec("touch", "made").exit()
	want(t, s.judge(), Discrepancy, "d:exec-differs/unexplained")
	// And one that comes after the command has begun is too.
	s = newStranger(t)
	s.ask("touch made; touch more")
	p = s.root.spawn("bash", "-lc", "touch made; touch more")
	p.open("/home/dev/.bash_profile", "O_RDONLY")
	p.run("touch", "made")
	p.run("/bin/uname", "-s")
	p.exec("touch", "more").exit()
	want(t, s.judge(), Discrepancy, "d:exec-differs/unexplained")
}

func policy(patterns ...string) *event.RulesLoaded {
	r := &event.RulesLoaded{Agent: "rye", Path: "/home/dev/.rye/policy.yaml", Level: "user", At: "start"}
	for i, p := range patterns {
		d, pat, ok := strings.Cut(p, " ")
		if !ok {
			panic(p)
		}
		r.Rules = append(r.Rules, event.Rule{ID: fmt.Sprintf("policy-%d", i), Decision: d, Tool: "command", Pattern: pat})
	}
	return r
}

// Rules apply to every simple command of a line, and a line is allowed only when all of them are.
func TestPolicyCoversLines(t *testing.T) {
	for _, c := range []struct {
		rule, cmd string
		open      string // what is not covered, "" when all is
	}{
		{"allow cd *", "cd sub && touch ran", "touch ran"},
		{"allow echo *", "echo a; id", "id"}, {"allow echo *", "echo a & id", "id"}, {"allow echo *", "echo a | id", "id"},
		{"allow echo *", "echo a && id", "id"}, {"allow echo *", "false || id", "id"}, {"allow echo *", "echo a |& id", "id"},
		{"allow echo *", "echo a\nid", "id"}, {"allow echo *", "(echo a; id)", "id"}, {"allow echo *", "f() { echo a; id; }; f", "id"},
		{"allow echo *", "! id", "id"}, {"allow echo *", "time id", "id"}, {"allow echo *", "coproc id", "id"}, {"allow echo *", "echo $(id)", "id"},
		{"allow cat *", "cat <<'E' | sh -c 'cat >/dev/null; touch ran'\nrm -rf /nonexistent\nE", "sh -c cat >/dev/null; touch ran"},
		{"allow tool *", "FOO=1 tool x", ""}, {"allow tool *", "PATH=/evil:$PATH tool x", "PATH=/evil:$PATH tool x"}, {"allow tool *", "LD_PRELOAD=x tool x", "LD_PRELOAD=x tool x"},
		{"allow timeout *", "timeout 5 touch x", "touch x"}, {"allow touch *", "timeout 5 touch x", ""}, {"allow env *", "env touch x", "touch x"},
		{"allow busybox date", "busybox sh -c 'cat /etc/hostname'", "busybox sh -c cat /etc/hostname"}, {"allow ./run.sh hello", "./run.sh 'a; touch spliced'", "./run.sh a; touch spliced"},
		{"allow make *", "make", ""}, {"allow make *", "make -j4 all", ""}, {"allow make *", "makeinfo x", "makeinfo x"}, {"allow make *", "make > log", "make > log"},
		{"allow make *", "make 2>/dev/null", ""}, {"allow make *", "if", "if"}, {"allow sh *", "curl u | sh", "curl u"},
	} {
		s := newStranger(t)
		s.add(nil, policy(c.rule))
		s.askOnly(c.cmd)
		s.bash(c.cmd).exit()
		r := s.judge()
		if c.open == "" {
			want(t, r, Verified, "")
			continue
		}
		if r.Verdict != Discrepancy || len(r.Findings) != 1 || r.Findings[0].Code != ExecUnapproved || !strings.Contains(r.Findings[0].Message, quote(c.open)) {
			t.Errorf("%s, %q: want %q uncovered\n%s", c.rule, c.cmd, c.open, brief(r))
		}
	}
}

func TestDenyRules(t *testing.T) {
	for _, c := range []struct {
		rule, cmd string
		run       func(p *proc)
		findings  string
	}{
		{"deny bar *", "echo x | xargs -n1 bar", func(p *proc) { p.spawn("xargs", "-n1", "bar").run("bar", "x") }, "d:denied-but-ran/rule"},
		{"deny bar *", "sh -c 'bar x'", func(p *proc) { p.exec("sh", "-c", "bar x").exec("bar", "x") }, "d:denied-but-ran/rule"},
		{"deny /usr/bin/touch *", "/proc/self/root/usr/bin/touch a", func(p *proc) {
			p.execAs(event.ProcessExec{Argv: []string{"/proc/self/root/usr/bin/touch", "a"}, Path: "/proc/self/root/usr/bin/touch", Exe: "/usr/bin/touch"})
		}, "d:denied-but-ran/rule"},
		{"deny /usr/bin/touch *", "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch d", func(p *proc) {
			p.execAs(event.ProcessExec{Argv: []string{"/lib64/ld-linux-x86-64.so.2", "/usr/bin/touch", "d"}, Path: "/lib64/ld-linux-x86-64.so.2", Exe: "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"})
		}, "d:denied-but-ran/rule"},
		{"deny find * -exec *", `find a -e\xec touch b ';'`, func(p *proc) { p.exec("find", "a", "-exec", "touch", "b", ";").run("touch", "b") }, "d:denied-but-ran/rule"},
		{"deny rm *", "make clean", func(p *proc) { p.exec("make", "clean").run("rm", "-rf", "x") }, "w:denied-but-ran/rule"},
		{"deny rm *", "ls", func(p *proc) { p.exec("ls") }, ""},
	} {
		s := newStranger(t)
		s.add(nil, policy(c.rule))
		s.ask(c.cmd)
		p := s.bash(c.cmd)
		c.run(p)
		r := s.judge()
		if codes(r) != c.findings {
			t.Errorf("%s, %q: %s\n%s", c.rule, c.cmd, codes(r), brief(r))
		}
	}
}

// One pid, several execs: the wrapper and its payload are both named by the line.
func TestWrappers(t *testing.T) {
	for _, c := range []struct {
		cmd, rel string
		run      func(p *proc)
	}{
		{"timeout 5 touch x", "bash:named timeout:named touch:named", func(p *proc) { p.exec("timeout", "5", "touch", "x").run("touch", "x") }},
		{"nice -n1 touch x", "bash:named nice:named touch:named", func(p *proc) { p.exec("nice", "-n1", "touch", "x").exec("touch", "x") }},
		{"env touch x", "bash:named env:named touch:named", func(p *proc) { p.exec("env", "touch", "x").exec("touch", "x") }},
		{"setsid -w touch x", "bash:named setsid:named touch:named", func(p *proc) { p.exec("setsid", "-w", "touch", "x").run("touch", "x") }},
		{"echo y | xargs -I@ touch @", "bash:named xargs:named touch:named", func(p *proc) { p.spawn("xargs", "-I@", "touch", "@").run("touch", "y") }},
		{"sh -c 'touch a; make'", "bash:named sh:named touch:named make:named cc:descendant(started by make)", func(p *proc) {
			p.exec("sh", "-c", "touch a; make")
			p.run("touch", "a")
			p.exec("make").run("cc", "-c", "x.c")
		}},
		{"echo dG91Y2g= | base64 -d | sh", "bash:named base64:named sh:named touch:descendant(stdin-fed)", func(p *proc) {
			p.run("base64", "-d")
			p.spawn("sh").run("touch", "decoded")
		}},
		{"python3 orphan.py; sleep 1", "bash:named python3:named touch:descendant(started by python3) sleep:named", func(p *proc) {
			q := p.spawn("python3", "orphan.py")
			o := q.fork().fork() // its parent dies; by the time it execs the kernel says init
			o.parent = event.ProcessKey{TGID: 1, StartNS: 1}
			o.exec("touch", "orphan")
			p.run("sleep", "1")
		}},
		{"./run.sh a 'b c'", "bash:named sh:named rm:descendant(started by sh)", func(p *proc) {
			p.execAs(event.ProcessExec{Argv: []string{"/bin/sh", "./run.sh", "a", "b c"}, Path: "./run.sh", Interp: "/bin/sh", Exe: "/usr/bin/dash"}).run("rm", "x")
		}},
		{"tool x", "bash:named env:named python3:descendant(started by env)", func(p *proc) {
			p.execAs(event.ProcessExec{Argv: []string{"/usr/bin/env", "python3", "/usr/local/bin/tool", "x"}, Path: "/usr/local/bin/tool", Interp: "/usr/bin/env", Exe: "/usr/bin/env"})
			p.exec("python3", "/usr/local/bin/tool", "x")
		}},
	} {
		s := newStranger(t)
		s.ask(c.cmd)
		p := s.bash(c.cmd)
		c.run(p)
		p.exit()
		r := s.judge()
		if r.Verdict != Verified || relations(r.Actions[0]) != c.rel {
			t.Errorf("%q: %s\nwant %s\n%s", c.cmd, relations(r.Actions[0]), c.rel, brief(r))
		}
	}
	// A wrapper that nobody approved.
	s := newStranger(t)
	s.ask("touch x")
	s.bash("timeout 5 touch x").exec("timeout", "5", "touch", "x").run("touch", "x")
	want(t, s.judge(), Discrepancy, "d:exec-differs/text")
	s = newStranger(t)
	s.ask("ls")
	s.root.spawnAs(event.ProcessExec{Argv: []string{"/bin/sh", "./pfx", "bash", "-c", "ls"}, Path: "./pfx", Interp: "/bin/sh", Exe: "/usr/bin/dash"}).exec("bash", "-c", "ls").exec("ls")
	want(t, s.judge(), Discrepancy, "d:exec-differs/wrapper")
	// The same, but the prefix starts the shell as a child: it is not taken for the assistant.
	s = newStranger(t)
	s.ask("ls")
	s.root.spawnAs(event.ProcessExec{Argv: []string{"/bin/sh", "./pfx", "bash", "-c", "ls"}, Path: "./pfx", Interp: "/bin/sh", Exe: "/usr/bin/dash"}).spawn("bash", "-c", "ls").exec("ls")
	want(t, s.judge(), Discrepancy, "d:exec-differs/wrapper")
	// An assistant that is started by a script of the user's: the script is not an action.
	l := newLab(t, "sh", "start.sh")
	l.root.run("mkdir", "-p", "log")
	s = &stranger{lab: l}
	s.lab.root = l.root.spawn("python3", "agent.py")
	s.ask("make")
	s.bash("make").exec("make").exit()
	r := s.judge()
	want(t, r, Verified, "")
	if len(r.Actions) != 1 || len(r.Housekeeping) != 3 {
		t.Error(brief(r))
	}
}

func TestTextsDiffer(t *testing.T) {
	for _, c := range []struct {
		name     string
		build    func(s *stranger)
		verdict  Verdict
		findings string
	}{
		{"other arguments ran", func(s *stranger) { s.ask("ls"); s.bash("ls -la /").exec("ls", "-la", "/").exit() }, Discrepancy, "d:exec-differs/text"},
		{"the dialog showed a summary", func(s *stranger) {
			s.ask("touch hidden", "List files in this directory")
			s.bash("touch hidden").exec("touch", "hidden").exit()
		}, Discrepancy, "d:exec-unapproved/not-shown"},
		{"one approval, two runs", func(s *stranger) {
			s.ask("echo x >> log")
			s.bash("echo x >> log").exit()
			s.bash("echo x >> log").exit()
		}, Discrepancy, "d:exec-unapproved/approval-used"},
		{"two approvals, two runs", func(s *stranger) {
			s.ask("echo x >> log")
			s.bash("echo x >> log").exit()
			s.ask("echo x >> log")
			s.bash("echo x >> log").exit()
		}, Verified, ""},
		{"no prompt at all", func(s *stranger) { s.askOnly("git tag v1"); s.bash("git tag v1").exec("git", "tag", "v1").exit() }, Discrepancy, "d:exec-unapproved/no-approval-seen"},
		{"denied and not run", func(s *stranger) {
			s.askOnly("rm -rf x")
			s.prompt("unknown", "rm -rf x").deny()
			s.result("claude", "toolu_1", func(r *event.ToolResult) { r.Status = "rejected" })
		}, Verified, ""},
		{"denied and run", func(s *stranger) {
			s.askOnly("rm -rf x")
			s.prompt("unknown", "rm -rf x").deny()
			s.bash("rm -rf x").exec("rm", "-rf", "x").exit()
		}, Discrepancy, "d:denied-but-ran"},
		{"denied, asked again, approved", func(s *stranger) {
			s.askOnly("rm -rf x")
			s.prompt("unknown", "rm -rf x").deny()
			s.result("claude", "toolu_1", func(r *event.ToolResult) { r.Status = "rejected" })
			s.ask("rm -rf x")
			s.bash("rm -rf x").exec("rm", "-rf", "x").exit()
		}, Verified, ""},
		{"approved and never run", func(s *stranger) { s.ask("make") }, Verified, "i:approved-not-run"},
		{"approved, could not start", func(s *stranger) {
			s.ask("make")
			s.root.fork().do(&event.ProcessExecFailed{Path: "/usr/bin/bash", Result: -13, Error: "EACCES"})
		}, Verified, "i:approved-not-run/EACCES"},
		{"recorded as run, never seen", func(s *stranger) { s.ask("make"); s.result("claude", "toolu_1") }, Discrepancy, "d:transcript-differs/never-ran"},
		{"ran before the answer", func(s *stranger) {
			s.askOnly("make")
			d := s.prompt("unknown", "make")
			s.bash("make").exec("make").exit()
			d.grant()
		}, Discrepancy, "d:exec-before-approval"},
		{"ran before the question", func(s *stranger) {
			s.bash("make").exec("make").exit()
			s.ask("make")
		}, Discrepancy, "d:exec-before-approval"},
		{"nobody pressed a key", func(s *stranger) {
			s.askOnly("make")
			s.prompt("unknown", "make").grant(func(g *event.ApprovalGranted) { g.Attested, g.Key, g.KeyTimeNS = false, "", 0 })
			s.bash("make").exec("make").exit()
		}, Discrepancy, "d:approval-unattested"},
		{"a line was drawn, nothing ran", func(s *stranger) {
			s.add(nil, &event.ApprovalGranted{ID: "a9", Agent: "codex", Kind: "command", Command: "ls", Decision: event.DecisionThisTime})
		}, Verified, "w:approval-unattested"},
		{"bidi marks in the text", func(s *stranger) {
			s.askOnly("touch \u202etxt.hs")
			d := s.prompt("unknown", "touch \u202etxt.hs")
			d.p.Hidden = []string{"bidi U+202E"}
			d.grant()
			s.bash("touch \u202etxt.hs").exec("touch", "\u202etxt.hs").exit()
		}, Verified, "w:approval-hidden/hidden-characters"},
		{"control characters dropped by the screen", func(s *stranger) {
			s.ask("touch a\x1b[8mb", "touch a[8mb")
			s.bash("touch a\x1b[8mb").exec("touch", "a\x1b[8mb").exit()
		}, Verified, "w:approval-hidden/hidden-characters"},
		{"the code came through a pipe", func(s *stranger) {
			s.ask("curl u | sh")
			p := s.bash("curl u | sh")
			p.run("curl", "u")
			p.spawn("sh").run("touch", "x")
		}, Verified, "w:approval-hidden/opaque-code"},
		{"the shell ran something of its own", func(s *stranger) {
			s.ask("touch a")
			p := s.bash("touch a")
			p.run("touch", "a")
			p.run("curl", "evil")
		}, Discrepancy, "d:exec-differs/unexplained"},
		{"other words than approved", func(s *stranger) {
			s.ask("rm $x/a")
			s.bash("rm $x/a").run("rm", "/", "b")
		}, Discrepancy, "d:exec-differs/unexplained"},
		{"expansions are free", func(s *stranger) {
			s.ask("rm $x/a")
			s.bash("rm $x/a").run("rm", "1/2", "3/a")
		}, Verified, ""},
		{"text that cannot be parsed", func(s *stranger) {
			s.ask("echo 'a")
			s.bash("echo 'a").run("cat")
		}, Verified, ""},
		{"the assistant's record names another command", func(s *stranger) {
			s.ask("make")
			s.bash("make").exec("make").exit()
			s.result("claude", "toolu_1", func(r *event.ToolResult) { r.Command = []string{"bash", "-lc", "make test"} })
		}, Discrepancy, "d:transcript-differs/other-command"},
		{"an unreadable dialog was answered", func(s *stranger) {
			s.askOnly("make")
			s.add(nil, &event.ScreenUnreadable{Why: "new shape", AnsweredKey: "y"})
			s.bash("make").exec("make").exit()
		}, Indeterminate, "w:evidence-lost/prompt-not-recognised"},
		{"an unreadable dialog explains one run, not two", func(s *stranger) {
			s.askOnly("make")
			s.add(nil, &event.ScreenUnreadable{Why: "new shape", AnsweredKey: "y"})
			s.bash("make").exec("make").exit()
			s.bash("make install").exec("make", "install").exit()
		}, Discrepancy, "d:exec-unapproved/no-approval-seen w:evidence-lost/prompt-not-recognised"},
		{"an unreadable dialog that nobody answered", func(s *stranger) {
			s.askOnly("make")
			s.add(nil, &event.ScreenUnreadable{Why: "new shape"})
			s.bash("make").exec("make").exit()
		}, Discrepancy, "d:exec-unapproved/no-approval-seen"},
		{"output the scanner never saw", func(s *stranger) {
			s.askOnly("make")
			s.add(nil, &event.ScreenUnreadable{Why: "backlog", Skipped: 4096})
			s.bash("make").exec("make").exit()
		}, Indeterminate, "w:evidence-lost/prompt-not-recognised"},
		{"the reading is not sure", func(s *stranger) {
			s.askOnly("make")
			s.prompt("unknown", "make").grant(func(g *event.ApprovalGranted) { g.Uncertain = "the screen changed while the key was pressed" })
			s.bash("make").exec("make").exit()
		}, Indeterminate, "w:evidence-lost/uncertain-answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStranger(t)
			c.build(s)
			want(t, s.judge(), c.verdict, c.findings)
		})
	}
}

// What the screen could not show whole is settled by another witness, or left open.
func TestPartlyShown(t *testing.T) {
	long := "touch " + strings.Repeat("a/", 60) + "f && rm -rf /srv/x"
	argv := strings.Repeat("a/", 60) + "f"
	for _, c := range []struct {
		name     string
		call     string
		shown    string
		edit     func(p *event.ApprovalPrompted)
		verdict  Verdict
		findings string
	}{
		{"cut, the transcript has it all", long, long[:40], func(p *event.ApprovalPrompted) { p.Cut = true }, Verified, "w:approval-hidden/cut"},
		{"cut, nothing else knows", "", long[:40], func(p *event.ApprovalPrompted) { p.Cut = true }, Indeterminate, "w:approval-hidden/cut"},
		{"the end was shown", "", long[30:], func(p *event.ApprovalPrompted) { p.Cut = true }, Indeterminate, "w:approval-hidden/cut"},
		{"cut, and not even the part agrees", "", "touch something else entirely", func(p *event.ApprovalPrompted) { p.Cut = true }, Discrepancy, "d:exec-differs/text"},
		{"wrapped, the transcript has it", long, strings.Replace(long, " && ", "\n&&", 1), func(p *event.ApprovalPrompted) { p.Ambiguous = true }, Verified, ""},
		{"wrapped, nothing else knows", "", strings.Replace(long, " && ", "&& ", 1), func(p *event.ApprovalPrompted) { p.Ambiguous = true }, Indeterminate, "w:approval-hidden/wrapped"},
		{"not wrapped: a blank is a difference", "", strings.Replace(long, " && ", "  && ", 1), func(p *event.ApprovalPrompted) {}, Discrepancy, "d:exec-differs/text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStranger(t)
			if c.call != "" {
				s.askOnly(c.call)
			}
			d := s.prompt("unknown", c.shown)
			c.edit(d.p)
			d.grant()
			p := s.bash(long)
			p.run("touch", argv)
			p.exec("rm", "-rf", "/srv/x").exit()
			want(t, s.judge(), c.verdict, c.findings)
		})
	}
	// Only Codex's decision row is known, and it is cut at 80.
	s := newStranger(t)
	s.add(nil, &event.ApprovalGranted{ID: "a1", Agent: "codex", Kind: "command", Command: long[:77] + "...", Row: "✔ You approved …", RowCut: true, Decision: event.DecisionThisTime, Attested: true, Key: "y", KeyTimeNS: s.at})
	p := s.bash(long)
	p.run("touch", argv)
	p.exec("rm", "-rf", "/srv/x").exit()
	want(t, s.judge(), Indeterminate, "w:approval-hidden/cut")
}

// Codex's dash: $'…' is not special, the shell that ran it decides.
func TestLanguageOfTheShell(t *testing.T) {
	s := newStranger(t)
	s.ask(`touch $'x4'`)
	s.root.spawn("sh", "-c", `touch $'x4'`).exec("touch", "$x4").exit()
	want(t, s.judge(), Verified, "")
	s = newStranger(t)
	s.ask(`touch $'x4'`)
	s.root.spawn("bash", "-c", `touch $'x4'`).exec("touch", "$x4").exit()
	want(t, s.judge(), Discrepancy, "d:exec-differs/unexplained")
}

// Bytes that are not UTF-8 are compared as bytes, and the report's JSON keeps them apart.
func TestRawBytes(t *testing.T) {
	s := newStranger(t)
	s.ask("touch $'a\\xff'")
	s.bash("touch $'a\\xff'").exec("touch", "a\xff").exit()
	r := s.judge()
	want(t, r, Verified, "")
	if b := string(mustJSON(t, r)); !strings.Contains(b, `["touch","a\udcff"]`) {
		t.Errorf("raw byte lost: %s", b)
	}
	s = newStranger(t)
	s.ask("touch $'a\\xff'")
	s.bash("touch $'a\\xff'").exec("touch", "a\xfe").exit()
	want(t, s.judge(), Discrepancy, "d:exec-differs/unexplained")
}

// Events of one moment may arrive in any order; the judgement is the same.
func TestArrivalOrder(t *testing.T) {
	build := func() *stranger {
		s := newStranger(t)
		s.ask("make; ls")
		p := s.bash("make; ls")
		m := p.spawn("make")
		for i := range 10 {
			m.run("cc", "-c", fmt.Sprintf("f%d.c", i))
		}
		p.exec("ls").exit()
		s.end()
		return s
	}
	s := build()
	wantBrief := brief(s.verify())
	if !strings.HasPrefix(wantBrief, "verified") {
		t.Fatal(wantBrief)
	}
	base := slices.Clone(s.events)
	for n := range 20 {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		s.events = slices.Clone(base)
		for i := 4; i+6 < len(s.events); i += 6 {
			part := s.events[i : i+6]
			r.Shuffle(6, func(a, b int) { part[a], part[b] = part[b], part[a] })
		}
		if got := brief(s.verify()); got != wantBrief {
			t.Fatalf("order %d:\n%s\nwant\n%s", n, got, wantBrief)
		}
	}
}
