package wrapper

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// BenchmarkRelay measures rye's relay side by side with script(1) of util-linux: the same 200 MB text file through
// "cat", in the same kind of outer terminal, which is read as fast as it can be. Runs alternate, and the
// medians are compared:
//
//	go test -run=- -bench=Relay -benchtime=3x ./wrapper
//
// ratio is rye's throughput over script's.
func BenchmarkRelay(b *testing.B) {
	if _, err := exec.LookPath("script"); err != nil {
		b.Skip("script(1) is not installed")
	}
	const size = 200_000_000
	name := textFile(b, size)
	kinds := []struct {
		name string
		argv []string
		env  []string
	}{
		{"script", []string{"script", "-q", "-c", "cat " + name, "/dev/null"}, nil},
		{"rye", []string{"/proc/self/exe", "cat", name}, []string{envWrap + "=1"}},
		{"rye-recording", []string{"/proc/self/exe", "cat", name}, []string{envWrap + "=1", envRecording + "=" + filepath.Join(b.TempDir(), "cast")}},
	}
	took := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, k := range kinds {
			took[i] = append(took[i], throughTerminal(b, k.argv, k.env, size))
		}
	}
	median := make([]float64, len(kinds))
	for i, k := range kinds {
		slices.Sort(took[i])
		median[i] = size / took[i][len(took[i])/2].Seconds() / 1e6
		b.ReportMetric(median[i], k.name+"-MB/s")
	}
	b.ReportMetric(median[1]/median[0], "ratio")
	b.ReportMetric(median[2]/median[0], "recording-ratio")
	b.ReportMetric(0, "ns/op")
}

func textFile(tb testing.TB, size int) string {
	name := filepath.Join(tb.TempDir(), "text")
	f, err := os.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriter(f)
	const line = "the quick brown fox jumps over the lazy dog and compiles src/main.c at -O2 ok\n"
	for n := 0; n < size; n += len(line) {
		fmt.Fprint(w, line[:min(len(line), size-n)])
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return name
}

// throughTerminal runs argv in a terminal of its own and returns how long it took to read atLeast bytes.
func throughTerminal(tb testing.TB, argv, env []string, atLeast int) time.Duration {
	master, slave, err := pty.Open()
	if err != nil {
		tb.Fatal(err)
	}
	defer master.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	slave.Close()
	buf := make([]byte, 64<<10)
	total := 0
	for {
		n, err := master.Read(buf)
		total += n
		if err != nil { // EIO: the other end is closed
			break
		}
	}
	took := time.Since(start)
	if err := cmd.Wait(); err != nil {
		tb.Fatal(err)
	}
	if total < atLeast {
		tb.Fatalf("%s: %d bytes came through, want at least %d", argv[0], total, atLeast)
	}
	return took
}

// BenchmarkStart is what a session costs before and after the command: a monitor process, and no terminal.
func BenchmarkStart(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	b.Run("directly", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("session", func(b *testing.B) {
		for b.Loop() {
			s, err := Start(Options{Argv: []string{"true"}, Stdin: null, Stdout: null, Stderr: null})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
