package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/event"
)

// newHook is what an assistant runs as its hook in a session with --hooks. It must never disturb: it prints
// nothing, and ends well whatever happens.
func newHook() *cobra.Command {
	return &cobra.Command{
		Use:    "hook AGENT [SOCKET]",
		Short:  "Tell a running rye wrap --hooks what an assistant says to its hooks",
		Hidden: true,
		Args:   cobra.RangeArgs(1, 2),
		Run: func(_ *cobra.Command, args []string) {
			b, cut, err := readBounded(os.Stdin, maxHook)
			if err != nil || cut {
				return
			}
			socket := os.Getenv(hookSocket)
			if len(args) > 1 {
				socket = args[1]
			}
			c, err := net.DialTimeout("unix", socket, time.Second)
			if err != nil {
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(hookPause))
			if _, err := c.Write(b); err != nil {
				return
			}
			if u, ok := c.(*net.UnixConn); ok {
				u.CloseWrite()
			}
			io.Copy(io.Discard, io.LimitReader(c, 64)) // until it is written down
		},
	}
}

// readBounded reads all of r up to a limit; cut says that there was more.
func readBounded(r io.Reader, limit int64) (b []byte, cut bool, err error) {
	b, err = io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(b)) > limit {
		return b[:limit], true, err
	}
	return b, false, err
}

// inCgroup reports whether a process is in a cgroup or below it. path is where the cgroup is mounted; the kernel
// names it without the mount.
func inCgroup(pid int, path string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ; ok && len(at) > 1; at = filepath.Dir(at) {
			if strings.HasSuffix(path, at) {
				return true
			}
		}
	}
	return false
}

// member reports whether a process is the session's, and its key as the kernel's record has it, which may come a
// moment later. Its cgroup says so from the start; those that are followed by descent are known by the record alone.
func (w *witness) member(pid int) (event.ProcessKey, bool) {
	in := w.obs.cg != nil && inCgroup(pid, w.obs.cg.Path())
	for range 40 {
		if k, ok := w.liveKey(uint32(pid)); ok {
			return k, true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return event.ProcessKey{}, in
}

// liveKey is the newest living process of a number.
func (w *witness) liveKey(tgid uint32) (found event.ProcessKey, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.live {
		if k.TGID == tgid && (!ok || k.StartNS > found.StartNS) {
			found, ok = k, true
		}
	}
	return found, ok
}
