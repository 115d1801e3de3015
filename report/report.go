// Package report writes a verdict for people. It imports verify and the standard library, and decides
// nothing: what it shows is what verify found.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ryehq/rye/verify"
)

// A Style is how much a terminal can show.
type Style struct {
	Colour bool
	Width  int // columns; 0 for 100
}

const (
	red, green, yellow, bold, dim, reset = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
)

func (s Style) paint(colour, text string) string {
	if !s.Colour {
		return text
	}
	return colour + text + reset
}

func (s Style) verdict(v verify.Verdict) string {
	switch v {
	case verify.Verified:
		return s.paint(bold+green, string(v))
	case verify.Discrepancy:
		return s.paint(bold+red, string(v))
	}
	return s.paint(bold+yellow, string(v))
}

func (s Style) severity(v verify.Severity) string {
	switch v {
	case verify.Contradicts:
		return s.paint(red, string(v))
	case verify.Warning:
		return s.paint(yellow, string(v))
	}
	return s.paint(dim, string(v))
}

// Text writes the report: verdict, what it rests on, findings by severity, actions with their chain.
func Text(w io.Writer, r *verify.Report, s Style) error {
	if s.Width == 0 {
		s.Width = 100
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  session %s\n", s.verdict(r.Verdict), Line(r.Session))
	fmt.Fprintf(&b, "%s\n", s.paint(dim, basis(r)))
	if n := Network(r.Network); n != "" {
		fmt.Fprintf(&b, "%s\n", s.paint(dim, n))
	}

	findings := slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(x, y verify.Finding) int { return rank(x.Severity) - rank(y.Severity) })
	if len(findings) > 0 {
		b.WriteString("\nFindings\n")
	}
	for _, f := range findings {
		finding(&b, f, s)
	}

	if len(r.Actions) > 0 {
		b.WriteString("\nActions\n")
	}
	for i := range r.Actions {
		action(&b, &r.Actions[i], s)
	}
	if n := len(r.Housekeeping); n > 0 {
		fmt.Fprintf(&b, "\n%s\n", s.paint(dim, fmt.Sprintf("The assistant also started %d programs for itself (%s); rye verify --json lists them.", n, kinds(r.Housekeeping))))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Action writes one action and its findings.
func Action(w io.Writer, r *verify.Report, a *verify.Action, s Style) error {
	if s.Width == 0 {
		s.Width = 100
	}
	var b strings.Builder
	action(&b, a, s)
	for _, n := range a.Findings {
		if n < len(r.Findings) {
			finding(&b, r.Findings[n], s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func finding(b *strings.Builder, f verify.Finding, s Style) {
	where := records(f.Records)
	if f.Action != "" {
		where = f.Action + ", " + where
	}
	fmt.Fprintf(b, "  %s %s ", s.severity(f.Severity), s.paint(bold, f.Code))
	wrap(b, fmt.Sprintf("%s (%s)", Line(f.Message), strings.TrimSuffix(where, ", ")), s.Width, len(f.Severity)+len(f.Code)+4, 6)
}

// basis is one line on what the verdict rests on.
func basis(r *verify.Report) string {
	parts := []string{"kernel witness: " + or(r.Coverage.Tier, "none")}
	if r.Coverage.SelfTest != "passed" {
		parts = append(parts, "self test "+or(r.Coverage.SelfTest, "not run"))
	}
	var lost uint64
	for _, n := range r.Coverage.Lost {
		lost += n
	}
	if lost > 0 {
		parts = append(parts, fmt.Sprintf("%d events lost", lost))
	} else {
		parts = append(parts, "nothing lost")
	}
	if r.Coverage.Truncated > 0 {
		parts = append(parts, fmt.Sprintf("%d argument lists cut", r.Coverage.Truncated))
	}
	if r.Ledger.OK {
		anchor := "no outside anchor: a cut end would not show"
		if r.Ledger.Anchored {
			anchor = "anchored"
		}
		parts = append(parts, fmt.Sprintf("ledger of %d records holds (%s)", r.Ledger.Records, anchor))
	} else {
		parts = append(parts, "ledger broken: "+r.Ledger.Problem)
	}
	return strings.Join(parts, " · ")
}

func action(b *strings.Builder, a *verify.Action, s Style) {
	cols := max(s.Width-24, 20)
	fmt.Fprintf(b, "  %-4s %s  %s\n", a.ID, s.verdict(a.Verdict), s.paint(bold, Cut(Line(a.Command), cols)))
	allowed := or(a.Allowed.Type, "nothing")
	if a.Allowed.ApprovalID != "" {
		allowed += " (" + a.Allowed.ApprovalID + ")"
	}
	if a.Allowed.Source != "" && a.Allowed.Source != "none" {
		allowed = a.Allowed.Source + " " + allowed
	} else {
		allowed = "nothing that rye saw"
	}
	if a.Asked != nil && a.Asked.Agent != "" {
		fmt.Fprintf(b, "       asked for by the sub-agent %s\n", Line(a.Asked.Agent))
	}
	fmt.Fprintf(b, "       allowed by %s", Line(allowed))
	if a.Root == nil && a.Link != "" { // an edit, a fetch: there is no exec to show
		fmt.Fprintf(b, "; done, linked by %s\n", Line(a.Link))
		return
	}
	if a.Root == nil {
		b.WriteString("; did not run\n")
		return
	}
	fmt.Fprintf(b, "; linked by %s\n", or(a.Link, "nothing"))
	shown := 0
	for _, x := range a.Execs {
		if x.Relation == verify.Descendant && shown >= 6 {
			continue
		}
		shown++
		mark := s.paint(dim, x.Relation)
		if x.Relation == verify.Unexplained {
			mark = s.paint(red, x.Relation)
		}
		fmt.Fprintf(b, "       %s %s\n", Cut(Line(join(x.Argv)), cols), mark)
	}
	if left := max(a.ExecCount, len(a.Execs)) - shown; left > 0 {
		fmt.Fprintf(b, "       %s\n", s.paint(dim, fmt.Sprintf("… and %d more programs", left)))
	}
}

func rank(s verify.Severity) int {
	switch s {
	case verify.Contradicts:
		return 0
	case verify.Warning:
		return 1
	}
	return 2
}

func records(seqs []uint64) string {
	switch len(seqs) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("record %d", seqs[0])
	}
	var parts []string
	for _, n := range seqs[:min(len(seqs), 6)] {
		parts = append(parts, fmt.Sprint(n))
	}
	if len(seqs) > 6 {
		parts = append(parts, "…")
	}
	return "records " + strings.Join(parts, ", ")
}

func kinds(list []verify.Housekeeping) string {
	count := map[string]int{}
	for _, h := range list {
		count[h.Kind]++
	}
	var names []string
	for k := range count {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	if len(names) > 5 {
		names = append(names[:5], "…")
	}
	return strings.Join(names, ", ")
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func join(argv []string) string {
	quoted := make([]string, 0, min(len(argv), 64))
	for _, a := range argv[:min(len(argv), 64)] {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`;|&<>()*?[]{}~!#") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted = append(quoted, a)
	}
	return strings.Join(quoted, " ")
}

// Line makes any text safe to print on one line of a terminal: nothing in it can move the cursor, change
// colours or turn the reading direction. Invisible characters become visible escapes.
func Line(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

// Cut shortens a line to n columns, roughly (one per rune), and shows that it did.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// wrap breaks text at spaces. used columns of the first row are taken; later rows are indented.
func wrap(b *strings.Builder, text string, width, used, indent int) {
	col := used
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if i > 0 && col+1+n > width {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			col = indent
		} else if i > 0 {
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += n
	}
	b.WriteByte('\n')
}
