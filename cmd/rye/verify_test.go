package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/verify"
)

// status runs rye and returns its exit status and output.
func (l *lab) status(args ...string) (int, string) {
	l.t.Helper()
	out, err := l.ryeCmd(args...).CombinedOutput()
	if err == nil {
		return 0, string(out)
	}
	e, ok := err.(*exec.ExitError)
	if !ok {
		l.t.Fatal(err)
	}
	return e.ExitCode(), string(out)
}

func TestPrivVerifyAt(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	if n, out := l.status("wrap", "-q", "--", "sh", "-c", "touch made; uname -s"); n != 0 {
		t.Fatalf("%d: %s", n, out)
	}
	seq := ""
	for _, e := range l.records("process.exec") {
		if argv, _ := e["argv"].([]any); len(argv) == 2 && argv[0] == "touch" {
			b, _ := json.Marshal(e["seq"])
			seq = string(b)
		}
	}
	n, out := l.status("verify", "--at", seq, "--json")
	var e evidence
	if n != 0 || json.Unmarshal([]byte(out), &e) != nil {
		t.Fatalf("%d: %s", n, out)
	}
	if !e.Included.OK || !e.Included.Known || e.Included.Size == 0 || len(e.Actions) != 1 || e.Actions[0].Action != "x1" || e.Actions[0].Role != verify.Named || !strings.Contains(string(e.Record), `"touch"`) {
		t.Errorf("%+v %+v", e.Included, e.Actions)
	}
	if n, out := l.status("verify", "--at", seq); n != 0 || !strings.Contains(out, "named of x1 (verified)") || !strings.Contains(out, "in the ledger: one of") {
		t.Errorf("%d: %s", n, out)
	}
	for _, bad := range []string{"99999", "-1", "07", "x", "18446744073709551616"} {
		if n, out := l.status("verify", "--at="+bad); n != exitUsage {
			t.Errorf("--at %s: %d %s", bad, n, out)
		}
	}
	// A changed byte of the record: it is not in the tree that was signed.
	dirs, err := filepath.Glob(filepath.Join(l.ryeHome, "sessions", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v %q", err, dirs)
	}
	file := filepath.Join(dirs[0], ledger.EventsFile)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, line, ok := strings.Cut(string(b), `{"seq":`+seq+`,`)
	if !ok {
		t.Fatal("the record is not in the ledger")
	}
	if err := os.WriteFile(file, []byte(before+`{"seq":`+seq+`,`+strings.Replace(line, `"made"`, `"mbde"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, out := l.status("verify", "--at", seq); n != 2 || !strings.Contains(out, "NOT proved") {
		t.Errorf("%d: %s", n, out)
	}
}

func TestPrivVerifyMany(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	for _, name := range []string{"one", "two"} {
		if n, out := l.status("wrap", "-q", "--name", name, "--", "true"); n != 0 {
			t.Fatalf("%d: %s", n, out)
		}
	}
	list := func(args ...string) (int, []judged) {
		t.Helper()
		n, out := l.status(append([]string{"verify", "--json"}, args...)...)
		var list []judged
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return n, list
	}
	if n, all := list("--all"); n != 0 || len(all) != 2 || all[0].Name != "one" || all[1].Verdict != verify.Verified || all[0].State != "ended" {
		t.Errorf("%d: %+v", n, all)
	}
	if n, some := list("--since", "1h"); n != 0 || len(some) != 2 {
		t.Errorf("%d: %+v", n, some)
	}
	if n, none := list("--since", "2200-01-01"); n != 0 || len(none) != 0 {
		t.Errorf("%d: %+v", n, none)
	}
	// One session that cannot be read makes the whole list indeterminate, and stands in it.
	dirs, _ := filepath.Glob(filepath.Join(l.ryeHome, "sessions", "*"))
	if err := os.WriteFile(filepath.Join(dirs[0], ledger.EventsFile), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, all := list("--since", "1h"); n != 2 || len(all) != 2 {
		t.Errorf("%d: %+v", n, all)
	}
	n, out := l.status("verify", "--all")
	if n != 2 || !strings.Contains(out, "2 sessions: 1 verified") {
		t.Errorf("%d: %s", n, out)
	}
	for _, bad := range [][]string{{"--all", "last"}, {"--since", "yesterday"}, {"--all", "--action", "x1"}, {"--at", "1", "--since", "1h"}} {
		if n, out := l.status(append([]string{"verify"}, bad...)...); n != exitUsage {
			t.Errorf("%q: %d %s", bad, n, out)
		}
	}
}

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"36h": now.Add(-36 * time.Hour), "7d": now.AddDate(0, 0, -7), "2w": now.AddDate(0, 0, -14), "0s": now,
		"2026-03-01": time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), "2026-03-01T08:30": time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC),
		"2026-03-01T08:30:00+02:00": time.Date(2026, 3, 1, 6, 30, 0, 0, time.UTC),
	} {
		if got, err := parseSince(s, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v, want %v", s, got, err, want)
		}
	}
	for _, bad := range []string{"", "-1h", "7x", "d", "7dd", "2026-13-01", "last week", "-3d"} {
		if got, err := parseSince(bad, now); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		verdicts []verify.Verdict
		want     int
	}{
		{nil, 0}, {[]verify.Verdict{verify.Verified}, 0}, {[]verify.Verdict{verify.Verified, verify.Indeterminate}, 2},
		{[]verify.Verdict{verify.Indeterminate, verify.Discrepancy, verify.Verified}, 1}, {[]verify.Verdict{""}, 2},
	} {
		var list []judged
		for _, v := range c.verdicts {
			list = append(list, judged{Verdict: v})
		}
		if got := worst(list); got != c.want {
			t.Errorf("%q: %d, want %d", c.verdicts, got, c.want)
		}
	}
}
