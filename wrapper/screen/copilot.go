package screen

import (
	"regexp"
	"strings"

	"github.com/ryehq/rye/event"
)

// GitHub Copilot CLI 1.0.102: a rounded box titled with the model's intention, what is asked for in a
// box of its own, a question, numbered options, a row of keys.

var copilotQuestions = []struct {
	text, kind string
}{
	{"Do you want to run this command?", kindCommand},
	{"Do you want to allow this?", kindPermissions}, // "Allow path access"
	{"Do you trust the files in this folder?", kindPermissions},
	{"Do you want to edit this file?", kindEdit},
	{"Do you want to create this file?", kindEdit},
	{"Do you want to use this tool?", kindMCP},
	{"Do you want to fetch this URL?", kindNetwork},
}

var copilotLabels = []labelRule{
	label(`Yes, and don't ask again for (.*) in this repo.*`, event.DecisionAlways).saves(quotedList),
	label(`Yes, and (?:remember this folder|don't ask again).*`, event.DecisionAlways),
	label(`Yes, and (?:remember|approve|allow) .* (?:this|the running) session`, event.DecisionSession),
	label(`Yes`, event.DecisionThisTime),
	label(`No, and tell Copilot what to do differently|No`, event.DecisionDenied),
}

var backquoted = regexp.MustCompile("`([^`]*)`")

// quotedList returns the programs between backquotes: one rule each, for all of their commands.
func quotedList(s string) []string {
	var out []string
	for _, m := range backquoted.FindAllStringSubmatch(s, -1) {
		out = append(out, m[1]+":*")
	}
	return out
}

func readCopilot(v *view) *dialog {
	for _, b := range v.blocks {
		m, ok := findMenu(b.lines)
		if !ok || !b.box || !live(v, b, m) || !footerHas(b.lines[m.last+1:], "to navigate · enter to select") {
			continue
		}
		if d := copilotDialog(v, b, m); d != nil {
			return d
		}
	}
	return nil
}

func footerHas(lines []line, text string) bool {
	for _, l := range lines {
		if strings.Contains(l.text, text) {
			return true
		}
	}
	return false
}

func copilotDialog(v *view, b block, m menu) *dialog {
	above := trimBlank(b.lines[:m.first])
	if len(above) == 0 {
		return nil
	}
	d := &dialog{agent: "copilot", grammar: "copilot-1.0.102", options: m.options, marked: m.marked, cut: b.cut,
		offset: v.offset, top: max(b.top, 0), end: b.end}
	d.question = strings.TrimSpace(above[len(above)-1].text)
	for _, q := range copilotQuestions {
		if d.question == q.text {
			d.kind = q.kind
		}
	}
	name(d.options, copilotLabels)
	if d.kind == "" {
		return nil
	}
	inside, _, _, ok := innerBox(above)
	if !ok { // nothing names what is asked for
		return nil
	}
	if !b.cut && d.kind == kindCommand {
		d.reason = strings.TrimSpace(above[0].text)
	}
	inside = trimBlank(inside)
	width := b.width - 6
	d.command, d.ambiguous = unwrap(rowTexts(inside, 1), wrapping{min: width, max: width + 2})
	d.hidden = hiddenIn(v, inside, 1)
	d.absTop = v.top + uint64(d.top)
	d.screen = v.shown(d.top, d.end+1)
	return d
}
