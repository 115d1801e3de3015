package proctree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

func key(tgid uint32, start uint64) event.ProcessKey {
	return event.ProcessKey{TGID: tgid, StartNS: start}
}

func fork(seq uint64, child, parent event.ProcessKey) event.Event {
	e := event.New(child.StartNS, &child, &event.ProcessFork{Parent: parent})
	e.Seq = seq
	return e
}

func exec(seq, at uint64, p, parent event.ProcessKey, argv ...string) event.Event {
	e := event.New(at, &p, &event.ProcessExec{
		Parent: parent, Argv: argv, Path: argv[0], Exe: "/usr/bin/" + argv[0],
		Env: map[string]string{"PATH": "/usr/bin", "CODEX_THREAD_ID": "t1"},
	})
	e.Seq = seq
	return e
}

func exit(seq, at uint64, p event.ProcessKey, code int32) event.Event {
	e := event.New(at, &p, &event.ProcessExit{Code: code})
	e.Seq = seq
	return e
}

// dump writes the tree in a form that names every fact the tests care about.
func dump(t *Tree) string {
	var b strings.Builder
	for _, p := range t.Procs() {
		fmt.Fprintf(&b, "%v", p.Key)
		if p.Parent != nil {
			fmt.Fprintf(&b, " <- %v", p.Parent.Key)
		}
		for _, x := range p.Execs {
			fmt.Fprintf(&b, " %s", strings.Join(x.Argv, " "))
			if s := x.Spawner(); s != nil {
				fmt.Fprintf(&b, " (by %s)", s.Argv[0])
			}
		}
		if p.Exited {
			fmt.Fprintf(&b, " exit %d", p.ExitCode)
		}
		for _, c := range p.Children() {
			fmt.Fprintf(&b, " -> %v", c.Key)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// posix_spawn on several CPUs delivers fork, exec and exit in any order.
func TestOrderDoesNotMatter(t *testing.T) {
	shell := key(10, 100)
	events := []event.Event{exec(0, 110, shell, key(1, 1), "sh", "-c", "x")}
	seq := uint64(1)
	for i := range uint32(8) {
		c := key(20+i, 1000+uint64(i)*10)
		events = append(events,
			fork(seq, c, shell),
			exec(seq+1, c.StartNS+1, c, shell, "env", "true"),
			exec(seq+2, c.StartNS+2, c, shell, "true", "spawned"),
			exit(seq+3, c.StartNS+3, c, int32(i)))
		seq += 4
	}
	build := func(order []event.Event) string {
		tr := New()
		for _, e := range order {
			tr.Apply(e)
		}
		return dump(tr)
	}
	want := build(events)
	if !strings.Contains(want, "20@1000 <- 10@100 env true (by sh) true spawned (by env) exit 0\n") {
		t.Fatalf("tree:\n%s", want)
	}
	for n := range 20 {
		r := rand.New(rand.NewPCG(uint64(n), 7))
		shuffled := append([]event.Event(nil), events...)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := build(shuffled); got != want {
			t.Fatalf("order %d gives another tree:\n%s\nwant:\n%s", n, got, want)
		}
	}
}

// A double fork: by the time of the exec the parent is gone and the kernel says init. The fork knows
// better, whichever of the two arrives first.
func TestOrphanKeepsItsAncestor(t *testing.T) {
	root, middle, leaf, init := key(10, 100), key(11, 200), key(12, 300), key(1, 1)
	forkLeaf, execLeaf := fork(5, leaf, middle), exec(6, 400, leaf, init, "touch", "orphan")
	for name, order := range map[string][]event.Event{
		"fork first": {fork(1, middle, root), forkLeaf, execLeaf},
		"exec first": {fork(1, middle, root), execLeaf, forkLeaf},
	} {
		tr := New()
		tr.Apply(exec(0, 110, root, init, "python3", "orphan.py"))
		for _, e := range order {
			tr.Apply(e)
		}
		p := tr.Lookup(leaf)
		if p.Parent != tr.Lookup(middle) || !p.DescendsFrom(tr.Lookup(root)) {
			t.Errorf("%s: lineage lost:\n%s", name, dump(tr))
		}
		if len(tr.Lookup(init).Children()) != 1 {
			t.Errorf("%s: init kept the orphan:\n%s", name, dump(tr))
		}
		if s := p.Execs[0].Spawner(); s == nil || s.Argv[0] != "python3" {
			t.Errorf("%s: spawner %v, want the image inherited over two forks", name, s)
		}
	}
}

func TestPidUsedAgain(t *testing.T) {
	tr := New()
	shell := key(10, 100)
	tr.Apply(exec(0, 110, shell, key(1, 1), "sh"))
	first, second := key(20, 200), key(20, 900)
	tr.Apply(fork(1, first, shell))
	tr.Apply(exec(2, 210, first, shell, "touch", "a"))
	tr.Apply(exit(3, 220, first, 0))
	tr.Apply(fork(4, second, shell))
	if p := tr.Lookup(second); len(p.Execs) != 0 || p.Exited {
		t.Errorf("second process has the first one's facts: %+v", p)
	}
	if p := tr.Lookup(first); len(p.Execs) != 1 || !p.Exited {
		t.Errorf("first process lost its facts: %+v", p)
	}
}

func TestImageAt(t *testing.T) {
	tr := New()
	p := key(10, 100)
	tr.Apply(exec(0, 110, p, key(1, 1), "env", "sh"))
	tr.Apply(exec(1, 150, p, key(1, 1), "sh", "-c", "x"))
	early, late := key(11, 120), key(12, 160)
	tr.Apply(fork(2, early, p))
	tr.Apply(fork(3, late, p))
	for _, c := range []struct {
		k    event.ProcessKey
		want string
	}{{early, "env"}, {late, "sh"}} {
		if x := tr.Lookup(c.k).ImageAt(500); x == nil || x.Argv[0] != c.want {
			t.Errorf("%v runs %v, want the %s it was forked from", c.k, x, c.want)
		}
	}
	if x := tr.Lookup(p).ImageAt(105); x != nil {
		t.Errorf("image before the first exec is %v, want unknown", x.Argv)
	}
}

// A ledger is input like any other: it can claim that two processes started each other.
func TestNoCycle(t *testing.T) {
	a, b := key(10, 100), key(11, 100)
	tr := New()
	tr.Apply(fork(0, a, b))
	tr.Apply(fork(1, b, a))
	tr.Apply(fork(2, a, a))
	n := 0
	for range tr.Lookup(a).Ancestors() {
		if n++; n > 3 {
			t.Fatal("endless ancestors")
		}
	}
	for range tr.Lookup(b).Ancestors() {
		if n++; n > 6 {
			t.Fatal("endless ancestors")
		}
	}
}

func TestAdopted(t *testing.T) {
	daemon, cmd := key(50, 10), key(60, 900)
	tr := New()
	e := event.New(500, &daemon, &event.ProcessAdopted{Exe: "/opt/codex", Argv: []string{"codex", "app-server"}, Reason: "assistant-daemon", By: 3})
	tr.Apply(e)
	tr.Apply(fork(9, cmd, daemon))
	tr.Apply(exec(10, 910, cmd, daemon, "bash", "-c", "ls"))
	p := tr.Lookup(daemon)
	if p.Adoption == nil || p.Adoption.Reason != "assistant-daemon" || !p.Execs[0].Adopted {
		t.Fatalf("adoption not kept: %+v", p)
	}
	if s := tr.Lookup(cmd).Execs[0].Spawner(); s == nil || s.Exe != "/opt/codex" {
		t.Errorf("spawner of the daemon's command: %+v", s)
	}
}

func TestDescendStops(t *testing.T) {
	tr := New()
	root, mid, leaf := key(1, 1), key(2, 2), key(3, 3)
	tr.Apply(fork(0, mid, root))
	tr.Apply(fork(1, leaf, mid))
	var seen []uint32
	tr.Lookup(root).Descend(func(p *Proc) bool {
		seen = append(seen, p.Key.TGID)
		return p.Key != mid
	})
	if fmt.Sprint(seen) != "[1 2]" {
		t.Errorf("visited %v", seen)
	}
}

func TestInterning(t *testing.T) {
	tr := New()
	a, b := key(1, 1), key(2, 2)
	tr.Apply(exec(0, 5, a, key(9, 0), "cc", "-c", "x.c"))
	tr.Apply(exec(1, 6, b, key(9, 0), "cc", "-c", "x.c"))
	x, y := tr.Lookup(a).Execs[0], tr.Lookup(b).Execs[0]
	if &x.Argv[0] != &y.Argv[0] {
		t.Error("equal argv kept twice")
	}
	c := key(3, 3)
	e := exec(2, 7, c, key(9, 0), "cc", "-c", "x.c")
	e.Body.(*event.ProcessExec).Env["PATH"] = "/evil"
	tr.Apply(e)
	if z := tr.Lookup(c).Execs[0]; z.Env["PATH"] != "/evil" || x.Env["PATH"] != "/usr/bin" {
		t.Errorf("environments mixed up: %v %v", z.Env, x.Env)
	}
}
