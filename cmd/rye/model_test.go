package main

import (
	"testing"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
)

// What the model asked for is told twice, by its own answer on its way through rye and by the assistant's transcript:
// the same call under the same id.
func TestPrivModelIsAWitness(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "touch one", "touch two")
	claude := l.claude(m, "")
	if out, errs, code := l.wrap(append([]string{"--shim", "--"}, claude[0], "-p", "--allowedTools", "Bash", "--", "do it")...); code != 0 {
		t.Fatalf("%d %s\n%s", code, out, errs)
	}
	l.twice("claude", "anthropic")

	l.env = append(l.env, behindCompany(t, testutil.NewModel(t, "touch three", "touch four"))...)
	model := testutil.Model{}
	model.URL = "https://api.openai.com"
	codex := l.codex(&model, "exec", "do it")
	defer l.stopDaemon()
	if out, errs, code := l.wrap(append([]string{"--proxy", "--"}, codex...)...); code != 0 {
		t.Fatalf("%d %s\n%s", code, out, errs)
	}
	l.twice("codex", "openai-responses")
}

// twice checks that two calls were made, and that both witnesses tell of both.
func (l *lab) twice(agent, api string) {
	l.t.Helper()
	list := l.events("last")
	asked, requests := map[string]*event.ToolCall{}, map[string]bool{}
	for _, d := range bodies[*event.ProxyDecision](list) {
		requests[d.ID] = true
	}
	told := 0
	for _, c := range bodies[*event.ToolCall](list) {
		if c.Source != "api" {
			continue
		}
		if c.Agent != agent || c.API != api || c.Kind != "command" || c.ArgumentsCut || c.Unfinished || !requests[c.Request] {
			l.t.Errorf("%+v", c)
		}
		asked[c.ID] = c
	}
	for _, c := range bodies[*event.ToolCall](list) {
		if a := asked[c.ID]; c.Source == "transcript" && a != nil && a.Command == c.Command && a.Tool == c.Tool {
			told++
		}
	}
	if len(asked) != 2 || told != 2 {
		l.t.Errorf("%s: the model's answers have %d calls, the transcript %d of them", agent, len(asked), told)
	}
}
