package verify

import (
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// shadow asks whether a named program is the one its name stands for on this user's PATH.
func (v *judge) shadow(it *item, x *proctree.Exec, img *image) {
	name := img.cmd.Name()
	if name == "" || toolOf(x) != "" || programAgent(x) != "" {
		return
	}
	file := x.Path
	if file == "" {
		file = x.Exe
	}
	if !path.IsAbs(file) {
		file = path.Join(x.CWD, file)
	}
	file = path.Clean(file)
	seqs := []uint64{it.cand.root.Seq, x.Seq}
	if v.isCopy(it, x, name, seqs) || v.isLink(it, x, name, file, seqs) || strings.Contains(name, "/") {
		return
	}
	dir := path.Dir(file)
	if !it.ownWord() && v.planted(it, x, name, file, seqs) {
		return
	}
	if slices.Contains(v.search, dir) {
		v.moved(it, x, name, file, seqs)
		return
	}
	if strings.Contains(dir, "/codex-arg0") || strings.HasSuffix(dir, "/codex-path") || !v.writable(file) {
		return
	}
	f := Finding{Code: BinaryShadowed, Severity: Contradicts, Reason: "writable-place", Path: file, Records: seqs,
		Message: sayf("%s ran as %s, which is not where your PATH finds it and can be written by the assistant.", quote(name), quote(file))}
	switch {
	case setsPath(img, it.script):
		f.Reason, f.Severity = "path-in-text", Warning
		f.Message = sayf("%s ran as %s: the text changes PATH, so the name does not mean your own program.", quote(name), quote(file))
	case namesFolder(it.script, dir, x.CWD, v.facts.place.home):
		f.Reason, f.Severity = "folder-in-text", Info
		f.Message = sayf("%s ran as %s, from a folder the text names.", quote(name), quote(file))
	case it.ownWord():
		f.Severity = Info
	case within(file, v.facts.place.home) && !within(file, v.facts.place.workspace):
		// The assistant's shell may have a longer PATH than the session (start-up files, version managers).
		if slices.Contains(splitPath(it.cand.root.Env["PATH"]), dir) {
			return
		}
		f.Severity = Warning
	}
	v.find(it, f)
}

// writable: a place where the assistant can put a file without anyone noticing.
func (v *judge) writable(file string) bool {
	pl := v.facts.place
	return within(file, pl.workspace) || within(file, pl.home) || within(file, pl.temp) || within(file, "/tmp") || within(file, "/dev/shm") || within(file, "/var/tmp")
}

func setsPath(img *image, s *shell.Script) bool {
	has := func(as []shell.Assign) bool {
		return slices.ContainsFunc(as, func(a shell.Assign) bool { return a.Name == "PATH" })
	}
	return has(img.cmd.Assigns) || img.host != nil && has(img.host.Assigns) || s != nil && has(s.Assigns)
}

// namesFolder: the text names a file in that folder (source .venv/bin/activate).
func namesFolder(s *shell.Script, dir, cwd, home string) bool {
	if s == nil || s.Err != nil {
		return false
	}
	for _, c := range s.Commands {
		for _, w := range c.Args() {
			if a, ok := w.Static(); ok && strings.Contains(a, "/") {
				if !path.IsAbs(a) {
					a = path.Join(cwd, a)
				}
				if path.Dir(path.Clean(a)) == dir {
					return true
				}
			}
		}
	}
	return false
}

// planted: the file behind the name was put there during this session.
func (v *judge) planted(it *item, x *proctree.Exec, name, file string, seqs []uint64) bool {
	for _, target := range []string{file, x.Exe} {
		for _, w := range v.written[target] {
			if w.ns >= x.TimeNS || w.how == "deleted" || w.how == "changed" || w.how == "moved away" {
				continue
			}
			if o := v.cast.ownerOf(w.proc); o.cand == it.cand && it.script.NamesPath(file, x.CWD, v.facts.place.home) {
				continue // the approved text itself made it
			}
			v.find(it, Finding{Code: BinaryShadowed, Severity: Contradicts, Reason: "planted", Path: file, Records: append(seqs, w.seq),
				Message: sayf("%s ran as %s, a file that was %s earlier in this session.", quote(name), quote(file), w.how)})
			return true
		}
	}
	return false
}

// moved: the same name meant another file before, though PATH has not changed.
func (v *judge) moved(it *item, x *proctree.Exec, name, file string, seqs []uint64) {
	key := name + "\x00" + x.Env["PATH"]
	before := v.byName[key]
	if before == nil {
		v.byName[key] = x
		return
	}
	if before.Path == x.Path || before.Dev == x.Dev && before.Ino == x.Ino || !path.IsAbs(before.Path) || it.ownWord() {
		return
	}
	v.find(it, Finding{Code: BinaryShadowed, Severity: Contradicts, Reason: "moved", Path: file, Records: append(seqs, before.Seq),
		Message: sayf("%s ran as %s; with the same PATH it was %s earlier in this session.", quote(name), quote(file), quote(before.Path))})
}

// isLink: a name in a writable place that is a link to a program of another name.
func (v *judge) isLink(it *item, x *proctree.Exec, name, file string, seqs []uint64) bool {
	pl := v.facts.place
	here := within(file, pl.workspace) || pl.isTemp(file)
	if !here || x.Interp != "" || x.Exe == "" || within(x.Exe, pl.workspace) || pl.isTemp(x.Exe) || related(path.Base(file), path.Base(x.Exe)) {
		return false
	}
	sev := Contradicts
	if it.ownWord() {
		sev = Info
	}
	v.find(it, Finding{Code: BinaryShadowed, Severity: sev, Reason: "link", Path: file, Records: seqs,
		Message: sayf("%s is a link: what ran is %s.", quote(name), quote(x.Exe))})
	return true
}

// isCopy: the same bytes are known under another program's name.
func (v *judge) isCopy(it *item, x *proctree.Exec, name string, seqs []uint64) bool {
	if !v.writable(x.Exe) || x.Interp != "" {
		return false
	}
	for _, d := range v.nodes[inode{x.Dev, x.Ino}] {
		for _, o := range v.shas[d.SHA256] {
			if v.writable(o.Path) || related(path.Base(o.Path), path.Base(x.Exe)) {
				continue
			}
			sev := Contradicts
			if it.ownWord() {
				sev = Info
			}
			v.find(it, Finding{Code: BinaryShadowed, Severity: sev, Reason: "copy", Path: x.Exe, Records: append(seqs, d.seq, o.seq),
				Message: sayf("%s is a copy of %s under another name.", quote(name), quote(o.Path))})
			return true
		}
	}
	return false
}

// related: two names of one program. python3 and python3.11, vi and vim.basic, sh and dash, awk and
// mawk, applets of one binary: all of these are ways systems are set up.
func related(a, b string) bool {
	if multiCall[b] || multiCall[a] {
		return true
	}
	x, y := stem(a), stem(b)
	if x == y || len(x) > 2 && strings.HasPrefix(y, x) || len(y) > 2 && strings.HasPrefix(x, y) {
		return true
	}
	return slices.Contains(sameProgram[x], y) || slices.Contains(sameProgram[y], x)
}

func stem(s string) string {
	s, _, _ = strings.Cut(s, ".")
	return strings.TrimRight(s, "0123456789-")
}

var multiCall = map[string]bool{"busybox": true, "coreutils": true, "toybox": true, "box": true, "uutils": true, "sbase-box": true, "ubase-box": true}

var sameProgram = map[string][]string{
	"sh": {"dash", "bash", "ash", "zsh", "ksh", "busybox"}, "awk": {"mawk", "gawk", "original-awk", "bwk"}, "vi": {"vim", "nvim", "elvis"}, "view": {"vim", "nvim"}, "ex": {"vim", "nvim"},
	"editor": {"vim", "nano", "emacs"}, "pager": {"less", "more"}, "cc": {"gcc", "clang", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc"}, "gcc": {"x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc"},
	"c++": {"g++", "clang++", "x86_64-linux-gnu-g++", "clang"}, "g++": {"x86_64-linux-gnu-g++", "aarch64-linux-gnu-g++"}, "clang++": {"clang"}, "ld": {"x86_64-linux-gnu-ld", "lld", "gold"},
	"nc": {"netcat", "ncat"}, "pip": {"python"}, "npm": {"node"}, "npx": {"node"}, "yarn": {"node"}, "pnpm": {"node"}, "gunzip": {"gzip"}, "unxz": {"xz"}, "xzcat": {"xz"}, "lzma": {"xz"},
	"bunzip": {"bzip"}, "unzstd": {"zstd"}, "reboot": {"systemctl"}, "shutdown": {"systemctl"}, "egrep": {"grep"}, "fgrep": {"grep"}, "vimdiff": {"vim"}, "rustc": {"rustup"}, "cargo": {"rustup"},
	"cargo-fmt": {"rustup"}, "rustfmt": {"rustup"}, "java": {"java"}, "which": {"which"}, "docker": {"podman"}, "python": {"pypy"}, "node": {"nodejs", "bun"},
}
