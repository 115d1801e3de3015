package screen

import (
	"regexp"
	"strings"
)

// A frame is where a Claude dialog stands and what is between its upper border and its question.
type frame struct {
	layout string
	top    int // screen row of the upper border, or of the first visible row
	cut    bool
	body   []line
	gutter int // columns that the layout takes from the text's width
}

var axTitle = regexp.MustCompile(`^Permission Required: (.*)$`)

// claudeFrame finds the upper border above line asks.
func claudeFrame(b block, asks int) (frame, bool) {
	if b.box {
		return frame{layout: "claude-1.0", top: max(b.top, 0), cut: b.cut, body: b.lines[:asks], gutter: 8}, true
	}
	dashed := 0
	for i := asks - 1; i >= 0; i-- {
		l := b.lines[i]
		switch {
		case l.spans('╌'):
			dashed++
		case l.spans('─'):
			f := frame{layout: "claude-2.0.50", top: l.y, body: b.lines[i+1 : asks], gutter: 6}
			if dashed >= 2 {
				f.layout, f.gutter = "claude-2.1.290", 5
			}
			return f, true
		case axTitle.MatchString(l.text):
			return frame{layout: "claude-ax", top: l.y, body: b.lines[i:asks]}, true
		}
	}
	if dashed > 0 {
		return frame{layout: "claude-2.1.290", cut: true, body: b.lines[:asks], gutter: 5}, true
	}
	return frame{}, false
}

var (
	fromAgent = regexp.MustCompile(` · from the (.*)$`)
	tip       = regexp.MustCompile(`^Tip: `)
)

// read fills in what the body says. false means that it is no dialog of a known kind.
func (f frame) read(d *dialog, v *view) bool {
	body := trimBlank(f.body)
	if len(body) == 0 {
		return false
	}
	rest := body
	if !f.cut {
		title := strings.TrimSpace(body[0].text)
		if m := axTitle.FindStringSubmatch(title); m != nil {
			title = m[1]
		}
		after := ""
		for _, t := range claudeTitles {
			if at := t.title.FindStringIndex(title); at != nil {
				d.kind, after = t.kind, strings.TrimSpace(title[at[1]:])
				break
			}
		}
		if d.kind == "" {
			return false
		}
		if m := fromAgent.FindStringSubmatch(" " + after); m != nil {
			d.thread, after = m[1], ""
		}
		rest = trimBlank(body[1:])
		if strings.HasPrefix(title, "Make auto mode") { // the title is what is asked
			d.command, d.reason, d.offer = title, sentence(rest), true
			return true
		}
		if d.kind == kindEdit && after != "" { // "Edit file NAME" stands in one row in 2.0.50 to 2.0.76
			d.command = after
		}
	} else {
		d.kind = kindCommand
		if strings.HasPrefix(d.question, "Do you want to make this edit") || strings.Contains(d.question, "create ") {
			d.kind = kindEdit
		}
	}
	switch {
	case f.layout == "claude-ax":
		f.readFlat(d, rest, v)
	case f.dashes(rest) == 1 && !f.cut:
		return false // not all of it is drawn
	case f.dashes(rest) > 0:
		f.readDashed(d, rest, v)
	default:
		f.readPlain(d, trimBlank(dropTips(rest)), v)
	}
	return true
}

func (f frame) dashes(lines []line) int {
	n := 0
	for _, l := range lines {
		if l.spans('╌') {
			n++
		}
	}
	return n
}

func trimBlank(lines []line) []line {
	for len(lines) > 0 && lines[0].blank() {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1].blank() {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// readDashed reads a body whose middle part stands between two rules of ╌: the command, the diff or
// the arguments. Above it are description or file name, below it the reason.
func (f frame) readDashed(d *dialog, lines []line, v *view) {
	var parts [3][]line
	n := 0
	if f.dashes(lines) == 1 { // the upper rule is above the screen
		n = 1
	}
	d.cut = n == 1 // a title alone that is out of sight is no loss
	for _, l := range lines {
		if l.spans('╌') {
			n = min(n+1, 2)
			continue
		}
		parts[n] = append(parts[n], l)
	}
	above, middle, below := dropTips(trimBlank(parts[0])), trimBlank(parts[1]), trimBlank(parts[2])
	switch d.kind {
	case kindEdit:
		d.grammar = "claude-2.0.50" // edits look the same since
		if d.command == "" && len(above) > 0 {
			f.text(d, above, v)
		}
		d.reason = sentence(below)
	case kindMCP:
		f.text(d, middle, v)
		d.command = strings.TrimSpace(sentence(above) + "\n" + d.command)
	case kindNetwork:
		f.text(d, middle, v)
		if url, ok := field(middle, "url: "); ok {
			d.command = url
		}
		d.reason = sentence(above)
	default:
		f.text(d, middle, v)
		d.reason = strings.TrimSpace(sentence(above) + "\n" + sentence(below))
	}
}

// readPlain reads a body without rules: the first paragraph is the command, with the description
// under it in another colour; what follows is the reason.
func (f frame) readPlain(d *dialog, lines []line, v *view) {
	if d.kind == kindEdit {
		if inside, _, _, ok := innerBox(lines); ok {
			lines = trimBlank(inside)
		}
		if d.command == "" && len(lines) > 0 {
			f.text(d, lines[:1], v)
		}
		return
	}
	if len(lines) == 0 {
		return
	}
	style := lines[0].style(lines[0].indent())
	end := len(lines)
	for i, l := range lines {
		if !l.blank() && l.style(l.indent()) != style {
			end = i
			break
		}
		// The reason stands one column in, the command three.
		if !l.blank() && l.indent() < lines[0].indent() && !l.over && i > 0 && lines[i-1].blank() {
			end = i
			break
		}
	}
	command, rest := trimBlank(lines[:end]), trimBlank(lines[end:])
	if len(rest) == 0 && len(command) > 1 && d.kind == kindCommand {
		d.doubt = "command and description look alike"
	}
	f.text(d, command, v)
	d.reason = sentence(rest)
}

// readFlat reads the screen-reader layout: rows that begin with "> ".
func (f frame) readFlat(d *dialog, lines []line, v *view) {
	lines = dropTips(lines)
	if d.kind != kindCommand {
		if len(lines) > 0 {
			d.command = strings.TrimPrefix(strings.TrimSpace(lines[0].raw(0)), "> ")
		}
		return
	}
	var rows []string
	for _, r := range rowTexts(lines, 0) {
		rows = append(rows, strings.TrimPrefix(strings.TrimPrefix(r, ">"), " "))
	}
	var reason []string
	if n := len(rows); n > 1 && claudeReason.MatchString(rows[n-1]) {
		reason, rows = rows[n-1:], rows[:n-1]
	}
	if len(rows) > 1 {
		reason = append(rows[:1:1], reason...)
		rows = rows[1:]
	}
	d.reason = strings.Join(reason, "\n")
	d.command = strings.Join(rows, "\n")
	d.ambiguous = len(rows) != 1 // nothing tells the description's rows from the command's
	d.hidden = hiddenIn(v, lines, 0)
}

var claudeReason = regexp.MustCompile(`^(?:This command requires approval|Contains |Dangerous |Auto mode can't )`)

func dropTips(lines []line) []line {
	for i := range lines {
		if !tip.MatchString(strings.TrimSpace(lines[i].text)) {
			continue
		}
		// A tip may run over several rows, all bold; what follows is not.
		end := i + 1
		style := lines[i].style(lines[i].indent())
		for end < len(lines) && style.Attr != 0 && !lines[end].blank() && lines[end].style(lines[end].indent()) == style {
			end++
		}
		return append(append([]line(nil), lines[:i]...), lines[end:]...)
	}
	return lines
}

// text reads the lines of the command, without the gutter that wrapped ones have.
func (f frame) text(d *dialog, lines []line, v *view) {
	col := 0
	if len(lines) > 0 {
		col = lines[0].indent()
	}
	gutter := len(lines) > 0
	for _, l := range lines {
		gutter = gutter && strings.HasPrefix(strings.TrimLeft(l.text, " "), "│")
	}
	if gutter {
		col += 2
	}
	d.hidden = hiddenIn(v, lines, col)
	var rows []string
	if gutter {
		for _, l := range lines {
			rows = append(rows, l.raw(col))
		}
	} else {
		rows = rowTexts(lines, col)
	}
	w := wrapping{min: v.cols - f.gutter, max: v.cols}
	d.command, d.ambiguous = unwrap(rows, w)
	for _, l := range lines {
		d.ambiguous = d.ambiguous || l.over
	}
}

// sentence joins rows of prose.
func sentence(lines []line) string {
	var parts []string
	for _, l := range lines {
		if t := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.text), "│")); t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, " ")
}

// field returns the value of a "name: value" row and of the rows it runs over.
func field(lines []line, name string) (string, bool) {
	for i, l := range lines {
		value, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.text), "│")), name)
		if !ok {
			continue
		}
		for _, more := range lines[i+1:] {
			t := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(more.text), "│"))
			if t == "" || fieldName.MatchString(t) {
				break
			}
			value += t // an address holds no blanks
		}
		return value, true
	}
	return "", false
}

var fieldName = regexp.MustCompile(`^[a-z_]+: `)
