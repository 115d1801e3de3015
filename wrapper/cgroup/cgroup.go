// Package cgroup makes a session's own cgroup (v2), so that membership is a fact of the kernel and leaving
// is an event. It imports the standard library and x/sys.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An Error says in one line why there is no cgroup, and what to do.
type Error struct {
	Why string
	Fix string
	Err error // the kernel's answer, if there was one
}

func (e *Error) Error() string {
	s := e.Why
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// A Cgroup is one directory of the unified hierarchy.
type Cgroup struct {
	dir   *os.File
	path  string
	id    uint64
	level int
}

// A Finder knows where to look. The zero value looks at this process.
type Finder struct {
	Mountinfo string // "" for /proc/self/mountinfo
	Own       string // "" for /proc/self/cgroup
}

// Create makes the cgroup rye/ID where this user may: below its own, when that is delegated to it, else at
// the top of the hierarchy. The folder rye stays: a session that has given up its capabilities can remove
// its own cgroup there, but not from the hierarchy's root, which nobody owns.
func Create(id string) (*Cgroup, error) { return Finder{}.Create(id) }

// Create makes a cgroup; see the function of that name.
func (f Finder) Create(id string) (*Cgroup, error) {
	mount, root, err := f.mount()
	if err != nil {
		return nil, err
	}
	own, err := f.own()
	if err != nil {
		return nil, err
	}
	var last error
	for _, parent := range parents(mount, root, own) {
		house := filepath.Join(parent, "rye")
		if err := os.Mkdir(house, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			last = err
			continue
		}
		sweep(house)
		path := filepath.Join(house, id)
		if err := os.Mkdir(path, 0o755); err != nil {
			last = err
			continue
		}
		c, err := open(path)
		if err != nil {
			os.Remove(path)
			last = err
			continue
		}
		c.level = level(root, mount, path)
		return c, nil
	}
	return nil, &Error{Why: fmt.Sprintf("no cgroup can be made below %s", mount), Err: last,
		Fix: "run under `systemd-run --user --scope -p Delegate=yes`, or as root"}
}

// sweep removes empty cgroups that earlier sessions could not: something outlived them. A young one may
// belong to a session that is just starting.
func sweep(house string) {
	entries, err := os.ReadDir(house)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && time.Since(info.ModTime()) > time.Minute {
			os.Remove(filepath.Join(house, e.Name())) // refused by the kernel while anything is in it
		}
	}
}

// parents are the places to try, best first. A session below the user's own cgroup stays in its accounting;
// the top is for root.
func parents(mount, root, own string) []string {
	list := []string{mount}
	if rel, ok := within(root, own); ok && rel != "." {
		list = append([]string{filepath.Join(mount, rel)}, list...)
	}
	return list
}

// within returns path relative to root, if it is in it.
func within(root, path string) (string, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}

// level is the depth of path below the real root of the hierarchy, as bpf_get_current_ancestor_cgroup_id
// counts it. root is what the mount shows of the hierarchy ("/" when it shows all). In a cgroup namespace
// the part above the namespace's root is hidden: its own root then counts as 0, and the programs, which see
// the real depth, would look at the wrong ancestor; rye's self test finds that.
func level(root, mount, path string) int {
	rel, err := filepath.Rel(mount, path)
	if err != nil {
		return 0
	}
	full := filepath.Join(root, rel)
	return len(strings.Split(strings.Trim(full, "/"), "/"))
}

func open(path string) (*Cgroup, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		dir.Close()
		return nil, err
	}
	return &Cgroup{dir: dir, path: path, id: st.Ino}, nil
}

// mount finds the cgroup2 mount and what part of the hierarchy it shows.
func (f Finder) mount() (point, root string, err error) {
	file := f.Mountinfo
	if file == "" {
		file = "/proc/self/mountinfo"
	}
	h, err := os.Open(file)
	if err != nil {
		return "", "", &Error{Why: "mounts cannot be read", Err: err}
	}
	defer h.Close()
	v1 := false
	for sc := bufio.NewScanner(h); sc.Scan(); {
		pre, post, ok := strings.Cut(sc.Text(), " - ")
		if !ok {
			continue
		}
		a, b := strings.Fields(pre), strings.Fields(post)
		if len(a) < 5 || len(b) < 1 {
			continue
		}
		switch b[0] {
		case "cgroup2":
			return unescape(a[4]), unescape(a[3]), nil
		case "cgroup":
			v1 = true
		}
	}
	if v1 {
		return "", "", &Error{Why: "only cgroup v1 is mounted", Fix: "mount the v2 hierarchy beside it (mount -t cgroup2 none /sys/fs/cgroup/unified) or boot with systemd.unified_cgroup_hierarchy=1"}
	}
	return "", "", &Error{Why: "no cgroup hierarchy is mounted", Fix: "mount -t cgroup2 none /sys/fs/cgroup"}
}

// unescape undoes the octal escapes of mountinfo (proc(5)).
func unescape(s string) string {
	for i := 0; i+3 < len(s); i++ {
		if s[i] == '\\' {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				s = s[:i] + string([]byte{byte(n)}) + s[i+4:]
			}
		}
	}
	return s
}

// own is this process's cgroup in the unified hierarchy.
func (f Finder) own() (string, error) {
	file := f.Own
	if file == "" {
		file = "/proc/self/cgroup"
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", &Error{Why: "own cgroup cannot be read", Err: err}
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path, nil
		}
	}
	return "/", nil
}

// Path is the cgroup's directory.
func (c *Cgroup) Path() string { return c.path }

// ID is the cgroup's id: its inode number, which is what programs in the kernel see.
func (c *Cgroup) ID() uint64 { return c.id }

// Level is its depth; the root of the hierarchy is 0.
func (c *Cgroup) Level() int { return c.level }

// FD is an open descriptor of the directory, for clone3 with CLONE_INTO_CGROUP.
func (c *Cgroup) FD() int { return int(c.dir.Fd()) }

// Procs lists the processes in the cgroup and below it.
func (c *Cgroup) Procs() ([]int, error) {
	var pids []int
	err := filepath.WalkDir(c.path, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil // removed while we look
		}
		if !d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return nil
		}
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 { // 0: a process of another pid namespace
				pids = append(pids, pid)
			}
		}
		return nil
	})
	slices.Sort(pids)
	return slices.Compact(pids), err
}

// Populated reports whether any process is in the cgroup or below it.
func (c *Cgroup) Populated() (bool, error) {
	b, err := os.ReadFile(filepath.Join(c.path, "cgroup.events"))
	if err != nil {
		return false, fmt.Errorf("read cgroup state: %w", err)
	}
	return strings.Contains(string(b), "populated 1"), nil
}

// Remove takes the cgroup and those below it away. The kernel keeps one busy for a moment after its last
// process is gone, so it is tried for a short while.
func (c *Cgroup) Remove() error {
	defer c.dir.Close()
	var err error
	for range 20 {
		if err = removeTree(c.path); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			break
		}
		if full, _ := c.Populated(); full {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("remove cgroup: %w", err)
}

func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(path)
}
