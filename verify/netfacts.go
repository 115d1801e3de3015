package verify

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/proctree"
)

// netFacts is what is kept of a session's network beside its connects.
type netFacts struct {
	applied   []appliedRecord
	decided   []decidedRecord
	refused   []refusedRecord
	inherited []inheritedRecord
	hellos    []helloRecord
	names     map[netip.Addr][]nameRecord // what DNS answers said an address belongs to
	nameCount int
	bound     map[uint16][]boundRecord // ports that the session itself listens on
	state     string                   // rye's own folder
	touched   []touchedRecord
}

// A touchedRecord is a change of what decides about the session's requests.
type touchedRecord struct {
	seq, ns uint64
	proc    event.ProcessKey
	path    string
}

type appliedRecord struct {
	*event.PolicyApplied
	seq, ns uint64
}

type decidedRecord struct {
	*event.ProxyDecision
	seq, ns uint64 // ns: when the exchange was over
}

// began is when the request came.
func (d *decidedRecord) began() uint64 { return d.ns - min(d.DurationNS, d.ns) }

// denied: the policy did not let it through.
func (d *decidedRecord) denied() bool {
	return d.Decision == "deny" || d.Decision == "require_approval"
}

type refusedRecord struct {
	*event.NetRefused
	seq, ns uint64
	proc    event.ProcessKey
}

type inheritedRecord struct {
	*event.NetInherited
	seq, ns uint64
	proc    event.ProcessKey
}

type helloRecord struct {
	*event.NetTLSHello
	seq, ns uint64
}

type nameRecord struct {
	name    string
	seq, ns uint64
}

type boundRecord struct {
	addr netip.Addr
	ns   uint64
}

const (
	maxNames   = 50_000
	maxDecided = 100_000
	maxHellos  = 20_000
	maxRefused = 20_000
)

func (f *facts) addNet(e event.Event) {
	n := &f.net
	switch b := e.Body.(type) {
	case *event.PolicyApplied:
		n.applied = append(n.applied, appliedRecord{b, e.Seq, e.TimeNS})
		if n.state == "" {
			n.state = b.State
		}
	case *event.ProxyDecision:
		if f.room(len(n.decided), maxDecided, e) {
			n.decided = append(n.decided, decidedRecord{b, e.Seq, e.TimeNS})
		}
	case *event.NetRefused:
		if f.room(len(n.refused), maxRefused, e) {
			n.refused = append(n.refused, refusedRecord{b, e.Seq, e.TimeNS, procOf(e)})
		}
	case *event.NetInherited:
		n.inherited = append(n.inherited, inheritedRecord{b, e.Seq, e.TimeNS, procOf(e)})
	case *event.NetTLSHello:
		if f.room(len(n.hellos), maxHellos, e) {
			n.hellos = append(n.hellos, helloRecord{b, e.Seq, e.TimeNS})
		}
	case *event.NetDNS:
		f.addNames(e, b)
	case *event.NetBind:
		if to, err := netip.ParseAddrPort(b.Local); err == nil && b.Result == 0 && to.Port() != 0 {
			if n.bound == nil {
				n.bound = make(map[uint16][]boundRecord)
			}
			n.bound[to.Port()] = append(n.bound[to.Port()], boundRecord{to.Addr().Unmap(), e.TimeNS})
		}
	}
}

// touched keeps what the session itself changed of the policy, of the answers that requests wait for, and
// of the CA. Its own ledgers are rye's to guard.
func (f *facts) touched(e event.Event) {
	n := &f.net
	if n.state == "" || e.Proc == nil {
		return
	}
	name := ""
	switch b := e.Body.(type) {
	case *event.FileOpen:
		if b.Result == 0 && (slices.Contains(b.Flags, "O_WRONLY") || slices.Contains(b.Flags, "O_RDWR")) {
			name = b.Path
		}
	case *event.FileRename:
		if b.Result == 0 {
			name = b.To
		}
	case *event.FileDelete:
		if b.Result == 0 {
			name = b.Path
		}
	}
	rest, ok := strings.CutPrefix(path.Clean(name), n.state+"/")
	if !ok || name == "" {
		return
	}
	switch top, _, _ := strings.Cut(rest, "/"); top {
	case "policy.yaml", "approvals", "ca":
		if path.Base(rest) != "lock" && f.room(len(n.touched), maxRefused, e) { // a lock is taken to read, too
			n.touched = append(n.touched, touchedRecord{e.Seq, e.TimeNS, *e.Proc, path.Clean(name)})
		}
	}
}

// addNames keeps which name was asked for when an address was answered. The question counts, not the
// record's own owner: behind aliases that is the name a person would know.
func (f *facts) addNames(e event.Event, b *event.NetDNS) {
	if !b.Answer || b.Sent || len(b.Questions) == 0 {
		return
	}
	if f.net.names == nil {
		f.net.names = make(map[netip.Addr][]nameRecord)
	}
	name := hostName(b.Questions[0].Name)
	for _, a := range b.Answers {
		addr, err := netip.ParseAddr(a.Value)
		if err != nil || a.Kind != "A" && a.Kind != "AAAA" {
			continue
		}
		addr = addr.Unmap()
		known := slices.ContainsFunc(f.net.names[addr], func(r nameRecord) bool { return r.name == name })
		if !known && f.room(f.net.nameCount, maxNames, e) {
			f.net.nameCount++
			f.net.names[addr] = append(f.net.names[addr], nameRecord{name, e.Seq, e.TimeNS})
		}
	}
}

func hostName(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }

// hostOf is the host of host:port, in lower case, without brackets.
func hostOf(s string) string {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (strings.HasSuffix(s[:i], "]") || strings.Count(s, ":") == 1) {
		s = s[:i]
	}
	return hostName(strings.Trim(s, "[]"))
}

// policyAt is what the session's network was told to be, nil without rye's proxy.
func (v *judge) policy() *appliedRecord {
	if len(v.facts.net.applied) == 0 {
		return nil
	}
	return &v.facts.net.applied[0]
}

// proxied: the session's programs were given a proxy on this machine, rye's or the user's own.
func (v *judge) proxied() bool {
	if p := v.policy(); p != nil && p.Proxy != "" {
		return true
	}
	if v.cast.root == nil {
		return false
	}
	env := v.cast.root.Execs[0].Env
	for _, name := range proxyVars {
		if strings.Contains(env[name], "127.0.0.1:") || strings.Contains(env[name], "localhost:") || strings.Contains(env[name], "[::1]:") {
			return true
		}
	}
	return false
}

var proxyVars = []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"}

// envChange says which of the variables that lead to the proxy a program was started without: a settings
// file, a wrapper script or the program's parent took it away.
func (v *judge) envChange(x *proctree.Exec) string {
	if x == nil || v.cast.root == nil || x == v.cast.root.Execs[0] {
		return ""
	}
	was := v.cast.root.Execs[0].Env
	for _, name := range proxyVars {
		if was[name] != "" && x.Env[name] != was[name] {
			return "proxy-env-changed"
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if x.Env[name] != was[name] {
			return "NO_PROXY"
		}
	}
	return ""
}

// loopbackDirect: the session's own environment tells programs to reach loopback without the proxy.
func (v *judge) loopbackDirect() bool {
	if v.cast.root == nil {
		return false
	}
	env := v.cast.root.Execs[0].Env
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if strings.Contains(env[name], "127.0.0.1") || env[name] == "*" {
			return true
		}
	}
	return false
}

// ownListener: the session itself listens there.
func (v *judge) ownListener(to netip.AddrPort, ns uint64) bool {
	return slices.ContainsFunc(v.facts.net.bound[to.Port()], func(b boundRecord) bool {
		return b.ns <= ns && (b.addr == to.Addr() || b.addr.IsUnspecified())
	})
}

// lostPackets is the name under which packets are lost that were to be copied.
const lostPackets = "net.packet"

// lostNames: a packet that was not copied costs the name of a host. The connection itself is the kernel's
// own record, so no verdict but the one on denied hosts depends on it (see [reacher.unnamed]).
func (v *judge) lostNames(l loss, n uint64) {
	v.find(nil, Finding{Code: EvidenceLost, Severity: Info, Reason: "packets", Records: []uint64{l.seq},
		Message: sayf("%d packets could not be copied: host names may be missing.", n)})
}

// namesWhole: every name that the session's packets carried in the clear was read.
func (v *judge) namesWhole() bool {
	return v.facts.end != nil && v.facts.end.Packets != nil && v.whole(lostPackets)
}
