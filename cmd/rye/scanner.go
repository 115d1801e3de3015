package main

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/wrapper/screen"
)

// A scanner is the screen witness with a lock: the terminal feeds it from one goroutine, and the kernel side
// asks it about rules from another.
type scanner struct {
	mu sync.Mutex
	s  *screen.Screen
}

// newScanner makes the model at the size the terminal has: a later change of size would be taken for one
// that the assistant has yet to draw for.
func newScanner(emit func(event.Event)) *scanner {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if cols, rows, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 && rows > 0 {
			return &scanner{s: screen.New(cols, rows, emit)}
		}
	}
	return &scanner{s: screen.New(80, 24, emit)}
}

func (c *scanner) output(p []byte, t, skipped uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if skipped > 0 {
		c.s.Skipped(skipped, t)
	}
	c.s.Output(p, t)
}

func (c *scanner) input(p []byte, t, skipped uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if skipped > 0 {
		c.s.Skipped(skipped, t)
	}
	c.s.Input(p, t)
}

func (c *scanner) resize(cols, rows int, t uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Resize(cols, rows, t)
}

func (c *scanner) idle(t uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Idle(t)
}

func (c *scanner) close(t uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Close(t)
}

func (c *scanner) ruleMatch(command string, t uint64) (event.Event, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.RuleMatch(command, t)
}

// A ruleWatch records that an "always" answer of this session let a later command run without a dialog.
// The assistant shows nothing then; the command's first exec is when it is known.
type ruleWatch struct {
	granted map[string]int  // command text → answers not yet used by a run
	calls   map[string]bool // call ids seen
}

func newRuleWatch() *ruleWatch {
	return &ruleWatch{granted: map[string]int{}, calls: map[string]bool{}}
}

// answered notes that a dialog for this text was answered yes.
func (r *ruleWatch) answered(command string) { r.granted[command]++ }

// ran returns the text of a command of the model that no dialog was answered for, at its first exec.
func (r *ruleWatch) ran(x *event.ProcessExec) (string, bool) {
	call := x.Env["CODEX_TOOL_CALL_ID"]
	if call == "" || r.calls[call] || len(x.Argv) != 3 || x.Argv[1] != "-c" && x.Argv[1] != "-lc" || strings.Contains(x.Argv[2], "__CODEX_SNAPSHOT") {
		return "", false
	}
	r.calls[call] = true
	if n := r.granted[x.Argv[2]]; n > 0 {
		r.granted[x.Argv[2]] = n - 1
		return "", false
	}
	return x.Argv[2], true
}
