package verify

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/proctree"
)

// Network is where a session's connections went.
type Network struct {
	Proxy    string `json:"proxy,omitempty"`    // rye's, address:port
	Policy   string `json:"policy,omitempty"`   // id@version at the start
	Enforced bool   `json:"enforced,omitempty"` // the kernel refused what was not to the proxy
	// Connections by class: proxy, tunnelled, shim, session (to a listener of its own), loopback, dns, unix,
	// bypass, failed, refused.
	Classes  map[string]int `json:"classes"`
	Requests []Request      `json:"requests,omitempty"` // what came through the proxy, the first of them
	More     int            `json:"more,omitempty"`     // requests past that limit
	Denied   int            `json:"denied,omitempty"`   // requests that the policy did not let through
}

// A Request is one exchange of the proxy, tied to the process whose connection it came by.
type Request struct {
	Record   uint64 `json:"record"`
	Method   string `json:"method"`
	Host     string `json:"host"`
	Path     string `json:"path,omitempty"`
	Decision string `json:"decision"`
	Rule     string `json:"rule,omitempty"`
	Tunnel   bool   `json:"tunnel,omitempty"`
	Status   int    `json:"status,omitempty"`
	Connect  uint64 `json:"connect,omitempty"` // the kernel's record of the connection; 0: none has that local port
	TGID     uint32 `json:"tgid,omitempty"`
	StartNS  uint64 `json:"start_ns,omitempty"`
	Program  string `json:"program,omitempty"`
	Action   string `json:"action,omitempty"`
}

const maxRequests = 500

// A reacher follows one session's connections.
type reacher struct {
	*judge
	policy  *appliedRecord // nil without rye's proxy
	proxy   netip.AddrPort
	shims   []string
	denied  map[string]*decidedRecord // hosts the policy did not let through
	tunnels map[string]bool           // local addresses of connections that were tunnelled
	hello   map[string][]*helloRecord // by local and remote address
	refused map[string]bool           // what enforcement refused, by process and remote address
	told    map[reachKey]int
}

type reachKey struct {
	it     *item
	code   string
	remote string
	reason string
}

// network says where every connection of the session went, and finds those that went past the proxy.
func (v *judge) network() {
	r := &reacher{judge: v, policy: v.policy(), denied: make(map[string]*decidedRecord), tunnels: make(map[string]bool),
		hello: make(map[string][]*helloRecord), refused: make(map[string]bool), told: make(map[reachKey]int)}
	n := &v.facts.net
	v.reach = &Network{Classes: make(map[string]int)}
	if r.policy != nil {
		r.proxy, _ = netip.ParseAddrPort(r.policy.Proxy) // one that does not parse equals no remote
		for _, s := range r.policy.Shims {
			r.shims = append(r.shims, s)
		}
		v.reach.Proxy, v.reach.Policy, v.reach.Enforced = r.policy.Proxy, r.policy.Bundle, r.policy.Enforce != nil
	}
	for i := range n.decided {
		d := &n.decided[i]
		if d.denied() && r.denied[hostOf(d.Host)] == nil {
			r.denied[hostOf(d.Host)] = d
		}
		r.tunnels[d.Local] = r.tunnels[d.Local] || d.Tunnel
	}
	for i := range n.hellos {
		h := &n.hellos[i]
		k := h.Local + " " + h.Remote
		r.hello[k] = append(r.hello[k], h)
	}
	for i := range n.refused {
		r.refused[n.refused[i].proc.String()+" "+n.refused[i].Remote] = true
	}
	for i := range v.facts.connects {
		r.connect(&v.facts.connects[i])
	}
	v.reach.count("unix", len(v.facts.ipc))
	r.refusals()
	r.handed()
	r.grants()
	r.requests()
	if len(v.reach.Classes) == 0 && r.policy == nil {
		v.reach = nil
	}
}

func (n *Network) count(class string, by int) {
	if by > 0 {
		n.Classes[class] += by
	}
}

// connect puts one connection into its class.
func (r *reacher) connect(c *connectRecord) {
	if slices.Contains(c.Marks, "repeats") {
		return // of a destination that is told already
	}
	to, err := netip.ParseAddrPort(c.Remote)
	if err != nil || to.Port() == 0 && (c.Proto == "tcp" || c.Proto == "udp") || c.Error == "EAFNOSUPPORT" {
		return // a resolver asks the kernel which address it would use, and sends nothing
	}
	to = netip.AddrPortFrom(to.Addr().Unmap().WithZone(""), to.Port())
	failed := c.Result != 0 && c.Error != "EINPROGRESS"
	class := r.class(c, to, failed)
	r.reach.count(class, 1)
	if !r.proxied() || r.policy != nil && r.policy.ns > c.ns {
		return
	}
	switch class {
	case "bypass":
		r.bypass(c, to, "")
	case "loopback":
		if change := r.envChange(r.image(c.proc, c.ns)); change != "" && !r.loopbackDirect() {
			r.bypass(c, to, change)
		}
	case "failed":
		if !local(to.Addr()) {
			r.bypass(c, to, "attempt")
		}
	}
}

func local(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() }

func (r *reacher) class(c *connectRecord, to netip.AddrPort, failed bool) string {
	switch {
	case r.policy != nil && r.policy.Enforce != nil && (c.Error == "EPERM" || r.refused[c.proc.String()+" "+to.String()]):
		return "refused"
	case to == r.proxy:
		if r.tunnels[c.Local] {
			return "tunnelled"
		}
		return "proxy"
	case slices.Contains(r.shims, to.String()):
		return "shim"
	case to.Port() == 53 && r.resolver(to.Addr()):
		return "dns"
	case failed:
		return "failed"
	case r.ownListener(to, c.ns):
		return "session"
	case local(to.Addr()):
		return "loopback"
	}
	return "bypass"
}

// resolver: the machine's own name servers. Where the record does not name them, any may be it.
func (r *reacher) resolver(a netip.Addr) bool {
	return r.policy == nil || len(r.policy.DNS) == 0 || slices.ContainsFunc(r.policy.DNS, func(s string) bool {
		own, err := netip.ParseAddr(s)
		return err == nil && own.Unmap().WithZone("") == a
	})
}

func (r *reacher) image(k event.ProcessKey, ns uint64) *proctree.Exec {
	if p := r.facts.tree.Lookup(k); p != nil {
		return p.ImageAt(ns)
	}
	return nil
}

func (r *reacher) who(k event.ProcessKey, ns uint64) string {
	if x := r.image(k, ns); x != nil {
		return program(x)
	}
	return "A process"
}

// names are what an address was known as: by the client's own TLS hello on this connection, by DNS answers.
func (r *reacher) names(c *connectRecord, to netip.AddrPort) (names []string, seqs []uint64, how string) {
	if h := r.helloOf(c); h != nil && h.Name != "" {
		return []string{hostName(h.Name)}, []uint64{h.seq}, "as its TLS hello says"
	}
	for _, n := range r.facts.net.names[to.Addr()] {
		names, seqs = append(names, n.name), append(seqs, n.seq)
	}
	return names, seqs, "as DNS answered"
}

// grants are changes that the session made to what decides about its own requests.
func (r *reacher) grants() {
	for _, t := range r.facts.net.touched {
		o := r.cast.ownerOf(t.proc)
		if o.kind == witness {
			continue
		}
		it, _ := r.account(o)
		f := Finding{Code: RuleSelfGranted, Severity: Contradicts, Reason: "policy", Path: t.path, Records: []uint64{t.seq},
			Message: sayf("%s changed %s, which decides what the session's own requests may do.", r.who(t.proc, t.ns), quote(t.path))}
		if it != nil && it.ownWord() {
			f.Severity = Warning
		}
		r.tell(it, f, t.path, t.seq)
	}
}

// helloOf is the hello on a connection: ports come again, so the first after the connect.
func (r *reacher) helloOf(c *connectRecord) *helloRecord {
	for _, h := range r.hello[c.Local+" "+c.Remote] {
		if h.ns >= c.ns {
			return h
		}
	}
	return nil
}

// bypass tells of a connection that went past the proxy. A warning, since a variable is a request; a
// discrepancy where the policy had said no, or the kernel should have.
func (r *reacher) bypass(c *connectRecord, to netip.AddrPort, reason string) {
	o := r.cast.ownerOf(c.proc)
	if o.kind == witness {
		return
	}
	it, _ := r.account(o)
	f := Finding{Code: NetBypass, Severity: Warning, Reason: reason, Records: []uint64{c.seq}}
	verb := "connected"
	if reason == "attempt" {
		verb = "tried to connect (" + c.Error + ")"
	} else if slices.Contains(c.Marks, "from-packet") {
		verb = "sent packets"
	}
	tail := ""
	if f.Reason == "" {
		f.Reason = c.Proto
		if to.Port() == 53 {
			f.Reason, tail = "dns", "; it is not one of the machine's name servers"
		} else if change := r.envChange(r.image(c.proc, c.ns)); change != "" {
			f.Reason = change
		}
	}
	switch f.Reason {
	case "proxy-env-changed":
		tail = "; it was started without the proxy variables that the session was given"
	case "NO_PROXY":
		tail = "; it was started with another NO_PROXY than the session was given"
	}
	names, seqs, how := r.names(c, to)
	known := ""
	if len(names) > 0 {
		known = quote(strings.Join(names[:min(len(names), 3)], ", ")) + " " + how + ", "
	}
	f.Message = sayf("%s %s to %s (%s%s) past the proxy%s.", r.who(c.proc, c.ns), verb, c.Remote, known, c.Proto, tail)
	if p := r.policy; p != nil && p.Enforce != nil && reason != "attempt" && !slices.ContainsFunc(p.Enforce.Ports, func(n uint32) bool { return local(to.Addr()) && n == uint32(to.Port()) }) && !(to.Port() == 53 && p.Enforce.DNS == "all") {
		f.Severity, f.Reason = Contradicts, "past-enforcement"
		f.Message = sayf("%s %s to %s (%s%s), which enforcement should have refused.", r.who(c.proc, c.ns), verb, c.Remote, known, c.Proto)
	}
	r.tell(it, f, c.Remote, c.seq)
	if reason != "attempt" {
		if len(names) == 0 {
			r.unnamed(it, c)
		}
		r.reached(it, r.who(c.proc, c.ns), c.Remote, c.seq, append(names, to.Addr().String()), seqs, "past the proxy")
	}
}

// reached tells when what the proxy had denied was reached all the same.
func (r *reacher) reached(it *item, who, remote string, seq uint64, names []string, seqs []uint64, how string) {
	for _, name := range names {
		d := r.denied[name]
		if d == nil {
			continue
		}
		why := "the policy had " + map[string]string{"deny": "denied", "require_approval": "wanted approval for"}[d.Decision]
		r.tell(it, Finding{Code: NetDeniedReached, Severity: Contradicts, Reason: name, Records: append([]uint64{seq, d.seq}, seqs...),
			Message: sayf("%s reached %s at %s %s; %s a request to it (rule %s).", who, quote(name), remote, how, why, firstOf(d.Rule, "default"))}, remote, seq)
	}
}

// unnamed: where names were not read, a denied host may hide behind an address.
func (r *reacher) unnamed(it *item, c *connectRecord) {
	if len(r.denied) > 0 && !r.namesWhole() {
		r.doubt(it, EvidenceLost, "no-name", sayf("Which host %s is was not seen, so whether it is one that the policy denied cannot be told.", c.Remote), c.seq)
	}
}

// tell files a finding, or adds to one that says the same.
func (r *reacher) tell(it *item, f Finding, remote string, seq uint64) {
	k := reachKey{it, f.Code, remote, f.Reason}
	if i, ok := r.told[k]; ok {
		r.again(i, seq, f.Severity, it)
		return
	}
	r.told[k] = len(r.findings)
	r.find(it, f)
}

// refusals are what enforcement did not let through: information, since nothing came of it.
func (r *reacher) refusals() {
	for i := range r.facts.net.refused {
		x := &r.facts.net.refused[i]
		if x.How == "packet" || x.How == "socket" { // the others are connects of their own
			r.reach.count("refused", int(max(x.Count, 1)))
		}
		o := r.cast.ownerOf(x.proc)
		if o.kind == witness || x.Repeats {
			continue
		}
		it, _ := r.account(o)
		if x.proc.IsZero() {
			it = nil
		}
		what := "a connection to " + x.Remote
		switch x.How {
		case "send", "packet":
			what = "a packet to " + x.Remote
		case "socket":
			what = "a socket"
		}
		r.tell(it, Finding{Code: NetBypass, Severity: Info, Reason: "refused", Records: []uint64{x.seq},
			Message: sayf("%s was refused %s (%s): enforcement lets the session reach the proxy only.", r.who(x.proc, x.ns), what, x.Proto)}, x.Remote+x.Proto, x.seq)
	}
}

// handed are sockets that the command was given open.
func (r *reacher) handed() {
	for i := range r.facts.net.inherited {
		x := &r.facts.net.inherited[i]
		f := Finding{Code: NetBypass, Severity: Warning, Reason: "inherited", Records: []uint64{x.seq},
			Message: sayf("The command was started with an open network socket (descriptor %d, %s %s): what goes through it is not in the record.", x.FD, x.Proto, strings.TrimSpace(x.Local+" "+x.Remote))}
		if x.Closed {
			f.Severity, f.Message = Info, sayf("An open network socket (descriptor %d, %s %s) was taken away before the command started.", x.FD, x.Proto, strings.TrimSpace(x.Local+" "+x.Remote))
		} else if !r.proxied() {
			f.Severity = Info
		}
		r.find(nil, f)
	}
}
