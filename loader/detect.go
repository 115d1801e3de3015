package loader

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// An Answer is what a probe found out. The third value is not a no.
type Answer string

const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// A Feature is one thing rye can use, whether it is here, and what to do when it is not.
type Feature struct {
	Name   string `json:"name"`
	Answer Answer `json:"answer"`
	Why    string `json:"why,omitempty"` // the kernel's own words, for a no or an unknown
	Fix    string `json:"fix,omitempty"` // a command, or what to change
	Needed bool   `json:"needed"`        // without it there is no kernel witness at all
	For    string `json:"for"`
}

// Features is what Detect found.
type Features struct {
	Kernel string    `json:"kernel"`
	Tier   string    `json:"tier"` // the best that can be had here: lsm, fentry, kprobe, tracepoint, or none
	List   []Feature `json:"features"`

	probe probe
}

// Missing returns the needed features that are not here for certain.
func (f *Features) Missing() []Feature {
	var m []Feature
	for _, x := range f.List {
		if x.Needed && x.Answer == No {
			m = append(m, x)
		}
	}
	return m
}

// Map returns name → answer, as observer.attached records it.
func (f *Features) Map() map[string]string {
	m := make(map[string]string, len(f.List))
	for _, x := range f.List {
		m[x.Name] = string(x.Answer)
	}
	return m
}

// Detect asks the kernel what it offers to this process. It loads nothing that stays.
func Detect() *Features {
	f := &Features{Kernel: release(), probe: newProbe()}
	exe, err := os.Executable()
	if err != nil {
		exe = "rye"
	}
	setcap := fmt.Sprintf("sudo setcap cap_bpf,cap_perfmon,cap_net_admin=ep %s", exe)

	caps, capErr := effective()
	for _, c := range []struct {
		name   string
		bit    uint
		needed bool
		use    string
	}{
		{"cap_bpf", unix.CAP_BPF, true, "load programs"},
		{"cap_perfmon", unix.CAP_PERFMON, true, "read kernel memory in programs"},
		{"cap_net_admin", unix.CAP_NET_ADMIN, false, "see every connect and datagram destination"},
	} {
		x := Feature{Name: c.name, Needed: c.needed, For: c.use}
		switch {
		case capErr != nil:
			x.Answer, x.Why = Unknown, capErr.Error()
		case caps&(1<<c.bit) != 0 || caps&(1<<unix.CAP_SYS_ADMIN) != 0:
			x.Answer = Yes
		default:
			x.Answer, x.Why, x.Fix = No, "this process does not have it", setcap
		}
		f.List = append(f.List, x)
	}

	x := Feature{Name: "btf", Needed: true, For: "relocate programs to this kernel"}
	if _, err := f.probe.types.Kernel(); err == nil {
		x.Answer = Yes
	} else if errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) || os.IsNotExist(err) {
		x.Answer, x.Why, x.Fix = No, err.Error(), "run a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian 11+, Ubuntu 20.10+, Fedora 31+)"
	} else {
		x.Answer, x.Why = Unknown, err.Error()
	}
	f.List = append(f.List, x)

	f.add("ring_buffer", true, "carry events in one order", "run Linux 5.8 or later", features.HaveMapType(ebpf.RingBuf))
	f.add("tracing", true, "tp_btf programs: fork, exec, exit, opens", "run Linux 5.8 or later; in a container, run rye on the host", f.probe.haveTracing())
	f.add("cgroup_sock_addr", false, "connect and sendmsg hooks", "add CAP_NET_ADMIN", features.HaveProgramType(ebpf.CGroupSockAddr))
	tiers := map[Tier]error{}
	for _, t := range []struct {
		tier     Tier
		use, fix string
	}{
		{LSM, "hooks beside the kernel's own security decisions", "boot with lsm=…,bpf (CONFIG_BPF_LSM=y)"},
		{Fentry, "the same sight through trampolines", ""},
		{Kprobe, "most of the same sight through breakpoints", ""},
	} {
		tiers[t.tier] = f.probe.have(t.tier)
		f.add(string(t.tier), false, t.use, t.fix, tiers[t.tier])
	}
	for _, t := range Tiers() {
		if f.Tier == "" && tiers[t] == nil {
			f.Tier = string(t)
		}
	}

	if len(f.Missing()) > 0 {
		f.Tier = "none"
	}
	return f
}

func (f *Features) add(name string, needed bool, use, fix string, err error) {
	x := Feature{Name: name, Needed: needed, For: use, Answer: Yes}
	switch {
	case err == nil:
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, os.ErrNotExist):
		x.Answer, x.Why, x.Fix = No, Words(err), fix
	case errors.Is(err, unix.EPERM):
		x.Answer, x.Why, x.Fix = No, "refused: "+Words(err), fix
	default:
		x.Answer, x.Why = Unknown, Words(err)
	}
	f.List = append(f.List, x)
}

// Words are an error's words without the library's advice on memory limits, which rye has already lifted.
func Words(err error) string {
	return strings.ReplaceAll(err.Error(), " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "")
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// effective returns this process's effective capabilities as a bit set.
func effective() (uint64, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	return uint64(data[0].Effective) | uint64(data[1].Effective)<<32, nil
}

// explainLoad turns a load error into one line with a next step.
func explainLoad(err, memlock error) error {
	var ve *ebpf.VerifierError
	switch {
	case errors.As(err, &ve):
		return fmt.Errorf("the kernel's verifier refused a program (please report this with `rye doctor --json`): %w", err)
	case errors.Is(err, unix.EPERM) && memlock != nil:
		return fmt.Errorf("load programs: %w (and the memory lock limit could not be raised: %v)", err, memlock)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("load programs: %w: CAP_BPF and CAP_PERFMON are needed; see `rye doctor`", err)
	case strings.Contains(err.Error(), "BTF"):
		return fmt.Errorf("load programs: %w: this kernel carries no BTF; see `rye doctor`", err)
	}
	return fmt.Errorf("load programs: %w", err)
}
