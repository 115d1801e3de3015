package shell

import (
	"slices"
	"strings"
)

// payload goes on to what a command runs: the program behind a wrapper, the text given to a shell.
func (s *Script) payload(c *Command) {
	base := c.Base()
	args := c.Args()
	switch base {
	case "eval":
		s.eval(c, args)
		return
	case "source", ".":
		s.sourced(c, args)
		return
	case "trap", "alias":
		for _, a := range args {
			v, _ := a.Static()
			if base == "alias" {
				_, v, _ = strings.Cut(v, "=")
			}
			if strings.TrimSpace(v) != "" {
				s.code(c, Literal(v), s.Lang, "eval")
			}
			if base == "trap" {
				break
			}
		}
		return
	case "xargs", "parallel":
		s.xargs(c, args)
		return
	case "find", "bfs", "fd", "fdfind":
		s.find(c, args)
		return
	}
	if shells[base] {
		s.shell(c, args)
		return
	}
	if strings.HasPrefix(base, "ld-linux") || strings.HasPrefix(base, "ld-musl") {
		base = "ld.so"
	}
	if w, ok := wrappers[base]; ok {
		s.wrapped(c, w, args)
		return
	}
	if interpreters[strings.TrimRight(base, "0123456789.")] || interpreters[base] {
		s.interpreter(c, args)
	}
}

// option tells options from operands. takes are the options whose value is the next word.
func option(w Word, takes []string) (isOption, takesNext bool) {
	v := w.Prefix()
	if len(v) < 2 || v[0] != '-' {
		return v == "-", false
	}
	if v == "--" {
		return false, false
	}
	return true, slices.Contains(takes, v)
}

func (s *Script) wrapped(c *Command, w wrapper, args []Word) {
	takes := strings.Fields(w.args)
	operands := w.operands
	for i := 0; i < len(args); i++ {
		v, _ := args[i].Static()
		isOpt, takesNext := option(args[i], takes)
		switch {
		case v == "--":
			if operands == 0 {
				s.run(c, args[i+1:], "wrapper")
				return
			}
		case strings.HasPrefix(w.code, "-") && w.code == v && i+1 < len(args):
			s.code(c, args[i+1], POSIX, "shell-text")
			return
		case c.Base() == "env" && (v == "-S" || v == "--split-string") && i+1 < len(args):
			s.splitString(c, args[i+1], args[i+2:])
			return
		case c.Base() == "env" && strings.HasPrefix(v, "-S"):
			s.splitString(c, args[i].from(2), args[i+1:])
			return
		case c.Base() == "command" && (v == "-v" || v == "-V"):
			return // asks, does not run
		case takesNext:
			i++
		case isOpt:
		case w.assigns && isAssign(args[i]):
			name, _, _ := strings.Cut(args[i].Prefix(), "=")
			a := Assign{Name: name, Value: args[i].from(len(name) + 1)}
			c.Assigns = append(slices.Clip(c.Assigns), a)
			s.Assigns = append(s.Assigns, a)
		case operands > 0:
			operands--
		case w.code == "words":
			// watch hands its words, joined, to sh -c.
			s.code(c, join(args[i:]), POSIX, "shell-text")
			return
		default:
			s.run(c, args[i:], "wrapper")
			return
		}
	}
}

func isAssign(w Word) bool {
	name, _, ok := strings.Cut(w.Prefix(), "=")
	if !ok || name == "" {
		return false
	}
	for i, r := range name {
		if r != '_' && (r|0x20 < 'a' || r|0x20 > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// splitString is env -S: words split much as a shell would, no expansion.
func (s *Script) splitString(c *Command, w Word, rest []Word) {
	var words []Word
	for _, f := range strings.Fields(w.lit()) {
		words = append(words, Literal(f))
	}
	s.wrapped(c, wrappers["env"], append(words, rest...))
}

func join(words []Word) Word {
	var out Word
	for i, w := range words {
		if i > 0 {
			out.add(" ")
		}
		for _, p := range w.parts {
			if p.any {
				out.wild(one)
			} else {
				out.add(p.lit)
			}
		}
		out.Source = w.Source
	}
	return out
}

func (s *Script) eval(c *Command, args []Word) {
	if len(args) > 0 && args[0].lit() == "--" {
		args = args[1:]
	}
	if len(args) > 0 {
		s.code(c, join(args), s.Lang, "eval")
	}
}

// sourced is a file read as code by the same shell. A plain file is named by the text; what comes out
// of a pipe or a substitution is not.
func (s *Script) sourced(c *Command, args []Word) {
	s.Dynamic = true
	if len(args) == 0 {
		return
	}
	v, ok := args[0].Static()
	if !ok && args[0].Blank() || strings.HasPrefix(v, "/dev/") || strings.HasPrefix(v, "/proc/") {
		s.opaque("source", c)
	}
}

// shell is sh, bash and the like: text after -c, a script file, or standard input.
func (s *Script) shell(c *Command, args []Word) {
	lang := LangOf(c.Base())
	wantText := false
	for i := 0; i < len(args); i++ {
		v := args[i].Prefix()
		switch {
		case v == "--":
			if wantText && i+1 < len(args) {
				s.code(c, args[i+1], lang, "shell-text")
			}
			return
		case v == "--rcfile" || v == "--init-file" || v == "-o" || v == "+o" || v == "-O" || v == "+O":
			i++
		case strings.HasPrefix(v, "--") || strings.HasPrefix(v, "+"):
		case strings.HasPrefix(v, "-") && len(v) > 1:
			wantText = wantText || strings.Contains(v[1:], "c")
			if strings.Contains(v[1:], "s") {
				s.stdin(c, lang)
				return
			}
		case wantText:
			s.code(c, args[i], lang, "shell-text")
			return
		default:
			if v := args[i].lit(); v == "/dev/stdin" || v == "-" || args[i].Blank() {
				s.stdin(c, lang)
			}
			return // a script file, named by the text
		}
	}
	if !wantText {
		s.stdin(c, lang)
	}
}

// stdin is a shell that reads its code from standard input: from a here-document the text shows it,
// from a pipe it does not.
func (s *Script) stdin(c *Command, lang Lang) {
	c.Reads = true
	switch {
	case c.here != nil:
		s.code(c, *c.here, lang, "here-text")
	case c.Stdin == "pipe":
		s.opaque("stdin-fed", c)
	}
}

func (s *Script) interpreter(c *Command, args []Word) {
	for _, a := range args {
		v := a.Prefix()
		if v == "-" || v == "/dev/stdin" {
			break
		}
		if strings.HasPrefix(v, "-") {
			// -c, -e, -m, --version …: whatever follows is in the text.
			if len(v) == 2 && strings.Contains("cemEVh", v[1:]) || strings.HasPrefix(v, "--") {
				return
			}
			continue
		}
		return
	}
	c.Reads = true
	if c.Stdin == "pipe" {
		s.opaque("stdin-fed", c)
	}
}

func (s *Script) xargs(c *Command, args []Word) {
	takes := strings.Fields("-n -P -L -d -E -s -a -I -J -R -S --max-args --max-procs --max-lines --delimiter --arg-file --max-chars --replace -j --jobs --colsep")
	replace := ""
	if c.Base() == "parallel" {
		replace = "{}"
	}
	for i := 0; i < len(args); i++ {
		isOpt, takesNext := option(args[i], takes)
		v, _ := args[i].Static()
		switch {
		case strings.HasPrefix(v, "-I") && len(v) > 2:
			replace = v[2:]
		case v == "-I" || v == "--replace":
			if i++; i < len(args) {
				replace = args[i].lit()
			}
		case v == "-i" || strings.HasPrefix(v, "--replace="):
			replace = "{}"
			if _, r, ok := strings.Cut(v, "="); ok {
				replace = r
			}
		case takesNext:
			i++
		case isOpt || v == "--":
		default:
			words := slices.Clone(args[i:])
			for j := range words {
				words[j] = words[j].replace(replace)
			}
			if replace == "" || c.Base() == "parallel" {
				words = append(words, anything())
			}
			s.run(c, words, "xargs")
			return
		}
	}
	s.run(c, []Word{Literal("echo"), anything()}, "xargs") // xargs alone runs echo
}

// find runs what stands between -exec and ; or +.
func (s *Script) find(c *Command, args []Word) {
	execs := set("-exec", "-execdir", "-ok", "-okdir")
	if strings.HasPrefix(c.Base(), "fd") {
		execs = set("-x", "--exec", "-X", "--exec-batch")
	}
	for i := 0; i < len(args); i++ {
		v, _ := args[i].Static()
		if !execs[v] {
			continue
		}
		end := i + 1
		for end < len(args) {
			e, _ := args[end].Static()
			if e == ";" || e == "+" && args[end-1].lit() == "{}" {
				break
			}
			end++
		}
		var words []Word
		for _, w := range args[i+1 : end] {
			if w.lit() == "{}" {
				w = anything()
			} else {
				w = w.replace("{}")
			}
			words = append(words, w)
		}
		if strings.HasPrefix(c.Base(), "fd") {
			words = append(words, anything())
		}
		s.run(c, words, "find-exec")
		i = end
	}
}
