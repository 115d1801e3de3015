package shell

import (
	"path"
	"strings"
)

// A Command is one simple command, or the payload of one that runs others.
type Command struct {
	Source  string   // as written in the text
	Words   []Word   // the command word and its arguments; never empty
	Assigns []Assign // FOO=1 before the word
	Kind    Kind
	Via     *Command // the command that runs this one (timeout 5 X: X's Via is timeout)
	How     string   // in what way: wrapper, xargs, find-exec, shell-text, eval, here-text
	Stdin   string   // pipe, file, here; "" when inherited
	Inner   *Script  // the text it hands to a shell, when the text shows it
	// Reads says that it takes its code from standard input (sh, bash -s, python3 -).
	Reads bool

	here *Word
}

// An Assign is NAME=value.
type Assign struct {
	Name  string
	Value Word
}

// A Kind says whether a command is a program the kernel sees.
type Kind uint8

const (
	Program  Kind = iota // an exec
	Builtin              // done by the shell itself
	Function             // defined in the same text
)

// Name is the command word, "" when it is filled in at run time.
func (c *Command) Name() string {
	v, _ := c.Words[0].Static()
	return v
}

// Base is the last element of the command word.
func (c *Command) Base() string {
	if n := c.Name(); n != "" {
		return path.Base(n)
	}
	return ""
}

// Args are the arguments after the command word.
func (c *Command) Args() []Word { return c.Words[1:] }

// Static returns all words as text when none is filled in at run time.
func (c *Command) Static() ([]string, bool) {
	out := make([]string, len(c.Words))
	for i, w := range c.Words {
		v, ok := w.Static()
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// InShell reports whether the shell that reads the text runs the command itself: it stands in the
// text, or only builtins such as command and eval stand before it.
func (c *Command) InShell() bool {
	for v := c.Via; v != nil; v = v.Via {
		if v.Kind == Program {
			return false
		}
	}
	return true
}

// add classifies a command, files it, and goes on to what it runs.
func (s *Script) add(c *Command) {
	if s.words > maxWords {
		return
	}
	s.Commands = append(s.Commands, c)
	name := c.Name()
	switch {
	case s.functions[name] && c.InShell():
		c.Kind = Function
	case builtins[name] && c.InShell():
		c.Kind = Builtin
	}
	if c.Words[0].Blank() {
		s.opaque("command-word", c)
	}
	if c.Kind != Function {
		s.payload(c)
	}
}

func (s *Script) opaque(why string, c *Command) {
	s.Opaque = append(s.Opaque, Opaque{Why: why, What: c.Source})
}

// run adds the words as a command that c runs.
func (s *Script) run(c *Command, words []Word, how string) {
	if len(words) == 0 {
		return
	}
	s.words += len(words)
	s.add(&Command{Source: sourceOf(words), Words: words, Via: c, How: how, Stdin: c.Stdin, here: c.here, Assigns: c.Assigns})
}

func sourceOf(words []Word) string {
	src := make([]string, len(words))
	for i, w := range words {
		src[i] = w.Source
	}
	return strings.Join(src, " ")
}

// code adds a text that c hands on as code. With eval the same shell reads it; otherwise it is
// another shell's script.
func (s *Script) code(c *Command, w Word, lang Lang, how string) {
	text, dynamic := textOf(w)
	if text == "" && dynamic || s.depth >= maxInner {
		why := "shell-text"
		if how == "eval" {
			why = "eval"
		}
		s.opaque(why, c)
		s.Dynamic = s.Dynamic || how == "eval"
		return
	}
	in := &Script{Text: text, Lang: lang, Dynamic: dynamic, words: s.words}
	in.parse(s.depth + 1)
	s.words = in.words
	if how != "eval" {
		c.Inner = in
		s.Opaque = append(s.Opaque, in.Opaque...)
		return
	}
	if in.Err != nil || in.Dynamic {
		s.Dynamic = true
	}
	for _, d := range in.Commands {
		if d.Via == nil {
			d.Via, d.How = c, how
		}
		s.Commands = append(s.Commands, d)
	}
	s.Redirects = append(s.Redirects, in.Redirects...)
	s.Opaque = append(s.Opaque, in.Opaque...)
	s.Assigns = append(s.Assigns, in.Assigns...)
	for f := range in.functions {
		s.functions[f] = true
	}
}

// textOf is a word's text with every stretch known only at run time written as an expansion, so that
// it is a wildcard again when the text is parsed.
func textOf(w Word) (text string, dynamic bool) {
	var b strings.Builder
	literal := false
	for _, p := range w.parts {
		if p.any {
			dynamic = true
			b.WriteString("${__any}")
			continue
		}
		literal = literal || strings.TrimSpace(p.lit) != ""
		b.WriteString(p.lit)
	}
	if dynamic && !literal {
		return "", true
	}
	return b.String(), dynamic
}

// Payloads are the commands c runs directly: the program behind a wrapper, what xargs or find -exec
// starts.
func (s *Script) Payloads(c *Command) []*Command {
	var out []*Command
	for _, d := range s.Commands {
		if d.Via == c {
			out = append(out, d)
		}
	}
	return out
}

// SimpleNames are the command words of everything the shell itself runs as a program; "" for one that
// is filled in at run time. nil when the text was not parsed.
func (s *Script) SimpleNames() []string {
	var out []string
	for _, c := range s.Commands {
		if c.Kind == Program {
			out = append(out, c.Name())
		}
	}
	return out
}
