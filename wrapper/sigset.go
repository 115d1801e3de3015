package wrapper

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signalSet is a set of signals, bit N-1 for signal N, as in /proc/PID/status.
type signalSet uint64

func (s signalSet) has(sig syscall.Signal) bool { return s&(1<<(sig-1)) != 0 }

// ignoredSignals returns the signals this process ignores. signal.Ignored would not do: it knows nothing of the
// job control signals, which the Go runtime leaves as they were inherited.
func ignoredSignals() (signalSet, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read ignored signals: %w", err)
	}
	return parseSignals(b, "SigIgn")
}

func parseSignals(status []byte, field string) (signalSet, error) {
	for line := range bytes.Lines(status) {
		if v, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(v)), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("read signal set %s: %w", field, err)
			}
			return signalSet(n), nil
		}
	}
	return 0, fmt.Errorf("read signal set: no %s", field)
}

// Handlers of withDisposition, SIG_DFL and SIG_IGN.
const (
	sigDefault uintptr = 0
	sigIgnore  uintptr = 1
)

// withDisposition runs do while a signal has its default action or is ignored. os/signal cannot give a signal it was
// once asked to notify of its default action back: Reset leaves the runtime's handler in place.
func withDisposition(sig syscall.Signal, handler uintptr, do func()) error {
	if sig == unix.SIGSTOP { // has no other
		do()
		return nil
	}
	// The kernel's struct sigaction: the handler first, flags and mask zero. Four words on amd64 and arm64.
	set, old := [4]uintptr{handler}, [4]uintptr{}
	if err := sigaction(sig, &set, &old); err != nil {
		return fmt.Errorf("set disposition of %v: %w", sig, err)
	}
	do()
	if err := sigaction(sig, &old, nil); err != nil {
		return fmt.Errorf("restore disposition of %v: %w", sig, err)
	}
	return nil
}

func sigaction(sig syscall.Signal, set, old *[4]uintptr) error {
	const maskBytes = 8
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), maskBytes, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
