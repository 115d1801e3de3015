package verify

import (
	"testing"

	"github.com/ryehq/rye/event"
)

func modelAsked(l *lab, id, cmd string, edit ...func(*event.ToolCall)) {
	l.call("codex", id, cmd, append([]func(*event.ToolCall){func(c *event.ToolCall) {
		c.Source, c.Thread, c.API, c.Request, c.Arguments = "api", "", "openai-responses", "r1", `{"cmd":"…"}`
	}}, edit...)...)
}

// The model's answer and the transcript tell of one call.
func TestModelAndTranscript(t *testing.T) {
	for _, first := range []string{"api", "transcript"} {
		l, c := codexLab(t)
		if first == "api" {
			modelAsked(l, "call_1", "touch a")
		}
		l.call("codex", "call_1", "touch a")
		if first != "api" {
			modelAsked(l, "call_1", "touch a")
		}
		l.prompt("codex", "touch a").grant()
		codexRun(c, "call_1", "touch a").exit()
		r := l.judge()
		want(t, r, Verified, "")
		if len(r.Actions) != 1 || r.Actions[0].Asked.Source != "transcript" || r.Actions[0].Asked.Thread != "t1" || len(r.Actions[0].Asked.Records) != 2 {
			t.Errorf("%s first: %+v", first, r.Actions)
		}
	}
}

// The assistant writes down another request than the model made.
func TestModelAskedOther(t *testing.T) {
	l, c := codexLab(t)
	modelAsked(l, "call_1", "touch b")
	l.call("codex", "call_1", "touch a")
	l.prompt("codex", "touch a").grant()
	codexRun(c, "call_1", "touch a").exit()
	want(t, l.judge(), Discrepancy, "d:transcript-differs/asked-other")

	// A secret was cut out of what is kept: there is nothing to compare.
	l, c = codexLab(t)
	modelAsked(l, "call_1", "touch [cut: aws_key]", func(c *event.ToolCall) { c.ArgumentsCut = true })
	l.call("codex", "call_1", "touch a")
	l.prompt("codex", "touch a").grant()
	codexRun(c, "call_1", "touch a").exit()
	want(t, l.judge(), Verified, "")
}

// The model asked, it ran, and the assistant's record leaves it out.
func TestModelNotRecorded(t *testing.T) {
	l, c := codexLab(t)
	l.call("codex", "call_0", "ls")
	l.prompt("codex", "ls").grant()
	codexRun(c, "call_0", "ls").exit()
	modelAsked(l, "call_1", "touch a")
	l.prompt("codex", "touch a").grant()
	codexRun(c, "call_1", "touch a").exit()
	want(t, l.judge(), Discrepancy, "d:transcript-differs/not-recorded")
}

// An answer that broke off asks for nothing.
func TestModelUnfinished(t *testing.T) {
	l, c := codexLab(t)
	modelAsked(l, "call_0", "rm -r", func(c *event.ToolCall) { c.Unfinished = true })
	l.call("codex", "call_1", "touch a")
	l.prompt("codex", "touch a").grant()
	codexRun(c, "call_1", "touch a").exit()
	r := l.judge()
	want(t, r, Verified, "")
	if len(r.Actions) != 1 {
		t.Errorf("%+v", r.Actions)
	}
}
