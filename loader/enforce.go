package loader

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/bpf"
)

// Which name servers may be asked.
const (
	DNSNone   = "none"
	DNSSystem = "system" // those that Enforce names
	DNSAll    = "all"    // any host, on port 53
)

// An Enforce is what a session may reach; the kernel refuses everything else.
type Enforce struct {
	Ports       []uint16     // on loopback
	DNS         string       // DNSNone, DNSSystem, DNSAll
	NameServers []netip.Addr // for DNSSystem
}

// sessionGates hang on the session's cgroup and stay there until it goes, whatever becomes of rye.
var sessionGates = map[string]ebpf.AttachType{
	bpf.ProbeProgEnforceConnect4: ebpf.AttachCGroupInet4Connect,
	bpf.ProbeProgEnforceConnect6: ebpf.AttachCGroupInet6Connect,
	bpf.ProbeProgEnforceSendmsg4: ebpf.AttachCGroupUDP4Sendmsg,
	bpf.ProbeProgEnforceSendmsg6: ebpf.AttachCGroupUDP6Sendmsg,
	bpf.ProbeProgEnforceSocket:   ebpf.AttachCGroupInetSockCreate,
	bpf.ProbeProgEnforcePacket:   ebpf.AttachCGroupInetEgress,
}

// strayGates hang on the root of the hierarchy: for members outside the session's cgroup and for sockets
// that were made elsewhere.
var strayGates = map[string]ebpf.AttachType{
	bpf.ProbeProgStrayConnect4: ebpf.AttachCGroupInet4Connect,
	bpf.ProbeProgStrayConnect6: ebpf.AttachCGroupInet6Connect,
	bpf.ProbeProgStraySendmsg4: ebpf.AttachCGroupUDP4Sendmsg,
	bpf.ProbeProgStraySendmsg6: ebpf.AttachCGroupUDP6Sendmsg,
	bpf.ProbeProgStraySocket:   ebpf.AttachCGroupInetSockCreate,
}

// enforcement takes the gates out of spec when they are not wanted, and sets them up when they are.
func enforcement(spec *ebpf.CollectionSpec, o Options) error {
	e := o.Enforce
	if e == nil {
		for name := range sessionGates {
			delete(spec.Programs, name)
		}
		for name := range strayGates {
			delete(spec.Programs, name)
		}
		return nil
	}
	mode, ok := map[string]uint32{DNSNone: 0, DNSSystem: 1, DNSAll: 2}[e.DNS]
	if !ok {
		return fmt.Errorf("name servers %q: none, system or all", e.DNS)
	}
	if err := spec.Variables[bpf.ProbeVarDnsAllowed].Set(mode); err != nil {
		return fmt.Errorf("set %s: %w", bpf.ProbeVarDnsAllowed, err)
	}
	ports, servers := spec.Maps[bpf.ProbeMapAllowedPorts], spec.Maps[bpf.ProbeMapNameServers]
	for _, port := range e.Ports {
		ports.Contents = append(ports.Contents, ebpf.MapKV{Key: uint32(port), Value: uint32(1)})
	}
	seen := map[netip.Addr]bool{}
	for _, a := range e.NameServers {
		a = a.WithZone("")
		if b := netip.AddrFrom16(a.As16()); !seen[b] {
			seen[b] = true
			servers.Contents = append(servers.Contents, ebpf.MapKV{Key: a.As16(), Value: uint32(1)})
		}
	}
	if len(ports.Contents) > int(ports.MaxEntries) || len(servers.Contents) > int(servers.MaxEntries) {
		return fmt.Errorf("%d ports and %d name servers are more than the %d and %d there is room for", len(ports.Contents), len(servers.Contents), ports.MaxEntries, servers.MaxEntries)
	}
	return nil
}

// Enforce closes the gates. It is all or nothing for the session's own; gates for strays that cannot be had
// are gaps. Nothing of the session may have started yet.
func (p *Probes) Enforce(o Options) (hooks []string, gaps []Gap, err error) {
	if o.CgroupPath == "" {
		return nil, nil, errors.New("enforce: no session cgroup to attach to")
	}
	session, err := os.Open(o.CgroupPath)
	if err != nil {
		return nil, nil, fmt.Errorf("enforce: %w", err)
	}
	defer session.Close()
	for name, at := range sessionGates {
		prog := p.coll.Programs[name]
		if prog == nil {
			return nil, nil, fmt.Errorf("enforce: this kernel refuses %s: %w", name, p.refusal(name))
		}
		// Without a link: a link goes with the process that holds it.
		err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(session.Fd()), Program: prog, Attach: at, Flags: unix.BPF_F_ALLOW_MULTI})
		if err != nil {
			return nil, nil, fmt.Errorf("enforce: attach %s: %w", name, err)
		}
		hooks = append(hooks, name)
	}
	top := hierarchyRoot(o.CgroupPath)
	for name, at := range strayGates {
		prog, err := p.coll.Programs[name], p.refusal(name)
		if prog != nil {
			var l link.Link
			if l, err = link.AttachCgroup(link.CgroupOptions{Path: top, Attach: at, Program: prog}); err == nil {
				p.links, hooks = append(p.links, l), append(hooks, name)
				continue
			}
		}
		gaps = append(gaps, Gap{Hook: name, What: "refusals outside the session's cgroup", Err: err})
	}
	slices.Sort(hooks)
	return hooks, gaps, nil
}

func (p *Probes) refusal(name string) error {
	for _, g := range p.gaps {
		if g.Hook == name {
			return g.Err
		}
	}
	return nil
}

// hierarchyRoot is the highest cgroup that can be seen from here.
func hierarchyRoot(path string) string {
	for {
		up := filepath.Dir(path)
		var st unix.Statfs_t
		if up == path || unix.Statfs(up, &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
			return path
		}
		path = up
	}
}

// NoPacketSockets keeps CAP_NET_RAW from everything this process starts, root's programs included: packet
// sockets pass no hook of a cgroup. It must be called before [Drop]. An error says why it could not be done.
func NoPacketSockets() error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, unix.CAP_NET_RAW, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("keep CAP_NET_RAW from the session: %w", errno)
	}
	return nil
}
