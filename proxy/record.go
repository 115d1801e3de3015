package proxy

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/policy"
)

const maxPath = 1024 // bytes of a path in an event

// A record gathers the event of one exchange.
type record struct {
	p     *Proxy
	start uint64
	ev    event.ProxyDecision
}

func (p *Proxy) begin(r *http.Request, target string) *record {
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	x := &record{p: p, start: p.c.Boottime()}
	x.ev = event.ProxyDecision{
		ID:     "r" + hex.EncodeToString(id[:]),
		Method: clean(r.Method),
		Host:   clean(target),
		Path:   clean(r.URL.EscapedPath()),
		Proto:  r.Proto,
		Local:  r.RemoteAddr,
	}
	return x
}

// clean keeps a key that somebody put into a path or a name out of the evidence.
func clean(s string) string {
	if len(s) > maxPath {
		s = s[:maxPath] + "[cut]"
	}
	if len(policy.SecretsIn([]byte(s))) > 0 {
		return "[cut]"
	}
	return s
}

func (x *record) decided(d policy.Decision) {
	x.ev.Decision, x.ev.Rule, x.ev.RuleVersion, x.ev.Bundle = string(d.Action), d.RuleID, d.RuleVersion, d.Bundle
	x.ev.Reason, x.ev.Logged, x.ev.Unjudged = d.Reason, d.Logged, d.Unjudged
}

func (x *record) finish() {
	now := x.p.c.Boottime()
	x.ev.DurationNS = now - x.start
	ev := x.ev
	x.p.c.Emit(event.New(now, nil, &ev))
}

// A refusal is what a client gets instead of an answer.
type refusal struct {
	Error struct {
		Type        string `json:"type"` // rye_policy, rye_upstream
		RuleID      string `json:"rule_id"`
		RuleVersion string `json:"rule_version"`
		Bundle      string `json:"bundle"`
		Decision    string `json:"decision"`
		Reason      string `json:"reason"`
		RequestID   string `json:"request_id"`
	} `json:"error"`
}

func (x *record) refuse(w http.ResponseWriter, status int) {
	x.answer(w, status, "rye_policy", x.ev.Reason)
}

func (x *record) answer(w http.ResponseWriter, status int, kind, reason string) {
	var r refusal
	r.Error.Type, r.Error.RuleID, r.Error.RuleVersion, r.Error.Bundle = kind, x.ev.Rule, x.ev.RuleVersion, x.ev.Bundle
	r.Error.Decision, r.Error.Reason, r.Error.RequestID = x.ev.Decision, reason, x.ev.ID
	b, err := json.Marshal(r)
	if err != nil { // strings only
		panic(err)
	}
	x.ev.Status = status
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(b); err != nil {
		x.ev.Error = "client-gone"
	}
}

// fail answers for an upstream that could not be reached. An error's text may hold a URL with what is in
// it, so that the evidence gets its class only.
func (x *record) fail(w http.ResponseWriter, err error) {
	x.ev.Error = class(err)
	x.answer(w, http.StatusBadGateway, "rye_upstream", x.ev.Error)
}

func class(err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &verify):
		return "upstream-certificate"
	case errors.As(err, &op) && op.Op == "dial":
		return "upstream-connect"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "upstream-proxy"
	}
	return "upstream"
}
