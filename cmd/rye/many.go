package main

import (
	"fmt"
	"time"

	"github.com/ryehq/rye/report"
	"github.com/ryehq/rye/verify"
)

// A judged is one line of rye verify --all: a session with its verdict.
type judged struct {
	ID            string         `json:"id"`
	Name          string         `json:"name,omitempty"`
	Start         string         `json:"start"`
	Command       []string       `json:"command"`
	State         string         `json:"state"`
	Verdict       verify.Verdict `json:"verdict"`
	Actions       int            `json:"actions"`
	Discrepancies int            `json:"discrepancies"`
	Indeterminate int            `json:"indeterminate"` // actions
	Warnings      int            `json:"warnings"`
	Codes         []string       `json:"codes,omitempty"`   // of the discrepancies, each once
	Problem       string         `json:"problem,omitempty"` // why it could not be judged
}

// judgeMany judges every session that began at or after since (zero: all), the oldest first. One that cannot be
// judged is in the list too, as indeterminate.
func judgeMany(h *home, since time.Time) ([]judged, error) {
	ids, err := h.ids()
	if err != nil {
		return nil, err
	}
	list := []judged{}
	for _, id := range ids {
		row, err := h.fromLedger(id, false)
		began, timeErr := time.Parse(time.RFC3339Nano, row.Start)
		// A session whose start cannot be read may be one of those: it is not left out.
		if err == nil && timeErr == nil && began.Before(since) {
			continue
		}
		list = append(list, judgeOne(h, id, row.Name, row.Start, row.State, row.Command, err))
	}
	return list, nil
}

func judgeOne(h *home, id, name, start, state string, command []string, err error) judged {
	j := judged{ID: id, Name: name, Start: start, State: state, Command: command, Verdict: verify.Indeterminate}
	if j.Command == nil {
		j.Command = []string{}
	}
	var r *verify.Report
	if err == nil {
		r, err = judge(h.session(id), h)
	}
	if err != nil {
		j.Problem = err.Error()
		return j
	}
	if db, err := h.index(); err == nil {
		if row, err := db.Get(id); err == nil {
			j.State = row.State
		}
		db.Close()
	}
	j.Verdict, j.Actions = r.Verdict, len(r.Actions)
	for _, a := range r.Actions {
		if a.Verdict == verify.Indeterminate {
			j.Indeterminate++
		}
	}
	seen := map[string]bool{}
	for _, f := range r.Findings {
		switch f.Severity {
		case verify.Contradicts:
			j.Discrepancies++
			if !seen[f.Code] {
				seen[f.Code] = true
				j.Codes = append(j.Codes, f.Code)
			}
		case verify.Warning:
			j.Warnings++
		}
	}
	return j
}

// worst is the exit status of many sessions: a discrepancy in one is one in all of them.
func worst(list []judged) int {
	status := 0
	for _, j := range list {
		switch j.Verdict {
		case verify.Discrepancy:
			return verify.Discrepancy.ExitCode()
		case verify.Verified:
		default:
			status = verify.Indeterminate.ExitCode()
		}
	}
	return status
}

// parseSince reads --since: a duration back from now ("36h", "7d", "2w"), a day, or a time.
func parseSince(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	var n int
	var unit rune
	if k, err := fmt.Sscanf(s, "%d%c", &n, &unit); err == nil && k == 2 && n >= 0 && n < 100_000 && fmt.Sprintf("%d%c", n, unit) == s {
		switch unit {
		case 'd':
			return now.AddDate(0, 0, -n), nil
		case 'w':
			return now.AddDate(0, 0, -7*n), nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is neither a duration (36h, 7d) nor a time (2006-01-02, 2006-01-02T15:04)", report.Line(s))
}
