package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ryehq/rye/event"
)

// stragglers waits until the session's processes are gone, at most for the given time, and returns those
// that are not. An assistant's own daemon is expected to stay and is not waited for.
func (w *witness) stragglers(patience time.Duration) []event.Survivor {
	deadline := time.Now().Add(patience)
	for {
		if w.obs.coll != nil {
			// What the command started may have left the cgroup: then only its events tell of it, and they
			// must have been read.
			if err := w.obs.coll.Barrier(10 * time.Second); err != nil {
				w.degrade(err.Error())
			}
		}
		left := w.alive()
		waitFor := slices.ContainsFunc(left, func(s event.Survivor) bool { return s.Role != roleDaemon })
		if !waitFor || time.Now().After(deadline) {
			return left
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const (
	roleDaemon    = "assistant-daemon"
	roleStraggler = "straggler"
)

// alive lists session processes that exist now. The event stream says who should; /proc has the last word,
// because an exit event may have been lost. Processes of the session's cgroup that no event told of are
// counted too.
func (w *witness) alive() []event.Survivor {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []event.Survivor
	seen := map[uint32]bool{}
	add := func(k event.ProcessKey, p *process) {
		if seen[k.TGID] || zombie(k.TGID) {
			return
		}
		seen[k.TGID] = true
		s := event.Survivor{Proc: k, Exe: p.exe, Argv: p.argv, Role: roleStraggler}
		if isDaemon(p.exe, p.argv) {
			s.Role = roleDaemon
		}
		list = append(list, s)
	}
	for k, p := range w.live {
		if now, ok := processKey(int(k.TGID)); !ok || !sameStart(now.StartNS, k.StartNS) {
			delete(w.live, k)
			continue
		}
		if w.adopted[k] && !isDaemon(p.exe, p.argv) {
			continue // a child of a daemon that was there before the session
		}
		add(k, p)
	}
	if w.obs.cg != nil {
		pids, _ := w.obs.cg.Procs()
		for _, pid := range pids {
			if k, ok := processKey(pid); ok {
				add(k, &process{exe: readExe(pid), argv: firstWords(readArgv(pid))})
			}
		}
	}
	slices.SortFunc(list, func(a, b event.Survivor) int { return int(int64(a.Proc.StartNS) - int64(b.Proc.StartNS)) })
	return list
}

// The kernel's clock tick for /proc/PID/stat; USER_HZ is 100 on every Linux architecture rye runs on.
const tickNS = 10_000_000

func sameStart(a, b uint64) bool {
	if a > b {
		a, b = b, a
	}
	return b-a <= tickNS
}

// processKey reads a running process's identity. Its start is rounded down to a clock tick: compare with
// sameStart.
func processKey(pid int) (event.ProcessKey, bool) {
	fields, ok := readStat(pid)
	if !ok || len(fields) < 20 {
		return event.ProcessKey{}, false
	}
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return event.ProcessKey{}, false
	}
	return event.ProcessKey{TGID: uint32(pid), StartNS: ticks * tickNS}, true
}

// readStat returns the fields of /proc/PID/stat after the command name, which may hold anything.
func readStat(pid int) ([]string, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, false
	}
	i := strings.LastIndexByte(string(b), ')')
	if i < 0 {
		return nil, false
	}
	return strings.Fields(string(b[i+1:])), true
}

func zombie(pid uint32) bool {
	f, ok := readStat(int(pid))
	return !ok || len(f) > 0 && (f[0] == "Z" || f[0] == "X")
}

func readArgv(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

func readExe(pid int) string {
	s, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return s
}
