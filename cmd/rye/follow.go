package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ingest"
	"github.com/ryehq/rye/ingest/codexstate"
)

// A follower reads the transcripts that this session's processes write. Which those are is known from the
// kernel: a transcript that a session process opened for writing is the session's. Without a kernel
// witness the assistants' folders are searched for files that changed since the start.
type follower struct {
	mu    sync.Mutex
	homes []string
	since time.Time
	boot  uint64 // boottime at since
	files map[string]*followed
	scan  bool

	threads map[string]bool // of Codex, that this session's rollouts are of
}

type followed struct {
	file *ingest.File
	read int64 // bytes taken so far
}

// A transcript row from before the session is not this session's, even if the file is: sessions are
// resumed and forked. Clocks of the same machine agree; the slack is for rounding.
const transcriptSlack = 2 * time.Second

func newFollower(start *event.SessionStart) *follower {
	return &follower{homes: start.AssistantHomes, since: time.Now(), boot: boottime(), files: map[string]*followed{}, threads: map[string]bool{}}
}

// opened looks at an open of the session.
func (f *follower) opened(o *event.FileOpen) {
	if filepath.Ext(strings.TrimSuffix(o.Path, ".zst")) != ".jsonl" || o.Result != 0 || !slices.ContainsFunc(o.Flags, func(w string) bool { return w == "O_WRONLY" || w == "O_RDWR" }) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(o.Path)
}

func (f *follower) add(path string) {
	if f.files[path] != nil {
		return
	}
	homes := f.homes
	// An assistant may be pointed at another state folder by a variable that rye was not started with:
	// the layout below it still names it.
	for dir := filepath.Dir(path); len(dir) > 1; dir = filepath.Dir(dir) {
		if b := filepath.Base(dir); b == "sessions" || b == "projects" || b == "session-state" {
			homes = append(slices.Clone(homes), filepath.Dir(dir))
		}
	}
	if file, ok := ingest.Open(path, homes); ok {
		f.files[path] = &followed{file: file}
	}
}

// search finds changed transcripts by their modification time, where no kernel witness tells.
func (f *follower) search() {
	for _, h := range f.homes {
		for _, sub := range []string{"sessions", "projects", "session-state"} {
			_ = filepath.WalkDir(filepath.Join(h, sub), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(strings.TrimSuffix(path, ".zst")) != ".jsonl" {
					return nil
				}
				if info, err := d.Info(); err == nil && info.ModTime().After(f.since.Add(-transcriptSlack)) {
					f.add(path)
				}
				return nil
			})
		}
	}
}

// read returns the new rows of all followed transcripts as events.
func (f *follower) read() []event.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scan {
		f.search()
	}
	var list []event.Event
	now := boottime()
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		for _, row := range f.files[path].more() {
			if !row.Time.IsZero() && row.Time.Before(f.since.Add(-transcriptSlack)) {
				continue
			}
			if c, ok := row.Body.(*event.ToolCall); ok {
				c.AskedTimeNS = ingest.Boot(row.Time, f.since, f.boot)
			}
			if c, ok := row.Body.(*event.TurnContext); ok && c.Agent == "codex" {
				f.threads[c.Thread] = true
			}
			list = append(list, event.New(now, nil, row.Body))
		}
	}
	return list
}

// more reads what was appended since the last call. The path may have been swapped for a link or a pipe by
// the session: neither is followed.
func (x *followed) more() []ingest.Row {
	h, err := os.OpenFile(x.file.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= x.read {
		return nil
	}
	if x.file.Compressed {
		// Written once and whole: what was read of an unfinished one does not come again.
		rows, err := x.file.Decompress(h)
		if err == nil {
			x.read = info.Size()
		}
		return rows
	}
	var rows []ingest.Row
	buf := make([]byte, 256<<10)
	for {
		n, err := h.ReadAt(buf, x.read)
		x.read += int64(n)
		rows = append(rows, x.file.Feed(buf[:n])...)
		if err != nil { // io.EOF, or nothing more to be had
			return rows
		}
	}
}

// lineage returns what Codex's own state says of the threads that this session's threads started: who they are and
// in which mode they ran. Their rollouts may say less, or be somewhere else.
func (f *follower) lineage() []event.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.threads) == 0 {
		return nil
	}
	var list []event.Event
	for _, home := range f.homes {
		file := newestState(home)
		if file == "" {
			continue
		}
		threads, err := codexstate.Read(file)
		if err != nil {
			continue // one witness less; the rollouts are the first
		}
		for _, t := range codexstate.Below(threads, f.threads) {
			list = append(list, event.New(boottime(), nil, t.Context(file)))
		}
	}
	return list
}

// newestState is the state database of the highest generation in a folder of Codex's.
func newestState(home string) string {
	names, err := filepath.Glob(filepath.Join(home, "state_*.sqlite"))
	if err != nil {
		return ""
	}
	best, found := -1, ""
	for _, name := range names {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "state_"), ".sqlite"))
		if err == nil && n > best {
			best, found = n, name
		}
	}
	return found
}
