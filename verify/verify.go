// Package verify judges a session: did what was allowed match what ran?
//
// It reads the ledger's events in order and gives a [Report]. It is pure: no clock, no privileges, no
// network, no file system; the same events give the same report on any machine, during the session's
// last second or years later. It imports event, proctree, verify/shell and mvdan.cc/sh/v3/syntax.
//
// The way of an event through this package:
//
//	facts      keeps what judging needs, drops the rest (most opens)
//	cast       who is who: the wrapped command, the assistant, what it started (spawn, unwrap, keep house)
//	link       ties asked, allowed and ran together: by id, by text, by time, in this order
//	cover      looks for what allowed an action: an answer, a rule, a mode, the safe list
//	judge      compares texts, explains every exec, uses up approvals
//	effects    files, sockets, escapes, put on the account of the action that did them
//	evidence   what was lost, cut or never seen, and which verdicts that touches
//
// Two rules hold everywhere. What could not be seen never counts as agreement: it makes a verdict
// indeterminate and says so. And nothing an assistant or a command writes about itself is believed
// alone: a transcript, a decision line or an environment variable needs a second witness. (The one
// exception is said in the report as allowed.source "user-shell": that the user typed a command
// himself, as !cmd, is known from the transcript only.)
package verify

import (
	"errors"
	"fmt"
	"iter"

	"github.com/ryehq/rye/event"
)

// An Input is one session's evidence.
type Input struct {
	Events iter.Seq2[event.Event, error] // the ledger's records in order
	Ledger LedgerState                   // what the ledger's own check found
	// State, when set, is called after Events was read to its end and replaces Ledger: a reader that
	// checks while it reads knows its result only then.
	State func() LedgerState
}

// A LedgerState is what the ledger's own check found. This package does not check hashes.
type LedgerState struct {
	OK          bool
	Records     int64
	RootHash    string
	Problem     string // why it is not OK
	BadRecord   int64  // the record that is wrong, -1 when none is named
	Interrupted bool   // it ends without session.end
	Anchored    bool   // its tree head was compared with a copy kept elsewhere
}

// Verify judges a session. It fails only when the events cannot be read at all; evidence that is
// damaged, cut or missing is reported, not an error.
func Verify(in Input) (*Report, error) {
	if in.Events == nil {
		return nil, errors.New("verify session: no events")
	}
	f := newFacts()
	read := 0
	for e, err := range in.Events {
		switch {
		case err == nil:
			f.add(e)
			read++
		case errors.Is(err, event.ErrUnknownType):
			f.unknown++
		default:
			f.bad = append(f.bad, badRecord{seq: e.Seq, err: err})
			if read == 0 && len(f.bad) > 16 {
				return nil, fmt.Errorf("read events: %w", err)
			}
		}
	}
	if read == 0 && len(f.bad) > 0 {
		return nil, fmt.Errorf("read events: %w", f.bad[0].err)
	}
	if in.State != nil {
		in.Ledger = in.State()
	}
	v := newJudge(f, in.Ledger)
	v.run()
	return v.report(), nil
}
