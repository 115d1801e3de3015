package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ingest/rules"
)

// A rulePlace is where an assistant looks for permissions: a file, or the files of one kind in a folder.
type rulePlace struct {
	agent, level string
	path         string // ends in "/*.rules" or "/*.json" for a folder
	read         func(path, level string, b []byte) *event.RulesLoaded
	state        bool // a file of the assistant's state too: it changes all the time, and only its rules matter
}

func claudeHome(user string) string {
	return absolute(envOr("CLAUDE_CONFIG_DIR", filepath.Join(user, ".claude")))
}
func codexHome(user string) string {
	return absolute(envOr("CODEX_HOME", filepath.Join(user, ".codex")))
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// claudeState is the file beside Claude Code's folder, or in it where the folder is not the usual one.
func claudeState(user string) string {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(absolute(dir), ".claude.json")
	}
	return absolute(filepath.Join(user, ".claude.json"))
}

// rulePlaces are the places that count for a session in cwd, the strongest level first.
func rulePlaces(user, cwd, workspace string, argv []string) []rulePlace {
	var list []rulePlace
	add := func(agent, level, path string, read func(string, string, []byte) *event.RulesLoaded) {
		if !slices.ContainsFunc(list, func(p rulePlace) bool { return p.path == path }) {
			list = append(list, rulePlace{agent: agent, level: level, path: path, read: read})
		}
	}
	state := func(agent, level, path string, read func(string, string, []byte) *event.RulesLoaded) {
		add(agent, level, path, read)
		list[len(list)-1].state = true
	}
	add("claude", rules.Managed, "/etc/claude-code/managed-settings.json", rules.Claude)
	add("claude", rules.Managed, "/etc/claude-code/managed-settings.d/*.json", rules.Claude)
	if file := settingsFlag(argv); file != "" && !strings.HasPrefix(file, "{") {
		add("claude", rules.CommandLine, absolute(file), rules.Claude)
	}
	add("claude", rules.User, filepath.Join(claudeHome(user), "settings.json"), rules.Claude)
	state("claude", rules.User, claudeState(user), rules.ClaudeState)
	codexHooks := func(path, level string, b []byte) *event.RulesLoaded { return rules.Hooks("codex", path, level, b) }
	add("codex", rules.Managed, "/etc/codex/rules/*.rules", rules.Codex)
	add("codex", rules.Managed, "/etc/codex/hooks.json", codexHooks)
	add("codex", rules.Managed, "/etc/codex/requirements.toml", rules.CodexRequirements)
	add("codex", rules.Managed, "/etc/codex/config.toml", rules.CodexConfig)
	add("codex", rules.User, filepath.Join(codexHome(user), "rules/*.rules"), rules.Codex)
	state("codex", rules.User, filepath.Join(codexHome(user), "config.toml"), rules.CodexConfig)
	add("codex", rules.User, filepath.Join(codexHome(user), "hooks.json"), codexHooks)
	// From the working folder up to the project's root: Codex reads all of these, Claude Code the first
	// or the last, depending on its version.
	for dir := cwd; ; dir = filepath.Dir(dir) {
		add("claude", rules.Project, filepath.Join(dir, ".claude/settings.json"), rules.Claude)
		add("claude", rules.Local, filepath.Join(dir, ".claude/settings.local.json"), rules.Claude)
		add("claude", rules.Project, filepath.Join(dir, ".mcp.json"), rules.MCP)
		add("codex", rules.Project, filepath.Join(dir, ".codex/rules/*.rules"), rules.Codex)
		add("codex", rules.Project, filepath.Join(dir, ".codex/config.toml"), rules.CodexConfig)
		add("codex", rules.Project, filepath.Join(dir, ".codex/hooks.json"), codexHooks)
		if dir == workspace || dir == "/" || !strings.HasPrefix(dir, workspace+"/") {
			return list
		}
	}
}

// settingsFlag is the value of Claude Code's --settings: a file, or JSON.
func settingsFlag(argv []string) string {
	for i, a := range argv {
		if v, ok := strings.CutPrefix(a, "--settings="); ok {
			return v
		}
		if a == "--settings" && i+1 < len(argv) {
			return argv[i+1]
		}
	}
	return ""
}

const maxRuleFiles = 64 // of one folder

// files lists a place's files. Absent ones are not in it.
func (p rulePlace) files() ([]string, error) {
	ext := filepath.Ext(p.path)
	if filepath.Base(p.path) != "*"+ext {
		return []string{p.path}, nil
	}
	dir, err := os.Open(filepath.Dir(p.path))
	if err != nil {
		return nil, nil // no folder, no rules
	}
	defer dir.Close()
	names, err := dir.Readdirnames(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list folder: %w", err)
	}
	var out []string
	for _, n := range names {
		if filepath.Ext(n) == ext {
			out = append(out, filepath.Join(filepath.Dir(p.path), n))
		}
	}
	slices.Sort(out)
	if len(out) > maxRuleFiles {
		return out[:maxRuleFiles], fmt.Errorf("the folder has more than %d files: the others are not read", maxRuleFiles)
	}
	return out, nil
}

// load reads one file. It may have been swapped for a pipe or a device: those are not waited for.
func (p rulePlace) load(path string) (*event.RulesLoaded, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	limit := int64(rules.MaxBytes)
	if p.state {
		limit = rules.MaxState
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	return p.read(path, p.level, b), nil
}

// ruleFiles takes a snapshot of every permission file that counts for a session, and another of each that
// changes. Between two looks a file can change and change back: the kernel's record of the writes tells.
type ruleFiles struct {
	places []rulePlace
	inline *event.RulesLoaded // rules in the command line itself
	seen   map[string]ruleState
	quick  atomic.Int32 // looks still to be taken at every tick, since a write was seen
}

type ruleState struct {
	dev, ino    uint64
	size, mtime int64
	content     string // digest, or the error it was read with
}

func newRuleFiles(s *event.SessionStart) *ruleFiles {
	w := &ruleFiles{places: rulePlaces(s.Home, s.CWD, s.Workspace, s.Command), seen: map[string]ruleState{}}
	if text := settingsFlag(s.Command); strings.HasPrefix(text, "{") {
		w.inline = rules.Claude("--settings", rules.CommandLine, []byte(text))
	}
	return w
}

// start returns a snapshot of everything that is there.
func (w *ruleFiles) start() []event.Event {
	list := w.look("start")
	if w.inline != nil {
		w.inline.At = "start"
		list = append(list, event.New(boottime(), nil, w.inline))
	}
	return list
}

// due says whether to look at tick n of the background loop.
func (w *ruleFiles) due(n int) bool {
	if w.quick.Load() > 0 {
		w.quick.Add(-1)
		return true
	}
	return n%5 == 4
}

// touched hears of a path that was opened for writing, renamed or deleted: what is written comes later.
func (w *ruleFiles) touched(path string) {
	for _, p := range w.places {
		if p.path == path || strings.HasPrefix(filepath.Base(p.path), "*") && filepath.Dir(p.path) == filepath.Dir(path) {
			w.quick.Store(10)
			return
		}
	}
}

// look returns a snapshot of each file that is not as it was.
func (w *ruleFiles) look(at string) []event.Event {
	var list []event.Event
	emit := func(r *event.RulesLoaded) {
		r.At = at
		list = append(list, event.New(boottime(), nil, r))
	}
	there := map[string]bool{}
	for _, p := range w.places {
		files, err := p.files()
		if err != nil {
			if w.seen[p.path].content != err.Error() {
				emit(&event.RulesLoaded{Agent: p.agent, Path: p.path, Level: p.level, Rules: []event.Rule{}, Error: rules.NotRead + ": " + err.Error()})
			}
			w.seen[p.path] = ruleState{content: err.Error()}
			there[p.path] = true
		}
		for _, path := range files {
			now, err := stateOf(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
				continue
			}
			there[path] = true
			was := w.seen[path]
			if now.content = was.content; now == was && err == nil {
				continue
			}
			r, err := p.load(path)
			if err != nil {
				r = &event.RulesLoaded{Agent: p.agent, Path: path, Level: p.level, Rules: []event.Rule{}, Error: rules.NotRead + ": " + err.Error()}
			}
			now.content = p.content(r)
			if now.content != was.content {
				emit(r)
			}
			w.seen[path] = now
		}
	}
	for path := range w.seen {
		if there[path] {
			continue
		}
		delete(w.seen, path)
		if p := w.placeOf(path); p != nil {
			emit(&event.RulesLoaded{Agent: p.agent, Path: path, Level: p.level, Rules: []event.Rule{}, Note: "the file is gone"})
		}
	}
	return list
}

// content tells two snapshots of a file apart.
func (p rulePlace) content(r *event.RulesLoaded) string {
	if !p.state {
		return r.SHA256 + r.Error
	}
	s := r.Error + r.Note
	for _, rule := range r.Rules {
		s += "\x00" + rule.ID
	}
	return s
}

func (w *ruleFiles) placeOf(path string) *rulePlace {
	for i, p := range w.places {
		if p.path == path || filepath.Dir(p.path) == filepath.Dir(path) && strings.HasPrefix(filepath.Base(p.path), "*") && filepath.Ext(p.path) == filepath.Ext(path) {
			return &w.places[i]
		}
	}
	return nil
}

func stateOf(path string) (ruleState, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return ruleState{}, err
	}
	return ruleState{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: st.Mtim.Nano()}, nil
}
