package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/verify"
)

// events reads the last session with rye show --json.
func (l *lab) events(session string) []event.Event {
	l.t.Helper()
	out, err := l.ryeCmd("show", session, "--json").Output()
	if err != nil {
		l.t.Fatalf("rye show: %v", err)
	}
	var list []event.Event
	for line := range strings.Lines(string(out)) {
		e, err := event.ParseJSON([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			l.t.Fatalf("%v: %s", err, line)
		}
		list = append(list, e)
	}
	return list
}

func (l *lab) wrap(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	cmd := l.ryeCmd(append([]string{"wrap"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestWrapPassesThrough(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		argv []string
		out  string
		code int
	}{
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 42"}, "out\n", 42},
		{[]string{"sh", "-c", "kill -9 $$"}, "", 137},
		{[]string{"sh", "-c", "kill -TERM $$"}, "", 143},
		{[]string{"true"}, "", 0},
		{[]string{"./none"}, "", 127},
		{[]string{"no-such-program-anywhere"}, "", 127},
		{[]string{l.project}, "", 126},
	} {
		out, errs, code := l.wrap(append([]string{"--"}, c.argv...)...)
		if out != c.out || code != c.code {
			t.Errorf("%v: status %d, output %q; want %d, %q\n%s", c.argv, code, out, c.code, c.out, errs)
		}
		if c.code >= 126 && c.code <= 127 && !strings.Contains(errs, "rye: error:") {
			t.Errorf("%v: no word of why: %q", c.argv, errs)
		}
	}
	if ids, _ := os.ReadDir(filepath.Join(l.ryeHome, "sessions")); len(ids) != 4 {
		t.Errorf("%d sessions recorded, want 4: a command that never started is none", len(ids))
	}
}

func TestPrivMakeIsOneAction(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	l.file("Makefile", "all:\n\t@echo made > out.txt\n\t@ls -l out.txt\n")
	_, errs, code := l.wrap("--name", "built", "--json-summary", "sum.json", "--", "make", "-s")
	if code != 0 || !strings.Contains(errs, "verified · 1 action") {
		t.Fatalf("status %d: %s", code, errs)
	}
	r := l.verdict()
	if len(r.Actions) != 1 || r.Verdict != verify.Verified || r.Actions[0].Allowed.Source != "user-command-line" || r.Actions[0].Root == nil {
		show(t, r)
	}
	var sum struct {
		Session, Dir string
		Verdict      verify.Verdict
		Recorded     bool
	}
	b, err := os.ReadFile(filepath.Join(l.project, "sum.json"))
	if err != nil || json.Unmarshal(b, &sum) != nil || sum.Verdict != verify.Verified || !sum.Recorded {
		t.Errorf("summary %+v, %v", sum, err)
	}
	// By name, by prefix, by folder: the same session.
	for _, what := range []string{"built", sum.Session[:15], sum.Dir} {
		out, err := l.ryeCmd("verify", what, "--json").Output()
		if err != nil || !strings.Contains(string(out), sum.Session) {
			t.Errorf("rye verify %s: %v", what, err)
		}
	}
}

// A child that leaves the cgroup, double-forks, calls setsid and outlives the command stays recorded, and is
// named when it is still there at the end.
func TestPrivStraggler(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	l.file("leave.py", `
import os, sys, time
mnt = sys.argv[1]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.makedirs(mnt + '/rye-test-elsewhere', exist_ok=True)
        open(mnt + '/rye-test-elsewhere/cgroup.procs', 'w').write('0')
        time.sleep(float(sys.argv[2]))
        open('late.txt', 'w').write('x')
        os.execvp('sleep', ['sleep', sys.argv[3]])
    os._exit(0)
os.wait()
`)
	mnt := testutil.Cgroup2()
	defer os.Remove(mnt + "/rye-test-elsewhere")
	_, errs, code := l.wrap("--wait", "1500ms", "--", "python3", "leave.py", mnt, "0.5", "4")
	if code != 0 {
		t.Fatalf("status %d: %s", code, errs)
	}
	var left, late, slept bool
	var survivors []event.Survivor
	for _, e := range l.events("last") {
		switch b := e.Body.(type) {
		case *event.CgroupLeft:
			left = left || b.Escaped && strings.Contains(b.To, "rye-test-elsewhere")
		case *event.FileOpen:
			late = late || strings.HasSuffix(b.Path, "/late.txt") && b.Created
		case *event.ProcessExec:
			slept = slept || len(b.Argv) == 2 && b.Argv[0] == "sleep"
		case *event.SessionEnd:
			survivors = b.Survivors
		}
	}
	if !left || !late || !slept {
		t.Errorf("cgroup move seen %v, open after it %v, exec after it %v", left, late, slept)
	}
	if len(survivors) != 1 || !strings.HasSuffix(survivors[0].Exe, "/sleep") || survivors[0].Role != roleStraggler {
		t.Errorf("survivors %+v", survivors)
	}
	if !strings.Contains(errs, "still running: 1 process") {
		t.Errorf("summary does not name the survivor: %s", errs)
	}
	if r := l.verdict(); !hasFinding(r, verify.EscapeAttempt) {
		t.Errorf("no %s: %s", verify.EscapeAttempt, codes(r))
	}
	for _, s := range survivors {
		syscall.Kill(int(s.Proc.TGID), syscall.SIGKILL)
	}
	time.Sleep(50 * time.Millisecond)
}

// kill -9 of rye: the ledger opens, what was recorded is provable, the session says it was interrupted.
func TestPrivKilled(t *testing.T) {
	testutil.Privileged(t)
	for _, after := range []time.Duration{700 * time.Millisecond, 1100 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			l := newLab(t)
			cmd := l.ryeCmd("wrap", "--", "sh", "-c", "while :; do ls / >/dev/null; sleep 0.01; done")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			cmd.Process.Kill()
			cmd.Wait()
			ids, err := os.ReadDir(filepath.Join(l.ryeHome, "sessions"))
			if err != nil || len(ids) == 0 {
				t.Skip("killed before the session began") // nothing to lose yet
			}
			if _, err := os.Stat(filepath.Join(l.ryeHome, "sessions", ids[0].Name(), "checkpoint")); err != nil {
				t.Skip("killed before the first record was signed")
			}
			r := l.verdict()
			if !r.Ledger.OK || r.Verdict != verify.Indeterminate || !hasFinding(r, verify.EvidenceLost) {
				t.Errorf("ledger %+v, verdict %s, findings %s", r.Ledger, r.Verdict, codes(r))
			}
			if out, err := l.ryeCmd("sessions").Output(); err != nil || !strings.Contains(string(out), "interrupted") && !strings.Contains(string(out), "running") {
				t.Errorf("rye sessions: %v\n%s", err, out)
			}
			proof := filepath.Join(l.home, "p.json")
			if out, err := l.ryeCmd("prove", "last", "0", "-o", proof).CombinedOutput(); err != nil {
				t.Fatalf("prove: %v %s", err, out)
			}
			if out, err := l.ryeCmd("check-proof", proof, "--key", filepath.Join(l.ryeHome, "ledger.pub")).CombinedOutput(); err != nil || !strings.Contains(string(out), "record 0 is in the ledger") {
				t.Errorf("check-proof: %v %s", err, out)
			}
			l.killTree(t)
		})
	}
}

// killTree ends what a killed rye left behind in this lab.
func (l *lab) killTree(t *testing.T) {
	t.Helper()
	for _, e := range l.events("last") {
		if s, ok := e.Body.(*event.SessionStart); ok && s.PID > 0 {
			syscall.Kill(s.PID, syscall.SIGKILL)
		}
	}
}

func TestPrivFlippedByte(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	l.wrap("-q", "--", "sh", "-c", "true; ls / > /dev/null")
	ids, _ := os.ReadDir(filepath.Join(l.ryeHome, "sessions"))
	path := filepath.Join(l.ryeHome, "sessions", ids[0].Name(), "events.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := l.verdict(); r.Verdict != verify.Verified {
		show(t, r)
		t.Fatal(r.Verdict)
	}
	at := strings.Index(string(b), `"seq":7,`) + 40
	b[at] ^= 1
	os.WriteFile(path, b, 0o600)
	r := l.verdict()
	if r.Ledger.OK || !hasFinding(r, verify.LedgerBroken) || r.Verdict == verify.Verified || !strings.Contains(r.Ledger.Problem, "record 7") {
		show(t, r)
		t.Errorf("ledger %+v", r.Ledger)
	}
}

// Without any capability the command runs all the same, and rye says what is missing and how to get it.
func TestPrivNoCapabilities(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	for _, d := range []string{filepath.Dir(l.home), l.home, l.project, l.ryeHome} {
		if err := os.Chown(d, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(filepath.Dir(l.home), "rye-bin") // the build's own folder may be closed to others
	if out, err := exec.Command("cp", l.rye, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	l.rye = bin
	run := func(args ...string) (string, int) {
		cmd := l.ryeCmd(args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := run("wrap", "--", "sh", "-c", "echo ran; exit 7")
	if code != 7 || !strings.Contains(out, "ran\n") || !strings.Contains(out, "no kernel witness") || !strings.Contains(out, "setcap cap_bpf,cap_perfmon") {
		t.Errorf("status %d: %s", code, out)
	}
	out, code = run("verify", "--json")
	if code != 2 || !strings.Contains(out, `"verdict": "indeterminate"`) || !strings.Contains(out, `"tier": "none"`) {
		t.Errorf("verify: status %d: %s", code, out)
	}
	out, code = run("doctor")
	if code != 1 || !strings.Contains(out, "kernel witness: no") || !strings.Contains(out, "to get it: sudo setcap") {
		t.Errorf("doctor: status %d: %s", code, out)
	}
}

// A user with file capabilities on the binary has a kernel witness; the wrapped command gets none of them,
// and neither does anything of rye that stays.
func TestPrivNonRoot(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	for _, d := range []string{filepath.Dir(l.home), l.home, l.project, l.ryeHome} {
		if err := os.Chown(d, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(filepath.Dir(l.home), "rye-bin")
	for _, c := range [][]string{{"cp", l.rye, bin}, {"setcap", "cap_bpf,cap_perfmon,cap_net_admin=ep", bin}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			testutil.Skip(t, "%v: %v %s", c, err, out)
		}
	}
	l.rye = bin
	run := func(args ...string) (string, int) {
		cmd := l.ryeCmd(args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run("doctor"); code != 0 || !strings.Contains(out, "kernel witness: yes") || !strings.Contains(out, "membership by cgroup") {
		t.Fatalf("doctor: status %d: %s", code, out)
	}
	// The command, its parent (rye's monitor) and rye itself: none has a capability left.
	script := "grep CapPrm /proc/$$/status; grep CapPrm /proc/$PPID/status; grep CapPrm /proc/$(awk '/^PPid/ {print $2}' /proc/$PPID/status)/status; (sleep 0.1; ls / >/dev/null) & wait; exit 4"
	out, code := run("wrap", "--", "sh", "-c", script)
	if code != 4 || strings.Count(out, "0000000000000000") != 3 || !strings.Contains(out, "verified · 1 action") {
		t.Errorf("status %d: %s", code, out)
	}
	out, _ = run("show", "--json", "--type", "process.exec")
	if !strings.Contains(out, `"argv":["ls","/"]`) {
		t.Errorf("not recorded: %s", out)
	}
}

// A full disk: the command goes on, the session becomes indeterminate, the message says why.
func TestPrivDiskFull(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	if err := syscall.Mount("tmpfs", l.ryeHome, "tmpfs", 0, "size=300k"); err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(l.ryeHome, syscall.MNT_DETACH)
	out, errs, code := l.wrap("--", "sh", "-c", "for i in $(seq 400); do ls -l / >/dev/null; done; echo finished; exit 5")
	if code != 5 || out != "finished\n" {
		t.Fatalf("status %d, output %q", code, out)
	}
	if !strings.Contains(errs, "no space left") {
		t.Errorf("the reason is not told: %s", errs)
	}
	if r := l.verdict(); r.Verdict != verify.Indeterminate {
		show(t, r)
		t.Errorf("verdict %s", r.Verdict)
	}
}

func TestUsage(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"verify"}, 2, "no session recorded yet"},
		{[]string{"verify", "nope"}, 2, "no session"},
		{[]string{"show", "/nowhere"}, 2, "holds no ledger"},
		{[]string{"wrap"}, 2, "requires at least 1 arg"},
		{[]string{"frobnicate"}, 2, "unknown command"},
		{[]string{"prove", "last", "x"}, 2, "no session recorded yet"},
		{[]string{"check-proof", "/dev/null"}, 2, "not a proof"},
		{[]string{"version"}, 0, "rye "},
		{[]string{"--help"}, 0, "rye wrap -- codex"},
		{[]string{"wrap", "--help"}, 0, "128+N"},
		{[]string{"completion", "bash"}, 0, "complete"},
		{[]string{"sessions"}, 0, "no session recorded yet"},
	} {
		cmd := l.ryeCmd(c.args...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("rye %v: status %d, want %d with %q:\n%s", c.args, code, c.code, c.want, out)
		}
	}
}

func TestPrivIndexRebuild(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	for i := range 3 {
		l.wrap("-q", "--name", fmt.Sprint("n", i), "--", "true")
	}
	before, err := l.ryeCmd("sessions", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(l.ryeHome, "rye.db"), []byte("not a database at all, but long enough to be looked at"), 0o600)
	os.Remove(filepath.Join(l.ryeHome, "rye.db-wal"))
	os.Remove(filepath.Join(l.ryeHome, "rye.db-shm"))
	if out, err := l.ryeCmd("index", "rebuild").CombinedOutput(); err != nil || !strings.Contains(string(out), "3 sessions indexed") {
		t.Fatalf("rebuild: %v %s", err, out)
	}
	after, err := l.ryeCmd("sessions", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ ID, Name, State, Verdict, RootHash string }
	var a, b []row
	json.Unmarshal(before, &a)
	json.Unmarshal(after, &b)
	if len(a) != 3 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("before %+v\nafter  %+v", a, b)
	}
}
