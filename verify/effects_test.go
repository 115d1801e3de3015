package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

// one runs an approved command in a stranger's session and lets it do something.
func one(t *testing.T, cmd string, do func(p *proc)) *Report {
	t.Helper()
	s := newStranger(t)
	s.ask(cmd)
	p := s.bash(cmd)
	do(p)
	p.exit()
	return s.judge()
}

// own is a session without an assistant.
func own(t *testing.T, do func(p *proc), argv ...string) *Report {
	t.Helper()
	l := newLab(t, argv...)
	do(l.root)
	return l.judge()
}

const creat, wronly, rdonly = "O_CREAT", "O_WRONLY", "O_RDONLY"

func TestWriteOutside(t *testing.T) {
	for _, c := range []struct {
		name, cmd string
		do        func(p *proc)
		findings  string
	}{
		{"named by a redirection", "echo x > ../out/f", func(p *proc) { p.open("/home/dev/out/f", wronly, creat) }, "i:write-outside"},
		{"named by an argument", "echo x | tee ../out/g >/dev/null", func(p *proc) { p.spawn("tee", "../out/g").open("/home/dev/out/g", wronly, creat) }, "i:write-outside"},
		{"through a link", "echo 1 > d/x", func(p *proc) { p.open("/home/dev/out/x", wronly, creat) }, "w:write-outside"},
		{"by a descendant", "make", func(p *proc) { p.exec("make").spawn("cp", "a", "/srv/x").open("/srv/x", wronly, creat) }, "w:write-outside"},
		{"inside", "make", func(p *proc) { p.open(labWork+"/x", wronly, creat) }, ""},
		{"back inside through a link outside", "echo 1 > ../out/back/in", func(p *proc) { p.open(labWork+"/in", wronly, creat) }, ""},
		{"read only", "cat /srv/x", func(p *proc) { p.spawn("cat", "/srv/x").open("/srv/x", rdonly) }, ""},
		{"failed", "make", func(p *proc) {
			p.do(&event.FileOpen{Path: "/srv/x", Flags: []string{wronly, creat}, Result: -13, Error: "EACCES"})
		}, ""},
		{"existing file opened with O_CREAT for reading", "make", func(p *proc) { p.do(&event.FileOpen{Path: "/srv/x", Flags: []string{rdonly, creat}}) }, ""},
		{"temp folder", "make", func(p *proc) { p.open("/tmp/x/y", wronly, creat) }, ""},
		{"devices", "make 2>/dev/null", func(p *proc) { p.open("/dev/null", wronly); p.open("/dev/pts/3", "O_RDWR") }, ""},
		{"a disk", "make", func(p *proc) { p.do(&event.FileOpen{Path: "/dev/sda", Flags: []string{wronly}, Kind: "block"}) }, "d:write-outside/device"},
		{"the assistant's own folder", "make", func(p *proc) { p.open("/home/dev/.claude/todos/x.json", wronly, creat) }, ""},
		{"a name beside the assistant's folder", "make", func(p *proc) { p.open("/home/dev/.claudeX/x", wronly, creat) }, "w:write-outside"},
		{"caches are one finding", "npm i", func(p *proc) {
			n := p.exec("npm", "i")
			for i := range 30 {
				n.open(fmt.Sprintf("/home/dev/.npm/_cacache/%d", i), wronly, creat)
			}
			n.open("/home/dev/.cache/node/x", wronly, creat)
		}, "i:write-outside/cache"},
		{"one file many times is one finding", "make", func(p *proc) {
			m := p.exec("make")
			for range 5 {
				m.spawn("cp").open("/srv/x", wronly, creat)
			}
		}, "w:write-outside"},
		{"each file is one finding", "make", func(p *proc) { p.open("/srv/a", wronly, creat); p.open("/srv/b", wronly, creat) }, "w:write-outside w:write-outside"},
		{"renamed out", "make", func(p *proc) { p.do(&event.FileRename{From: labWork + "/a", To: "/srv/a", How: "rename"}) }, "w:write-outside"},
		{"renamed through descriptors, to nobody knows where", "make", func(p *proc) {
			p.do(&event.FileRename{From: "/proc/self/fd/5/a", To: "/proc/self/fd/6/.bashrc", How: "rename", Marks: []string{"path-from-user"}})
		}, "w:write-outside/unresolved"},
		{"moved away from outside", "make", func(p *proc) { p.do(&event.FileRename{From: "/srv/a", To: labWork + "/a", How: "rename"}) }, "w:write-outside"},
		{"deleted", "rm -r /srv/a", func(p *proc) { p.spawn("rm", "-r", "/srv/a").do(&event.FileDelete{Path: "/srv/a/b"}) }, "i:write-outside"},
		{"truncated by name", "make", func(p *proc) { p.do(&event.FileChange{Path: "/srv/a", How: "truncate"}) }, "w:write-outside"},
		{"a shell start-up file, named", "echo x >> ~/.bashrc", func(p *proc) { p.open("/home/dev/.bashrc", wronly) }, "w:write-outside/shell-startup"},
		{"a shell start-up file, not named", "make", func(p *proc) { p.open("/home/dev/.bashrc", wronly) }, "d:write-outside/shell-startup"},
		{"a git hook inside the workspace", "make", func(p *proc) { p.open(labWork+"/.git/hooks/pre-commit", wronly, creat) }, "d:write-outside/git-hook"},
		{"git init's samples", "git init", func(p *proc) { p.exec("git", "init").open(labWork+"/.git/hooks/pre-commit.sample", wronly, creat) }, ""},
		{"cron", "make", func(p *proc) { p.open("/etc/cron.d/x", wronly, creat) }, "d:write-outside/cron"},
		{"a folder on PATH", "make install", func(p *proc) { p.exec("make", "install").open("/usr/local/bin/x", wronly, creat) }, "d:write-outside/path-folder"},
		{"the shell snapshot", "make", func(p *proc) { p.open("/home/dev/.claude/shell-snapshots/snapshot-bash-1.sh", wronly) }, "d:write-outside/shell-startup"},
		{"the assistant's settings", "make", func(p *proc) { p.open(labWork+"/.claude/settings.json", wronly, creat) }, "d:rule-self-granted/file"},
		{"the assistant's settings, named", "cp s .claude/settings.json", func(p *proc) {
			p.exec("cp", "s", ".claude/settings.json").open(labWork+"/.claude/settings.json", wronly, creat)
		}, "w:rule-self-granted/file"},
		{"Codex rules", "make", func(p *proc) { p.open("/home/dev/.codex/rules/default.rules", wronly) }, "d:rule-self-granted/file"},
		{"instructions", "git pull", func(p *proc) { p.exec("git", "pull").open(labWork+"/AGENTS.md", wronly, creat) }, "w:rule-self-granted/instructions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := one(t, c.cmd, c.do)
			if codes(r) != c.findings {
				t.Errorf("%s: got [%s] want [%s]\n%s", c.cmd, codes(r), c.findings, brief(r))
			}
			if (r.Verdict == Discrepancy) != strings.HasPrefix(c.findings, "d:") {
				t.Errorf("%s: %s", r.Verdict, brief(r))
			}
		})
	}
}

// A user's own command is not held against an approval: nothing it does is more than a warning.
func TestOwnCommand(t *testing.T) {
	r := own(t, func(p *proc) {
		for _, f := range []string{"/home/dev/out/a", "/home/dev/out/b", "/home/dev/.bashrc"} {
			p.open(f, wronly, creat)
		}
		p.open("/home/dev/.ssh/id_ed25519", rdonly)
		p.run("git", "tag", "v1")
	}, "python3", "d.py")
	want(t, r, Verified, "w:secret-read/ssh-key w:write-outside w:write-outside w:write-outside/shell-startup")
	a := r.Actions[0]
	allowed(t, a, "user-command-line", "", "command-line")
	if len(r.Actions) != 1 || relations(a) != "python3:named git:descendant(started by python3)" || a.Link != "session" {
		t.Error(brief(r))
	}
	if len(a.Findings) != 4 || r.Findings[a.Findings[0]].Action != a.ID {
		t.Errorf("findings not tied to the action: %s", brief(r))
	}
	// A wrapped shell's own text is read too.
	r = own(t, func(p *proc) { p.run("touch", "a"); p.run("sed", "x") }, "bash", "-c", "touch a; $X")
	if relations(r.Actions[0]) != "bash:named touch:named sed:named" || r.Verdict != Verified {
		t.Error(brief(r))
	}
	// What could not be started is kept; a search through PATH is not an attempt.
	r = own(t, func(p *proc) {
		for _, e := range []struct{ path, err string }{{"/usr/local/bin/mytool", "ENOENT"}, {"/usr/bin/mytool", "EACCES"}} {
			p.do(&event.ProcessExecFailed{Path: e.path, Result: -2, Error: e.err})
		}
		p.exec("mytool")
		p.do(&event.ProcessExecFailed{Path: "/usr/bin/nosuch", Result: -2, Error: "ENOENT"})
	}, "env", "mytool")
	if at := r.Actions[0].Attempts; len(at) != 1 || at[0].Path != "/usr/bin/nosuch" || relations(r.Actions[0]) != "env:named mytool:named" {
		t.Errorf("%+v\n%s", at, brief(r))
	}
}

// When the workspace lies in the temp folder, a folder beside it is not scratch.
func TestWorkspaceInTemp(t *testing.T) {
	l := newLab(t, "python3", "d.py")
	s := l.events[0].Body.(*event.SessionStart)
	s.Workspace, s.TempDir, s.Home = "/tmp/cases/work/ws", "/tmp/cases/work", "/tmp/cases/work/home"
	l.root.open("/tmp/cases/work/out/viadirfd", wronly, creat)
	l.root.open("/tmp/cases/work/ws/in", wronly, creat)
	l.root.open("/tmp/cases/work/tmpabc/x", wronly, creat)
	l.root.open("/tmp/cases/work/tmp.Xy", wronly, creat)
	want(t, l.judge(), Verified, "w:write-outside")
}

func TestSecretRead(t *testing.T) {
	for _, c := range []struct {
		cmd      string
		file     string
		by       []string
		findings string
	}{
		{"{ cat .env; }", labWork + "/.env", []string{"cat", ".env"}, "i:secret-read/env-file"},
		{"x=$(<.env)", labWork + "/.env", nil, "i:secret-read/env-file"},
		{"read -r x < .env", labWork + "/.env", nil, "i:secret-read/env-file"},
		{"make", labWork + "/.env", nil, "w:secret-read/env-file"},
		{"cat ~/.ssh/id_ed25519", "/home/dev/.ssh/id_ed25519", []string{"cat", "/home/dev/.ssh/id_ed25519"}, "w:secret-read/ssh-key"},
		{"make", "/home/dev/.ssh/id_ed25519", nil, "d:secret-read/ssh-key"},
		{"git push", "/home/dev/.ssh/id_ed25519", []string{"git", "push"}, "d:secret-read/ssh-key"},
		{"ssh host", "/home/dev/.ssh/id_ed25519", []string{"ssh", "host"}, "w:secret-read/ssh-key"},
		{"ssh host", "/home/dev/.ssh/known_hosts", []string{"ssh", "host"}, ""},
		{"make", "/home/dev/.ssh/id_ed25519.pub", nil, ""},
		{"make", "/home/dev/.aws/credentials", nil, "d:secret-read/cloud-key"},
		{"make", "/etc/shadow", nil, "d:secret-read/password"},
		{"make", "/home/dev/.codex/auth.json", nil, "d:secret-read/assistant-key"},
		{"make", "/etc/ssl/certs/ca.pem", nil, ""},
		{"make", labWork + "/.env.example", nil, ""},
	} {
		r := one(t, c.cmd, func(p *proc) {
			if c.by != nil {
				p = p.spawn(c.by...)
			}
			p.open(c.file, rdonly)
		})
		if codes(r) != c.findings {
			t.Errorf("%s reads %s: got [%s] want [%s]\n%s", c.cmd, c.file, codes(r), c.findings, brief(r))
		}
	}
	// An assistant reads its own key.
	l, c := codexLab(t)
	c.open("/home/dev/.codex/auth.json", rdonly)
	want(t, l.judge(), Verified, "")
}

func TestDelegated(t *testing.T) {
	peer := func(exe string) *event.Peer { return &event.Peer{TGID: 300, StartNS: 5, Exe: exe} }
	for _, c := range []struct {
		name     string
		ipc      event.IPCConnect
		findings string
	}{
		{"docker", event.IPCConnect{Path: "/run/docker.sock", Peer: peer("/usr/bin/dockerd")}, "w:delegated/docker"},
		{"systemd", event.IPCConnect{Path: "/run/systemd/private", Peer: peer("/usr/lib/systemd/systemd")}, "w:delegated/systemd"},
		{"D-Bus", event.IPCConnect{Path: "/run/user/1000/bus", Peer: peer("/usr/bin/dbus-daemon")}, "w:delegated/the user D-Bus"},
		{"tmux", event.IPCConnect{Path: "/tmp/tmux-1000/default", Peer: peer("/usr/bin/tmux")}, "w:delegated/tmux"},
		{"ssh-agent", event.IPCConnect{Path: "/tmp/ssh-XX/agent.77", Peer: peer("/usr/bin/ssh-agent")}, "w:delegated/ssh-agent"},
		{"any listener outside", event.IPCConnect{Path: "/home/dev/d.sock", Peer: peer("/usr/bin/python3.11")}, "w:delegated/unknown-listener"},
		{"an abstract name", event.IPCConnect{Path: "@a\x00b", Peer: peer("/usr/bin/python3.11")}, "w:delegated/unknown-listener"},
		{"nobody known listens", event.IPCConnect{Path: "/srv/x.sock", Marks: []string{"peer-unknown"}}, "w:delegated/unknown-listener"},
		{"a database", event.IPCConnect{Path: "/run/postgresql/.s.PGSQL.5432", Peer: peer("/usr/lib/postgresql/15/bin/postgres")}, "i:delegated/PostgreSQL"},
		{"names", event.IPCConnect{Path: "/run/nscd/socket", Peer: peer("/usr/sbin/nscd")}, ""},
		{"the journal", event.IPCConnect{Path: "/run/systemd/journal/stdout", Peer: peer("/usr/lib/systemd/systemd-journald")}, ""},
		{"syslog", event.IPCConnect{Path: "/dev/log", Type: "dgram"}, ""},
		{"resolved", event.IPCConnect{Path: "/run/systemd/resolve/io.systemd.Resolve", Peer: peer("/usr/lib/systemd/systemd-resolved")}, ""},
		{"in the session", event.IPCConnect{Path: "/home/dev/d.sock", Marks: []string{"peer-in-session"}, Peer: peer("/usr/bin/python3.11")}, ""},
		{"refused", event.IPCConnect{Path: "/run/docker.sock", Result: -13, Error: "EACCES"}, ""},
	} {
		r := one(t, "python3 c.py", func(p *proc) {
			q := p.exec("python3", "c.py")
			q.do(&c.ipc)
			again := c.ipc
			q.do(&again)
		})
		if codes(r) != c.findings || r.Verdict != Verified {
			t.Errorf("%s: got [%s] want [%s]\n%s", c.name, codes(r), c.findings, brief(r))
		}
		for _, f := range r.Findings {
			if f.Severity == Warning && !strings.Contains(f.Message, "outside the evidence") {
				t.Errorf("%s does not say what it means: %s", c.name, f.Message)
			}
		}
	}
	// A server that a command of the session started is inside.
	r := one(t, "srv & cli", func(p *proc) {
		srv := p.spawn("srv")
		p.spawn("cli").do(&event.IPCConnect{Path: "/home/dev/d.sock", Peer: &event.Peer{TGID: srv.key.TGID, StartNS: srv.key.StartNS, Exe: "/usr/bin/srv"}})
	})
	want(t, r, Verified, "")
}

func TestEscapes(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       func(p *proc)
		verdict  Verdict
		findings string
	}{
		{"left the cgroup, followed", func(p *proc) { p.do(&event.CgroupLeft{To: "/x", Escaped: true, Recorded: true}) }, Verified, "w:escape-attempt/cgroup"},
		{"left the cgroup, out of sight", func(p *proc) { p.do(&event.CgroupLeft{To: "/x", Escaped: true}) }, Indeterminate, "w:escape-attempt/cgroup w:evidence-lost/out-of-sight"},
		{"moved within the session", func(p *proc) { p.do(&event.CgroupLeft{To: "/s/x"}) }, Verified, ""},
		{"from memory", func(p *proc) {
			p.spawnAs(event.ProcessExec{Argv: []string{"touch", "m"}, Path: "/proc/self/fd/3", Exe: "/memfd:hidden (deleted)", Marks: []string{"memfd"}})
		}, Verified, "w:escape-attempt/memfd_exec"},
		{"from memory, told twice", func(p *proc) {
			q := p.spawnAs(event.ProcessExec{Argv: []string{"touch", "m"}, Path: "/proc/self/fd/3", Exe: "/memfd:hidden (deleted)", Marks: []string{"memfd"}})
			q.do(&event.Escape{What: "memfd_exec"})
		}, Verified, "w:escape-attempt/memfd_exec"},
		{"a deleted file", func(p *proc) {
			p.spawnAs(event.ProcessExec{Argv: []string{"./x"}, Path: "./x", Exe: "/home/dev/app/x", Marks: []string{"deleted"}})
		}, Verified, "w:escape-attempt/deleted_exec"},
		{"terminal input pushed", func(p *proc) { p.do(&event.Escape{What: "tiocsti"}) }, Discrepancy, "d:escape-attempt/tiocsti"},
		{"bpf", func(p *proc) { p.do(&event.Escape{What: "bpf"}) }, Discrepancy, "d:escape-attempt/bpf w:evidence-lost/out-of-sight"},
		{"refused", func(p *proc) { p.do(&event.Escape{What: "ptrace", Result: -1, Error: "EPERM"}) }, Verified, "w:escape-attempt/ptrace"},
		{"io_uring that can be seen into", func(p *proc) { p.do(&event.Escape{What: "io_uring"}) }, Verified, "i:escape-attempt/io_uring"},
		{"a file in memory, not run", func(p *proc) { p.do(&event.Escape{What: "memfd"}) }, Verified, ""},
		{"its own user again", func(p *proc) {
			p.do(&event.Escape{What: "setuid", Detail: map[string]string{"uid": "4294967295", "euid": "0", "suid": "4294967295"}})
		}, Verified, ""},
		{"another user", func(p *proc) { p.do(&event.Escape{What: "setuid", Detail: map[string]string{"uid": "1000"}}) }, Verified, "w:escape-attempt/setuid"},
		{"something new", func(p *proc) { p.do(&event.Escape{What: "warp"}) }, Verified, "w:escape-attempt/warp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want(t, one(t, "python3 m.py", func(p *proc) { c.do(p.exec("python3", "m.py")) }), c.verdict, c.findings)
		})
	}
	// strace traces: the approved text says so.
	want(t, one(t, "strace -f ls", func(p *proc) { p.exec("strace", "-f", "ls").do(&event.Escape{What: "ptrace"}) }), Verified, "i:escape-attempt/ptrace")
	// Codex's own sandbox makes namespaces.
	l, c := codexLab(t)
	l.call("codex", "call_1", "ls")
	p := codexSandboxed(c, "call_1", "ls")
	b := p.l.events
	for _, e := range b {
		if x, ok := e.Body.(*event.ProcessExec); ok && x.Argv[0] == "bwrap" {
			l.add(e.Proc, &event.Escape{What: "unshare"})
		}
	}
	p.exec("ls").exit()
	want(t, l.judge(), Verified, "")
	// A ring that the witness cannot see into leaves the file side open.
	s := newStranger(t)
	s.events[1].Body.(*event.ObserverAttached).Gaps = []event.Gap{{What: "io_uring", Why: "no hook", Affect: "open"}}
	s.ask("./u")
	s.bash("./u").exec("./u").do(&event.Escape{What: "io_uring"})
	want(t, s.judge(), Indeterminate, "i:escape-attempt/io_uring w:evidence-lost/io_uring")
}

func TestBinaryShadowed(t *testing.T) {
	run := func(argv []string, path, exe string) func(p *proc) {
		return func(p *proc) { p.execAs(event.ProcessExec{Argv: argv, Path: path, Exe: exe}) }
	}
	for _, c := range []struct {
		name, cmd string
		do        func(p *proc)
		findings  string
	}{
		{"the one PATH gives", "tool x", run([]string{"tool", "x"}, "/usr/bin/tool", "/usr/bin/tool"), ""},
		{"python3 is python3.11", "python3 x", run([]string{"python3", "x"}, "/usr/bin/python3", "/usr/bin/python3.11"), ""},
		{"sh is dash", "sh x", run([]string{"sh", "x"}, "/usr/bin/sh", "/usr/bin/dash"), ""},
		{"busybox applet", "vi x", run([]string{"vi", "x"}, "/bin/vi", "/bin/busybox"), ""},
		{"in the workspace", "tool x", run([]string{"tool", "x"}, labWork+"/bin/tool", labWork+"/bin/tool"), "d:binary-shadowed/writable-place"},
		{"in /tmp", "tool x", run([]string{"tool", "x"}, "/tmp/evil/tool", "/tmp/evil/tool"), "d:binary-shadowed/writable-place"},
		{"PATH changed in the text", "PATH=./evil:$PATH tool x", run([]string{"tool", "x"}, "./evil/tool", labWork+"/evil/tool"), "w:binary-shadowed/path-in-text"},
		{"an activated environment", "source .venv/bin/activate && pytest", run([]string{"pytest"}, labWork+"/.venv/bin/pytest", labWork+"/.venv/bin/pytest"), "i:binary-shadowed/folder-in-text"},
		{"a path as typed", "./tool x", run([]string{"./tool", "x"}, "./tool", labWork+"/tool"), ""},
		{"a link of another name", "./ls f", run([]string{"./ls", "f"}, "./ls", "/usr/bin/touch"), "d:binary-shadowed/link"},
		{"a link of a related name", ".venv/bin/python x", run([]string{".venv/bin/python", "x"}, ".venv/bin/python", "/usr/bin/python3.11"), ""},
		{"in a home folder that only the program's own PATH has", "rg x", func(p *proc) {
			p.with("PATH", "/home/dev/.cargo/bin:"+labPath)
			p.execAs(event.ProcessExec{Argv: []string{"rg", "x"}, Path: "/home/dev/.cargo/bin/rg", Exe: "/home/dev/.cargo/bin/rg"})
		}, "w:binary-shadowed/writable-place"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := one(t, c.cmd, c.do)
			if codes(r) != c.findings {
				t.Errorf("got [%s] want [%s]\n%s", codes(r), c.findings, brief(r))
			}
		})
	}
	// A folder of the workspace that is on the user's own PATH is the user's own choice.
	l := newLab(t, "python3", "agent.py")
	l.events[0].Body.(*event.SessionStart).SearchDir = labWork + "/good:" + labPath
	s := &stranger{lab: l}
	s.ask("tool x")
	s.bash("tool x").execAs(event.ProcessExec{Argv: []string{"tool", "x"}, Path: labWork + "/good/tool", Exe: labWork + "/good/tool"})
	want(t, s.judge(), Verified, "")
	// Unless something in this session put the file there.
	l = newLab(t, "python3", "agent.py")
	l.events[0].Body.(*event.SessionStart).SearchDir = labWork + "/good:" + labPath
	s = &stranger{lab: l}
	s.ask("make")
	s.bash("make").exec("make").open(labWork+"/good/git", wronly, creat)
	s.ask("git push")
	s.bash("git push").execAs(event.ProcessExec{Argv: []string{"git", "push"}, Path: labWork + "/good/git", Exe: labWork + "/good/git"})
	want(t, s.judge(), Discrepancy, "d:binary-shadowed/planted")
	// The same name, the same PATH, another file.
	s = newStranger(t)
	s.ask("git log")
	s.bash("git log").execAs(event.ProcessExec{Argv: []string{"git", "log"}, Path: "/usr/bin/git", Exe: "/usr/bin/git", ExeDev: 1, ExeIno: 1})
	s.ask("git push")
	s.bash("git push").execAs(event.ProcessExec{Argv: []string{"git", "push"}, Path: "/usr/local/bin/git", Exe: "/usr/local/bin/git", ExeDev: 1, ExeIno: 2})
	want(t, s.judge(), Discrepancy, "d:binary-shadowed/moved")
	// A copy is known by its bytes.
	s = newStranger(t)
	s.ask("./notrm victim")
	s.add(nil, &event.FileDigest{Path: "/usr/bin/rm", Dev: 1, Ino: 5, SHA256: "aa", At: "exe"})
	s.add(nil, &event.FileDigest{Path: labWork + "/notrm", Dev: 1, Ino: 9, SHA256: "aa", At: "exe"})
	s.bash("./notrm victim").execAs(event.ProcessExec{Argv: []string{"./notrm", "victim"}, Path: "./notrm", Exe: labWork + "/notrm", ExeDev: 1, ExeIno: 9})
	want(t, s.judge(), Discrepancy, "d:binary-shadowed/copy")
}

// A script approved by its name must be the file it was.
func TestScripts(t *testing.T) {
	script := labWork + "/run.sh"
	start := func(t *testing.T, before, after string, between func(s *stranger)) *Report {
		s := newStranger(t)
		s.askOnly("./run.sh")
		d := s.prompt("unknown", "./run.sh")
		s.add(nil, &event.FileDigest{Path: script, Dev: 1, Ino: 42, SHA256: before, At: "prompt", For: d.seq})
		d.grant()
		between(s)
		p := s.bash("./run.sh")
		p.execAs(event.ProcessExec{Argv: []string{"/bin/sh", "./run.sh"}, Path: "./run.sh", Interp: "/bin/sh", Exe: "/usr/bin/dash"})
		s.add(nil, &event.FileDigest{Path: script, Dev: 1, Ino: 42, SHA256: after, At: "exec", For: s.lastSeq()})
		p.exit()
		return s.judge()
	}
	nothing := func(*stranger) {}
	want(t, start(t, "aa", "aa", nothing), Verified, "")
	want(t, start(t, "aa", "bb", nothing), Discrepancy, "d:exec-differs/script-changed")
	want(t, start(t, "aa", "", nothing), Indeterminate, "w:evidence-lost/script-unread")
	// Written and put back: the digests agree, the open gives it away.
	want(t, start(t, "aa", "aa", func(s *stranger) {
		s.root.do(&event.FileOpen{Path: script, Flags: []string{wronly}, Dev: 1, Ino: 42, Count: 1})
	}), Discrepancy, "d:exec-differs/script-rewritten")
	want(t, start(t, "aa", "aa", func(s *stranger) {
		s.root.do(&event.FileRename{From: labWork + "/new", To: script, How: "rename"})
	}), Discrepancy, "d:exec-differs/script-rewritten")
	want(t, start(t, "aa", "aa", func(s *stranger) { s.root.open(script, rdonly) }), Verified, "")
	// A file that is only data may change; one that an interpreter runs may not.
	for cmd, findings := range map[string]string{"rm victim": "", "python3 victim": "d:exec-differs/script-changed", "bash -e victim": "d:exec-differs/script-changed", "cat victim": ""} {
		s := newStranger(t)
		s.askOnly(cmd)
		d := s.prompt("unknown", cmd)
		s.add(nil, &event.FileDigest{Path: labWork + "/victim", Dev: 1, Ino: 42, SHA256: "aa", At: "prompt", For: d.seq})
		d.grant()
		s.bash(cmd).exec(strings.Fields(cmd)...)
		s.add(nil, &event.FileDigest{Path: labWork + "/victim", SHA256: "bb", At: "exec", For: s.lastSeq()})
		if r := s.judge(); codes(r) != findings {
			t.Errorf("%s: %s", cmd, brief(r))
		}
	}
}

func TestRuleExceeded(t *testing.T) {
	for _, c := range []struct {
		rule, cmd string
		do        func(p *proc)
		findings  string
	}{
		{"allow sed *", "sed -n '1e touch e1' f", func(p *proc) {
			p.exec("sed", "-n", "1e touch e1", "f").spawn("sh", "-c", "touch e1").exec("touch", "e1")
		}, "d:rule-exceeded"},
		{"allow sed *", "sed -n 1p f", func(p *proc) { p.exec("sed", "-n", "1p", "f") }, ""},
		{"allow git *", "git -c alias.z='!bar' z", func(p *proc) { p.exec("git", "-c", "alias.z=!bar", "z").spawn("bar") }, "d:rule-exceeded"},
		{"allow git *", "git commit -m x", func(p *proc) { p.exec("git", "commit", "-m", "x").spawn("git", "maintenance", "run", "--auto") }, ""},
		{"allow make *", "make", func(p *proc) { p.exec("make").spawn("cc") }, ""},
		{"allow rg *", "rg --pre bar x", func(p *proc) { p.exec("rg", "--pre", "bar", "x").spawn("bar", "f") }, "d:rule-exceeded"},
	} {
		s := newStranger(t)
		s.add(nil, policy(c.rule))
		s.askOnly(c.cmd)
		p := s.bash(c.cmd)
		c.do(p)
		if r := s.judge(); codes(r) != c.findings {
			t.Errorf("%s, %s: got [%s] want [%s]\n%s", c.rule, c.cmd, codes(r), c.findings, brief(r))
		}
	}
}

func TestRuleSelfGranted(t *testing.T) {
	rule := func(at string) *event.RulesLoaded {
		return &event.RulesLoaded{Agent: "codex", Path: "/home/dev/.codex/rules/default.rules", Level: "user", At: at, Rules: []event.Rule{{ID: "r1", Decision: "allow", Words: [][]string{{"git"}, {"status"}}}}}
	}
	l, _ := codexLab(t)
	l.add(nil, rule("change"))
	want(t, l.judge(), Discrepancy, "d:rule-self-granted/new-rule")
	// It was there before.
	l, _ = codexLab(t)
	l.add(nil, rule("start"))
	l.add(nil, rule("change"))
	want(t, l.judge(), Verified, "")
	// You said "always".
	l, c := codexLab(t)
	l.call("codex", "call_1", "git status")
	l.prompt("codex", "git status").grant(func(g *event.ApprovalGranted) { g.Decision, g.Prefix = event.DecisionAlways, []string{"git", "status"} })
	codexRun(c, "call_1", "git status").exec("git", "status").exit()
	l.add(nil, rule("change"))
	want(t, l.judge(), Verified, "")
	// You said "always" to something else.
	l, c = codexLab(t)
	l.call("codex", "call_1", "npm test")
	l.prompt("codex", "npm test").grant(func(g *event.ApprovalGranted) { g.Decision, g.Prefix = event.DecisionAlways, []string{"npm", "test"} })
	codexRun(c, "call_1", "npm test").exec("npm", "test").exit()
	l.add(nil, rule("change"))
	want(t, l.judge(), Discrepancy, "d:rule-self-granted/new-rule")
}

func TestNetBypass(t *testing.T) {
	for _, c := range []struct {
		remote, err string
		proxied     bool
		findings    string
	}{
		{"93.184.216.34:443", "EINPROGRESS", true, "w:net-bypass/tcp"},
		{"93.184.216.34:443", "ECONNREFUSED", true, "w:net-bypass/attempt"},
		{"127.0.0.1:18080", "", true, ""}, {"[::1]:80", "", true, ""}, {"10.0.0.1:53", "", true, ""}, {"93.184.216.34:443", "", false, ""},
	} {
		l := newLab(t)
		if c.proxied {
			l.root.env["HTTPS_PROXY"] = "http://127.0.0.1:18080"
		}
		l.events[0].Body.(*event.SessionStart).Command = []string{"python3", "agent.py"}
		l.add(&l.root.key, &event.ProcessFork{Parent: l.root.parent})
		l.root.exec("python3", "agent.py")
		s := &stranger{lab: l}
		s.ask("curl u")
		res := int32(0)
		if c.err != "" {
			res = -1
		}
		s.bash("curl u").exec("curl", "u").do(&event.NetConnect{Family: "inet", Proto: "tcp", Remote: c.remote, Result: res, Error: c.err})
		if r := s.judge(); codes(r) != c.findings || r.Verdict != Verified {
			t.Errorf("%+v: %s\n%s", c, codes(r), brief(r))
		}
	}
}

// A file without a name (O_TMPFILE) lies nowhere; a name that only looks so does.
func TestUnnamedFile(t *testing.T) {
	for _, c := range []struct {
		name, want string
	}{{"#8642", ""}, {"#8643", "w:write-outside"}} {
		l, root := claudeLab(t)
		l.call("claude", "toolu_1", "sh x.sh", bash)
		l.prompt("claude", "sh x.sh").grant()
		p := claudeRun(root, "2.1.332", "sh x.sh")
		p.exec("sh", "x.sh")
		p.do(&event.FileOpen{Path: "/srv/other/" + c.name, Flags: []string{"O_RDWR", "O_CREAT"}, Created: true, Ino: 8642, Count: 1})
		p.exit()
		want(t, l.judge(), Verified, c.want)
	}
}

// A sandbox builds a root of its own before the command: none of that is the command's doing. What the command
// writes from inside is.
func TestSandboxBuildsRoot(t *testing.T) {
	for _, c := range []struct {
		by   string
		want Verdict
	}{{"bwrap", Verified}, {"make", Discrepancy}} {
		l, root := codexLab(t)
		l.mode("codex", "on-request", "workspace-write")
		p := root.fork()
		p.exec("/opt/codex/bin/bwrap", "--tmpfs", "/", "--", "/bin/bash", "-c", "make")
		if c.by == "bwrap" {
			p.open("/newroot/dev/null", "O_WRONLY", "O_CREAT")
		}
		p.exec("/bin/bash", "-c", "make")
		m := p.spawn("make")
		if c.by == "make" {
			m.open("/srv/elsewhere", "O_WRONLY", "O_CREAT")
		}
		m.exit()
		p.exit()
		if r := l.judge(); r.Verdict != c.want {
			t.Errorf("%s: %s", c.by, brief(r))
		}
	}
}
