package wrapper

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pidFrom reads a pid that a script wrote, waiting for it.
func pidFrom(t *testing.T, name string) int {
	t.Helper()
	for end := time.Now().Add(patienceInTests); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(name)
		if err != nil || !strings.HasSuffix(string(b), "\n") {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Fatalf("no pid in %s", name)
	return 0
}

func killFromFile(t *testing.T, name string) {
	t.Helper()
	syscall.Kill(pidFrom(t, name), syscall.SIGKILL)
}

// wantGone waits until a process is gone or a zombie.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(patienceInTests); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s := processState(pid); s == 0 || s == 'Z' {
			return
		}
	}
	t.Errorf("process %d is still there, state %c", pid, processState(pid))
}

// parent returns the parent of a process.
func parent(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	ppid, err := strconv.Atoi(f[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

// wantState waits until a process is in a state of /proc/PID/stat.
func wantState(t *testing.T, pid int, state byte) {
	t.Helper()
	for end := time.Now().Add(patienceInTests); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if processState(pid) == state {
			return
		}
	}
	t.Errorf("process %d is in state %c, want %c", pid, processState(pid), state)
}
