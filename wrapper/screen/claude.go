package screen

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// Claude Code, 1.0.60 to 2.1.332. Four layouts share titles, questions and labels:
//
//	claude-1.0      rounded box; command, below it the description in dim letters
//	claude-2.0.50   a rule of ─ above, no box; otherwise the same
//	claude-2.1.290  description above, command between two rules of ╌
//	claude-ax       screen-reader mode: flat text, nothing marked, digits typed and confirmed

// claudeTitle is a dialog by the first row under its upper border.
type claudeTitle struct {
	title *regexp.Regexp
	kind  string
}

func claudeHead(expr, kind string) claudeTitle {
	return claudeTitle{regexp.MustCompile(`^(?:` + expr + `)`), kind}
}

var claudeTitles = []claudeTitle{
	claudeHead(`Bash command`, kindCommand),
	claudeHead(`(?:Edit|Create|Overwrite|Write|Delete) file|Edit notebook`, kindEdit),
	claudeHead(`Fetch|Web search|Web Search`, kindNetwork),
	claudeHead(`Network request outside of sandbox`, kindNetwork),
	claudeHead(`Tool use`, kindMCP),
	claudeHead(`Make auto mode your default`, kindPermissions),
	claudeHead(`Read file|Read|Search|List files|Add directory|Accessing workspace:?|Do you trust the files in this folder\?`, kindPermissions),
}

var claudeQuestion = regexp.MustCompile(`^(?:Do you want to .*|Would you like to .*)\?$`)

var claudeLabels = []labelRule{
	label(`Yes, and don't ask again for similar commands in .*`, event.DecisionAlways),
	label(`Yes, and don't ask again for: ?(.*)`, event.DecisionAlways).saves(oneRule),
	label(`Yes, and don't ask again for (.*?) commands? ?in .*`, event.DecisionAlways).saves(ruleList),
	label(`Yes, and don't ask again this session`, event.DecisionSession),
	label(`Yes, and don't ask again for (\S+)`, event.DecisionAlways).saves(oneRule),
	label(`Yes, and always allow access to .*`, event.DecisionAlways),
	label(`Yes, (?:and keep allowing|set auto mode as my default) .*`, event.DecisionAlways),
	label(`Yes, (?:allow|and allow|and add|and remember|and switch to|and use|auto-accept) .*`, event.DecisionSession),
	label(`Yes, (?:I accept|I trust this folder|proceed|manually approve edits|trust and add server).*|Yes`, event.DecisionThisTime),
	label(`Yes, and tell Claude what to do next`, event.DecisionThisTime).typed(),
	label(`Yes, .*`, event.DecisionThisTime).typed(), // amended: the user's own words follow
	label(`Type here to tell Claude what to do differently`, event.DecisionDenied).typed(),
	label(`No, and tell Claude what to do differently.*`, event.DecisionDenied),
	label(`No(?:, .*)?`, event.DecisionDenied),
}

func oneRule(s string) []string { return []string{strings.TrimSpace(s)} }

// ruleList takes "touch built.txt and make -n all" apart: one rule a command.
func ruleList(s string) []string {
	var out []string
	for _, part := range strings.Split(strings.ReplaceAll(s, ", and ", " and "), " and ") {
		for _, p := range strings.Split(part, ", ") {
			if p = strings.TrimSpace(p); p != "" {
				out = append(out, p)
			}
		}
	}
	return out
}

// openRules puts the star back that a list of rules is shown without: a rule that is one of the
// command's parts is for that part alone, one that a part begins with is for all that begin so.
// (Measured against the settings that 1.0.128 to 2.1.332 saved.)
func openRules(rules []string, command string) {
	parts := commandWords(command)
	for i, rule := range rules {
		words := strings.Fields(rule)
		exact, begins := false, false
		for _, w := range parts {
			if len(w) >= len(words) && slices.Equal(w[:len(words)], words) {
				exact, begins = exact || len(w) == len(words), true
			}
		}
		if begins && !exact {
			rules[i] += " *"
		}
	}
}

// readClaude reads the lowest dialog of Claude Code's on the screen.
func readClaude(v *view) *dialog {
	for _, b := range v.blocks {
		m, ok := b.menu()
		if !ok || m.mark != '❯' && m.mark != 0 || b.left > 0 || markedBelow(v, b.lines[m.last].y) || v.below(b.end)+rowsAfter(b.lines, m.last) > 8 {
			continue // a box further in is part of what a program wrote
		}
		if asksQuestion(b.lines[m.last+1:]) || ownPanel(b.lines[:m.first]) {
			return &dialog{agent: "claude", notFor: true, options: m.options}
		}
		if d := claudeDialog(v, b, m); d != nil {
			return d
		}
	}
	return nil
}

// menu returns the lowest list of options in the block, with or without numbers.
func (b block) menu() (menu, bool) {
	m, ok := findMenu(b.lines)
	if plain, okPlain := findPlainMenu(b.lines); okPlain && (!ok || plain.first > m.last) {
		return plain, true
	}
	return m, ok
}

func rowsAfter(lines []line, i int) int {
	n := 0
	for _, l := range lines[i+1:] {
		if !l.blank() {
			n++
		}
	}
	return n
}

// asksQuestion tells the model's multiple-choice questions from dialogs: they grant nothing.
func asksQuestion(after []line) bool {
	for _, l := range after {
		if strings.HasPrefix(strings.TrimSpace(l.text), "Enter to select ·") {
			return true
		}
	}
	return false
}

// ownPanel tells the panels that the user opens (/model, /permissions), which stand under a rule of ▔:
// what is chosen there is a setting, and answers no request.
func ownPanel(above []line) bool {
	for i := len(above) - 1; i >= 0; i-- {
		if above[i].spans('▔') {
			return true
		}
		if above[i].spans('─') {
			return false
		}
	}
	return false
}

func claudeDialog(v *view, b block, m menu) *dialog {
	asks, question := claudeAsks(b.lines, m.first)
	f, ok := claudeFrame(b, asks)
	if !ok {
		return nil
	}
	d := &dialog{agent: "claude", grammar: f.layout, question: question, options: m.options, marked: m.marked,
		offset: v.offset, cut: f.cut, top: f.top, end: b.end}
	name(d.options, claudeLabels)
	if !f.read(d, v) || question == "" && d.kind != kindPermissions { // only the trust dialog asks nothing
		return nil
	}
	if d.kind == kindCommand {
		for _, o := range d.options {
			openRules(o.prefix, d.command)
		}
	}
	if !b.box {
		d.end = lastRow(b.lines, m.last)
	}
	for _, l := range b.lines[m.last+1:] {
		// What is above the screen is no loss if the command is framed on it.
		d.cut = d.cut || moreLines.MatchString(l.text) && f.dashes(f.body) < 2
	}
	switch {
	case f.layout == "claude-ax":
		d.digit, d.marked = digitTyped, -1
	case !m.number:
		d.digit = digitNone
	}
	if d.marked >= 0 {
		d.typed = d.options[d.marked].input
	}
	d.absTop = v.top + uint64(d.top)
	d.screen = v.shown(d.top, d.end+1)
	return d
}

// moreLines is the note that the dialog is longer than the screen.
var moreLines = regexp.MustCompile(`^\s*[↑↓] \d+ more lines?`)

// lastRow is the screen row of the last line that is not blank, from i on.
func lastRow(lines []line, i int) int {
	last := lines[i].y
	for _, l := range lines[i:] {
		if !l.blank() {
			last = l.y
		}
	}
	return last
}

// claudeAsks finds the question right above the options: its first line and its text. Without one,
// the line is that of the first option.
func claudeAsks(lines []line, first int) (at int, question string) {
	i := first - 1
	for i >= 0 && lines[i].blank() {
		i--
	}
	text := ""
	for n := 0; i >= 0 && n < 4 && !lines[i].blank() && !lines[i].spans('╌'); n++ {
		text = strings.TrimSpace(strings.TrimSpace(lines[i].text) + " " + text)
		if claudeQuestion.MatchString(text) {
			return i, text
		}
		i--
	}
	return first, ""
}
