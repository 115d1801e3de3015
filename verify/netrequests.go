package verify

import (
	"net/netip"
	"slices"

	"github.com/ryehq/rye/event"
)

// inside holds the name that a client asks for within a connection against the one that it asked the proxy
// for: the policy decided on that one.
func (r *reacher) inside(it *item, d *decidedRecord, c *connectRecord, who string) {
	h := r.helloOf(c)
	if h == nil || h.Name == "" || d.denied() || hostName(h.Name) == hostOf(d.Host) {
		return
	}
	name := hostName(h.Name)
	if _, err := netip.ParseAddr(hostOf(d.Host)); err != nil || d.Tunnel && r.denied[name] != nil {
		r.tell(it, Finding{Code: NetBypass, Severity: Warning, Reason: "name-mismatch", Records: []uint64{d.seq, h.seq, c.seq},
			Message: sayf("%s asked the proxy for %s, and inside that connection for %s: the policy decided on the first.", firstOf(who, "A process"), quote(d.Host), quote(name))}, d.Host+" "+name, d.seq)
	}
	r.reached(it, firstOf(who, "A process"), d.Host, d.seq, []string{name}, []uint64{h.seq}, "through a tunnel that it had asked for by another name")
}

// requests ties every exchange to the process whose connection it came by: the kernel's record with the
// same local address, the last before the request.
func (r *reacher) requests() {
	byLocal := make(map[string][]*connectRecord)
	for i := range r.facts.connects {
		c := &r.facts.connects[i]
		if to, err := netip.ParseAddrPort(c.Remote); err == nil && c.Local != "" && (to == r.proxy || slices.Contains(r.shims, c.Remote)) {
			byLocal[c.Local] = append(byLocal[c.Local], c)
		}
	}
	untied := []uint64{}
	for i := range r.facts.net.decided {
		d := &r.facts.net.decided[i]
		if d.denied() {
			r.reach.Denied++
		}
		var by *connectRecord
		for _, c := range byLocal[d.Local] {
			if c.ns <= d.began() || by == nil && c.ns <= d.ns { // the call returns a moment after the proxy accepts
				by = c
			}
		}
		q := Request{Record: d.seq, Method: d.Method, Host: d.Host, Path: d.Path, Decision: d.Decision, Rule: d.Rule, Tunnel: d.Tunnel, Status: d.Status}
		var it *item
		if by != nil {
			q.Connect, q.TGID, q.StartNS = by.seq, by.proc.TGID, by.proc.StartNS
			if x := r.image(by.proc, by.ns); x != nil {
				q.Program = program(x)
			}
			if it, _ = r.account(r.cast.ownerOf(by.proc)); it != nil {
				q.Action = it.id
			}
		} else {
			untied = append(untied, d.seq)
		}
		// A tunnel to the bare address of a host that the policy denies by name.
		if addr, err := netip.ParseAddr(hostOf(d.Host)); err == nil && !d.denied() && d.Error == "" {
			for _, n := range r.facts.net.names[addr.Unmap()] {
				r.reached(it, firstOf(q.Program, "A process"), d.Host, d.seq, []string{n.name}, []uint64{n.seq}, "through a tunnel to its bare address")
			}
		}
		if by != nil {
			r.inside(it, d, by, q.Program)
		}
		if len(r.reach.Requests) == maxRequests {
			r.reach.More++
			continue
		}
		r.reach.Requests = append(r.reach.Requests, q)
	}
	if len(untied) > 0 && r.policy != nil {
		why := "they came from outside the session"
		if !r.whole(string(event.TypeNetConnect)) {
			why = "the record of connections is not whole"
		}
		r.find(nil, Finding{Code: EvidenceLost, Severity: Info, Reason: "untied-request", Records: untied[:min(len(untied), 16)],
			Message: sayf("%s of the proxy cannot be tied to a process: %s.", plural(len(untied), "request", "requests"), why)})
	}
}
