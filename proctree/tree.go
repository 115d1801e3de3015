// Package proctree keeps the processes of one session and who started whom.
//
// It is a leaf: it imports event and the standard library, reads no clock and does no I/O. The same
// code runs live, fed by the collector, and in replay, fed from a ledger.
//
// The tree does not depend on the order in which events arrive. With several CPUs the exec of a child
// can reach user space before the fork that made it; facts are joined by process key and by the
// kernel's own time stamps, never by position.
//
// Nothing is forgotten: a session is bounded, so every process stays until the tree is dropped.
package proctree

import (
	"cmp"
	"slices"

	"github.com/ryehq/rye/event"
)

// A Tree is the processes of one session. The zero value is not ready: use [New].
// It is not safe for use by several goroutines at once.
type Tree struct {
	procs map[event.ProcessKey]*Proc
	order []*Proc // as first mentioned: nearly by age
	names interner
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{procs: make(map[event.ProcessKey]*Proc), names: newInterner()}
}

// Apply adds one event. Events that say nothing about processes are passed over.
func (t *Tree) Apply(e event.Event) {
	if e.Proc == nil {
		return
	}
	switch b := e.Body.(type) {
	case *event.ProcessFork:
		p := t.proc(*e.Proc)
		p.Seen, p.ForkSeq = true, e.Seq
		t.setParent(p, b.Parent, parentFork, 0)
	case *event.ProcessExec:
		p := t.proc(*e.Proc)
		p.Seen = true
		p.insert(t.exec(p, e.Header, b))
		t.setParent(p, b.Parent, parentExec, e.TimeNS)
	case *event.ProcessExit:
		p := t.proc(*e.Proc)
		p.Seen = true
		p.Exited, p.ExitNS, p.ExitSeq, p.ExitCode, p.Signal = true, e.TimeNS, e.Seq, b.Code, b.Signal
	case *event.ProcessAdopted:
		t.adopt(t.proc(*e.Proc), e.Header, b)
	}
}

// Lookup returns the process with that key, or nil.
func (t *Tree) Lookup(k event.ProcessKey) *Proc { return t.procs[k] }

// Len is the number of processes known, those only mentioned as a parent included.
func (t *Tree) Len() int { return len(t.procs) }

// Procs returns all processes, oldest first.
func (t *Tree) Procs() []*Proc {
	all := slices.Clone(t.order)
	slices.SortFunc(all, byAge)
	return all
}

func compareKeys(a, b event.ProcessKey) int {
	return cmp.Or(cmp.Compare(a.StartNS, b.StartNS), cmp.Compare(a.TGID, b.TGID))
}

func (t *Tree) proc(k event.ProcessKey) *Proc {
	p := t.procs[k]
	if p == nil {
		p = &Proc{Key: k, ID: len(t.order)}
		t.procs[k] = p
		t.order = append(t.order, p)
	}
	return p
}

// setParent records who started p. A fork says so itself. An exec only says who the parent is by
// then: a process whose parent has died already belongs to init or a sub-reaper (so it counts only
// until the fork is known, and the earliest exec counts most).
func (t *Tree) setParent(p *Proc, k event.ProcessKey, from parentSource, at uint64) {
	if k.IsZero() || from < p.from || from == parentExec && p.from == parentExec && at >= p.fromNS {
		return
	}
	// A parent is older than its child. Holding to that makes a cycle impossible, whatever a
	// damaged or forged ledger says.
	if compareKeys(k, p.Key) >= 0 {
		return
	}
	parent := t.proc(k)
	p.from, p.fromNS = from, at
	if p.Parent == parent {
		return
	}
	if p.Parent != nil {
		p.Parent.children = slices.DeleteFunc(p.Parent.children, func(c *Proc) bool { return c == p })
	}
	p.Parent = parent
	parent.children = append(parent.children, p)
}

// adopt gives a process that was there before the session the image it was adopted with.
func (t *Tree) adopt(p *Proc, h event.Header, b *event.ProcessAdopted) {
	p.Seen = true
	p.Adoption = &Adoption{Seq: h.Seq, TimeNS: h.TimeNS, Reason: b.Reason, Via: b.Via}
	p.insert(&Exec{
		Seq: h.Seq, TimeNS: p.Key.StartNS, Proc: p, Adopted: true,
		Argv: t.names.words(b.Argv), Program: &Program{Exe: b.Exe, Path: b.Exe},
	})
}

func (t *Tree) exec(p *Proc, h event.Header, b *event.ProcessExec) *Exec {
	return &Exec{
		Seq: h.Seq, TimeNS: h.TimeNS, Proc: p,
		Argv: t.names.words(b.Argv), ArgvBytes: b.ArgvBytes, Truncated: b.ArgvTruncated,
		UID: b.UID, EUID: b.EUID, Program: t.names.program(b),
	}
}
