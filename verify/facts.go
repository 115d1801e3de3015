package verify

import (
	"slices"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/proctree"
)

// facts is what is kept of a session. A build opens a hundred thousand files; only opens that a
// verdict can depend on are kept (see places.go).
type facts struct {
	start    *event.SessionStart
	startSeq uint64
	startNS  uint64
	rye      event.ProcessKey // who wrote session.start
	end      *event.SessionEnd
	endSeq   uint64
	observer *event.ObserverAttached
	obsSeq   uint64
	lost     []loss
	tree     *proctree.Tree

	failed     []failedExec
	prompts    map[string]*prompt
	decisions  []*decision // grants and denials
	unreadable []*unreadable
	calls      []*call
	callByID   map[string]*call
	contexts   []turnContext
	rules      []rulesFile

	place    *places
	files    []fileRecord
	made     recent
	startup  map[event.ProcessKey][]uint64 // when a process opened a shell start-up file
	digests  []digest
	ipc      []ipcRecord
	connects []connectRecord
	escapes  []escapeRecord
	net      netFacts

	// Scripts whose content was noted at a prompt: writes to them matter wherever they lie.
	watched      map[inode]bool
	watchedPaths map[string]bool

	truncated int
	unknown   uint64
	bad       []badRecord
	events    uint64
	opens     uint64
	lastNS    uint64
	dropped   map[string]uint64 // records past a limit, by type
}

type badRecord struct {
	seq uint64
	err error
}

type loss struct {
	seq, fromNS, toNS uint64
	counts            map[string]uint64
	reason            string
	final             bool
}

type failedExec struct {
	seq, ns uint64
	proc    event.ProcessKey
	path    string
	err     string
}

type prompt struct {
	*event.ApprovalPrompted
	seq, ns uint64
}

// A decision is an approval granted or denied.
type decision struct {
	seq, ns  uint64
	id       string
	prompt   *prompt
	agent    string
	kind     string
	command  string
	row      string
	rowCut   bool
	denied   bool
	decision string
	prefix   []string
	rule     string
	attested bool
	keyNS    uint64
	screen   []string
	doubt    string // why the reading is not sure

	item *item // the action it was given to
}

// answered is when the answer was given: the key, else the line.
func (d *decision) answered() uint64 {
	if d.keyNS > 0 {
		return d.keyNS
	}
	return d.ns
}

// asked is when the question stood on the screen.
func (d *decision) askedNS() uint64 {
	if d.prompt != nil {
		return d.prompt.ns
	}
	return d.answered()
}

type unreadable struct {
	*event.ScreenUnreadable
	seq, ns uint64
	used    bool
}

// A call is what the model asked for, with how the assistant says it ended.
type call struct {
	*event.ToolCall
	seq, ns  uint64 // ns: when it was asked; 0 when no witness says
	seqs     []uint64
	results  []result
	user     bool            // the user ran it himself
	model    *event.ToolCall // the same call in the model's own answer
	modelSeq uint64
	kind     string
	items    []*item
	hook     *event.ToolCall // what the assistant told rye's hook of it
	hookSeq  uint64
}

type result struct {
	*event.ToolResult
	seq, ns uint64
}

type turnContext struct {
	*event.TurnContext
	seq, ns uint64
}

type rulesFile struct {
	*event.RulesLoaded
	seq, ns uint64
}

type digest struct {
	*event.FileDigest
	seq, ns uint64
}

type ipcRecord struct {
	*event.IPCConnect
	seq, ns uint64
	proc    event.ProcessKey
	count   int
}

type connectRecord struct {
	*event.NetConnect
	seq, ns uint64
	proc    event.ProcessKey
}

type escapeRecord struct {
	seq, ns uint64
	proc    event.ProcessKey
	what    string
	detail  map[string]string
	failed  string // errno name of an attempt that was refused
	left    *event.CgroupLeft
}

// Limits on what is kept of any one kind. Past them records are counted, and the report says so.
const (
	maxFiles    = 100_000
	maxFailed   = 20_000
	maxIPC      = 20_000
	maxConnects = 20_000
	maxEscapes  = 20_000
)

func newFacts() *facts {
	return &facts{
		tree:         proctree.New(),
		prompts:      make(map[string]*prompt),
		callByID:     make(map[string]*call),
		startup:      make(map[event.ProcessKey][]uint64),
		watched:      make(map[inode]bool),
		watchedPaths: make(map[string]bool),
		dropped:      make(map[string]uint64),
		place:        newPlaces(nil),
		made:         recent{paths: make(map[recentKey]string)},
	}
}

func (f *facts) add(e event.Event) {
	f.events++
	if e.TimeNS > f.lastNS && e.Type != event.TypeSessionEnd {
		f.lastNS = e.TimeNS
	}
	f.touched(e)
	switch b := e.Body.(type) {
	case *event.FileOpen:
		f.addOpen(e, b)
	case *event.ProcessExec:
		if b.ArgvTruncated || slices.Contains(b.Marks, "argv-unreadable") {
			f.truncated++
		}
		f.tree.Apply(e)
	case *event.ProcessFork, *event.ProcessExit, *event.ProcessAdopted:
		f.tree.Apply(e)
	case *event.ProcessExecFailed:
		if f.room(len(f.failed), maxFailed, e) {
			f.failed = append(f.failed, failedExec{e.Seq, e.TimeNS, procOf(e), b.Path, b.Error})
		}
	case *event.FileDelete, *event.FileRename, *event.FileChange:
		f.addName(e)
	case *event.FileMap: // what a loader ran: the open of the same file is what is judged
	case *event.FileDigest:
		f.digests = append(f.digests, digest{b, e.Seq, e.TimeNS})
		if b.At == "prompt" {
			f.watchedPaths[b.Path] = true
			if b.Ino != 0 {
				f.watched[inode{b.Dev, b.Ino}] = true
			}
		}
	case *event.IPCConnect:
		f.addIPC(e, b)
	case *event.NetConnect:
		if f.room(len(f.connects), maxConnects, e) {
			f.connects = append(f.connects, connectRecord{b, e.Seq, e.TimeNS, procOf(e)})
		}
	case *event.CgroupLeft:
		if b.Escaped && f.room(len(f.escapes), maxEscapes, e) {
			f.escapes = append(f.escapes, escapeRecord{seq: e.Seq, ns: e.TimeNS, proc: procOf(e), what: "cgroup", left: b})
		}
	case *event.Escape:
		if f.room(len(f.escapes), maxEscapes, e) {
			f.escapes = append(f.escapes, escapeRecord{e.Seq, e.TimeNS, procOf(e), b.What, b.Detail, b.Error, nil})
		}
	default:
		f.addWitness(e)
	}
}

// addWitness keeps what was said by others than the kernel.
func (f *facts) addWitness(e event.Event) {
	switch b := e.Body.(type) {
	case *event.SessionStart:
		if f.start == nil {
			f.start, f.startSeq, f.startNS = b, e.Seq, e.TimeNS
			f.rye = procOf(e)
			f.place = newPlaces(b)
		}
	case *event.SessionEnd:
		f.end, f.endSeq = b, e.Seq
	case *event.ObserverAttached:
		f.observer, f.obsSeq = b, e.Seq
	case *event.ObserverLost:
		f.addLoss(e, b)
	case *event.ApprovalPrompted:
		f.prompts[b.ID] = &prompt{b, e.Seq, e.TimeNS}
	case *event.ApprovalGranted:
		f.decisions = append(f.decisions, &decision{
			seq: e.Seq, ns: e.TimeNS, id: b.ID, prompt: f.prompts[b.Prompt], agent: b.Agent, kind: b.Kind,
			command: b.Command, row: b.Row, rowCut: b.RowCut, decision: b.Decision, prefix: b.Prefix, rule: b.Rule,
			attested: b.Attested, keyNS: b.KeyTimeNS, screen: b.Screen, doubt: b.Uncertain,
		})
	case *event.ApprovalDenied:
		f.decisions = append(f.decisions, &decision{
			seq: e.Seq, ns: e.TimeNS, id: b.ID, prompt: f.prompts[b.Prompt], agent: b.Agent, kind: b.Kind,
			command: b.Command, row: b.Row, rowCut: b.RowCut, decision: b.Decision, denied: true,
			attested: b.Attested, keyNS: b.KeyTimeNS, screen: b.Screen, doubt: b.Uncertain,
		})
	case *event.ScreenUnreadable:
		f.unreadable = append(f.unreadable, &unreadable{ScreenUnreadable: b, seq: e.Seq, ns: e.TimeNS})
	case *event.ToolCall:
		f.addCall(e, b)
	case *event.ToolResult:
		c := f.callByID[b.ID]
		if c == nil {
			// The result came before its call, or without one: the call may still follow.
			c = &call{ToolCall: &event.ToolCall{ID: b.ID, Agent: b.Agent, Source: b.Source, Thread: b.Thread}, seq: e.Seq}
			f.calls = append(f.calls, c)
			f.callByID[b.ID] = c
		}
		c.results = append(c.results, result{b, e.Seq, e.TimeNS})
		c.user = c.user || b.UserShell
	case *event.TurnContext:
		f.contexts = append(f.contexts, turnContext{b, e.Seq, e.TimeNS})
	case *event.RulesLoaded:
		f.rules = append(f.rules, rulesFile{b, e.Seq, e.TimeNS})
	default:
		f.addNet(e)
	}
}

// addCall keeps a tool call. Several witnesses may report the same one; the first that names a tool
// counts, a hook's word beats a transcript's because it is exact and in order.
func (f *facts) addCall(e event.Event, b *event.ToolCall) {
	switch b.Source {
	case "api":
		f.addAsked(e, b)
		return
	case "hook":
		f.addHooked(e, b)
		return
	}
	c := f.callByID[b.ID]
	if c == nil || b.ID == "" {
		c = &call{ToolCall: b, seq: e.Seq, ns: b.AskedTimeNS, seqs: []uint64{e.Seq}}
		f.calls = append(f.calls, c)
		f.callByID[b.ID] = c
		return
	}
	if c.Tool == "" {
		c.ToolCall, c.seq, c.ns = b, e.Seq, b.AskedTimeNS
	} else if c.Source != "transcript" {
		c.ToolCall, c.seq = b, e.Seq
	}
	if c.ns == 0 {
		c.ns = b.AskedTimeNS
	}
	c.seqs = append(c.seqs, e.Seq)
}

func (f *facts) addLoss(e event.Event, b *event.ObserverLost) {
	from := f.startNS
	for _, l := range f.lost {
		if !l.final {
			from = max(from, l.toNS)
		}
	}
	any := false
	for _, n := range b.Counts {
		any = any || n > 0
	}
	if b.Final {
		from = f.startNS
	}
	if any {
		f.lost = append(f.lost, loss{e.Seq, from, e.TimeNS, b.Counts, b.Reason, b.Final})
	}
}

// room counts what does not fit a limit.
func (f *facts) room(have, limit int, e event.Event) bool {
	if have < limit {
		return true
	}
	f.dropped[string(e.Type)]++
	return false
}

func procOf(e event.Event) event.ProcessKey {
	if e.Proc == nil {
		return event.ProcessKey{}
	}
	return *e.Proc
}
