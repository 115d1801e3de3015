package verify

import (
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

const labProxy = "127.0.0.1:18080"

// netLab is a session of an agent behind rye's proxy, and the program that its one approved command runs.
func netLab(t *testing.T, change func(*event.PolicyApplied)) (*stranger, *proc) {
	l := newLab(t)
	l.root.env["HTTPS_PROXY"], l.root.env["NO_PROXY"] = "http://"+labProxy, "localhost,127.0.0.1,::1"
	l.events[0].Body.(*event.SessionStart).Command = []string{"python3", "agent.py"}
	p := &event.PolicyApplied{At: "start", Bundle: "b@1", Proxy: labProxy, DNS: []string{"10.0.0.1"}}
	if change != nil {
		change(p)
	}
	l.add(nil, p)
	l.add(&l.root.key, &event.ProcessFork{Parent: l.root.parent})
	l.root.exec("python3", "agent.py")
	s := &stranger{lab: l}
	s.ask("curl u")
	return s, s.bash("curl u").exec("curl", "u")
}

func connectTo(remote, local, err string) *event.NetConnect {
	res := int32(0)
	if err != "" {
		res = -1
	}
	return &event.NetConnect{Family: "inet", Proto: "tcp", Remote: remote, Local: local, Result: res, Error: err, Count: 1}
}

func enforced(p *event.PolicyApplied) { p.Enforce = &event.Enforcement{DNS: "system"} }

func TestNetworkClasses(t *testing.T) {
	const self, site = "127.0.0.1:40000", "93.184.216.34:443"
	denied := &event.ProxyDecision{ID: "r1", Method: "CONNECT", Host: "evil.test:443", Decision: "deny", Rule: "no-evil", Local: "127.0.0.1:39000"}
	answer := &event.NetDNS{Proto: "udp", Remote: "10.0.0.1:53", Answer: true, Questions: []event.DNSQuestion{{Name: "Evil.test.", Kind: "A"}},
		Answers: []event.DNSAnswer{{Name: "x.cdn.test", Kind: "A", Value: "93.184.216.34"}}}
	for _, c := range []struct {
		name, class, findings string
		change                func(*event.PolicyApplied)
		do                    func(p *proc)
	}{
		{"to the proxy", "proxy", "", nil, func(p *proc) { p.do(connectTo(labProxy, self, "EINPROGRESS")) }},
		{"a tunnel", "tunnelled", "", nil, func(p *proc) {
			p.do(connectTo(labProxy, self, "EINPROGRESS"))
			p.l.add(nil, &event.ProxyDecision{ID: "r", Method: "CONNECT", Host: "a.test:443", Tunnel: true, Decision: "allow", Local: self})
		}},
		{"past it", "bypass", "w:net-bypass/tcp", nil, func(p *proc) { p.do(connectTo(site, self, "EINPROGRESS")) }},
		{"past it, failed", "failed", "w:net-bypass/attempt", nil, func(p *proc) { p.do(connectTo(site, self, "ECONNREFUSED")) }},
		{"the machine's resolver", "dns", "", nil, func(p *proc) { p.do(connectTo("10.0.0.1:53", "", "")) }},
		{"another resolver", "bypass", "w:net-bypass/dns", nil, func(p *proc) { p.do(connectTo("8.8.8.8:53", "", "")) }},
		{"loopback", "loopback", "", nil, func(p *proc) { p.do(connectTo("[::1]:5432", self, "")) }},
		{"its own server", "session", "", nil, func(p *proc) {
			p.do(&event.NetBind{Family: "inet", Proto: "tcp", Local: "127.0.0.1:3000"})
			p.do(connectTo("127.0.0.1:3000", self, ""))
		}},
		{"which address would it be", "", "", nil, func(p *proc) { p.do(connectTo("93.184.216.34:0", "", "")) }},
		{"ping", "bypass", "w:net-bypass/icmp", nil, func(p *proc) {
			p.do(&event.NetConnect{Family: "inet", Proto: "icmp", Remote: "198.51.100.9:0", Count: 1, Marks: []string{"from-packet"}})
		}},
		{"metadata of a cloud machine", "bypass", "w:net-bypass/tcp", nil, func(p *proc) { p.do(connectTo("169.254.169.254:80", self, "")) }},
		{"without the variable", "bypass", "w:net-bypass/proxy-env-changed", nil, func(p *proc) {
			delete(p.env, "HTTPS_PROXY")
			p.exec("wget", "u").do(connectTo(site, self, ""))
		}},
		{"with a wider NO_PROXY", "bypass", "w:net-bypass/NO_PROXY", nil, func(p *proc) { p.with("NO_PROXY", "*").exec("wget", "u").do(connectTo(site, self, "")) }},
		{"denied and reached, by hello", "bypass", "d:net-denied-reached/evil.test w:net-bypass/tcp", nil, func(p *proc) {
			p.l.add(nil, denied)
			p.do(connectTo(site, self, "EINPROGRESS"))
			p.do(&event.NetTLSHello{Proto: "tcp", Local: self, Remote: site, Sent: true, Name: "EVIL.test"})
		}},
		{"denied and reached, by DNS", "bypass", "d:net-denied-reached/evil.test w:net-bypass/tcp", nil, func(p *proc) {
			p.do(answer)
			p.do(connectTo(site, self, ""))
			p.l.add(nil, denied)
		}},
		{"denied, another host reached at that address", "bypass", "w:net-bypass/tcp", nil, func(p *proc) {
			p.do(answer)
			p.l.add(nil, denied)
			p.do(connectTo(site, self, ""))
			p.do(&event.NetTLSHello{Proto: "tcp", Local: self, Remote: site, Sent: true, Name: "good.test"})
		}},
		{"denied, and no names were read", "bypass", "i:evidence-lost/packets w:evidence-lost/no-name w:net-bypass/tcp", nil, func(p *proc) {
			p.l.add(nil, denied)
			p.l.add(nil, &event.ObserverLost{Counts: map[string]uint64{"net.packet": 3}, Final: true})
			p.do(connectTo(site, self, ""))
		}},
		{"packets lost, nothing denied", "bypass", "i:evidence-lost/packets w:net-bypass/tcp", nil, func(p *proc) {
			p.l.add(nil, &event.ObserverLost{Counts: map[string]uint64{"net.packet": 3}, Final: true})
			p.do(connectTo(site, self, ""))
		}},
		{"denied and not reached", "failed", "w:net-bypass/attempt", nil, func(p *proc) {
			p.do(answer)
			p.l.add(nil, denied)
			p.do(connectTo(site, self, "ENETUNREACH"))
		}},
		{"denied by name, tunnelled to by address", "proxy", "d:net-denied-reached/evil.test", nil, func(p *proc) {
			p.do(answer)
			p.do(connectTo(labProxy, "127.0.0.1:39000", ""))
			p.l.add(nil, denied)
			p.do(connectTo(labProxy, self, ""))
			p.l.add(nil, &event.ProxyDecision{ID: "r2", Method: "CONNECT", Host: site, Tunnel: true, Decision: "allow", Local: self})
		}},
		{"one name to the proxy, another inside", "tunnelled", "w:net-bypass/name-mismatch", nil, func(p *proc) {
			p.do(connectTo(labProxy, self, "EINPROGRESS"))
			p.do(&event.NetTLSHello{Proto: "tcp", Local: self, Remote: labProxy, Sent: true, Name: "evil.test"})
			p.l.add(nil, &event.ProxyDecision{ID: "r", Method: "CONNECT", Host: "good.test:443", Tunnel: true, Decision: "allow", Local: self})
		}},
		{"one name to the proxy, the same inside", "tunnelled", "", nil, func(p *proc) {
			p.do(connectTo(labProxy, self, "EINPROGRESS"))
			p.do(&event.NetTLSHello{Proto: "tcp", Local: self, Remote: labProxy, Sent: true, Name: "Good.test"})
			p.l.add(nil, &event.ProxyDecision{ID: "r", Method: "CONNECT", Host: "good.test:443", Tunnel: true, Decision: "allow", Local: self})
		}},
		{"a tunnel by another name to what is denied", "tunnelled", "d:net-denied-reached/evil.test w:net-bypass/name-mismatch", nil, func(p *proc) {
			p.do(connectTo(labProxy, "127.0.0.1:39000", ""))
			p.l.add(nil, denied)
			p.do(connectTo(labProxy, self, "EINPROGRESS"))
			p.do(&event.NetTLSHello{Proto: "tcp", Local: self, Remote: labProxy, Sent: true, Name: "evil.test"})
			p.l.add(nil, &event.ProxyDecision{ID: "r", Method: "CONNECT", Host: "good.test:443", Tunnel: true, Decision: "allow", Local: self})
		}},
		{"refused", "refused", "i:net-bypass/refused", enforced, func(p *proc) {
			p.do(&event.NetRefused{Family: "inet", Proto: "tcp", Remote: site, How: "connect", Count: 1})
			p.do(connectTo(site, self, "EPERM"))
		}},
		{"a datagram refused", "refused", "i:net-bypass/refused", enforced, func(p *proc) {
			p.do(&event.NetRefused{Family: "inet", Proto: "udp", Remote: site, How: "send", Count: 1})
			p.do(&event.NetConnect{Family: "inet", Proto: "udp", Remote: site, Count: 1, Marks: []string{"no-result"}})
			p.do(&event.NetRefused{Family: "inet", Proto: "udp", Remote: site, How: "send", Count: 100, Repeats: true})
		}},
		{"a packet refused", "refused", "i:net-bypass/refused", enforced, func(p *proc) {
			p.l.add(nil, &event.NetRefused{Family: "inet", Proto: "132", Remote: site, How: "packet", Count: 1})
		}},
		{"not refused", "bypass", "d:net-bypass/past-enforcement", enforced, func(p *proc) { p.do(connectTo(site, self, "")) }},
		{"it answers its own request", "", "d:rule-self-granted/policy", func(p *event.PolicyApplied) { p.State = "/home/dev/.rye" }, func(p *proc) {
			p.do(&event.FileRename{From: "/home/dev/.rye/approvals/.new", To: "/home/dev/.rye/approvals/approvals.json", How: "rename"})
			p.open("/home/dev/.rye/approvals/lock", "O_RDWR")
			p.open("/home/dev/.rye/policy.yaml", "O_RDONLY")
		}},
		{"handed in", "", "w:net-bypass/inherited", nil, func(p *proc) { p.l.add(&p.key, &event.NetInherited{FD: 7, Family: "inet", Proto: "tcp", Remote: site}) }},
		{"handed in and taken away", "", "i:net-bypass/inherited", enforced, func(p *proc) {
			p.l.add(&p.key, &event.NetInherited{FD: 7, Family: "inet", Proto: "tcp", Remote: site, Closed: true})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, curl := netLab(t, c.change)
			c.do(curl)
			r := s.judge()
			if r.Network == nil || c.class != "" && r.Network.Classes[c.class] == 0 {
				t.Errorf("network %+v, want one of class %q", r.Network, c.class)
			}
			var got string
			for _, f := range strings.Fields(codes(r)) {
				if !strings.HasSuffix(f, "untied-request") { // these labs have no connect for each request
					got += " " + f
				}
			}
			if strings.TrimSpace(got) != c.findings {
				t.Errorf("findings %s, want %s\n%s", codes(r), c.findings, brief(r))
			}
		})
	}
}

// Local ports come again: a request belongs to the connection that was the last with its port.
func TestRequestsAreTied(t *testing.T) {
	s, curl := netLab(t, nil)
	l := s.lab
	other := l.root.spawn("node", "x.js")
	first := curl.do(connectTo(labProxy, "127.0.0.1:40000", "EINPROGRESS"))
	l.add(nil, &event.ProxyDecision{ID: "r1", Method: "POST", Host: "api.openai.com:443", Path: "/v1/responses", Decision: "allow", Local: "127.0.0.1:40000"})
	l.add(nil, &event.ProxyDecision{ID: "r2", Method: "POST", Host: "api.openai.com:443", Decision: "deny", Local: "127.0.0.1:40000", Rule: "r"})
	second := other.do(connectTo(labProxy, "127.0.0.1:40000", ""))
	l.add(nil, &event.ProxyDecision{ID: "r3", Method: "GET", Host: "a.test:80", Decision: "allow", Local: "127.0.0.1:40000"})
	stranger := l.add(nil, &event.ProxyDecision{ID: "r4", Method: "GET", Host: "a.test:80", Decision: "allow", Local: "127.0.0.1:50000"})
	r := s.judge()
	q := r.Network.Requests
	if len(q) != 4 || q[0].Connect != first || q[1].Connect != first || q[2].Connect != second || q[3].Connect != 0 || r.Network.Denied != 1 {
		t.Fatalf("%+v", q)
	}
	if q[0].Program != "curl" || q[0].Action != "x1" || q[2].Program != "node" || q[2].TGID != other.key.TGID {
		t.Errorf("%+v", q)
	}
	var told bool
	for _, f := range r.Findings {
		told = told || f.Reason == "untied-request" && f.Severity == Info && len(f.Records) == 1 && f.Records[0] == stranger
	}
	if !told {
		t.Errorf("%s", brief(r))
	}
}
