// Package vmtest runs the privileged tests inside every kernel of the matrix. What passes on the kernel at
// hand can be refused by the verifier of another.
package vmtest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/vm"
)

// kernels of the matrix: Debian's cloud kernels, as scripts/kernels fetches them.
var kernels = []string{"5.10", "6.1", "6.12", "7.2"}

// bestTier is what rye doctor must find on each: Debian's 5.10 has no BPF LSM.
// Trampolines, which LSM programs need too, came to arm64 with 6.4.
var bestTier = map[string]string{"5.10": "fentry", "6.1": "lsm", "6.12": "lsm", "7.2": "lsm", "6.1-arm64": "kprobe", "6.12-arm64": "lsm"}

// machine is the guest for a kernel: NAME for the host's architecture, NAME-arm64 for an arm64 one.
func machine(t *testing.T, kernel string) vm.Machine {
	t.Helper()
	dir := filepath.Join(cache(), "kernels", kernel)
	m := vm.Machine{Kernel: filepath.Join(dir, "vmlinuz"), CPUs: 2, Memory: 1536, Timeout: 15 * time.Minute}
	if strings.HasSuffix(kernel, "-arm64") {
		m.Arch, m.Busybox = "arm64", filepath.Join(dir, "busybox")
	}
	if _, err := os.Stat(m.Kernel); err != nil {
		testutil.Skip(t, "no kernel %s: %v", kernel, err)
	}
	return m
}

// A suite is a test binary that runs in the guest, and its arguments.
type suite struct{ pkg, args string }

var suites = []suite{
	{"loader", ""},
	{"collector", "-test.run=Priv -test.short"},
	{"internal/conformance", ""},
}

// TestFlood opens files as fast as one CPU can, reader and producer taking turns on it: what was captured and
// what is reported lost add up to what was done, with the default ring and with one that is far too small.
func TestFlood(t *testing.T) {
	if os.Getenv("RYE_VMTEST") == "" {
		t.Skip("make vmtest runs this")
	}
	if only := os.Getenv("RYE_VMTEST_ONLY"); only != "" && only != "flood" {
		t.Skip("not asked for")
	}
	want := kernels
	if k := os.Getenv("KERNEL"); k != "" {
		want = strings.Fields(k)
	}
	files := builder(t)
	for _, k := range want {
		t.Run(k, func(t *testing.T) {
			m := machine(t, k)
			m.CPUs, m.Memory, m.Files = 1, 2048, files(t, m.Arch)
			m.Env = []string{"RYE_GROUND=/t", "RYE_TEST_STRICT=1", "GOMAXPROCS=1"}
			m.Command = []string{"/t/collector.test", "-test.v", "-test.run=PrivOpensAddUp/400000"}
			r, err := vm.Boot(context.Background(), m)
			if err != nil {
				t.Fatalf("%v\n%s", err, r.Output)
			}
			if out := string(r.Output); r.ExitStatus != 0 || strings.Count(out, "captured") != 2 {
				t.Errorf("status %d:\n%s", r.ExitStatus, out)
			} else {
				for line := range strings.Lines(out) {
					if strings.Contains(line, "captured") {
						t.Log(strings.TrimSpace(line))
					}
				}
			}
		})
	}
}

func TestKernels(t *testing.T) {
	if os.Getenv("RYE_VMTEST") == "" {
		t.Skip("make vmtest runs this")
	}
	suites := suites
	if only := os.Getenv("RYE_VMTEST_ONLY"); only == "flood" {
		t.Skip("not asked for")
	} else if only != "" {
		suites = slices.DeleteFunc(slices.Clone(suites), func(s suite) bool { return s.pkg != only })
	}
	want := kernels
	if k := os.Getenv("KERNEL"); k != "" {
		want = strings.Fields(k)
	}
	files := builder(t)
	for _, k := range want {
		t.Run(k, func(t *testing.T) {
			m := machine(t, k)
			var script strings.Builder
			script.WriteString("uname -r; status=0\n")
			for _, s := range suites {
				base := filepath.Base(s.pkg)
				script.WriteString("echo; echo == " + s.pkg + "; (cd /src && /t/" + base + ".test -test.v " + s.args + ") || status=1\n")
			}
			script.WriteString("echo; echo doctor-begin; HOME=/tmp/home /t/rye doctor --json || status=1; echo doctor-end\n")
			script.WriteString("echo; echo coverage-begin; cat /tmp/coverage; echo coverage-end; exit $status\n")
			m.Files = append(slices.Clip(files(t, m.Arch)), vm.File{Path: "/run.sh", Data: []byte(script.String())}, vm.File{Path: "/src/.keep", Data: []byte("x")})
			m.Env = []string{"RYE_GROUND=/t", "RYE_COVERAGE=/tmp/coverage", "RYE_TEST_STRICT=1", "GOMAXPROCS=2", "EVADE_TRIES=200"}
			m.Command = []string{"sh", "/run.sh"}
			r, err := vm.Boot(context.Background(), m)
			if err != nil {
				t.Fatalf("%v\n%s", err, r.Output)
			}
			out := string(r.Output)
			if r.ExitStatus != 0 || strings.Count(out, "\nPASS\n") != len(suites) || strings.Contains(out, "--- SKIP") {
				t.Errorf("status %d:\n%s", r.ExitStatus, out)
			}
			for line := range strings.Lines(out) {
				if strings.HasPrefix(strings.TrimLeft(line, " "), "--- ") || strings.HasPrefix(line, k) {
					t.Log(strings.TrimSpace(line))
				}
			}
			checkDoctor(t, k, out)
			t.Logf("%s: %v, %v of the CPU, under %s", k, r.Took.Round(time.Second), r.CPU.Round(time.Second), r.Accel)
			if dir := os.Getenv("RYE_COVERAGE_DIR"); dir != "" {
				_, rest, _ := strings.Cut(out, "\ncoverage-begin\n")
				rows, _, ok := strings.Cut(rest, "coverage-end")
				if !ok {
					t.Fatal("no coverage table came back")
				}
				if err := os.WriteFile(filepath.Join(dir, k), []byte(rows), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// checkDoctor holds what rye doctor says in the guest against what is known of the kernel. That its blind
// spots are the suite's is the conformance suite's own check.
func checkDoctor(t *testing.T, kernel, out string) {
	t.Helper()
	_, rest, _ := strings.Cut(out, "\ndoctor-begin\n")
	text, _, _ := strings.Cut(rest, "doctor-end")
	var d struct {
		Tier     string `json:"tier"`
		OK       bool   `json:"ok"`
		Observer struct {
			SelfTest string   `json:"self_test"`
			Hooks    []string `json:"hooks"`
			Gaps     []struct {
				What string `json:"what"`
			} `json:"gaps"`
		} `json:"observer"`
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Errorf("rye doctor: %v\n%s", err, text)
		return
	}
	if d.Tier != bestTier[kernel] || !d.OK || d.Observer.SelfTest != "passed" || len(d.Observer.Hooks) < 20 || len(d.Observer.Gaps) == 0 {
		t.Errorf("rye doctor on %s: tier %s (want %s), ok %v, self test %s, %d hooks, %d gaps", kernel, d.Tier, bestTier[kernel], d.OK,
			d.Observer.SelfTest, len(d.Observer.Hooks), len(d.Observer.Gaps))
	}
	t.Logf("doctor: tier %s, self test %s, %d hooks, %d gaps", d.Tier, d.Observer.SelfTest, len(d.Observer.Hooks), len(d.Observer.Gaps))
}

func cache() string {
	if c := os.Getenv("RYE_CACHE"); c != "" {
		return c
	}
	return filepath.Join(testutil.Root(), ".cache")
}

// builder builds once for each architecture.
func builder(t *testing.T) func(t *testing.T, arch string) []vm.File {
	dir := t.TempDir() // of the whole test, not of one kernel
	built := map[string][]vm.File{}
	return func(t *testing.T, arch string) []vm.File {
		t.Helper()
		if arch == "" {
			arch = runtime.GOARCH
		}
		if built[arch] == nil {
			built[arch] = build(t, filepath.Join(dir, arch), arch)
		}
		return built[arch]
	}
}

// build makes what the guest runs: static test binaries and the ground programs they compare with.
func build(t *testing.T, dir, arch string) []vm.File {
	t.Helper()
	cc := "cc"
	if arch == "arm64" && runtime.GOARCH != arch {
		cc = "aarch64-linux-gnu-gcc"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var files []vm.File
	run := func(out string, argv ...string) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = testutil.Root(), append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, b)
		}
		files = append(files, vm.File{Path: "/t/" + filepath.Base(out), From: out})
	}
	for _, s := range suites {
		out := filepath.Join(dir, filepath.Base(s.pkg)+".test")
		run(out, "go", "test", "-c", "-o", out, "./"+s.pkg)
	}
	run(filepath.Join(dir, "rye"), "go", "build", "-o", filepath.Join(dir, "rye"), "./cmd/rye")
	sources, err := filepath.Glob(filepath.Join(testutil.Root(), "testdata", "ground", "*.c"))
	evasion, _ := filepath.Glob(filepath.Join(testutil.Root(), "testdata", "evasion", "*.c"))
	sources = append(sources, evasion...)
	if err != nil || len(sources) == 0 {
		t.Fatalf("no ground programs: %v", err)
	}
	for _, src := range sources {
		out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(src), ".c"))
		flags := []string{"-O2", "-static", "-pthread", "-Wno-unused-result"}
		if filepath.Base(out) == "tiny" {
			flags = []string{"-O2", "-static", "-nostdlib"}
		}
		run(out, append(append([]string{cc}, flags...), "-o", out, src)...)
	}
	return files
}
