package verify

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/proctree"
)

// maxPaths is how many files of one kind are told one by one for an action; the rest is a number.
const maxPaths = 50

// effects puts files, sockets and escapes on the account of whoever did them.
func (v *judge) effects() {
	v.house()
	v.fileEffects()
	v.unasked()
	v.delegations()
	v.escapes()
	v.network()
	v.sandboxClaims()
}

// account is who answers for a process: an action, or the assistant itself (nil item).
func (v *judge) account(o owner) (it *item, own bool) {
	if o.cand != nil {
		if o.cand.item != nil && !o.cand.item.gone {
			return o.cand.item, false
		}
		return nil, true // housekeeping
	}
	return nil, true
}

type effectKey struct {
	it   *item
	code string
	how  string
	path string
}

func (v *judge) fileEffects() {
	told := make(map[effectKey]int) // index of the finding
	count := make(map[effectKey]int)
	records := slices.Clone(v.facts.files)
	slices.SortStableFunc(records, func(a, b fileRecord) int { return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.seq, b.seq)) })
	filled := v.filledFolders(records)
	for _, r := range records {
		o := v.cast.ownerOf(r.proc)
		if o.kind == witness {
			continue
		}
		it, own := v.account(o)
		if v.wraps(o, r) {
			continue
		}
		if r.dir && filled[effectKey{it: it, path: r.path}] {
			continue // what was put into it is told
		}
		f, ok := v.fileFinding(r, o, it, own)
		if !ok {
			continue
		}
		k := effectKey{it: it, code: f.Code, path: f.Path}
		if i, ok := told[k]; ok {
			v.again(i, r.seq, f.Severity, it)
			continue
		}
		group := effectKey{it: it, code: f.Code, how: f.Reason}
		if count[group]++; count[group] > maxPaths {
			continue
		}
		told[k] = len(v.findings)
		v.find(it, f)
	}
	for k, n := range count {
		if n > maxPaths {
			v.find(k.it, Finding{Code: k.code, Severity: Warning, Reason: k.how, Records: []uint64{},
				Message: sayf("%d more files beside the %d named.", n-maxPaths, maxPaths)})
		}
	}
}

// wraps: it was done by what the assistant puts around a command, before the command: a sandbox builds its own root.
// What the command itself does is done by other programs.
func (v *judge) wraps(o owner, r fileRecord) bool {
	// bwrap makes the root in a file system of its own, mounted there; a program of its name reaches nothing else so.
	if o.cand == nil || len(o.cand.chain) == 0 && o.cand.keep == nil || !within(r.path, "/newroot") && !within(r.path, "/oldroot") {
		return false
	}
	x := v.imageOf(r)
	return x != nil && (slices.Contains(o.cand.chain, x) || o.cand.keep != nil && o.cand.keep.kind == "sandbox-probe" && isBwrap(x))
}

// filledFolders are folders that something else was written into, per account.
func (v *judge) filledFolders(records []fileRecord) map[effectKey]bool {
	made := make(map[effectKey]bool)
	for _, r := range records {
		if r.dir {
			it, _ := v.account(v.cast.ownerOf(r.proc))
			made[effectKey{it: it, path: r.path}] = false
		}
	}
	if len(made) == 0 {
		return nil
	}
	for _, r := range records {
		if r.how == "read" || r.dir {
			continue
		}
		it, _ := v.account(v.cast.ownerOf(r.proc))
		for d := path.Dir(r.path); len(d) > 1; d = path.Dir(d) {
			k := effectKey{it: it, path: d}
			if _, ok := made[k]; ok {
				made[k] = true
			}
		}
	}
	return made
}

// again adds a record to a finding that says the same.
func (v *judge) again(i int, seq uint64, s Severity, it *item) {
	f := &v.findings[i]
	if len(f.Records) < 16 && !slices.Contains(f.Records, seq) {
		f.Records = append(f.Records, seq)
	}
	if rankOf(s) > rankOf(f.Severity) {
		f.Severity = s
		if it != nil && s == Contradicts {
			it.broken = true
		}
	}
}

func rankOf(s Severity) int {
	switch s {
	case Info:
		return 1
	case Warning:
		return 2
	}
	return 3
}

// raise is the next severity up: for a place that grants power later or holds secrets.
func raise(s Severity) Severity {
	if s == Info {
		return Warning
	}
	return Contradicts
}

func lower(s Severity) Severity {
	if s == Contradicts {
		return Warning
	}
	return Info
}

func (v *judge) fileFinding(r fileRecord, o owner, it *item, own bool) (Finding, bool) {
	f := Finding{Path: r.path, Records: []uint64{r.seq}}
	who := v.doer(r)
	named := it != nil && v.textNames(it, r.path)
	f.Severity = Warning
	if named {
		f.Severity = Info
	}
	switch {
	case r.how == "read":
		return v.secretFinding(f, r, o, it, own, named, who)
	case r.class.rules:
		return v.ruleFinding(f, r, o, it, own, who)
	case !r.class.outside && r.class.power == "":
		return f, false // kept for other reasons
	case own && o.kind != command:
		// The assistant's own files are its own business; what it writes elsewhere is told once.
		if v.edits[r.seq] != nil {
			if !r.class.outside && r.class.power == "" {
				return f, false
			}
			f.Code, f.Severity = WriteOutside, Info
			if r.class.power != "" {
				f.Severity = Warning
			}
			f.Message = sayf("The change you were asked about is outside the workspace: %s.", quote(r.path))
			return f, true
		}
		if v.facts.place.inHomes(r.path) || slices.Contains(v.cast.agents, path.Base(r.path)) || ownHabit(r.path) || r.class.unknown {
			return f, false // its own state, its own program being updated
		}
		if r.class.cache || o.kind == launcher {
			f.Severity = Info
		}
	case own:
		if v.facts.place.inHomes(r.path) {
			return f, false // the shell snapshot
		}
		f.Severity = Info // housekeeping
	}
	f.Code = WriteOutside
	switch {
	case r.class.cache:
		// One finding for all caches and logs of an action.
		f.Severity, f.Reason, f.Path = Info, "cache", ""
		f.Message = sayf("%s wrote to its caches, logs or history in your home.", who)
	case r.class.unknown:
		f.Reason = "unresolved"
		f.Message = sayf("%s %s %s; where that lies could not be told.", who, r.how, quote(r.path))
	case r.class.power != "":
		f.Reason = r.class.power
		f.Severity = raise(f.Severity)
		f.Message = sayf("%s %s %s, which takes effect later without anyone being asked (%s).", who, r.how, quote(r.path), r.class.power)
	default:
		f.Message = sayf("%s %s %s, outside the workspace.", who, r.how, quote(r.path))
	}
	if it != nil && it.ownWord() && f.Severity == Contradicts {
		f.Severity = Warning // it was your own command
	}
	return f, true
}

// ownHabit: files in the user's home that an assistant keeps up by itself.
func ownHabit(name string) bool {
	for _, s := range []string{"/applications/claude-code-url-handler.desktop", "/.config/git/ignore", "/applications", "/mimeapps.list"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

func (v *judge) secretFinding(f Finding, r fileRecord, o owner, it *item, own, named bool, who string) (Finding, bool) {
	f.Code, f.Reason = SecretRead, r.secret.kind
	x := v.imageOf(r)
	owns := x != nil && (slices.Contains(r.secret.owners, path.Base(x.Exe)) || slices.Contains(r.secret.owners, program(x)))
	if own {
		// An assistant reads its own credentials, and whatever its file tools are asked to read.
		if r.secret.kind == "assistant-key" || owns || o.kind == launcher {
			return f, false
		}
		if o.kind == command {
			f.Severity = Info
			f.Message = sayf("%s, started by the assistant for itself, read %s (%s).", who, quote(r.path), r.secret.kind)
			return f, true
		}
		f.Message = sayf("The assistant itself read %s (%s).", quote(r.path), r.secret.kind)
		switch r.secret.kind {
		case "ssh-key", "gpg-key", "browser", "password":
			// None of these is the key to a model provider; without a request for it there is no reason.
			if (o.agent == claude || o.agent == codex) && v.keepsRecord(o.agent) && !v.askedToRead(r.path) {
				f.Severity = Contradicts
				f.Message = sayf("The assistant itself read %s (%s), and its record asks for no such thing.", quote(r.path), r.secret.kind)
			}
		}
		return f, true
	}
	if !r.secret.project {
		f.Severity = raise(f.Severity)
	}
	if owns {
		f.Severity = lower(f.Severity)
	}
	if it != nil && it.ownWord() && f.Severity == Contradicts {
		f.Severity = Warning
	}
	f.Message = sayf("%s read %s (%s).", who, quote(r.path), r.secret.kind)
	if !named {
		f.Message = sayf("%s read %s (%s), which the command does not name.", who, quote(r.path), r.secret.kind)
	}
	return f, true
}

// askedToRead: a call names the file, or a folder it is in.
func (v *judge) askedToRead(name string) bool {
	for _, c := range v.facts.calls {
		for _, p := range c.Paths {
			if p != "" && within(name, absPath(p, firstOf(c.CWD, v.facts.place.workspace))) {
				return true
			}
		}
	}
	return false
}

// ruleFinding is a write to what decides what an assistant may do.
func (v *judge) ruleFinding(f Finding, r fileRecord, o owner, it *item, own bool, who string) (Finding, bool) {
	f.Code, f.Reason = RuleSelfGranted, "file"
	if r.class.mild {
		f.Reason = "instructions"
	}
	if own {
		if v.edits[r.seq] != nil {
			f.Severity = Info
			if !r.class.mild {
				f.Severity = Warning
			}
			f.Message = sayf("The assistant changed %s, which decides what it may do or is told to do; you were asked about the change.", quote(r.path))
			return f, true
		}
		// Its own settings: what they newly allow is judged by the rules themselves (judgeRules).
		return f, false
	}
	if !r.class.mild {
		f.Severity = raise(f.Severity)
	}
	if it != nil && it.ownWord() && f.Severity == Contradicts {
		f.Severity = Warning
	}
	f.Message = sayf("%s %s %s, which decides what an assistant may do or is told to do.", who, r.how, quote(r.path))
	return f, true
}

// textNames: the text that was allowed names the file.
func (v *judge) textNames(it *item, file string) bool {
	if it.cand == nil || it.cand.root == nil {
		return false
	}
	home := v.facts.place.home
	if it.script.NamesPath(file, it.cand.root.CWD, home) {
		return true
	}
	return it.script == nil && slices.Contains(it.cand.root.Argv, file)
}

// imageOf is the program that did something.
func (v *judge) imageOf(r fileRecord) *proctree.Exec {
	if p := v.facts.tree.Lookup(r.proc); p != nil {
		return p.ImageAt(r.ns)
	}
	return nil
}

func (v *judge) doer(r fileRecord) string {
	if x := v.imageOf(r); x != nil {
		if s := scriptOf(x); x.Interp != "" {
			return path.Base(s)
		}
		return program(x)
	}
	return "A process"
}

// house lists what the assistant did for itself.
func (v *judge) house() {
	add := func(kind, agent string, presumed bool, x *proctree.Exec, below int) {
		argv := x.Argv
		if argv == nil {
			argv = []string{}
		}
		v.keeps = append(v.keeps, Housekeeping{Kind: kind, Agent: agent, Argv: argv, Exe: x.Exe, Seq: x.Seq, TGID: x.Proc.Key.TGID, Below: below, Presumed: presumed})
	}
	for _, x := range v.cast.main {
		kind := "assistant"
		if slices.Contains(v.cast.self, x) {
			kind = "assistant-self"
		} else if x.Adopted {
			kind = "assistant-daemon"
		}
		add(kind, v.cast.agentOf(x), false, x, 0)
	}
	for _, x := range v.cast.around {
		add("launcher", "", false, x, 0)
	}
	for _, c := range v.cast.candidates {
		if c.keep == nil || c.first() == nil {
			continue
		}
		below := 0
		c.proc().Descend(func(p *proctree.Proc) bool { below += len(p.Execs); return true })
		add(c.keep.kind, c.agent, c.keep.presumed, c.first(), max(below-1, 0))
	}
	slices.SortStableFunc(v.keeps, func(a, b Housekeeping) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(v.keeps) > maxListed {
		v.keeps = v.keeps[:maxListed]
	}
}
