package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ryehq/rye/report"
)

// What rye verify prints beside a report; see tui.go.

// printEvidence is rye verify --at.
func printEvidence(w io.Writer, e *evidence) {
	p := newEventPrinter(w, colour(w))
	p.start = e.start
	fmt.Fprintf(w, "session %s, %s\n\n%6s %10s %-19s %7s\n", report.Line(e.Session), e.Verdict, "RECORD", "TIME", "EVENT", "PROCESS")
	p.event(&e.event)
	fmt.Fprintln(w)
	if in := e.Included; in.OK {
		name, _, _ := strings.Cut(in.Signer, "+")
		whose := "a key that this install does not know"
		if in.Known {
			whose = "the key of this install"
		}
		fmt.Fprintf(w, "in the ledger: one of %d records, root %s; %s lead there, signed by %s (%s)\n", in.Size, in.RootHash,
			plural(in.Path, "hash", "hashes"), report.Line(name), whose)
	} else {
		fmt.Fprintf(w, "NOT proved to be in the ledger: %s\n", report.Line(in.Problem))
	}
	for _, a := range e.Actions {
		fmt.Fprintf(w, "%s of %s (%s): %s\n", a.Role, a.Action, a.Verdict, report.Cut(report.Line(a.Command), 120))
	}
	if e.Housekeep != "" {
		fmt.Fprintf(w, "started by the assistant for itself: %s\n", report.Line(e.Housekeep))
	}
	if len(e.Actions) == 0 && e.Housekeep == "" {
		fmt.Fprintln(w, "part of no action")
	}
	for _, f := range e.Findings {
		fmt.Fprintf(w, "%s %s: %s\n", f.Severity, f.Code, report.Cut(report.Line(f.Message), 240))
	}
	fmt.Fprintf(w, "\n%s\n", report.Line(string(e.Record)))
}

// printJudged is rye verify --all.
func printJudged(w io.Writer, list []judged) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no session of that time")
		return
	}
	fmt.Fprintf(w, "%-26s %-16s %-14s %7s %7s %7s  %s\n", "SESSION", "STARTED", "VERDICT", "ACTIONS", "DISCREP", "WARN", "COMMAND")
	count := map[string]int{}
	for _, j := range list {
		count[string(j.Verdict)]++
		at := ""
		if t, err := time.Parse(time.RFC3339Nano, j.Start); err == nil {
			at = t.Format("2006-01-02 15:04")
		}
		name := strings.Join(j.Command, " ")
		if j.Name != "" {
			name = "[" + j.Name + "] " + name
		}
		fmt.Fprintf(w, "%-26s %-16s %-14s %7d %7d %7d  %s\n", report.Line(j.ID), at, j.Verdict, j.Actions, j.Discrepancies, j.Warnings, report.Cut(report.Line(name), 60))
		if len(j.Codes) > 0 {
			fmt.Fprintf(w, "%-26s   %s\n", "", strings.Join(j.Codes, ", "))
		}
		if j.Problem != "" {
			fmt.Fprintf(w, "%-26s   could not be judged: %s\n", "", report.Cut(report.Line(j.Problem), 120))
		}
		if j.State == "running" {
			fmt.Fprintf(w, "%-26s   still running\n", "")
		}
	}
	fmt.Fprintf(w, "\n%s: %d verified, %d with discrepancies, %d indeterminate\n", plural(len(list), "session", "sessions"),
		count["verified"], count["discrepancy"], count["indeterminate"])
}
