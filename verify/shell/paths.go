package shell

import (
	"path"
	"strings"
)

// NamesPath reports whether the text names a file: as a redirection's target, as an argument, as the
// value of an option, or as something inside a directory it names. cwd is where the shell started;
// home is what ~ and $HOME mean. The path is compared as text: a link that leads elsewhere is not
// "named".
func (s *Script) NamesPath(file, cwd, home string) bool {
	if s == nil || s.Err != nil {
		return false
	}
	dirs := s.dirs(cwd, home)
	for _, r := range s.Redirects {
		if pointsTo(r.Target, file, dirs, home, false) {
			return true
		}
	}
	for _, c := range s.Commands {
		for _, w := range c.Words {
			if pointsTo(w, file, dirs, home, true) {
				return true
			}
		}
		if c.Inner != nil && c.Inner.NamesPath(file, cwd, home) {
			return true
		}
	}
	return false
}

// dirs are the directories a relative name may stand for: where the shell started, and every
// directory the text changes to.
func (s *Script) dirs(cwd, home string) []string {
	dirs := []string{cwd}
	for _, c := range s.Commands {
		if b := c.Base(); b != "cd" && b != "pushd" || len(c.Words) < 2 {
			continue
		}
		v := c.Words[len(c.Words)-1].path(home)
		if v == "" {
			continue
		}
		for _, d := range dirs {
			if len(dirs) < 16 {
				dirs = append(dirs, absolute(v, d))
			}
		}
	}
	return dirs
}

func absolute(name, dir string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// path is the word's text with a leading ~ or $HOME put in; "" when something else is unknown.
func (w Word) path(home string) string {
	if v, ok := w.Static(); ok {
		return v
	}
	if w.kind == one && len(w.parts) <= 2 && w.parts[0].any && w.fromHome() {
		if len(w.parts) == 2 {
			return home + w.parts[1].lit
		}
		return home
	}
	return ""
}

func (w Word) fromHome() bool {
	src := strings.TrimPrefix(w.Source, `"`)
	return strings.HasPrefix(src, "~") || strings.HasPrefix(src, "$HOME") || strings.HasPrefix(src, "${HOME}")
}

func pointsTo(w Word, file string, dirs []string, home string, inside bool) bool {
	if v := w.path(home); v != "" {
		if pathIs(v, file, dirs, inside) {
			return true
		}
		// --output=FILE, -oFILE, if=FILE
		if _, value, ok := strings.Cut(v, "="); ok && pathIs(value, file, dirs, inside) {
			return true
		}
		return len(v) > 2 && v[0] == '-' && v[1] != '-' && pathIs(v[2:], file, dirs, inside)
	}
	// A pattern names a file when its literal part reaches into a directory of its own: "$X" or * alone
	// would name everything.
	if w.Blank() || !strings.Contains(w.Prefix()+suffix(w), "/") && !strings.Contains(w.Source, ".") {
		return false
	}
	if w.fromHome() {
		w.parts = append([]part{{lit: home}}, w.parts[1:]...)
	}
	for _, d := range dirs {
		rel := file
		if p := w.Prefix(); p != "" && p[0] != '/' {
			r, ok := strings.CutPrefix(file, strings.TrimSuffix(d, "/")+"/")
			if !ok {
				continue
			}
			rel = r
		}
		if fits(w.parts, rel) {
			return true
		}
	}
	return false
}

func suffix(w Word) string {
	if n := len(w.parts); n > 0 && !w.parts[n-1].any {
		return w.parts[n-1].lit
	}
	return ""
}

func pathIs(name, file string, dirs []string, inside bool) bool {
	if name == "" {
		return false
	}
	for _, d := range dirs {
		p := absolute(name, d)
		if p == file {
			return true
		}
		// A directory named as an argument (tar -C DIR, cp f DIR) covers what is made in it, unless it
		// is so wide that it says nothing.
		if inside && strings.Count(p, "/") >= 2 && p != d && strings.HasPrefix(file, p+"/") {
			return true
		}
	}
	return false
}
