package cgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Mount is a cgroup2 file system as the calling process sees it.
type Mount struct {
	Point    string // where it is mounted
	Root     string // the cgroup that is the mount's root: "/" unless a part is mounted
	ReadOnly bool
}

// A Host is what decides whether and where a session's cgroup can be made. [Detect] reads it from /proc; the fields can
// be set to anything else.
type Host struct {
	Mounts []Mount
	V1     bool   // cgroup v1 hierarchies are mounted
	Own    string // this process's cgroup v2 path, as in /proc/self/cgroup; "" unknown

	// InitialNamespace says that Own and Root count from the kernel's own root, not from that of a cgroup
	// namespace.
	InitialNamespace bool
}

// initialCgroupNS is PROC_CGROUP_INIT_INO, the inode number of the first cgroup namespace.
const initialCgroupNS = 0xEFFFFFFB

// Detect reads what the kernel says about cgroups of this process.
func Detect() (Host, error) {
	var h Host
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return h, fmt.Errorf("read mounts: %w", err)
	}
	if h.Mounts, h.V1, err = ParseMountinfo(bytes.NewReader(b)); err != nil {
		return h, err
	}
	if b, err = os.ReadFile("/proc/self/cgroup"); err != nil {
		return h, fmt.Errorf("read own cgroup: %w", err)
	}
	h.Own = parseOwn(b)
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/cgroup", &st) == nil {
		h.InitialNamespace = st.Ino == initialCgroupNS
	}
	return h, nil
}

// maxMountLine bounds a line of mountinfo: three paths of at most 4096 bytes, each byte escaped to four, and options.
const maxMountLine = 256 << 10

// ParseMountinfo returns the cgroup2 mounts of a /proc/PID/mountinfo and whether there are cgroup v1 mounts. Of several
// mounts on one point the last one counts, which hides the others. Mounts of whole hierarchies come first.
func ParseMountinfo(r io.Reader) (mounts []Mount, v1 bool, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxMountLine)
	hidden := make(map[string]int) // mount point to index in all
	var all []Mount
	for s.Scan() {
		m, kind, ok := parseMount(s.Text())
		if !ok {
			continue
		}
		if i, again := hidden[m.Point]; again {
			all[i].Point = "" // whatever is mounted on top
			delete(hidden, m.Point)
		}
		switch kind {
		case "cgroup":
			v1 = true
		case "cgroup2":
			hidden[m.Point] = len(all)
			all = append(all, m)
		}
	}
	if err := s.Err(); err != nil {
		return nil, false, fmt.Errorf("read mounts: %w", err)
	}
	for _, whole := range []bool{true, false} {
		for _, m := range all {
			if m.Point != "" && (m.Root == "/") == whole {
				mounts = append(mounts, m)
			}
		}
	}
	return mounts, v1, nil
}

// parseMount reads one line, proc(5):
//
//	36 35 98:0 /root /point rw,noatime master:1 - type source rw,errors=continue
func parseMount(line string) (m Mount, kind string, ok bool) {
	left, right, ok := strings.Cut(line, " - ")
	if !ok {
		return m, "", false
	}
	f := strings.Fields(left)
	g := strings.Fields(right)
	if len(f) < 6 || len(g) < 1 {
		return m, "", false
	}
	m = Mount{Point: unescape(f[4]), Root: unescape(f[3])}
	options := f[5]
	if len(g) >= 3 {
		options += "," + g[2] // of the file system itself
	}
	for o := range strings.SplitSeq(options, ",") {
		if o == "ro" {
			m.ReadOnly = true
		}
	}
	return m, g[0], path.IsAbs(m.Point) && path.IsAbs(m.Root)
}

// unescape undoes the octal escapes of mountinfo: space, tab, newline, backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseOwn returns the cgroup v2 path in a /proc/PID/cgroup, "" if there is none.
func parseOwn(b []byte) string {
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok && path.IsAbs(p) {
			return p
		}
	}
	return ""
}
