package verify

import (
	"path"
	"slices"
	"strings"
)

// unasked finds files that the assistant's own process changed and that no edit of its record asked for. An
// edit starts no program: its writes are what ran.
func (v *judge) unasked() {
	if !v.wholeFor("file.open") {
		return
	}
	asked := v.askedFiles()
	told := map[string]int{}
	for _, r := range v.facts.files {
		o := v.cast.ownerOf(r.proc)
		if !r.own || r.dir || r.how == "read" || o.kind != assistant || o.agent != claude && o.agent != codex || v.edits[r.seq] != nil || !v.keepsRecord(o.agent) {
			continue
		}
		if r.class.rules || r.class.power != "" || r.class.cache || r.class.unknown || asked.has(r.path) || asked.has(r.from) {
			continue // judged elsewhere, or asked for
		}
		ws := v.facts.place.workspace
		if within(r.path, ws) {
			if r.class.outside || hiddenBelow(strings.TrimPrefix(r.path, ws)) {
				continue
			}
		} else if !r.class.outside || v.ownPlace(r.path) {
			continue
		}
		if i, ok := told[r.path]; ok {
			v.again(i, r.seq, Contradicts, nil)
			continue
		}
		if len(told) >= maxPaths {
			continue
		}
		told[r.path] = len(v.findings)
		v.find(nil, Finding{Code: ExecUnapproved, Severity: Contradicts, Reason: "edit", Path: r.path, Records: []uint64{r.seq},
			Message: sayf("The assistant itself %s %s; its record asks for no such change, and nobody was asked.", changed(r.how), quote(r.path))})
	}
}

func changed(how string) string {
	if how == "moved away" {
		return "moved away"
	}
	return how
}

// keepsRecord: what the assistant asked for in this session is known from its transcript.
func (v *judge) keepsRecord(agent string) bool {
	for _, c := range v.facts.calls {
		if c.Agent == agent && c.Source == "transcript" {
			return true
		}
	}
	return slices.ContainsFunc(v.facts.contexts, func(t turnContext) bool { return t.Agent == agent })
}

// hiddenBelow: in a folder of the workspace that belongs to a tool: .git, .claude, .codex, .vscode.
func hiddenBelow(rel string) bool { return strings.Contains(path.Dir(rel), "/.") }

// ownPlace: a file outside the workspace that an assistant may keep for itself.
func (v *judge) ownPlace(name string) bool {
	rel, home := v.facts.place.inHome(name)
	return v.facts.place.inHomes(name) || home && strings.HasPrefix(rel, ".") || slices.Contains(v.cast.agents, path.Base(name)) || ownHabit(name) ||
		within(name, "/run") || within(name, "/var/lib") || within(name, "/sys") || within(name, "/proc")
}

// A fileSet knows files by their whole path and by name: a record may reach them through a link.
type fileSet struct{ paths, names map[string]bool }

func (v *judge) askedFiles() fileSet {
	s := fileSet{map[string]bool{}, map[string]bool{}}
	for _, c := range v.facts.calls {
		paths := slices.Clone(c.Paths)
		for _, r := range c.results {
			paths = append(paths, r.Paths...)
		}
		if c.kind != "edit" {
			continue
		}
		for _, p := range paths {
			p = absPath(strings.TrimPrefix(p, "file://"), firstOf(c.CWD, v.facts.place.workspace))
			s.paths[p], s.names[path.Base(p)] = true, true
		}
	}
	return s
}

// has: the file, or a scratch name beside it that becomes it ("a.txt.tmp.123.456", ".a.txt.swp").
func (s fileSet) has(name string) bool {
	if name == "" {
		return false
	}
	base := path.Base(name)
	if s.paths[name] || s.names[base] {
		return true
	}
	base = strings.TrimPrefix(base, ".")
	for i := 1; i < len(base); i++ {
		if (base[i] == '.' || base[i] == '~') && s.names[base[:i]] {
			return true
		}
	}
	return false
}
