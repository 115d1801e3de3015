package wrapper

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawn starts the command, in the foreground of the pseudo-terminal or not, and returns its pid or the stage
// that failed.
func (m *monitor) spawn(foreground bool) (pid, stage int, err error) {
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

// forkExec starts the command in a new process group, born in the session's cgroup. The child itself makes its group
// the foreground one before its exec, so the command can never see itself in the background; package syscall has
// signals blocked in the child until then, without which this would stop it with SIGTTOU.
func (m *monitor) forkExec(path string, argv []string, foreground bool) (int, error) {
	sys := &syscall.SysProcAttr{Setpgid: true}
	if foreground && m.slave >= 0 {
		sys.Foreground, sys.Ctty = true, m.slave
	}
	if m.req.Cgroup {
		sys.UseCgroupFD, sys.CgroupFD = true, m.cg
	}
	return syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir:   string(m.req.Dir),
		Env:   toStrings(m.req.Env),
		Files: []uintptr{uintptr(m.std[0]), uintptr(m.std[1]), uintptr(m.std[2])},
		Sys:   sys,
	})
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
