package verify

import (
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// maxListed is how many descendants of one action are written out. What is named or unexplained is
// always written.
const maxListed = 10_000

// An image is what is known of one program of an action when its children are judged.
type image struct {
	script   *shell.Script  // the text it interprets, when it is a shell that was given one
	cmd      *shell.Command // the command of the text it is, when it is named
	host     *shell.Script  // the text that names it
	relation string
	reason   string // reason that its children inherit
	startup  bool   // it reads the user's start-up files before the text
	began    bool   // a program of its text has run: the start-up files are behind it
	matched  map[*shell.Command]bool
	told     map[string]bool // aliases that were told
	snapshot bool            // it reads Claude's shell snapshot before the text
}

// explain says of every program of an action whether the text names it, a named one started it, or
// nothing explains it.
func (v *judge) explain(it *item) {
	k := it.cand
	root := k.root
	states := make(map[*proctree.Exec]*image)
	first := &image{relation: Named, host: it.script, matched: make(map[*shell.Command]bool)}
	if it.script != nil && len(k.carried.texts) > 0 {
		first.script = it.script
		first.startup, first.snapshot = k.carried.login, k.carried.snippet
	} else if it.script != nil && it.script.Err == nil && len(it.script.Commands) > 0 {
		first.cmd = it.script.Commands[0]
		first.script = inner(first.cmd, it.script)
	}
	states[root] = first
	var lost []*proctree.Exec // unexplained
	for _, x := range v.execsOf(k) {
		if x == root {
			v.list(it, x, Named, "")
			continue
		}
		s := x.Spawner()
		st := states[s]
		img := v.classify(it, x, s, st)
		if last := x.Proc.Execs[len(x.Proc.Execs)-1]; x != last || len(x.Proc.Children()) > 0 {
			states[x] = img // nothing else will ask what started it
		}
		if img.relation == Unexplained {
			lost = append(lost, x)
			continue
		}
		v.list(it, x, img.relation, img.reason)
		if img.relation == Named && img.cmd != nil {
			v.shadow(it, x, img)
			if x.Truncated {
				v.doubt(it, EvidenceLost, "arguments-cut", sayf("The arguments of %s were not recorded whole.", quote(program(x))), x.Seq)
			}
		}
		if it.allowed.Source == "rule" || it.allowed.Type == "always_rule_match" {
			v.exceeds(it, x, st, img)
		}
	}
	for _, x := range lost {
		v.unexplained(it, x, states[x.Spawner()])
	}
	v.attempts(it, k)
	v.opaque(it)
}

// execsOf is everything that ran for a candidate, by time: the root exec and what came after or below
// it, and what the assistant's preamble in the same process started.
func (v *judge) execsOf(k *candidate) []*proctree.Exec {
	if k.execs != nil {
		return k.execs
	}
	var all []*proctree.Exec
	k.root.Proc.Descend(func(p *proctree.Proc) bool {
		o := v.cast.owners[p.ID]
		if o.cand != k && p != k.root.Proc {
			return false
		}
		for _, x := range p.Execs {
			if p != k.root.Proc || compareExecs(x, k.root) >= 0 {
				all = append(all, x)
			}
		}
		return true
	})
	slices.SortStableFunc(all, compareExecs)
	k.execs = all
	return all
}

func (v *judge) list(it *item, x *proctree.Exec, relation, reason string) {
	it.count++
	if relation == Descendant && len(it.execs) >= maxListed {
		return
	}
	argv := x.Argv
	if argv == nil {
		argv = []string{}
	}
	it.execs = append(it.execs, Exec{Argv: argv, Relation: relation, Reason: reason, Exe: x.Exe, TGID: x.Proc.Key.TGID, StartNS: x.Proc.Key.StartNS, Seq: x.Seq})
}

// inner is the text a named command interprets itself.
func inner(c *shell.Command, host *shell.Script) *shell.Script {
	if c.Inner != nil {
		return c.Inner
	}
	// busybox sh -c TEXT is one program: the applet is its payload.
	if b := c.Base(); (b == "busybox" || b == "toybox") && host != nil {
		for _, p := range host.Payloads(c) {
			return p.Inner
		}
	}
	return nil
}

// classify explains one program by the one that started it.
func (v *judge) classify(it *item, x, by *proctree.Exec, st *image) *image {
	if st == nil {
		// Started by the assistant's own preamble, or by something whose exec was not seen.
		return v.descendant("shell-startup")
	}
	if st.script != nil {
		if c := v.named(st, x); c != nil {
			st.began = true
			st.matched[c] = true
			return v.asNamed(c, st.script)
		}
		if st.script.Err != nil {
			return v.descendant("unparsed")
		}
		if st.startup && v.atStartup(by, x, st) || st.snapshot && !st.began && ofSnapshot(x) {
			return v.descendant("shell-startup")
		}
		if st.script.Dynamic {
			return v.descendant("dynamic-text")
		}
		return &image{relation: Unexplained}
	}
	if st.cmd != nil && st.host != nil {
		for _, c := range st.host.Payloads(st.cmd) {
			if matches(c, x) {
				return v.asNamed(c, st.host)
			}
		}
		if st.cmd.Reads {
			return v.descendant("stdin-fed")
		}
	}
	if st.reason == "stdin-fed" || st.reason == "dynamic-text" || st.reason == "unparsed" || st.reason == "shell-startup" {
		return v.descendant(st.reason) // what it started is there for the same reason
	}
	return v.descendant("started by " + program(by))
}

// descendant is an image of which nothing is known but why it ran. There may be a hundred thousand.
func (v *judge) descendant(reason string) *image {
	img := v.plain[reason]
	if img == nil {
		img = &image{relation: Descendant, reason: reason}
		v.plain[reason] = img
	}
	return img
}

func (v *judge) asNamed(c *shell.Command, host *shell.Script) *image {
	img := &image{relation: Named, cmd: c, host: host, script: inner(c, host)}
	if img.script != nil {
		img.matched = make(map[*shell.Command]bool)
		for _, a := range c.Args() {
			if p := a.Prefix(); strings.HasPrefix(p, "-") && !strings.HasPrefix(p, "--") && strings.ContainsAny(p, "li") && strings.Contains(p, "c") || p == "-l" || p == "--login" || p == "-i" {
				img.startup = true
			}
		}
	}
	return img
}

// named finds the command of a shell's text that a program is.
func (v *judge) named(st *image, x *proctree.Exec) *shell.Command {
	var loose *shell.Command
	for _, c := range st.script.Commands {
		if !c.InShell() || c.Kind == shell.Function {
			continue
		}
		if matches(c, x) {
			// A command whose every word is open fits anything: only when nothing fits better.
			if c.Words[0].Blank() {
				loose = c
				continue
			}
			return c
		}
	}
	return loose
}

// matches compares a command of a text with a program that ran.
func matches(c *shell.Command, x *proctree.Exec) bool {
	if len(x.Argv) == 0 {
		return false
	}
	if t := toolOf(x); t != "" {
		return c.Name() == t && c.MatchTail(x.Argv[1:])
	}
	names, args := callees(x)
	if x.Truncated && len(args) > 0 {
		// The last argument is cut; what is left must be a beginning of the command's.
		if w := c.Words; len(w) > len(args) {
			if v, ok := w[0].Static(); ok {
				return slices.Contains(names, v)
			}
		}
	}
	return c.Match(names, args)
}

// ofSnapshot: what reading Claude's snapshot itself starts, in the versions that were seen.
func ofSnapshot(x *proctree.Exec) bool {
	return slices.Equal(x.Argv, []string{"id", "-u"}) || slices.Equal(x.Argv, []string{"base64", "-d"})
}

// atStartup: a program that a shell started before its text, from a start-up file. The evidence is
// the open of such a file with none of the text's programs in between; only where no opens are on
// record at all the order alone has to do.
func (v *judge) atStartup(by, x *proctree.Exec, st *image) bool {
	opened := uint64(0)
	for _, at := range v.facts.startup[by.Proc.Key] {
		if at <= x.TimeNS {
			opened = max(opened, at)
		}
	}
	if opened == 0 {
		return !st.began && v.facts.opens == 0
	}
	if !st.began {
		return true
	}
	// After the text began only a logout file, opened since, can be at work.
	return opened > v.lastNamed(by, x)
}

// lastNamed is when the last program of a shell's own text started before x.
func (v *judge) lastNamed(by, x *proctree.Exec) uint64 {
	last := by.TimeNS
	for _, ch := range by.Proc.Children() {
		if ch != x.Proc && len(ch.Execs) > 0 && ch.Execs[0].TimeNS < x.TimeNS {
			last = max(last, ch.Execs[0].TimeNS)
		}
	}
	return last
}

// unexplained files a program that the shell started and its text does not name.
func (v *judge) unexplained(it *item, x *proctree.Exec, st *image) {
	if st != nil && (st.snapshot || st.startup) {
		if name := standsFor(st, x); name != "" {
			v.list(it, x, Descendant, "alias-or-function "+name)
			if !st.told[name] {
				if st.told == nil {
					st.told = make(map[string]bool)
				}
				st.told[name] = true
				v.find(it, Finding{Code: ApprovalHidden, Severity: Info, Reason: "alias-or-function", Records: []uint64{it.cand.root.Seq, x.Seq},
					Message: sayf("%s is an alias or function from the shell's start-up files; it ran %s.", quote(name), quoteArgv(x.Argv))})
			}
			return
		}
	}
	if it.ownWord() {
		v.list(it, x, Descendant, "started by "+program(x.Spawner()))
		return
	}
	v.list(it, x, Unexplained, "")
	if !v.whole("process.exec", "process.fork") {
		v.doubt(it, EvidenceLost, "unexplained", sayf("%s ran and the text does not name it; programs were lost, so what started it may be missing.", quoteArgv(x.Argv)), x.Seq)
		return
	}
	msg := sayf("%s ran as part of %s, whose text does not name it.", quoteArgv(x.Argv), quote(it.ran()))
	for _, i := range it.findings {
		if v.findings[i].Message == msg {
			v.again(i, x.Seq, Contradicts, it)
			return
		}
	}
	v.find(it, Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "unexplained", Records: []uint64{it.cand.root.Seq, x.Seq}, Message: msg})
}

// standsFor is a command word of a shell's text that no program answers to, and that therefore may be
// an alias or a function from a start-up file. An alias passes its arguments on, so a name that is
// usually a program must show up with the same arguments.
func standsFor(st *image, x *proctree.Exec) string {
	_, args := callees(x)
	for _, c := range st.script.Commands {
		n := c.Name()
		if c.Kind != shell.Program || !c.InShell() || n == "" || strings.Contains(n, "/") || st.matched[c] {
			continue
		}
		if (noRunner[n] || shell.IsShell(n) || isInterpreter(n) || n == "git") && !c.MatchTail(args) {
			continue
		}
		return n
	}
	return ""
}

// attempts keeps what could not be started: a search through PATH that ended well is not an attempt.
func (v *judge) attempts(it *item, k *candidate) {
	if v.failed == nil {
		v.failed = make(map[*candidate][]failedExec)
		for _, f := range v.facts.failed {
			if o := v.cast.ownerOf(f.proc); o.cand != nil {
				v.failed[o.cand] = append(v.failed[o.cand], f)
			}
		}
	}
	for _, f := range v.failed[k] {
		if f.ns < k.root.TimeNS {
			continue
		}
		p := v.facts.tree.Lookup(f.proc)
		if slices.ContainsFunc(p.Execs, func(x *proctree.Exec) bool { return x.TimeNS > f.ns && path.Base(x.Path) == path.Base(f.path) }) {
			continue
		}
		i := slices.IndexFunc(it.attempts, func(a Attempt) bool { return a.Path == f.path && a.Error == f.err })
		if i >= 0 {
			it.attempts[i].Count++
		} else if len(it.attempts) < 100 {
			it.attempts = append(it.attempts, Attempt{Path: f.path, Error: f.err, Count: 1, Seq: f.seq})
		}
	}
}

// typed: what was typed into the program is an action of its own, shown and answered by itself.
func (v *judge) typed(it *item) bool {
	return slices.ContainsFunc(v.items, func(o *item) bool { return o.kind == "stdin" && o.start() >= it.start() })
}

// opaque tells when the text that was approved did not show the code it ran.
func (v *judge) opaque(it *item) {
	if it.script == nil || it.script.Err != nil || it.allowed.Source != "terminal" {
		return
	}
	what, why := it.ran(), "stdin-fed"
	if len(it.script.Opaque) > 0 {
		what, why = it.script.Opaque[0].What, it.script.Opaque[0].Why
	} else if v.typed(it) || !slices.ContainsFunc(it.execs, func(x Exec) bool { return x.Relation == Descendant && x.Reason == why }) {
		return // a program that reads its standard input, and was given nothing to run
	}
	f := Finding{Code: ApprovalHidden, Severity: Info, Reason: "opaque-code", Records: []uint64{it.cand.root.Seq},
		Message: sayf("%s runs code that its text does not show: %s (%s).", quote(it.ran()), quote(what), why)}
	for _, x := range it.execs {
		if x.Relation == Descendant && (x.Reason == "stdin-fed" || x.Reason == "dynamic-text") {
			f.Severity = Warning
			f.Records = append(f.Records, x.Seq)
		}
	}
	if len(f.Records) > 20 {
		f.Records = f.Records[:20]
	}
	v.find(it, f)
}
