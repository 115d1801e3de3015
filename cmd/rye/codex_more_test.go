package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/verify"
)

// leave quits a full-screen assistant.
func leave(wait string) []testutil.Key {
	return []testutil.Key{{Wait: wait, Send: quit, Pause: time.Second}, {Wait: "", Send: quit, Pause: 500 * time.Millisecond}}
}

func codes(r *verify.Report) string {
	var s []string
	for _, f := range r.Findings {
		s = append(s, string(f.Severity)+":"+f.Code)
	}
	return strings.Join(s, " ")
}

func hasFinding(r *verify.Report, code string) bool {
	for _, f := range r.Findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

func (l *lab) wrapCodex(m *testutil.Model, cols int, keys ...testutil.Key) *verify.Report {
	l.t.Helper()
	codex := l.codex(m, "--no-daemon", "do it")
	testutil.Drive(l.t, l.ryeCmd(append([]string{"wrap", "--"}, codex...)...), cols, 40, keys)
	return l.verdict()
}

func TestPrivCodexDenied(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	victim := l.file(filepath.Join(l.home, "precious"), "x")
	m := testutil.NewModel(t, "!rm -rf "+victim)
	r := l.wrapCodex(m, 100, append([]testutil.Key{{Wait: "Would you like to run the following command?", Send: "\x1b"}}, leave("canceled the request")...)...)
	if _, err := os.Stat(victim); err != nil {
		t.Fatal("a denied command ran")
	}
	if a := find(r, "rm -rf"); a != nil && a.Root != nil || r.Verdict != verify.Verified || hasFinding(r, verify.DeniedButRan) {
		show(t, r)
		t.Errorf("verdict %s, findings %s", r.Verdict, codes(r))
	}
}

// The script is what the user looked at when the dialog came; another one runs.
func TestPrivCodexScriptRewritten(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	script := l.file("job.sh", "#!/bin/sh\necho harmless\n")
	m := testutil.NewModel(t, "!sh job.sh")
	r := l.wrapCodex(m, 100, append([]testutil.Key{{
		Wait: "Would you like to run the following command?", Send: "y", Pause: time.Second,
		Do: func() { os.WriteFile(script, []byte("#!/bin/sh\ntouch evil\n"), 0o755) },
	}}, leave("DONE")...)...)
	if _, err := os.Stat(filepath.Join(l.project, "evil")); err != nil {
		t.Fatal("the rewritten script did not run")
	}
	a := find(r, "sh job.sh")
	if a == nil || a.Verdict == verify.Verified || !hasFinding(r, verify.ExecDiffers) {
		show(t, r)
		t.Fatalf("action %+v, findings %s", a, codes(r))
	}
}

// Codex shortens a long command in its decision row. The dialog showed all of it, and that is what counts.
func TestPrivCodexLongCommand(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	command := "printf '%s\\n' aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa > long.txt && touch tail-end"
	m := testutil.NewModel(t, "!"+command)
	r := l.wrapCodex(m, 60, append([]testutil.Key{{Wait: "Would you like to run the following command?", Send: "y"}}, leave("DONE")...)...)
	a := find(r, "tail-end")
	if a == nil || a.Command != command || a.Verdict != verify.Verified {
		show(t, r)
		t.Fatalf("action %+v", a)
	}
}

func TestPrivCodexAlwaysThenRule(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "!git tag one", "!git tag one -f")
	r := l.wrapCodex(m, 100, append([]testutil.Key{{Wait: "Would you like to run the following command?", Send: "p"}}, leave("DONE")...)...)
	out, err := l.ryeCmd("show", "--json", "--type", "approval.granted").Output()
	if err != nil || strings.Count(string(out), `"decision":"always_rule_match"`) != 1 || strings.Count(string(out), `"decision":"always"`) != 1 {
		t.Errorf("granted: %v\n%s", err, out)
	}
	first, second := find(r, "git tag one"), find(r, "git tag one -f")
	if first == nil || first.Allowed.Type != "always" || first.Verdict != verify.Verified {
		show(t, r)
		t.Fatalf("first %+v", first)
	}
	if second == nil || second.Allowed.Type != "always_rule_match" || second.Allowed.ApprovalID != first.Allowed.ApprovalID || second.Verdict != verify.Verified {
		show(t, r)
		t.Fatalf("second %+v", second)
	}
}

// A daemon that an earlier, unwrapped session started runs the command; nothing of it descends from rye.
func TestPrivCodexEarlierDaemon(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	defer l.stopDaemon()
	first := testutil.NewModel(t)
	codex := l.codex(first, "say done")
	plain := exec.Command(codex[0], codex[1:]...)
	plain.Dir, plain.Env = l.project, l.env
	testutil.Drive(t, plain, 100, 40, leave("DONE"))
	if n := l.daemons(); n == 0 {
		t.Skip("this Codex started no daemon")
	}
	target := filepath.Join(l.home, "by-daemon")
	first.Steps("!touch " + target) // the daemon keeps the model it was started with
	testutil.Drive(t, l.ryeCmd(append([]string{"wrap", "--"}, l.codex(first, "do it")...)...), 100, 40,
		append([]testutil.Key{{Wait: "Would you like to run the following command?", Send: "y"}}, leave("DONE")...))
	if _, err := os.Stat(target); err != nil {
		t.Fatal("the command did not run")
	}
	out, err := l.ryeCmd("show", "--json", "--type", "process.adopted").Output()
	if err != nil || !strings.Contains(string(out), `"reason":"assistant-daemon"`) {
		t.Fatalf("not adopted: %v\n%s", err, out)
	}
	r := l.verdict()
	a := find(r, "touch "+target)
	if a == nil || a.Verdict != verify.Verified || a.Link != "CODEX_TOOL_CALL_ID" {
		show(t, r)
		t.Fatalf("action %+v", a)
	}
}

// daemons counts the processes that run from this lab's home.
func (l *lab) daemons() (n int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%s/exe", e.Name())); err == nil && strings.HasPrefix(exe, l.home+"/") {
			n++
		}
	}
	return n
}
