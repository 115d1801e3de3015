package screen

import (
	"slices"
	"strings"
	"testing"
)

func TestUnwrap(t *testing.T) {
	tests := []struct {
		name      string
		rows      []string
		w         wrapping
		want      string
		ambiguous bool
	}{
		{"one row", []string{"make all"}, wrapping{min: 20, max: 20}, "make all", false},
		{"a newline: the next word would have fitted", []string{"cat <<E", "x", "E"}, wrapping{min: 20, max: 20}, "cat <<E\nx\nE", false},
		{"a wrap or a newline", []string{"touch a && echo one", "two three"}, wrapping{min: 20, max: 20}, "touch a && echo one two three", true},
		{"a word longer than the row", []string{"echo", strings.Repeat("a", 20), "aaaa > b"}, wrapping{min: 20, max: 20}, "echo " + strings.Repeat("a", 24) + " > b", true},
		{"wide characters", []string{strings.Repeat("日", 9), "日本 x"}, wrapping{min: 19, max: 19}, strings.Repeat("日", 10) + "本 x", true},
		{"an indent is no wrap", []string{"for i in x; do", "  make", "done"}, wrapping{min: 40, max: 40}, "for i in x; do\n  make\ndone", false},
		{"an indent after a full row may be", []string{"12345678901234567890", "  make"}, wrapping{min: 20, max: 20}, "12345678901234567890\n  make", true},
		{"empty lines", []string{"a", "", "b"}, wrapping{min: 20, max: 20}, "a\n\nb", false},
		{"wrapped blanks", []string{"touch ok", "", "", "    ; touch hidden"}, wrapping{min: 20, max: 20}, "touch ok\n\n\n    ; touch hidden", true},
		{"cut at the last column", []string{"12345", "67890", "1"}, wrapping{min: 5, max: 5, chars: true}, "12345678901", true},
		{"a wider row shows that more would have fitted", []string{"aaaa bbbb", "cc", strings.Repeat("d", 14)}, wrapping{min: 10, max: 20}, "aaaa bbbb\ncc " + strings.Repeat("d", 14), true},
	}
	for _, test := range tests {
		got, ambiguous := unwrap(test.rows, test.w)
		if got != test.want || ambiguous != test.ambiguous {
			t.Errorf("%s: %q, ambiguous %t; want %q, %t", test.name, got, ambiguous, test.want, test.ambiguous)
		}
	}
}

func TestCutKeys(t *testing.T) {
	tests := []struct {
		label, text string
		keys        []string
	}{
		{"Yes, proceed (y)", "Yes, proceed", []string{"y"}},
		{"No, and tell Copilot what to do differently (Esc to stop)", "No, and tell Copilot what to do differently", []string{"esc"}},
		{"No (esc or n)", "No (esc or n)", nil},
		{"No (esc/n)", "No", []string{"esc", "n"}},
		{"Yes, allow all edits during this session (shift+Tab)", "Yes, allow all edits during this session", []string{"shift+tab"}},
		{"Yes, and don't ask again for `touch` in this repo (/home/dev)", "Yes, and don't ask again for `touch` in this repo (/home/dev)", nil},
		{"Yes", "Yes", nil},
	}
	for _, test := range tests {
		text, keys := cutKeys(test.label)
		if text != test.text || !slices.Equal(keys, test.keys) {
			t.Errorf("%q: %q %q, want %q %q", test.label, text, keys, test.text, test.keys)
		}
	}
}

func TestHidden(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"touch a", nil},
		{"touch \u202etxt.hs", []string{"bidi control U+202E"}},
		{"r\u200bm x", []string{"zero-width U+200B"}},
		{"r\u200dm x", []string{"zero-width U+200D"}},
		{"echo 👩\u200d💻", nil},
		{"echo a\u00a0b", []string{"unicode blank U+00A0"}},
		{"echo \ufffd", []string{"replacement character U+FFFD"}},
		{"echo ok" + strings.Repeat(" ", 40) + "; rm x", []string{"padding: 40 blanks"}},
		{"echo ok\n\n\n\n; rm x", []string{"padding: 3 blank rows"}},
		{"cat \x1b]8;;file:///w/notes.md\x1b\\notes.md\x1b]8;;\x1b\\", nil},
		{"see \x1b]8;id=a:b;http://h/?q=1;2&r=[3m\ax\x1b]8;;\a here", []string{`a link to "http://h/?q=1;2&r=[3m" shown as "x"`}},
		{"echo \x1b[8mrm x\x1b[m", []string{"text painted in the colour of its background"}},
		{"echo \x1b[31;41mrm x\x1b[m", []string{"text painted in the colour of its background"}},
	}
	for _, test := range tests {
		v := viewOf(80, 10, test.text)
		if got := hiddenIn(v, v.lines, 0); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}
