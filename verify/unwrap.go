package verify

import (
	"path"
	"strings"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// A carried command is what an exec was given to run, taken out of what the assistant put around it.
type carried struct {
	grammar string   // which form was recognised; "argv" when there is no shell text
	texts   []string // the command's text; several when the wrapper leaves it open (first: most likely)
	argv    []string // the words, when no shell reads them
	lang    shell.Lang
	snippet bool // the shell first reads a file with aliases and functions (Claude's shell snapshot)
	login   bool // the shell first reads its start-up files
}

// text is the most likely text.
func (c *carried) text() string {
	if len(c.texts) > 0 {
		return c.texts[0]
	}
	if len(c.argv) > 0 {
		return shell.Join(c.argv)
	}
	return ""
}

// shellText finds the text given to a shell with -c. login says that start-up files are read first.
func shellText(x *proctree.Exec) (text string, login, ok bool) {
	argv := x.Argv
	if len(argv) < 3 {
		return "", false, false
	}
	base := strings.TrimPrefix(path.Base(argv[0]), "-")
	exe := path.Base(x.Exe)
	if !shell.IsShell(base) && !shell.IsShell(exe) && exe != "busybox" {
		return "", false, false
	}
	login = strings.HasPrefix(argv[0], "-")
	args := argv[1:]
	if exe == "busybox" && base == "busybox" && shell.IsShell(args[0]) {
		args = args[1:]
	}
	want := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			if want && i+1 < len(args) {
				return args[i+1], login, true
			}
			return "", false, false
		case a == "--login":
			login = true
		case a == "-o" || a == "+o" || a == "-O" || a == "+O" || a == "--rcfile" || a == "--init-file":
			i++
		case strings.HasPrefix(a, "--") || strings.HasPrefix(a, "+") && len(a) > 1:
		case strings.HasPrefix(a, "-") && len(a) > 1:
			want = want || strings.Contains(a, "c")
			login = login || strings.ContainsAny(a, "li")
		case want:
			return a, login, true
		default:
			return "", false, false
		}
	}
	return "", false, false
}

// carriedBy takes the command out of a root exec. Wrappers are undone by the grammar of the assistant
// that started it and only when all of it is as known; otherwise the text stays as it ran.
func carriedBy(agent string, x *proctree.Exec) *carried {
	text, login, ok := shellText(x)
	if !ok {
		return &carried{grammar: "argv", argv: x.Argv}
	}
	c := &carried{grammar: "shell", texts: []string{text}, lang: shell.LangOf(shellOf(x)), login: login || x.Env["BASH_ENV"] != "" || path.Base(x.Exe) == "zsh"}
	switch agent {
	case claude, unknown:
		unwrapClaude(c, text)
	case gemini:
		unwrapGemini(c, text)
	}
	return c
}

// shellOf is the program that reads the text: the executable, unless it is a multi-call binary.
func shellOf(x *proctree.Exec) string {
	if path.Base(x.Exe) == "busybox" {
		return "ash"
	}
	return x.Exe
}

// unwrapGemini takes off what Gemini CLI puts around a command to keep its background jobs in sight.
func unwrapGemini(c *carried, text string) {
	if rest, ok := strings.CutPrefix(text, "_bgpids_file='"); ok {
		_, rest, ok = strings.Cut(rest, "'\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n")
		if cmd, tail, found := lastCut(rest, "\n)\n"); ok && found && tail == "__code=$?\nexit $__code" {
			c.grammar, c.texts = "gemini-subshell", []string{cmd}
		}
		return
	}
	if rest, ok := strings.CutPrefix(text, "{ "); ok {
		cmd, tail, found := lastCut(rest, " }; __code=$?; pgrep -g 0 >")
		if found && strings.HasSuffix(tail, " 2>&1; exit $__code;") {
			c.grammar, c.texts = "gemini-pgrep", []string{strings.TrimSuffix(cmd, ";")}
		}
	}
}

func lastCut(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
