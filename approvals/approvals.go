// Package approvals keeps the requests that wait for somebody's word, and the words: one file in a folder of the
// user's, shared by all rye processes of that user under a lock.
//
// It holds no body, no header and no query: a request is known by a digest over all of it. Everything is bounded. A
// process of the same user can write the file; it is a way to ask, and no evidence.
//
// It imports the standard library and golang.org/x/sys.
package approvals

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A State is how far a request has come.
type State string

// States. An approval for one request is used by it.
const (
	Waiting  State = "waiting"
	Approved State = "approved"
	Denied   State = "denied"
	Used     State = "used"
)

// How long things are kept, and how many.
const (
	waitLife   = 24 * time.Hour // of a request that nobody answered, and of a denial
	onceLife   = time.Hour      // in which an approval for one request has to be used
	usedLife   = 7 * 24 * time.Hour
	MaxFor     = 24 * time.Hour // of an approval for a time
	maxEntries = 500
	maxText    = 512 // bytes of a host, path or reason
)

// A Request is what waits.
type Request struct {
	Key         string `json:"key"` // digest over rule, host, method, path, query and body
	Session     string `json:"session,omitempty"`
	Rule        string `json:"rule"`
	RuleVersion string `json:"rule_version,omitempty"`
	Bundle      string `json:"bundle"` // id@version: an answer given under one bundle is none under another
	Reason      string `json:"reason"`
	Method      string `json:"method"`
	Host        string `json:"host"`
	Path        string `json:"path"` // without the query
	Bytes       uint64 `json:"bytes"`
}

// An Entry is a request and what became of it.
type Entry struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	Request
	First time.Time `json:"first"` // asked
	Last  time.Time `json:"last"`
	Count int       `json:"count"`

	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"` // end of the answer's life
	Rest  bool      `json:"rest,omitempty"` // the approval is for the rule and host until then, not for one request
	Used  time.Time `json:"used,omitzero"`
}

// For is what an answer is good for, in words.
func (e *Entry) For() string {
	if e.Rest {
		return "the rule and host until " + e.Until.UTC().Format(time.RFC3339)
	}
	return "this request"
}

var (
	// ErrFull says that no more requests are kept.
	ErrFull = errors.New("too many requests wait already")
	// ErrNone says that there is no such request.
	ErrNone = errors.New("no such request")
)

// Ask looks for an answer to r and notes that it waits when there is none. An approval for one request is used up
// by being returned: whoever asks next waits again.
func (s *Store) Ask(r Request) (Entry, error) {
	for _, text := range []*string{&r.Session, &r.Rule, &r.RuleVersion, &r.Bundle, &r.Reason, &r.Method, &r.Host, &r.Path} {
		*text = bound(*text)
	}
	var answer Entry
	err := s.change(func(list []Entry, now time.Time) ([]Entry, error) {
		// The user's no to this request stands before his yes to others like it.
		for _, state := range []State{Denied, Approved, Waiting} {
			for i := range list {
				e := &list[i]
				same := e.Key == r.Key && !e.Rest
				covered := e.Rest && e.Rule == r.Rule && e.RuleVersion == r.RuleVersion && e.Host == r.Host
				if e.State != state || e.Bundle != r.Bundle || !same && !covered {
					continue
				}
				e.Last, e.Count = now, e.Count+1
				answer = *e
				if state == Approved && !e.Rest {
					e.State, e.Used = Used, now
				}
				return list, nil
			}
		}
		if len(list) >= maxEntries {
			if list = withoutOldest(list); len(list) >= maxEntries {
				return list, ErrFull
			}
		}
		var id [4]byte
		rand.Read(id[:]) // never fails (crypto/rand)
		answer = Entry{ID: "w" + hex.EncodeToString(id[:]), State: Waiting, Request: r, First: now, Last: now, Count: 1}
		return append(list, answer), nil
	})
	return answer, err
}

func bound(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "[cut]"
	}
	return s
}

// withoutOldest makes room for one: an answer that was used goes first, then the request that waited longest. An
// answer that still holds stays.
func withoutOldest(list []Entry) []Entry {
	for _, state := range []State{Used, Waiting} {
		oldest := -1
		for i, e := range list {
			if e.State == state && (oldest < 0 || e.Last.Before(list[oldest].Last)) {
				oldest = i
			}
		}
		if oldest >= 0 {
			return slices.Delete(list, oldest, oldest+1)
		}
	}
	return list
}

// Approve lets the waiting request id (or the beginning of one) pass once; with a time above 0, all requests that the
// same rule holds up for the same host, for that long.
func (s *Store) Approve(id, by string, span time.Duration) (Entry, error) {
	if span < 0 || span > MaxFor {
		return Entry{}, fmt.Errorf("approve %s: a time of more than %v, or less than none", id, MaxFor)
	}
	return s.answer("approve", id, func(e *Entry, now time.Time) {
		e.State, e.By, e.At, e.Until, e.Rest = Approved, by, now, now.Add(onceLife), span > 0
		if span > 0 {
			e.Until = now.Add(span)
		}
	})
}

// Deny answers no, and takes an approval back.
func (s *Store) Deny(id, by string) (Entry, error) {
	return s.answer("deny", id, func(e *Entry, now time.Time) {
		e.State, e.By, e.At, e.Until, e.Rest = Denied, by, now, now.Add(waitLife), false
	})
}

func (s *Store) answer(verb, id string, set func(*Entry, time.Time)) (Entry, error) {
	var answer Entry
	err := s.change(func(list []Entry, now time.Time) ([]Entry, error) {
		found := -1
		for i, e := range list {
			if e.State == Used || !strings.HasPrefix(e.ID, id) || id == "" {
				continue
			}
			if found >= 0 {
				return nil, fmt.Errorf("%s %q: the beginning of more than one request", verb, id)
			}
			found = i
		}
		if found < 0 {
			return nil, fmt.Errorf("%s %q: %w", verb, id, ErrNone)
		}
		set(&list[found], now)
		answer = list[found]
		return list, nil
	})
	return answer, err
}

// List returns what waits and what was answered, oldest first.
func (s *Store) List() ([]Entry, error) {
	var list []Entry
	err := s.locked(func(now time.Time) error {
		all, err := s.read()
		list = living(all, now)
		return err
	})
	return list, err
}

// living leaves out what has run its time.
func living(list []Entry, now time.Time) []Entry {
	return slices.DeleteFunc(list, func(e Entry) bool {
		switch e.State {
		case Waiting:
			return now.Sub(e.Last) > waitLife
		case Used:
			return now.Sub(e.Used) > usedLife
		}
		return now.After(e.Until)
	})
}
