package screen

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// marks are the signs assistants put before the option that Enter takes.
const marks = "❯›>→●▶"

// A menu is a list of options with at most one of them marked.
type menu struct {
	options []option
	marked  int  // index of the marked option, -1 when no mark is on the screen
	mark    rune // the sign it is marked with
	first   int  // index of the first option's line in the block
	last    int  // index of the last option's last line
	cutTop  bool // the list does not begin with its first option
	number  bool // options carry numbers
}

// An option is one answer that a dialog offers.
type option struct {
	label string // wraps undone, mark and number left out
	rows  []line // the lines it stands on
	col   int    // column of the label in the block
	num   int    // 0 without a number

	// What the grammar makes of it.
	keys     []string // keys that choose it, as the label names them
	decision string   // event.Decision…, "" when the grammar does not know the label
	prefix   []string // what an "always" answer saves
	input    bool     // typing goes into it
}

// optionRow takes a row apart: the column of the mark (or -1), the mark, the number, and the column
// of the label.
func optionRow(l line) (markCol int, mark rune, num, numCol, labelCol int) {
	x := l.indent()
	markCol = -1
	if x >= len(l.cells) {
		return -1, 0, 0, -1, -1
	}
	r, _ := utf8.DecodeRuneInString(l.cells[x].Text)
	if strings.ContainsRune(marks, r) {
		markCol, mark = x, r
		for x++; x < len(l.cells) && (l.cells[x].Text == "" || l.cells[x].Text == " "); x++ {
		}
	}
	digits := 0
	numCol = x
	for ; x < len(l.cells) && digits < 3; x++ {
		t := l.cells[x].Text
		if len(t) != 1 || t[0] < '0' || t[0] > '9' {
			break
		}
		num = num*10 + int(t[0]-'0')
		digits++
	}
	if digits == 0 || digits == 3 || x >= len(l.cells) || l.cells[x].Text != "." {
		return markCol, mark, 0, -1, numCol
	}
	for x++; x < len(l.cells) && (l.cells[x].Text == "" || l.cells[x].Text == " "); x++ {
	}
	return markCol, mark, num, numCol, x
}

const (
	maxOptions  = 20
	maxOptionIn = 8 // lines one option may take
)

// findMenu returns the lowest list of options in lines.
func findMenu(lines []line) (menu, bool) {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].blank() {
			continue
		}
		_, _, num, _, _ := optionRow(lines[i])
		if num >= 1 {
			if m, ok := numbered(lines, i, num); ok {
				return m, true
			}
		}
	}
	return menu{}, false
}

// numbered collects the list whose last option stands on line last with number num.
func numbered(lines []line, last, num int) (menu, bool) {
	if num > maxOptions {
		return menu{}, false
	}
	_, _, _, numCol, _ := optionRow(lines[last])
	starts := []int{last}
	want, gap := num-1, 0
	i := last - 1
	for ; i >= 0 && want >= 1; i-- {
		_, _, n, col, _ := optionRow(lines[i])
		if n == want && near(col, numCol) {
			starts = append([]int{i}, starts...)
			want--
			gap = 0
			continue
		}
		gap++
		if gap > maxOptionIn || !lines[i].blank() && !lines[i].isRule('─', 4) && lines[i].indent() < numCol-1 {
			break
		}
	}
	m := menu{marked: -1, number: true, first: starts[0], cutTop: want >= 1}
	if len(starts) < 2 && !m.cutTop || m.cutTop && i >= 0 {
		return menu{}, false // a lone numbered line, or a list that begins in the middle
	}
	for k, at := range starts {
		end := len(lines)
		if k+1 < len(starts) {
			end = starts[k+1]
		}
		markCol, mark, n, col, labelCol := optionRow(lines[at])
		if markCol >= 0 {
			if m.marked >= 0 {
				return menu{}, false // two marks: nothing an assistant draws
			}
			m.marked, m.mark = k, mark
		}
		o := option{num: n, col: labelCol, rows: continued(lines, at, end, col)}
		o.label = joinLabel(o.rows, labelCol)
		m.last = at + len(o.rows) - 1
		m.options = append(m.options, o)
	}
	return m, true
}

// near allows the one column by which Claude Code 2.1.100 to 2.1.200 misplace a long option.
func near(a, b int) bool { return a >= 0 && a-b <= 1 && b-a <= 1 }

// continued returns the lines an option stands on: its own and the wrapped ones below it.
func continued(lines []line, at, end, numCol int) []line {
	rows := []line{lines[at]}
	for i := at + 1; i < end && len(rows) < maxOptionIn; i++ {
		l := lines[i]
		if l.blank() || l.indent() < numCol && !lines[i-1].soft || l.isRule('─', 4) || footer.MatchString(l.text) {
			break
		}
		rows = append(rows, l)
	}
	return rows
}

// footer is a row of keys under a list of options.
var footer = regexp.MustCompile(`^\s*(?:Select with numbers|Esc to |Enter to |Press |enter to |↑/↓ )`)

// joinLabel undoes the wraps of a label that begins at column col. A label is a sentence: its rows
// are joined with a blank, unless the terminal itself broke it.
func joinLabel(rows []line, col int) string {
	label := rows[0].from(col)
	for i, l := range rows[1:] {
		if rows[i].soft {
			label += l.from(0)
			continue
		}
		label += " " + strings.TrimLeft(l.text, " ")
	}
	return label
}

// findPlainMenu returns the lowest list of options without numbers: a marked line and its
// neighbours whose text begins in the same column.
func findPlainMenu(lines []line) (menu, bool) {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].blank() {
			continue
		}
		markCol, mark, num, _, col := optionRow(lines[i])
		if markCol < 0 || num > 0 || col <= markCol+1 || col >= len(lines[i].cells) || mark == '●' {
			continue // ● is also the bullet of a message
		}
		fits := func(j int) bool {
			return j >= 0 && j < len(lines) && !lines[j].blank() && lines[j].indent() == col
		}
		first, last := i, i
		for fits(first-1) && i-first < maxOptions {
			first--
		}
		for fits(last+1) && last-i < maxOptions {
			last++
		}
		if first == last {
			continue
		}
		m := menu{first: first, last: last, marked: i - first, mark: mark}
		for j := first; j <= last; j++ {
			m.options = append(m.options, option{label: lines[j].from(col), rows: []line{lines[j]}, col: col})
		}
		return m, true
	}
	return menu{}, false
}

// findRadio returns the lowest list of options marked as radio buttons: one ● among ○ in one column.
func findRadio(lines []line) (menu, bool) {
	for i := len(lines) - 1; i >= 0; i-- {
		col := cellOf(lines[i], "●")
		if col < 0 {
			continue
		}
		has := func(j int) bool {
			return j >= 0 && j < len(lines) && col < len(lines[j].cells) && lines[j].cells[col].Text == "○"
		}
		first, last := i, i
		for has(first-1) && i-first < maxOptions {
			first--
		}
		for has(last+1) && last-i < maxOptions {
			last++
		}
		if first == last {
			continue
		}
		m := menu{first: first, last: last, marked: i - first, mark: '●'}
		for j := first; j <= last; j++ {
			label := strings.TrimSpace(lines[j].from(col + 1))
			m.options = append(m.options, option{label: label, rows: []line{lines[j]}, col: col + 2})
		}
		return m, true
	}
	return menu{}, false
}

// cellOf returns the column of the first cell that reads text, or -1.
func cellOf(l line, text string) int {
	for x := range l.cells {
		if l.cells[x].Text == text {
			return x
		}
	}
	return -1
}
