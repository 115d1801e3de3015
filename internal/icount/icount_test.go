// Package icount counts guest instructions per operation under QEMU's -icount, where a nanosecond is an
// instruction and the same boot gives the same figures: what rye's programs cost the traced command and
// everybody else, beside the least that any witness on these hooks must cost (testdata/floor).
//
// `make icount` runs it; the figures are in docs/benchmarks.md.
package icount

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/vm"
)

// modes in the order of the table: nothing, the two floors, rye's tiers.
var modes = []string{"none", "null", "path", "tracepoint", "kprobe", "fentry", "lsm", "strace", "strace-bpf"}

// operations per unit of the workload's count.
var operations = map[string]float64{"exec": 1, "first": 1, "open": 1, "mixed": 41, "idle": 1}

type cost struct{ inside, outside, tool float64 } // instructions per operation

func TestInstructions(t *testing.T) {
	if os.Getenv("RYE_ICOUNT") == "" {
		t.Skip("make icount runs this")
	}
	kernel := os.Getenv("KERNEL")
	if kernel == "" {
		kernel = "6.1"
	}
	dir := t.TempDir()
	boots := 3
	if n := os.Getenv("RYE_ICOUNT_BOOTS"); n != "" {
		boots, _ = strconv.Atoi(n)
	}
	files := build(t, dir)
	all := map[string][]cost{}
	for i := range boots {
		for k, c := range measure(t, files, filepath.Join(os.Getenv("RYE_CACHE"), "kernels", kernel, "vmlinuz"), i) {
			all[k] = append(all[k], c)
		}
	}
	got := map[string]cost{}
	for k, cs := range all {
		got[k] = middle(cs)
	}

	added := func(mode, work string, outside bool) float64 {
		a, b := got[mode+" "+work], got["none "+work]
		if outside {
			return a.outside - b.outside
		}
		return a.inside - b.inside
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s", "")
	works := []string{"exec", "first", "open", "mixed"}
	for _, w := range works {
		fmt.Fprintf(&b, "  %-28s", w+": in / out / tool")
	}
	fmt.Fprintf(&b, "  idle/s\n")
	for _, m := range modes {
		if _, ok := got[m+" exec"]; !ok {
			continue
		}
		fmt.Fprintf(&b, "%-11s", m)
		for _, w := range works {
			if m == "none" {
				fmt.Fprintf(&b, "  %-28s", fmt.Sprintf("base %.0f", got["none "+w].inside))
				continue
			}
			fmt.Fprintf(&b, "  %-28s", fmt.Sprintf("%.0f / %.0f / %.0f", added(m, w, false), added(m, w, true), got[m+" "+w].tool))
		}
		fmt.Fprintf(&b, "  %.0f\n", got[m+" idle"].inside/5)
	}
	t.Logf("instructions added per operation, Linux %s, medians of %d boots:\n%s", kernel, boots, &b)

	for _, m := range []string{"tracepoint", "kprobe", "fentry", "lsm"} {
		if _, ok := got[m+" exec"]; !ok {
			continue
		}
		for _, w := range []string{"exec", "open"} {
			if a, f := added(m, w, false), added("path", w, false); a > 3*f {
				t.Errorf("%s adds %.0f instructions per %s, more than 3 times the floor's %.0f", m, a, w, f)
			}
		}
		if a, f := added(m, "open", true), added("null", "open", true); a > 1.3*f {
			t.Errorf("%s adds %.0f instructions to an open outside the session, more than 1.3 times the null program's %.0f", m, a, f)
		}
		if a, f := got[m+" idle"].inside, got["path idle"].inside; a > f/5 {
			t.Errorf("%s uses %.0f instructions a second when idle, more than a fifth of a 5 ms poll's %.0f", m, a/5, f/5)
		}
	}
}

// program is a program of the host's with the libraries that it loads.
func program(t *testing.T, name string) []vm.File {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: scripts/icount installs it", err)
	}
	files := []vm.File{{Path: "/t/" + name, From: path}}
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", path, err)
	}
	for line := range strings.Lines(string(out)) {
		for _, w := range strings.Fields(line) {
			if real, err := filepath.EvalSymlinks(w); strings.HasPrefix(w, "/") && err == nil {
				files = append(files, vm.File{Path: w, From: real})
			}
		}
	}
	return files
}

// middle takes the median of each figure.
func middle(cs []cost) cost {
	median := func(figure func(cost) float64) float64 {
		var v []float64
		for _, c := range cs {
			v = append(v, figure(c))
		}
		slices.Sort(v)
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	return cost{
		median(func(c cost) float64 { return c.inside }),
		median(func(c cost) float64 { return c.outside }),
		median(func(c cost) float64 { return c.tool }),
	}
}

// build makes what the guest runs.
func build(t *testing.T, dir string) []vm.File {
	t.Helper()
	root := testutil.Root()
	var files []vm.File
	build := func(out string, argv ...string) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, b)
		}
		files = append(files, vm.File{Path: "/t/" + filepath.Base(out), From: out})
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	build(at("icount.test"), "go", "test", "-c", "-o", at("icount.test"), "./internal/icount")
	build(at("workload"), "cc", "-O2", "-static", "-o", at("workload"), "testdata/ground/workload.c")
	build(at("tiny"), "cc", "-O2", "-static", "-nostdlib", "-o", at("tiny"), "testdata/ground/tiny.c")
	build(at("floor.o"), "clang-19", "-target", "bpf", "-D__TARGET_ARCH_x86", "-g", "-O2", "-mcpu=v2", "-Wall", "-Werror", "-Wno-missing-declarations",
		"-Ivmlinux", "-I/usr/include", "-c", "testdata/floor/floor.bpf.c", "-o", at("floor.o"))
	return append(files, program(t, "strace")...)
}

// measure boots once. Each boot takes the witnesses in another order: what an exec costs depends a little on
// what the kernel did before, with pages and slabs for one.
func measure(t *testing.T, files []vm.File, kernel string, boot int) map[string]cost {
	t.Helper()
	order := slices.Concat(modes[boot%len(modes):], modes[:boot%len(modes)])
	if boot%2 == 1 {
		slices.Reverse(order)
	}
	r, err := vm.Boot(context.Background(), vm.Machine{
		Kernel: kernel, CPUs: 1, Memory: 1536, Icount: true, Timeout: 20 * time.Minute, Files: files,
		Append:  "mitigations=off norandmaps", // what a start-up costs scatters with where things lie
		Env:     []string{"RYE_ICOUNT_GUEST=/t", "RYE_TEST_STRICT=1", "GOMAXPROCS=1", "RYE_ICOUNT_PROGRAMS=" + os.Getenv("RYE_ICOUNT_PROGRAMS"), "RYE_ICOUNT_ORDER=" + strings.Join(order, " ")},
		Command: []string{"/t/icount.test", "-test.v", "-test.run=TestGuest"},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Output)
	}
	if r.ExitStatus != 0 {
		t.Fatalf("status %d\n%s", r.ExitStatus, r.Output)
	}
	got := map[string]cost{}
	for line := range strings.Lines(string(r.Output)) {
		var mode, work string
		var n, inside, outside, tool float64
		if _, err := fmt.Sscanf(line, "icount %s %s %f inside=%f outside=%f tool=%f", &mode, &work, &n, &inside, &outside, &tool); err != nil {
			if strings.HasPrefix(line, "icount-") {
				t.Log(strings.TrimSpace(line))
			}
			continue
		}
		if work == "idle" {
			n = 1
		}
		n *= operations[work]
		got[mode+" "+work] = cost{inside / n, outside / n, tool / n}
	}
	if _, ok := got["tracepoint exec"]; !ok {
		t.Fatalf("no figures:\n%s", r.Output)
	}
	return got
}
