package cgroup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envHelper makes the test binary a process that makes a cgroup in its own circumstances and says what came of it.
const envHelper = "CGROUP_TEST_HELPER"

type helperResult struct {
	Path   string
	Level  int
	Exact  bool
	Reason Reason
	Err    string
	Born   bool // a child could be born in it
}

func TestMain(m *testing.M) {
	if id := os.Getenv(envHelper); id != "" {
		var r helperResult
		c, err := Create(id)
		if err != nil {
			r.Err = err.Error()
			var u *Unavailable
			if errors.As(err, &u) {
				r.Reason = u.Reason
			}
		} else {
			r.Path, r.Level, r.Exact = c.Path(), c.Level(), c.LevelKnown()
			cmd := exec.Command("true")
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: c.FD()}
			if err := cmd.Run(); err != nil {
				r.Err = err.Error()
			} else {
				r.Born = true
			}
			if err := c.Remove(); err != nil {
				r.Err = err.Error()
			}
		}
		json.NewEncoder(os.Stdout).Encode(r)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// privileged returns a directory of the real hierarchy in which a test may do as it likes.
func privileged(t *testing.T) (Host, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Mounts) == 0 || h.Mounts[0].ReadOnly {
		t.Skip("needs a writable cgroup2 mount")
	}
	dir := filepath.Join(h.Mounts[0].Point, fmt.Sprintf("rye-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (&Cgroup{path: dir}).removeAll(); err != nil {
			t.Errorf("clean up %s: %v", dir, err)
		}
	})
	return h, dir
}

// helper runs the helper as uid, born in the cgroup dir.
func helper(t *testing.T, dir string, uid uint32, change func(*exec.Cmd)) helperResult {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envHelper+"=helped")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid, NoSetGroups: true}
	}
	if change != nil {
		change(cmd)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var r helperResult
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("output %q: %v", out, err)
	}
	return r
}

const nobody = 65534

func chown(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := os.Chown(n, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// TestPrivLife is a session's cgroup from its making to its end.
func TestPrivLife(t *testing.T) {
	h, _ := privileged(t)
	c, err := h.Create(fmt.Sprintf("test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(c.Path(), &st); err != nil || c.ID() != st.Ino || c.ID() == 0 {
		t.Errorf("id %d, inode %d, %v", c.ID(), st.Ino, err)
	}
	if flags, err := unix.FcntlInt(uintptr(c.FD()), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the descriptor is not close-on-exec (%v)", err)
	}
	if again, err := h.Create(filepath.Base(c.Path())); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same id gave %v, %v", again, err)
	}
	if full, err := c.Populated(); err != nil || full {
		t.Errorf("populated %v, %v before anything ran", full, err)
	}

	// A process in it, and one in a cgroup further down that it makes itself.
	cmd := exec.Command("sh", "-c", `mkdir "$0/deep" "$0/deep/er" "$0/empty"; sleep 60 & echo $! > "$0/deep/er/cgroup.procs"; echo $!; exec sleep 60`, c.Path())
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: c.FD()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var deep int
	if _, err := fmt.Fscan(out, &deep); err != nil {
		t.Fatal(err)
	}
	want := []int{cmd.Process.Pid, deep}
	slices.Sort(want)
	if pids, err := c.Procs(); err != nil || !slices.Equal(pids, want) {
		t.Errorf("processes %v, %v; want %v", pids, err, want)
	}
	if full, err := c.Populated(); err != nil || !full {
		t.Errorf("populated %v, %v", full, err)
	}
	start := time.Now()
	if err := c.Remove(); !errors.Is(err, ErrPopulated) {
		t.Errorf("Remove with processes: %v", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("Remove took %v", d)
	}

	cmd.Process.Kill()
	cmd.Wait()
	if full, err := c.Populated(); err != nil || !full {
		t.Errorf("populated %v, %v with a process further down", full, err)
	}
	// Remove is called while the last process is still on its way out.
	if err := unix.Kill(deep, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if pids, err := c.Procs(); err != nil || len(pids) != 0 {
		t.Errorf("after Remove: processes %v, %v", pids, err)
	}
	if full, err := c.Populated(); err != nil || full {
		t.Errorf("after Remove: populated %v, %v", full, err)
	}
}

// TestPrivLevel compares with what the kernel shows of the depth, from the path.
func TestPrivLevel(t *testing.T) {
	h, dir := privileged(t)
	if !h.InitialNamespace {
		t.Skip("needs the initial cgroup namespace")
	}
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	r := helper(t, deep, 0, nil)
	if want := filepath.Join(deep, "rye", "helped"); r.Path != want || r.Level != 5 || !r.Exact || !r.Born {
		t.Errorf("%+v, want %s at level 5", r, want)
	}
}

// TestPrivNamespace: in a cgroup namespace the depth of the namespace's root is not to be seen.
func TestPrivNamespace(t *testing.T) {
	_, dir := privileged(t)
	mnt := t.TempDir()
	// A fresh mount in the new namespace shows the namespace's root as its own.
	r := helper(t, dir, 0, func(c *exec.Cmd) {
		c.Path = "/bin/sh"
		c.Args = []string{"sh", "-c", `umount -a -t cgroup2; mount -t cgroup2 none "$0" && exec "$1"`, mnt, testBinary(t)}
		c.SysProcAttr.Cloneflags = unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS
		c.SysProcAttr.Unshareflags = unix.CLONE_NEWNS // makes mounts private
	})
	if !strings.HasPrefix(r.Path, mnt) || r.Exact || r.Level != 2 || !r.Born {
		t.Errorf("%+v, want one in %s at level 2, not exact", r, mnt)
	}
}

func testBinary(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPrivDelegated: a user whose cgroup is delegated gets one below it, another one gets an error that says why.
func TestPrivDelegated(t *testing.T) {
	_, dir := privileged(t)
	r := helper(t, dir, nobody, nil)
	if r.Reason != NotWritable || !strings.Contains(r.Err, "Delegate=yes") || strings.Contains(r.Err, "\n") {
		t.Errorf("not delegated: %+v", r)
	}
	// A directory alone is not enough: processes could not be moved.
	chown(t, dir)
	if r = helper(t, dir, nobody, nil); r.Reason != NotWritable || !strings.Contains(r.Err, "cgroup.procs") {
		t.Errorf("half delegated: %+v", r)
	}
	chown(t, filepath.Join(dir, "cgroup.procs"), filepath.Join(dir, "cgroup.subtree_control"))
	r = helper(t, dir, nobody, nil)
	if r.Err != "" || !r.Born || r.Path != filepath.Join(dir, "rye", "helped") {
		t.Errorf("delegated: %+v", r)
	}
}

// TestPrivRefused: what the kernel refuses, and what is said about it.
func TestPrivRefused(t *testing.T) {
	t.Run("limit", func(t *testing.T) {
		h, dir := privileged(t)
		write(t, filepath.Join(dir, "cgroup.max.descendants"), "0")
		part := Host{Mounts: []Mount{{Point: dir, Root: "/"}}, InitialNamespace: h.InitialNamespace}
		_, err := part.Create("x")
		var u *Unavailable
		if !errors.As(err, &u) || u.Reason != Limited || !strings.Contains(err.Error(), "cgroup.max.descendants") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("threaded", func(t *testing.T) {
		h, dir := privileged(t)
		write(t, filepath.Join(dir, "cgroup.type"), "threaded")
		part := Host{Mounts: []Mount{{Point: dir, Root: "/"}}, InitialNamespace: h.InitialNamespace}
		_, err := part.Create("x")
		var u *Unavailable
		if !errors.As(err, &u) || u.Reason != Threaded {
			t.Errorf("error %v", err)
		}
		if entries, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs")); len(entries) != 0 {
			t.Errorf("left behind: %v", entries)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		_, dir := privileged(t)
		mnt := t.TempDir()
		r := helper(t, dir, 0, func(c *exec.Cmd) {
			c.Path = "/bin/sh"
			c.Args = []string{"sh", "-c", `umount -a -t cgroup2; mount -t cgroup2 none "$0" && mount -o remount,bind,ro "$0" && exec "$1"`, mnt, testBinary(t)}
			c.SysProcAttr.Unshareflags = unix.CLONE_NEWNS
		})
		if r.Reason != ReadOnly || !strings.Contains(r.Err, "container") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("falls back to the root", func(t *testing.T) {
		h, dir := privileged(t)
		write(t, filepath.Join(dir, "cgroup.max.descendants"), "0")
		r := helper(t, dir, 0, nil)
		if want := filepath.Join(h.Mounts[0].Point, "rye", "helped"); r.Path != want || !r.Born {
			t.Errorf("%+v, want %s", r, want)
		}
	})
}

// TestPrivSweep: a session's cgroup that something outlived is removed later, a young one and a used one are not.
func TestPrivSweep(t *testing.T) {
	_, dir := privileged(t)
	part := Host{Mounts: []Mount{{Point: dir, Root: "/"}}}
	old := filepath.Join(dir, house, "old")
	used := filepath.Join(dir, house, "used")
	young := filepath.Join(dir, house, "young")
	for _, d := range []string{filepath.Dir(old), old, used, young} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-time.Hour)
	for _, d := range []string{old, used} {
		if err := os.Chtimes(d, past, past); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(used)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(used, past, past); err != nil {
		t.Fatal(err)
	}
	c, err := part.Create("new")
	if err != nil {
		t.Fatal(err)
	}
	for d, want := range map[string]bool{old: false, used: true, young: true, c.Path(): true} {
		if _, err := os.Stat(d); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", d, err == nil, want)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	time.Sleep(10 * time.Millisecond)
}

// TestDetect reads this machine; whatever it has must be consistent.
func TestDetect(t *testing.T) {
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range h.Mounts {
		var fs unix.Statfs_t
		if err := unix.Statfs(m.Point, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
			t.Errorf("%s is not a cgroup2 mount: %x, %v", m.Point, fs.Type, err)
		}
	}
	if len(h.Mounts) > 0 && h.Own == "" {
		t.Error("cgroup2 is mounted and the own cgroup is not known")
	}
}
