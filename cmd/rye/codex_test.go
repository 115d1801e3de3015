package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/report"
	"github.com/ryehq/rye/verify"
)

// A lab is a home folder, a project and a state folder of their own for one wrapped assistant.
type lab struct {
	t             testing.TB
	rye           string
	home, project string
	ryeHome       string
	env           []string
}

func newLab(t testing.TB) *lab {
	t.Helper()
	// Not below /tmp: Codex lets commands write there, and makes less of a state folder in it.
	base, err := os.MkdirTemp("/var/tmp", "rye-lab-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	l := &lab{t: t, rye: testutil.Rye(t), home: filepath.Join(base, "home"), project: filepath.Join(base, "app"), ryeHome: filepath.Join(base, "rye")}
	for _, d := range []string{l.home, l.project, l.ryeHome} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", l.project).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	l.env = []string{
		"HOME=" + l.home, "RYE_HOME=" + l.ryeHome, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash",
		"USER=root", "GIT_CONFIG_NOSYSTEM=1",
	}
	return l
}

func (l *lab) file(name, text string) string {
	l.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(l.project, name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		l.t.Fatal(err)
	}
	return name
}

// ryeCmd is a rye command in the project.
func (l *lab) ryeCmd(args ...string) *exec.Cmd {
	cmd := exec.Command(l.rye, args...)
	cmd.Dir, cmd.Env = l.project, l.env
	return cmd
}

// verdict is rye verify --json of the last session.
func (l *lab) verdict() *verify.Report {
	l.t.Helper()
	out, err := l.ryeCmd("verify", "last", "--json").Output()
	var r verify.Report
	if e := json.Unmarshal(out, &r); e != nil {
		l.t.Fatalf("rye verify: %v, %v\n%s", err, e, out)
	}
	want := r.Verdict.ExitCode()
	got := 0
	if err != nil {
		got = err.(*exec.ExitError).ExitCode()
	}
	if got != want {
		l.t.Errorf("rye verify says %s and exits %d", r.Verdict, got)
	}
	return &r
}

// codex sets a real Codex up for a scripted model and returns its command line.
func (l *lab) codex(m *testutil.Model, args ...string) []string {
	l.t.Helper()
	bin := testutil.Assistant(l.t, "codex")
	home := filepath.Join(l.home, ".codex")
	l.env = append(l.env, "CODEX_HOME="+home, "FAKE_KEY=x")
	l.file(filepath.Join(home, "config.toml"), fmt.Sprintf(`model = "gpt-5"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = %q
env_key = "FAKE_KEY"
wire_api = "responses"
[projects.%q]
trust_level = "trusted"
[analytics]
enabled = false
`, m.URL+"/v1", l.project))
	return append([]string{bin}, args...)
}

func find(r *verify.Report, command string) *verify.Action {
	for i := range r.Actions {
		if strings.Contains(r.Actions[i].Command, command) {
			return &r.Actions[i]
		}
	}
	return nil
}

func show(t testing.TB, r *verify.Report) {
	t.Helper()
	var b strings.Builder
	report.Text(&b, r, report.Style{Width: 200})
	t.Logf("%s", &b)
}

const quit = "\x03"

func TestPrivCodexApproved(t *testing.T) {
	testutil.Privileged(t)
	for _, daemon := range []bool{false, true} {
		t.Run(fmt.Sprintf("daemon=%v", daemon), func(t *testing.T) {
			l := newLab(t)
			target := filepath.Join(l.home, "one")
			m := testutil.NewModel(t, "!touch "+target)
			args := []string{"wrap", "--"}
			codex := l.codex(m, "do it")
			if !daemon {
				codex = l.codex(m, "--no-daemon", "do it")
			}
			defer l.stopDaemon()
			testutil.Drive(t, l.ryeCmd(append(args, codex...)...), 100, 40, []testutil.Key{
				{Wait: "Would you like to run the following command?", Send: "y"},
				{Wait: "DONE", Send: quit, Pause: time.Second},
				{Wait: "", Send: quit, Pause: 500 * time.Millisecond},
			})
			if _, err := os.Stat(target); err != nil {
				t.Fatal("the command did not run")
			}
			r := l.verdict()
			a := find(r, "touch "+target)
			if a == nil || a.Verdict != verify.Verified || a.Link != "CODEX_TOOL_CALL_ID" || a.Allowed.Source != "terminal" || a.Allowed.Type != "this_time" {
				show(t, r)
				t.Fatalf("action %+v", a)
			}
			if r.Verdict != verify.Verified {
				show(t, r)
			}
		})
	}
}

// stopDaemon ends a Codex daemon that belongs to this lab.
func (l *lab) stopDaemon() {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		exe, err := os.Readlink("/proc/" + e.Name() + "/exe")
		if err == nil && strings.HasPrefix(exe, l.home+"/") {
			var pid int
			if _, err := fmt.Sscan(e.Name(), &pid); err == nil {
				if p, err := os.FindProcess(pid); err == nil {
					p.Kill()
				}
			}
		}
	}
}
