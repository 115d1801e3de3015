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

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/loader"
)

// A deed is what the program says it did.
type deed struct {
	Did     string `json:"did"`
	Path    string `json:"path"` // bytes as Latin-1
	Result  int32  `json:"result"`
	Path2   string `json:"path2"` // of a race: the other choice
	Result2 int32  `json:"result2"`
}

func (d deed) path() string {
	b := make([]byte, 0, len(d.Path))
	for _, r := range d.Path {
		b = append(b, byte(r))
	}
	return string(b)
}

// raced counts what was recorded of a race's two choices, and reports whether it is what happened.
func (d deed) raced(events []event.Event) (a, b int, right bool) {
	count := func(path string, n uint64) {
		switch path {
		case d.Path:
			a += int(n)
		case d.Path2:
			b += int(n)
		}
	}
	opened := false
	for _, e := range events {
		switch x := e.Body.(type) {
		case *event.FileOpen:
			// making the files and the decoy is not part of it
			if d.Did == "open-race" && x.Result == 0 && !x.Created && !slices.Contains(x.Flags, "O_RDWR") && !slices.Contains(x.Flags, "O_WRONLY") {
				count(x.Path, x.Count)
			}
		case *event.FileDelete:
			if d.Did == "unlink-race" && x.Result == 0 {
				count(x.Path, 1)
			}
		case *event.NetConnect:
			if d.Did == "connect-race" && x.Result == 0 {
				count(x.Remote, x.Count)
			}
		case *event.ProcessExec:
			if d.Did == "exec-path-race" && len(x.Argv) == 1 && x.Argv[0] == "which" {
				count(x.Exe, 1)
				opened = opened || x.Path != x.Exe
			}
		}
	}
	return a, b, a == int(d.Result) && b == int(d.Result2) && !opened
}

// creates are the techniques whose deed is to make the file; the others made it before, and the record of
// that must not stand for them.
var creates = []string{"open-creat", "open-newline-name", "open-mmap-shared", "open-deep", "open-io-uring", "open-io-uring-sqpoll"}

// matches reports whether an event is the record of the deed.
func (d deed) matches(name string, e event.Event) bool {
	want := d.path()
	switch b := e.Body.(type) {
	case *event.ProcessExec:
		return d.Did == "exec" && b.Exe == want
	case *event.ProcessExecFailed:
		return d.Did == "exec-failed" && b.Path == want && b.Result == d.Result
	case *event.FileOpen:
		if d.Did == "receive" {
			return b.Path == want && slices.Contains(b.Marks, "received")
		}
		return d.Did == "open" && b.Path == want && b.Result == 0 && b.Created == slices.Contains(creates, name) || d.Did == "open-failed" && b.Path == want && b.Result == d.Result
	case *event.FileDelete:
		return d.Did == "unlink" && b.Path == want && b.Result == 0
	case *event.FileRename:
		return b.How == d.Did && b.To == want && b.Result == 0
	case *event.FileChange:
		return d.Did == b.How && b.Path == want && b.Result == 0
	case *event.FileMap:
		return d.Did == "map" && b.Path == want
	case *event.NetConnect:
		if d.Did == "receive-socket" {
			return b.Remote == want && slices.Contains(b.Marks, "received")
		}
		return d.Did == "connect" && b.Remote == want && (b.Result == d.Result || slices.Contains(b.Marks, "no-result"))
	case *event.IPCConnect:
		return d.Did == "ipc" && b.Path == want && (b.Peer != nil || b.Type == "dgram") // who reads datagrams is not known to the kernel
	case *event.Escape:
		return d.Did == "escape" && b.What == want && (b.Result == d.Result || d.Result >= 0)
	}
	return false
}

type outcome struct {
	tier             loader.Tier
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

// TestPrivEvasion does every technique under every tier that this kernel offers.
func TestPrivEvasion(t *testing.T) {
	testutil.Privileged(t)
	evade, tiny := build(t)
	var table []outcome
	for _, tier := range loader.Tiers() {
		if err := testutil.Features().Available(tier); err != nil {
			t.Logf("%s: not here: %v", tier, err)
			continue
		}
		t.Run(string(tier), func(t *testing.T) { table = append(table, suite(t, tier, evade, tiny)...) })
	}
	write(t, table)
}

func suite(t *testing.T, tier loader.Tier, evade, tiny string) []outcome {
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
	ob := testutil.ObserveAll(t, cmds, func(o *loader.Options) { o.Tier, o.RingBytes = tier, 32<<20 })
	if len(ob.Lost) != 0 {
		t.Errorf("lost %v", ob.Lost)
	}
	for _, g := range ob.Gaps {
		t.Logf("gap: %s: %v", g.Hook, g.Err)
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
		o := outcome{tier: tier, name: name}
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
		seen, about := d.recorded(t, name, byName[i])
		known := gapOf(name, tier)
		switch {
		case known != nil && known.racy:
		case seen && known != nil:
			t.Errorf("%s is recorded, and listed as not seen: take it off the list", name)
		case !seen && known == nil:
			t.Errorf("%s: %+v is not recorded %s", name, d, about)
			for _, e := range byName[i][max(0, len(byName[i])-12):] {
				t.Logf("  %.400s", e.AppendJSON(nil))
			}
		case !seen && known.trace != nil && !slices.ContainsFunc(byName[i], known.trace):
			t.Errorf("%s: not even its trace is recorded", name)
		}
		o.seen = map[bool]string{true: "✓", false: "✗"}[seen]
		if known != nil {
			o.note = known.why
			if known.racy {
				o.seen = "~"
			}
		}
		if about != "" {
			t.Logf("%s: %s", name, about)
		}
		table = append(table, o)
	}
	checkClaims(t, ob.Blind, table)
	return table
}

// recorded reports whether the events hold the deed, and for races what they hold.
func (d deed) recorded(t *testing.T, name string, events []event.Event) (seen bool, about string) {
	switch {
	case strings.HasSuffix(d.Did, "-race") && d.Path2 != "":
		a, b, right := d.raced(events)
		if d.Result+d.Result2 == 0 {
			t.Errorf("%s: nothing happened", name)
		}
		return right, fmt.Sprintf("%d and %d done, %d and %d recorded", d.Result, d.Result2, a, b)
	case d.Did == "exec-race":
		got := 0
		for _, e := range events {
			if x, ok := e.Body.(*event.ProcessExec); ok && x.Exe == d.path() {
				if len(x.Argv) != 2 || x.Argv[1] != "0race" && x.Argv[1] != "1race" {
					t.Errorf("%s: argv %q was never given", name, x.Argv)
				}
				got++
			}
		}
		return got == int(d.Result), fmt.Sprintf("%d done, %d recorded", d.Result, got)
	case d.Did == "pid-reuse":
		starts := map[uint32]map[uint64]bool{}
		for _, e := range events {
			if x, ok := e.Body.(*event.ProcessExec); ok && x.Exe == d.path() {
				if starts[e.Proc.TGID] == nil {
					starts[e.Proc.TGID] = map[uint64]bool{}
				}
				starts[e.Proc.TGID][e.Proc.StartNS] = true
			}
		}
		for _, s := range starts {
			if len(s) == 2 {
				return d.Result == 1, ""
			}
		}
		return false, fmt.Sprint(starts)
	}
	return slices.ContainsFunc(events, func(e event.Event) bool { return d.matches(name, e) }), ""
}

// write prints the table, and writes it to RYE_COVERAGE where the generator wants it.
func write(t *testing.T, table []outcome) {
	t.Helper()
	var b strings.Builder
	for _, o := range table {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", o.tier, o.name, o.seen, o.note)
	}
	if file := os.Getenv("RYE_COVERAGE"); file != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Logf("coverage:\n%s", &b)
}
