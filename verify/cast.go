package verify

import (
	"slices"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/proctree"
)

// An ownerKind says on whose account a process runs.
type ownerKind uint8

const (
	nobody    ownerKind = iota // lineage unknown
	launcher                   // what the user started that is not (yet) an assistant
	assistant                  // an assistant's own process
	command                    // below a candidate
	witness                    // rye itself
)

type owner struct {
	kind  ownerKind
	agent string
	cand  *candidate
}

// A candidate is something an assistant started: an action, or its own housekeeping.
type candidate struct {
	agent   string
	top     *proctree.Proc   // first process of it
	chain   []*proctree.Exec // what the assistant put around the command, outermost first
	root    *proctree.Exec   // the exec that carries the command; nil when only wrappers ran
	carried *carried
	sandbox bool             // the chain shows the assistant's sandbox
	callID  string           // CODEX_TOOL_CALL_ID of the chain
	thread  string           // CODEX_THREAD_ID or CLAUDE_CODE_SESSION_ID
	startNS uint64           // of the root exec
	endNS   uint64           // last thing seen below it
	alive   bool             // something below it had not exited when the record ends
	stray   bool             // nobody known started it
	keep    *keep            // recognised housekeeping
	execs   []*proctree.Exec // see execsOf
	item    *item
}

func (c *candidate) proc() *proctree.Proc {
	if c.root != nil {
		return c.root.Proc
	}
	return c.top
}

// first is the exec to name a candidate by.
func (c *candidate) first() *proctree.Exec {
	if c.root != nil {
		return c.root
	}
	if len(c.chain) > 0 {
		return c.chain[0]
	}
	return nil
}

// A cast is who is who in a session.
type cast struct {
	facts      *facts
	procs      []*proctree.Proc // all, oldest first
	root       *proctree.Proc   // the wrapped command
	hasAgent   bool             // an assistant ran
	agents     []string         // which, in order of appearance
	main       []*proctree.Exec
	owners     []owner // by Proc.ID
	candidates []*candidate
	self       []*proctree.Exec        // an assistant starting itself again (daemon, version check)
	unknownIs  map[*proctree.Exec]bool // images taken for an unknown assistant
	around     []*proctree.Exec        // what ran around an assistant: its launcher's programs
}

func newCast(f *facts) *cast {
	procs := f.tree.Procs()
	c := &cast{facts: f, procs: procs, owners: make([]owner, len(procs)), unknownIs: make(map[*proctree.Exec]bool)}
	c.root = c.findRoot()
	known := slices.ContainsFunc(procs, func(p *proctree.Proc) bool {
		return slices.ContainsFunc(p.Execs, func(x *proctree.Exec) bool { return agentOf(x) != "" })
	})
	if !known && f.hasAssistantWitness() {
		c.findUnknown(procs)
	}
	c.hasAgent = known || len(c.unknownIs) > 0 || f.hasAssistantWitness() || f.wrapsAssistant()
	if !c.hasAgent {
		return c
	}
	c.visitTops(procs)
	slices.SortStableFunc(c.candidates, func(a, b *candidate) int { return compareExecs(a.first(), b.first()) })
	return c
}

func compareExecs(a, b *proctree.Exec) int {
	switch {
	case a == nil || b == nil:
		return 0
	case a.TimeNS != b.TimeNS:
		if a.TimeNS < b.TimeNS {
			return -1
		}
		return 1
	case a.Seq < b.Seq:
		return -1
	case a.Seq > b.Seq:
		return 1
	}
	return 0
}

// hasAssistantWitness: something other than the kernel spoke of an assistant.
func (f *facts) hasAssistantWitness() bool {
	return len(f.decisions) > 0 || len(f.prompts) > 0 || len(f.calls) > 0 || len(f.contexts) > 0
}

// wrapsAssistant: the command the user gave is an assistant, whether or not it was seen to start.
func (f *facts) wrapsAssistant() bool {
	if f.start == nil || len(f.start.Command) == 0 {
		return false
	}
	exe := f.start.Path
	if exe == "" {
		exe = f.start.Command[0]
	}
	return agentOf(&proctree.Exec{Argv: f.start.Command, Program: &proctree.Program{Exe: exe, Path: exe}}) != ""
}

// findRoot is the process of the wrapped command.
func (c *cast) findRoot() *proctree.Proc {
	var root *proctree.Proc
	for _, p := range c.procs {
		if len(p.Execs) == 0 || p.Adoption != nil {
			continue
		}
		if s := c.facts.start; s != nil && s.PID > 0 {
			// Process ids come again: the first holder that ran the command is meant.
			if int(p.Key.TGID) == s.PID && (root == nil || !slices.Equal(root.Execs[0].Argv, s.Command) && slices.Equal(p.Execs[0].Argv, s.Command)) {
				root = p
			}
			continue
		}
		if root == nil || p.Execs[0].TimeNS < root.Execs[0].TimeNS {
			root = p
		}
	}
	return root
}

func (c *cast) agentOf(x *proctree.Exec) string {
	if x == nil {
		return ""
	}
	if c.unknownIs[x] {
		return unknown
	}
	return agentOf(x)
}

// visitTops goes through everything that ran, from the processes nobody in the session started.
func (c *cast) visitTops(procs []*proctree.Proc) {
	for _, p := range procs {
		if !p.Seen || p.Parent != nil && p.Parent.Seen {
			continue
		}
		switch {
		case p == c.root || p.Adoption != nil:
			c.visit(p, owner{kind: launcher})
		case c.root != nil && p.Parent != nil && p.Parent == c.root.Parent:
			c.own(p, owner{kind: witness})
		case c.root != nil && c.root.DescendsFrom(p):
			c.visit(p, owner{kind: launcher})
		default:
			c.strayed(p)
		}
	}
}

// visit goes down the launcher's and the assistants' own processes. What an assistant starts and is
// not an assistant again becomes a candidate.
func (c *cast) visit(p *proctree.Proc, o owner) {
	type todo struct {
		p *proctree.Proc
		o owner
	}
	stack := []todo{{p, o}}
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		o := t.o
		cut := uint64(1<<64 - 1) // from here on the process is a candidate's
		for i, x := range t.p.Execs {
			if a := c.agentOf(x); a != "" {
				c.appears(a, x, o)
				o = owner{kind: assistant, agent: a}
				continue
			}
			if o.kind == launcher && t.p.Adoption == nil {
				c.around = append(c.around, x)
				continue
			}
			if t.p.Adoption != nil && x.Adopted {
				// A child of the daemon that was running before this session: whose it is cannot be told.
				o = owner{kind: nobody}
				continue
			}
			c.explore(o.agent, t.p, i)
			cut = x.TimeNS
			break
		}
		c.owners[t.p.ID] = firstOwner(c.owners[t.p.ID], o)
		for _, ch := range t.p.Children() {
			if ch.Key.StartNS >= cut {
				continue // below a candidate
			}
			next := t.o
			if img := t.p.ImageAt(ch.Key.StartNS); img != nil {
				if a := c.agentOf(img); a != "" {
					next = owner{kind: assistant, agent: a}
				} else if img.Proc == t.p {
					next = owner{kind: launcher}
				}
			}
			if ch.Adoption != nil {
				next = owner{kind: launcher}
			}
			stack = append(stack, todo{ch, next})
		}
	}
}

func (c *cast) appears(a string, x *proctree.Exec, o owner) {
	if !slices.Contains(c.agents, a) {
		c.agents = append(c.agents, a)
	}
	c.main = append(c.main, x)
	if o.kind == assistant && !x.Adopted {
		c.self = append(c.self, x)
	}
}

// explore follows what an assistant put around a command, down to the command, and files what it
// finds. p's execs before from are the assistant's own.
func (c *cast) explore(agent string, p *proctree.Proc, from int) {
	found := c.follow(agent, p, from, nil, 0)
	for _, k := range found {
		k.top = p
		c.file(k)
	}
	// Processes that are part of the wrapping belong to the first command found in it.
	if len(found) > 0 {
		first := found[0]
		for _, k := range found {
			if k.keep == nil {
				first = k
				break
			}
		}
		p.Descend(func(q *proctree.Proc) bool {
			if c.owners[q.ID] != (owner{}) && q != p {
				return false
			}
			c.owners[q.ID] = owner{kind: command, agent: agent, cand: first}
			return true
		})
	}
}

const maxWrapping = 24 // processes deep: Codex's sandbox needs five

func (c *cast) follow(agent string, p *proctree.Proc, from int, chain []*proctree.Exec, depth int) []*candidate {
	chain = slices.Clip(chain)
	for _, x := range p.Execs[from:] {
		if k := probe(agent, x); k != nil {
			return []*candidate{{agent: agent, top: p, chain: chain, root: x, keep: k}}
		}
		if wrapperOf(agent, x) == "" {
			return []*candidate{{agent: agent, top: p, chain: chain, root: x}}
		}
		chain = append(chain, x)
	}
	var found []*candidate
	if depth < maxWrapping {
		for _, ch := range p.Children() {
			found = append(found, c.follow(agent, ch, 0, chain, depth+1)...)
		}
	}
	if len(found) == 0 && len(chain) > 0 && depth == 0 {
		found = append(found, &candidate{agent: agent, top: p, chain: chain})
	}
	return found
}

// file completes a candidate and takes the processes below its command.
func (c *cast) file(k *candidate) {
	for _, x := range append(slices.Clone(k.chain), k.root) {
		if x == nil {
			continue
		}
		k.callID = firstOf(k.callID, x.Env["CODEX_TOOL_CALL_ID"])
		k.thread = firstOf(k.thread, x.Env["CODEX_THREAD_ID"], x.Env["CLAUDE_CODE_SESSION_ID"])
	}
	for _, x := range k.chain {
		if w := wrapperOf(k.agent, x); w == "codex-linux-sandbox" || w == "bwrap" || w == "claude-apply-seccomp" {
			k.sandbox = true
		}
	}
	if k.root != nil {
		k.carried = carriedBy(k.agent, k.root)
		k.startNS = k.root.TimeNS
	} else {
		k.carried = &carried{grammar: "argv"}
		if x := k.first(); x != nil {
			k.startNS = x.TimeNS
		}
	}
	k.proc().Descend(func(q *proctree.Proc) bool {
		c.owners[q.ID] = owner{kind: command, agent: k.agent, cand: k}
		k.endNS = max(k.endNS, q.Key.StartNS, q.ExitNS)
		for _, x := range q.Execs {
			k.endNS = max(k.endNS, x.TimeNS)
		}
		k.alive = k.alive || !q.Exited
		return true
	})
	if c.facts.ownHook(k.root) {
		k.keep = &keep{kind: ryeHook}
	}
	if k.keep == nil {
		k.keep = housekeeping(k)
	}
	c.candidates = append(c.candidates, k)
}

// strayed is a process whose parents nobody saw.
func (c *cast) strayed(p *proctree.Proc) {
	if len(p.Execs) == 0 {
		for _, ch := range p.Children() {
			c.strayed(ch)
		}
		return
	}
	if c.agentOf(p.Execs[0]) != "" {
		c.visit(p, owner{kind: launcher})
		return
	}
	k := &candidate{agent: unknown, top: p, root: p.Execs[0], stray: true}
	c.file(k)
}

// own puts a whole subtree on one account.
func (c *cast) own(p *proctree.Proc, o owner) {
	p.Descend(func(q *proctree.Proc) bool { c.owners[q.ID] = o; return true })
}

// ownerOf is whose account an event of a process goes on.
func (c *cast) ownerOf(k event.ProcessKey) owner {
	p := c.facts.tree.Lookup(k)
	if p == nil {
		return owner{}
	}
	return c.owners[p.ID]
}

func firstOwner(a, b owner) owner {
	if a != (owner{}) {
		return a
	}
	return b
}

func firstOf(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}
