package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMount(t *testing.T) {
	for text, want := range map[string]struct{ point, root, why string }{
		"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n":                                                                 {point: "/sys/fs/cgroup", root: "/"},
		"30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n": {point: "/sys/fs/cgroup/unified", root: "/"},
		"30 23 0:26 /user.slice/a\\040b /mnt/c\\040d rw shared:1 - cgroup2 none rw\n":                                           {point: "/mnt/c d", root: "/user.slice/a b"},
		"30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n":                                                           {why: "only cgroup v1"},
		"30 23 0:26 / / rw - ext4 /dev/vda rw\ngarbage\n":                                                                       {why: "no cgroup hierarchy"},
	} {
		point, root, err := Finder{Mountinfo: write(t, text)}.mount()
		if want.why != "" {
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), want.why) || e.Fix == "" {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err != nil || point != want.point || root != want.root {
			t.Errorf("%q: %q %q %v", text, point, root, err)
		}
	}
}

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		root, mount, path string
		want              int
	}{
		{"/", "/sys/fs/cgroup", "/sys/fs/cgroup/rye-1", 1},
		{"/", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/x.scope/rye-1", 3},
		{"/a/b", "/m", "/m/rye-1", 3},
	} {
		if got := level(c.root, c.mount, c.path); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestPrivCreate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs a writable cgroup hierarchy")
	}
	c, err := Create("unit-test")
	if err != nil {
		t.Fatal(err)
	}
	nested := filepath.Join(c.Path(), "a", "b")
	if err := os.MkdirAll(nested, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: c.FD()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids, err := c.Procs()
	if err != nil || len(pids) != 1 || pids[0] != cmd.Process.Pid {
		t.Errorf("procs %v, %v; want %d", pids, err, cmd.Process.Pid)
	}
	if full, err := c.Populated(); err != nil || !full {
		t.Errorf("populated %v, %v", full, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Path()); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}
