package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
)

// gates is what the kernel is to let the session reach: the proxy, what else the user allowed, name servers.
// nil without --enforce.
func (n *network) gates(c netConfig) (*loader.Enforce, error) {
	if n == nil || !c.enforce {
		return nil, nil
	}
	e := &loader.Enforce{DNS: c.dns, Ports: []uint16{n.addr().Port()}}
	for _, addr := range n.about.Shims {
		if a, err := netip.ParseAddrPort(addr); err == nil {
			e.Ports = append(e.Ports, a.Port())
		}
	}
	for _, p := range c.ports {
		if p == 0 || p > 65535 {
			return nil, fmt.Errorf("--allow-port %d: not a port", p)
		}
		e.Ports = append(e.Ports, uint16(p))
	}
	if c.dns == loader.DNSSystem {
		for _, s := range n.about.DNS {
			if a, err := netip.ParseAddr(s); err == nil {
				e.NameServers = append(e.NameServers, a)
			}
		}
	}
	return e, nil
}

// enforceGaps are what the gates are known not to hold, whatever the kernel.
var enforceGaps = []event.Gap{
	{What: "connected sockets that another process hands over through a unix socket", Why: "nothing is connected; the unix connection itself is recorded"},
	{What: "a command of root that takes the kernel programs away", Why: "bpf() is recorded as escape.bpf"},
}

// enforce closes the gates. What they cannot hold goes on record; that they cannot be closed is an error, and
// nothing runs.
func (o *observer) enforce(opts loader.Options) error {
	if opts.Enforce == nil || o.probes == nil {
		return nil
	}
	hooks, gaps, err := o.probes.Enforce(opts)
	if err != nil {
		return err
	}
	o.gates = &event.Enforcement{DNS: opts.Enforce.DNS, Hooks: hooks, Gaps: enforceGaps}
	for _, p := range opts.Enforce.Ports {
		o.gates.Ports = append(o.gates.Ports, uint32(p))
	}
	for _, g := range gaps {
		o.gates.Gaps = append(o.gates.Gaps, event.Gap{What: g.What, Why: fmt.Sprintf("%s: %v", g.Hook, g.Err)})
	}
	if err := loader.NoPacketSockets(); err != nil {
		o.gates.Gaps = append(o.gates.Gaps, event.Gap{What: "packet sockets of programs that have CAP_NET_RAW of their own", Why: err.Error()})
	}
	return nil
}

// enforced is what stands of --enforce before the command may start.
func (n *network) enforced(c netConfig, o *observer) error {
	if n == nil || !c.enforce {
		return nil
	}
	if o.gates == nil {
		return errors.New("cannot enforce: " + firstOf(o.about.Detail, "the session has no cgroup or no kernel programs") + "; nothing was run")
	}
	n.about.Enforce = o.gates
	return nil
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// inherited finds the network sockets that this process was given open: the command would be given them too.
// take keeps them from it.
func inherited(take bool) ([]event.NetInherited, error) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("list open files: %w", err)
	}
	var out []event.NetInherited
	for _, e := range list {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 { // rye's own, and what the command would not get
			continue
		}
		x, ok := socketOf(fd)
		if !ok {
			continue
		}
		if take {
			if fd <= 2 {
				return nil, fmt.Errorf("cannot enforce: descriptor %d is a network connection (%s %s), and the command would be given it", fd, x.Proto, x.Remote)
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags|unix.FD_CLOEXEC); err != nil {
				return nil, fmt.Errorf("cannot enforce: keep descriptor %d from the command: %w", fd, err)
			}
			x.Closed = true
		}
		out = append(out, x)
	}
	return out, nil
}

func socketOf(fd int) (event.NetInherited, bool) {
	x := event.NetInherited{FD: fd}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return x, false
	}
	kind, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)      // 0 reads as unknown
	proto, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL) // so does this
	switch domain {
	case unix.AF_INET:
		x.Family = "inet"
	case unix.AF_INET6:
		x.Family = "inet6"
	case unix.AF_PACKET:
		x.Family, x.Proto = "packet", "packet"
		return x, true
	case unix.AF_VSOCK:
		x.Family, x.Proto = "vsock", "vsock"
		return x, true
	default:
		return x, false
	}
	switch {
	case kind == unix.SOCK_RAW:
		x.Proto = "raw"
	case proto == unix.IPPROTO_TCP:
		x.Proto = "tcp"
	case proto == unix.IPPROTO_UDP:
		x.Proto = "udp"
	default:
		x.Proto = strconv.Itoa(proto)
	}
	if a, err := unix.Getsockname(fd); err == nil {
		x.Local = addressOf(a)
	}
	if a, err := unix.Getpeername(fd); err == nil {
		x.Remote = addressOf(a)
	}
	return x, true
}

func addressOf(a unix.Sockaddr) string {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)).String()
	}
	return ""
}
