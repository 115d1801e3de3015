package screen

import (
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

func TestPlainCommands(t *testing.T) {
	tests := []struct {
		script string
		want   []string // commands, words joined by |; nil: not split
	}{
		{"git status --short", []string{"git|status|--short"}},
		{"git add . && git commit -m 'a b'; make | tee log || true", []string{"git|add|.", "git|commit|-m|a b", "make", "tee|log", "true"}},
		{"make\nmake install", []string{"make", "make|install"}},
		{`printf "%s\n" x`, nil}, // an escape in double quotes
		{`echo "a b"'c'd`, []string{"echo|a bcd"}},
		{"make > log", nil},
		{"cat <<E\nx\nE", nil},
		{"echo $HOME", nil},
		{"echo `id`", nil},
		{"(make)", nil},
		{"make &", nil},
		{"make |& tee", nil},
		{"! make", nil},
		{"A=1 make", nil},
		{"ls *.go", nil},
		{"ls ~", nil},
		{"echo {a,b}", nil},
		{"make # all", nil},
		{"if true; then make; fi", nil},
		{"git log --format=%H", nil}, // = in a word
		{"echo a\\ b", nil},
		{"make '", nil},
		{"", nil},
	}
	for _, test := range tests {
		commands, ok := plainCommands(test.script)
		var got []string
		for _, c := range commands {
			got = append(got, strings.Join(c, "|"))
		}
		if ok != (test.want != nil) || !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.script, got, test.want)
		}
	}
}

func TestShellWords(t *testing.T) {
	tests := []struct {
		prefix string
		want   []string
	}{
		{"git status", []string{"git", "status"}},
		{"foo 'bar baz' 'weird&stuff'", []string{"foo", "bar baz", "weird&stuff"}},
		{"env A=1", []string{"env", "A=1"}},
		{"echo x > /srv/f", []string{"echo x > /srv/f"}},
		{`echo "$HOME"`, []string{`echo "$HOME"`}},
		{"touch a && make", []string{"touch a && make"}},
		{"A=1 make", []string{"A=1 make"}},
	}
	for _, test := range tests {
		if got := shellWords(test.prefix); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.prefix, got, test.want)
		}
	}
}

func TestRuleMatch(t *testing.T) {
	always := func(prefix string) string {
		return codexScreen("", codexAsks(prefix+" x", 0, "Yes, proceed (y)", "Yes, and don't ask again for commands that start with `"+prefix+"` (p)", "No, and tell Codex what to do differently (esc)")...)
	}
	row := func(prefix string) string {
		return "\x1b[38;5;2m✔ \x1b[39mYou \x1b[1mapproved\x1b[22m codex to always run commands that start with \x1b[2m" + prefix + "\x1b[0m\n\n"
	}
	s := New(80, 24, func(event.Event) {})
	feed := func(acts ...string) {
		for _, a := range acts {
			if k, ok := strings.CutPrefix(a, "key:"); ok {
				s.Input([]byte(k), 5e9)
			} else {
				s.Output([]byte(a), 5e9)
			}
		}
	}
	if _, ok := s.RuleMatch("git status", 6e9); ok {
		t.Error("covered before anything was allowed")
	}
	feed(always("git status"), "key:p", codexScreen(row("git status")))
	feed(always("make"), "key:p", codexScreen(row("git status")+row("make")))
	feed(always("echo x > f"), "key:p", codexScreen(row("git status")+row("make")+row("echo x > f")))
	feed(always("rm"), "key:y", codexScreen(row("git status")+row("make")+row("echo x > f")+approved("rm x"))) // this time only
	tests := []struct{ command, rule string }{
		{"git status", "a1"},
		{"git status --short", "a1"},
		{"git  'status'", "a1"},
		{"git stat", ""},
		{"git statusx", ""},
		{"make all && git status | make x", "a2,a1"},
		{"make; ls", ""},
		{"make > log", ""},
		{"make $(id)", ""},
		{"echo x > f", "a3"},
		{"echo x > f2", ""},
		{"echo x", ""},
		{"rm x", ""},
	}
	answers := 4
	for _, test := range tests {
		e, ok := s.RuleMatch(test.command, 9e9)
		if ok != (test.rule != "") {
			t.Errorf("%q: covered %t", test.command, ok)
			continue
		}
		if !ok {
			continue
		}
		answers++
		g := e.Body.(*event.ApprovalGranted)
		if g.Rule != test.rule || g.Decision != event.DecisionAlwaysRule || g.Command != test.command || g.Attested || len(g.Prefix) == 0 || e.TimeNS != 9e9 {
			t.Errorf("%q: %+v", test.command, g)
		}
	}
	if s.answers != answers {
		t.Errorf("%d answers numbered, want %d", s.answers, answers)
	}
}

func TestClaudeRules(t *testing.T) {
	rules := []savedRule{{id: "a1", prefix: []string{"touch a.txt", "git tag *"}}, {id: "a2", prefix: []string{"python3:*"}}, {id: "a3", prefix: []string{"make x > log"}}}
	tests := []struct {
		command string
		want    []string
	}{
		{"touch a.txt", []string{"a1"}},
		{"touch a.txt b", nil},
		{"git tag", []string{"a1"}},
		{"git tag v1 && python3 x.py", []string{"a1", "a2"}},
		{"git tags", nil},
		{"python3 x.py; id", nil},
		{"make x > log", []string{"a3"}},
		{"make x > log2", nil},
	}
	for _, test := range tests {
		var got []string
		for _, r := range coverClaude(rules, test.command) {
			got = append(got, r.id)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.command, got, test.want)
		}
	}
}

// TestSessionAnswer: Codex up to 0.58 offers not to ask for this very command again in the session.
func TestSessionAnswer(t *testing.T) {
	s := New(80, 24, func(event.Event) {})
	s.Output([]byte(codexScreen("", codexAsks("make > log", 0, "Yes, proceed (y)", "Yes, and don't ask again for this command in this session (a)", "No, and tell Codex what to do differently (esc)")...)), 5e9)
	s.Input([]byte("a"), 5e9)
	s.Output([]byte(codexScreen("\x1b[38;5;2m✔ \x1b[39mYou \x1b[1mapproved\x1b[22m codex to run \x1b[2mmake > log\x1b[22m\x1b[1m every time this session\x1b[0m\n")), 5e9)
	for command, want := range map[string]bool{"make > log": true, "make > log2": false, "make": false} {
		if _, ok := s.RuleMatch(command, 6e9); ok != want {
			t.Errorf("%q: covered %t", command, ok)
		}
	}
}
