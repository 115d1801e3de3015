// Package conformance runs the evasion suite: a program does one thing in one way and reports what it did,
// and the test holds that against what rye recorded. What is not seen must be in the list below with its
// reason; a technique that is listed as not seen and is seen is a failure too, so the list stays true.
// docs/coverage.md is made from the results (see TestCoverageTable), never typed.
package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
)

// techniques in the order of the table.
var techniques = []string{
	"exec-execve", "exec-execveat", "exec-proc-fd", "exec-symlink", "exec-memfd", "exec-unlinked", "exec-script", "exec-vfork", "exec-thread",
	"exec-double-fork", "exec-argv-race", "exec-failed", "exec-int80",
	"open-open", "open-openat2", "open-creat", "open-relative", "open-by-handle", "open-untouched-page", "open-path", "open-reopen-proc",
	"open-symlink", "open-hardlink", "open-newline-name", "open-deep", "open-chroot", "open-bind-mount", "open-deleted-cwd", "open-io-uring",
	"open-failed", "open-mmap-shared", "open-int80",
	"name-truncate", "name-rename", "name-unlink", "name-link",
	"connect-tcp4", "connect-refused", "connect-nonblock", "connect-tcp6", "connect-fastopen", "send-udp", "connect-udp", "connect-io-uring",
	"connect-new-netns", "connect-int80", "connect-unix", "connect-unix-abstract", "send-unix-dgram",
	"socket-raw", "socket-packet", "socket-vsock",
	"inject-ptrace", "inject-vm-writev", "inject-proc-mem", "ns-unshare", "ns-setns", "call-bpf", "call-mount", "call-memfd", "call-tiocsti",
	"call-module", "call-io-uring",
}

// notSeen are the gaps of the tracepoint tier, each with its reason. A gap may leave a weaker trace: the
// event that must be there all the same.
var notSeen = map[string]gap{
	"open-io-uring":   {why: "no system call returns for it; that a ring was set up is recorded (escape.io_uring)", trace: isEscape("io_uring")},
	"send-unix-dgram": {why: "no connect; datagrams to unix sockets pass no hook of this tier"},
	"open-deep": {why: "before 5.17 (no bpf_loop) a path of over 128 components keeps its end and is flagged path-truncated", before: [2]int{5, 17}, trace: func(e event.Event) bool {
		o, ok := e.Body.(*event.FileOpen)
		return ok && strings.HasSuffix(o.Path, "/d/d/d/deep") && slices.Contains(o.Marks, "path-truncated")
	}},
}

type gap struct {
	why    string
	before [2]int // only on kernels before this version; zero for all
	trace  func(event.Event) bool
}

// here reports whether the gap is one of the running kernel's.
func (g gap) here() bool {
	if g.before == [2]int{} {
		return g.why != ""
	}
	var u unix.Utsname
	var a, b int
	if unix.Uname(&u) != nil {
		return false
	}
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return a < g.before[0] || a == g.before[0] && b < g.before[1]
}

func isEscape(what string) func(event.Event) bool {
	return func(e event.Event) bool {
		x, ok := e.Body.(*event.Escape)
		return ok && x.What == what
	}
}

// A deed is what the program says it did.
type deed struct {
	Did    string `json:"did"`
	Path   string `json:"path"` // bytes as Latin-1
	Result int32  `json:"result"`
}

func (d deed) path() string {
	b := make([]byte, 0, len(d.Path))
	for _, r := range d.Path {
		b = append(b, byte(r))
	}
	return string(b)
}

// creates are the techniques whose deed is to make the file; the others made it before, and the record of
// that must not stand for them.
var creates = []string{"open-creat", "open-newline-name", "open-mmap-shared", "open-deep"}

// matches reports whether an event is the record of the deed.
func (d deed) matches(name string, e event.Event) bool {
	want := d.path()
	switch b := e.Body.(type) {
	case *event.ProcessExec:
		return d.Did == "exec" && b.Exe == want
	case *event.ProcessExecFailed:
		return d.Did == "exec-failed" && b.Path == want && b.Result == d.Result
	case *event.FileOpen:
		return d.Did == "open" && b.Path == want && b.Result == 0 && b.Created == slices.Contains(creates, name) || d.Did == "open-failed" && b.Path == want && b.Result == d.Result
	case *event.FileDelete:
		return d.Did == "unlink" && b.Path == want && b.Result == 0
	case *event.FileRename:
		return (d.Did == "rename" || d.Did == "link") && b.How == d.Did && b.To == want && b.Result == 0
	case *event.FileChange:
		return d.Did == "truncate" && b.How == "truncate" && b.Path == want
	case *event.NetConnect:
		return d.Did == "connect" && b.Remote == want && (b.Result == d.Result || slices.Contains(b.Marks, "no-result"))
	case *event.IPCConnect:
		return d.Did == "ipc" && b.Path == want && b.Peer != nil
	case *event.Escape:
		return d.Did == "escape" && b.What == want && (b.Result == d.Result || d.Result == 0)
	}
	return false
}

type outcome struct {
	name, seen, note string
}

func build(t *testing.T) (evade, tiny string) {
	t.Helper()
	if dir := os.Getenv("RYE_GROUND"); dir != "" {
		return filepath.Join(dir, "evade"), filepath.Join(dir, "tiny")
	}
	evade = filepath.Join(t.TempDir(), "evade")
	src := filepath.Join(testutil.Root(), "testdata", "evasion", "evade.c")
	if out, err := exec.Command("cc", "-O2", "-static", "-pthread", "-Wall", "-Wno-unused-result", "-o", evade, src).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return evade, testutil.CC(t, "tiny", "-nostdlib", "-static")
}

func TestPrivEvasion(t *testing.T) {
	testutil.Privileged(t)
	evade, tiny := build(t)
	prog, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	var cmds []*exec.Cmd
	var outs []*strings.Builder
	base, err := os.MkdirTemp("/dev/shm", "rye-evade-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	for _, name := range techniques {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "tiny"), prog, 0o755); err != nil {
			t.Fatal(err)
		}
		out := new(strings.Builder)
		cmd := exec.Command(evade, name, dir)
		cmd.Stdout = out
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	ob := testutil.ObserveAll(t, cmds)
	if len(ob.Lost) != 0 {
		t.Errorf("lost %v", ob.Lost)
	}
	// Each technique ran in its own process tree: events are taken by the tree, so that a record of one
	// cannot stand for another's.
	parent := map[event.ProcessKey]event.ProcessKey{}
	root := map[event.ProcessKey]int{} // process -> technique
	byName := map[int][]event.Event{}
	for _, e := range ob.Events {
		if x, ok := e.Body.(*event.ProcessExec); ok && len(x.Argv) == 3 && x.Exe == evade {
			root[*e.Proc] = slices.Index(techniques, x.Argv[1])
		}
		if f, ok := e.Body.(*event.ProcessFork); ok {
			parent[*e.Proc] = f.Parent
		}
		if e.Proc == nil {
			continue
		}
		for k, n := *e.Proc, 0; n < 16; k, n = parent[k], n+1 {
			if i, ok := root[k]; ok {
				byName[i] = append(byName[i], e)
				break
			}
		}
	}
	var table []outcome
	for i, name := range techniques {
		o := outcome{name: name}
		var d deed
		line := strings.TrimSpace(outs[i].String())
		switch code := cmds[i].ProcessState.ExitCode(); {
		case code == 77:
			o.seen, o.note = "·", "not possible on this machine"
			table = append(table, o)
			continue
		case json.Unmarshal([]byte(line), &d) != nil || code != 0:
			t.Errorf("%s: status %d, said %q", name, code, line)
			continue
		}
		got := 0
		for _, e := range byName[i] {
			if d.Did == "exec-race" {
				if x, ok := e.Body.(*event.ProcessExec); ok && x.Exe == d.path() {
					if len(x.Argv) != 2 || x.Argv[1] != "0race" && x.Argv[1] != "1race" {
						t.Errorf("%s: argv %q was never given", name, x.Argv)
					}
					got++
				}
			} else if d.matches(name, e) {
				got++
			}
		}
		seen := got > 0
		if d.Did == "exec-race" {
			seen = got == int(d.Result)
		}
		gap := notSeen[name]
		known := gap.here()
		switch {
		case seen && known:
			t.Errorf("%s is recorded, and listed as not seen: take it off the list", name)
		case !seen && !known:
			t.Errorf("%s: %+v is not recorded", name, d)
			for _, e := range byName[i][max(0, len(byName[i])-12):] {
				t.Logf("  %.400s", e.AppendJSON(nil))
			}
		case !seen && gap.trace != nil && !slices.ContainsFunc(byName[i], gap.trace):
			t.Errorf("%s: not even its trace is recorded", name)
		}
		o.seen = map[bool]string{true: "✓", false: "✗"}[seen]
		if !seen {
			o.note = gap.why
		}
		table = append(table, o)
	}
	write(t, table)
}

// write prints the table, and writes it to RYE_COVERAGE where the generator wants it.
func write(t *testing.T, table []outcome) {
	t.Helper()
	var b strings.Builder
	for _, o := range table {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", o.name, o.seen, o.note)
	}
	if file := os.Getenv("RYE_COVERAGE"); file != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Logf("coverage:\n%s", &b)
}
