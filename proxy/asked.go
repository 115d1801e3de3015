package proxy

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/modelapi"
	"github.com/ryehq/rye/policy"
	"github.com/ryehq/rye/policy/content"
	"github.com/ryehq/rye/toolcall"
)

// asked reads, on a copy of the answer, what the model asks for. Each piece is read after it was passed on.
type asked struct {
	x       *record
	agent   string
	decoder *content.Decoder
	reader  *modelapi.Reader
}

func (x *record) newAsked(agent string, encodings []string) *asked {
	a := &asked{x: x, agent: agent}
	a.reader = modelapi.NewReader(a.call)
	a.decoder = content.NewDecoder(encodings, a.reader.Write)
	return a
}

func (a *asked) write(p []byte) { a.decoder.Write(p) }

// close takes the end of the answer. Why it was cut, if it was, is for the record to say.
func (a *asked) close() {
	why := a.decoder.Close()
	if w := a.reader.Close(); why == "" {
		why = w
	}
	if a.x.ev.ResponseBytes > 0 {
		a.x.ev.ResponseUnread = why
	}
}

func (a *asked) call(c modelapi.Call) {
	now := a.x.p.c.Boottime()
	a.x.ev.ToolCalls++
	ev := &event.ToolCall{ID: c.ID, Agent: a.agent, Source: "api", AskedTimeNS: now}
	if ev.ID == "" { // Gemini numbers none
		ev.ID = fmt.Sprintf("%s-%d", a.x.ev.ID, a.x.ev.ToolCalls)
	}
	toolcall.Describe(ev, toolcall.Input{Namespace: c.Namespace, Name: c.Name, Arguments: c.Arguments, Argv: c.Argv, CWD: c.CWD})
	ev.API, ev.Request, ev.Unfinished = c.API, a.x.ev.ID, c.Unfinished
	ev.Arguments, ev.ArgumentsBytes, ev.ArgumentsSHA256, ev.ArgumentsCut = string(c.Arguments), c.Size, hex.EncodeToString(c.SHA256[:]), c.Cut
	hide(ev)
	a.x.p.c.Emit(event.New(now, nil, ev))
}

// hide takes secrets out of what is kept of a call.
func hide(ev *event.ToolCall) {
	texts := []*string{&ev.Arguments, &ev.Command, &ev.Justification, &ev.CWD, &ev.Tool, &ev.ID}
	for i := range ev.Argv {
		texts = append(texts, &ev.Argv[i])
	}
	for i := range ev.Paths {
		texts = append(texts, &ev.Paths[i])
	}
	for _, s := range texts {
		if cut, had := policy.WithoutSecrets(*s); had {
			*s, ev.ArgumentsCut = cut, true
		}
	}
}

// agentOf is who the client says it is. It is a name to read a call's vocabulary by, and no evidence.
func agentOf(h http.Header) string {
	switch ua := h.Get("User-Agent"); {
	case strings.HasPrefix(ua, "claude-cli/"):
		return "claude"
	case strings.HasPrefix(ua, "codex"):
		return "codex"
	case strings.HasPrefix(ua, "GeminiCLI"):
		return "gemini"
	}
	return "unknown"
}
