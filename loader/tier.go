package loader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/ryehq/rye/bpf"
)

// A Tier says where the hooks stand that see more than system calls do.
type Tier string

// Tiers, best first. All have the tracepoints; the first three add the same hooks, attached in another way.
const (
	LSM        Tier = "lsm"        // BPF LSM programs, and the return of do_filp_open
	Fentry     Tier = "fentry"     // trampolines on the functions that call the security modules
	Kprobe     Tier = "kprobe"     // breakpoints on them: slower, and an open keeps only what its return says
	Tracepoint Tier = "tracepoint" // system calls only
)

// Tiers lists all tiers, best first.
func Tiers() []Tier { return []Tier{LSM, Fentry, Kprobe, Tracepoint} }

// Exists reports whether there is such a tier; not whether this kernel has it.
func (t Tier) Exists() bool { return slices.Contains(Tiers(), t) }

// ErrTier says that a tier was asked for that does not exist.
var ErrTier = errors.New("no such tier")

// Available returns nil when this kernel lets this process use the tier, else its words.
func (t Tier) Available() error { return newProbe().have(t) }

// Available is [Tier.Available] without reading the kernel's types another time.
func (f *Features) Available(t Tier) error { return f.probe.have(t) }

func (q probe) have(t Tier) error {
	switch t {
	case LSM:
		if err := q.haveLSM(); err != nil {
			return err
		}
		return q.haveFentry()
	case Fentry:
		return q.haveFentry()
	case Kprobe:
		return q.haveKprobe()
	}
	return nil
}

// bestTier returns the first tier that this kernel lets this process use.
func (q probe) bestTier() Tier {
	for _, t := range Tiers() {
		if q.have(t) == nil {
			return t
		}
	}
	return Tracepoint
}

// selectTier takes the programs of other tiers out of the specification.
func (q probe) selectTier(spec *ebpf.CollectionSpec, tier Tier) error {
	if !tier.Exists() {
		return fmt.Errorf("%w: %q (lsm, fentry, kprobe, tracepoint)", ErrTier, tier)
	}
	for name := range spec.Programs {
		if t := tierOf(name); t != "" && t != tier && !(t == Fentry && tier == LSM && name == bpf.ProbeProgAfterOpen) {
			delete(spec.Programs, name)
		}
	}
	return nil
}

// tierOf returns the tier a program is for, "" for all.
func tierOf(name string) Tier {
	switch name {
	case bpf.ProbeProgAfterOpen:
		return Fentry
	case bpf.ProbeProgAfterOpenKprobe:
		return Kprobe
	}
	if prefix, _, ok := strings.Cut(name, "_"); ok && slices.Contains([]Tier{LSM, Fentry, Kprobe}, Tier(prefix)) {
		return Tier(prefix)
	}
	return ""
}

// openFunction names the function that every open by path comes through: do_filp_open until Linux 6.19,
// do_file_open after it.
func (q probe) openFunction() string {
	const now, before = "do_file_open", "do_filp_open"
	spec, err := q.types.Kernel()
	if err != nil {
		return before
	}
	var f *btf.Func
	if spec.TypeByName(now, &f) == nil {
		return now
	}
	return before
}

// attachHook attaches a tracing, LSM or kprobe program where its specification says.
func (p *Probes) attachHook(name string, prog *ebpf.Program) (link.Link, error) {
	switch hook := strings.TrimPrefix(name, string(Kprobe)+"_"); {
	case name == bpf.ProbeProgAfterOpenKprobe:
		return link.Kretprobe(p.openedBy, prog, nil)
	case hook != name:
		return link.Kprobe("security_"+hook, prog, nil)
	case prog.Type() == ebpf.LSM:
		return link.AttachLSM(link.LSMOptions{Program: prog})
	}
	return link.AttachTracing(link.TracingOptions{Program: prog})
}

// announce tells the programs which of the others are there: each fact is reported by one of them.
func (p *Probes) announce() error {
	has := func(names ...string) bool {
		for _, n := range names {
			if !slices.ContainsFunc(p.hooks, func(h string) bool { return h == n || tierOf(h) != "" && strings.HasSuffix(h, "_"+n) }) {
				return false
			}
		}
		return true
	}
	var opens uint16
	if has(bpf.ProbeProgAfterOpen) {
		opens = uint16(bpf.ProbeCallCALL_OPENAT2)
	}
	for v, value := range map[string]any{
		bpf.ProbeVarOpensHooked: opens,
		bpf.ProbeVarNamesHooked: has("path_unlink") || has("path_rename"),
		bpf.ProbeVarUnixHooked:  has("unix_stream_connect", "unix_may_send"),
		bpf.ProbeVarSocketHooks: has(bpf.ProbeProgBeforeConnect4, bpf.ProbeProgBeforeConnect6, bpf.ProbeProgBeforeSendmsg4, bpf.ProbeProgBeforeSendmsg6),
	} {
		if err := p.coll.Variables[v].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", v, err)
		}
	}
	if p.tier != Tracepoint && !slices.ContainsFunc(p.hooks, func(h string) bool { return tierOf(h) != "" }) {
		p.tier = Tracepoint // none of its hooks could be had
	}
	p.blind = blindSpots(has)
	return nil
}

// Tier returns the tier in use.
func (p *Probes) Tier() Tier { return p.tier }
