package screen

import (
	"regexp"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/wrapper/screen/grid"
)

// A decisionRow is a line that Codex prints after a decision, in column 0: "✔ You approved codex to
// run S this time".
type decisionRow struct {
	text     string // as printed, wraps undone
	key      string // text squeezed: the same however it is wrapped
	kind     string
	subject  string // command, prefix, host or file, as far as the row shows it
	decision string
	reviewer bool // decided by Codex's own reviewer, no dialog belongs to it
	always   bool // subject is the saved prefix, not the command
	cut      bool // the row shortens the subject
	plain    bool // without the glyph: raw output mode, where program output may carry one
	styled   bool // painted in the colours Codex uses
}

type rowRule struct {
	expr     *regexp.Regexp
	kind     string
	decision string
	reviewer bool
	always   bool
}

// rowSays makes a row rule of the text after the glyph. The first group is the subject; without one
// the row names none.
func rowSays(expr, kind, decision string) rowRule {
	return rowRule{expr: regexp.MustCompile(`^` + expr + `$`), kind: kind, decision: decision}
}

func (r rowRule) byReviewer() rowRule { r.reviewer = true; return r }
func (r rowRule) ofPrefix() rowRule   { r.always = true; return r }

// codexRows is the grammar of decision rows.
var codexRows = []rowRule{
	rowSays(`You approved codex to always run commands that start with (.*)`, kindCommand, event.DecisionAlways).ofPrefix(),
	rowSays(`You approved codex to run (.*) and applied the execpolicy amendment`, kindCommand, event.DecisionAlways),
	rowSays(`You approved codex to run (.*) this time`, kindCommand, event.DecisionThisTime),
	rowSays(`You approved codex to run (.*) every time this session`, kindCommand, event.DecisionSession),
	rowSays(`You approved codex network access to (.*) this time`, kindNetwork, event.DecisionThisTime),
	rowSays(`You approved codex network access to (.*) every time this session`, kindNetwork, event.DecisionSession),
	rowSays(`You persisted Codex network access to (.*)`, kindNetwork, event.DecisionAlways),
	rowSays(`You denied codex network access to (.*) and saved that rule`, kindNetwork, event.DecisionDenied),
	rowSays(`You did not approve codex to run (.*)`, kindCommand, event.DecisionDenied),
	rowSays(`You did not approve codex network access to (.*)`, kindNetwork, event.DecisionDenied),
	rowSays(`You canceled the request to run (.*)`, kindCommand, event.DecisionCancelled),
	rowSays(`You canceled the request for codex network access to (.*)`, kindNetwork, event.DecisionCancelled),
	rowSays(`You approved this request this time`, kindUnknown, event.DecisionThisTime),
	rowSays(`You approved this request every time this session`, kindUnknown, event.DecisionSession),
	rowSays(`You did not approve this request`, kindUnknown, event.DecisionDenied),
	rowSays(`You canceled this request`, kindUnknown, event.DecisionCancelled),
	rowSays(`Auto-reviewer approved codex to run (.*) this time`, kindCommand, event.DecisionThisTime).byReviewer(),
	rowSays(`Request approved for (?:codex to run )?(.*)`, kindCommand, event.DecisionThisTime).byReviewer(),
	rowSays(`Request denied for codex to run (.*)`, kindCommand, event.DecisionDenied).byReviewer(),
	rowSays(`Request denied for codex to access (.*)`, kindNetwork, event.DecisionDenied).byReviewer(),
	rowSays(`Request denied for codex to apply (a patch touching .*)`, kindEdit, event.DecisionDenied).byReviewer(),
	rowSays(`Request denied for codex to call MCP tool (.*)`, kindMCP, event.DecisionDenied).byReviewer(),
	rowSays(`Request denied for codex to request permissions(.*)`, kindPermissions, event.DecisionDenied).byReviewer(),
	rowSays(`Request denied`, kindUnknown, event.DecisionDenied).byReviewer(),
	rowSays(`Review (?:timed out|failed) before codex could run (.*)`, kindCommand, event.DecisionTimeout).byReviewer(),
	rowSays(`Review (?:timed out|failed) before codex could access (.*)`, kindNetwork, event.DecisionTimeout).byReviewer(),
	rowSays(`Review (?:timed out|failed) before codex could apply (a patch touching .*)`, kindEdit, event.DecisionTimeout).byReviewer(),
	rowSays(`Review (?:timed out|failed) before codex could call MCP tool (.*)`, kindMCP, event.DecisionTimeout).byReviewer(),
	rowSays(`Review (?:timed out|failed) before codex could request permissions(.*)`, kindPermissions, event.DecisionTimeout).byReviewer(),
	rowSays(`Review (?:timed out|failed) before this request could be approved`, kindUnknown, event.DecisionTimeout).byReviewer(),
}

const maxRowLines = 12 // 80 graphemes and the words around them, on the narrowest terminal

// readRows returns the decision rows on the screen from the top down. plain lets rows without a glyph
// pass as well.
func readRows(v *view, plain bool) []decisionRow {
	var found []decisionRow
	for y, l := range v.lines {
		row, glyph := strings.CutPrefix(l.text, "✔ ")
		if !glyph {
			row, glyph = strings.CutPrefix(l.text, "✗ ")
		}
		if !glyph {
			if !plain || !strings.HasPrefix(l.text, "You ") {
				continue
			}
			row = l.text
		}
		if r, ok := readRow(v, y, row, glyph); ok {
			found = append(found, r)
		}
	}
	return found
}

// readRow puts the row and the rows it continues on together. How far it goes is not marked: each
// length that makes a sentence of the grammar is possible, and the longest is taken.
func readRow(v *view, y int, first string, glyph bool) (decisionRow, bool) {
	rows := []string{first}
	for n := y + 1; n < len(v.lines) && len(rows) < maxRowLines; n++ {
		l := v.lines[n]
		if l.blank() || glyph && l.indent() < 2 { // later rows are indented under the text
			break
		}
		rows = append(rows, strings.TrimSpace(l.text))
	}
	for n := len(rows); n >= 1; n-- {
		text, _ := unwrap(unbroken(rows[:n]), wrapping{min: v.cols - 2, max: v.cols})
		text = strings.ReplaceAll(text, "\n", " ")
		for _, rule := range codexRows {
			m := rule.expr.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			r := decisionRow{text: text, key: shorten(squeeze(text)), kind: rule.kind, decision: rule.decision,
				reviewer: rule.reviewer, always: rule.always, plain: !glyph}
			if len(m) > 1 {
				r.subject = strings.TrimPrefix(m[1], ": ")
				r.cut = strings.HasSuffix(m[1], "...")
			}
			s := v.lines[y].style(0)
			r.styled = glyph && (s.Fg == grid.Palette|2 || s.Fg == grid.Palette|1 ||
				s.Fg == grid.Palette|9 || s.Fg == grid.Palette|10) && v.lines[y].styles() > 1
			if glyph {
				r.text = v.lines[y].text[:len("✔ ")] + text
			}
			return r, true
		}
	}
	return decisionRow{}, false
}

// shorten bounds what is kept of a row to know it again. No row of Codex's is as long.
func shorten(s string) string { return s[:min(len(s), 1024)] }

// unbroken joins rows that end where Codex breaks a word of a decision row: after a / or a -.
func unbroken(rows []string) []string {
	out := rows[:1:1]
	for _, r := range rows[1:] {
		last := &out[len(out)-1]
		word := lastWord(*last)
		if strings.HasSuffix(word, "/") && word != "/" || strings.HasSuffix(word, "-") && strings.Trim(word, "-") != "" {
			*last += r
			continue
		}
		out = append(out, r)
	}
	return out
}

// styles counts the changes of style along the row.
func (l line) styles() int {
	n := 0
	for x := 1; x < len(l.cells); x++ {
		if l.cells[x].Text != "" && l.cells[x].Style != l.cells[x-1].Style {
			n++
		}
	}
	return n
}

// codexSnippet shortens a command as Codex does in a decision row: its first line, and 80 graphemes.
func codexSnippet(command string) string {
	s, _, more := strings.Cut(command, "\n")
	if more {
		s += " ..."
	}
	if uniseg.GraphemeClusterCount(s) <= 80 {
		return s
	}
	g := uniseg.NewGraphemes(s)
	end := 0
	for range 77 {
		g.Next()
		_, end = g.Positions()
	}
	return s[:end] + "..."
}

// tells reports whether the row speaks of the dialog d. A reading of the dialog in which a wrap was
// taken for a newline, or the other way round, must not matter.
func (r decisionRow) tells(d *dialog) bool {
	if r.reviewer || r.kind == kindUnknown {
		return r.kind == kindUnknown && !r.reviewer
	}
	subject := squeeze(r.subject)
	if r.always {
		for _, o := range d.options {
			if o.decision == event.DecisionAlways && sameSnippet(subject, labelWords(o.label)) {
				return true
			}
		}
		return false
	}
	switch d.kind {
	case kindNetwork:
		return r.kind == kindNetwork && strings.Contains(subject, squeeze(d.command))
	case kindStdin:
		return r.kind == kindCommand && strings.HasPrefix(subject, "write_stdin")
	}
	if r.kind != kindCommand {
		return false
	}
	if d.cut {
		return true // what is left of the dialog cannot say otherwise
	}
	return sameSnippet(subject, d.command)
}

// sameSnippet compares a squeezed row subject with a command, whole or shortened.
func sameSnippet(subject, command string) bool {
	if subject == squeeze(command) || subject == squeeze(codexSnippet(command)) {
		return true
	}
	short, cut := strings.CutSuffix(subject, "...")
	return cut && short != "" && strings.HasPrefix(squeeze(command), short)
}

// labelWords is what stands between the backquotes of an "always" label.
func labelWords(label string) string {
	from, to := strings.IndexByte(label, '`'), strings.LastIndexByte(label, '`')
	if from < 0 || to <= from {
		return ""
	}
	return label[from+1 : to]
}
