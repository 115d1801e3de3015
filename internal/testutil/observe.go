// Package testutil is for tests only: kernel skips that CI does not accept, programs built from C, and a
// whole observer around one command. It may import anything but cmd/rye.
package testutil

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/collector"
	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
)

// Features is what this kernel offers, asked once: in a guest without acceleration the kernel's types take
// seconds to read.
var Features = sync.OnceValue(loader.Detect)

// Privileged skips a test that needs the kernel witness where it cannot be had, and fails instead when
// RYE_TEST_STRICT is set (as CI does): a skipped privileged test there is a failure.
func Privileged(t testing.TB) {
	t.Helper()
	missing := Features().Missing()
	if len(missing) == 0 {
		return
	}
	Skip(t, "no kernel witness here: %s (%s)", missing[0].Name, missing[0].Why)
}

// Skip skips with a reason, and fails where skips are not accepted.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("RYE_TEST_STRICT") != "" {
		t.Fatalf("would skip, and RYE_TEST_STRICT is set: "+format, args...)
	}
	t.Skipf(format, args...)
}

// Root returns the top of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// CC builds a C program from testdata/ground and returns its path. In a guest there is no compiler:
// RYE_GROUND names a folder with the programs already built.
func CC(t testing.TB, name string, flags ...string) string {
	t.Helper()
	if dir := os.Getenv("RYE_GROUND"); dir != "" {
		return filepath.Join(dir, name)
	}
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O2", "-Wall", "-o", out, filepath.Join(Root(), "testdata", "ground", name+".c")}, flags...)
	if b, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, b)
	}
	return out
}

// Cgroup2 returns the mount point of the cgroup2 hierarchy, or "".
func Cgroup2() string {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		pre, post, ok := strings.Cut(line, " - ")
		if ok && strings.HasPrefix(post, "cgroup2 ") {
			return strings.Fields(pre)[4]
		}
	}
	return ""
}

// An Observation is what was recorded of one command.
type Observation struct {
	Events []event.Event
	Lost   map[string]uint64
	Status syscall.WaitStatus
	Read   uint64
	Hooks  []string
	Gaps   []loader.Gap
	Blind  []loader.Blind
}

// A ring of up to smallRing bytes is there to lose records, and a quick reader might not: it is read from the
// first loss on.
const smallRing = 64 << 10

// awaitLoss returns once a record was lost, or after a minute.
func awaitLoss(p *loader.Probes) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, lost, err := p.Counters(); err != nil || slices.ContainsFunc(lost, func(n uint64) bool { return n != 0 }) {
			return
		}
	}
}

// Observe runs cmd in a cgroup of its own with the programs attached and returns what they saw.
func Observe(t testing.TB, cmd *exec.Cmd, opts ...func(*loader.Options)) *Observation {
	t.Helper()
	return ObserveAll(t, []*exec.Cmd{cmd}, opts...)
}

// ObserveAll runs several commands, one after the other, under one set of programs.
func ObserveAll(t testing.TB, cmds []*exec.Cmd, opts ...func(*loader.Options)) *Observation {
	t.Helper()
	mnt := Cgroup2()
	if mnt == "" {
		t.Fatal("no cgroup2 hierarchy is mounted")
	}
	dir, err := os.MkdirTemp(mnt, "rye-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	o := loader.Options{CgroupID: st.Ino, CgroupLevel: 1, CgroupPath: dir, Found: Features()}
	for _, f := range opts {
		f(&o)
	}
	p, err := loader.Load(o)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer p.Close()
	ob := &Observation{}
	c, err := collector.New(p, func(e event.Event) error { ob.Events = append(ob.Events, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := p.Attach(o); err != nil {
		t.Fatal(err)
	}
	ob.Hooks, ob.Gaps, ob.Blind = p.Hooks(), p.Gaps(), p.Blind()
	fd, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	done := make(chan error, 1)
	go func() {
		if o.RingBytes != 0 && o.RingBytes <= smallRing {
			awaitLoss(p)
		}
		done <- c.Run()
	}()
	for _, cmd := range cmds {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
		if cmd.Stderr == nil {
			cmd.Stderr = os.Stderr
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		ob.Status = cmd.ProcessState.Sys().(syscall.WaitStatus)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ob.Read = c.Read()
	if ob.Lost, err = c.Lost(); err != nil {
		t.Fatal(err)
	}
	return ob
}

// Of returns the bodies of one kind.
func Of[B event.Body](events []event.Event) []B {
	var out []B
	for _, e := range events {
		if b, ok := e.Body.(B); ok {
			out = append(out, b)
		}
	}
	return out
}
