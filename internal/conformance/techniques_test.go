package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
)

// techniques in the order of the table.
var techniques = []string{
	"exec-execve", "exec-execveat", "exec-proc-fd", "exec-symlink", "exec-memfd", "exec-unlinked", "exec-script", "exec-vfork", "exec-thread",
	"exec-clone-vm", "exec-double-fork", "exec-argv-race", "exec-path-race", "exec-failed", "exec-int80", "exec-chroot", "exec-proc-root",
	"exec-container", "exec-pid-reuse", "exec-child-cgroup", "exec-sibling-cgroup", "map-program",
	"open-open", "open-openat2", "open-creat", "open-relative", "open-by-handle", "open-untouched-page", "open-path", "open-reopen-proc",
	"open-symlink", "open-hardlink", "open-newline-name", "open-long-path", "open-deep", "open-chroot", "open-proc-root", "open-bind-mount",
	"open-overlayfs", "open-deleted-cwd", "open-tmpfile", "open-io-uring", "open-io-uring-sqpoll", "open-failed", "open-mmap-shared",
	"open-int80", "open-path-race", "open-descriptor-race", "receive-file",
	"name-truncate", "name-rename", "name-exchange", "name-rename-io-uring", "name-unlink", "name-unlink-race", "name-unlink-io-uring",
	"name-rmdir", "name-link", "name-symlink", "name-mkdir", "name-chmod", "name-fchmod", "name-chown", "name-mknod",
	"connect-tcp4", "connect-refused", "connect-nonblock", "connect-tcp6", "connect-fastopen", "connect-address-race", "send-udp", "send-mmsg",
	"send-udp-io-uring", "connect-udp", "connect-io-uring", "connect-new-netns", "connect-int80", "connect-unix", "connect-unix-abstract",
	"connect-unix-io-uring", "send-unix-dgram", "receive-socket",
	"socket-raw", "socket-raw-io-uring", "socket-packet", "socket-vsock",
	"inject-ptrace", "inject-vm-writev", "inject-proc-mem", "ns-unshare", "ns-setns", "ns-clone", "call-bpf", "call-mount", "call-memfd",
	"call-tiocsti", "call-module", "call-io-uring", "call-setuid", "call-pidfd-getfd",
}

var (
	calls  = []loader.Tier{loader.Tracepoint}
	noOpen = []loader.Tier{loader.Tracepoint, loader.Kprobe} // tiers without the return of do_filp_open and its arguments
)

// A gap is a technique that some tier does not see.
type gap struct {
	why    string
	tiers  []loader.Tier // nil: all
	before version       // only on kernels before this version; zero for all
	racy   bool          // seen or not, by chance
	trace  func(event.Event) bool
}

// notSeen are the gaps, each with its reason. A gap may leave a weaker trace: the event that must be there
// all the same.
var notSeen = map[string][]gap{
	"open-io-uring": {
		{why: "no system call returns for it; that a ring was set up is recorded (escape.io_uring)", tiers: calls, trace: isEscape("io_uring")},
	},
	"open-io-uring-sqpoll": {
		{why: "no system call returns for it; that a ring was set up is recorded (escape.io_uring)", tiers: calls, trace: isEscape("io_uring")},
	},
	"name-unlink-io-uring": {
		{why: "no system call returns for it; that a ring was set up is recorded (escape.io_uring)", tiers: calls, trace: isEscape("io_uring")},
	},
	"name-rename-io-uring": {
		{why: "no system call returns for it; that a ring was set up is recorded (escape.io_uring)", tiers: calls, trace: isEscape("io_uring")},
	},
	"connect-unix-io-uring": {
		{why: "no system call returns for it; that a ring was set up is recorded (escape.io_uring)", tiers: calls, trace: isEscape("io_uring")},
	},
	"socket-raw-io-uring": {
		{why: "no system call returns for it; that a ring was set up is recorded (escape.io_uring)", tiers: calls, trace: isEscape("io_uring")},
	},
	"open-descriptor-race": {
		{why: "the file is taken from the descriptor table when the call returns: another thread can have put a different one there", tiers: noOpen, racy: true},
	},
	"name-unlink-race": {
		{why: "the name is read from the caller's memory when the call returns, and marked path-from-user", tiers: calls, racy: true},
	},
	"send-unix-dgram": {{why: "no connect; datagrams to unix sockets pass no hook of this tier", tiers: calls}},
	"receive-file":    {{why: "nothing is opened by the receiver", tiers: calls}},
	"receive-socket":  {{why: "nothing is connected by the receiver", tiers: calls}},
	"open-deep": {{why: "before 5.17 (no bpf_loop) a path of over 128 components keeps its end and is flagged path-truncated", before: version{5, 17}, trace: func(e event.Event) bool {
		o, ok := e.Body.(*event.FileOpen)
		return ok && strings.HasSuffix(o.Path, "/d/d/d/deep") && slices.Contains(o.Marks, "path-truncated")
	}}},
}

// claims are the blind spots that loader.Blind names, and the techniques that prove them: what a session's
// observer.attached and rye doctor say must be what the suite finds.
var claims = map[string][]string{
	"opens through io_uring": {"open-io-uring", "open-io-uring-sqpoll"},
	"an open whose descriptor another thread replaces before the call returns": {"open-descriptor-race"},
	"names changed through io_uring":                                           {"name-unlink-io-uring", "name-rename-io-uring"},
	"names in unlink, rename, link and truncate as the kernel took them":       {"name-unlink-race"},
	"datagrams to unix sockets":                                                {"send-unix-dgram"},
	"connects to unix sockets through io_uring":                                {"connect-unix-io-uring"},
	"raw, packet and vsock sockets made through io_uring":                      {"socket-raw-io-uring"},
	"files and sockets received from another process":                          {"receive-file", "receive-socket"},
	// no technique here: they hold for every tier
	"bytes sent on sockets that were open before the session": nil,
	"code made executable in memory":                          nil,
	"a system call that a seccomp filter refuses":             nil,
}

// checkClaims compares what the observer says of itself with what was found.
func checkClaims(t *testing.T, blind []loader.Blind, table []outcome) {
	t.Helper()
	seen := map[string]string{}
	for _, o := range table {
		seen[o.name] = o.seen
	}
	for what, names := range claims {
		said := slices.ContainsFunc(blind, func(b loader.Blind) bool { return b.What == what })
		for _, n := range names {
			switch s := seen[n]; {
			case s == "·": // not possible here
			case said && s == "✓":
				t.Errorf("the observer says it is blind to %s, and %s is recorded", what, n)
			case !said && s != "✓":
				t.Errorf("%s is not recorded, and the observer does not say that it is blind to %s", n, what)
			}
		}
	}
	for _, b := range blind {
		if _, ok := claims[b.What]; !ok {
			t.Errorf("blind to %s: nothing in the suite proves it", b.What)
		}
	}
}

// gapOf returns the gap that the running kernel has for a technique on a tier, or nil.
func gapOf(name string, tier loader.Tier) *gap {
	for _, g := range notSeen[name] {
		if (g.tiers == nil || slices.Contains(g.tiers, tier)) && g.before.here() {
			return &g
		}
	}
	return nil
}

func (before version) here() bool {
	if before == (version{}) {
		return true
	}
	var u unix.Utsname
	var a, b int
	if unix.Uname(&u) != nil {
		return false
	}
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return a < before[0] || a == before[0] && b < before[1]
}

type version [2]int

func isEscape(what string) func(event.Event) bool {
	return func(e event.Event) bool {
		x, ok := e.Body.(*event.Escape)
		return ok && x.What == what
	}
}
