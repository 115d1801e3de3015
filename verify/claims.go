package verify

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// judgeSandboxClaim: with "never ask" it is the sandbox that keeps a command in; the kernel must have
// seen one.
func (v *judge) judgeSandboxClaim(it *item) {
	t := v.contextAt(codex, it.cand.thread, it.start())
	if t == nil || t.Sandbox != "read-only" && t.Sandbox != "workspace-write" {
		return
	}
	v.find(it, Finding{Code: SandboxClaimBroken, Severity: Contradicts, Reason: "no-sandbox", Records: []uint64{t.seq, it.cand.root.Seq},
		Message: sayf("The assistant recorded that it runs commands in the %s sandbox without asking; the kernel saw %s run outside any sandbox.", t.Sandbox, quote(it.ran()))})
}

// sandboxClaims holds what commands did against the limits of the sandbox that covered them. What a
// sandbox lets through is not what it was said to be.
func (v *judge) sandboxClaims() {
	for _, r := range v.facts.files {
		it, t := v.boxed(r.proc)
		if it == nil || r.how == "read" || !r.class.outside || r.class.unknown || v.wraps(v.cast.ownerOf(r.proc), r) {
			continue
		}
		if slices.ContainsFunc(t.WriteRoots, func(root string) bool { return within(r.path, clean(root)) }) {
			continue
		}
		v.broken(it, t, r.seq, "write", sayf("%s was %s from inside the %s sandbox, which is recorded to keep writes to %s.", quote(r.path), r.how, t.Sandbox, strings.Join(append([]string{v.facts.place.workspace}, t.WriteRoots...), ", ")))
	}
	for _, r := range v.facts.connects {
		it, t := v.boxed(r.proc)
		if it == nil || t.Network != "restricted" || r.Result != 0 {
			continue
		}
		if to, err := netip.ParseAddrPort(r.Remote); err != nil || to.Addr().IsLoopback() {
			continue
		}
		v.broken(it, t, r.seq, "network", sayf("A connection to %s was made from inside the %s sandbox, which is recorded to have no network.", r.Remote, t.Sandbox))
	}
}

// boxed is the action of a process that only its sandbox covers, with what the assistant recorded
// about that sandbox.
func (v *judge) boxed(k event.ProcessKey) (*item, *turnContext) {
	o := v.cast.ownerOf(k)
	if o.cand == nil || o.cand.item == nil || o.cand.item.gone || !o.cand.sandbox || o.cand.agent != codex {
		return nil, nil
	}
	t := v.contextAt(codex, o.cand.thread, o.cand.startNS)
	if t == nil || t.Sandbox != "read-only" && t.Sandbox != "workspace-write" {
		return nil, nil
	}
	return o.cand.item, t
}

func (v *judge) broken(it *item, t *turnContext, seq uint64, reason, message string) {
	for _, i := range it.findings {
		if f := &v.findings[i]; f.Code == SandboxClaimBroken && f.Reason == reason {
			v.again(i, seq, Contradicts, it)
			return
		}
	}
	v.find(it, Finding{Code: SandboxClaimBroken, Severity: Contradicts, Reason: reason, Records: []uint64{t.seq, seq}, Message: message})
}
