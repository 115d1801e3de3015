package icount

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/collector"
	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/loader"
)

// TestGuest runs in the guest: every witness in turn, the same work inside and outside of its cgroup.
func TestGuest(t *testing.T) {
	dir := os.Getenv("RYE_ICOUNT_GUEST")
	if dir == "" {
		t.Skip("runs in the guest of TestInstructions")
	}
	_ = unix.Mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, "")
	tree := "/tmp/tree"
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "", filepath.Join(dir, "workload"), "mktree", "0", tree)
	in, out := cgroup(t, "in"), cgroup(t, "out")
	works := [][]string{
		{"exec", "1000", filepath.Join(dir, "tiny")},
		{"first", "2000", tree}, // every file for the first time
		{"open", "4000", tree},  // and then again
		{"mixed", "25", tree},
	}
	profile := os.Getenv("RYE_ICOUNT_PROGRAMS") != ""
	if profile {
		stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
		if err != nil {
			t.Fatal(err)
		}
		defer stats.Close()
	}
	for _, mode := range strings.Fields(os.Getenv("RYE_ICOUNT_ORDER")) {
		stop := attach(t, dir, mode, in)
		if stop == nil {
			continue
		}
		var prefix []string
		switch mode {
		case "strace":
			prefix = []string{filepath.Join(dir, "strace"), "-f", "-e", "trace=execve,openat,connect", "-o", "/tmp/trace"}
		case "strace-bpf":
			prefix = []string{filepath.Join(dir, "strace"), "-f", "--seccomp-bpf", "-e", "trace=execve,openat,connect", "-o", "/tmp/trace"}
		}
		run(t, in.path, filepath.Join(dir, "workload"), "exec", "20", filepath.Join(dir, "tiny")) // warm
		for _, w := range works {
			argv := append([]string{filepath.Join(dir, "workload")}, w...)
			if w[0] == "first" {
				argv[1] = "open"
			}
			tool := cpuOf(unix.RUSAGE_SELF)
			programs := programTimes(t, profile)
			before := in.usage(t)
			times, outside := int64(1), int64(1)
			switch {
			case w[0] == "exec" && prefix == nil: // start-up scatters with the layout of the process that execs
				times = 4
			case w[0] == "open": // outsiders pay little: more of it stands out from the timer's interrupts
				outside = 5
			}
			for range times {
				run(t, in.path, append(prefix, argv...)...)
			}
			inside := (in.usage(t) - before) / times
			for name, now := range programTimes(t, profile) {
				if n := now.runs - programs[name].runs; n > 0 {
					fmt.Printf("icount-program %s %s %s: %d runs of %.0f\n", mode, w[0], name, n, float64(now.took-programs[name].took)/float64(n))
				}
			}
			time.Sleep(300 * time.Millisecond) // the reader catches up
			tool = (cpuOf(unix.RUSAGE_SELF) - tool) / times
			before = out.usage(t)
			for range outside {
				run(t, out.path, argv...)
			}
			fmt.Printf("icount %s %s %s inside=%d outside=%d tool=%d\n", mode, w[0], w[1], inside, (out.usage(t)-before)/outside, tool)
		}
		debug.FreeOSMemory() // what the work left behind is not collected in the idle seconds
		idle := cpuOf(unix.RUSAGE_SELF)
		time.Sleep(5 * time.Second)
		fmt.Printf("icount %s idle 5 inside=%d outside=0 tool=0\n", mode, cpuOf(unix.RUSAGE_SELF)-idle)
		stop()
	}
}

type programTime struct {
	runs uint64
	took time.Duration // instructions, under -icount
}

// programTimes is what the kernel counted for every program that is loaded, when it does count.
func programTimes(t *testing.T, counted bool) map[string]programTime {
	t.Helper()
	all := map[string]programTime{}
	if !counted {
		return all
	}
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			t.Fatal(err)
		}
		info, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		stats, err := p.Stats()
		if err != nil {
			t.Fatal(err)
		}
		sum := all[info.Name]
		all[info.Name] = programTime{sum.runs + stats.RunCount, sum.took + stats.Runtime}
		p.Close()
	}
	return all
}

// cpuOf is user and system time of this process, ns.
func cpuOf(who int) int64 {
	var ts unix.Timespec
	if who != unix.RUSAGE_SELF || unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

type group struct {
	path string
	id   uint64
}

func cgroup(t *testing.T, name string) *group {
	t.Helper()
	g := &group{path: filepath.Join(testutil.Cgroup2(), name)}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(g.path, &st); err != nil {
		t.Fatal(err)
	}
	g.id = st.Ino
	return g
}

// usage is the group's CPU time, ns in steps of a microsecond.
func (g *group) usage(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.path, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	var usec int64
	if _, err := fmt.Sscanf(string(b), "usage_usec %d", &usec); err != nil {
		t.Fatal(err)
	}
	return usec * 1000
}

func run(t *testing.T, cg string, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	if cg != "" {
		fd, err := os.Open(cg)
		if err != nil {
			t.Fatal(err)
		}
		defer fd.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	}
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, b)
	}
}

// attach puts a witness of one kind in place. It returns nil for one that this kernel does not have.
func attach(t *testing.T, dir, mode string, in *group) (stop func()) {
	t.Helper()
	switch mode {
	case "none", "strace", "strace-bpf":
		return func() {}
	case "null", "path":
		return attachFloor(t, dir, mode, in)
	}
	tier := loader.Tier(mode)
	if tier.Available() != nil {
		return nil
	}
	o := loader.Options{CgroupID: in.id, CgroupLevel: 1, CgroupPath: in.path, Tier: tier}
	p, err := loader.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Attach(o); err != nil {
		t.Fatal(err)
	}
	var bytes int
	var line []byte
	c, err := collector.New(p, func(e event.Event) error { line = e.AppendJSON(line[:0]); bytes += len(line); return nil })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Run() }()
	return func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		lost, err := c.Lost()
		if len(lost) != 0 || err != nil {
			t.Errorf("%s: lost %v, %v", mode, lost, err)
		}
		fmt.Printf("icount-events %s %d records, %d bytes\n", mode, c.Read(), bytes)
		c.Close()
		p.Close()
	}
}

func attachFloor(t *testing.T, dir, mode string, in *group) (stop func()) {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(filepath.Join(dir, "floor.o"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range spec.Programs {
		if !strings.HasPrefix(name, mode+"_") {
			delete(spec.Programs, name)
		}
	}
	for name, value := range map[string]any{"session_cgroup": in.id, "session_level": int32(1)} {
		if err := spec.Variables[name].Set(value); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	on, err := link.AttachTracing(link.TracingOptions{Program: c.Programs[mode+"_exec"]})
	if err != nil {
		t.Fatal(err)
	}
	tp, err := link.Tracepoint("syscalls", "sys_exit_openat", c.Programs[mode+"_open"], nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ringbuf.NewReader(c.Maps["events"])
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // the usual consumer: polls every 5 ms
		defer close(done)
		var rec ringbuf.Record
		for {
			r.SetDeadline(time.Now().Add(5 * time.Millisecond))
			if err := r.ReadInto(&rec); err != nil && strings.Contains(err.Error(), "closed") {
				return
			}
		}
	}()
	return func() { r.Close(); <-done; tp.Close(); on.Close(); c.Close() }
}
