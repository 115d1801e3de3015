package wrapper

import "golang.org/x/sys/unix"

// boottime is CLOCK_BOOTTIME in ns: the clock of the kernel events, so that a key and an exec can be put in
// order. It does not fail on Linux with a valid clock id.
func boottime() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}
