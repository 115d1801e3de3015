package loader

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Drop gives up every capability of this process, on all its threads, and makes sure that nothing it
// execs gets one back through ambient or inheritable sets. File descriptors of maps, links and the ring
// stay usable: the kernel checks capabilities when objects are made, not when they are used.
//
// Kernels before 5.19 check CAP_BPF on every bpf(2) call when unprivileged BPF is off, so it is kept there.
// For root nothing is dropped from the bounding set: what the wrapped program may do must stay as it was.
func Drop() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	var keep uint64
	if !bpfByDescriptor() {
		keep = 1 << unix.CAP_BPF
	}
	for i := range data {
		mask := uint32(keep >> (32 * i))
		data[i].Effective &= mask
		data[i].Permitted &= mask
		data[i].Inheritable = 0
	}
	// Capabilities belong to threads; the Go runtime runs the call on each.
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&data[0])), 0)
	runtime.KeepAlive(&data)
	if errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("clear ambient capabilities: %w", errno)
	}
	return nil
}

// bpfByDescriptor reports whether this kernel lets the holder of a map descriptor use it without
// CAP_BPF (commit c8644cd0efe7, Linux 5.19).
func bpfByDescriptor() bool { return kernelAtLeast(5, 19) }
