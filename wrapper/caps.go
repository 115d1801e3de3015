package wrapper

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropCapabilities gives up what a rye with file capabilities got again when it was executed as the monitor, which needs
// none. Root keeps what it has: its command is as powerful, and may change its user, after which only CAP_KILL lets a
// signal be passed on to it. The ambient set stays, and so the part of the permitted one it rests on: the command would
// have inherited it without rye.
func dropCapabilities() {
	if unix.Geteuid() == 0 {
		return
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return
	}
	for i := range data {
		ambient := uint32(0)
		for bit := range 32 {
			set, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, uintptr(32*i+bit), 0, 0)
			if err == nil && set == 1 {
				ambient |= 1 << bit
			}
		}
		data[i].Permitted &= ambient
		data[i].Effective &= ambient
	}
	// Capabilities belong to threads. With cgo the call is refused, and the undumpable monitor keeps them.
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&data[0])), 0)
	runtime.KeepAlive(&data)
}
