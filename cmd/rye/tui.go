package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/index"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/loader"
	"github.com/ryehq/rye/report"
	"github.com/ryehq/rye/verify"
	"github.com/ryehq/rye/wrapper"
)

// This is the only file that prints. Rules:
//
//   - Results go to standard output, everything else to standard error, each line headed "rye:".
//   - error: rye could not do it. warning: it did, with less. hint: what to do next.
//   - Colour only on a terminal, and never when NO_COLOR is set.
//   - Nothing a session recorded reaches the terminal raw: see report.Line.
//   - While a command is wrapped nothing is printed: the terminal is its own.

func printError(w io.Writer, err error)  { fmt.Fprintf(w, "rye: error: %s\n", report.Line(err.Error())) }
func printHint(w io.Writer, text string) { fmt.Fprintf(w, "rye: hint: %s\n", text) }
func warn(w io.Writer, err error)        { fmt.Fprintf(w, "rye: warning: %s\n", report.Line(err.Error())) }

func colour(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

func style(w io.Writer) report.Style {
	s := report.Style{Colour: colour(w)}
	if f, ok := w.(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.Width = cols
		}
	}
	return s
}

func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

func marshalIndent(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return append(b, '\n'), nil
}

// warnObserver says in one line what the session will not see.
func warnObserver(w io.Writer, o *observer) {
	switch {
	case o.about.Tier == "none":
		fmt.Fprintf(w, "rye: warning: no kernel witness, so every verdict will be indeterminate: %s (rye doctor explains)\n", report.Line(o.about.Detail))
	case o.about.SelfTest == "failed":
		fmt.Fprintf(w, "rye: warning: the kernel witness failed its self test: %s\n", report.Line(o.about.Detail))
	}
}

// printSummary is the last word of rye wrap: three lines.
func printSummary(w io.Writer, b *book, r *verify.Report, c counts) {
	if b.dir == "" || r == nil {
		fmt.Fprintf(w, "rye: %v\n", errNothingRecorded)
		return
	}
	s := style(w)
	lost := "nothing lost"
	if n := total(r.Coverage.Lost); n > 0 {
		lost = fmt.Sprintf("%d events lost", n)
	}
	fmt.Fprintf(w, "rye: session %s · %s, %s, %s, %s · %s\n", b.id,
		plural(c.processes, "process", "processes"), plural(c.execs, "exec", "execs"), plural(c.opens, "open", "opens"), plural(c.connects, "connect", "connects"), lost)
	fmt.Fprintf(w, "rye: %s\n", strings.TrimRight(verdictLine(r, s), " "))
	if n := report.Network(r.Network); n != "" {
		fmt.Fprintf(w, "rye: %s\n", n)
	}
	next := "rye show " + b.id
	if len(r.Findings) > 0 || r.Verdict != verify.Verified {
		next = "rye verify " + b.id
	}
	if names := survivorNames(r); names != "" {
		next += " · still running: " + names
	}
	fmt.Fprintf(w, "rye: details: %s\n", next)
	if r.Network != nil && r.Network.Proxy != "" && r.Coverage.Survivors > 0 {
		printHint(w, "what still runs was told to use this session's proxy, which is gone; outside rye it reaches nothing through it")
	}
}

func total(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func verdictLine(r *verify.Report, s report.Style) string {
	word := string(r.Verdict)
	if s.Colour {
		word = map[verify.Verdict]string{verify.Verified: "\x1b[1;32m", verify.Discrepancy: "\x1b[1;31m", verify.Indeterminate: "\x1b[1;33m"}[r.Verdict] + word + "\x1b[0m"
	}
	word += " · " + plural(len(r.Actions), "action", "actions")
	worst := -1
	for i, f := range r.Findings {
		if worst < 0 || f.Severity == verify.Contradicts && r.Findings[worst].Severity != verify.Contradicts {
			worst = i
		}
	}
	if worst >= 0 {
		f := r.Findings[worst]
		word += fmt.Sprintf(" · %s, first: %s: %s", plural(len(r.Findings), "finding", "findings"), f.Code, report.Cut(report.Line(f.Message), 160))
	}
	return word
}

func survivorNames(r *verify.Report) string {
	if r.Coverage.Survivors == 0 {
		return ""
	}
	return plural(r.Coverage.Survivors, "process", "processes")
}

// A summary is what --json-summary writes.
type summary struct {
	Session  string            `json:"session"`
	Dir      string            `json:"dir"`
	ExitCode int               `json:"exit_code"`
	Signal   string            `json:"signal,omitempty"`
	Recorded bool              `json:"recorded"`
	Verdict  verify.Verdict    `json:"verdict,omitempty"`
	Actions  int               `json:"actions"`
	Findings []verify.Finding  `json:"findings"`
	Tier     string            `json:"tier,omitempty"`
	Lost     map[string]uint64 `json:"lost,omitempty"`
	Self     usage             `json:"self"`
}

// usage is what rye itself cost from the start of the command to its end.
type usage struct {
	CPUNS  uint64 `json:"cpu_ns"`
	MaxRSS uint64 `json:"max_rss_bytes"`
	Events uint64 `json:"events"` // records taken from the kernel
}

func summaryOf(b *book, r *verify.Report, res wrapper.Result, self usage) summary {
	s := summary{Session: b.id, Dir: b.dir, ExitCode: res.ExitCode, Signal: res.SignalName(), Findings: []verify.Finding{}, Self: self}
	if r != nil {
		s.Recorded, s.Verdict, s.Actions, s.Findings = true, r.Verdict, len(r.Actions), append(s.Findings, r.Findings...)
		s.Tier, s.Lost = r.Coverage.Tier, r.Coverage.Lost
	}
	return s
}

func printReport(w io.Writer, r *verify.Report) {
	// A closed pipe (rye verify | head) is the reader's wish.
	_ = report.Text(w, r, style(w))
}

// printAction is the head of one action's chain. to is where w ends up.
func printAction(w, to io.Writer, r *verify.Report, a *verify.Action) {
	_ = report.Action(w, r, a, style(to))
	fmt.Fprintf(w, "\n%-12s%6s %10s %-19s %7s\n", "PART", "RECORD", "TIME", "EVENT", "PROCESS")
}

// printExplanation is rye verify --explain.
func printExplanation(w io.Writer, code string) error {
	list := report.Explanations()
	if code != "list" {
		e, ok := report.Explain(code)
		if !ok {
			return &exitError{exitUsage, fmt.Errorf("no finding code %q; rye verify --explain list gives all", code)}
		}
		list = []report.Explanation{e}
	}
	for i, e := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprint(w, e.Text(style(w).Width))
	}
	return nil
}

func printProof(w io.Writer, p *ledger.Proof, head ledger.Checkpoint, trusted bool) {
	name, _, _ := strings.Cut(p.Verifier, "+")
	fmt.Fprintf(w, "record %d is in the ledger of session %s (%d records, root %s)\n", p.Index, report.Line(head.Session), head.Size, head.Root)
	if trusted {
		fmt.Fprintf(w, "signed by %s, the key you gave\n", report.Line(name))
	} else {
		fmt.Fprintf(w, "signed by %s, as the proof itself says; give --key to hold it to a key you know\n", report.Line(name))
	}
	fmt.Fprintf(w, "%s\n", report.Line(string(p.Record)))
}

func printSessions(w io.Writer, list []index.Session) {
	if len(list) == 0 {
		fmt.Fprintf(w, "%v\n", errNoSession)
		return
	}
	fmt.Fprintf(w, "%-26s %-12s %-14s %8s %5s  %s\n", "SESSION", "STATE", "VERDICT", "TOOK", "EXIT", "COMMAND")
	for _, s := range list {
		took, exit := "", ""
		if s.State == "ended" {
			took, exit = time.Duration(s.DurationNS).Round(100*time.Millisecond).String(), fmt.Sprint(s.ExitCode)
		}
		name := strings.Join(s.Command, " ")
		if s.Name != "" {
			name = "[" + s.Name + "] " + name
		}
		fmt.Fprintf(w, "%-26s %-12s %-14s %8s %5s  %s\n", s.ID, s.State, s.Verdict, took, exit, report.Cut(report.Line(name), 80))
	}
}

func printRebuilt(w io.Writer, n int, bad []string) {
	fmt.Fprintf(w, "%s indexed\n", plural(n, "session", "sessions"))
	for _, b := range bad {
		fmt.Fprintf(w, "not indexed: %s\n", report.Line(b))
	}
}

func printDiagnosis(w io.Writer, d *diagnosis) {
	fmt.Fprintf(w, "rye %s on Linux %s\n", d.Version, d.Kernel)
	if d.OK {
		fmt.Fprintf(w, "kernel witness: yes, %s tier (self test passed)\n", d.Tier)
	} else {
		fmt.Fprintf(w, "kernel witness: no. %s\n", report.Line(d.Observer.Detail))
	}
	fmt.Fprintln(w)
	for _, f := range append(d.Features, d.Cgroup) {
		need := "optional"
		if f.Needed {
			need = "needed"
		}
		fmt.Fprintf(w, "  %-17s %-8s %-9s %s\n", f.Name, f.Answer, need, f.For)
		if f.Answer != loader.Yes && f.Why != "" {
			fmt.Fprintf(w, "  %-17s   %s\n", "", report.Line(f.Why))
		}
		if f.Answer != loader.Yes && f.Fix != "" {
			fmt.Fprintf(w, "  %-17s   to get it: %s\n", "", f.Fix)
		}
	}
	if len(d.Observer.Gaps) > 0 {
		fmt.Fprintln(w, "\nnot seen on this machine:")
		for _, g := range d.Observer.Gaps {
			fmt.Fprintf(w, "  %s: %s\n", g.What, report.Line(g.Why))
		}
	}
	fmt.Fprintf(w, "\nstate folder: %s%s\n", d.Home, d.HomeErr)
	for _, name := range []string{"codex", "claude", "gemini", "opencode", "copilot"} {
		if path, ok := d.Tools[name]; ok {
			fmt.Fprintf(w, "assistant: %s (%s)\n", name, path)
		}
	}
}

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
		} else if r.First != nil && r.grants() {
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

// printPackets says how much of a session's traffic a file of packets is.
func printPackets(w io.Writer, t *event.PacketTotals) {
	if t == nil {
		return
	}
	if t.SHA256 == "" {
		fmt.Fprintln(w, "rye: warning: the session has no end, so nothing proves that this file is as it was recorded")
		return
	}
	fmt.Fprintf(w, "rye: %d packets of the %d that the session's sockets sent and received", t.Copied-t.Left, t.Seen)
	if t.Lost+t.Left > 0 {
		fmt.Fprintf(w, "; %d more were to be in it and were lost, %d found no room", t.Lost, t.Left)
	}
	fmt.Fprintln(w)
}
