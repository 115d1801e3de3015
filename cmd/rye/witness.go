package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/wrapper"
)

// A witness takes every event of a session, from whichever side it comes, and writes it down. It also does
// the few things that cannot wait for the verdict: adopt an assistant's daemon before it runs anything,
// hash a script before and after its approval, and know who is still alive at the end.
type witness struct {
	book *book
	obs  *observer

	begun chan struct{} // closed when session.start stands in the ledger
	gone  chan struct{} // closed when there will be no session

	mu       sync.Mutex
	live     map[event.ProcessKey]*process
	adopted  map[event.ProcessKey]bool
	digests  *digests
	degraded []string
	tally    counts
	follow   *follower
	rules    *ruleWatch

	perms      *ruleFiles
	permsFirst []event.Event // read before the command could change them
	scan       *scanner      // asked outside mu: it calls screen, which takes mu
}

type process struct {
	exe  string
	argv []string
}

// counts are for the summary line.
type counts struct{ execs, processes, opens, connects, approvals int }

func newWitness(b *book, o *observer, start *event.SessionStart) *witness {
	w := &witness{
		book: b, obs: o, begun: make(chan struct{}), gone: make(chan struct{}),
		live: map[event.ProcessKey]*process{}, adopted: map[event.ProcessKey]bool{},
		digests: newDigests(start.CWD, start.SearchDir), follow: newFollower(start), rules: newRuleWatch(), perms: newRuleFiles(start),
	}
	w.permsFirst = w.perms.start()
	return w
}

// begin writes the first records and lets the others through.
func (w *witness) begin(now uint64, start *event.SessionStart, about event.ObserverAttached, s *wrapper.Session, network []event.Event) {
	start.PID = s.PID()
	start.Cols, start.Rows, start.Terminal = s.Terminal()
	if w.obs.cg != nil {
		start.Cgroup = w.obs.cg.Path()
	}
	w.write(event.New(now, w.self(), start))
	w.write(event.New(now, nil, &about))
	w.emit(network)
	w.emit(w.permsFirst)
	w.book.flush()
	close(w.begun)
}

// abandon lets waiting events go: the command never started.
func (w *witness) abandon() { close(w.gone) }

// self is rye's own process: the parent of the monitor that is the parent of the command.
func (w *witness) self() *event.ProcessKey {
	k, ok := processKey(os.Getpid())
	if !ok {
		return nil
	}
	return &k
}

func (w *witness) wait() bool {
	select {
	case <-w.begun:
		return true
	case <-w.gone:
		return false
	}
}

// write appends one event. A ledger that cannot be written never stops the session: Append counts what is
// missing, and the end of the session says so.
func (w *witness) write(e event.Event) uint64 {
	if err := w.book.append(&e); err != nil {
		return 0
	}
	return e.Seq
}

// kernel takes events from the collector's goroutine.
func (w *witness) kernel(e event.Event) error {
	if !w.wait() {
		return nil
	}
	if b, ok := e.Body.(*event.IPCConnect); ok && b.Peer != nil && w.isLive(event.ProcessKey{TGID: b.Peer.TGID, StartNS: b.Peer.StartNS}) {
		b.Marks = append(b.Marks, "peer-in-session")
	}
	seq := w.write(e)
	if command, ok := w.note(e, seq); ok && w.scan != nil {
		if granted, ok := w.scan.ruleMatch(command, e.TimeNS); ok {
			w.write(granted)
		}
	}
	return nil
}

// note keeps up with who is alive and acts on what cannot wait. It returns the text of a command that ran
// without a dialog, for which an earlier answer may hold.
func (w *witness) note(e event.Event, seq uint64) (command string, unasked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch b := e.Body.(type) {
	case *event.ProcessFork:
		w.tally.processes++
		p := &process{}
		if parent := w.live[b.Parent]; parent != nil {
			*p = *parent
		}
		w.live[*e.Proc] = p
	case *event.ProcessExec:
		w.tally.execs++
		w.live[*e.Proc] = &process{exe: b.Exe, argv: firstWords(b.Argv)}
		w.emit(w.digests.atExec(b, seq))
		w.digests.exe(b)
		command, unasked = w.rules.ran(b)
	case *event.ProcessExit:
		delete(w.live, *e.Proc)
	case *event.FileOpen:
		w.tally.opens += int(b.Count)
		w.follow.opened(b)
		if slices.Contains(b.Flags, "O_WRONLY") || slices.Contains(b.Flags, "O_RDWR") {
			w.perms.touched(b.Path)
		}
	case *event.FileRename:
		w.perms.touched(b.To)
		w.perms.touched(b.From)
	case *event.FileDelete:
		w.perms.touched(b.Path)
	case *event.NetConnect:
		w.tally.connects += int(b.Count)
	case *event.IPCConnect:
		if b.Peer != nil && b.Result == 0 {
			w.emit(w.adopt(b, seq))
		}
	}
	return command, unasked
}

// emit writes events that w itself made. The ledger has its own lock.
func (w *witness) emit(list []event.Event) {
	for _, e := range list {
		w.write(e)
	}
}

func firstWords(argv []string) []string {
	out := make([]string, 0, min(len(argv), 4))
	for _, a := range argv[:min(len(argv), 4)] {
		out = append(out, a[:min(len(a), 200)])
	}
	return out
}

// screen takes events from the wrapper's callback goroutine.
func (w *witness) screen(e event.Event) {
	if !w.wait() {
		return
	}
	seq := w.write(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch b := e.Body.(type) {
	case *event.ApprovalPrompted:
		w.emit(w.digests.atPrompt(b, seq))
	case *event.ApprovalGranted:
		w.rules.answered(b.Command)
		w.tally.approvals++
	}
}

// said takes events that are nobody's process: the proxy's, the policy's.
func (w *witness) said(e event.Event) {
	if w.wait() {
		w.write(e)
	}
}

func (w *witness) isLive(k event.ProcessKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live[k] != nil
}

func (w *witness) degrade(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.degraded, why) {
		w.degraded = append(w.degraded, why)
	}
}

func (w *witness) counts() counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tally
}

const renewEvery = 100 * time.Millisecond

// background renews the checkpoint, follows transcripts and looks at rules until the returned function is called.
func (w *witness) background() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(renewEvery)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if err := w.book.flush(); err != nil {
				w.degrade(err.Error())
			}
			if n%5 == 4 {
				w.transcripts()
			}
			if w.perms.due(n) {
				w.emit(w.perms.look("change"))
			}
			w.mu.Lock()
			w.emit(w.digests.finished())
			w.mu.Unlock()
		}
	}()
	return func() { close(quit); <-done }
}

// transcripts writes what assistants added to their own records since the last call.
func (w *witness) transcripts() {
	for _, e := range w.follow.read() {
		w.write(e)
	}
}

// end writes the last record.
func (w *witness) end(e *event.SessionEnd) {
	w.mu.Lock()
	w.emit(w.digests.last())
	e.DegradedBy = append(e.DegradedBy, w.degraded...)
	w.mu.Unlock()
	if w.obs.drop != nil {
		e.DegradedBy = append(e.DegradedBy, fmt.Sprintf("privilege was kept: %v", w.obs.drop))
	}
	w.write(event.New(boottime(), w.self(), e))
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
