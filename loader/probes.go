package loader

import (
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

var returnZero = asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}

// try loads the smallest program of a kind, attaches it and takes it away.
func try(spec *ebpf.ProgramSpec, attach func(*ebpf.Program) (link.Link, error)) error {
	spec.Instructions, spec.License = returnZero, "Dual BSD/GPL"
	p, err := ebpf.NewProgram(spec)
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := attach(p)
	if err != nil {
		return err
	}
	return l.Close()
}

func attachTracing(p *ebpf.Program) (link.Link, error) {
	return link.AttachTracing(link.TracingOptions{Program: p})
}

func haveTracing() error {
	return try(&ebpf.ProgramSpec{Name: "rye_tp", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_process_exit"}, attachTracing)
}

func haveFentry() error {
	return try(&ebpf.ProgramSpec{Name: "rye_fentry", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: "security_file_open"}, attachTracing)
}

// haveLSM is true only when a program loads and the LSM is in the active list: a kernel can accept BPF
// LSM programs and never call them.
func haveLSM() error {
	active, err := os.ReadFile("/sys/kernel/security/lsm")
	if err == nil && !strings.Contains(","+strings.TrimSpace(string(active))+",", ",bpf,") {
		return fmt.Errorf("bpf is not among the active security modules (%s): %w", strings.TrimSpace(string(active)), ebpf.ErrNotSupported)
	}
	return try(&ebpf.ProgramSpec{Name: "rye_lsm", Type: ebpf.LSM, AttachType: ebpf.AttachLSMMac, AttachTo: "file_open"}, func(p *ebpf.Program) (link.Link, error) {
		return link.AttachLSM(link.LSMOptions{Program: p})
	})
}

func haveKprobe() error {
	return try(&ebpf.ProgramSpec{Name: "rye_kprobe", Type: ebpf.Kprobe}, func(p *ebpf.Program) (link.Link, error) {
		return link.Kprobe("security_file_open", p, nil)
	})
}
