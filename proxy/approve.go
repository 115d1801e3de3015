package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/ryehq/rye/approvals"
	"github.com/ryehq/rye/policy"
)

// ask looks for somebody's answer when a rule requires one. The request is then allowed, denied, or waits, in which
// case its id is for `rye approve` and a retry is asked about again.
func (x *record) ask(r *http.Request) {
	if x.ev.Decision != string(policy.RequireApproval) || x.p.c.Approvals == nil {
		return
	}
	e, err := x.p.c.Approvals.Ask(approvals.Request{
		Key: x.key(r), Session: x.p.c.Session, Rule: x.ev.Rule, RuleVersion: x.ev.RuleVersion, Bundle: x.ev.Bundle, Reason: x.ev.Reason,
		Method: x.ev.Method, Host: x.ev.Host, Path: x.ev.Path, Bytes: x.ev.RequestBytes,
	})
	if err != nil { // refused, and said: an approval that cannot be looked up is none
		x.ev.Error = "approvals"
		x.ev.Reason += " (and the approvals cannot be kept: " + clean(err.Error()) + ")"
		return
	}
	x.ev.Approval = e.ID
	if e.State == approvals.Waiting {
		return
	}
	x.ev.AnsweredBy, x.ev.AnsweredAt, x.ev.AnsweredFor = e.By, e.At.UTC().Format(time.RFC3339), e.For()
	x.ev.Decision = string(policy.Deny)
	if e.State == approvals.Approved {
		x.ev.Decision = string(policy.Allow)
	}
}

// key is a digest of the request by which its retry is known.
func (x *record) key(r *http.Request) string {
	sum := sha256.New()
	for _, s := range []string{x.ev.Rule, r.Host, r.Method, r.URL.RequestURI(), x.ev.Shim, x.ev.RequestSHA256} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		sum.Write(n[:])
		sum.Write([]byte(s))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
