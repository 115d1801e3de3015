package screen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// claudeScreen is one frame of Claude Code's, 80 by 24: the transcript from the top, and below it the
// dialog, or the composer if there is none.
func claudeScreen(transcript string, dialog ...string) string {
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[H\x1b[J" + strings.ReplaceAll(transcript, "\n", "\r\n"))
	rule := strings.Repeat("─", 80)
	if dialog == nil {
		dialog = []string{rule, "❯ ", rule, "  ? for shortcuts"}
	}
	fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[?2026l", 25-len(dialog), strings.Join(dialog, "\r\n"))
	return b.String()
}

func claudeAsksFor(title, command string, mark int, options ...string) []string {
	rows := []string{strings.Repeat("─", 80), " " + title, " \x1b[2mscripted\x1b[22m", strings.Repeat("╌", 80)}
	for _, l := range strings.Split(command, "\n") {
		rows = append(rows, " "+l)
	}
	rows = append(rows, strings.Repeat("╌", 80), "", " Do you want to proceed?")
	if options == nil {
		options = []string{"Yes", "Yes, and don’t ask again for: make *", "No"}
	}
	for i, o := range options {
		m := " "
		if i == mark {
			m = "❯"
		}
		rows = append(rows, fmt.Sprintf(" %s %d. %s", m, i+1, o))
	}
	return append(rows, "", " Esc to cancel · Tab to amend")
}

func TestClaude(t *testing.T) {
	asks := claudeScreen("", claudeAsksFor("Bash command", "make a", 0)...)
	prompt := `prompted claude-2.1.290 command "make a" reason="scripted" prefix=["make *"] options=3`
	done := claudeScreen("● Bash(make a)\n  ⎿  ok\n")
	amended := claudeScreen("", claudeAsksFor("Bash command", "make a", 0, "Yes, and tell Claude what to do next", "Yes, and don’t ask again for: make *", "No")...)
	fakeBox := "● Bash(x)\n  ⎿  " + strings.ReplaceAll(strings.Join(claudeAsksFor("Bash command", "rm -rf /", 0), "\n"), "\n", "\n     ")
	tests := []struct {
		name string
		acts []string
		want []string
	}{
		{"a digit", []string{asks, "key:1", done}, []string{prompt, `granted this_time command "make a" key="1" attested=true`}},
		{"an always rule", []string{asks, "key:2", done}, []string{prompt, `granted always command "make a" key="2" attested=true prefix=["make *"]`}},
		{"Esc", []string{asks, "key:\x1b", claudeScreen("● Bash(make a)\n  ⎿  Interrupted · What should Claude do instead?\n")},
			[]string{prompt, `denied cancelled command "make a" key="esc" attested=true by=user`}},
		{"Esc in kitty's encoding", []string{asks, "key:\x1b[27u", done}, []string{prompt, `denied cancelled command "make a" key="esc" attested=true by=user`}},
		{"a yes that was denied", []string{asks, "key:1", claudeScreen("● Bash(make a)\n  ⎿  Interrupted · What should Claude do instead?\n")},
			[]string{prompt, `denied denied command "make a" key="1" attested=true by=user uncertain="the key meant this_time, but it was denied"`}},
		{"denied elsewhere", []string{asks, claudeScreen("● Bash(make a)\n  ⎿  Interrupted · What should Claude do instead?\n")},
			[]string{prompt, `denied denied command "make a" key="" attested=false by= uncertain="went away without an answer from this terminal"`}},
		{"answered elsewhere", []string{asks, done},
			[]string{prompt, `granted this_time command "make a" key="" attested=false uncertain="went away without an answer from this terminal"`}},
		{"a digit that only marks, then Esc", []string{asks, "key:2", claudeScreen("", claudeAsksFor("Bash command", "make a", 1)...), "key:\x1b", done},
			[]string{prompt, `denied cancelled command "make a" key="esc" attested=true by=user`}},
		{"a rule that the user edits", []string{asks, "key:2", claudeScreen("", claudeAsksFor("Bash command", "make a", 1)...), "key:\x7f", claudeScreen("", claudeAsksFor("Bash command", "make a", 1, "Yes", "Yes, and don’t ask again for:\u00a0make a", "No")...), "key:\r", done},
			[]string{prompt, `granted always command "make a" key="enter" attested=true prefix=["make a"]`}},
		{"a comment with a digit in it", []string{asks, "key:\t", amended, "key:o", "key:2", claudeScreen("", claudeAsksFor("Bash command", "make a", 0, "Yes, o2", "Yes, and don’t ask again for: make *", "No")...), "key:\r", done},
			[]string{prompt, `granted this_time command "make a" key="enter" attested=true`}},
		{"a comment faster than the screen", []string{asks, "key:\t2\r", done}, []string{prompt, `granted this_time command "make a" key="enter" attested=true`}},
		{"a comment that reads like another answer", []string{asks, "key:\t", amended, claudeScreen("", claudeAsksFor("Bash command", "make a", 0, "Yes, allow all edits during this session", "Yes, and don’t ask again for: make *", "No")...), "key:\r", done},
			[]string{prompt, `granted this_time command "make a" key="enter" attested=true`}},
		{"a digit that was not taken, then another", []string{asks, "key:3", "pause:", claudeScreen("blink\n", claudeAsksFor("Bash command", "make a", 0)...), "key:1", done},
			[]string{prompt, `granted this_time command "make a" key="1" attested=true`}},
		{"two digits before the screen changes", []string{asks, "key:1", "key:2", done}, []string{prompt, `granted this_time command "make a" key="1" attested=true`}},
		{"a key long before the dialog goes", []string{asks, "key:1", "wait:8s", claudeScreen("blink\n", claudeAsksFor("Bash command", "make a", 0)...), "wait:1s", done},
			[]string{prompt, `granted this_time command "make a" key="1" attested=true uncertain="the dialog stood for 8 s after the key"`}},
		{"a click on the wrapped row of an option", []string{claudeScreen("", claudeAsksFor("Bash command", "make a", 0, "Yes", "Yes, and don’t ask again for: make *\r\n      and more", "No")...), "key:\x1b[<0;9;21M", done},
			[]string{`prompted claude-2.1.290 command "make a" reason="scripted" prefix=["make * and more"] options=3`, `granted always command "make a" key="mouse" attested=true prefix=["make * and more"]`}},
		{"a dialog in a program's output", []string{claudeScreen(fakeBox), "key:1", done}, nil},
		{"a sub-agent's", []string{claudeScreen("", claudeAsksFor("Bash command · from the general-purpose agent", "make a", 0)...), "key:1", done},
			[]string{`prompted claude-2.1.290 command "make a" reason="scripted" thread="general-purpose agent" prefix=["make *"] options=3`, `granted this_time command "make a" key="1" attested=true`}},
		{"No comes first, without numbers", []string{claudeScreen("", func() []string {
			d := claudeAsksFor("Bash command", "make a", -1)
			return append(d[:8], " ❯ No", "   Yes", "", " Esc to cancel")
		}()...), "key:2", "key:\x1b[B\r", done}, []string{`prompted claude-2.1.290 command "make a" reason="scripted" options=2`, `granted this_time command "make a" key="enter" attested=true`}},
		{"a command that draws rules", []string{claudeScreen("", func() []string {
			d := []string{strings.Repeat("─", 80), " Bash command", "", "   make a", "   " + strings.Repeat("▔", 77), "   " + strings.Repeat("─", 77), "    Edit file", "   \x1b[2mscripted\x1b[22m", ""}
			return append(d, claudeAsksFor("", "", 0)[7:]...)
		}()...), "key:1", done}, []string{
			fmt.Sprintf(`prompted claude-2.0.50 command %q [ambiguous] reason="scripted" prefix=["make *"] options=3`, "make a "+strings.Repeat("▔", 77)+strings.Repeat("─", 77)+"\n Edit file"),
			fmt.Sprintf(`granted this_time command %q key="1" attested=true`, "make a "+strings.Repeat("▔", 77)+strings.Repeat("─", 77)+"\n Edit file")}},
		{"the model asks a question", []string{claudeScreen("", strings.Repeat("─", 80), " ☐ Color", "", "Which color?", "", "❯ 1. Red", "     r", "  2. Blue", "", "Enter to select · ↑/↓ to navigate · Esc to cancel"), "key:1", done}, nil},
		{"the assistant ends with the dialog open", []string{"\x1b[?1049h" + asks, "\x1b[?1049l", "bye\r\n"}, []string{prompt}},
	}
	for _, test := range tests {
		for _, size := range []int{1 << 20, 1, 7} {
			var got []string
			for _, e := range session(80, 24, size, test.acts...) {
				got = append(got, words(e))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s, in pieces of %d: told\n%s\nwant\n%s", test.name, size, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		}
	}
}

func TestOpenRules(t *testing.T) {
	tests := []struct {
		command     string
		rules, want []string
	}{
		{"touch a.txt && make -n all 2>&1", []string{"touch a.txt", "make -n all"}, []string{"touch a.txt", "make -n all"}},
		{"touch a.txt; git tag x | cat", []string{"touch a.txt", "git tag"}, []string{"touch a.txt", "git tag *"}},
		{"touch built.txt && make -n all", []string{"touch", "make"}, []string{"touch *", "make *"}},
		{"touch a.txt; git tag x | cat", []string{"cat"}, []string{"cat"}},
		{"if", []string{"if"}, []string{"if"}},
	}
	for _, test := range tests {
		got := slices.Clone(test.rules)
		openRules(got, test.command)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.command, got, test.want)
		}
	}
}
