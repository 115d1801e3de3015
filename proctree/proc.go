package proctree

import (
	"cmp"
	"iter"
	"slices"

	"github.com/ryehq/rye/event"
)

// A Proc is one process (thread group). Its fields are filled in as events arrive.
type Proc struct {
	Key     event.ProcessKey
	ID      int     // position among the tree's processes as they were first mentioned, from 0
	Parent  *Proc   // who started it; nil when nothing said so
	Execs   []*Exec // every program it became, in the kernel's time order
	Seen    bool    // it had an event of its own; false: only named as somebody's parent
	ForkSeq uint64  // seq of the fork record, 0 when there is none

	Exited   bool
	ExitNS   uint64 // CLOCK_BOOTTIME nanoseconds
	ExitSeq  uint64
	ExitCode int32
	Signal   int32

	Adoption *Adoption // it was there before the session and acts for it

	children []*Proc
	from     parentSource
	fromNS   uint64
}

type parentSource uint8

const (
	parentUnknown parentSource = iota
	parentExec
	parentFork
)

// An Adoption says how a process from outside came to be in the session.
type Adoption struct {
	Seq    uint64
	TimeNS uint64
	Reason string // as in [event.ProcessAdopted]
	Via    string
}

// An Exec is one program image of a process. What it points to may be shared with other execs and must
// not be changed.
type Exec struct {
	*Program
	Seq       uint64
	TimeNS    uint64 // CLOCK_BOOTTIME nanoseconds
	Proc      *Proc
	Argv      []string
	ArgvBytes uint64
	UID, EUID uint32
	Truncated bool // Argv holds only the first part
	Adopted   bool // not an exec that was seen: the image a process was adopted with
}

// A Program is the part of an exec that comes again: a build starts the same compiler in the same
// folder with the same environment a hundred thousand times.
type Program struct {
	Path     string
	Exe      string
	Interp   string
	CWD      string
	Dev, Ino uint64
	Env      map[string]string
	Marks    []string
}

// Marked reports whether the exec carries that mark (see [event.ProcessExec]).
func (x *Exec) Marked(mark string) bool { return slices.Contains(x.Marks, mark) }

// Index is the position of x among its process's execs.
func (x *Exec) Index() int { return slices.Index(x.Proc.Execs, x) }

// Prev is the image the same process had before x, or nil.
func (x *Exec) Prev() *Exec {
	if i := x.Index(); i > 0 {
		return x.Proc.Execs[i-1]
	}
	return nil
}

// Spawner is the image whose code started x: the one before it in the same process, else the image
// its parent had when it forked. nil when the record does not say.
func (x *Exec) Spawner() *Exec {
	if p := x.Prev(); p != nil {
		return p
	}
	if x.Proc.Parent == nil {
		return nil
	}
	return x.Proc.Parent.ImageAt(x.Proc.Key.StartNS)
}

// ImageAt is the program p ran at that time: its last exec by then, or, before its first exec, the
// image it was forked with. nil when the record does not say.
func (p *Proc) ImageAt(ns uint64) *Exec {
	for p != nil {
		for i := len(p.Execs) - 1; i >= 0; i-- {
			if p.Execs[i].TimeNS <= ns {
				return p.Execs[i]
			}
		}
		ns = p.Key.StartNS
		p = p.Parent
	}
	return nil
}

// Children returns the processes p started, oldest first.
func (p *Proc) Children() []*Proc {
	if !slices.IsSortedFunc(p.children, byAge) {
		slices.SortFunc(p.children, byAge)
	}
	return p.children
}

// Ancestors yields p's parent, its parent, and so on.
func (p *Proc) Ancestors() iter.Seq[*Proc] {
	return func(yield func(*Proc) bool) {
		for a := p.Parent; a != nil; a = a.Parent {
			if !yield(a) {
				return
			}
		}
	}
}

// DescendsFrom reports whether p is a or was started, over any number of steps, by a.
func (p *Proc) DescendsFrom(a *Proc) bool {
	for ; p != nil; p = p.Parent {
		if p == a {
			return true
		}
	}
	return false
}

// Descend calls visit for p and everything below it, parents first. A false return leaves out what
// is below that process.
func (p *Proc) Descend(visit func(*Proc) bool) {
	stack := []*Proc{p}
	for len(stack) > 0 {
		q := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !visit(q) {
			continue
		}
		c := q.Children()
		for i := len(c) - 1; i >= 0; i-- {
			stack = append(stack, c[i])
		}
	}
}

func byAge(a, b *Proc) int { return compareKeys(a.Key, b.Key) }

func (p *Proc) insert(x *Exec) {
	i, _ := slices.BinarySearchFunc(p.Execs, x, func(a, b *Exec) int {
		return cmp.Or(cmp.Compare(a.TimeNS, b.TimeNS), cmp.Compare(a.Seq, b.Seq))
	})
	p.Execs = slices.Insert(p.Execs, i, x)
}
