package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/approvals"
	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
)

func TestApprovalCommands(t *testing.T) {
	home := t.TempDir()
	t.Setenv("RYE_HOME", home)
	if out, code, err := runRye(t, "approvals"); code != 0 || !strings.Contains(out, "nothing waits") {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	if out, code, err := runRye(t, "approvals", "--json"); code != 0 || strings.TrimSpace(out) != "[]" {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	s, err := approvals.Open(filepath.Join(home, "approvals"))
	if err != nil {
		t.Fatal(err)
	}
	wait := func(key string) approvals.Entry {
		e, err := s.Ask(approvals.Request{Key: key, Rule: "nomodel", Bundle: "b@1", Reason: "no \x1b[31mmodel", Method: "POST", Host: "h:443", Path: "/p"})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	a, b := wait("a"), wait("b")
	out, code, err := runRye(t, "approvals")
	if code != 0 || !strings.Contains(out, "rye approve "+a.ID) || !strings.Contains(out, "POST h:443/p") || strings.Contains(out, "\x1b") {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	if _, code, err := runRye(t, "approve", "nothing"); code != 1 || !strings.Contains(err.Error(), "rye approvals") {
		t.Errorf("%d %v", code, err)
	}
	if _, code, err := runRye(t, "approve", a.ID, "--for", "48h"); code != 1 {
		t.Errorf("%d %v", code, err)
	}
	if out, code, err := runRye(t, "approve", a.ID, "--for", "1h"); code != 0 || !strings.Contains(out, "approved") || !strings.Contains(out, "the rule and host until") {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	if out, code, err := runRye(t, "deny", b.ID); code != 0 || !strings.Contains(out, "denied") {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	if e := wait("c"); e.State != approvals.Approved || !strings.Contains(e.By, "uid ") {
		t.Errorf("%+v", e)
	}
	if e := wait("b"); e.State != approvals.Denied {
		t.Errorf("%+v", e)
	}
	out, _, _ = runRye(t, "approvals", "--json")
	var list []approvals.Entry
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSessionOfCgroup(t *testing.T) {
	for text, want := range map[string]string{
		"0::/rye/20261201-101112-0a1b2c3d\n":                              "20261201-101112-0a1b2c3d",
		"1:name=x:/\n0::/user.slice/rye/20261201-101112-0a1b2c3d/below\n": "20261201-101112-0a1b2c3d",
		"0::/user.slice\n":                       "",
		"0::/rye\n":                              "",
		"0::/rye/20261201-101112-0a1b2c3d-not\n": "",
	} {
		if got := sessionOfCgroup(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// What is judged may not answer for itself.
func TestPrivApproveInsideASession(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	for _, verb := range []string{"approve", "deny"} {
		if _, errs, code := l.wrap("-q", "--", l.rye, verb, "w1"); code != 1 || !strings.Contains(errs, "inside session") {
			t.Errorf("%s: %d %s", verb, code, errs)
		}
	}
	if _, errs, code := l.wrap("-q", "--", l.rye, "approvals"); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
}

// A request of a session waits, somebody outside says yes, its retry passes, and the ledger says who it was.
func TestApprovedFromOutside(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		testutil.Skip(t, "no curl")
	}
	l := newLab(t)
	origin := serve(t, ownAddress(t, false))
	bundle := l.file("bundle.yaml", "id: a\nversion: 1\ndefault: allow\nrules:\n- {id: ask, action: require_approval, reason: ask first, when: {body_contains: please}}\n")
	if out, err := l.ryeCmd("policy", "apply", bundle).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	approved := make(chan string, 1)
	go func() {
		for range 200 {
			out, _ := l.ryeCmd("approvals", "--json").Output() // again, should it fail
			var list []approvals.Entry
			if json.Unmarshal(out, &list) == nil && len(list) == 1 {
				out, err := l.ryeCmd("approve", list[0].ID).CombinedOutput()
				if err != nil {
					t.Errorf("%v %s", err, out)
				}
				approved <- list[0].ID
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		approved <- ""
	}()
	out, errs, code := l.wrap("--proxy", "--", "sh", "-c", `for i in $(seq 100); do
  s=$(curl -sS -o answer -w '%{http_code}' -d please http://`+origin+`/x)
  [ "$s" = 200 ] && exec cat answer
  sleep 0.2
done`)
	id := <-approved
	if code != 0 || out != "answer to /x" || id == "" {
		t.Fatalf("status %d, %q, approved %q\n%s", code, out, id, errs)
	}
	list := bodies[*event.ProxyDecision](l.events("last"))
	last := list[len(list)-1]
	if first := list[0]; first.Decision != "require_approval" || first.Approval != id || first.AnsweredBy != "" || first.Status != 403 {
		t.Errorf("%+v", first)
	}
	if last.Decision != "allow" || last.Approval != id || !strings.Contains(last.AnsweredBy, "(uid ") || last.AnsweredAt == "" || last.Status != 200 {
		t.Errorf("%+v", last)
	}
}

// Why a request was refused is on the screen of the assistant's user.
func TestPrivRefusalIsShown(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "true")
	bundle := l.file("bundle.yaml", "id: a\nversion: 1\ndefault: allow\nrules:\n- {id: no-plans, action: deny, reason: the plans stay here, when: {body_contains: secret plans}}\n")
	if out, err := l.ryeCmd("policy", "apply", bundle).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	const refusal = "rye: refused by policy a@1, rule no-plans: the plans stay here"
	claude := l.claude(m, "")
	out, errs, _ := l.wrap(append([]string{"--shim", "--"}, claude[0], "-p", "write down the secret plans")...)
	if !strings.Contains(out, refusal) {
		t.Errorf("%s\n%s", out, errs)
	}
	l.env = append(l.env, behindCompany(t, m)...)
	model := testutil.Model{}
	model.URL = "https://api.openai.com"
	codex := l.codex(&model, "exec", "write down the secret plans")
	defer l.stopDaemon()
	if out, errs, _ := l.wrap(append([]string{"--proxy", "--"}, codex...)...); !strings.Contains(out+errs, refusal) {
		t.Errorf("%s\n%s", out, errs)
	}
}
