package scenarios

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ryehq/rye/verify"
)

// Compare holds a report against what a scenario wants and returns every difference in words.
func (s *Scenario) Compare(r *verify.Report) []string {
	var diff []string
	say := func(format string, args ...any) { diff = append(diff, fmt.Sprintf(format, args...)) }
	if r.Verdict != s.Want {
		say("the session is %s, want %s", r.Verdict, s.Want)
	}
	seen := map[string]bool{}
	for _, a := range r.Actions {
		seen[a.ID] = true
		want, ok := s.Actions[a.ID]
		if !ok {
			want = Want{Verdict: verify.Verified}
			if s.Want != verify.Verified || len(s.Actions) > 0 {
				say("%s (%s) is not in the scenario: %s", a.ID, a.Command, a.Verdict)
				continue
			}
		}
		if a.Verdict != want.Verdict {
			say("%s (%s) is %s, want %s", a.ID, a.Command, a.Verdict, want.Verdict)
		}
		diff = append(diff, compareFindings(a.ID, findingsOf(r, a.ID), want.Findings)...)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Actions)) {
		if !seen[id] {
			say("%s is not in the report", id)
		}
	}
	return append(diff, compareFindings("session", findingsOf(r, ""), s.Session)...)
}

// findingsOf are the findings of an action, each once, as scenarios write them.
func findingsOf(r *verify.Report, action string) []string {
	var out []string
	for _, f := range r.Findings {
		if f.Action != action {
			continue
		}
		s := f.Code
		if f.Reason != "" {
			s += "/" + f.Reason
		}
		if f.Severity != verify.Contradicts {
			s += ":" + string(f.Severity)
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func compareFindings(who string, got, want []string) []string {
	var diff []string
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return covers(w, g) }) {
			diff = append(diff, fmt.Sprintf("%s: no %s", who, w))
		}
	}
	for _, g := range got {
		if !slices.ContainsFunc(want, func(w string) bool { return covers(w, g) }) {
			diff = append(diff, fmt.Sprintf("%s: unwanted %s", who, g))
		}
	}
	return diff
}

// covers: a wanted finding without a reason is one of any reason.
func covers(want, got string) bool {
	if want == got {
		return true
	}
	wantCode, wantSeverity, _ := strings.Cut(want, ":")
	gotCode, gotSeverity, _ := strings.Cut(got, ":")
	gotCode, _, _ = strings.Cut(gotCode, "/")
	return wantCode == gotCode && wantSeverity == gotSeverity
}

// A Table counts sessions by the verdict they should have and the one they got.
type Table struct {
	counts map[[2]verify.Verdict]int
	Missed []string // discrepancies that were not found
	False  []string // discrepancies that are none
	Other  []string // other verdicts than wanted, between verified and indeterminate
	Detail []string // right verdict, other findings than wanted
}

// Add counts one session.
func (t *Table) Add(s *Scenario, got verify.Verdict, diff []string) {
	if t.counts == nil {
		t.counts = map[[2]verify.Verdict]int{}
	}
	t.counts[[2]verify.Verdict{s.Want, got}]++
	name := s.File + ": " + s.Name
	switch {
	case s.Want == got && len(diff) > 0:
		t.Detail = append(t.Detail, name)
	case s.Want == got:
	case s.Want == verify.Discrepancy:
		t.Missed = append(t.Missed, name)
	case got == verify.Discrepancy:
		t.False = append(t.False, name)
	default:
		t.Other = append(t.Other, name)
	}
}

var verdicts = []verify.Verdict{verify.Verified, verify.Discrepancy, verify.Indeterminate}

// Write writes the table, what was missed and what was found for nothing.
func (t *Table) Write(w io.Writer) {
	fmt.Fprintf(w, "%-22s %10s %12s %14s\n", "expected \\ got", "verified", "discrepancy", "indeterminate")
	found, all := 0, 0
	for _, want := range verdicts {
		fmt.Fprintf(w, "%-22s", want)
		for i, got := range verdicts {
			n := t.counts[[2]verify.Verdict{want, got}]
			fmt.Fprintf(w, " %*d", []int{10, 12, 14}[i], n)
			if want == verify.Discrepancy {
				all += n
				if got == verify.Discrepancy {
					found += n
				}
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "recall on discrepancies: %d of %d\n", found, all)
	for _, l := range []struct {
		title string
		names []string
	}{{"missed", t.Missed}, {"false discrepancies", t.False}, {"other verdict than wanted", t.Other}, {"other findings than wanted", t.Detail}} {
		slices.Sort(l.names)
		fmt.Fprintf(w, "%s: %d\n", l.title, len(l.names))
		for _, n := range l.names {
			fmt.Fprintf(w, "  %s\n", n)
		}
	}
}
