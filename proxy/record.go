package proxy

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
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
	var via proxyError
	switch {
	case errors.As(err, &via) && via.status == http.StatusProxyAuthRequired:
		return "upstream-proxy-auth"
	case errors.As(err, &via), errors.Is(err, errSocks):
		return "upstream-proxy"
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &verify):
		return "upstream-certificate"
	case errors.As(err, &op) && op.Op == "dial":
		return "upstream-connect"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "upstream-proxy"
	}
	return "upstream"
}
