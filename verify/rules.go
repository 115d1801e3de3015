package verify

import (
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/verify/shell"
)

// A ruleRef is a rule with where it stands.
type ruleRef struct {
	*event.Rule
	file  string
	level string
	agent string
	seq   uint64
}

func (r ruleRef) text() string {
	switch {
	case r.Pattern != "" && strings.Contains(r.Pattern, "("), r.Tool == "" && r.Pattern != "":
		return r.Pattern
	case len(r.Words) > 0:
		var w []string
		for _, alt := range r.Words {
			w = append(w, strings.Join(alt, "|"))
		}
		return strings.Join(w, " ")
	case r.Pattern != "":
		return r.Tool + "(" + r.Pattern + ")"
	}
	return r.Tool
}

// unread: the file could not be read by rye, and the assistant may have read it. What it allows is unknown.
func (f *rulesFile) unread() bool { return strings.HasPrefix(f.Error, "not read by rye") }

// unreadAt is a file of the assistant's permissions that rye could not read and that was in force at a time.
// One that became so during the session excuses nothing: the session may have made it so.
func (v *judge) unreadAt(agent string, ns uint64) (first *rulesFile) {
	for _, f := range v.snapshotsAt(agent, ns) {
		if f.unread() && f.At == "start" && (first == nil || f.seq < first.seq) {
			first = f
		}
	}
	return first
}

// rulesAt are the rules in force at a time for an assistant, rye's own policy included. Every file
// counts with its newest snapshot by then.
func (v *judge) rulesAt(agent string, ns uint64) []ruleRef {
	newest := v.snapshotsAt(agent, ns)
	var out []ruleRef
	broken := false
	for _, f := range newest {
		broken = broken || f.Error != "" && f.Agent == codex && !f.unread() && path.Base(f.Path) != "hooks.json"
	}
	for _, f := range newest {
		// Codex drops all user and project rules when one file of rules has a mistake.
		if broken && f.Agent == codex && f.Level != "managed" {
			continue
		}
		for j := range f.Rules {
			out = append(out, ruleRef{&f.Rules[j], f.Path, f.Level, f.Agent, f.seq})
		}
	}
	out = append(out, v.mode.rules...)
	slices.SortFunc(out, func(a, b ruleRef) int {
		if a.seq != b.seq {
			if a.seq < b.seq {
				return -1
			}
			return 1
		}
		return a.Line - b.Line
	})
	return out
}

// snapshotsAt are the newest snapshots of an assistant's files, and of rye's policy, at a time.
func (v *judge) snapshotsAt(agent string, ns uint64) map[string]*rulesFile {
	newest := make(map[string]*rulesFile)
	for i := range v.facts.rules {
		r := &v.facts.rules[i]
		if r.Agent != agent && r.Agent != "rye" || r.ns > ns && newest[r.Path] != nil {
			continue
		}
		// A snapshot "at start" holds from the start, whenever it was written down.
		if r.ns > ns && r.At != "start" {
			continue
		}
		newest[r.Path] = r
	}
	return newest
}

// A lineRule decides about one simple command.
type lineRule struct {
	decision string // allow, ask, deny
	matches  func(c *shell.Command) bool
	ref      ruleRef
}

// commandRules turns rules about commands into tests of one simple command.
func commandRules(rules []ruleRef) []lineRule {
	var out []lineRule
	for _, r := range rules {
		switch {
		case len(r.Words) > 0 && (r.Tool == "" || r.Tool == "Bash" || r.Tool == "command" || r.Tool == "prefix_rule"):
			out = append(out, lineRule{r.Decision, func(c *shell.Command) bool { return prefixMatches(r.Words, c) }, r})
		case r.Tool == "" || r.Tool == "Bash" || r.Tool == "command":
			p := pattern(r.Rule)
			out = append(out, lineRule{r.Decision, func(c *shell.Command) bool { return patternMatches(p, c) }, r})
		}
	}
	return out
}

// pattern is a rule's pattern without the tool around it.
func pattern(r *event.Rule) string {
	p := r.Pattern
	if rest, ok := strings.CutPrefix(p, "Bash("); ok {
		p = strings.TrimSuffix(rest, ")")
	} else if p == "Bash" {
		p = ""
	}
	return p
}

func prefixMatches(prefix [][]string, c *shell.Command) bool {
	if len(c.Words) < len(prefix) {
		return false
	}
	for i, alternatives := range prefix {
		w, ok := c.Words[i].Static()
		if !ok || !slices.Contains(alternatives, w) {
			if i > 0 || !ok || !path.IsAbs(w) || !slices.Contains(alternatives, path.Base(w)) {
				return false
			}
		}
	}
	return true
}

// patternMatches compares a simple command with a pattern such as "npm run *": a star stands for
// anything, " *" at the end (also written ":*") for any further words or none. Nothing matches the
// empty pattern better than everything.
func patternMatches(p string, c *shell.Command) bool {
	if p == "" || p == "*" {
		return true
	}
	if rest, ok := strings.CutSuffix(p, ":*"); ok {
		p = rest + " *"
	}
	text := commandText(c)
	if rest, ok := strings.CutSuffix(p, " *"); ok && !strings.Contains(rest, "*") {
		return text == rest || strings.HasPrefix(text, rest+" ")
	}
	return globs(p, text)
}

// globs matches a pattern whose stars stand for any text.
func globs(p, s string) bool {
	parts := strings.Split(p, "*")
	if len(parts) == 1 {
		return p == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, m := range parts[1 : len(parts)-1] {
		i := strings.Index(s, m)
		if i < 0 {
			return false
		}
		s = s[i+len(m):]
	}
	return strings.HasSuffix(s, last)
}

// commandText is a simple command with its quoting undone and single blanks.
func commandText(c *shell.Command) string {
	words := make([]string, len(c.Words))
	for i, w := range c.Words {
		v, ok := w.Static()
		if !ok {
			v = w.Source
		}
		words[i] = v
	}
	return strings.Join(words, " ")
}

// A coverage is how a text's simple commands are let through, one by one. A line is allowed only when
// all of them are.
type coverage struct {
	rules []ruleRef
	safe  bool   // some of it by the assistant's safe list
	open  string // a command that nothing covers, as text
	why   string // what makes it uncovered when it is not just a missing rule
}

// stripped are wrappers that a rule for the command behind them covers too.
var stripped = map[string]bool{"timeout": true, "time": true, "nice": true, "nohup": true, "stdbuf": true, "command": true, "builtin": true, "noglob": true, "exec": true}

// coverLine tests a text against allow rules. ok says that everything in it is covered.
func coverLine(s *shell.Script, rules []lineRule, safe func(*shell.Command) bool) (c coverage, ok bool) {
	if s.Err != nil {
		return coverage{open: s.Text, why: "unparsed"}, false
	}
	// A rule that names the whole line covers it as it stands.
	for _, r := range rules {
		if p := pattern(r.ref.Rule); r.decision == "allow" && p != "" && !strings.Contains(p, "*") && p == strings.TrimSpace(s.Text) {
			return coverage{rules: []ruleRef{r.ref}}, true
		}
	}
	// The bare tool ("Bash") is allowed with whatever it is given, redirections included.
	bare := slices.IndexFunc(rules, func(r lineRule) bool {
		p := pattern(r.ref.Rule)
		return r.decision == "allow" && r.ref.Tool == "Bash" && (p == "" || p == "*")
	})
	for _, r := range s.Redirects {
		v, static := r.Target.Static()
		if !r.Write || static && harmlessTarget(v) {
			continue
		}
		if bare < 0 {
			return coverage{open: s.Text, why: "redirection"}, false
		}
		c.rules = append(c.rules[:0], rules[bare].ref)
	}
	for _, o := range s.Opaque {
		if o.Why != "stdin-fed" && bare < 0 {
			return coverage{open: o.What, why: o.Why}, false
		}
	}
	for _, cmd := range s.Commands {
		if cmd.Kind == shell.Function || cmd.Kind == shell.Builtin && (quiet0[cmd.Name()] || stripped[cmd.Name()]) {
			continue
		}
		if name := powerful(cmd.Assigns); name != "" {
			return coverage{open: cmd.Source, why: "env " + name}, false
		}
		if stripped[cmd.Base()] && len(s.Payloads(cmd)) > 0 || cmd.Base() == "xargs" && bareXargs(cmd) {
			continue // decided by what it runs
		}
		r := decide(rules, cmd)
		switch {
		case r != nil && r.decision == "allow":
			c.rules = append(c.rules, r.ref)
		case r == nil && safe != nil && cmd.How != "xargs" && safe(cmd):
			c.safe = true
		default:
			c.open = commandText(cmd)
			return c, false
		}
	}
	return c, len(s.Commands) > 0
}

// bareXargs: xargs with nothing but a command.
func bareXargs(c *shell.Command) bool {
	return len(c.Words) > 1 && !strings.HasPrefix(c.Words[1].Prefix(), "-")
}

func harmlessTarget(v string) bool {
	switch v {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	return false
}

// decide picks the rule for one command: deny before ask before allow.
func decide(rules []lineRule, c *shell.Command) *lineRule {
	var found *lineRule
	rank := map[string]int{"allow": 1, "ask": 2, "prompt": 2, "deny": 3, "forbidden": 3}
	for i := range rules {
		r := &rules[i]
		if (found == nil || rank[r.decision] > rank[found.decision]) && r.matches(c) {
			found = r
		}
	}
	return found
}

// quiet0 are builtins that need no rule: they start nothing and change nothing outside the shell.
var quiet0 = map[string]bool{
	"cd": true, "true": true, "false": true, ":": true, "test": true, "[": true, "echo": true, "printf": true, "pwd": true, "read": true,
	"shift": true, "return": true, "break": true, "continue": true, "wait": true, "type": true, "local": true, "exit": true, "help": true,
}

// powerful names an assignment that can make an allowed command run something else.
func powerful(assigns []shell.Assign) string {
	for _, a := range assigns {
		switch n := a.Name; n {
		case "PATH", "IFS", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT",
			"RUBYOPT", "RUBYLIB", "EDITOR", "VISUAL", "PAGER", "BROWSER", "SHELL", "HOME", "JAVA_TOOL_OPTIONS", "CLASSPATH", "GCONV_PATH", "LESSOPEN",
			"LESSCLOSE", "MAKEFLAGS", "CC", "CXX", "LD", "RUSTC_WRAPPER", "RUSTC", "GOFLAGS", "MANPAGER", "TERMINFO", "CDPATH", "GLOBIGNORE":
			return n
		default:
			for _, p := range []string{"LD_", "DYLD_", "GIT_", "PYTHON", "npm_config_", "NPM_CONFIG_", "CARGO_", "BASH_FUNC_"} {
				if strings.HasPrefix(n, p) {
					return n
				}
			}
		}
	}
	return ""
}
