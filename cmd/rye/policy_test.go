package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runRye runs one command of rye in this process and returns its output and exit status.
func runRye(t *testing.T, args ...string) (string, int, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	var exit *exitError
	if errors.As(err, &exit) {
		return out.String(), exit.code, err
	} else if err != nil {
		return out.String(), exitUsage, err
	}
	return out.String(), 0, nil
}

func TestPolicyCommands(t *testing.T) {
	home := t.TempDir()
	t.Setenv("RYE_HOME", home)
	write := func(name, text string) string {
		name = filepath.Join(home, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := write("good.yaml", "id: mine\nversion: 3\ndefault: deny\nrules:\n- id: ok\n  action: allow\n  when: {domains: example.com}\n")
	wrong := write("wrong.yaml", "id: mine\nversion: 3\ndefault: deny\nrules:\n- id: ok\n  action: allow\n  when: {domain: example.com}\n")
	allowed := write("a.json", `{"method":"POST","host":"api.example.com","path":"/","body":{"model":"m"}}`)
	denied := write("d.json", `{"method":"POST","host":"example.org","path":"/","body":"text"}`)

	if out, code, err := runRye(t, "policy", "show"); code != 0 || !strings.Contains(out, "id: rye-default") {
		t.Errorf("show without a policy: %d %v\n%s", code, err, out)
	}
	if out, code, err := runRye(t, "policy", "validate", good); code != 0 || out != "ok: mine@3, 1 rule, default deny\n" {
		t.Errorf("validate: %d %v\n%s", code, err, out)
	}
	if _, code, err := runRye(t, "policy", "validate", wrong); code != 1 || !strings.Contains(err.Error(), `line 7, column 10: unknown condition "domain"`) {
		t.Errorf("validate a wrong one: %d %v", code, err)
	}
	if out, code, err := runRye(t, "policy", "test", good, "--request", allowed); code != 0 || !strings.Contains(out, `"rule_id": "ok"`) {
		t.Errorf("test: %d %v\n%s", code, err, out)
	}
	suite := write("s.json", `{"host":"example.com","want":"allow:ok"} {"host":"example.org","want":"deny"}`)
	if out, code, err := runRye(t, "policy", "test", good, "--request", suite); code != 0 || strings.Count(out, `"ok":true`) != 2 {
		t.Errorf("a suite: %d %v\n%s", code, err, out)
	}
	suite = write("s.json", `{"host":"example.com","want":"allow:other"}`+"\n"+`{"host":"example.org"}`)
	if out, code, _ := runRye(t, "policy", "test", good, "--request", suite); code != 1 || !strings.Contains(out, `"ok":false`) || strings.Count(out, "\n") != 2 {
		t.Errorf("a suite that fails: %d\n%s", code, out)
	}
	for _, text := range []string{"", "{} {", `{} {"nothing":1}`} {
		if _, code, _ := runRye(t, "policy", "test", good, "--request", write("s.json", text)); code != exitUsage {
			t.Errorf("%q: %d", text, code)
		}
	}
	if out, code, _ := runRye(t, "policy", "test", good, "--request", denied); code != 1 || !strings.Contains(out, `"action": "deny"`) {
		t.Errorf("test a denied one: %d\n%s", code, out)
	}
	if _, code, _ := runRye(t, "policy", "test", good, "--request", good); code != exitUsage {
		t.Errorf("test with what is no request: %d", code)
	}

	if _, code, err := runRye(t, "policy", "apply", good); code != 0 {
		t.Fatalf("apply: %v", err)
	}
	before, err := os.ReadFile(filepath.Join(home, policyFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, code, _ := runRye(t, "policy", "apply", wrong); code != 1 {
		t.Errorf("a bad bundle was applied: %d", code)
	}
	after, err := os.ReadFile(filepath.Join(home, policyFile))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused bundle changed what holds: %v", err)
	}
	if out, _, _ := runRye(t, "policy", "show"); !strings.Contains(out, "id: mine") {
		t.Errorf("show: %s", out)
	}
	// A file that went bad under the state folder is an error, not a silent default.
	write(policyFile, "id: [")
	if _, code, err := runRye(t, "policy", "show"); code != 1 {
		t.Errorf("show of a bad file: %d %v", code, err)
	}
}
