package screen

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// Kinds of an approval, as in [event.ApprovalPrompted].
const (
	kindCommand     = "command"
	kindEdit        = "edit"
	kindNetwork     = "network"
	kindMCP         = "mcp"
	kindPermissions = "permissions"
	kindStdin       = "stdin"
	kindUnknown     = "unknown"
)

// A dialog is what a grammar reads off one screen.
type dialog struct {
	agent, grammar string
	kind           string
	question       string
	command        string
	ambiguous, cut bool
	hidden         []string
	reason, thread string
	options        []option
	marked         int      // -1: no mark on the screen
	screen         []string // rows as shown
	top, end       int      // first and last row on the screen
	absTop         uint64   // top, counted from the start of the session
	offset         uint64   // of the output
	alternate      bool     // on the alternate screen

	digit    digitRule
	row      bool // the assistant prints a decision row for this kind
	stays    bool // the dialog is not erased after the answer
	typed    bool // what is typed goes into the marked option
	offer    bool // an offer that the user may pass over: no answer is none
	doubt    string
	unread   string // not a dialog: why this prompt-like screen cannot be read
	notFor   bool   // not a dialog: a menu that is known to grant nothing
	fallback bool   // read without the help of a known shape
}

// digitRule is what a digit key does in a dialog.
type digitRule int

const (
	digitActs  digitRule = iota // chooses the option of that number at once
	digitTyped                  // is typed and taken by Enter
	digitNone                   // does nothing
)

// sameAs reports whether d is the dialog o, painted once more: perhaps at another width, with the
// mark moved, or less of it cut off.
func (d *dialog) sameAs(o *dialog) bool {
	if d.agent != o.agent || d.unread != o.unread {
		return false
	}
	if d.unread != "" {
		return slices.Equal(labels(d.options), labels(o.options))
	}
	if squeeze(d.question) != squeeze(o.question) && !d.cut && !o.cut {
		return false
	}
	if d.kind != o.kind && d.kind != kindUnknown && o.kind != kindUnknown {
		return false
	}
	a, b := squeeze(d.command), squeeze(o.command)
	if a == b {
		return true
	}
	return (d.cut || o.cut) && (strings.HasSuffix(a, b) || strings.HasSuffix(b, a))
}

func labels(options []option) []string {
	var out []string
	for _, o := range options {
		out = append(out, o.label)
	}
	return out
}

// alwaysPrefix returns what the first "always" option would save.
func (d *dialog) alwaysPrefix() []string {
	for _, o := range d.options {
		if o.decision == event.DecisionAlways {
			return o.prefix
		}
	}
	return nil
}

// optionAt returns the option drawn on screen row y, or -1.
func (d *dialog) optionAt(y int) int {
	for i, o := range d.options {
		for _, r := range o.rows {
			if r.y == y {
				return i
			}
		}
	}
	return -1
}

func (d *dialog) byNumber(n int) int {
	return slices.IndexFunc(d.options, func(o option) bool { return o.num == n && n > 0 })
}

func (d *dialog) byKey(key string) int {
	return slices.IndexFunc(d.options, func(o option) bool { return slices.Contains(o.keys, key) })
}

func (d *dialog) byDecision(decision ...string) int {
	return slices.IndexFunc(d.options, func(o option) bool { return slices.Contains(decision, o.decision) })
}
