package screen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
)

// session plays output and keys (strings that begin with "key:") on a terminal, the output cut in
// pieces of size, everything at one time as far as the clock can tell. pause: lets 200 ms pass,
// wait:3s three seconds.
func session(cols, rows, size int, acts ...string) []event.Event {
	var events []event.Event
	s := New(cols, rows, func(e event.Event) { events = append(events, e) })
	now := uint64(5e9)
	for _, a := range acts {
		if k, ok := strings.CutPrefix(a, "key:"); ok {
			s.Input([]byte(k), now)
			continue
		}
		if a == "pause:" {
			now += 200e6
			continue
		}
		if d, ok := strings.CutPrefix(a, "wait:"); ok {
			wait, err := time.ParseDuration(d)
			if err != nil {
				panic(err)
			}
			now += uint64(wait)
			continue
		}
		for out := []byte(a); len(out) > 0; {
			n := min(size, len(out))
			s.Output(out[:n], now)
			out = out[n:]
		}
	}
	s.Close(now + 1e9)
	return events
}

func fakeAgent(show string) string {
	return "\x1b[1mBash command\x1b[0m\r\n\r\n  " + strings.ReplaceAll(show, "\n", "\r\n  ") +
		"\r\n\r\nDo you want to proceed?\r\n\x1b[36m> 1. Yes\x1b[0m\r\n  2. No\r\n"
}

func frames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\x1b[H\x1b[J%c working\r\n  rm x\r\nDo you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n", `|/-\`[i%4])
	}
	return b.String()
}

// boxed is a command cut at column 60 into a box.
func boxed(command string) string {
	var b strings.Builder
	b.WriteString("\x1b[H╭" + strings.Repeat("─", 62) + "╮\r\n")
	for ; command != ""; command = command[min(60, len(command)):] {
		fmt.Fprintf(&b, "│ %-60s │\r\n", command[:min(60, len(command))])
	}
	return b.String() + "╰" + strings.Repeat("─", 62) + "╯\r\nDo you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n"
}

const no1yes2 = "\x1b[H  rm x\r\nDo you want to proceed?\r\n❯ 1. No\r\n  2. Yes\r\n"

// TestShapes holds screens that are not of any assistant's: the shapes that a dialog can have, and
// what only looks like one.
func TestShapes(t *testing.T) {
	long := "printf %s " + strings.Repeat("a", 120) + " 'b  b' | wc -c"
	tests := []struct {
		name       string
		cols, rows int
		acts       []string
		want       []string
	}{
		{"an agent that reads one key", 80, 24,
			[]string{fakeAgent("touch made"), "key:1\r"},
			[]string{`prompted generic command "touch made" options=2`, `granted this_time command "touch made" key="1" attested=true`}},
		{"its output after the key", 80, 24,
			[]string{fakeAgent("seq 40"), "key:y", strings.Repeat("out\r\n", 40)},
			[]string{`prompted generic command "seq 40" options=2`, `granted this_time command "seq 40" key="y" attested=true`}},
		{"a key that is not yes", 80, 24,
			[]string{fakeAgent("touch made"), "key:2"},
			[]string{`prompted generic command "touch made" options=2`, `denied denied command "touch made" key="2" attested=true by=user`}},
		{"several lines, one of them empty", 80, 24,
			[]string{fakeAgent("cat > f <<E\n\n  x\nE"), "key:1"},
			[]string{`prompted generic command "cat > f <<E\n\n  x\nE" [ambiguous] options=2`, `granted this_time command "cat > f <<E\n\n  x\nE" key="1" attested=true`}},
		{"a line that the terminal wraps", 40, 24,
			[]string{fakeAgent("echo " + strings.Repeat("x", 60) + "  end"), "key:1"},
			[]string{`prompted generic command "echo ` + strings.Repeat("x", 60) + `  end" options=2`,
				`granted this_time command "echo ` + strings.Repeat("x", 60) + `  end" key="1" attested=true`}},
		{"nobody answers", 80, 24,
			[]string{fakeAgent("touch made"), "pause:", strings.Repeat("out\r\n", 30)},
			[]string{`prompted generic command "touch made" options=2`,
				`granted this_time command "touch made" key="" attested=false uncertain="went away without an answer from this terminal"`}},
		{"bidirectional override", 80, 24,
			[]string{fakeAgent("touch \u202etxt.hs"), "key:1"},
			[]string{`prompted generic command "touch \u202etxt.hs" [hidden: bidi control U+202E] options=2`,
				`granted this_time command "touch \u202etxt.hs" key="1" attested=true`}},
		{"a command that paints over itself", 80, 24,
			[]string{fakeAgent("touch evil #\r\x1b[2K  ls"), "key:1"},
			[]string{`prompted generic command "ls" options=2`, `granted this_time command "ls" key="1" attested=true`}},
		{"a summary instead of the command", 80, 24,
			[]string{fakeAgent("List files in this directory"), "key:1"},
			[]string{`prompted generic command "List files in this directory" options=2`,
				`granted this_time command "List files in this directory" key="1" attested=true`}},
		{"a program prints the same again", 80, 24,
			[]string{fakeAgent("printf fake"), "key:1\r", "Bash command\r\n\r\n  ls\r\n\r\nDo you want to proceed?\r\n> 1. Yes\r\n  2. No\r\n"},
			[]string{`prompted generic command "printf fake" options=2`, `granted this_time command "printf fake" key="1" attested=true`,
				`prompted generic command "ls" options=2`}},
		{"question-like words, no mark", 80, 24,
			[]string{"\x1b[22;1H> \x1b[7m \x1b[0m\x1b[24;1H⏵⏵ bypass permissions on (shift+tab to cycle)\x1b[1;1HIf asked, do you want to proceed? Read docs/permission.md\r\n1. Yes means yes\r\n2. No\r\n", "key:\r"},
			nil},
		{"a shape nobody knows", 80, 24,
			[]string{"\x1b[H╭─ Risky removal ─╮\r\n  rm -rf build\r\n\r\n  This cannot be undone.\r\n\r\n  \x1b[36m❯\x1b[39m Keep (esc)\r\n    Go ahead, this once (g)\r\n    Go ahead, always (a)\r\n", "key:g"},
			[]string{`unreadable "options without numbers in a shape that no grammar knows" key="g" rows=8 skipped=0`}},
		{"neither yes nor no", 80, 24,
			[]string{"Which colour?\r\n❯ 1. Red\r\n  2. Blue\r\n", "key:1"},
			[]string{`unreadable "numbered options that are neither yes nor no" key="1" rows=3 skipped=0`}},
		{"cut at the last column of a box", 80, 24,
			[]string{boxed(long), "key:1"},
			[]string{fmt.Sprintf("prompted generic command %q [ambiguous] options=2", long), fmt.Sprintf("granted this_time command %q key=\"1\" attested=true", long)}},
		{"one dialog, painted 400 times", 80, 24,
			[]string{frames(400)},
			[]string{`prompted generic command "rm x" options=2`}},
		{"two, with the dialog gone between them", 80, 24,
			[]string{frames(3) + "\x1b[H\x1b[Jrm done\r\n" + frames(3), "key:1"},
			[]string{`prompted generic command "rm x" options=2`,
				`granted this_time command "rm x" key="" attested=false uncertain="went away without an answer from this terminal"`,
				`prompted generic command "rm x" options=2`, `granted this_time command "rm x" key="1" attested=true`}},
		{"hyperlinks", 80, 24,
			[]string{fakeAgent("cat \x1b]8;;file:///w/notes.md\x1b\\notes.md\x1b]8;;\x1b\\ \x1b]8;id=a:b;http://h/?q=1;2&r=[3m\x07x\x1b]8;;\x07 here"), "key:1"},
			[]string{`prompted generic command "cat notes.md x here" [hidden: a link to "http://h/?q=1;2&r=[3m" shown as "x"] options=2`, `granted this_time command "cat notes.md x here" key="1" attested=true`}},
		{"two-byte and string sequences", 80, 24,
			[]string{"\x1b[?1049h\x1b[?1h\x1b=\x1b(B\x1b7\x1b8\x1b[H\x1bP+q544e\x1b\\\x1b_app\x1b\\\x1b^pm\x1b\\\x1bX sos\x1b\\  rm x\r\nDo you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n", "key:1", "\x1b[H\x1b[J"},
			[]string{`prompted generic command "rm x" options=2`, `granted this_time command "rm x" key="1" attested=true`}},
		{"Enter on No", 80, 24, []string{no1yes2, "key:\r"},
			[]string{`prompted generic command "rm x" options=2`, `denied denied command "rm x" key="enter" attested=true by=user`}},
		{"Down and Enter on Yes", 80, 24, []string{no1yes2, "key:\x1b[B", "key:\r"},
			[]string{`prompted generic command "rm x" options=2`, `granted this_time command "rm x" key="enter" attested=true`}},
		{"Down and Enter in one read", 80, 24, []string{no1yes2, "key:\x1b[B\r"},
			[]string{`prompted generic command "rm x" options=2`, `granted this_time command "rm x" key="enter" attested=true`}},
		{"the digit of Yes, where it stands", 80, 24, []string{no1yes2, "key:2"},
			[]string{`prompted generic command "rm x" options=2`, `granted this_time command "rm x" key="2" attested=true`}},
		{"a click on Yes", 80, 24, []string{no1yes2, "key:\x1b[<0;5;4M\x1b[<0;5;4m"},
			[]string{`prompted generic command "rm x" options=2`, `granted this_time command "rm x" key="mouse" attested=true`}},
		{"answers of the terminal are no keys", 80, 24, []string{no1yes2, "key:\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\\x1bP>|xterm(390)\x1b\\\x1b[I\x1b[4;1R"},
			[]string{`prompted generic command "rm x" options=2`}},
		{"radio buttons", 80, 24,
			[]string{"◆  Goose would like to call the above tool, do you allow?\r\n│  ● Allow (Allow the tool call once)\r\n│  ○ Always Allow\r\n│  ○ Deny\r\n│  ○ Cancel\r\n└\r\n", "key:\r"},
			[]string{`unreadable "radio buttons in a shape that no grammar knows" key="enter" rows=6 skipped=0`}},
		{"arrows and keys", 80, 24,
			[]string{" $  docker pull example in .\r\n Run this command?\r\n Not in allowlist: docker\r\n → Run (once) (y)\r\n   Add Shell(docker) to allowlist? (tab)\r\n   Skip & tell the agent what to do instead (esc or n)\r\n", "key:y"},
			[]string{`unreadable "options without numbers in a shape that no grammar knows" key="y" rows=6 skipped=0`}},
		{"a box in a box", 60, 24,
			[]string{strings.ReplaceAll(`╭────────────────────────────────────────────────────────╮
│ ? Shell  Executes a bash command               2 of 3  │
│ ╭────────────────────────────────────────────────────╮ │
│ │ ... 22 hidden (Ctrl+O) ...                         │ │
│ │ echo "Line 50"                                     │ │
│ ╰────────────────────────────────────────────────────╯ │
│ Allow execution of [Shell]?                            │
│ ● 1. Allow once                                        │
│   2. Allow for this session                            │
│   3. No, suggest changes (esc)                         │
╰────────────────────────────────────────────────────────╯
`, "\n", "\r\n"), "key:2", "\x1b[H\x1b[J"},
			[]string{`prompted generic command "echo \"Line 50\"" [cut] options=3`, `granted session command "echo \"Line 50\"" key="2" attested=true`}},
		{"the question has scrolled away", 40, 5,
			[]string{"\x1b[H  rm x\r\nDo you want to proceed?\r\n  long line 0\r\n  long line 1\r\n  long line 2\r\n  long line 3\r\n❯ 1. Yes\r\n  2. No\r\n  3. Never", "key:\r"},
			[]string{`prompted generic unknown "long line 2\nlong line 3" [cut] options=3`,
				`granted this_time unknown "long line 2\nlong line 3" key="enter" attested=true uncertain="the question is not on the screen"`}},
		{"a mark in the next read", 80, 24, []string{fakeAgent("e\u0301cho x"), "key:1"},
			[]string{"prompted generic command \"e\u0301cho x\" options=2", "granted this_time command \"e\u0301cho x\" key=\"1\" attested=true"}},
	}
	for _, test := range tests {
		for _, size := range []int{1 << 20, 1, 7} {
			var got []string
			for _, e := range session(test.cols, test.rows, size, test.acts...) {
				got = append(got, words(e))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s, in pieces of %d: told\n%s\nwant\n%s", test.name, size, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		}
	}
}
