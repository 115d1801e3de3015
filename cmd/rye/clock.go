package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// boottime is the one clock of a session: CLOCK_BOOTTIME in nanoseconds, as kernel events carry it.
func boottime() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// ownCPU is the CPU time of this process so far, in nanoseconds, without its children's.
func ownCPU() uint64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return uint64(r.Utime.Nano() + r.Stime.Nano())
}

// ownRSS is the most memory this process has had resident, in bytes.
func ownRSS() uint64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return uint64(r.Maxrss) * 1024
}
