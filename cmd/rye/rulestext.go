package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/ryehq/rye/report"
)

// printRules is the text form of rye rules.
func printRules(w io.Writer, l *ruleList) {
	if len(l.Files) == 0 {
		fmt.Fprintln(w, "no permission file of an assistant applies here")
		return
	}
	for _, r := range l.Rules {
		fmt.Fprintf(w, "%s\n", report.Cut(report.Line(r.Text), 120))
		fmt.Fprintf(w, "     %s, %s level, %s%s\n", r.Agent, r.Level, report.Line(r.Path), atLine(r.Line))
		switch r.Shared {
		case "yes":
			fmt.Fprintln(w, "     comes with the project: its git has the file")
		case "no":
			fmt.Fprintln(w, "     on this machine only")
		default:
			fmt.Fprintln(w, "     whether the project's git has the file could not be read")
		}
		switch {
		case r.First == nil:
			fmt.Fprintln(w, "     in no recorded session that was searched")
		case r.First.At == "start":
			fmt.Fprintf(w, "     first seen %s, when session %s began\n", report.Line(r.First.Time), r.First.Session)
		default:
			fmt.Fprintf(w, "     appeared %s in session %s, %s\n", report.Line(r.First.Time), r.First.Session, grantText(r.Granted))
		}
		if r.Used > 0 {
			ran := make([]string, len(r.Ran))
			for i, c := range r.Ran {
				ran[i] = report.Cut(report.Line(c), 60)
			}
			fmt.Fprintf(w, "     used %s: %s\n", plural(r.Used, "time", "times"), strings.Join(ran, " · "))
		} else if r.First != nil {
			fmt.Fprintln(w, "     let nothing run in the sessions searched")
		}
		if r.Beyond > 0 {
			fmt.Fprintf(w, "     what ran went beyond its words %s\n", plural(r.Beyond, "time", "times"))
		}
	}
	for _, f := range l.Files {
		if f.Error != "" {
			fmt.Fprintf(w, "%s: not readable as rules: %s\n", report.Line(f.Path), report.Line(f.Error))
		}
		if f.Note != "" {
			fmt.Fprintf(w, "%s: %s\n", report.Line(f.Path), report.Line(f.Note))
		}
	}
	fmt.Fprintf(w, "%s in %s; %d of %d recorded sessions searched\n", plural(len(l.Rules), "rule", "rules"), plural(len(l.Files), "file", "files"), l.Searched, l.Recorded)
	for _, id := range l.NotCounted {
		fmt.Fprintf(w, "not counted: session %s (its ledger does not prove itself)\n", id)
	}
}

func atLine(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(":%d", n)
}

func grantText(g *ruleGrant) string {
	switch {
	case g == nil:
		return "and no recorded answer explains it"
	case g.By == "time":
		return fmt.Sprintf("after answer %s to %s, which did not name its words", g.Approval, report.Cut(report.Line(g.Command), 60))
	}
	return fmt.Sprintf("granted by answer %s to %s", g.Approval, report.Cut(report.Line(g.Command), 60))
}
