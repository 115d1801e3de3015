package vm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// writeInitramfs writes a cpio archive (newc, see the kernel's Documentation/driver-api/early-userspace/
// buffer-format.rst), uncompressed: unpacking costs more in a guest without acceleration than reading.
func writeInitramfs(file string, m Machine) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := &cpio{w: bufio.NewWriterSize(f, 1<<20), dirs: map[string]bool{}}
	files := slices.Clone(m.Files)
	if !slices.ContainsFunc(files, func(x File) bool { return x.Path == "/bin/busybox" }) {
		box, err := busybox(m)
		if err != nil {
			return err
		}
		files = append(files, File{Path: "/bin/busybox", From: box})
	}
	files = append(files, File{Path: "/init", Data: []byte(m.init())})
	w.device("/dev/console", 5, 1)
	for _, x := range files {
		if err := w.file(x); err != nil {
			return fmt.Errorf("pack %s: %w", x.Path, err)
		}
	}
	w.entry("TRAILER!!!", 0, 0, 0, nil, 0)
	return errors.Join(w.err, w.w.Flush(), f.Close())
}

// busybox is the guest's, or a static one of the host's architecture.
func busybox(m Machine) (string, error) {
	if m.Busybox != "" {
		return m.Busybox, nil
	}
	for _, p := range []string{"/bin/busybox", "/usr/bin/busybox"} {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	if p, err := exec.LookPath("busybox"); err == nil {
		return p, nil
	}
	return "", errors.New("no static busybox here (install busybox-static)")
}

// init is the guest's first process.
func (m Machine) init() string {
	result := "/dev/ttyS1"
	if m.Arch == "arm64" {
		result = "/dev/ttyS0"
	}
	var b strings.Builder
	b.WriteString(`#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /etc /root /usr/bin /usr/sbin /sbin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /sys/fs/cgroup
mount -t devpts devpts /dev/pts -o ptmxmode=666
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t securityfs security /sys/kernel/security 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
ln -sf /proc/self/fd /dev/fd
[ -e /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/sh' > /etc/passwd
ip link set lo up 2>/dev/null || ifconfig lo up
hostname rye-vm
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=linux
`)
	for _, e := range m.Env {
		fmt.Fprintf(&b, "export %s\n", quote(e))
	}
	fmt.Fprintf(&b, "stty raw -echo < %s 2>/dev/null\nexec 3> %s\necho %s >&3\ncd /root\n", result, result, readyMark)
	for i, a := range m.Command {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(a))
	}
	fmt.Fprintf(&b, " < /dev/null >&3 2>&3\nstatus=$?\nprintf '\\n%s%%d\\n' $status >&3\nsync\npoweroff -f\n", exitMark)
	return b.String()
}

func quote(s string) string {
	if name, value, ok := strings.Cut(s, "="); ok && name != "" && !strings.ContainsAny(name, " '/\"$") {
		return name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

type cpio struct {
	w    *bufio.Writer
	n    int64
	ino  int
	dirs map[string]bool
	err  error
}

const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeChar = 0o020000
)

func (c *cpio) write(b []byte) {
	if c.err == nil {
		var n int
		n, c.err = c.w.Write(b)
		c.n += int64(n)
	}
}

func (c *cpio) pad() {
	if r := c.n % 4; r != 0 {
		c.write(make([]byte, 4-r))
	}
}

func (c *cpio) entry(name string, mode, major, minor int, body io.Reader, size int64) {
	c.ino++
	c.write(fmt.Appendf(nil, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", c.ino, mode, 0, 0, 1, 0, size, 0, 0, major, minor, len(name)+1, 0))
	c.write(append([]byte(name), 0))
	c.pad()
	if body != nil && c.err == nil {
		var n int64
		n, c.err = io.CopyN(c.w, body, size)
		c.n += n
		c.pad()
	}
}

func (c *cpio) parents(name string) {
	dir := path.Dir(name)
	if dir == "." || dir == "/" || c.dirs[dir] {
		return
	}
	c.parents(dir)
	c.dirs[dir] = true
	c.entry(strings.TrimPrefix(dir, "/"), typeDir|0o755, 0, 0, nil, 0)
}

func (c *cpio) device(name string, major, minor int) {
	c.parents(name)
	c.entry(strings.TrimPrefix(name, "/"), typeChar|0o600, major, minor, nil, 0)
}

func (c *cpio) file(x File) error {
	mode := int(x.Mode.Perm())
	if mode == 0 {
		mode = 0o755
	}
	name := path.Clean("/" + x.Path)
	c.parents(name)
	name = strings.TrimPrefix(name, "/")
	if x.From == "" {
		c.entry(name, typeFile|mode, 0, 0, strings.NewReader(string(x.Data)), int64(len(x.Data)))
		return c.err
	}
	f, err := os.Open(x.From)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c.entry(name, typeFile|mode, 0, 0, f, info.Size())
	return c.err
}
