package screen

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
)

// BenchmarkOutput is what the reader costs on a program's output and on an assistant's own frames.
func BenchmarkOutput(b *testing.B) {
	text := []byte(strings.Repeat("\x1b[32mok\x1b[0m   github.com/example/project/package\t0.004s and some more words\r\n", 1000))
	frames := []byte(strings.Repeat(codexScreen("• Ran make\n  └ ok\n", codexAsks("make", 0)...)+codexScreen("• Ran make\n  └ ok\n"), 100))
	for name, in := range map[string][]byte{"text": text, "frames": frames} {
		b.Run(name, func(b *testing.B) {
			s := New(120, 40, func(event.Event) {})
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for now := uint64(1e9); b.Loop(); now += 1e6 {
				s.Output(in, now)
			}
		})
	}
}

// BenchmarkFlood is what the reader costs while a program prints as fast as it can, in CPU time: other load on the
// machine does not count.
func BenchmarkFlood(b *testing.B) {
	line := "ok   github.com/example/project/internal/package\t0.004s  coverage: 81.4% of statements\r\n"
	in := []byte(strings.Repeat(line, 1<<20/len(line)))
	s := New(120, 40, func(event.Event) {})
	b.SetBytes(int64(len(in)))
	before := cpu(b)
	for now := uint64(1e9); b.Loop(); now += 1e6 {
		s.Output(in, now)
	}
	b.ReportMetric(float64(len(in))*float64(b.N)/1e6/(cpu(b)-before).Seconds(), "MB/cpu-s")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A flood of output, some of it never passed on, between dialogs: each is found, read for sure and answered, and
// nothing that was printed is kept.
func TestFlood(t *testing.T) {
	prompts, answers, doubts := 0, 0, 0
	s := New(120, 40, func(e event.Event) {
		switch b := e.Body.(type) {
		case *event.ApprovalPrompted:
			prompts++
			if b.Command != "make" || b.Cut {
				t.Errorf("%+v", b)
			}
		case *event.ApprovalGranted:
			answers++
			if b.Uncertain != "" || !b.Attested {
				doubts++
			}
		}
	})
	flood := []byte(strings.Repeat("\x1b[32mok\x1b[0m   github.com/example/project/package\t0.004s 漢字\r\n", 1000))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	now := uint64(1e9)
	s.Output(flood, now)
	before := heap()
	for range 5 {
		for n := range 100 {
			now += 1e6
			s.Output(flood, now)
			if n == 50 {
				s.Skipped(1<<20, now)
			}
		}
		now += 1e6
		s.Output([]byte("\x1b[2J"+codexScreen("• Running make\n", codexAsks("make", 0)...)), now)
		now += 200e6
		s.Input([]byte("y"), now)
		now += 10e6
		s.Output([]byte("\x1b[2J"+codexScreen("\x1b[32m✔\x1b[39m You \x1b[1mapproved\x1b[22m codex to run \x1b[2mmake\x1b[22m\x1b[1m this time\x1b[22m\n")), now)
		now += 500e6
		s.Idle(now)
	}
	s.Close(now)
	if prompts != 5 || answers != 5 || doubts != 0 {
		t.Errorf("%d dialogs, %d answers, %d of them in doubt", prompts, answers, doubts)
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d KiB are kept", (after-before)>>10)
	}
}
