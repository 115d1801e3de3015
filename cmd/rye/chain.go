package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/verify"
)

// maxEffects bounds the lines of a chain that tell what its processes did.
const maxEffects = 200

// A chain says which records of a ledger one action rests on, and as what.
type chain struct {
	role  map[uint64]string
	procs map[event.ProcessKey]bool
}

// chainOf collects an action's records. One record can play two parts: the earlier one names it.
func chainOf(r *verify.Report, a *verify.Action) chain {
	c := chain{map[uint64]string{}, map[event.ProcessKey]bool{}}
	add := func(role string, seqs ...uint64) {
		for _, n := range seqs {
			if c.role[n] == "" {
				c.role[n] = role
			}
		}
	}
	if a.Root != nil {
		add("ran", a.Root.Seq)
		c.procs[event.ProcessKey{TGID: a.Root.TGID, StartNS: a.Root.StartNS}] = true
	}
	if a.Asked != nil {
		add("asked", a.Asked.Records...)
	}
	add("allowed", a.Allowed.Records...)
	for _, x := range a.Execs {
		add(x.Relation, x.Seq)
		c.procs[event.ProcessKey{TGID: x.TGID, StartNS: x.StartNS}] = true
	}
	for _, x := range a.Attempts {
		add("failed", x.Seq)
	}
	if r.Network != nil {
		for _, q := range r.Network.Requests {
			if q.Action == a.ID {
				add("connection", q.Connect)
				add("request", q.Record)
			}
		}
	}
	for _, n := range a.Findings {
		if n < len(r.Findings) {
			add("finding", r.Findings[n].Records...)
		}
	}
	return c
}

// effect reports whether an event is something that an action's process did to the world: not what it read.
func (c chain) effect(e *event.Event) bool {
	if e.Proc == nil || !c.procs[*e.Proc] {
		return false
	}
	switch b := e.Body.(type) {
	case *event.FileOpen:
		return b.Result == 0 && (slices.Contains(b.Flags, "O_WRONLY") || slices.Contains(b.Flags, "O_RDWR")) && b.Kind == "" && !b.Repeats
	case *event.FileDelete, *event.FileRename, *event.FileChange, *event.NetConnect, *event.NetBind, *event.IPCConnect, *event.CgroupLeft, *event.Escape,
		*event.NetDNS, *event.NetTLSHello, *event.NetRefused, *event.ProcessExit:
		return true
	}
	return false
}

// showChain writes an action's chain in the order of the ledger: asked, allowed, ran, what it did.
func showChain(out io.Writer, dir string, r *verify.Report, a *verify.Action) error {
	led, err := ledger.Open(dir)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<16)
	printAction(w, out, r, a)
	c := chainOf(r, a)
	p := newEventPrinter(w, colour(out))
	effects, left := 0, 0
	for e, err := range led.Events() {
		if err != nil {
			p.unreadable(e, err)
			continue
		}
		if p.start == 0 {
			p.start = e.TimeNS
		}
		role := c.role[e.Seq]
		if role == "" && c.effect(&e) {
			if effects++; effects > maxEffects {
				left++
				continue
			}
			role = "effect"
		}
		if role != "" {
			p.heading(role)
			p.event(&e)
		}
	}
	if left > 0 {
		p.more(left)
	}
	return w.Flush()
}

func findAction(r *verify.Report, id string) (*verify.Action, error) {
	for i := range r.Actions {
		if r.Actions[i].ID == id {
			return &r.Actions[i], nil
		}
	}
	if len(r.Actions) == 0 {
		return nil, fmt.Errorf("the session has no actions")
	}
	return nil, fmt.Errorf("no action %q; the session has %s to %s", id, r.Actions[0].ID, r.Actions[len(r.Actions)-1].ID)
}
