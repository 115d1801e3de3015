package wrapper

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spawn starts the command, in the foreground of the pseudo-terminal or not, and returns its pid or the stage
// that failed.
func (m *monitor) spawn(foreground bool) (pid, stage int, err error) {
	defer settleRuntime()()
	path, argv := string(m.req.Path), toStrings(m.req.Argv)
	pid, err = m.forkExec(path, argv, foreground)
	if err == unix.ENOEXEC && textScript(path) {
		// A script without "#!": execvp(3) and every shell run it with sh.
		pid, err = m.forkExec("/bin/sh", append([]string{"/bin/sh", path}, argv[1:]...), foreground)
	}
	if err == nil {
		return pid, 0, nil
	}
	return 0, m.failedStage(path, err), err
}

// failedStage tells the steps apart that all end in one errno.
func (m *monitor) failedStage(path string, err error) int {
	if m.req.Dir != nil {
		var st unix.Stat_t
		if unix.Stat(string(m.req.Dir), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR ||
			unix.Access(string(m.req.Dir), unix.X_OK) != nil {
			return stageDir
		}
	}
	if m.req.Cgroup && executable(path, string(m.req.Dir)) == nil {
		switch err {
		// What clone3 adds for CLONE_INTO_CGROUP, clone(2); ENOSYS and E2BIG from kernels before 5.7.
		case unix.EACCES, unix.EBUSY, unix.EOPNOTSUPP, unix.ENODEV, unix.EBADF, unix.ENOSYS, unix.EINVAL, unix.EAGAIN:
			return stageCgroup
		}
	}
	return stageExec
}

// forkExec starts the command in a new process group, born in the session's cgroup.
//
// A process that puts its own group into the foreground gets SIGTTOU for it, as it is in the background at
// that moment, and stops before its exec. That is used as a gate: the monitor, which may do so, changes the
// foreground group, and continues the child. So the command can never see itself in the background. Ignoring or
// blocking SIGTTOU around the fork instead would be inherited by the command.
func (m *monitor) forkExec(path string, argv []string, foreground bool) (int, error) {
	attr := &syscall.ProcAttr{
		Dir:   string(m.req.Dir),
		Env:   toStrings(m.req.Env),
		Files: []uintptr{uintptr(m.std[0]), uintptr(m.std[1]), uintptr(m.std[2])},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	if m.req.Cgroup {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, m.cg
	}
	if !foreground || m.slave < 0 {
		return syscall.ForkExec(path, argv, attr)
	}
	attr.Sys.Foreground, attr.Sys.Ctty = true, m.slave
	type result struct {
		pid int
		err error
	}
	done := make(chan result, 1)
	go func() {
		pid, err := syscall.ForkExec(path, argv, attr)
		done <- result{pid, err}
	}()
	for {
		select {
		case r := <-done:
			return r.pid, r.err
		case <-time.After(100 * time.Microsecond):
		}
		if pid := stoppedChild(); pid != 0 {
			m.setForeground(pid)
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
}

// stoppedChild takes the stop of a child and returns its pid, 0 if none has stopped. Not wait4, which would take
// an exit as well.
func stoppedChild() int {
	var info unix.Siginfo
	if unix.Waitid(unix.P_ALL, 0, &info, unix.WSTOPPED|unix.WNOHANG, nil) != nil || info.Signo == 0 {
		return 0
	}
	// x/sys leaves the union of siginfo_t unnamed; si_pid is its first member, aligned to 8 on 64-bit machines.
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 16)))
}

func toStrings(b [][]byte) []string {
	s := make([]string, len(b))
	for i := range b {
		s[i] = string(b[i])
	}
	return s
}

func toBytes(s []string) [][]byte {
	b := make([][]byte, len(s))
	for i := range s {
		b[i] = []byte(s[i])
	}
	return b
}

// processState is the state letter of /proc/PID/stat, 0 if the process is gone.
func processState(pid int) byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The second field is the name in parentheses, which may hold any byte.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+2 >= len(b) {
		return 0
	}
	return b[i+2]
}
