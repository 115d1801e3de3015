package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// show writes a script as one line per command: words with * for what is filled in at run time.
func show(s *Script) []string {
	var out []string
	for _, c := range s.Commands {
		var b strings.Builder
		for i, w := range c.Words {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(pattern(w))
		}
		switch c.Kind {
		case Builtin:
			b.WriteString(" [builtin]")
		case Function:
			b.WriteString(" [function]")
		}
		if c.Via != nil {
			fmt.Fprintf(&b, " <%s %s>", c.How, c.Via.Base())
		}
		out = append(out, b.String())
		if c.Inner != nil {
			for _, l := range show(c.Inner) {
				out = append(out, "| "+l)
			}
		}
	}
	return out
}

func pattern(w Word) string {
	var b strings.Builder
	for _, p := range w.parts {
		if p.any {
			b.WriteString("*")
		} else {
			b.WriteString(p.lit)
		}
	}
	switch w.kind {
	case fields:
		b.WriteString("…")
	case each:
		b.WriteString("+")
	}
	return b.String()
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"touch a && ls -l a", []string{"touch a", "ls -l a"}},
		// every separator
		{"echo a; id", []string{"echo a [builtin]", "id"}},
		{"echo a & id", []string{"echo a [builtin]", "id"}},
		{"echo a | id", []string{"echo a [builtin]", "id"}},
		{"false || id", []string{"false [builtin]", "id"}},
		{"echo a |& id", []string{"echo a [builtin]", "id"}},
		{"echo a\nid", []string{"echo a [builtin]", "id"}},
		{"(echo a; id)", []string{"echo a [builtin]", "id"}},
		{"f() { echo a; id; }; f", []string{"echo a [builtin]", "id", "f [function]"}},
		{"! id", []string{"id"}},
		{"time id", []string{"id"}},
		{"coproc id", []string{"id"}},
		{"if a; then b; else c; fi; while d; do e; done; case x in x) g;; esac", []string{"a", "b", "c", "d", "e", "g"}},
		// substitutions
		{"echo $(date +%Y) `uname -s`", []string{"echo *… *… [builtin]", "date +%Y", "uname -s"}},
		{"diff <(sort a) b", []string{"diff * b", "sort a"}},
		{"x=$(cat f)", []string{"cat f"}},
		{`cat > "$(mktemp)" <<E` + "\n$(id)\nE", []string{"cat", "mktemp", "id"}},
		// quoting
		{`$'\x74ouch' x1`, []string{"touch x1"}},
		{`echo $'a\'' ; touch x2`, []string{"echo a' [builtin]", "touch x2"}},
		{`touch $'x3\0junk'`, []string{"touch x3"}},
		{`touch $'x\u00e9' $'\cA' $'\101' $'\xff' "a\"b" a\ b`, []string{"touch xé \x01 A \xff a\"b a b"}},
		{`find a -e\xec touch b ';'`, []string{"find a -exec touch b ;", "touch b <find-exec find>"}},
		{"to\\\nuch c", []string{"touch c"}},
		{`f"oo" 'run' \x`, []string{"foo run x"}},
		// wildcards
		{`rm $x "$y" a$z *.py "$@" ~/f {a,b}c "{a,b}" {1..3}`, []string{"rm *… * a*… *.py+ *… */f ac bc {a,b} *+"}},
		{`D=/srv/x; rm -r $D "$D/y"`, []string{"rm -r /srv/x /srv/x/y"}},
		{`D=a; D=b; rm $D`, []string{"rm *…"}},
		{`for f in a b; do rm $f; done`, []string{"rm *…"}},
		{`D="a b"; rm $D "$D"`, []string{"rm *… a b"}},
		{`X=1 env Y=2 printenv`, []string{"env Y=2 printenv", "printenv <wrapper env>"}},
		// wrappers
		{"timeout 5 touch x", []string{"timeout 5 touch x", "touch x <wrapper timeout>"}},
		{"timeout -s KILL --foreground 5 nice -n 5 nohup touch x", []string{
			"timeout -s KILL --foreground 5 nice -n 5 nohup touch x", "nice -n 5 nohup touch x <wrapper timeout>",
			"nohup touch x <wrapper nice>", "touch x <wrapper nohup>"}},
		{"nice -n1 touch x", []string{"nice -n1 touch x", "touch x <wrapper nice>"}},
		{"env -i A=1 -u B touch x", []string{"env -i A=1 -u B touch x", "touch x <wrapper env>"}},
		{"env -S 'touch x' y", []string{"env -S touch x y", "touch x y <wrapper env>"}},
		{"env -- touch dashdash", []string{"env -- touch dashdash", "touch dashdash <wrapper env>"}},
		{"stdbuf -oL touch x", []string{"stdbuf -oL touch x", "touch x <wrapper stdbuf>"}},
		{"setsid -w touch x", []string{"setsid -w touch x", "touch x <wrapper setsid>"}},
		{"sudo -u bob A=1 touch x", []string{"sudo -u bob A=1 touch x", "touch x <wrapper sudo>"}},
		{"command touch x; command -v y; exec -a z touch q", []string{
			"command touch x [builtin]", "touch x <wrapper command>", "command -v y [builtin]",
			"exec -a z touch q [builtin]", "touch q <wrapper exec>"}},
		{"timeout 5 echo hi", []string{"timeout 5 echo hi", "echo hi <wrapper timeout>"}},
		{"echo y | xargs -I@ touch @/f", []string{"echo y [builtin]", "xargs -I@ touch @/f", "touch */f <xargs xargs>"}},
		{"xargs -n1 rm -f < l", []string{"xargs -n1 rm -f", "rm -f *… <xargs xargs>"}},
		{`find . -name x -exec rm {} + -o -exec echo a{}b \;`, []string{
			"find . -name x -exec rm {} + -o -exec echo a{}b ;", "rm *… <find-exec find>", "echo a*b <find-exec find>"}},
		{"flock /tmp/l -c 'touch x'", []string{"flock /tmp/l -c touch x", "| touch x"}},
		{"busybox sh -c 'cat f'", []string{"busybox sh -c cat f", "sh -c cat f <wrapper busybox>", "| cat f"}},
		{"watch -n 1 ls -l", []string{"watch -n 1 ls -l", "| ls -l"}},
		{"/lib64/ld-linux-x86-64.so.2 /usr/bin/touch d", []string{
			"/lib64/ld-linux-x86-64.so.2 /usr/bin/touch d", "/usr/bin/touch d <wrapper ld-linux-x86-64.so.2>"}},
		// texts for other shells
		{"cat <<'E' | sh -c 'cat >/dev/null; touch ran'\nrm -rf /nonexistent\nE", []string{
			"cat", "sh -c cat >/dev/null; touch ran", "| cat", "| touch ran"}},
		{"bash -lc 'a; b'", []string{"bash -lc a; b", "| a", "| b"}},
		{"bash -c -l a", []string{"bash -c -l a", "| a"}},
		{"bash --norc -o pipefail -ec a x y", []string{"bash --norc -o pipefail -ec a x y", "| a"}},
		{`sh -c "touch $f"`, []string{"sh -c touch *", "| touch *…"}},
		{"bash <<'E'\ntouch x\nE", []string{"bash", "| touch x"}},
		{"bash <<< 'touch y'", []string{"bash", "| touch y"}},
		{"eval 'touch x'; eval touch y", []string{
			"eval touch x [builtin]", "touch x <eval eval>", "eval touch y [builtin]", "touch y <eval eval>"}},
		{"trap 'rm t' EXIT; a", []string{"trap rm t EXIT [builtin]", "rm t <eval trap>", "a"}},
		// forms that parsers get wrong
		{"echo $( (touch ok); )", []string{"echo *… [builtin]", "touch ok"}},
		{"x=$(case a in a) touch ok;; esac)", []string{"touch ok"}},
		{"y=$(cat <<E\n)\nE\n); touch ok", []string{"cat", "touch ok"}},
		{"((1)) && touch ok", []string{"touch ok"}},
		{`[[ "a(" =~ \( ]] && touch ok`, []string{"touch ok"}},
		{"cat <<<x >/dev/null; touch ok", []string{"cat", "touch ok"}},
		{"shopt -s extglob; touch ok", []string{"shopt -s extglob [builtin]", "touch ok"}},
		{"for ((i=0;i<1;i++)) { touch ok; }", []string{"touch ok"}},
		{"", nil},
		{"# nothing", nil},
	} {
		s := Parse(c.text, Bash)
		if s.Err != nil {
			t.Errorf("%q: %v", c.text, s.Err)
			continue
		}
		if got := show(s); !slices.Equal(got, c.want) {
			t.Errorf("%q names\n  %s\nwant\n  %s", c.text, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
		}
	}
}

// dash does not know $'…': the shell that ran the text decides what it named.
func TestLanguage(t *testing.T) {
	for exe, want := range map[string]string{
		"/usr/bin/dash": "touch $x4", "/bin/bash": "touch x4", "/usr/bin/bash5": "touch x4", "/usr/bin/zsh": "touch x4",
	} {
		s := Parse(`touch $'x4'`, LangOf(exe))
		if got := show(s); s.Err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v %q, want %q", exe, s.Err, got, want)
		}
	}
}

func TestUnparsed(t *testing.T) {
	for _, text := range []string{"if", "echo 'a", "a | | b", "$(", strings.Repeat("(", 5000), strings.Repeat("a", maxText+1)} {
		s := Parse(text, Bash)
		if s.Err == nil || len(s.Commands) != 0 || s.NamesPath("/x", "/", "/") {
			t.Errorf("%.20q: err %v, %d commands; want it said to be unparsed", text, s.Err, len(s.Commands))
		}
	}
}

func TestOpaque(t *testing.T) {
	for _, c := range []struct{ text, why string }{
		{"echo b | base64 -d | sh", "stdin-fed"},
		{"curl -s u | bash -s -- x", "stdin-fed"},
		{"curl -s u | python3 -", "stdin-fed"},
		{"curl -s u | python3 script.py", ""},
		{"curl -s u | python3 -c 'print(1)'", ""},
		{"cat f | sh script.sh", ""},
		{`eval "$x"`, "eval"},
		{"eval $(ssh-agent)", "eval"},
		{`bash -c "$x"`, "shell-text"},
		{"source <(curl u)", "source"},
		{". ./env.sh", ""},
		{"$x y", "command-word"},
		{"X=foo; $X run", ""},
		{"bash <<'E'\ntouch x\nE", ""},
		{"bash", ""},
		{"ls | wc", ""},
	} {
		s := Parse(c.text, Bash)
		why := ""
		if len(s.Opaque) > 0 {
			why = s.Opaque[0].Why
		}
		if s.Err != nil || why != c.why {
			t.Errorf("%q: %v opaque %q, want %q", c.text, s.Err, why, c.why)
		}
	}
}
