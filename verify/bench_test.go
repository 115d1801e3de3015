package verify

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
)

// bigSession writes a ledger of n events: an approved build under an assistant, with a share of
// processes (fork, exec, exit) and opens as given.
func bigSession(n int, opensPerProcess int) []byte {
	var buf []byte
	seq, at := uint64(0), uint64(100*second)
	add := func(k *event.ProcessKey, b event.Body) {
		at += 1000
		e := event.New(at, k, b)
		e.Seq = seq
		seq++
		buf = append(e.AppendJSON(buf), '\n')
	}
	env := map[string]string{"PATH": labPath, "CODEX_TOOL_CALL_ID": "call_1", "CODEX_THREAD_ID": "t1"}
	exec := func(k *event.ProcessKey, parent event.ProcessKey, exe string, argv ...string) {
		add(k, &event.ProcessExec{Parent: parent, Argv: argv, Path: exe, Exe: exe, ExeDev: 1, ExeIno: 5, CWD: labWork, Env: env})
	}
	add(nil, &event.SessionStart{ID: "big", Command: []string{codexBin}, PID: 1000, CWD: labWork, Workspace: labWork, Home: labHome, TempDir: "/tmp", SearchDir: labPath})
	add(nil, &event.ObserverAttached{Tier: "lsm", SelfTest: "passed"})
	root := event.ProcessKey{TGID: 1000, StartNS: at}
	exec(&root, event.ProcessKey{TGID: 1}, codexBin, codexBin)
	add(nil, &event.ToolCall{ID: "call_1", Agent: "codex", Source: "transcript", Thread: "t1", Tool: "exec_command", Kind: "command", Command: "make -j8", AskedTimeNS: at})
	add(nil, &event.ApprovalGranted{ID: "a1", Agent: "codex", Kind: "command", Command: "make -j8", Decision: "this_time", Attested: true, Key: "y", KeyTimeNS: at})
	sh := event.ProcessKey{TGID: 1001, StartNS: at}
	add(&sh, &event.ProcessFork{Parent: root})
	exec(&sh, root, "/usr/bin/bash", "/bin/bash", "-c", "make -j8")
	exec(&sh, root, "/usr/bin/make", "make", "-j8")
	pid := uint32(2000)
	for int(seq)+4 < n {
		pid++
		k := event.ProcessKey{TGID: pid, StartNS: at + 500}
		add(&k, &event.ProcessFork{Parent: sh})
		exec(&k, sh, "/usr/bin/x86_64-linux-gnu-gcc-12", "gcc", "-c", "-O2", "-Iinclude", fmt.Sprintf("src/file%d.c", pid), "-o", fmt.Sprintf("build/file%d.o", pid))
		for i := range opensPerProcess {
			if int(seq)+3 >= n {
				break
			}
			o := &event.FileOpen{Path: fmt.Sprintf("/usr/include/x86_64-linux-gnu/bits/types/f%d.h", i), Flags: []string{"O_RDONLY", "O_CLOEXEC"}, Dev: 65024, Ino: uint64(i), Count: 1}
			if i == 0 {
				o.Path, o.Flags, o.Created = fmt.Sprintf("%s/build/file%d.o", labWork, pid), []string{"O_WRONLY", "O_CREAT", "O_TRUNC"}, true
			}
			add(&k, o)
		}
		add(&k, &event.ProcessExit{})
	}
	add(&sh, &event.ProcessExit{})
	add(&root, &event.ProcessExit{})
	add(nil, &event.SessionEnd{})
	return buf
}

// verifyFile reads a ledger as it is read in life: line by line.
func verifyFile(tb testing.TB, name string) *Report {
	r, err := Verify(Input{Ledger: LedgerState{OK: true, BadRecord: -1}, Events: func(yield func(event.Event, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			tb.Error(err)
			return
		}
		defer f.Close()
		sc := bufio.NewScanner(f)
		sc.Buffer(make([]byte, 1<<20), 1<<20)
		for sc.Scan() {
			if !yield(event.ParseJSON(sc.Bytes())) {
				return
			}
		}
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func bigFile(tb testing.TB, n, opens int) string {
	name := filepath.Join(tb.TempDir(), "events.jsonl")
	if err := os.WriteFile(name, bigSession(n, opens), 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

// A million events must be judged in seconds and in bounded memory, whether they are opens or
// processes.
func TestMillionEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, c := range []struct {
		name     string
		n, opens int
	}{{"a build: 27 opens a process", 1_000_000, 27}, {"a burst: nothing but processes", 200_000, 0}} {
		file := bigFile(t, c.n, c.opens)
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		before, most := m.HeapInuse, uint64(0)
		stop, done := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for {
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
		start := time.Now()
		r := verifyFile(t, file)
		took := time.Since(start)
		close(stop)
		<-done
		if r.Verdict != Verified || r.Coverage.Events < uint64(c.n)-10 || r.Actions[0].ExecCount < 30_000 || len(r.Actions[0].Execs) > maxListed+2 {
			t.Errorf("%s: %s %+v", c.name, r.Verdict, r.Coverage)
		}
		t.Logf("%s: %v, %d programs, heap grew by at most %d MB", c.name, took.Round(time.Millisecond), r.Actions[0].ExecCount, (most-min(before, most))>>20)
	}
}

func BenchmarkMillion(b *testing.B) {
	for _, opens := range []int{27, 0} {
		b.Run(fmt.Sprintf("opens=%d", opens), func(b *testing.B) {
			file := bigFile(b, 1_000_000, opens)
			b.ReportAllocs()
			for b.Loop() {
				verifyFile(b, file)
			}
		})
	}
}

// Whatever is in a ledger, judging it ends, without a panic, in a report that marshals.
func FuzzVerify(f *testing.F) {
	seed := func(l *lab) {
		l.end()
		var b []byte
		for _, e := range l.events {
			b = append(e.AppendJSON(b), '\n')
		}
		f.Add(b)
	}
	t := &testing.T{}
	l, c := codexLab(t)
	l.call("codex", "call_1", "touch a | sh")
	l.prompt("codex", "touch a | sh").grant()
	codexRun(c, "call_1", "touch a | sh").run("touch", "a")
	codexSandboxed(c, "call_2", "ls")
	seed(l)
	l, c = claudeLab(t)
	l.call("claude", "toolu_1", "ls", bash)
	l.prompt("claude", "ls").deny()
	claudeRun(c, "2.1.332", "ls").open("/home/dev/.ssh/id_rsa", rdonly)
	c.do(&event.IPCConnect{Path: "/run/docker.sock"})
	c.do(&event.Escape{What: "bpf"})
	l.call("claude", "toolu_2", "", edit("a", ""))
	l.result("claude", "toolu_2")
	seed(l)
	f.Fuzz(func(t *testing.T, b []byte) {
		var events []event.Event
		for line := range bytes.Lines(b) {
			if e, err := event.ParseJSON(bytes.TrimSuffix(line, []byte{'\n'})); err == nil {
				events = append(events, e)
			}
		}
		for range 2 {
			r, err := Verify(Input{Ledger: LedgerState{OK: true, BadRecord: -1}, Events: func(yield func(event.Event, error) bool) {
				for _, e := range events {
					if !yield(e, nil) {
						return
					}
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			mustJSON(t, r)
			if len(r.Actions) > 0 && r.Verdict == Verified && slices.ContainsFunc(r.Actions, func(a Action) bool { return a.Verdict != Verified }) {
				t.Fatalf("a session is verified only if every action is:\n%s", brief(r))
			}
			slices.Reverse(events)
		}
	})
}
