package screen

import (
	"regexp"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/wrapper/screen/grid"
)

// Codex CLI, from the list-style dialogs of 0.42 (October 2025) to 0.171. The dialog stands at the
// bottom: a question, fields, numbered options, a row of keys. Text begins in column 2 and wraps two
// columns before the right edge, between words only.
const codexIndent = 2

// codexTitle is one dialog by the question it asks.
type codexTitle struct {
	question *regexp.Regexp
	kind     string
	row      bool   // Codex prints a decision row for it
	field    string // the field that names what is asked for; "" takes the question's first group
	grammar  string
}

var codexTitles = []codexTitle{
	{regexp.MustCompile(`^Would you like to run the following command\?$`), kindCommand, true, "$", "codex-0.42"},
	{regexp.MustCompile(`^Do you want to approve network access to "(.*)"\?$`), kindNetwork, true, "", "codex-0.105"},
	{regexp.MustCompile(`^Would you like to make the following edits\?$`), kindEdit, false, "Destination", "codex-0.42"},
	{regexp.MustCompile(`^Would you like to grant these permissions\?$`), kindPermissions, false, "Permission rule", "codex-0.113"},
	{regexp.MustCompile(`^Would you like to send input to (?:terminal .*|the existing terminal)\?$`), kindStdin, true, "Input", "codex-0.171"},
	{regexp.MustCompile(`^Allow the (.*) MCP server to run tool "(.*)"\?$`), kindMCP, false, "*", "codex-0.113"},
	{regexp.MustCompile(`^(.*) needs your approval\.$`), kindMCP, false, "*", "codex-0.113"},
}

var codexLabels = []labelRule{
	label(`Yes, and don't ask again for commands that start with \x60(.*)\x60`, event.DecisionAlways).saves(shellWords),
	label(`Yes, and don't ask again for this command in this session`, event.DecisionSession),
	label(`Yes, and allow these permissions for this session`, event.DecisionSession),
	label(`Yes, and don't ask again for these files`, event.DecisionSession),
	label(`Yes, and allow this host for this conversation`, event.DecisionSession),
	label(`Yes, and allow this host in the future`, event.DecisionAlways),
	label(`Yes, grant these permissions for this session`, event.DecisionSession),
	label(`Yes, grant .*for this turn.*`, event.DecisionThisTime),
	label(`Yes, (?:proceed|just this once|provide the requested info)`, event.DecisionThisTime),
	label(`No, (?:continue without|and block|but continue).*`, event.DecisionDenied),
	label(`No, and tell Codex what to do differently|Cancel this request`, event.DecisionCancelled),
	// The form for MCP tools: a label and, in a second column, what it does.
	label(`Allow(?: +Run the tool.*)?`, event.DecisionThisTime),
	label(`Allow for this session.*`, event.DecisionSession),
	label(`Always allow.*`, event.DecisionAlways),
	label(`Cancel(?: +Cancel this.*)?`, event.DecisionCancelled),
}

var (
	codexFooter = regexp.MustCompile(`^\s*(?:Press .*enter.* to confirm|enter to submit \|)`)
	// codexOwn is the row of keys under the menus that the user opens (/model, /permissions): what is
	// chosen there is a setting, and answers no request.
	codexOwn   = regexp.MustCompile(`^\s*(?:enter .*· esc back|Press enter .*\besc to (?:go back|dismiss))`)
	codexField = regexp.MustCompile(`^(Thread|Environment|Reason|Permission rule|Description|Destination|Input): ?(.*)$`)
	codexMCP   = regexp.MustCompile(`^[A-Za-z_][\w.-]*: `)
)

// readCodex reads the dialog at the bottom of the screen.
func readCodex(v *view) *dialog {
	m, ok := findMenu(v.lines)
	if !ok || m.mark != '›' && m.mark != 0 || markedBelow(v, m.last) {
		return nil
	}
	if c := m.options[0].col; c != 5 && c != 7 { // "› 1. " or, in forms, "  › 1. "
		return nil
	}
	asks, own := false, false
	for _, l := range v.lines[m.last+1:] {
		asks = asks || codexFooter.MatchString(l.text)
		own = own || codexOwn.MatchString(l.text)
	}
	if own || !asks && codexUpgrade(v, m.first) {
		return &dialog{agent: "codex", notFor: true, options: m.options}
	}
	if !asks {
		return nil
	}
	d := &dialog{agent: "codex", marked: m.marked, options: m.options, absTop: v.top, offset: v.offset, end: m.last}
	name(d.options, codexLabels)
	d.marked = m.marked
	title, top, body := codexQuestion(v, m.first)
	if top < 0 {
		if !codexKnows(d.options) {
			return nil
		}
		// The question is above the screen: what is left of the text is all there is to read.
		d.kind, d.grammar, d.cut, d.row = kindUnknown, "codex-0.42", true, true
		d.doubt = "the question is not on the screen"
		if d.alwaysPrefix() != nil {
			d.kind = kindCommand
		}
		top, body = 0, 0
		d.command, d.ambiguous = codexText(v, 0, m.first, d)
	} else {
		d.kind, d.grammar, d.row = title.kind, title.grammar, title.row
		d.question = strings.Join(strings.Fields(joined(v.lines[top:body])), " ")
		codexFields(v, d, title, body, m.first)
	}
	for i := range d.options {
		o := &d.options[i]
		if o.decision == event.DecisionAlways && len(o.rows) > 1 {
			if p, ok := leading(d.command, labelWords(o.label)); ok {
				o.prefix = shellWords(p)
			}
		}
	}
	if d.thread != "" {
		d.row = false // another thread's decision is not printed in this one
	}
	d.top, d.absTop = top, v.top+uint64(top)
	d.end = m.last
	for y := m.last + 1; y < v.rows; y++ {
		if codexFooter.MatchString(v.lines[y].text) {
			d.end = y
		}
	}
	d.screen = v.shown(top, d.end+1)
	return d
}

// codexUpgrade tells the menu that offers a new model: it grants nothing.
func codexUpgrade(v *view, first int) bool {
	for y := first - 1; y >= 0 && y > first-4; y-- {
		if strings.TrimSpace(v.lines[y].text) == "Choose how you'd like Codex to proceed." {
			return true
		}
	}
	return false
}

// codexKnows reports whether at least one yes and one no are labels of Codex's.
func codexKnows(options []option) bool {
	yes, no := false, false
	for _, o := range options {
		yes = yes || granted(o.decision)
		no = no || o.decision != "" && !granted(o.decision)
	}
	return yes && no
}

// codexQuestion finds the question above the options: its title, first row, and the row after it.
// The lowest one in bold letters counts: the command and the model's reason may hold the same words,
// but neither is bold. Where nothing is, the lowest counts.
func codexQuestion(v *view, first int) (title codexTitle, top, body int) {
	top = -1
	for y := first - 1; y >= 0; y-- {
		l := v.lines[y]
		if l.indent() != codexIndent || y > 0 && !v.lines[y-1].blank() && !strings.HasPrefix(v.lines[y-1].text, "  Field ") {
			continue
		}
		style := l.style(codexIndent).Attr
		if style&grid.Italic != 0 || top >= 0 && style&grid.Bold == 0 {
			continue
		}
		text := ""
		for n := 0; n < 4 && y+n < first && v.lines[y+n].indent() == codexIndent; n++ {
			text = strings.TrimSpace(text + " " + v.lines[y+n].from(codexIndent))
			for _, t := range codexTitles {
				if !t.question.MatchString(text) {
					continue
				}
				title, top, body = t, y, y+n+1
				if style&grid.Bold != 0 {
					return title, top, body
				}
			}
		}
	}
	return title, top, body
}

func joined(lines []line) string {
	var parts []string
	for _, l := range lines {
		parts = append(parts, strings.TrimSpace(l.text))
	}
	return strings.Join(parts, " ")
}

// codexFields reads the fields between the question and the options.
func codexFields(v *view, d *dialog, title codexTitle, from, to int) {
	for to > from && v.lines[to-1].blank() {
		to--
	}
	if title.field == "" {
		d.command = title.question.FindStringSubmatch(d.question)[1]
	}
	if title.field == "*" {
		d.command = codexForm(v, d, title, from, to)
		return
	}
	for y := from; y < to; y++ {
		l := v.lines[y]
		text := l.from(codexIndent)
		if l.indent() < codexIndent || l.blank() {
			continue
		}
		if strings.HasPrefix(text, "$ ") && title.field == "$" && l.style(codexIndent).Attr&grid.Italic == 0 {
			d.command, d.ambiguous = codexText(v, y, to, d)
			d.command = strings.TrimPrefix(d.command, "$ ")
			break
		}
		m := codexField.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		end := y + 1
		for end < to && !v.lines[end].blank() && !codexField.MatchString(v.lines[end].from(codexIndent)) {
			end++
		}
		value := strings.TrimSpace(strings.TrimPrefix(joined(v.lines[y:end]), m[1]+":"))
		switch m[1] {
		case "Thread":
			d.thread = value
		case "Environment":
			if value == "local" { // said since then; before, only other places were
				d.grammar = "codex-0.171"
			}
		case "Reason", "Description":
			d.reason = value
		}
		if m[1] == title.field {
			d.command = value
			d.hidden = hiddenIn(v, v.lines[y:end], codexIndent)
		}
		y = end - 1
	}
	if d.kind == kindEdit && d.command == "" {
		d.command = d.reason // before 2026-08 the files were listed, without a field
	}
}

// codexForm reads "name: value" rows of an MCP tool call.
func codexForm(v *view, d *dialog, title codexTitle, from, to int) string {
	parts := []string{strings.Join(title.question.FindStringSubmatch(d.question)[1:], ".")}
	for y := from; y < to; y++ {
		text := v.lines[y].from(codexIndent)
		if text == "" {
			continue
		}
		if !codexMCP.MatchString(text) && len(parts) > 1 {
			parts[len(parts)-1] += " " + text
			d.ambiguous = true
			continue
		}
		parts = append(parts, text)
		d.cut = d.cut || strings.HasSuffix(text, "...")
	}
	d.hidden = hiddenIn(v, v.lines[from:to], codexIndent)
	return strings.Join(parts, "\n")
}

// leading returns the part of a command that a label names which was wrapped: in the command wraps
// are undone with more to go by.
func leading(command, named string) (string, bool) {
	rest := squeeze(named)
	for i, r := range command {
		if rest == "" {
			return strings.TrimRight(command[:i], " "), true
		}
		seen := squeeze(string(r))
		if !strings.HasPrefix(rest, seen) {
			return "", false
		}
		rest = rest[len(seen):]
	}
	return command, rest == ""
}

// codexMore is how Codex since 0.171 leaves out the middle of a command that is too long.
var codexMore = regexp.MustCompile(`^\s*\[… \d+ lines\]`)

// codexText puts the rows of a command together.
func codexText(v *view, from, to int, d *dialog) (string, bool) {
	lines := trimBlank(v.lines[from:to])
	for i, l := range lines {
		if codexMore.MatchString(l.text) {
			d.cut = true
			lines = trimBlank(lines[:i])
			break
		}
	}
	d.hidden = hiddenIn(v, lines, codexIndent)
	width := v.cols - 2*codexIndent
	return unwrap(rowTexts(lines, codexIndent), wrapping{min: width, max: width})
}
