package scenarios

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
	"github.com/ryehq/rye/verify"
)

// The real assistants play scenarios too: `as: real-claude` and `as: real-codex`. A scripted model on loopback asks
// for the steps; an edit is a Write of Claude's.

const (
	claudeKey = "sk-ant-test-0123456789-0123456789-rye"
	leaveKeys = "\x03"
)

func runReal(t *testing.T, l *Lab, s *Scenario) *Result {
	t.Helper()
	dir, err := os.MkdirTemp(l.Dir, "r-")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{}
	for _, name := range []string{"ws", "out", "home", "tmp", "rye"} {
		places[name] = filepath.Join(dir, name)
		if err := os.Mkdir(places[name], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fill := strings.NewReplacer("{WS}", places["ws"], "{OUT}", places["out"], "{HOME}", places["home"], "{TMP}", places["tmp"])
	env := append(environment(places), "GOCACHE="+l.goCache)
	if err := prepare(s, places["ws"], env, fill); err != nil {
		t.Fatal(err)
	}
	m := testutil.NewModel(t, realSteps(s, fill)...)
	name := strings.TrimPrefix(s.As, "real-")
	argv, question := []string{testutil.Assistant(t, name)}, "Do you want to proceed?"
	if name == "claude" {
		env = append(env, "ANTHROPIC_BASE_URL="+m.URL, "ANTHROPIC_API_KEY="+claudeKey, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1")
		state, err := json.Marshal(map[string]any{"hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5,
			"customApiKeyResponses": map[string]any{"approved": []string{claudeKey[len(claudeKey)-20:]}, "rejected": []string{}},
			"projects":              map[string]any{places["ws"]: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(places["home"], ".claude.json"), string(state))
		argv = append(argv, "--permission-mode", "default", "do it")
	} else {
		question = "Would you like to run the following command?"
		env = append(env, "FAKE_KEY=x")
		write(t, filepath.Join(places["home"], ".codex/config.toml"), fmt.Sprintf("model = \"gpt-5\"\nmodel_provider = \"fake\"\napproval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n"+
			"check_for_update_on_startup = false\n[model_providers.fake]\nname = \"fake\"\nbase_url = %q\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n[projects.%q]\ntrust_level = \"trusted\"\n[analytics]\nenabled = false\n", m.URL+"/v1", places["ws"]))
		argv = append(argv, "--no-daemon", "do it")
	}
	var keys []testutil.Key
	last := "DONE"
	for i, a := range s.Answers {
		if a == "" {
			continue
		}
		wait := question
		if e := s.Steps[i].Edit; e != nil {
			wait = "Do you want to create " + filepath.Base(e.Path) + "?"
		}
		for k := range strings.SplitSeq(a, ",") {
			keys = append(keys, testutil.Key{Wait: wait, Send: keyBytes(k), Pause: time.Second})
			wait = ""
		}
		if a == "esc" && i == len(s.Answers)-1 {
			last = "" // the turn ends there
		}
	}
	keys = append(keys, testutil.Key{Wait: last, Send: leaveKeys, Pause: time.Second}, testutil.Key{Send: leaveKeys, Pause: 500 * time.Millisecond})
	cmd := exec.Command(l.rye, append([]string{"wrap", "-q", "--wait", "100ms", "--"}, append(argv, s.Flags...)...)...)
	cmd.Dir, cmd.Env = places["ws"], env
	screen := testutil.Drive(t, cmd, s.Cols, 45, keys)
	judged := exec.Command(l.rye, "verify", "last", "--json")
	judged.Env = env
	out, err := judged.Output()
	r := &Result{Report: &verify.Report{}, Terminal: screen, Dir: dir}
	if e := json.Unmarshal(out, r.Report); e != nil {
		t.Fatalf("judge session: %v (%v)", e, err)
	}
	return r
}

// realSteps are what the model asks for. Codex asks the user where a step is to be answered.
func realSteps(s *Scenario, fill *strings.Replacer) []string {
	var out []string
	for i, step := range s.Steps {
		text := step.Ask
		switch {
		case step.Edit != nil:
			b, _ := json.Marshal(map[string]any{"tool": "Write", "input": map[string]string{"file_path": step.Edit.Path, "content": step.Edit.Text}})
			text = string(b)
		case s.As == "real-codex" && (s.Answers[i] != "" || step.NoPrompt):
			text = "!" + text
		}
		out = append(out, fill.Replace(text))
	}
	return out
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
