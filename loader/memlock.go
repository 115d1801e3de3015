package loader

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// raiseMemlock lifts RLIMIT_MEMLOCK while programs are loaded: kernels before 5.11 charge maps to it. The
// limit is put back, because the wrapped command inherits it. (cilium/ebpf/rlimit would leave it lifted,
// and makes a bpf(2) call whenever a program that imports it starts.)
func raiseMemlock() (restore func(), err error) {
	nothing := func() {}
	if kernelAtLeast(5, 11) {
		return nothing, nil
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		return nothing, fmt.Errorf("read memory lock limit: %w", err)
	}
	up := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &up); err != nil {
		return nothing, fmt.Errorf("raise memory lock limit: %w", err)
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old) }, nil
}

// kernelAtLeast compares the running kernel's version.
func kernelAtLeast(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(release(), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}
