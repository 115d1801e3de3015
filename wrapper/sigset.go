package wrapper

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
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
	return parseIgnored(b)
}

func parseIgnored(status []byte) (signalSet, error) {
	for line := range bytes.Lines(status) {
		if v, ok := bytes.CutPrefix(line, []byte("SigIgn:")); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(v)), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("read ignored signals: %w", err)
			}
			return signalSet(n), nil
		}
	}
	return 0, fmt.Errorf("read ignored signals: no SigIgn in /proc/self/status")
}
