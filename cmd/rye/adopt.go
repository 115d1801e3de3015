package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
)

// isDaemon reports whether a process is an assistant's own background server, which runs tools on the
// assistant's behalf: Codex since 0.17x (`codex app-server --managed-daemon`), parent pid 1.
func isDaemon(exe string, argv []string) bool {
	return baseName(exe) == "codex" && slices.Contains(argv, "app-server")
}

// adopt takes the peer of a unix connect into the session when it is an assistant's daemon: an earlier
// session may have started it, and nothing that it runs descends from the wrapped command. The caller
// holds w.mu. It runs in the collector's goroutine, which the kernel wakes for every such connect.
func (w *witness) adopt(b *event.IPCConnect, seq uint64) []event.Event {
	peer := event.ProcessKey{TGID: b.Peer.TGID, StartNS: b.Peer.StartNS}
	if w.live[peer] != nil || w.obs.probes == nil {
		return nil
	}
	argv := readArgv(int(peer.TGID))
	now, ok := processKey(int(peer.TGID))
	if !ok || !sameStart(now.StartNS, peer.StartNS) || !isDaemon(b.Peer.Exe, argv) || !ownedByUs(int(peer.TGID)) {
		return nil
	}
	if err := w.obs.probes.Adopt(peer.TGID, peer.StartNS); err != nil {
		w.degraded = append(w.degraded, err.Error())
		return nil
	}
	w.live[peer] = &process{exe: b.Peer.Exe, argv: firstWords(argv)}
	w.adopted[peer] = true
	list := []event.Event{event.New(boottime(), &peer, &event.ProcessAdopted{Exe: b.Peer.Exe, Argv: argv, Reason: roleDaemon, By: seq, Via: b.Path})}
	// What it forked before it was a member is not: take those in too, deepest last.
	for _, pid := range descendants(int(peer.TGID)) {
		k, ok := processKey(pid)
		if !ok || !ownedByUs(pid) || w.obs.probes.Adopt(uint32(pid), k.StartNS) != nil {
			continue
		}
		exe, argv := readExe(pid), readArgv(pid)
		w.live[k] = &process{exe: exe, argv: firstWords(argv)}
		w.adopted[k] = true
		list = append(list, event.New(boottime(), &k, &event.ProcessAdopted{Exe: exe, Argv: argv, Reason: "child-of-adopted", By: seq}))
	}
	return list
}

// ownedByUs keeps a user from watching another user's processes through a rye that has capabilities.
func ownedByUs(pid int) bool {
	var st unix.Stat_t
	return unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) == nil && int(st.Uid) == os.Getuid()
}

// descendants lists the processes below pid now, parents before children.
func descendants(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f, ok := readStat(p); ok && len(f) > 1 {
			if parent, err := strconv.Atoi(f[1]); err == nil {
				children[parent] = append(children[parent], p)
			}
		}
	}
	var list []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		list = append(list, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return list
}
