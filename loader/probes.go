package loader

import (
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

var returnZero = asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}

// A probe asks the kernel. It keeps the kernel's types, which take a twentieth of a second to read and far more
// memory than anything else here, for the next question.
type probe struct{ types *btf.Cache }

func newProbe() probe { return probe{btf.NewCache()} }

// try loads the smallest program of a kind, attaches it and takes it away. What was unloaded a moment ago can
// still be charged to the memory lock limit: that must not look like a kernel without the kind.
func (q probe) try(spec *ebpf.ProgramSpec, attach func(*ebpf.Program) (link.Link, error)) error {
	restore, _ := raiseMemlock()
	defer restore()
	spec.Instructions, spec.License = returnZero, "Dual BSD/GPL"
	c, err := ebpf.NewCollectionWithOptions(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{spec.Name: spec}}, ebpf.CollectionOptions{Cache: q.types})
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := attach(c.Programs[spec.Name])
	if err != nil {
		return err
	}
	return l.Close()
}

func attachTracing(p *ebpf.Program) (link.Link, error) {
	return link.AttachTracing(link.TracingOptions{Program: p})
}

func (q probe) haveTracing() error {
	return q.try(&ebpf.ProgramSpec{Name: "rye_tp", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_process_exit"}, attachTracing)
}

func (q probe) haveFentry() error {
	return q.try(&ebpf.ProgramSpec{Name: "rye_fentry", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: "security_file_open"}, attachTracing)
}

// haveLSM is true only when a program loads and the LSM is in the active list: a kernel can accept BPF
// LSM programs and never call them.
func (q probe) haveLSM() error {
	active, err := os.ReadFile("/sys/kernel/security/lsm")
	if err == nil && !strings.Contains(","+strings.TrimSpace(string(active))+",", ",bpf,") {
		return fmt.Errorf("bpf is not among the active security modules (%s): %w", strings.TrimSpace(string(active)), ebpf.ErrNotSupported)
	}
	return q.try(&ebpf.ProgramSpec{Name: "rye_lsm", Type: ebpf.LSM, AttachType: ebpf.AttachLSMMac, AttachTo: "file_open"}, func(p *ebpf.Program) (link.Link, error) {
		return link.AttachLSM(link.LSMOptions{Program: p})
	})
}

func (q probe) haveKprobe() error {
	return q.try(&ebpf.ProgramSpec{Name: "rye_kprobe", Type: ebpf.Kprobe}, func(p *ebpf.Program) (link.Link, error) {
		return link.Kprobe("security_file_open", p, nil)
	})
}
