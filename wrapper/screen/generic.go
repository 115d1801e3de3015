package screen

import (
	"regexp"
	"strings"

	"github.com/ryehq/rye/event"
)

// The usual shape of a dialog, whoever draws it: a text, a question, numbered options one of which is
// marked ❯ › > → ● or ▶, with a yes and a no among them. What looks like a prompt and does not have
// this shape is reported as unreadable.

var genericLabels = []labelRule{
	label(`(?i:yes|allow|approve|accept|proceed)\b.*\b(?i:don't ask again|always|all future|permanently|remember)\b.*|(?i:always)\b.*`, event.DecisionAlways),
	label(`(?i:yes|allow|approve|accept|proceed)\b.*\b(?i:this session|for the session|this conversation)\b.*`, event.DecisionSession),
	label(`(?i:yes|allow|approve|accept|proceed|run|ok|okay|continue)\b.*`, event.DecisionThisTime),
	label(`(?i:no|deny|reject|decline|cancel|skip|never|don't|abort|quit|stop)\b.*`, event.DecisionDenied),
}

var (
	genericTitle = regexp.MustCompile(`^(?i:(?:bash|shell|run|execute|terminal)? ?command|shell|bash)\b`)
	genericEdit  = regexp.MustCompile(`(?i)\b(?:edit|write|create|overwrite|change|patch|diff)\b`)
	genericFetch = regexp.MustCompile(`(?i)\b(?:fetch|url|network|website|host)\b`)
	moreHidden   = regexp.MustCompile(`^\.\.\. .*\d+ .*hidden`)
	genericMCP   = regexp.MustCompile(`\bMCP\b`)
)

func readGeneric(v *view) *dialog {
	for _, b := range v.blocks {
		m, ok := findMenu(b.lines)
		if ok && m.marked >= 0 && live(v, b, m) {
			return genericDialog(v, b, m)
		}
		if m, ok = findPlainMenu(b.lines); ok && live(v, b, m) && promptLike(b.lines, m) {
			return unreadable(v, b, m, "options without numbers in a shape that no grammar knows")
		}
		if m, ok = findRadio(b.lines); ok && v.below(b.end)+rowsAfter(b.lines, m.last) <= 3 && promptLike(b.lines, m) {
			return unreadable(v, b, m, "radio buttons in a shape that no grammar knows")
		}
	}
	return nil
}

// live reports whether a list of options can be what the user is asked now: next to nothing stands
// below it, the cursor's mark is not on another line there, and it is not part of what an assistant
// shows of a program's output.
func live(v *view, b block, m menu) bool {
	return v.below(b.end)+rowsAfter(b.lines, m.last) <= 3 && !markedBelow(v, b.lines[m.last].y) && !inOutput(b.lines, m.first)
}

// markedBelow reports whether a line under row y carries a mark: what the user types goes there.
func markedBelow(v *view, y int) bool {
	for _, l := range v.lines[y+1:] {
		if _, mark, _, _, _ := optionRow(l); strings.ContainsRune("❯›>", mark) {
			return true
		}
	}
	return false
}

// inOutput reports whether line i is indented under a row that begins with └ or ⎿, as assistants
// show the output of programs.
func inOutput(lines []line, i int) bool {
	indent := lines[i].indent()
	for j := i; j >= 0; j-- {
		l := lines[j]
		if l.blank() {
			continue
		}
		if t := strings.TrimLeft(l.text, " "); strings.HasPrefix(t, "└") || strings.HasPrefix(t, "⎿") {
			return l.indent() < indent || j == i
		}
		if l.indent() < 2 {
			return false
		}
	}
	return false
}

func unreadable(v *view, b block, m menu, why string) *dialog {
	top := max(m.first-12, 0)
	d := &dialog{agent: "unknown", unread: why, options: m.options, marked: m.marked, offset: v.offset,
		top: b.lines[top].y, end: lastRow(b.lines, m.last)}
	name(d.options, genericLabels)
	if b.box {
		d.top, d.end = max(b.top, 0), b.end
	}
	d.absTop = v.top + uint64(d.top)
	d.screen = v.shown(d.top, d.end+1)
	return d
}

// promptLike asks more of a list without numbers, because a composer with a few lines of text in it
// looks the same: keys named in the labels, or answers.
func promptLike(lines []line, m menu) bool {
	named, answers := 0, 0
	options := append([]option(nil), m.options...)
	name(options, genericLabels)
	for _, o := range options {
		if len(o.keys) > 0 {
			named++
		}
		if o.decision != "" {
			answers++
		}
	}
	return named >= 1 || answers >= 2 || answers >= 1 && footerHas(lines[m.last+1:], "nter to ")
}

func genericDialog(v *view, b block, m menu) *dialog {
	d := &dialog{agent: "unknown", grammar: "generic", kind: kindUnknown, options: m.options, marked: m.marked,
		digit: digitActs, stays: !b.box && !v.alternate, offset: v.offset, fallback: true}
	name(d.options, genericLabels)
	yes, no := false, false
	for _, o := range d.options {
		yes = yes || granted(o.decision)
		no = no || o.decision == event.DecisionDenied
	}
	if !yes || !no {
		return unreadable(v, b, m, "numbered options that are neither yes nor no")
	}
	asks := m.first - 1
	for asks >= 0 && b.lines[asks].blank() {
		asks--
	}
	var top int
	switch {
	case asks >= 0 && strings.HasSuffix(strings.TrimSpace(b.lines[asks].text), "?"):
		d.question = strings.TrimSpace(b.lines[asks].text)
		top = genericText(v, b, d, asks)
	case asks >= 0 && v.top == 0 && !v.alternate && !m.cutTop:
		return unreadable(v, b, m, "numbered options without a question")
	default:
		d.cut, d.doubt = true, "the question is not on the screen"
		top = 0
		rows := trimBlank(b.lines[:m.first])
		d.command, d.ambiguous = unwrap(trimCommon(rowTexts(rows, 0)), wrapping{min: v.cols - 8, max: v.cols})
		d.hidden = hiddenIn(v, rows, 0)
	}
	d.top, d.end = b.lines[min(top, m.first)].y, lastRow(b.lines, m.last)
	if b.box {
		d.top, d.end = max(b.top, 0), b.end
	}
	d.absTop = v.top + uint64(d.top)
	d.screen = v.shown(d.top, d.end+1)
	return d
}

// genericText reads what is asked about, above the question on line asks, and returns its first line.
func genericText(v *view, b block, d *dialog, asks int) int {
	above := b.lines[:asks]
	for len(above) > 0 && above[len(above)-1].blank() {
		above = above[:len(above)-1]
	}
	if len(above) == 0 {
		d.cut = b.cut
		return asks
	}
	// A box right above the question, or inside of this one, holds the text and nothing else.
	if inside, top, bottom, ok := innerBox(above); ok && bottom >= len(above)-2 {
		texts := trimCommon(rowTexts(trimBlank(inside), 0))
		width := 0
		if len(inside) > 0 {
			width = len(inside[0].cells)
		}
		w := wrapping{min: width - 4, max: width, chars: allFull(texts, width-2)}
		if w.chars {
			w.min = width - 2
		}
		if len(texts) > 0 && moreHidden.MatchString(texts[0]) {
			d.cut, texts = true, texts[1:]
		}
		d.command, d.ambiguous = unwrap(texts, w)
		d.ambiguous = d.ambiguous || w.chars
		d.hidden = hiddenIn(v, inside, 0)
		d.kind = genericKind(d.question, above[:top])
		return top
	}
	from := textStart(above)
	rows := above[from:]
	if len(rows) == 0 {
		return asks
	}
	col := rows[0].indent()
	w := wrapping{min: v.cols - 8, max: v.cols}
	if b.box {
		w = wrapping{min: b.width - 6, max: b.width}
	}
	d.command, d.ambiguous = unwrap(rowTexts(rows, col), w)
	d.hidden = hiddenIn(v, rows, col)
	head := from
	for head > 0 && above[head-1].blank() {
		head--
	}
	if head > 0 && isTitle(above[head-1]) {
		from = head - 1
	}
	d.kind = genericKind(d.question, above[max(head-2, 0):head])
	return from
}

func isTitle(l line) bool { return genericTitle.MatchString(strings.TrimSpace(l.text)) }

// textStart finds where the text above a question begins: the lowest indented part, blank rows in it
// included, or else the lowest paragraph.
func textStart(above []line) int {
	indented := func(i int) bool {
		for i > 0 && above[i-1].soft {
			i--
		}
		return above[i].indent() > 0
	}
	from := len(above) - 1
	if !indented(from) {
		for from > 0 && !above[from-1].blank() && !isTitle(above[from-1]) {
			from--
		}
		return from
	}
	for from > 0 && (above[from-1].blank() || indented(from-1)) && !isTitle(above[from-1]) {
		from--
	}
	for from < len(above) && above[from].blank() {
		from++
	}
	return from
}

// allFull reports whether all rows but the last are cut at the last column: text that was not wrapped
// between words.
func allFull(rows []string, width int) bool {
	if len(rows) < 2 {
		return false
	}
	for _, r := range rows[:len(rows)-1] {
		if len([]rune(r)) < width {
			return false
		}
	}
	return true
}

// genericKind guesses the kind from the question and the rows above the text.
func genericKind(question string, head []line) string {
	for _, l := range head {
		if isTitle(l) {
			return kindCommand
		}
	}
	switch {
	case genericMCP.MatchString(question):
		return kindMCP
	case genericEdit.MatchString(question):
		return kindEdit
	case genericFetch.MatchString(question):
		return kindNetwork
	case strings.Contains(question, "execution") || strings.Contains(question, "run ") || strings.Contains(question, "proceed"):
		return kindCommand
	}
	return kindUnknown
}
