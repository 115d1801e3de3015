package verify

import (
	"path"
	"slices"
	"strconv"

	"github.com/ryehq/rye/proctree"
)

// An escapeKind says how much a technique weighs and what to call it.
type escapeKind struct {
	severity Severity
	says     string
	blind    bool // what it does next cannot be followed
}

var escapeKinds = map[string]escapeKind{
	"cgroup":            {Warning, "left the session's cgroup", false},
	"ptrace":            {Warning, "traced another process", false},
	"process_vm_writev": {Warning, "wrote into another process's memory", false},
	"proc_mem":          {Warning, "opened another process's memory", false},
	"bpf":               {Contradicts, "used bpf(), with which the witness itself can be blinded", true},
	"module":            {Contradicts, "loaded a kernel module", true},
	"mount":             {Warning, "mounted a file system", false},
	"unshare":           {Warning, "made new namespaces", false},
	"setns":             {Warning, "entered other namespaces", false},
	"io_uring":          {Info, "used io_uring", false},
	"memfd_exec":        {Warning, "ran a program from memory, with no file behind it", false},
	"deleted_exec":      {Warning, "ran a program whose file had been deleted", false},
	"raw_socket":        {Warning, "opened a raw socket", false},
	"packet_socket":     {Warning, "opened a packet socket, past every connect that is watched", false},
	"vsock":             {Warning, "opened a socket to a virtual machine or its host", false},
	"setuid":            {Info, "changed its user", false},
	"tiocsti":           {Contradicts, "pushed bytes into the terminal's input, as if they had been typed", false},
	"pidfd_getfd":       {Warning, "took a file descriptor from another process", false},
	"int80":             {Info, "made a 32-bit system call", false},
	"userfaultfd":       {Info, "used userfaultfd", false},
	"open_by_handle_at": {Warning, "opened files by handle", false},
	"kexec":             {Contradicts, "loaded another kernel", true},
	"clone_ns":          {Warning, "started a process in new namespaces", false},
	"pivot_root":        {Warning, "changed its root folder", false},
	"perf":              {Info, "measured events of the kernel", false},
}

// Programs whose business a technique is: naming them in the approved text names it.
var escapeTools = map[string][]string{
	"ptrace": {"strace", "ltrace", "gdb", "gdbserver", "lldb", "rr", "perf", "dlv", "valgrind"}, "process_vm_writev": {"gdb", "lldb"}, "proc_mem": {"gdb", "lldb", "gcore"},
	"clone_ns": {"unshare", "bwrap", "docker", "podman", "chromium", "chrome", "firejail", "nix", "nix-build"}, "pivot_root": {"bwrap", "unshare", "docker", "podman"},
	"unshare": {"unshare", "bwrap", "docker", "podman", "buildah", "chromium", "chrome", "flatpak", "firejail", "nix", "nix-build"}, "setns": {"nsenter", "ip", "docker"},
	"mount": {"mount", "umount", "unshare", "bwrap", "fusermount", "fusermount3", "docker", "podman"}, "raw_socket": {"ping", "ping4", "ping6", "traceroute", "mtr", "nmap", "fping"},
	"packet_socket": {"tcpdump", "dhclient", "nmap", "tshark", "dumpcap", "arping"}, "bpf": {"bpftrace", "bpftool", "tc"}, "module": {"insmod", "modprobe", "rmmod"},
	"setuid": {"sudo", "su", "passwd", "newgrp", "chsh", "chfn", "mount", "umount", "ping", "fusermount", "fusermount3", "pkexec", "doas", "newuidmap", "newgidmap", "gpasswd", "ssh-agent", "crontab", "at", "dbus-daemon-launch-helper", "unix_chkpwd", "ssh-keysign", "bwrap"},
	"cgroup": {"systemd-run", "cgexec"}, "kexec": {"kexec"},
}

// escapes are attempts at what the witness may not be able to follow.
func (v *judge) escapes() {
	type key struct {
		it   *item
		kind ownerKind
		what string
		prog string
	}
	told := make(map[key]int)
	v.facts.escapes = append(v.facts.escapes, v.fromMemory()...)
	for _, r := range v.facts.escapes {
		o := v.cast.ownerOf(r.proc)
		x := v.imageAt(r)
		if o.kind == witness || v.sandboxWork(r, o, x) || ordinary(r, x) {
			continue
		}
		it, _ := v.account(o)
		prog := "A process"
		if x != nil {
			prog = program(x)
		}
		k := key{it, o.kind, r.what, prog}
		if i, ok := told[k]; ok {
			v.again(i, r.seq, Info, nil)
			continue
		}
		told[k] = len(v.findings)
		v.find(it, v.escape(r, o, it, prog, x))
		v.blind(r, it)
	}
}

// ordinary: what many programs do and what leads nowhere. A file in memory matters when it is run, and
// then its exec says so; setting one's user to what it is anyway changes nothing.
func ordinary(r escapeRecord, x *proctree.Exec) bool {
	switch r.what {
	case "memfd":
		return true
	case "setuid":
		if x == nil {
			return false
		}
		for _, name := range []string{"uid", "euid", "suid"} {
			switch id := r.detail[name]; id {
			case "", "-1", "4294967295", strconv.Itoa(int(x.UID)), strconv.Itoa(int(x.EUID)):
			default:
				return false
			}
		}
		return true
	}
	return false
}

func (v *judge) escape(r escapeRecord, o owner, it *item, prog string, x *proctree.Exec) Finding {
	kind, known := escapeKinds[r.what]
	if !known {
		kind = escapeKind{severity: Warning, says: "used " + r.what}
	}
	f := Finding{Code: EscapeAttempt, Severity: kind.severity, Reason: r.what, Records: []uint64{r.seq}}
	detail := ""
	for _, name := range []string{"comm", "target", "path", "fstype", "flags", "request", "name", "type"} {
		if d := r.detail[name]; d != "" {
			detail = " (" + name + " " + quote(d) + ")"
			break
		}
	}
	if r.left != nil {
		detail = " for " + quote(r.left.To)
		if r.left.Recorded {
			detail += "; it was followed all the same"
		}
	}
	verb := kind.says
	if r.failed != "" {
		detail += ", and was refused (" + r.failed + ")"
	}
	f.Message = sayf("%s %s%s.", prog, verb, detail)
	// A technique that the allowed text names by its tool is no surprise.
	if f.Severity != Info && it != nil && it.script != nil && it.script.Err == nil && x != nil && slices.Contains(escapeTools[r.what], path.Base(x.Exe)) && namedIn(it, x) {
		f.Severity = Info
	}
	if r.what == "setuid" && x != nil && !slices.Contains(escapeTools["setuid"], path.Base(x.Exe)) {
		f.Severity = Warning
	}
	if it == nil && o.kind != nobody || it != nil && it.ownWord() {
		if f.Severity == Contradicts {
			f.Severity = Warning
		}
	}
	return f
}

// blind makes an action indeterminate when what follows an escape cannot be seen.
func (v *judge) blind(r escapeRecord, it *item) {
	kind := escapeKinds[r.what]
	switch {
	case r.failed != "":
	case r.left != nil && !r.left.Recorded:
		v.doubt(it, EvidenceLost, "out-of-sight", "A process left the session's cgroup and was not followed: what it did from then on is not recorded.", r.seq)
	case kind.blind && it != nil && !it.ownWord():
		v.doubt(it, EvidenceLost, "out-of-sight", sayf("After it %s, the record of what followed may be incomplete.", kind.says), r.seq)
	case r.what == "io_uring" && v.gap("io_uring"):
		v.doubt(it, EvidenceLost, "io_uring", "A program used io_uring, and this kernel does not let rye see files and connections that go through it.", r.seq)
	}
}

func namedIn(it *item, x *proctree.Exec) bool {
	return slices.ContainsFunc(it.execs, func(e Exec) bool { return e.Seq == x.Seq && e.Relation == Named })
}

func (v *judge) imageAt(r escapeRecord) *proctree.Exec {
	if p := v.facts.tree.Lookup(r.proc); p != nil {
		return p.ImageAt(r.ns)
	}
	return nil
}

// sandboxWork: an assistant's own sandbox makes namespaces and mounts; that is what it is for.
func (v *judge) sandboxWork(r escapeRecord, o owner, x *proctree.Exec) bool {
	switch r.what {
	case "unshare", "setns", "mount", "setuid", "memfd_exec", "deleted_exec", "clone_ns", "pivot_root":
	default:
		return false
	}
	if x == nil || o.kind != command && o.kind != assistant || o.agent != codex && o.agent != claude {
		return false
	}
	if o.kind == assistant {
		return r.what != "memfd_exec" && r.what != "deleted_exec"
	}
	return wrapperOf(o.agent, x) != "" && (o.cand == nil || o.cand.root == nil || compareExecs(x, o.cand.root) < 0 || slices.Contains(o.cand.chain, x) || o.cand.keep != nil)
}

// fromMemory adds execs that carry the mark of a program without a file, where no escape record says
// so already.
func (v *judge) fromMemory() []escapeRecord {
	seen := make(map[*proctree.Exec]bool)
	for _, r := range v.facts.escapes {
		if r.what == "memfd_exec" || r.what == "deleted_exec" {
			if x := v.imageAt(r); x != nil {
				seen[x] = true
			}
		}
	}
	var out []escapeRecord
	for _, p := range v.cast.procs {
		for _, x := range p.Execs {
			if len(x.Marks) == 0 || seen[x] {
				continue
			}
			switch {
			case x.Marked("memfd"):
				out = append(out, escapeRecord{seq: x.Seq, ns: x.TimeNS, proc: p.Key, what: "memfd_exec", detail: map[string]string{"name": x.Exe}})
			case x.Marked("deleted"):
				out = append(out, escapeRecord{seq: x.Seq, ns: x.TimeNS, proc: p.Key, what: "deleted_exec", detail: map[string]string{"name": x.Exe}})
			}
		}
	}
	return out
}
