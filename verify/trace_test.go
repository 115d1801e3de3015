package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

// testdata/traces holds execve traces of real runs of released assistants, one exec a line: PID PPID
// PATH ARGV [MARKERS OF THE ENVIRONMENT]. Parents were put in by hand (execve does not show them); the
// 20 KB of text that Codex puts before a command are written as @PREAMBLE@ and the command.
type trace struct {
	*lab
	procs map[string]*proc
}

var traceLine = regexp.MustCompile(`^(\d+) (\d+) (\S+) (\[.*\])((?: \w+=\S*)*)$`)

// replay turns a trace into a session; before is called ahead of the exec that carries a command.
func replay(t *testing.T, file string, before func(tr *trace, cmd string)) *trace {
	t.Helper()
	b, err := os.ReadFile("testdata/traces/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var tr *trace
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if line[0] == '#' {
			continue
		}
		m := traceLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a trace line: %.80s", line)
		}
		pid, ppid, path := m[1], m[2], m[3]
		var argv []string
		if err := json.Unmarshal([]byte(m[4]), &argv); err != nil {
			t.Fatalf("%v in %.80s", err, line)
		}
		if tr == nil {
			tr = &trace{lab: newLab(t), procs: map[string]*proc{}}
			tr.events[0].Body.(*event.SessionStart).Command = argv
			tr.add(&tr.root.key, &event.ProcessFork{Parent: tr.root.parent})
			tr.procs[pid] = tr.root
		}
		cmd := ""
		if i := len(argv) - 1; strings.HasPrefix(argv[i], "@PREAMBLE@") {
			cmd = strings.TrimPrefix(argv[i], "@PREAMBLE@")
			argv[i] = snapshotPreamble(cmd)
		}
		p := tr.procs[pid]
		if p == nil {
			if tr.procs[ppid] == nil {
				t.Fatalf("no parent for %.80s", line)
			}
			if before != nil {
				carried := cmd
				if n := len(argv); n > 3 && argv[1] == "--codex-run-as-process-setup" && cmd == "" {
					carried = argv[n-1] // a shell without a snapshot
				}
				before(tr, carried)
			}
			p = tr.procs[ppid].fork()
			tr.procs[pid] = p
		}
		for _, kv := range strings.Fields(m[5]) {
			k, v, _ := strings.Cut(kv, "=")
			p.with(k, v)
		}
		p.execAs(asKernel(tr, path, argv))
	}
	return tr
}

// asKernel is what the kernel says of an execve: the file it mapped, and a script's interpreter in
// argv.
func asKernel(tr *trace, path string, argv []string) event.ProcessExec {
	x := event.ProcessExec{Argv: argv, Path: path, Exe: exeOf(path)}
	assistantExe := ""
	if tr.root.last != nil {
		assistantExe = tr.root.last.Exe
	}
	switch {
	case strings.Contains(path, "/.pyenv/shims/") || strings.Contains(path, "/.pyenv/libexec/"):
		x.Interp, x.Exe = "/usr/bin/env", "/usr/bin/env"
		x.Argv = append([]string{"/usr/bin/env", "bash", path}, argv[1:]...)
	case argv[0] == "bwrap":
		x.Exe = "/opt/codex/codex-resources/bwrap"
	case strings.HasPrefix(path, "/proc/self/"), strings.HasSuffix(path, "/codex-linux-sandbox"):
		x.Exe = assistantExe
	}
	return x
}

func kinds(r *Report) map[string]int {
	m := map[string]int{}
	for _, h := range r.Housekeeping {
		m[h.Kind]++
	}
	return m
}

func commands(r *Report) []string {
	var out []string
	for _, a := range r.Actions {
		out = append(out, a.Command+" ["+a.Allowed.Source+"]")
	}
	return out
}

// Real runs, with the answers that were given: everything is either an allowed action, all of whose
// programs are explained, or recognised as the assistant's own.
func TestTraces(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string
		keep map[string]int
	}{
		{"codex-0.171-3.txt", []string{
			"touch /home/dev/app/rye-a && ls -l /home/dev/app/rye-a [terminal]", "git status --short [terminal]", "python3 - <<'PY'\nprint('hello')\nPY [terminal]",
			"echo " + strings.Repeat("a", 120) + " > /dev/null [terminal]",
			`git log --oneline -1; rm -rf /home/dev/app/build && echo 'it'"'"'s done' | tee x.log [terminal]`,
			"curl -sS https://example.com/a/very/long/path/that/goes/on/and/on/and/on/file.tar.gz -o out.tgz [terminal]",
			"echo \"$HOME\" `id -u` 'quoted arg' \"dq\" [terminal]",
		}, map[string]int{"assistant": 1, "git-status": 16, "plugin-check": 1, "shell-snapshot": 2}},
		{"codex-0.171-4.txt", []string{
			"echo usershell; id -u [terminal]", "touch /srv/outside/x.txt [mode]", "rm -rf /home/dev/app/zzz [mode]", "tty; stty size; echo done [mode]", "cat [terminal]",
			"echo one && cd /home/dev/app && make -n && printf '%s\\n' two [terminal]", "git diff [terminal]", "git status -s && git log --oneline [mode]", "git status -s [terminal]",
		}, map[string]int{"assistant": 1, "git-status": 20, "plugin-check": 1, "shell-snapshot": 2, "sandbox-probe": 4, "edit-helper": 1}},
		{"codex-0.171-5.txt", []string{
			"touch /home/dev/app/d1 && ps -o pid,ppid,pgid,sid,tty,args -p $$ && cat /proc/$PPID/stat | cut -d' ' -f1-8 [terminal]", "echo sandboxed [mode]",
		}, map[string]int{"assistant": 1, "assistant-self": 5, "daemon-check": 2, "git-status": 16, "plugin-check": 1, "shell-snapshot": 2, "sandbox-probe": 1}},
		{"claude-1.0.60.txt", []string{"ls -la && git status --short | head -5 [rule]"}, map[string]int{"assistant": 1, "git-status": 7, "shell-snapshot": 1, "file-search": 1, "system-info": 6}},
		{"claude-1.0.128.txt", []string{"ls -la && git status --short | head -5 [rule]"}, nil},
		{"claude-2.0.0-pipe.txt", []string{"echo hi | python3 -c 'import sys;print(sys.stdin.read())' [rule]"}, nil},
		{"claude-2.0.76.txt", []string{"ls -la && git status --short | head -5 [rule]"}, nil},
		{"claude-2.1.20-heredoc.txt", []string{"git commit --allow-empty -m \"$(cat <<'EOF'\nSubject line\n\nBody line one\nEOF\n)\" [rule]"}, nil},
		{"claude-2.1.112.txt", []string{"ls -la && git status --short | head -5 [rule]"}, nil},
		{"claude-2.1.332-search.txt", []string{"grep -rn hello . ; find . -name '*.py' ; rg -n hello [rule]"}, nil},
		{"claude-2.1.332-alias.txt", []string{"ll; myfn; echo $FROM_BASHRC [rule]"}, nil},
		{"claude-2.1.332-timeout.txt", []string{"timeout 5 nice -n 5 sleep 0.1 && xargs echo < hello.py [rule]"}, nil},
		{"claude-2.1.332-hooks.txt", []string{"echo hi | python3 -c 'import sys;print(sys.stdin.read())' [rule]"}, map[string]int{
			"assistant": 1, "git-status": 9, "hook": 5, "mcp-server": 1, "shell-environment": 1, "shell-snapshot": 1}},
	} {
		t.Run(c.file, func(t *testing.T) {
			tr := replay(t, c.file, func(tr *trace, cmd string) {
				if cmd != "" && !strings.Contains(fmt.Sprint(c.want), cmd+" [mode]") {
					tr.prompt("codex", cmd).grant()
				}
				if strings.HasPrefix(c.file, "codex") && len(tr.events) < 8 {
					tr.mode("codex", "on-request", "workspace-write")
				}
			})
			r := tr.judge()
			if !slices.Equal(commands(r), c.want) || r.Verdict != Verified {
				t.Errorf("got %q\nwant %q\n%s", commands(r), c.want, brief(r))
			}
			if got := kinds(r); c.keep != nil && !maps.Equal(got, c.keep) {
				t.Errorf("housekeeping %v, want %v", got, c.keep)
			}
			for _, h := range r.Housekeeping {
				if h.Presumed && h.Kind != "mcp-server" {
					t.Errorf("only presumed: %+v", h)
				}
			}
		})
	}
}
