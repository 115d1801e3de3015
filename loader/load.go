// Package loader puts rye's programs into the kernel and takes them out again. It is the only package
// that asks the kernel for anything privileged. It imports bpf and cilium/ebpf; it knows no events.
//
//	Detect → what can this machine offer, each answer yes, no or could not tell
//	Load   → maps and programs, verified for one session's cgroup
//	Attach → links; Close takes them away
//	Drop   → capabilities go as soon as nothing needs them
package loader

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/ryehq/rye/bpf"
)

// Options says which processes are the session's.
type Options struct {
	CgroupID    uint64    // inode number of the session's cgroup; 0 without one: membership by descent only
	CgroupLevel uint32    // its depth, the root of the hierarchy is 0
	CgroupPath  string    // for the socket hooks
	RingBytes   uint32    // size of the ring buffer, a power of two; 0 for the default
	Tier        Tier      // "" for the best that is here
	Found       *Features // what Detect said, so that it need not be asked again; may be nil
	Capture     string    // CaptureNone, CaptureHeaders, CaptureFull
	Enforce     *Enforce
	// Roots are processes that belong from the start (used without a cgroup, and for adoption).
	Roots []uint32
}

// A Gap is a hook that could not be had, and what is not seen without it.
type Gap struct {
	Hook, What string
	Err        error
}

// Probes are the programs of one session.
type Probes struct {
	coll     *ebpf.Collection
	links    []link.Link
	hooks    []string
	gaps     []Gap
	ring     uint32
	tier     Tier
	blind    []Blind
	openedBy string // what every open by path comes through
}

const minRing = 4096

// descentMembers is how many processes a session without a cgroup can have at the same time: all of them are
// in the table that otherwise holds the few outside the cgroup.
const descentMembers = 65536

// hooks of the tracepoint tier that nothing works without.
var required = []string{bpf.ProbeProgOnFork, bpf.ProbeProgOnExec, bpf.ProbeProgOnExit, bpf.ProbeProgOnSysExit}

// socketHooks are attached to the session's cgroup and need CAP_NET_ADMIN.
var socketHooks = map[string]ebpf.AttachType{
	bpf.ProbeProgBeforeConnect4: ebpf.AttachCGroupInet4Connect,
	bpf.ProbeProgBeforeConnect6: ebpf.AttachCGroupInet6Connect,
	bpf.ProbeProgBeforeSendmsg4: ebpf.AttachCGroupUDP4Sendmsg,
	bpf.ProbeProgBeforeSendmsg6: ebpf.AttachCGroupUDP6Sendmsg,
}

// Load verifies and loads the programs. Programs that this machine refuses are left out and become gaps,
// as long as the required ones load.
func Load(o Options) (*Probes, error) {
	restore, memlock := raiseMemlock()
	defer restore()

	spec, err := bpf.LoadProbe()
	if err != nil {
		return nil, fmt.Errorf("read programs: %w", err)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count cpus: %w", err)
	}
	spec.Maps[bpf.ProbeMapScratches].MaxEntries = uint32(cpus)
	if o.CgroupID == 0 {
		spec.Maps[bpf.ProbeMapMembers].MaxEntries = descentMembers
	}
	if o.RingBytes != 0 {
		spec.Maps[bpf.ProbeMapEvents].MaxEntries = max(o.RingBytes, minRing)
	}
	ring := spec.Maps[bpf.ProbeMapEvents].MaxEntries
	// Tracing programs cannot be probed for helpers; raw tracepoints share their set (bpf_tracing_func_proto).
	helper := features.HaveProgramHelper(ebpf.RawTracepoint, asm.FnGetCurrentAncestorCgroupId) == nil
	loop := features.HaveProgramHelper(ebpf.RawTracepoint, asm.FnLoop) == nil
	if !loop {
		withoutLoop(spec)
	}
	q := newProbe()
	tier := o.Tier
	if o.Found != nil {
		q = o.Found.probe
		if tier == "" && o.Found.Tier != "none" {
			tier = Tier(o.Found.Tier)
		}
	}
	if tier == "" {
		tier = q.bestTier()
	}
	if err := q.selectTier(spec, tier); err != nil {
		return nil, err
	}
	for name, value := range map[string]any{
		bpf.ProbeVarSessionCgroup:     o.CgroupID,
		bpf.ProbeVarSessionLevel:      o.CgroupLevel,
		bpf.ProbeVarHasAncestorHelper: helper,
		bpf.ProbeVarHasLoop:           loop,
		bpf.ProbeVarHasTaskBtf:        features.HaveProgramHelper(ebpf.RawTracepoint, asm.FnGetCurrentTaskBtf) == nil,
		bpf.ProbeVarHasTaskRegs:       features.HaveProgramHelper(ebpf.RawTracepoint, asm.FnTaskPtRegs) == nil,
		bpf.ProbeVarWakeupBytes:       uint64(ring / 8),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}

	if err := network(spec, o); err != nil {
		return nil, err
	}

	p := &Probes{ring: ring, tier: tier}
	if tier != Tracepoint {
		p.openedBy = q.openFunction()
	}
	if after := spec.Programs[bpf.ProbeProgAfterOpen]; after != nil {
		after.AttachTo = p.openedBy
	}
	var last error
	// One program that a kernel refuses must not cost the others: drop it, note the gap, try again.
	for range len(spec.Programs) {
		p.coll, last = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: q.types})
		if last == nil {
			break
		}
		refused := ""
		for name := range spec.Programs {
			if !slices.Contains(required, name) && p.refuses(q, spec, name, last) {
				refused = name
				break
			}
		}
		if refused == "" {
			return nil, explainLoad(last, memlock)
		}
		p.gaps = append(p.gaps, Gap{Hook: refused, What: whatFor(refused), Err: last})
		delete(spec.Programs, refused)
	}
	if last != nil {
		return nil, explainLoad(last, memlock)
	}
	if o.CgroupID == 0 {
		if err := p.coll.Variables[bpf.ProbeVarStrays].Set(uint32(1)); err != nil {
			p.Close()
			return nil, fmt.Errorf("set membership: %w", err)
		}
	}
	for _, tgid := range o.Roots {
		if err := p.Adopt(tgid, 0); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// withoutLoop takes the references to bpf_loop's callback out. The call is dead code on a kernel without
// it, but kernels before 5.13 refuse the instruction that loads a function's address wherever it stands.
func withoutLoop(spec *ebpf.CollectionSpec) {
	for _, p := range spec.Programs {
		for i, ins := range p.Instructions {
			if ins.IsLoadOfFunctionPointer() {
				p.Instructions[i] = asm.LoadImm(ins.Dst, 0, asm.DWord).WithMetadata(ins.Metadata).WithReference("")
			}
		}
	}
}

// refuses reports whether the load error belongs to the program called name.
func (p *Probes) refuses(q probe, spec *ebpf.CollectionSpec, name string, err error) bool {
	one := &ebpf.CollectionSpec{Maps: spec.Maps, Programs: map[string]*ebpf.ProgramSpec{name: spec.Programs[name]}, Types: spec.Types, ByteOrder: spec.ByteOrder, Variables: spec.Variables}
	c, tryErr := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{Cache: q.types})
	if tryErr == nil {
		c.Close()
		return false
	}
	return true
}

// Attach links the programs. A required hook that cannot be attached is an error; another is a gap.
func (p *Probes) Attach(o Options) error {
	for name, prog := range p.coll.Programs {
		if isGate(name) {
			continue // see Enforce
		}
		var l link.Link
		var err error
		if at, ok := socketHooks[name]; ok {
			if o.CgroupPath == "" {
				p.gaps = append(p.gaps, Gap{Hook: name, What: whatFor(name), Err: errors.New("no session cgroup to attach to")})
				continue
			}
			l, err = link.AttachCgroup(link.CgroupOptions{Path: o.CgroupPath, Attach: at, Program: prog})
		} else if l, ok, err = p.attachNetwork(name, prog, o); !ok {
			l, err = p.attachHook(name, prog)
		}
		if err != nil {
			if slices.Contains(required, name) {
				return fmt.Errorf("attach %s: %w", name, err)
			}
			p.gaps = append(p.gaps, Gap{Hook: name, What: whatFor(name), Err: err})
			continue
		}
		p.links = append(p.links, l)
		p.hooks = append(p.hooks, name)
	}
	p.networkGaps(o)
	slices.Sort(p.hooks)
	return p.announce()
}

func whatFor(hook string) string {
	switch hook {
	case bpf.ProbeProgBeforeConnect4, bpf.ProbeProgBeforeConnect6:
		return "destinations of failed, non-blocking and TCP Fast Open connects come from the socket or from user memory"
	case bpf.ProbeProgBeforeSendmsg4, bpf.ProbeProgBeforeSendmsg6:
		return "datagrams sent without connect"
	case bpf.ProbeProgEnforceConnect4, bpf.ProbeProgEnforceConnect6, bpf.ProbeProgEnforceSendmsg4, bpf.ProbeProgEnforceSendmsg6,
		bpf.ProbeProgEnforceSocket, bpf.ProbeProgEnforcePacket, bpf.ProbeProgStrayConnect4, bpf.ProbeProgStrayConnect6,
		bpf.ProbeProgStraySendmsg4, bpf.ProbeProgStraySendmsg6, bpf.ProbeProgStraySocket:
		return "refusals"
	case bpf.ProbeProgPacketIn, bpf.ProbeProgPacketOut, bpf.ProbeProgNoteSocket:
		return packetGap
	case bpf.ProbeProgOnCgroupAttach:
		return "moves between cgroups"
	}
	return whatForHook(hook)
}

// Hooks returns the names of the attached programs, sorted.
func (p *Probes) Hooks() []string { return p.hooks }

// Gaps returns the hooks that are missing.
func (p *Probes) Gaps() []Gap { return p.gaps }

// RingBytes returns the size of the ring buffer.
func (p *Probes) RingBytes() uint32 { return p.ring }

// Events is the ring buffer map.
func (p *Probes) Events() *ebpf.Map { return p.coll.Maps[bpf.ProbeMapEvents] }

// Repeats is the table of counted repeats.
func (p *Probes) Repeats() *ebpf.Map { return p.coll.Maps[bpf.ProbeMapRepeats] }

// Counters returns how many records of each type (index: bpf.ProbeEventType) were delivered to the ring
// and how many were lost.
func (p *Probes) Counters() (emitted, lost []uint64, err error) {
	emitted = make([]uint64, bpf.ProbeEventTypeEVENT_TYPE_MAX)
	lost = make([]uint64, bpf.ProbeEventTypeEVENT_TYPE_MAX)
	if err := p.coll.Variables[bpf.ProbeVarEmitted].Get(emitted); err != nil {
		return nil, nil, fmt.Errorf("read counters: %w", err)
	}
	if err := p.coll.Variables[bpf.ProbeVarLost].Get(lost); err != nil {
		return nil, nil, fmt.Errorf("read counters: %w", err)
	}
	return emitted, lost, nil
}

// Adopt makes a running process, and all it forks from now on, part of the session. startNS is its start
// as event.ProcessKey has it.
func (p *Probes) Adopt(tgid uint32, startNS uint64) error {
	m := bpf.ProbeMember{StartNs: startNS, How: bpf.ProbeMembershipMEMBER_ADOPTED}
	if err := p.coll.Maps[bpf.ProbeMapMembers].Put(tgid, m); err != nil {
		return fmt.Errorf("adopt process %d: %w", tgid, err)
	}
	if err := p.coll.Variables[bpf.ProbeVarStrays].Set(uint32(1)); err != nil {
		return fmt.Errorf("adopt process %d: %w", tgid, err)
	}
	return nil
}

// Release takes an adopted process out again. Its descendants stay.
func (p *Probes) Release(tgid uint32) error {
	if err := p.coll.Maps[bpf.ProbeMapMembers].Delete(tgid); err != nil {
		return fmt.Errorf("release process %d: %w", tgid, err)
	}
	return nil
}

// Member reports whether the kernel counts the process as a member by descent or adoption.
func (p *Probes) Member(tgid uint32) bool {
	var m bpf.ProbeMember
	return p.coll.Maps[bpf.ProbeMapMembers].Lookup(tgid, &m) == nil
}

// Close detaches and unloads.
func (p *Probes) Close() error {
	var errs []error
	for _, l := range p.links {
		errs = append(errs, l.Close())
	}
	p.links = nil
	if p.coll != nil {
		p.coll.Close()
	}
	return errors.Join(errs...)
}
