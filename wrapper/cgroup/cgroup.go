// Package cgroup makes the cgroup v2 in which a session lives, so that membership is a fact of the kernel and leaving
// is an event.
//
// The cgroup has no controllers: it limits nothing and needs none to be enabled. It is made below this process's own
// cgroup where that is possible (a delegated one, systemd's Delegate=yes), else at the top of the mounted hierarchy, in
// both cases in a cgroup "rye" that stays: a session that has given up its capabilities can remove its own cgroup
// there, but not from the hierarchy's root, which is writable for nobody.
//
// A cgroup that holds processes may have children as long as it gives them no controllers, and one that does
// (cgroup.subtree_control is not empty) holds no processes: the "no internal processes" rule of cgroups(7) never stands
// in the way of a child without controllers.
//
// Package cgroup imports the standard library and golang.org/x/sys.
package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Cgroup is one session's cgroup.
type Cgroup struct {
	path  string
	dir   *os.File
	id    uint64
	level int
	exact bool // level is
}

// house is the cgroup that holds those of the sessions.
const house = "rye"

// Create makes the cgroup of a session where this process may. The error is an [*Unavailable] when this host or user
// cannot have one.
func Create(id string) (*Cgroup, error) {
	h, err := Detect()
	if err != nil {
		return nil, err
	}
	return h.Create(id)
}

// Create makes a cgroup on a host described otherwise; see the function of that name.
func (h Host) Create(id string) (*Cgroup, error) {
	if id == "" || id == "." || id == ".." || strings.ContainsAny(id, "/\n\x00") || len(id) > unix.NAME_MAX {
		return nil, fmt.Errorf("create cgroup: bad session id %q", id)
	}
	if len(h.Mounts) == 0 {
		if h.V1 {
			return nil, &Unavailable{Reason: V1Only}
		}
		return nil, &Unavailable{Reason: NotMounted}
	}
	var first error
	for _, p := range h.places() {
		c, err := h.createIn(p, id)
		if err == nil {
			return c, nil
		}
		if errors.Is(err, fs.ErrExist) { // a session of this name is running, or did not clean up
			return nil, err
		}
		if first == nil { // the best place gives the best reason
			first = err
		}
	}
	return nil, first
}

// place is a cgroup directory below which the session's could be made.
type place struct {
	mount Mount
	rel   string // below the mount
	own   string // directory of this process's cgroup on the same mount, "" if it is not there
}

func (p place) dir() string { return filepath.Join(p.mount.Point, p.rel) }

// places lists where to try, best first: below the own cgroup, then the roots of the mounts.
func (h Host) places() []place {
	var own, roots []place
	for _, m := range h.Mounts {
		rel, ok := below(m.Root, h.Own)
		ownDir := ""
		if ok {
			ownDir = filepath.Join(m.Point, rel)
			if rel != "/" {
				own = append(own, place{m, rel, ownDir})
			}
		}
		roots = append(roots, place{m, "/", ownDir})
	}
	return append(own, roots...)
}

// below returns the path of a cgroup relative to the root of a mount. A process outside its cgroup namespace's root has a
// path with "..", which leads nowhere on the mount.
func below(root, p string) (string, bool) {
	if p == "" || slices.Contains(strings.Split(p, "/"), "..") || slices.Contains(strings.Split(root, "/"), "..") {
		return "", false
	}
	p, root = path.Clean(p), path.Clean(root)
	if root == "/" {
		return p, true
	}
	rel, ok := strings.CutPrefix(p, root)
	if !ok || rel != "" && rel[0] != '/' {
		return "", false
	}
	return path.Clean("/" + rel), true
}

func (h Host) createIn(p place, id string) (*Cgroup, error) {
	parent := filepath.Join(p.dir(), house)
	made := true
	if err := os.Mkdir(parent, 0o755); errors.Is(err, fs.ErrExist) {
		made = false
	} else if err != nil {
		return nil, &Unavailable{Reason: reasonOf(err), Where: p.dir(), Err: errnoOf(err)}
	}
	sweep(parent)
	name := filepath.Join(parent, id)
	err := os.Mkdir(name, 0o755)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("create cgroup: %w", err)
	case err != nil:
		err = &Unavailable{Reason: reasonOf(err), Where: parent, Err: errnoOf(err)}
	default:
		var c *Cgroup
		if c, err = h.open(p, name); err == nil {
			return c, nil
		}
		_ = unix.Rmdir(name)
	}
	if made { // of no use to anyone
		_ = unix.Rmdir(parent)
	}
	return nil, err
}

// sweep removes what earlier sessions could not remove because something outlived them. A young cgroup may belong to a
// session that is just starting; one with processes in it the kernel keeps.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && time.Since(info.ModTime()) > time.Minute {
			_ = unix.Rmdir(filepath.Join(parent, e.Name()))
		}
	}
}

// open takes hold of a cgroup just made, and makes sure that a process can be born in it.
func (h Host) open(p place, name string) (*Cgroup, error) {
	b, err := os.ReadFile(filepath.Join(name, "cgroup.type"))
	if err != nil {
		return nil, fmt.Errorf("create cgroup: read type: %w", err)
	}
	if kind := string(bytes.TrimSpace(b)); kind != "domain" {
		return nil, &Unavailable{Reason: Threaded, Where: p.dir(), Err: fmt.Errorf("its type is %q", kind)}
	}
	// A move needs write access to cgroup.procs of the target and of the common ancestor with the source,
	// cgroups(7); the ancestor is the place itself.
	for _, dir := range []string{name, p.dir()} {
		if p.own == "" {
			break // the source is not on this mount's part of the tree: only the attempt can tell
		}
		procs := filepath.Join(dir, "cgroup.procs")
		if err := unix.Faccessat(unix.AT_FDCWD, procs, unix.W_OK, unix.AT_EACCESS); err != nil {
			return nil, &Unavailable{Reason: reasonOf(err), Where: procs, Err: err}
		}
	}
	dir, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		dir.Close()
		return nil, fmt.Errorf("read cgroup id: %w", err)
	}
	c := &Cgroup{path: name, dir: dir, id: st.Ino}
	c.level, c.exact = h.level(p.mount, name)
	return c, nil
}

// level counts the depth below the root that the kernel knows. A mount whose root has inode number 1 shows the whole
// hierarchy, as only its root has that. Otherwise the paths tell it, if they count from the kernel's root and not from
// that of a cgroup namespace.
func (h Host) level(m Mount, name string) (level int, exact bool) {
	n := depth(strings.TrimPrefix(name, m.Point))
	var st unix.Stat_t
	if unix.Stat(m.Point, &st) == nil && st.Ino == 1 {
		return n, true
	}
	return depth(m.Root) + n, h.InitialNamespace
}

// depth is the number of names in a path.
func depth(p string) int {
	n := 0
	for s := range strings.SplitSeq(p, "/") {
		if s != "" && s != "." && s != ".." {
			n++
		}
	}
	return n
}

// Path is the cgroup's directory.
func (c *Cgroup) Path() string { return c.path }

// ID is the cgroup's id: the inode number of its directory, what bpf_get_current_cgroup_id gives.
func (c *Cgroup) ID() uint64 { return c.id }

// Level is the cgroup's depth below the root of the hierarchy, which has level 0, as
// bpf_get_current_ancestor_cgroup_id counts it. See LevelKnown.
func (c *Cgroup) Level() int { return c.level }

// LevelKnown is false inside a cgroup namespace whose own depth cannot be seen from within: the true level is then
// Level plus that depth, and only a program in the kernel can find it, by comparing ancestors with ID.
func (c *Cgroup) LevelKnown() bool { return c.exact }

// FD is a descriptor of the directory, for clone3 with CLONE_INTO_CGROUP. It is close-on-exec and valid until Close.
func (c *Cgroup) FD() int { return int(c.dir.Fd()) }

// Close closes the descriptor. The cgroup stays.
func (c *Cgroup) Close() error { return c.dir.Close() }

// Procs returns the process ids in the cgroup and those below it, sorted. Zombies are not among them. A process of
// another pid namespace is 0.
func (c *Cgroup) Procs() ([]int, error) {
	var pids []int
	err := c.walk(func(dir string) error {
		got, err := readProcs(filepath.Join(dir, "cgroup.procs"))
		pids = append(pids, got...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read processes of cgroup: %w", err)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

func readProcs(name string) ([]int, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, gone(err)
	}
	defer f.Close()
	var pids []int
	for s := bufio.NewScanner(f); ; {
		if !s.Scan() {
			if errors.Is(s.Err(), unix.EOPNOTSUPP) { // threaded: its processes are listed by the cgroup above
				return pids, nil
			}
			return pids, gone(s.Err())
		}
		pid, err := strconv.Atoi(s.Text())
		if err != nil {
			return pids, fmt.Errorf("parse %s: %w", name, err)
		}
		pids = append(pids, pid)
	}
}

// gone takes the error of a cgroup that was removed meanwhile for none: there is nothing in it.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// walk visits the cgroup and all below it, parents first.
func (c *Cgroup) walk(visit func(dir string) error) error {
	dirs := []string{c.path}
	for len(dirs) > 0 {
		dir := dirs[0]
		dirs = dirs[1:]
		if err := visit(dir); err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		if gone(err) != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(dir, e.Name()))
			}
		}
	}
	return nil
}

// Populated reports whether a process is in the cgroup or below it. Zombies do not count.
func (c *Cgroup) Populated() (bool, error) {
	b, err := os.ReadFile(filepath.Join(c.path, "cgroup.events"))
	if err != nil {
		if gone(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("read cgroup events: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "populated "); ok {
			return strings.TrimSpace(v) != "0", nil
		}
	}
	return false, errors.New("read cgroup events: no populated line")
}

// ErrPopulated says that processes are still in the cgroup.
var ErrPopulated = errors.New("processes are still in it")

// removePatience is how long Remove retries. The last process may be on its way out: it leaves the cgroup a moment
// after its parent has seen it end.
const removePatience = 500 * time.Millisecond

// Remove removes the cgroup and those below it, and closes the descriptor. While processes are in it, it fails with
// [ErrPopulated] and leaves the cgroup as it is, except for empty ones below it.
func (c *Cgroup) Remove() error {
	for end := time.Now().Add(removePatience); ; time.Sleep(5 * time.Millisecond) {
		err := c.removeAll()
		if err == nil {
			_ = c.dir.Close()
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			if errors.Is(err, unix.EBUSY) {
				err = ErrPopulated
			}
			return fmt.Errorf("remove cgroup %s: %w", c.path, err)
		}
	}
}

// removeAll removes from the leaves up and returns the first failure, after trying everything.
func (c *Cgroup) removeAll() error {
	var dirs []string
	if err := c.walk(func(dir string) error { dirs = append(dirs, dir); return nil }); err != nil {
		return err
	}
	var first error
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Rmdir(dir); gone(err) != nil && first == nil {
			first = err
		}
	}
	return first
}

// errnoOf leaves the path out of an error, where it is said already.
func errnoOf(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
