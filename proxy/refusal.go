package proxy

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/ryehq/rye/policy"
)

// A refusal is what a client gets instead of an answer, in the shape in which its API reports errors, so that the
// client shows the message: Anthropic's {"type":"error","error":{type, message}}, OpenAI's {"error":{message, type,
// code}}, Google's {"error":{code, message, status}}. What rye has to say is in all of them.
type refusal struct {
	Type      string       `json:"type,omitempty"` // Anthropic: error
	Error     refusalError `json:"error"`
	RequestID string       `json:"request_id,omitempty"` // Anthropic
}

type refusalError struct {
	Type        string `json:"type"` // rye_policy, rye_upstream
	RuleID      string `json:"rule_id"`
	RuleVersion string `json:"rule_version"`
	Bundle      string `json:"bundle"`
	Decision    string `json:"decision"`
	Reason      string `json:"reason"`
	RequestID   string `json:"request_id"`
	Approval    string `json:"approval,omitempty"` // for rye approve
	Message     string `json:"message"`
	Code        any    `json:"code,omitempty"`   // OpenAI: a word; Google: the status
	Status      string `json:"status,omitempty"` // Google
}

func (x *record) refuse(w http.ResponseWriter, status int) {
	x.answer(w, status, "rye_policy", x.ev.Reason)
}

func (x *record) answer(w http.ResponseWriter, status int, kind, reason string) {
	r := refusal{Error: refusalError{
		Type: kind, RuleID: x.ev.Rule, RuleVersion: x.ev.RuleVersion, Bundle: x.ev.Bundle,
		Decision: x.ev.Decision, Reason: reason, RequestID: x.ev.ID, Approval: x.ev.Approval,
		Message: x.message(kind, reason),
	}}
	switch dialect(x.ev.Host, x.ev.Path) {
	case "anthropic":
		r.Type, r.RequestID = "error", x.ev.ID
	case "gemini":
		r.Error.Code, r.Error.Status = status, "PERMISSION_DENIED"
		if status != http.StatusForbidden {
			r.Error.Status = "FAILED_PRECONDITION"
		}
	default:
		r.Error.Code = kind
	}
	b, err := json.Marshal(r)
	if err != nil { // strings and a number
		panic(err)
	}
	x.ev.Status = status
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false") // the vendors' libraries heed it: the answer will be the same
	w.WriteHeader(status)
	if _, err := w.Write(b); err != nil {
		x.ev.Error = "client-gone"
	}
}

// message is for the person in front of the client.
func (x *record) message(kind, reason string) string {
	if kind != "rye_policy" {
		return "rye: the server could not be reached: " + reason
	}
	s := "rye: refused by policy " + x.ev.Bundle
	if x.ev.Decision == string(policy.RequireApproval) {
		s = "rye: needs approval under policy " + x.ev.Bundle
	}
	if x.ev.Rule != "" {
		s += ", rule " + x.ev.Rule
	}
	s += ": " + reason
	switch {
	case x.ev.AnsweredBy != "":
		s += " (denied by " + x.ev.AnsweredBy + ")"
	case x.ev.Approval != "":
		s += ". To let it pass, run outside of this session: rye approve " + x.ev.Approval + " (or with --for 10m, for others like it) and try again"
	}
	return s + " [" + x.ev.ID + "]"
}

// dialect is whose errors a client at this host and path expects.
func dialect(host, path string) string {
	under := func(domains ...string) bool {
		h, _, _ := strings.Cut(host, ":")
		for _, d := range domains {
			if h == d || strings.HasSuffix(h, "."+d) {
				return true
			}
		}
		return false
	}
	switch {
	case strings.HasSuffix(path, "/messages"), strings.Contains(path, "/messages/"), under("anthropic.com", "claude.ai", "claude.com"):
		return "anthropic"
	case under("googleapis.com"), strings.Contains(path, "enerateContent"):
		return "gemini"
	}
	return "openai"
}
