package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/verify"
)

// seen is what a look saw, one a file: name, level, at, then rules.
func seen(list []event.Event) []string {
	out := []string{}
	for _, e := range list {
		r := e.Body.(*event.RulesLoaded)
		if r.Level == "managed" { // whatever this machine has
			continue
		}
		s := filepath.Base(r.Path) + " " + r.Level + " " + r.At
		for _, x := range r.Rules {
			s += " " + x.Decision + " " + x.Tool + " " + x.Pattern
			for _, w := range x.Words {
				s += strings.Join(w, "|")
			}
		}
		if r.Error != "" {
			s += " error: " + r.Error
		}
		if r.Note != "" && len(r.Rules) == 0 && r.Error == "" {
			s += " note: " + r.Note
		}
		out = append(out, s)
	}
	return out
}

func TestRuleFiles(t *testing.T) {
	base := t.TempDir()
	home, project := filepath.Join(base, "home"), filepath.Join(base, "app")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", filepath.Join(base, "codex"))
	sub := filepath.Join(project, "sub")
	put := func(path, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(home, ".claude/settings.json"), `{"permissions":{"allow":["Edit"]}}`)
	local := put(filepath.Join(project, ".claude/settings.local.json"), `{}`)
	put(filepath.Join(base, "codex/rules/default.rules"), `prefix_rule(pattern=["ls"])`)
	put(filepath.Join(base, "codex/rules/notes.txt"), `no rules`)
	put(filepath.Join(project, ".codex/rules/a.rules"), `prefix_rule(pattern=["id"])`)
	w := newRuleFiles(&event.SessionStart{Home: home, CWD: sub, Workspace: project, Command: []string{"claude", "--settings", `{"permissions":{"deny":["Read"]}}`}})
	want := func(got []event.Event, want ...string) {
		t.Helper()
		if s := seen(got); len(want)+len(s) > 0 && !reflect.DeepEqual(s, want) {
			t.Errorf("got  %q\nwant %q", s, want)
		}
	}
	want(w.start(), "settings.json user start allow Edit ", "default.rules user start allow command ls", "settings.local.json local start",
		"a.rules project start allow command id", "--settings command-line start deny Read ")
	want(w.look("change"))

	put(local, `{"permissions":{"allow":["Bash(id)"]}}`)
	put(filepath.Join(sub, ".claude/settings.json"), `{"permissions":{"allow":["Read"]}}`)
	want(w.look("change"), "settings.json project change allow Read ", "settings.local.json local change allow Bash id")

	// Written again with the same words: nothing new.
	put(local, `{"permissions":{"allow":["Bash(id)"]}}`)
	want(w.look("change"))

	os.Remove(filepath.Join(base, "codex/rules/default.rules"))
	want(w.look("change"), "default.rules user change note: the file is gone")
	want(w.look("change"))

	// A pipe in its place is not waited for, and not read twice.
	os.Remove(local)
	if err := unix.Mkfifo(local, 0o644); err != nil {
		t.Fatal(err)
	}
	want(w.look("change"), "settings.local.json local change error: not read by rye: not a regular file")
	want(w.look("change"))

	for path, quick := range map[string]bool{local: true, filepath.Join(base, "codex/rules/new.rules"): true, filepath.Join(project, "main.go"): false} {
		w.quick.Store(0)
		if w.touched(path); w.due(0) != quick {
			t.Errorf("touched(%s): a look at once is %v", path, !quick)
		}
	}
}

func TestChain(t *testing.T) {
	a := &verify.Action{ID: "x1", Asked: &verify.Asked{Records: []uint64{5}}, Allowed: verify.Allowed{Records: []uint64{3, 4}},
		Root: &verify.Root{TGID: 10, StartNS: 1, Seq: 6}, Execs: []verify.Exec{{TGID: 10, StartNS: 1, Seq: 6, Relation: verify.Named}, {TGID: 11, StartNS: 2, Seq: 7, Relation: verify.Descendant}},
		Findings: []int{1}}
	r := &verify.Report{Actions: []verify.Action{*a}, Findings: []verify.Finding{{Records: []uint64{90}}, {Records: []uint64{7, 8}}}}
	c := chainOf(r, a)
	want := map[uint64]string{3: "allowed", 4: "allowed", 5: "asked", 6: "ran", 7: "descendant", 8: "finding"}
	if !reflect.DeepEqual(c.role, want) {
		t.Errorf("roles %v", c.role)
	}
	for _, x := range []struct {
		proc event.ProcessKey
		body event.Body
		want bool
	}{
		{event.ProcessKey{TGID: 11, StartNS: 2}, &event.FileOpen{Path: "/a", Flags: []string{"O_WRONLY"}}, true},
		{event.ProcessKey{TGID: 11, StartNS: 2}, &event.FileOpen{Path: "/a", Flags: []string{"O_RDONLY"}}, false},
		{event.ProcessKey{TGID: 11, StartNS: 2}, &event.FileOpen{Path: "/a", Flags: []string{"O_WRONLY"}, Result: -13}, false},
		{event.ProcessKey{TGID: 11, StartNS: 3}, &event.FileDelete{Path: "/a"}, false}, // the pid again, another process
		{event.ProcessKey{TGID: 10, StartNS: 1}, &event.NetConnect{Remote: "10.0.0.1:80"}, true},
	} {
		e := event.New(1, &x.proc, x.body)
		if got := c.effect(&e); got != x.want {
			t.Errorf("%+v by %v: effect %v", x.body, x.proc, got)
		}
	}
	if _, err := findAction(r, "x9"); err == nil || !strings.Contains(err.Error(), "x1") {
		t.Errorf("x9: %v", err)
	}
}

// Whether the project's git has a file is read from its index, without git.
func TestSharedByGit(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git %v: %v %s", args, err, out)
		}
	}
	file := filepath.Join(root, ".claude/settings.json")
	os.MkdirAll(filepath.Dir(file), 0o755)
	os.WriteFile(file, []byte("{}"), 0o644)
	os.WriteFile(filepath.Join(root, ".claude/settings.local.json"), []byte("{}"), 0o644)
	want := func(path, want string) {
		t.Helper()
		if got := sharedByGit(root, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	want(file, "no")
	git("init", "-q")
	want(file, "no")
	git("add", ".claude/settings.json")
	want(file, "yes")
	want(filepath.Join(root, ".claude/settings.local.json"), "no")
	want("/etc/claude-code/managed-settings.json", "no")
	want("--settings", "no")
	git("update-index", "--index-version", "4")
	want(file, "unknown")
}
