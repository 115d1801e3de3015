package collector

import (
	"fmt"
	"strconv"

	"github.com/ryehq/rye/bpf"
	"github.com/ryehq/rye/event"
)

func decodePathop(raw []byte) (event.Body, error) {
	var r bpf.ProbePathopEvent
	rest, err := fixed(raw, &r)
	if err != nil {
		return nil, err
	}
	t := tail{b: rest}
	base, name := t.string(r.BaseLen), t.string(r.PathLen)
	base2, name2 := t.string(r.Base2Len), t.string(r.Path2Len)
	if t.bad {
		return nil, fmt.Errorf("%w: path operation tail", ErrRecord)
	}
	from, to := join(base, name), join(base2, name2)
	marks := flagMarks(r.H.Flags, nil)
	switch r.Op {
	case bpf.ProbePathOpOP_UNLINK, bpf.ProbePathOpOP_RMDIR:
		return &event.FileDelete{Path: from, Dev: device(r.Dev), Ino: r.Ino, Result: r.Result, Marks: marks}, nil
	case bpf.ProbePathOpOP_RENAME:
		return &event.FileRename{From: from, To: to, Dev: device(r.Dev), Ino: r.Ino, Result: r.Result, How: "rename", Marks: marks}, nil
	case bpf.ProbePathOpOP_LINK:
		return &event.FileRename{From: from, To: to, Dev: device(r.Dev), Ino: r.Ino, Result: r.Result, How: "link", Marks: marks}, nil
	case bpf.ProbePathOpOP_SYMLINK: // the first string is the link's content, not a path that was touched
		return &event.FileRename{From: name, To: to, Result: r.Result, How: "symlink", Marks: marks}, nil
	case bpf.ProbePathOpOP_TRUNCATE:
		return &event.FileChange{Path: from, How: "truncate", Result: r.Result, Marks: marks}, nil
	case bpf.ProbePathOpOP_MKDIR:
		return &event.FileChange{Path: from, How: "mkdir", Result: r.Result, Marks: marks}, nil
	case bpf.ProbePathOpOP_CHMOD:
		return &event.FileChange{Path: from, How: "chmod", Result: r.Result, Marks: marks}, nil
	case bpf.ProbePathOpOP_CHOWN:
		return &event.FileChange{Path: from, How: "chown", Result: r.Result, Marks: marks}, nil
	case bpf.ProbePathOpOP_MKNOD:
		return &event.FileChange{Path: from, How: "mknod", Result: r.Result, Marks: marks}, nil
	}
	return nil, fmt.Errorf("%w: path operation %d", ErrRecord, r.Op)
}

// escapes gives each kind of escape its name and says what its arguments are.
var escapes = map[bpf.ProbeEscapeWhat]struct {
	name string
	args [4]string
}{
	bpf.ProbeEscapeWhatESC_PTRACE:        {"ptrace", [4]string{"request", "pid"}},
	bpf.ProbeEscapeWhatESC_VM_WRITEV:     {"process_vm_writev", [4]string{"pid"}},
	bpf.ProbeEscapeWhatESC_UNSHARE:       {"unshare", [4]string{"flags"}},
	bpf.ProbeEscapeWhatESC_SETNS:         {"setns", [4]string{"fd", "nstype"}},
	bpf.ProbeEscapeWhatESC_BPF:           {"bpf", [4]string{"cmd"}},
	bpf.ProbeEscapeWhatESC_MOUNT:         {"mount", [4]string{}},
	bpf.ProbeEscapeWhatESC_MODULE:        {"module", [4]string{}},
	bpf.ProbeEscapeWhatESC_IO_URING:      {"io_uring", [4]string{"entries"}},
	bpf.ProbeEscapeWhatESC_MEMFD:         {"memfd", [4]string{"", "flags"}},
	bpf.ProbeEscapeWhatESC_PACKET_SOCKET: {"packet_socket", [4]string{"domain", "type", "protocol"}},
	bpf.ProbeEscapeWhatESC_RAW_SOCKET:    {"raw_socket", [4]string{"domain", "type", "protocol"}},
	bpf.ProbeEscapeWhatESC_VSOCK:         {"vsock", [4]string{"domain", "type"}},
	bpf.ProbeEscapeWhatESC_SETUID:        {"setuid", [4]string{"uid", "euid", "suid"}},
	bpf.ProbeEscapeWhatESC_TIOCSTI:       {"tiocsti", [4]string{"fd"}},
	bpf.ProbeEscapeWhatESC_CLONE_NS:      {"clone_ns", [4]string{"flags"}},
	bpf.ProbeEscapeWhatESC_PIVOT_ROOT:    {"pivot_root", [4]string{}},
	bpf.ProbeEscapeWhatESC_KEXEC:         {"kexec", [4]string{}},
	bpf.ProbeEscapeWhatESC_PERF:          {"perf", [4]string{}},
	bpf.ProbeEscapeWhatESC_PIDFD_GETFD:   {"pidfd_getfd", [4]string{"pidfd", "fd"}},
}

func decodeEscape(raw []byte) (event.Body, error) {
	var r bpf.ProbeEscapeEvent
	if _, err := fixed(raw, &r); err != nil {
		return nil, err
	}
	x, ok := escapes[r.What]
	if !ok {
		return nil, fmt.Errorf("%w: escape %d", ErrRecord, r.What)
	}
	e := &event.Escape{What: x.name, Result: r.Result, Error: errnoName(r.Result)}
	for i, name := range x.args {
		if name == "" {
			continue
		}
		if e.Detail == nil {
			e.Detail = map[string]string{}
		}
		value := strconv.FormatInt(int64(r.Arg[i]), 10)
		if name == "flags" {
			value = "0x" + strconv.FormatUint(r.Arg[i], 16)
		}
		e.Detail[name] = value
	}
	return e, nil
}
