package loader

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/ryehq/rye/bpf"
)

func listen(t *testing.T) (l net.Listener, port uint16) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, uint16(l.Addr().(*net.TCPAddr).Port)
}

// The gates let through what they were told and nothing else, count what they refused, and stay closed when
// the process that closed them lets go of everything.
func TestPrivEnforce(t *testing.T) {
	o := testCgroup(t)
	_, open := listen(t)
	_, shut := listen(t)
	o.Enforce = &Enforce{Ports: []uint16{open}, DNS: DNSSystem, NameServers: []netip.Addr{netip.MustParseAddr("127.0.0.53"), netip.MustParseAddr("fe80::1%lo")}}
	p, err := Load(o)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	closed := false
	defer func() {
		if !closed {
			p.Close()
		}
	}()
	if err := p.Attach(o); err != nil {
		t.Fatal(err)
	}
	hooks, gaps, err := p.Enforce(o)
	if err != nil || len(gaps) != 0 || len(hooks) != len(sessionGates)+len(strayGates) || len(ownGaps(p)) != 0 {
		t.Fatalf("%v; hooks %v, gaps %v %v", err, hooks, gaps, ownGaps(p))
	}
	check := func(when string) {
		t.Helper()
		for what, want := range map[string]bool{
			fmt.Sprintf("tcp 127.0.0.1:%d", open): true,
			fmt.Sprintf("tcp 127.0.0.1:%d", shut): false,
			fmt.Sprintf("udp 127.0.0.1:%d", shut): false,
			fmt.Sprintf("udp [::1]:%d", shut):     false,
			"udp 127.0.0.53:53":                   true,
			"udp 127.0.0.1:53":                    false,
			"ip4:icmp 127.0.0.1":                  false,
			"udp 198.51.100.7:443":                false,
		} {
			if got := inCgroup(t, o, what); got != want {
				t.Errorf("%s: %s let through: %v", when, what, got)
			}
		}
	}
	check("with rye")
	emitted, lost, err := p.Counters()
	if err != nil || emitted[bpf.ProbeEventTypeEVENT_REFUSED] < 6 || lost[bpf.ProbeEventTypeEVENT_REFUSED] != 0 {
		t.Errorf("%d refusals told, %d lost, %v", emitted[bpf.ProbeEventTypeEVENT_REFUSED], lost[bpf.ProbeEventTypeEVENT_REFUSED], err)
	}
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", shut)); err != nil {
		t.Errorf("a process outside is refused too: %v", err)
	} else {
		c.Close()
	}
	// A socket that was made outside, in the hands of a member.
	outside, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	f, err := outside.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for port, want := range map[uint16]bool{open: true, shut: false} {
		if got := inCgroup(t, o, fmt.Sprintf("handed 127.0.0.1:%d", port), f); got != want {
			t.Errorf("a socket from outside is let through to port %d: %v", port, got)
		}
	}
	// A process outside the cgroup that is a member all the same.
	if err := p.Adopt(uint32(os.Getpid()), 0); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", shut)); err == nil {
		c.Close()
		t.Error("a member outside the cgroup is let through")
	}
	if err := p.Release(uint32(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	p.Close()
	closed = true
	check("without rye")
}
