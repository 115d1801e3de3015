package verify

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

// A lab builds the ledger of a session event by event, in the shapes the witnesses really give.
type lab struct {
	t      *testing.T
	events []event.Event
	at     uint64 // boottime of the next event
	pids   uint32
	ids    int
	root   *proc
	ledger LedgerState
}

const second = 1_000_000_000

// A proc is a process of the lab's session.
type proc struct {
	l      *lab
	key    event.ProcessKey
	parent event.ProcessKey
	env    map[string]string
	cwd    string
	last   *event.ProcessExec
}

const (
	labHome = "/home/dev"
	labWork = "/home/dev/app"
	labPath = "/usr/local/bin:/usr/bin:/bin"
)

// newLab starts a session that wraps a command.
func newLab(t *testing.T, argv ...string) *lab {
	l := &lab{t: t, at: 100 * second, pids: 1000, ledger: LedgerState{OK: true, BadRecord: -1, RootHash: "root", Anchored: true}}
	l.root = &proc{l: l, key: event.ProcessKey{TGID: 1000, StartNS: l.at + 1000}, parent: event.ProcessKey{TGID: 900, StartNS: 50},
		env: map[string]string{"PATH": labPath}, cwd: labWork}
	l.add(nil, &event.SessionStart{ID: "s1", Command: argv, PID: 1000, CWD: labWork, Workspace: labWork, Home: labHome, TempDir: "/tmp", SearchDir: labPath,
		Terminal: true, Host: "h", Kernel: "6.12", BootID: "b", Rye: "test"})
	l.add(nil, &event.ObserverAttached{Tier: "lsm", SelfTest: "passed"})
	if len(argv) > 0 {
		l.add(&l.root.key, &event.ProcessFork{Parent: l.root.parent})
		l.root.exec(argv...)
	}
	return l
}

func (l *lab) tick() uint64 { l.at += second / 100; return l.at }

func (l *lab) add(p *event.ProcessKey, b event.Body) uint64 {
	e := event.New(l.tick(), p, b)
	e.Seq = uint64(len(l.events))
	l.events = append(l.events, e)
	return e.Seq
}

func (l *lab) lastSeq() uint64 { return uint64(len(l.events) - 1) }

func exeOf(name string) string {
	switch base := path.Base(name); {
	case path.IsAbs(name) && !strings.HasPrefix(name, "/proc/"):
		if strings.HasPrefix(name, "/bin/") {
			return "/usr" + name
		}
		return name
	case base == "python3":
		return "/usr/bin/python3.11"
	case base == "sh":
		return "/usr/bin/dash"
	default:
		return "/usr/bin/" + base
	}
}

// exec is one more program in the same process.
func (p *proc) exec(argv ...string) *proc {
	return p.execAs(event.ProcessExec{Argv: argv, Path: exeOf(argv[0]), Exe: exeOf(argv[0])})
}

// execAs is exec with the facts given; what is left out is as usual.
func (p *proc) execAs(x event.ProcessExec) *proc {
	x.Parent = p.parent
	x.CWD = p.cwd
	if x.Env == nil {
		x.Env = maps.Clone(p.env)
	} else {
		p.env = maps.Clone(x.Env)
	}
	if x.ExeIno == 0 {
		for _, r := range x.Exe {
			x.ExeIno = x.ExeIno*31 + uint64(r)
		}
	}
	p.last = &x
	p.l.add(&p.key, &x)
	return p
}

// fork is a child that has not become another program yet.
func (p *proc) fork() *proc {
	p.l.pids++
	c := &proc{l: p.l, key: event.ProcessKey{TGID: p.l.pids, StartNS: p.l.at + second/200}, parent: p.key, env: maps.Clone(p.env), cwd: p.cwd}
	p.l.add(&c.key, &event.ProcessFork{Parent: p.key})
	return c
}

func (p *proc) spawn(argv ...string) *proc        { return p.fork().exec(argv...) }
func (p *proc) spawnAs(x event.ProcessExec) *proc { return p.fork().execAs(x) }
func (p *proc) exit() *proc                       { p.l.add(&p.key, &event.ProcessExit{}); return p }
func (p *proc) do(b event.Body) uint64            { return p.l.add(&p.key, b) }
func (p *proc) with(name, value string) *proc {
	p.env = maps.Clone(p.env)
	p.env[name] = value
	return p
}
func (p *proc) run(argv ...string)                       { p.spawn(argv...).exit() }
func (p *proc) open(file string, flags ...string) uint64 { return p.do(opened(file, flags...)) }

func opened(file string, flags ...string) *event.FileOpen {
	o := &event.FileOpen{Path: file, Flags: flags, Dev: 1, Ino: uint64(len(file)) + 7777, Count: 1}
	o.Created = slices.Contains(flags, "O_CREAT")
	return o
}

// A dialog is an approval as the terminal scanner reports it.
type dialog struct {
	l     *lab
	id    string
	agent string
	cmd   string
	p     *event.ApprovalPrompted
	seq   uint64
}

func (l *lab) id(prefix string) string { l.ids++; return fmt.Sprintf("%s%d", prefix, l.ids) }

func (l *lab) prompt(agent, cmd string) *dialog {
	p := &event.ApprovalPrompted{ID: l.id("p"), Agent: agent, Grammar: agent, Kind: "command", Command: cmd, Cols: 100, Rows: 40}
	d := &dialog{l: l, id: p.ID, agent: agent, cmd: cmd, p: p}
	d.seq = l.add(nil, p)
	l.at += second
	return d
}

func (d *dialog) grant(edit ...func(*event.ApprovalGranted)) string {
	g := &event.ApprovalGranted{ID: d.l.id("a"), Prompt: d.id, Agent: d.agent, Kind: d.p.Kind, Command: d.cmd, Decision: event.DecisionThisTime, Attested: true, Key: "y", KeyTimeNS: d.l.tick()}
	for _, e := range edit {
		e(g)
	}
	d.l.add(nil, g)
	return g.ID
}

func (d *dialog) deny() string {
	g := &event.ApprovalDenied{ID: d.l.id("a"), Prompt: d.id, Agent: d.agent, Kind: d.p.Kind, Command: d.cmd, Decision: event.DecisionDenied, Attested: true, Key: "n", KeyTimeNS: d.l.tick(), By: "user"}
	d.l.add(nil, g)
	return g.ID
}

func (l *lab) call(agent, id, cmd string, edit ...func(*event.ToolCall)) *event.ToolCall {
	c := &event.ToolCall{ID: id, Agent: agent, Source: "transcript", Thread: "t1", Tool: "exec_command", Kind: "command", Command: cmd, AskedTimeNS: l.tick()}
	for _, e := range edit {
		e(c)
	}
	l.add(nil, c)
	return c
}

func (l *lab) result(agent, id string, edit ...func(*event.ToolResult)) {
	zero := 0
	r := &event.ToolResult{ID: id, Agent: agent, Source: "transcript", Thread: "t1", Status: "completed", Record: "output", ExitCode: &zero}
	for _, e := range edit {
		e(r)
	}
	l.add(nil, r)
}

func (l *lab) mode(agent, approval, sandbox string) {
	l.add(nil, &event.TurnContext{Agent: agent, Thread: "t1", ApprovalPolicy: approval, Sandbox: sandbox, Version: "0.171.0"})
}

func (l *lab) end() {
	l.root.exit()
	l.add(nil, &event.SessionEnd{})
}

func (l *lab) seq() iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range l.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// judge ends the session if nothing else did, and judges it. Everything goes through the ledger's JSON
// on the way, as in life.
func (l *lab) judge() *Report {
	l.t.Helper()
	if _, ok := l.events[len(l.events)-1].Body.(*event.SessionEnd); !ok {
		l.end()
	}
	return l.verify()
}

func (l *lab) verify() *Report {
	l.t.Helper()
	l.ledger.Records = int64(len(l.events))
	r, err := Verify(Input{Events: func(yield func(event.Event, error) bool) {
		for e := range l.seq() {
			if !yield(event.ParseJSON(e.AppendJSON(nil))) {
				return
			}
		}
	}, Ledger: l.ledger})
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		l.t.Fatalf("report does not marshal: %v", err)
	}
	return r
}

// brief is a report in one line per action and finding, for comparing in tables.
func brief(r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Verdict)
	for _, a := range r.Actions {
		fmt.Fprintf(&b, "%s %s %s [%s", a.ID, a.Verdict, a.Command, a.Allowed.Source)
		for _, s := range []string{a.Allowed.ApprovalID, a.Allowed.Type} {
			if s != "" {
				b.WriteString(" " + s)
			}
		}
		fmt.Fprintf(&b, "] link=%s", a.Link)
		for _, x := range a.Execs {
			name := "?"
			if len(x.Argv) > 0 {
				name = path.Base(x.Argv[0])
			}
			fmt.Fprintf(&b, " %s:%s", name, x.Relation)
			if x.Reason != "" {
				fmt.Fprintf(&b, "(%s)", x.Reason)
			}
		}
		b.WriteByte('\n')
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %s %s", f.Severity, f.Code)
		if f.Reason != "" {
			fmt.Fprintf(&b, "/%s", f.Reason)
		}
		if f.Action != "" {
			fmt.Fprintf(&b, " %s", f.Action)
		}
		fmt.Fprintf(&b, ": %s %v\n", f.Message, f.Records)
	}
	for _, h := range r.Housekeeping {
		fmt.Fprintf(&b, "  - %s %s\n", h.Kind, strings.Join(h.Argv[:min(len(h.Argv), 3)], " "))
	}
	return b.String()
}

func codes(r *Report) string {
	var out []string
	for _, f := range r.Findings {
		s := f.Code
		if f.Reason != "" {
			s += "/" + f.Reason
		}
		out = append(out, string(f.Severity)[:1]+":"+s)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// want checks a verdict and the findings' codes, written as severity letter, code and reason.
func want(t *testing.T, r *Report, verdict Verdict, findings string) {
	t.Helper()
	if r.Verdict != verdict || codes(r) != findings {
		t.Errorf("got %s [%s]\nwant %s [%s]\n%s", r.Verdict, codes(r), verdict, findings, brief(r))
	}
	for _, f := range r.Findings {
		if f.Message == "" || f.Records == nil {
			t.Errorf("finding %s without a sentence or records: %+v", f.Code, f)
		}
	}
}

func allowed(t *testing.T, a Action, source, id, typ string) {
	t.Helper()
	if a.Allowed.Source != source || a.Allowed.ApprovalID != id || a.Allowed.Type != typ {
		t.Errorf("%s allowed by %+v, want %s %s %s", a.Command, a.Allowed, source, id, typ)
	}
}

func relations(a Action) string {
	var out []string
	for _, x := range a.Execs {
		s := path.Base(x.Argv[0]) + ":" + x.Relation
		if x.Reason != "" {
			s += "(" + x.Reason + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
