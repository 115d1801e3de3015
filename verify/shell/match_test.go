package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		text string
		argv []string
		path string // "" for argv[0]
		want bool
	}{
		{"touch a b", []string{"touch", "a", "b"}, "/usr/bin/touch", true},
		{"touch a b", []string{"touch", "a b"}, "/usr/bin/touch", false},
		{"touch a", []string{"touch", "a", "b"}, "", false},
		{"touch 'a b' ''", []string{"touch", "a b", ""}, "", true},
		{"touch 'a b'", []string{"touch", "a b", ""}, "", false},
		{"ls f", []string{"./ls", "f"}, "./ls", false},
		{"./ls f", []string{"./ls", "f"}, "./ls", true},
		{"exec -a z touch q", []string{"z", "q"}, "/usr/bin/touch", false}, // the exec word itself is a builtin
		{"rm *.py", []string{"rm", "a.py", "b.py"}, "", true},
		{"rm *.py", []string{"rm", "a.py", "b.txt"}, "", false},
		{"rm *.py", []string{"rm"}, "", false},
		{"rm $x", []string{"rm"}, "", true},
		{"rm $x", []string{"rm", "-rf", "/"}, "", true},
		{`rm "$x"`, []string{"rm", "-rf", "/"}, "", false},
		{"rm a$x b", []string{"rm", "ax", "y", "b"}, "", true},
		{"rm a$x b", []string{"rm", "x", "y", "b"}, "", false},
		{"rm ${x}a b", []string{"rm", "y", "ya", "b"}, "", true},
		{"rm ${x}a b", []string{"rm", "y", "yb", "b"}, "", false},
		{"cp $a to", []string{"cp", "1", "2", "to"}, "", true},
		{"cp $a to", []string{"cp", "1", "2", "fro"}, "", false},
		{`cp "$@"`, []string{"cp", "1", "2"}, "", true},
		{"rm ~/x", []string{"rm", "/home/u/x"}, "", true},
		{"rm ~/x", []string{"rm", "/home/u/y"}, "", false},
		{"$CC -c x.c", []string{"gcc", "-O2", "-c", "x.c"}, "", true},
		{"$CC -c x.c", []string{"gcc", "-c", "y.c"}, "", false},
		{`"$CC" -c x.c`, []string{"gcc", "-c", "x.c"}, "", true},
		{`touch a$'\xff'`, []string{"touch", "a\xff"}, "", true},
		{`touch a$'\xff'`, []string{"touch", "a\xfe"}, "", false},
		{"rm a[12]", []string{"rm", "a1", "a2"}, "", true},
		{"rm {a,b}", []string{"rm", "a", "b"}, "", true},
		{"rm {a,b}", []string{"rm", "b", "a"}, "", false},
	} {
		s := Parse(c.text, Bash)
		names := []string{c.argv[0]}
		if c.path != "" {
			names = append(names, c.path)
		}
		if got := s.Commands[0].Match(names, c.argv[1:]); got != c.want {
			t.Errorf("%q and %q: %v, want %v", c.text, c.argv, got, c.want)
		}
	}
}

// The matching of long lists must not take time that grows with their product without bound.
func TestMatchIsBounded(t *testing.T) {
	s := Parse("x "+strings.Repeat("$a ", 4000), Bash)
	args := make([]string, 4000)
	if s.Commands[0].Match([]string{"x"}, args) {
		t.Error("a comparison past the limit must not count as agreement")
	}
}

func TestNamesPath(t *testing.T) {
	for _, c := range []struct {
		text, file string
		want       bool
	}{
		{"echo x > ../out/f", "/w/out/f", true},
		{"echo x | tee ../out/g >/dev/null", "/w/out/g", true},
		{"echo x > f", "/w/out/f", false},
		{"cd ../out && echo x > f", "/w/out/f", true},
		{"cd ~/out && echo x > f", "/home/u/out/f", true},
		{"echo x > ~/f", "/home/u/f", true},
		{`echo x > "$HOME/f"`, "/home/u/f", true},
		{`echo x > "$X/f"`, "/home/u/f", true},
		{`echo x > "$X"`, "/home/u/f", false},
		{"rm -r *", "/home/u/f", false},
		{"rm -r /srv/d/*", "/srv/d/f", true},
		{"tar xf a.tar -C /opt/tool", "/opt/tool/bin/x", true},
		{"ls /", "/etc/passwd", false},
		{"dd if=a of=/dev/sda", "/dev/sda", true},
		{"curl -o/tmp/x u", "/tmp/x", true},
		{"curl --output=/tmp/x u", "/tmp/x", true},
		{"echo 1 > d/x", "/w/out/x", false}, // d is a link: the text does not say so
		{"sh -c 'echo > /srv/f'", "/srv/f", true},
		{"make", "/srv/f", false},
	} {
		s := Parse(c.text, Bash)
		if got := s.NamesPath(c.file, "/w/ws", "/home/u"); got != c.want {
			t.Errorf("%q names %s: %v, want %v", c.text, c.file, got, c.want)
		}
	}
}

func TestPlain(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // words joined by space, commands by /
		ok   bool
	}{
		{"git status", "git status", true},
		{"git add 'a b' && git commit -m \"x y\" | cat; ls", "git add a b/git commit -m x y/cat/ls", true},
		{"ls > f", "", false},
		{"ls $X", "", false},
		{"ls *.go", "", false},
		{"A=1 ls", "", false},
		{"ls &", "", false},
		{"(ls)", "", false},
		{"ls |& cat", "", false},
		{"! ls", "", false},
		{"echo $(id)", "", false},
		{`echo a\ b`, "", false},
		{`echo "a\"b"`, "", false},
		{"", "", false},
	} {
		cmds, ok := Plain(c.text)
		var got []string
		for _, w := range cmds {
			got = append(got, strings.Join(w, " "))
		}
		if ok != c.ok || strings.Join(got, "/") != c.want {
			t.Errorf("%q: %v %v, want %q %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func TestWords(t *testing.T) {
	if w, ok := Words(`foo 'bar baz' 'weird&stuff'`); !ok || !slices.Equal(w, []string{"foo", "bar baz", "weird&stuff"}) {
		t.Errorf("got %q %v", w, ok)
	}
	for _, text := range []string{"a; b", "a $x", "A=1 b", "a > f", "'"} {
		if w, ok := Words(text); ok {
			t.Errorf("%q is not plain words, got %q", text, w)
		}
	}
}

// What bash itself makes of words is the last word on what they mean.
func TestAgainstBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	for _, words := range []string{
		`a 'b c' "d e" f\ g`, `'it'"'"'s' "q\"x" \$HOME "\$x" "\n" "a\b"`, `$'a\tb' $'\x41\102' $'\u00e9' $'\'q\'' $'\c?' $'x\0y'z $'\e[0m'`,
		`a{b,c}d {x,y}{1,2} "{n,o}" {} {a} {a,{b,c}}`, "a\\\nb 'c\\\nd' \"e\\\nf\"", `-e\xec \- \\ '\'`, `"" '' x""y`, `$"loc"`, `a#b '#' \#`,
		`"a'b" 'c"d' a"b"'c'$'d'`, `"$(true)"x`,
	} {
		out, err := exec.Command(bash, "--norc", "-c", "printf '%s\\0' "+words).Output()
		if err != nil {
			t.Fatalf("%q: %v", words, err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		s := Parse("p "+words, Bash)
		if s.Err != nil || !s.Commands[0].Match([]string{"p"}, want) {
			t.Errorf("bash makes %q of %s; read as %v (%v)", want, words, show(s), s.Err)
		}
		for i := range want {
			if want[i] == "" {
				continue
			}
			other := slices.Clone(want)
			other[i] += "!"
			if s.Commands[0].Match([]string{"p"}, other) && !strings.Contains(words, "$(") {
				t.Errorf("%s also matches %q", words, other)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"touch a && ls", `$'\x74ouch' x`, "cat <<E\n$(id)\nE", "find . -exec sh -c 'a {}' \\;", "xargs -I{} sh -c 'rm {}'",
		"env -S 'a b' c", "env -Sa", "eval \"$x\"", "{a,{b,c}}{1..9}", "a$x[*]?~/q", "bash -c -l 'a' b", "trap - EXIT", "alias a=b",
		"sudo -u", "timeout --", "exec -a", "time -p x", "coproc n { a; }", "f(){ f; }; f", "watch -n", "script -c x f",
	} {
		f.Add(s, "a\x00b", "/x/y")
	}
	f.Fuzz(func(t *testing.T, text, argv, file string) {
		args := strings.Split(argv, "\x00")
		for _, l := range []Lang{Bash, POSIX, Zsh, Korn} {
			s := Parse(text, l)
			if s.Err != nil && len(s.Commands) > 0 {
				t.Fatal("a text that was not parsed names commands")
			}
			for _, c := range s.Commands {
				if len(c.Words) == 0 {
					t.Fatal("command without a word")
				}
				c.Match(args[:1], args[1:])
				c.MatchTail(args)
				if v, ok := c.Static(); ok && !c.Match(v[:1], v[1:]) {
					t.Fatalf("%q does not match itself", v)
				}
				s.Payloads(c)
			}
			s.NamesPath(file, "/w", "/home/u")
		}
		Plain(text)
		Words(text)
	})
}
