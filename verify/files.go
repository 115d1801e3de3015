package verify

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/proctree"
)

type inode struct{ dev, ino uint64 }

// A fileRecord is an open, rename, delete or other change that a verdict can depend on.
type fileRecord struct {
	seq, ns uint64
	proc    event.ProcessKey
	path    string
	from    string // the other name of a rename or link
	node    inode
	how     string // wrote, created, renamed, linked, deleted, changed; "read" for a secret
	class   class
	secret  secret
	own     bool // by an assistant's own process: this is how an edit is seen
	dir     bool // a folder was made
}

// addOpen keeps an open when it wrote somewhere that matters, read a secret, or tells how a shell
// started. It runs for every open of the session.
func (f *facts) addOpen(e event.Event, b *event.FileOpen) {
	f.opens++
	if e.Proc == nil || b.Repeats {
		return
	}
	write := false
	for _, w := range b.Flags {
		switch w {
		case "O_WRONLY", "O_RDWR", "O_TRUNC", "O_CREAT":
			write = write || w != "O_CREAT" || b.Created
		case "O_PATH":
			return
		}
	}
	if b.Kind != "" && b.Kind != "block" {
		return
	}
	if !write {
		f.addRead(e, b)
		return
	}
	if b.Result != 0 || path.Base(b.Path) == "#"+strconv.FormatUint(b.Ino, 10) {
		return // O_TMPFILE: a file without a name is nobody's place; one that gets a name later is linked to it
	}
	r := fileRecord{seq: e.Seq, ns: e.TimeNS, proc: *e.Proc, path: path.Clean(b.Path), node: inode{b.Dev, b.Ino}, how: "wrote"}
	if b.Created {
		r.how = "created"
		f.made.add(*e.Proc, r.path)
	}
	r.class = f.place.write(r.path)
	if b.Kind == "block" {
		r.class = class{outside: true, power: "device"}
	}
	f.keepWrite(e, r)
}

// keepWrite drops what no finding can depend on: writes inside the workspace by ordinary programs.
func (f *facts) keepWrite(e event.Event, r fileRecord) {
	r.own = f.byAssistant(r.proc, r.ns)
	if r.class.matters() || r.own || f.watched[r.node] || f.watchedPaths[r.path] || slices.Contains(f.place.search, path.Dir(r.path)) {
		if f.room(len(f.files), maxFiles, e) {
			f.files = append(f.files, r)
		}
	}
}

// byAssistant reports whether a process is an assistant itself, or may be one: the wrapped command.
func (f *facts) byAssistant(k event.ProcessKey, ns uint64) bool {
	if f.start != nil && f.start.PID > 0 && int(k.TGID) == f.start.PID {
		return true
	}
	p := f.tree.Lookup(k)
	if p == nil {
		return false
	}
	x := p.ImageAt(ns)
	return x != nil && programAgent(x) != "" // its helpers write for it
}

func (f *facts) addRead(e event.Event, b *event.FileOpen) {
	if b.Result != 0 {
		return
	}
	if isStartup(b.Path) {
		if t := f.startup[*e.Proc]; len(t) < 64 {
			f.startup[*e.Proc] = append(t, e.TimeNS)
		}
		return
	}
	if s, ok := f.place.secret(b.Path); ok && f.room(len(f.files), maxFiles, e) {
		f.files = append(f.files, fileRecord{seq: e.Seq, ns: e.TimeNS, proc: *e.Proc, path: b.Path, node: inode{b.Dev, b.Ino}, how: "read", secret: s})
	}
}

// isStartup tells the files a shell reads before the text it was given.
func isStartup(name string) bool {
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
		"profile", "bash.bashrc", "zshenv", "zshrc", "zprofile", "config.fish", ".kshrc", ".mkshrc", ".shrc", ".envrc":
		return true
	}
	return strings.HasPrefix(name, "/etc/profile.d/") || strings.Contains(name, "/shell-snapshots/") || strings.Contains(name, "/shell_snapshots/")
}

// addName keeps renames, links, deletes and changes by name.
func (f *facts) addName(e event.Event) {
	r := fileRecord{seq: e.Seq, ns: e.TimeNS, proc: procOf(e)}
	res := int32(0)
	switch b := e.Body.(type) {
	case *event.FileDelete:
		r.path, r.how, r.node, res = b.Path, "deleted", inode{b.Dev, b.Ino}, b.Result
	case *event.FileRename:
		r.path, r.from, r.node, res = b.To, b.From, inode{b.Dev, b.Ino}, b.Result
		switch b.How {
		case "link", "symlink":
			r.how = "linked"
		default:
			r.how = "renamed"
		}
	case *event.FileChange:
		r.path, r.how, res = b.Path, "changed", b.Result
		if b.How == "mkdir" || b.How == "mknod" {
			r.how, r.dir = "created", b.How == "mkdir"
		}
	}
	if res != 0 || r.path == "" {
		return
	}
	f.throughFD(&r)
	r.path = path.Clean(r.path)
	r.class = f.place.write(r.path)
	if _, ok := fdPath(r.path); ok {
		r.class = class{outside: true, unknown: true}
	}
	if r.how == "renamed" && r.from != "" {
		// Moving a file out of its place changes that place too.
		r.from = path.Clean(r.from)
		if c := f.place.write(r.from); c.matters() && !r.class.matters() {
			from := r
			from.path, from.from, from.how, from.class = r.from, r.path, "moved away", c
			f.keepWrite(e, from)
		}
	}
	if r.how == "deleted" && r.class.cache {
		return
	}
	f.keepWrite(e, r)
}

// throughFD puts real folders in place of /proc/self/fd/N in a rename, where the record shows them: the
// file that is renamed was made by the same process a moment before, under its real name.
func (f *facts) throughFD(r *fileRecord) {
	from, ok := fdPath(r.from)
	if !ok {
		return
	}
	real := f.made.find(r.proc, path.Base(r.from))
	if real == "" {
		return
	}
	r.from = real
	if to, ok := fdPath(r.path); ok && to == from {
		r.path = path.Join(path.Dir(real), path.Base(r.path))
	}
}

// fdPath is the descriptor's part of a path such as /proc/self/fd/13/name.
func fdPath(name string) (dir string, ok bool) {
	rest, ok := strings.CutPrefix(name, "/proc/")
	if !ok {
		return "", false
	}
	_, rest, ok = strings.Cut(rest, "/fd/")
	n, _, _ := strings.Cut(rest, "/")
	return n, ok && n != "" && n != rest
}

// recent remembers the files made last, by process and last element.
type recent struct {
	paths map[recentKey]string
	ring  [maxRecent]recentKey
	next  int
}

type recentKey struct {
	proc event.ProcessKey
	base string
}

const maxRecent = 4096

func (m *recent) add(p event.ProcessKey, name string) {
	k := recentKey{p, path.Base(name)}
	if _, ok := m.paths[k]; !ok {
		delete(m.paths, m.ring[m.next])
		m.ring[m.next] = k
		m.next = (m.next + 1) % maxRecent
	}
	m.paths[k] = name
}

func (m *recent) find(p event.ProcessKey, base string) string { return m.paths[recentKey{p, base}] }

func (f *facts) addIPC(e event.Event, b *event.IPCConnect) {
	k := procOf(e)
	for i := len(f.ipc) - 1; i >= 0 && i > len(f.ipc)-32; i-- {
		r := &f.ipc[i]
		if r.proc == k && r.Path == b.Path && r.Result == b.Result && (r.Peer == nil) == (b.Peer == nil) && (b.Peer == nil || *r.Peer == *b.Peer) {
			r.count++
			return
		}
	}
	if f.room(len(f.ipc), maxIPC, e) {
		f.ipc = append(f.ipc, ipcRecord{b, e.Seq, e.TimeNS, k, 1})
	}
}

// scriptOf is the file a program's code comes from: the script, not its interpreter.
func scriptOf(x *proctree.Exec) string {
	if x.Interp != "" {
		return x.Path
	}
	return x.Exe
}
