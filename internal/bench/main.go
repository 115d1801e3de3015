// Command bench measures rye beside bpftrace and strace in one run, on this machine, and prints ratios: only
// those carry over to another. The workload times itself, so that starting a tool costs it nothing. Tools
// take turns within a round; a round begins with the workload alone, and each run is set against it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type work struct {
	name string
	n    int
	args []string // after the count
}

type result struct {
	ns     float64 // wall time of the workload
	cpu    float64 // the tool's CPU, ns; 0 when unknown
	rss    float64 // the tool's peak, bytes
	events int
	lost   uint64
}

// Workload and tool have a cpu each and real-time priority, so that other load stays out. One cpu: no prefix.
var onWork, onTool = []string{"taskset", "-c", "1", "chrt", "-f", "10"}, []string{"taskset", "-c", "0", "chrt", "-f", "10"}

type bench struct {
	dir, rye, workload string
}

func main() {
	rounds := flag.Int("rounds", 5, "rounds")
	rye := flag.String("rye", "bin/rye", "the rye to measure")
	flag.Parse()
	if err := run(*rounds, *rye); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds int, rye string) error {
	rye, err := filepath.Abs(rye)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "rye-bench-") // memory: the disk is not what is measured
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, rye: rye, workload: filepath.Join(dir, "workload")}
	for _, c := range [][]string{
		{"cc", "-O2", "-static", "-o", b.workload, "testdata/ground/workload.c"},
		{"cc", "-O2", "-static", "-nostdlib", "-o", filepath.Join(dir, "tiny"), "testdata/ground/tiny.c"},
		{"mkdir", filepath.Join(dir, "tree")},
		{b.workload, "mktree", "0", filepath.Join(dir, "tree")},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %v\n%s", c, err, out)
		}
	}
	works := []work{
		{"open", 100000, []string{filepath.Join(dir, "tree")}},
		{"exec", 3000, []string{filepath.Join(dir, "tiny")}},
		{"mixed", 300, []string{filepath.Join(dir, "tree")}},
	}
	tools := []string{"none", "rye", "bpftrace", "strace", "strace-bpf"}
	got := map[string]map[string][]result{}
	for r := range rounds {
		for _, w := range works {
			order := append(slices.Clone(tools[1+r%4:]), tools[1:1+r%4]...)
			for _, tool := range append([]string{"none"}, order...) {
				x, err := b.once(tool, w)
				if err != nil {
					return fmt.Errorf("%s %s: %w", tool, w.name, err)
				}
				if got[w.name] == nil {
					got[w.name] = map[string][]result{}
				}
				got[w.name][tool] = append(got[w.name][tool], x)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", r+1, rounds)
	}
	return print(works, tools, got)
}

var timing = regexp.MustCompile(`ops=(\d+) ns=(\d+)`)

func parse(out []byte) (float64, error) {
	m := timing.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no timing in %q", out)
	}
	ns, err := strconv.ParseFloat(string(m[2]), 64)
	return ns, err
}

func (b *bench) once(tool string, w work) (x result, err error) {
	argv := append(slices.Clone(onWork), append([]string{b.workload, w.name, strconv.Itoa(w.n)}, w.args...)...)
	switch tool {
	case "none":
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			return x, err
		}
		x.ns, err = parse(out)
		return x, err
	case "strace", "strace-bpf":
		args := []string{"-c", "1", "chrt", "-f", "10", "strace", "-f", "-qq", "-e", "trace=execve,openat,connect", "-o", filepath.Join(b.dir, "strace.out")}
		if tool == "strace-bpf" {
			args = append(args, "--seccomp-bpf")
		}
		cmd := exec.Command("taskset", append(args, argv...)...) // with its tracee: its best case
		out, err := cmd.Output()
		if err != nil {
			return x, err
		}
		x.ns, err = parse(out)
		return x, err
	case "rye":
		return b.underRye(argv)
	case "bpftrace":
		return b.underBpftrace(argv)
	}
	return x, fmt.Errorf("no tool %q", tool)
}

func (b *bench) underRye(argv []string) (x result, err error) {
	sum := filepath.Join(b.dir, "summary.json")
	cmd := exec.Command(onTool[0], append(append(slices.Clone(onTool[1:]), b.rye, "wrap", "-q", "--json-summary", sum, "--"), argv...)...)
	home := filepath.Join(b.dir, "home")
	os.RemoveAll(home)
	cmd.Env = append(os.Environ(), "RYE_HOME="+home)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return x, err
	}
	if x.ns, err = parse(out); err != nil {
		return x, err
	}
	var s struct {
		Lost map[string]uint64
		Self struct {
			CPU    float64 `json:"cpu_ns"`
			RSS    float64 `json:"max_rss_bytes"`
			Events int     `json:"events"`
		}
	}
	data, err := os.ReadFile(sum)
	if err != nil {
		return x, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return x, err
	}
	for _, n := range s.Lost {
		x.lost += n
	}
	x.cpu, x.rss, x.events = s.Self.CPU, s.Self.RSS, s.Self.Events
	return x, nil
}

const script = `BEGIN { printf("READY\n"); }
tracepoint:syscalls:sys_enter_execve /cgroup == cgroupid("%[1]s")/ { printf("exec %%d %%s %%s\n", pid, comm, str(args->filename)); }
tracepoint:syscalls:sys_enter_openat /cgroup == cgroupid("%[1]s")/ { printf("open %%d %%s %%s\n", pid, comm, str(args->filename)); }
tracepoint:syscalls:sys_enter_connect /cgroup == cgroupid("%[1]s")/ { printf("conn %%d %%s %%d\n", pid, comm, args->fd); }
`

func (b *bench) underBpftrace(argv []string) (x result, err error) {
	mnt := cgroup2()
	cg, err := os.MkdirTemp(mnt, "rye-bench-")
	if err != nil {
		return x, err
	}
	defer os.Remove(cg)
	bt, out := filepath.Join(b.dir, "t.bt"), filepath.Join(b.dir, "bpftrace.out")
	if err := os.WriteFile(bt, fmt.Appendf(nil, script, cg), 0o644); err != nil {
		return x, err
	}
	os.Remove(out)
	tracer := exec.Command(onTool[0], append(slices.Clone(onTool[1:]), "bpftrace", "-B", "full", "-o", out, bt)...)
	ready, err := os.Create(filepath.Join(b.dir, "bpftrace.err"))
	if err != nil {
		return x, err
	}
	defer ready.Close()
	tracer.Stdout, tracer.Stderr = ready, ready
	if err := tracer.Start(); err != nil {
		return x, err
	}
	for range 200 { // "Attaching N probes..." comes before they are; give it a moment more
		if data, _ := os.ReadFile(out); strings.Contains(string(data), "READY") {
			break
		}
		if data, _ := os.ReadFile(filepath.Join(b.dir, "bpftrace.err")); strings.Contains(string(data), "Attaching") {
			time.Sleep(1500 * time.Millisecond)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	before := cpuOf(tracer.Process.Pid)
	fd, err := os.Open(cg)
	if err != nil {
		return x, err
	}
	defer fd.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	printed, err := cmd.Output()
	if err != nil {
		return x, err
	}
	time.Sleep(500 * time.Millisecond)
	x.cpu = cpuOf(tracer.Process.Pid) - before
	tracer.Process.Signal(syscall.SIGINT)
	tracer.Wait()
	data, err := os.ReadFile(out)
	if err != nil {
		return x, err
	}
	x.events = strings.Count(string(data), "\nopen ") + strings.Count(string(data), "\nexec ")
	x.rss = float64(tracer.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024
	x.ns, err = parse(printed)
	return x, err
}

func cgroup2() string {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		if pre, post, ok := strings.Cut(line, " - "); ok && strings.HasPrefix(post, "cgroup2 ") {
			return strings.Fields(pre)[4]
		}
	}
	return "/sys/fs/cgroup"
}

// cpuOf is a process's CPU time so far, in ns.
func cpuOf(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil {
		// the main thread only; bpftrace does its work there
		if f := strings.Fields(string(b)); len(f) == 3 {
			ns, _ := strconv.ParseFloat(f[0], 64)
			return ns
		}
	}
	return 0
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Clone(xs)
	slices.Sort(xs)
	return xs[len(xs)/2]
}

func print(works []work, tools []string, got map[string]map[string][]result) error {
	added := map[string]map[string]float64{}
	cpu := map[string]map[string]float64{}
	var worstRSS float64
	var lost uint64
	rate := map[string]float64{}
	fmt.Printf("%-10s %-10s %14s %12s %14s %8s\n", "workload", "tool", "added us/op", "overhead", "tool us/event", "rss MB")
	for _, w := range works {
		added[w.name], cpu[w.name] = map[string]float64{}, map[string]float64{}
		for _, tool := range tools[1:] {
			var add, over, percent, rss []float64
			for i, x := range got[w.name][tool] {
				base := got[w.name]["none"][i].ns
				add = append(add, (x.ns-base)/float64(w.n))
				over = append(over, x.ns/base-1)
				if x.events > 0 {
					percent = append(percent, x.cpu/float64(max(w.n, 1)))
				}
				rss = append(rss, x.rss)
				if tool == "rye" {
					lost += x.lost
				}
				if w.name == "open" {
					rate[tool] = max(rate[tool], float64(w.n)/x.ns*1e9)
				}
			}
			added[w.name][tool], cpu[w.name][tool] = median(add), median(percent)
			if tool == "rye" {
				worstRSS = max(worstRSS, slices.Max(rss))
			}
			fmt.Printf("%-10s %-10s %14.2f %11.0f%% %14.2f %8.0f\n", w.name, tool, median(add)/1000, 100*median(over), median(percent)/1000, median(rss)/1e6)
		}
	}
	failed := false
	check := func(what string, value, limit float64, atMost bool) {
		ok := value <= limit
		sign := "at most"
		if !atMost {
			ok, sign = value >= limit, "at least"
		}
		word := "ok"
		if !ok {
			word, failed = "MISSED", true
		}
		fmt.Printf("%-62s %8.3f  %s %.3f  %s\n", what, value, sign, limit, word)
	}
	fmt.Println()
	check("added time per open, rye / bpftrace", added["open"]["rye"]/added["open"]["bpftrace"], 0.2, true)
	check("added time per exec, rye / bpftrace", max(added["exec"]["rye"], 0)/added["exec"]["bpftrace"], 1.0/3, true)
	check("added time per exec, rye / strace", max(added["exec"]["rye"], 0)/added["exec"]["strace"], 1.0/8, true)
	check("build-like work, rye / strace --seccomp-bpf", max(added["mixed"]["rye"], 0)/added["mixed"]["strace-bpf"], 1.0/3, true)
	check("opens per second flat out, rye / bpftrace", rate["rye"]/rate["bpftrace"], 3, false)
	check("CPU per open, rye / bpftrace", cpu["open"]["rye"]/cpu["open"]["bpftrace"], 1.0/3, true)
	check("events lost by rye", float64(lost), 0, true)
	check("rye's memory, MB", worstRSS/1e6, 50, true)
	if failed {
		return fmt.Errorf("a limit was missed")
	}
	return nil
}
