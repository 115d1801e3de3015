package verify

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// A judge works on one session.
type judge struct {
	facts    *facts
	cast     *cast
	ledger   LedgerState
	mode     mode
	search   []string // PATH of the session
	items    []*item
	findings []Finding
	keeps    []Housekeeping
	reach    *Network
	doubtful bool   // the session as a whole could not be judged
	last     uint64 // end of the record, boottime

	byName  map[string]*proctree.Exec // where a bare name was first found, per PATH
	written map[string][]fileRecord   // writes by path
	shas    map[string][]digest
	plain   map[string]*image
	edits   map[uint64]*item   // edits by the records of their writes
	nodes   map[inode][]digest // digests of executables
	failed  map[*candidate][]failedExec
}

func newJudge(f *facts, l LedgerState) *judge {
	v := &judge{facts: f, ledger: l, byName: make(map[string]*proctree.Exec), written: make(map[string][]fileRecord), shas: make(map[string][]digest), plain: make(map[string]*image), edits: make(map[uint64]*item), nodes: make(map[inode][]digest)}
	v.last = f.lastNS
	v.mode = commandLineMode(f.start, f.startSeq)
	v.search = f.place.search
	for _, r := range f.files {
		if r.how != "read" {
			v.written[r.path] = append(v.written[r.path], r)
		}
	}
	for _, d := range f.digests {
		if d.SHA256 != "" {
			v.shas[d.SHA256] = append(v.shas[d.SHA256], d)
			if d.At != "prompt" && d.Ino != 0 {
				n := inode{d.Dev, d.Ino}
				v.nodes[n] = append(v.nodes[n], d)
			}
		}
	}
	return v
}

func (v *judge) run() {
	v.cast = newCast(v.facts)
	if len(v.search) == 0 && v.cast.root != nil {
		v.search = splitPath(v.cast.root.Execs[0].Env["PATH"])
	}
	if v.cast.hasAgent {
		v.link()
		for _, it := range v.items {
			v.read(it)
			v.cover(it)
		}
		v.pair()
		for _, it := range v.items {
			if it.link == "time" {
				v.cover(it)
			}
		}
		v.presume()
	} else {
		v.ownCommand()
	}
	sortItems(v.items)
	for i, it := range v.items {
		it.id = "x" + strconv.Itoa(i+1)
	}
	for _, it := range v.items {
		v.judgeItem(it)
	}
	v.judgeRules()
	v.judgeSpoofs()
	v.effects()
	v.evidence()
	for _, it := range v.items {
		it.verdict = verdictOf(it.broken, it.doubtful)
	}
}

func verdictOf(broken, doubtful bool) Verdict {
	switch {
	case broken:
		return Discrepancy
	case doubtful:
		return Indeterminate
	}
	return Verified
}

// read parses the text of an action as the shell that ran it would.
func (v *judge) read(it *item) {
	if it.kind != "command" {
		return
	}
	lang := shell.Bash
	if it.cand != nil && it.cand.root != nil {
		lang = it.cand.carried.lang
		if len(it.cand.carried.texts) == 0 {
			it.script = shell.Parse(shell.Join(it.cand.root.Argv), shell.Bash)
			return
		}
	}
	if t := it.text(); t != "" {
		it.script = shell.Parse(t, lang)
	}
}

// ownCommand is a session without an assistant: the user's own command, allowed by having been given.
func (v *judge) ownCommand() {
	it := &item{kind: "command", link: "session", covered: true}
	it.allowed = Allowed{Source: "user-command-line", Type: "command-line", Records: []uint64{v.facts.startSeq}}
	if p := v.cast.root; p != nil {
		c := &candidate{top: p, root: p.Execs[0], startNS: p.Execs[0].TimeNS, carried: carriedBy("", p.Execs[0])}
		v.cast.file(c)
		v.cast.candidates = nil
		for _, q := range v.cast.procs {
			if v.cast.owners[q.ID] == (owner{}) && q.Seen && q.Parent != p.Parent {
				v.cast.owners[q.ID] = owner{kind: command, cand: c}
			}
		}
		it.cand, c.item = c, it
		v.read(it)
	}
	v.items = append(v.items, it)
}

// ownWord: the user gave the command himself; nothing in it can contradict an approval.
func (it *item) ownWord() bool {
	return it.allowed.Source == "user-command-line" || it.allowed.Source == "user-shell"
}

// presume looks again at what an assistant started and nothing explains: a program that starts before
// any command and stays is a configured server; where the assistant marks its model's commands and
// this one has no mark, it is the assistant's own.
func (v *judge) presume() {
	marks := slices.ContainsFunc(v.cast.candidates, func(c *candidate) bool { return c.callID != "" || len(c.chain) > 0 && c.agent == codex })
	first := v.last
	for _, it := range v.items {
		if it.call != nil || it.decision != nil {
			first = min(first, it.start())
		}
	}
	for _, it := range v.items {
		c := it.cand
		if it.covered || c == nil || it.call != nil || it.decision != nil || it.shown != nil || c.root == nil || c.stray || c.callID != "" {
			continue
		}
		text, _, isText := shellText(c.root)
		configured := v.configured(c, text)
		switch {
		case configured != nil:
			c.keep = configured
		case c.agent == codex && marks && isText && !c.sandbox && len(c.chain) == 0 && v.hooked(it):
			c.keep = &keep{kind: "hook", presumed: true}
		case (c.agent == codex || c.agent == claude) && !isText && len(c.chain) == 0 && c.startNS < first && (c.alive || c.endNS > first && first < v.last):
			c.keep = &keep{kind: "mcp-server", presumed: true}
		}
		it.gone = c.keep != nil
	}
	v.items = slices.DeleteFunc(v.items, func(it *item) bool { return it.gone })
}

// configured: the assistant's settings, as they were read, name this hook or server.
func (v *judge) configured(c *candidate, text string) *keep {
	for _, r := range v.facts.rules {
		if r.Agent != c.agent {
			continue
		}
		for _, rule := range r.Rules {
			switch rule.Tool {
			case "hook", "mcp", "mcp-server", "notify", "statusline", "helper":
				if rule.Pattern == text && text != "" || rule.Pattern == shell.Join(c.root.Argv) || len(rule.Words) > 0 && prefixMatchesArgv(rule.Words, c.root.Argv) {
					return &keep{kind: rule.Tool}
				}
			}
		}
	}
	return nil
}

func prefixMatchesArgv(prefix [][]string, argv []string) bool {
	if len(argv) < len(prefix) {
		return false
	}
	for i, alt := range prefix {
		if !slices.Contains(alt, argv[i]) && (i > 0 || !slices.Contains(alt, baseOf(argv[i]))) {
			return false
		}
	}
	return true
}

// hooked: a witness says that the assistant runs hooks in this session.
func (v *judge) hooked(it *item) bool {
	for _, k := range v.facts.calls {
		for i := range k.results {
			if k.results[i].decider() == "hook" {
				return true
			}
		}
	}
	return false
}

// find files a finding. A discrepancy breaks its action, or, without one, the session.
func (v *judge) find(it *item, f Finding) {
	slices.Sort(f.Records)
	f.Records = slices.Compact(f.Records)
	if f.Records == nil {
		f.Records = []uint64{}
	}
	if it != nil {
		f.Action = it.id
		it.findings = append(it.findings, len(v.findings))
		it.broken = it.broken || f.Severity == Contradicts
	}
	v.findings = append(v.findings, f)
}

// doubt makes an action (nil: the session) indeterminate and says why.
func (v *judge) doubt(it *item, code, reason, message string, records ...uint64) {
	v.find(it, Finding{Code: code, Severity: Warning, Reason: reason, Message: message, Records: records})
	if it != nil {
		it.doubtful = true
	} else {
		v.doubtful = true
	}
}

func sayf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// judgeItem judges one action.
func (v *judge) judgeItem(it *item) {
	ran := it.cand != nil && it.cand.root != nil
	switch {
	case it.kind != "command":
		v.judgeOther(it)
	case !ran:
		v.judgeUnrun(it)
	default:
		v.judgeAnswer(it)
		v.judgeText(it)
		v.explain(it)
		v.judgeEnvironment(it)
		v.judgeFolder(it)
		v.judgeWrapped(it)
		v.judgeOmitted(it)
		v.judgeScripts(it)
		v.judgeRecord(it)
		v.judgeModel(it)
		v.judgeHooked(it)
		v.judgeDenyRules(it)
	}
}

func splitPath(s string) []string {
	var out []string
	for d := range splitSeq(s) {
		if d != "" {
			out = append(out, d)
		}
	}
	return out
}

func (v *judge) report() *Report {
	r := &Report{Session: v.sessionID(), Actions: []Action{}, Findings: v.findings, Housekeeping: v.keeps, Network: v.reach, Coverage: v.coverage()}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	if r.Housekeeping == nil {
		r.Housekeeping = []Housekeeping{}
	}
	r.Ledger = LedgerReport{v.ledger.OK, v.ledger.Records, v.ledger.RootHash, v.ledger.Problem, v.ledger.Anchored}
	broken, doubtful := false, v.doubtful
	for _, f := range v.findings {
		broken = broken || f.Severity == Contradicts
	}
	for _, it := range v.items {
		r.Actions = append(r.Actions, v.action(it))
		doubtful = doubtful || it.doubtful
	}
	r.Verdict = verdictOf(broken, doubtful)
	return r
}

// lineage is who asked for a call: the sub-agent, and the thread that started its thread.
func (v *judge) lineage(c *call) (parent, subagent string) {
	parent, subagent = c.ParentThread, c.Subagent
	for _, t := range v.facts.contexts {
		if t.Agent == c.Agent && t.Thread == c.Thread && c.Thread != "" {
			parent, subagent = firstOf(parent, t.ParentThread), firstOf(subagent, t.Subagent)
		}
	}
	return parent, subagent
}

func (v *judge) sessionID() string {
	if v.facts.start != nil {
		return v.facts.start.ID
	}
	return ""
}

func (v *judge) action(it *item) Action {
	a := Action{
		ID: it.id, Verdict: it.verdict, Kind: it.kind, Agent: it.agent(), Command: it.text(), Allowed: it.allowed, Link: it.link,
		Execs: it.execs, ExecCount: it.count, Attempts: it.attempts, Findings: it.findings, StartNS: it.start(),
	}
	if a.Execs == nil {
		a.Execs = []Exec{}
	}
	if it.script != nil && it.script.Err != nil {
		a.Static = "unparsed"
	}
	if c := it.call; c != nil && len(c.seqs) > 0 {
		a.Asked = &Asked{ID: c.ID, Source: c.Source, Tool: c.Tool, Command: c.text(), Thread: c.Thread, Records: c.records()}
		a.Asked.Parent, a.Asked.Agent = v.lineage(c)
		a.Paths = c.Paths
	}
	if k := it.cand; k != nil {
		a.EndNS = it.end(v.last)
		for _, x := range k.chain {
			a.Wrapper = append(a.Wrapper, wrapperOf(k.agent, x))
		}
		if k.carried != nil && k.carried.grammar != "argv" && k.carried.grammar != "shell" {
			a.Wrapper = append(a.Wrapper, k.carried.grammar)
		}
		if x := k.root; x != nil {
			a.Root = &Root{TGID: x.Proc.Key.TGID, StartNS: x.Proc.Key.StartNS, Argv: x.Argv, Exe: x.Exe, Seq: x.Seq, TimeNS: x.TimeNS}
			if a.Root.Argv == nil {
				a.Root.Argv = []string{}
			}
		}
	}
	return a
}

func (v *judge) decisionsFor(text string, before uint64) (latest *decision) {
	for _, d := range v.facts.decisions {
		if d.answered() <= before && alike(d.command, text) >= invisible && (latest == nil || d.answered() > latest.answered()) {
			latest = d
		}
	}
	return latest
}
