package screen

import (
	"strings"

	"github.com/ryehq/rye/event"
)

// opencode 1.18.33 marks the option that Enter takes by its background alone, and puts the options in
// one row:
//
//	┃  △ Permission required
//	┃    # Shell command
//	┃
//	┃  $ make -n all
//	┃
//	┃   Allow once   Allow always   Reject        ctrl+f fullscreen  ⇆ select  enter confirm

var opencodeOptions = []struct{ label, decision string }{
	{"Allow once", event.DecisionThisTime},
	{"Allow always", event.DecisionSession}, // until opencode is restarted
	{"Reject", event.DecisionDenied},
}

var opencodeHeads = []struct{ head, kind string }{
	{"# Shell command", kindCommand},
	{"# Edit", kindEdit},
	{"# Write", kindEdit},
	{"# WebFetch", kindNetwork},
}

func readOpencode(v *view) *dialog {
	for y := len(v.lines) - 1; y >= 0; y-- {
		l := v.lines[y]
		if !strings.Contains(l.text, "Allow once") || !strings.Contains(l.text, "enter confirm") {
			continue
		}
		if v.below(y) > 4 {
			return nil
		}
		for top := y - 1; top >= 0 && strings.HasPrefix(strings.TrimSpace(v.lines[top].text), "┃"); top-- {
			if strings.Contains(v.lines[top].text, "△ Permission required") {
				return opencodeDialog(v, top, y)
			}
		}
		return nil
	}
	return nil
}

func opencodeDialog(v *view, top, at int) *dialog {
	l := v.lines[at]
	d := &dialog{agent: "opencode", grammar: "opencode-1.18.33", kind: kindUnknown, question: "Permission required",
		marked: -1, digit: digitNone, offset: v.offset, top: top, end: at, absTop: v.top + uint64(top)}
	plain := l.style(columnOf(l, "enter confirm")).Bg
	marks := 0
	for i, o := range opencodeOptions {
		col := columnOf(l, o.label)
		if col < 0 {
			return nil
		}
		d.options = append(d.options, option{label: o.label, col: col, decision: o.decision, rows: []line{l}})
		if l.style(col).Bg != plain {
			d.marked = i
			marks++
		}
	}
	if marks != 1 {
		d.marked = -1
	}
	from := top + 1
	for _, h := range opencodeHeads {
		if strings.Contains(v.lines[from].text, h.head) {
			d.kind = h.kind
		}
	}
	var rows []line
	for _, r := range v.lines[from+1 : at] {
		rows = append(rows, withoutBar(r))
	}
	rows = trimBlank(rows)
	if len(rows) > 0 {
		col := rows[0].indent()
		d.hidden = hiddenIn(v, rows, col)
		width := v.cols - 2*(col+3)
		d.command, d.ambiguous = unwrap(rowTexts(rows, col), wrapping{min: width - 4, max: width + 4})
		d.command = strings.TrimPrefix(d.command, "$ ")
	}
	d.screen = v.shown(top, at+1)
	return d
}

// columnOf returns the column at which the text begins that reads s, or -1.
func columnOf(l line, s string) int {
	for x := range l.cells {
		if l.cells[x].Text == s[:1] && strings.HasPrefix(l.from(x), s) {
			return x
		}
	}
	return -1
}

// withoutBar cuts the ┃ at the left of a row off.
func withoutBar(l line) line {
	x := l.indent()
	if x < len(l.cells) && l.cells[x].Text == "┃" {
		l.cells = l.cells[x+1:]
		l.text = l.from(0)
	}
	return l
}
