package loader

import (
	"strings"

	"github.com/ryehq/rye/bpf"
)

// A Blind spot is something that the attached hooks cannot see, whatever happens.
type Blind struct {
	What, Why string
	Affect    string // the events that can be missing or weaker, separated by commas
}

// Blind returns what this set of hooks cannot see.
func (p *Probes) Blind() []Blind { return p.blind }

// blindSpots derives them from the hooks that are there.
func blindSpots(has func(...string) bool) []Blind {
	var b []Blind
	add := func(missing bool, what, why, affect string) {
		if missing {
			b = append(b, Blind{what, why, affect})
		}
	}
	add(!has(bpf.ProbeProgAfterOpen) && !has(bpf.ProbeProgAfterOpenKprobe),
		"opens through io_uring", "no system call returns; that a ring was set up is recorded as escape.io_uring", "open")
	add(!has(bpf.ProbeProgAfterOpen),
		"an open whose descriptor another thread replaces before the call returns", "the file is taken from the descriptor table", "open")
	add(!has("path_unlink", "path_rename", "path_link", "path_mkdir"),
		"names changed through io_uring", "no system call returns", "file")
	add(!has("path_unlink", "path_rename", "path_link"),
		"names in unlink, rename, link and truncate as the kernel took them", "they are read from the caller's memory when the call returns", "file")
	add(!has("unix_may_send"), "datagrams to unix sockets", "no connect happens", "ipc")
	add(!has("unix_stream_connect"), "connects to unix sockets through io_uring", "no system call returns", "ipc")
	add(!has("socket_create"), "raw, packet and vsock sockets made through io_uring", "no system call returns", "escape")
	add(!has("file_receive"),
		"files and sockets received from another process", "nothing is opened or connected here", "open,connect")
	add(true, "bytes sent on sockets that were open before the session", "no connect happens; those that the command inherits are listed at the start", "connect")
	add(true, "code made executable in memory", "a file mapped by a program without interpreter is recorded as file.map; mprotect is not", "exec")
	add(true, "a system call that a seccomp filter refuses", "it never reaches the kernel's hooks", "exec_failed,open,connect")
	return b
}

// whatForHook says what is missing without one hook of an upper tier.
func whatForHook(hook string) string {
	name := hook
	if t := tierOf(hook); t != "" {
		name = strings.TrimPrefix(hook, string(t)+"_")
	}
	switch {
	case hook == bpf.ProbeProgAfterOpen || hook == bpf.ProbeProgAfterOpenKprobe:
		return "opens through io_uring"
	case strings.HasPrefix(name, "path_"):
		return "names as the kernel resolved them (" + name + ")"
	case strings.HasPrefix(name, "unix_"):
		return "unix sockets joined without a system call that shows it"
	case name == "file_receive":
		return "files and sockets received from another process"
	case strings.HasPrefix(name, "socket_"):
		return "sockets used through io_uring (" + name + ")"
	}
	return "unknown"
}
