package verify

import (
	"cmp"
	"slices"

	"github.com/ryehq/rye/verify/shell"
)

// An item is an action while it is being put together: what was asked, allowed and ran, as far as
// each is known.
type item struct {
	kind     string
	call     *call
	decision *decision // the grant or denial that belongs to it
	cand     *candidate
	link     string // what tied run and call or approval together

	allowed  Allowed
	covered  bool
	verdict  Verdict
	doubtful bool // something it depends on could not be seen
	broken   bool // it has a discrepancy
	script   *shell.Script
	execs    []Exec
	count    int
	attempts []Attempt
	findings []int
	shown    *decision // a decision paired with it only by time
	repeat   bool      // a further run of a call or approval that was already used
	writes   []fileRecord
	id       string
	open     coverage // what no rule covered
	gone     bool     // joined into another
}

// start orders actions: when it ran, else when it was answered or asked for.
func (it *item) start() uint64 {
	switch {
	case it.cand != nil:
		return it.cand.startNS
	case it.decision != nil:
		return it.decision.answered()
	case it.call != nil && it.call.ns > 0:
		return it.call.ns
	}
	return 0
}

func (it *item) seq() uint64 {
	switch {
	case it.cand != nil && it.cand.first() != nil:
		return it.cand.first().Seq
	case it.decision != nil:
		return it.decision.seq
	case it.call != nil:
		return it.call.seq
	}
	return 0
}

// end is when nothing more of it was seen. What never ended reaches to the end of the record.
func (it *item) end(last uint64) uint64 {
	e := it.start()
	if it.cand != nil {
		if it.cand.alive {
			return last
		}
		e = max(e, it.cand.endNS)
	}
	return e
}

func sortItems(items []*item) {
	slices.SortStableFunc(items, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.start(), b.start()), cmp.Compare(a.seq(), b.seq()))
	})
}

// agent is whose action it is.
func (it *item) agent() string {
	switch {
	case it.call != nil && it.call.Agent != "":
		return it.call.Agent
	case it.cand != nil && it.cand.agent != unknown && it.cand.agent != "":
		return it.cand.agent
	case it.decision != nil && it.decision.agent != "":
		return it.decision.agent
	case it.cand != nil:
		return it.cand.agent
	}
	return ""
}

// ran is the text that ran, as far as it is known.
func (it *item) ran() string {
	if it.cand != nil && it.cand.root != nil {
		return it.cand.carried.text()
	}
	return ""
}

// text names the action for a person.
func (it *item) text() string {
	if t := it.ran(); t != "" {
		return t
	}
	if it.kind == "edit" && it.call != nil && len(it.call.Paths) > 0 {
		return it.call.Paths[0] // the dialog shows its last element only
	}
	if it.decision != nil && it.decision.command != "" {
		return it.decision.command
	}
	if it.call != nil {
		return it.call.text()
	}
	return ""
}

// text is what a call asked to run.
func (c *call) text() string {
	if c.kind == "edit" && len(c.Paths) > 0 {
		return c.Paths[0]
	}
	if c.Command != "" {
		return c.Command
	}
	if len(c.Argv) > 0 {
		if t, ok := argvText(c.Argv); ok {
			return t
		}
	}
	for _, r := range c.results {
		if len(r.Command) > 0 {
			t, _ := argvText(r.Command)
			return t
		}
	}
	if len(c.Paths) > 0 {
		return c.Paths[0]
	}
	return c.Tool
}

// argvText is the text of an argv: the script of sh -c TEXT, else its words quoted.
func argvText(argv []string) (string, bool) {
	if len(argv) == 3 && (argv[1] == "-c" || argv[1] == "-lc") && shell.IsShell(baseOf(argv[0])) {
		return argv[2], true
	}
	return shell.Join(argv), true
}
