package collector

import "golang.org/x/sys/unix"

// now is the clock of the kernel's records: CLOCK_BOOTTIME, nanoseconds.
func now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // only possible on kernels before 2.6.39
	}
	return uint64(t.Nano())
}
