package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/ryehq/rye/collector"
	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
	"github.com/ryehq/rye/wrapper/cgroup"
)

// An observer is the kernel side of a session. One without probes sees nothing and says why.
type observer struct {
	cg     *cgroup.Cgroup
	probes *loader.Probes
	coll   *collector.Collector
	done   chan error
	sink   atomic.Pointer[func(event.Event) error]
	about  event.ObserverAttached
	gates  *event.Enforcement // nil when nothing is refused
	drop   error              // capabilities could not be given up
}

// startObserver loads and attaches the programs for a new cgroup named after the session. It always
// returns an observer; what it lacks is in about.
func startObserver(id string, want loader.Options) *observer {
	o := &observer{about: event.ObserverAttached{Tier: "none", SelfTest: "not-run"}}
	// The kernel's types are by far the largest thing that rye ever holds, and only while it loads.
	defer debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	f := loader.Detect()
	o.about.Features = f.Map()
	cg, cgErr := cgroup.Create(id)
	if cgErr == nil {
		o.cg = cg
	}
	if m := f.Missing(); len(m) > 0 {
		var parts []string
		for _, x := range m {
			parts = append(parts, x.Name)
		}
		o.about.Detail = fmt.Sprintf("missing %s: %s", strings.Join(parts, ", "), m[0].Fix)
		return o
	}
	opts := want
	opts.Found = f
	o.about.Membership = "descent"
	if o.cg != nil {
		opts.CgroupID, opts.CgroupLevel, opts.CgroupPath = o.cg.ID(), uint32(o.cg.Level()), o.cg.Path()
		o.about.Membership = "cgroup+descent"
	} else {
		o.about.Gaps = append(o.about.Gaps, event.Gap{What: "membership by cgroup", Why: cgErr.Error(), Affect: "process"})
	}
	if err := o.attach(opts); err != nil {
		o.about.Detail = err.Error()
		if o.probes != nil {
			o.probes.Close()
			o.probes = nil
		}
		return o
	}
	o.about.Tier = string(o.probes.Tier())
	o.about.Hooks = o.probes.Hooks()
	o.about.RingBytes = uint64(o.probes.RingBytes())
	for _, g := range o.probes.Gaps() {
		o.about.Gaps = append(o.about.Gaps, event.Gap{What: g.What, Why: g.Hook + ": " + loader.Words(g.Err), Affect: affects(g.Hook)})
	}
	for _, b := range o.probes.Blind() {
		o.about.Gaps = append(o.about.Gaps, event.Gap{What: b.What, Why: b.Why, Affect: b.Affect})
	}
	if err := o.selfTest(); err != nil {
		o.about.SelfTest, o.about.Detail = "failed", err.Error()
	} else {
		o.about.SelfTest = "passed"
	}
	o.drop = loader.Drop()
	return o
}

func (o *observer) attach(opts loader.Options) error {
	var err error
	if o.probes, err = loader.Load(opts); err != nil {
		return err
	}
	o.coll, err = collector.New(o.probes, func(e event.Event) error {
		if f := o.sink.Load(); f != nil {
			return (*f)(e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(o.probes.Attach(opts), o.enforce(opts)); err != nil {
		o.coll.Close()
		return err
	}
	o.done = make(chan error, 1)
	go func() { o.done <- o.coll.Run() }()
	return nil
}

// to directs events to f from now on.
func (o *observer) to(f func(event.Event) error) { o.sink.Store(&f) }

// drain hands on everything that has happened so far. No verdict comes before it.
func (o *observer) drain() error {
	if o.probes == nil {
		return nil
	}
	err := errors.Join(o.coll.Stop(), <-o.done)
	return err
}

// close takes the programs out of the kernel.
func (o *observer) close() error {
	var errs []error
	if o.probes != nil {
		errs = append(errs, o.coll.Close(), o.probes.Close())
	}
	return errors.Join(errs...)
}

// remove takes the cgroup away. One that survivors still live in stays; the kernel frees it with them only
// when its directory is removed, so a later session does that.
func (o *observer) remove(survivors []event.Survivor) {
	if o.cg != nil && len(survivors) == 0 {
		o.cg.Remove()
	}
}

func (o *observer) cgroupFD() int {
	if o.cg == nil {
		return -1
	}
	return o.cg.FD()
}

// root makes a process's descendants members where there is no cgroup to tell them.
func (o *observer) root(pid int) error {
	if o.probes == nil || o.cg != nil {
		return nil
	}
	return o.probes.Adopt(uint32(pid), 0)
}

func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own executable: %w", err)
	}
	return exe, nil
}
