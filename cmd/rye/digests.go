package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/verify/shell"
)

// digests takes the content of files at the moments that matter: a script when the user is asked about it
// and when it runs, and every executable once.
type digests struct {
	cwd     string
	path    []string           // folders of PATH
	sizes   map[int64][]string // programs of PATH by size; made when first needed, by the hashing goroutine only
	watched map[string]bool    // absolute paths hashed at a prompt
	exes    map[exeID]bool
	queue   chan exeJob
	wg      sync.WaitGroup
	mu      sync.Mutex
	done    []event.Event
}

type exeID struct{ dev, ino, mtime uint64 }

type exeJob struct {
	id   exeID
	path string
}

const (
	scriptCap = 16 << 20 // a script larger than this is not hashed, and said so
	exeCap    = 512 << 20
)

func newDigests(cwd, searchDir string) *digests {
	d := &digests{cwd: cwd, path: filepath.SplitList(searchDir), watched: map[string]bool{}, exes: map[exeID]bool{}, queue: make(chan exeJob, 256)}
	d.wg.Go(func() {
		for j := range d.queue {
			own := hashExe(j)
			for _, b := range append([]*event.FileDigest{own}, d.originals(own)...) {
				e := event.New(boottime(), nil, b)
				d.mu.Lock()
				d.done = append(d.done, e)
				d.mu.Unlock()
			}
		}
	})
	return d
}

// atPrompt hashes every regular file that the command names.
func (d *digests) atPrompt(p *event.ApprovalPrompted, seq uint64) []event.Event {
	var list []event.Event
	for _, path := range namedFiles(p.Command) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(d.cwd, path)
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		b := hashFile(path, scriptCap)
		b.At, b.For = "prompt", seq
		d.watched[path] = true
		list = append(list, event.New(boottime(), nil, b))
	}
	return list
}

// namedFiles lists the words of a command that could be files: no option, nothing to be filled in.
func namedFiles(command string) []string {
	var words []string
	for _, c := range shell.Parse(command, shell.Bash).Commands {
		for _, w := range c.Words {
			if s, ok := w.Static(); ok && s != "" && s[0] != '-' && len(s) < 4096 && len(words) < 256 {
				words = append(words, s)
			}
		}
	}
	return words
}

// atExec hashes the watched files that an exec names, again.
func (d *digests) atExec(x *event.ProcessExec, seq uint64) []event.Event {
	if len(d.watched) == 0 {
		return nil
	}
	var list []event.Event
	seen := map[string]bool{}
	for _, a := range append([]string{x.Path}, x.Argv...) {
		if len(a) > 4096 {
			continue
		}
		if !filepath.IsAbs(a) {
			a = filepath.Join(x.CWD, a)
		}
		if a = filepath.Clean(a); !d.watched[a] || seen[a] {
			continue
		}
		seen[a] = true
		b := hashFile(a, scriptCap)
		b.At, b.For = "exec", seq
		list = append(list, event.New(boottime(), nil, b))
	}
	return list
}

// exe queues an executable that was not hashed yet. A full queue leaves it out: file.digest is not there
// then, and nothing claims it is.
func (d *digests) exe(x *event.ProcessExec) {
	id := exeID{x.ExeDev, x.ExeIno, x.ExeMtimeNS}
	if d.exes[id] {
		return
	}
	d.exes[id] = true
	select {
	case d.queue <- exeJob{id, x.Exe}:
	default:
	}
}

// finished returns the digests of executables that are ready.
func (d *digests) finished() []event.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.done
	d.done = nil
	return list
}

// last waits a moment for the rest.
func (d *digests) last() []event.Event {
	close(d.queue)
	ready := make(chan struct{})
	go func() { d.wg.Wait(); close(ready) }()
	select {
	case <-ready:
	case <-time.After(2 * time.Second):
	}
	return d.finished()
}

// originals finds the programs of PATH that an executable from elsewhere is a copy of: a copy of rm under
// another name is still rm.
func (d *digests) originals(x *event.FileDigest) []*event.FileDigest {
	if x.SHA256 == "" || slices.Contains(d.path, filepath.Dir(x.Path)) {
		return nil
	}
	if d.sizes == nil {
		d.sizes = map[int64][]string{}
		for _, dir := range d.path {
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
					d.sizes[info.Size()] = append(d.sizes[info.Size()], filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	var same []*event.FileDigest
	for _, path := range d.sizes[x.Size] {
		if b := hashFile(path, exeCap); b.SHA256 == x.SHA256 && b.Ino != x.Ino {
			b.At = "exe"
			same = append(same, b)
		}
	}
	return same
}

// hashExe hashes the file that was executed, if it is still the one at its path.
func hashExe(j exeJob) *event.FileDigest {
	b := hashFile(j.path, exeCap)
	b.At = "exe"
	if b.Detail == "" && (b.Dev != j.id.dev || b.Ino != j.id.ino) {
		b.SHA256, b.Detail = "", "another file is at this path now"
		b.Dev, b.Ino = j.id.dev, j.id.ino
	}
	return b
}

func hashFile(path string, limit int64) *event.FileDigest {
	b := &event.FileDigest{Path: path}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		b.Detail = err.Error()
		return b
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		b.Detail = err.Error()
		return b
	}
	b.Dev, b.Ino, b.Size, b.MtimeNS = uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano()
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		b.Detail = "not a regular file"
		return b
	case st.Size > limit:
		b.Detail = "too large to hash"
		return b
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, limit)); err != nil {
		b.Detail = err.Error()
		return b
	}
	b.SHA256 = hex.EncodeToString(h.Sum(nil))
	return b
}
