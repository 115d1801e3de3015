package loader

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/ryehq/rye/bpf"
)

// How much of the session's packets is copied.
const (
	CaptureNone    = ""
	CaptureHeaders = "headers" // headers of a socket's first packets, and whole what carries names
	CaptureFull    = "full"
)

// packetHooks copy the first packets of the session's sockets. They hang on the session's cgroup.
var packetHooks = map[string]ebpf.AttachType{
	bpf.ProbeProgNoteSocket: ebpf.AttachCGroupInetSockCreate,
	bpf.ProbeProgPacketIn:   ebpf.AttachCGroupInetIngress,
	bpf.ProbeProgPacketOut:  ebpf.AttachCGroupInetEgress,
}

// network takes the programs out of spec that this session does not want, and sets what the others need.
func network(spec *ebpf.CollectionSpec, o Options) error {
	level := uint32(0)
	switch {
	case o.CgroupPath == "" || o.Capture == CaptureNone:
		for name := range packetHooks {
			if name != bpf.ProbeProgNoteSocket || o.Enforce == nil || o.CgroupPath == "" { // refusals name the socket's maker
				delete(spec.Programs, name)
			}
		}
		spec.Maps[bpf.ProbeMapPackets].MaxEntries = minRing // maps stay: other programs may refer to them
	case o.Capture == CaptureHeaders:
		level = 1
	case o.Capture == CaptureFull:
		level = 2
		spec.Maps[bpf.ProbeMapPackets].MaxEntries = 4 << 20
	default:
		return fmt.Errorf("capture %q: none, headers or full", o.Capture)
	}
	if err := spec.Variables[bpf.ProbeVarCapture].Set(level); err != nil {
		return fmt.Errorf("set %s: %w", bpf.ProbeVarCapture, err)
	}
	return enforcement(spec, o)
}

func isGate(name string) bool {
	_, session := sessionGates[name]
	_, stray := strayGates[name]
	return session || stray
}

// attachNetwork links the program called name when it is one of the network's. It reports false for others.
func (p *Probes) attachNetwork(name string, prog *ebpf.Program, o Options) (link.Link, bool, error) {
	at, ok := packetHooks[name]
	if !ok {
		return nil, false, nil
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: o.CgroupPath, Attach: at, Program: prog})
	return l, true, err
}

// networkGaps is what is not seen without the cgroup that a session has not got.
func (p *Probes) networkGaps(o Options) {
	if o.CgroupPath == "" && o.Capture != CaptureNone {
		p.gaps = append(p.gaps, Gap{Hook: bpf.ProbeProgPacketOut, What: packetGap, Err: errors.New("no session cgroup to attach to")})
	}
}

const packetGap = "host names in DNS and TLS, and packets for rye pcap"

// Packets is the ring of copied packets, nil when none are.
func (p *Probes) Packets() *ebpf.Map {
	for _, name := range p.hooks {
		if name == bpf.ProbeProgPacketOut || name == bpf.ProbeProgPacketIn {
			return p.coll.Maps[bpf.ProbeMapPackets]
		}
	}
	return nil
}

// PacketCounters returns how many packets passed by, how many were copied, and how many of those to be
// copied were lost.
func (p *Probes) PacketCounters() (seen, copied, lost uint64, err error) {
	for _, c := range []struct {
		name string
		n    *uint64
	}{{bpf.ProbeVarPacketsSeen, &seen}, {bpf.ProbeVarPacketsCopied, &copied}, {bpf.ProbeVarPacketsLost, &lost}} {
		if err := p.coll.Variables[c.name].Get(c.n); err != nil {
			return 0, 0, 0, fmt.Errorf("read packet counters: %w", err)
		}
	}
	return seen, copied, lost, nil
}
