package collector_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/loader"
)

var tinyFlags = []string{"-nostdlib", "-static"}

func noLoss(t *testing.T, ob *testutil.Observation) {
	t.Helper()
	if len(ob.Lost) != 0 {
		t.Fatalf("lost %v", ob.Lost)
	}
}

// tree returns the events of the process that cmd started and of all that descend from it.
func tree(events []event.Event, cmd *exec.Cmd) (out []event.Event) {
	in := map[event.ProcessKey]bool{}
	for _, e := range events {
		if f, ok := e.Body.(*event.ProcessFork); ok && (int(e.Proc.TGID) == cmd.Process.Pid || in[f.Parent]) {
			in[*e.Proc] = true
		}
		if e.Proc != nil && in[*e.Proc] {
			out = append(out, e)
		}
	}
	return out
}

// TestPrivProcesses starts many processes under one set of programs, which a guest without acceleration takes
// seconds to verify. Each command's events are told apart by descent, and none is left over.
func TestPrivProcesses(t *testing.T) {
	testutil.Privileged(t)
	execs, forks := 3000, 2048
	if testing.Short() {
		execs, forks = 500, 512
	}
	tiny, storm := testutil.CC(t, "tiny", tinyFlags...), testutil.CC(t, "storm", "-pthread")
	cmds := []*exec.Cmd{exec.Command(storm, "exec", fmt.Sprint(execs), tiny), exec.Command(storm, "burst", fmt.Sprint(forks))}
	argvs := someArgvs()
	for _, argv := range argvs {
		cmd := exec.Command(tiny)
		cmd.Args, cmd.Env, cmd.Dir = argv, []string{"PATH=/x", "SECRET=1", "CODEX_TOOL_CALL_ID=call_1", "HTTPS_PROXY=http://u:p@h:1/"}, "/usr"
		cmds = append(cmds, cmd)
	}
	ob := testutil.ObserveAll(t, cmds)
	noLoss(t, ob)
	all := 0
	trees := make([][]event.Event, len(cmds))
	for i, cmd := range cmds {
		trees[i] = tree(ob.Events, cmd)
		all += len(trees[i])
	}
	if ofProcesses := slices.DeleteFunc(slices.Clone(ob.Events), func(e event.Event) bool { return e.Proc == nil }); all != len(ofProcesses) {
		t.Errorf("%d events of processes, %d of them by descent", len(ofProcesses), all)
	}
	t.Run("exec storm", func(t *testing.T) { checkExecStorm(t, trees[0], execs, tiny) })
	t.Run("short lives", func(t *testing.T) { checkStatuses(t, trees[1], forks, 128) })
	t.Run("argv", func(t *testing.T) { checkArgv(t, slices.Concat(trees[2:]...), argvs, tiny) })
}

func checkExecStorm(t *testing.T, events []event.Event, n int, tiny string) {
	t.Helper()
	seen := 0
	for _, x := range testutil.Of[*event.ProcessExec](events) {
		if x.Exe != tiny {
			continue
		}
		want := []string{"tiny", fmt.Sprintf("n=%d", seen), "", "two words", fmt.Sprintf("\xff%d\n", seen*7919)}
		if !slices.Equal(x.Argv, want) || x.ArgvTruncated || x.Path != tiny || len(x.Marks) != 0 {
			t.Fatalf("exec %d: %q %+v", seen, x.Argv, x)
		}
		seen++
	}
	if seen != n {
		t.Errorf("%d execs recorded of %d", seen, n)
	}
	if f, x := len(testutil.Of[*event.ProcessFork](events)), len(testutil.Of[*event.ProcessExit](events)); f != n+1 || x != n+1 {
		t.Errorf("%d forks and %d exits recorded, want %d", f, x, n+1)
	}
}

func TestPrivOpensAddUp(t *testing.T) {
	testutil.Privileged(t)
	for _, c := range []struct {
		n, files int
		ring     uint32
	}{{400000, 2000, 0}, {50000, 50000, 0}, {400000, 20000, 4096}} {
		t.Run(fmt.Sprintf("%d of %d ring %d", c.n, c.files, c.ring), func(t *testing.T) {
			if testing.Short() {
				c.n, c.files = c.n/5, c.files/5
			}
			dir, err := os.MkdirTemp("/dev/shm", "rye-test-") // memory: the test is not about the disk
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			for i := range c.files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			ob := testutil.Observe(t, exec.Command(testutil.CC(t, "storm", "-static", "-pthread"), "open", fmt.Sprint(c.n), dir, fmt.Sprint(c.files)),
				func(o *loader.Options) { o.RingBytes = c.ring })
			var captured uint64
			for _, o := range testutil.Of[*event.FileOpen](ob.Events) {
				if strings.HasPrefix(o.Path, dir+"/f") {
					if o.Result != 0 || o.Flags[0] != "O_RDONLY" || slices.ContainsFunc(o.Flags[1:], func(f string) bool { return f != "O_CLOEXEC" }) {
						t.Fatalf("%+v", o)
					}
					captured += o.Count
				}
			}
			lost := ob.Lost["file.open"]
			if captured+lost != uint64(c.n) {
				t.Errorf("captured %d + lost %d = %d, done %d (lost %v)", captured, lost, captured+lost, c.n, ob.Lost)
			}
			if c.ring == 0 && lost != 0 {
				t.Errorf("lost %d with the default ring", lost)
			}
			if c.ring != 0 && lost == 0 {
				t.Errorf("lost none in a ring of %d bytes: the test does not test", c.ring)
			}
			t.Logf("records %d, captured %d, lost %d", ob.Read, captured, lost)
		})
	}
}

// checkStatuses: of n children the i-th ends with status i modulo statuses, and their parent with 0.
func checkStatuses(t *testing.T, events []event.Event, n int, statuses int32) {
	t.Helper()
	codes := map[int32]int{}
	for _, x := range testutil.Of[*event.ProcessExit](events) {
		codes[x.Code]++
	}
	for c := range statuses {
		want := n / int(statuses)
		if c == 0 {
			want++ // the parent
		}
		if codes[c] != want {
			t.Errorf("%d exits with status %d, want %d", codes[c], c, want)
		}
	}
}

// Threads that leave at the same moment all see that no other is left; one exit is reported all the same, with
// the status that the parent is told.
func TestPrivThreadsLeaveTogether(t *testing.T) {
	testutil.Privileged(t)
	n := 256
	if testing.Short() {
		n = 64
	}
	ob := testutil.Observe(t, exec.Command(testutil.CC(t, "storm", "-pthread"), "threads", fmt.Sprint(n)))
	noLoss(t, ob)
	exits := map[event.ProcessKey]int{}
	for _, e := range ob.Events {
		if _, ok := e.Body.(*event.ProcessExit); ok {
			exits[*e.Proc]++
		}
	}
	for k, times := range exits {
		if times != 1 {
			t.Errorf("process %d: %d exits", k.TGID, times)
		}
	}
	if len(exits) != n+1 {
		t.Errorf("%d processes ended, want %d", len(exits), n+1)
	}
	checkStatuses(t, ob.Events, n, 64)
}

func someArgvs() [][]string {
	many := make([]string, 30000)
	for i := range many {
		many[i] = fmt.Sprintf("arg %d of several", i)
	}
	return [][]string{
		{"plain"}, {"", "", "x", ""}, {"\xff\xfe", "a\nb", "t\tt", "日本\xe6"}, {"long", strings.Repeat("x", 100000)}, {"full", strings.Repeat("y", 131066)}, many, {""},
	}
}

func checkArgv(t *testing.T, events []event.Event, argvs [][]string, tiny string) {
	t.Helper()
	execs := testutil.Of[*event.ProcessExec](events)
	if len(execs) != len(argvs) {
		t.Fatalf("%d execs of %d", len(execs), len(argvs))
	}
	info, err := os.Stat(tiny)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range execs {
		argv := argvs[i]
		size := uint64(0)
		for _, a := range argv {
			size += uint64(len(a)) + 1
		}
		if x.ArgvBytes != size || x.CWD != "/usr" || x.ExeIno != info.Sys().(*syscall.Stat_t).Ino || x.ExeMtimeNS != uint64(info.ModTime().UnixNano()) {
			t.Errorf("%.20q: argv_bytes %d want %d; cwd %s, inode %d, mtime %d", argv, x.ArgvBytes, size, x.CWD, x.ExeIno, x.ExeMtimeNS)
		}
		if want := map[string]string{"PATH": "/x", "CODEX_TOOL_CALL_ID": "call_1", "HTTPS_PROXY": "http://[cut]@h:1/"}; !reflect.DeepEqual(x.Env, want) {
			t.Errorf("env %q", x.Env)
		}
		if size <= 131072 {
			if !slices.Equal(x.Argv, argv) || x.ArgvTruncated {
				t.Errorf("%.20q: %d words of %d, truncated %v", argv, len(x.Argv), len(argv), x.ArgvTruncated)
			}
		} else if !x.ArgvTruncated || !slices.Equal(x.Argv[:len(x.Argv)-1], argv[:len(x.Argv)-1]) {
			t.Errorf("a block of %d bytes: truncated %v", size, x.ArgvTruncated)
		}
	}
}
