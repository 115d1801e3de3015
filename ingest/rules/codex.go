package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/ryehq/rye/event"
)

// What Codex does with a file that it cannot read, and what rye cannot know about it.
const (
	codexDrops  = "Codex then drops all rules of the user and of projects, not only this file's, and keeps those of its requirements"
	codexUnread = "rye does not run this file and knows none of its rules; Codex may"
)

// Codex reads a .rules file: Starlark whose statements are prefix_rule, network_rule and host_executable
// calls. Decisions are given in rye's words: prompt is ask, forbidden is deny.
func Codex(path, level string, b []byte) *event.RulesLoaded {
	f := file("codex", path, level, b)
	c := &codexFile{out: f}
	if err := c.run(b); err != nil {
		// Codex takes a file whole or not at all.
		f.Rules = f.Rules[:0]
		f.Error, f.Note = cut(err.Error(), 400), codexDrops
		if errors.Is(err, errBounds) {
			f.Error, f.Note = NotRead+": "+f.Error, codexUnread
		}
		return f
	}
	if level == Project && len(f.Rules) > 0 {
		note(f, "rules of a project hold only where the user trusted the folder")
	}
	return f
}

type codexFile struct {
	out      *event.RulesLoaded
	examples []example
	hosts    map[string][]string // host_executable: base name to paths
	spent    int                 // bytes of words kept so far
}

// An example is one entry of match or not_match, checked when the whole file is known.
type example struct {
	rule  [][]string
	words []string
	want  bool
	line  int
}

const maxSteps = 1 << 20 // of the Starlark machine; a rule takes about twenty

func (c *codexFile) run(b []byte) error {
	if len(b) > MaxBytes {
		return fmt.Errorf("%w: the file is too long", errBounds)
	}
	opts := &syntax.FileOptions{TopLevelControl: true, GlobalReassign: true} // as Codex; no while, no recursion
	tree, err := parseRules(opts, b)
	if err != nil {
		return err
	}
	builtins := starlark.StringDict{}
	add := func(name string, fn func(*starlark.Thread, []starlark.Tuple) error, params ...string) {
		builtins[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			all, err := named(params, args, kwargs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return starlark.None, fn(t, all)
		})
	}
	add("prefix_rule", c.prefixRule, "pattern", "decision", "match", "not_match", "justification")
	add("network_rule", c.networkRule, "host", "protocol", "decision", "justification")
	add("host_executable", c.hostExecutable, "name", "paths")
	prog, err := starlark.FileProgram(tree, builtins.Has)
	if err != nil {
		return plain(err)
	}
	t := &starlark.Thread{Name: "rules", Print: func(*starlark.Thread, string) {}}
	t.SetMaxExecutionSteps(maxSteps)
	if _, err := prog.Init(t, builtins); err != nil {
		if t.Steps >= maxSteps {
			return fmt.Errorf("%w: it runs too long", errBounds)
		}
		return plain(err)
	}
	return c.check()
}

// named gives arguments without a name the names of their places.
func named(params []string, args starlark.Tuple, kwargs []starlark.Tuple) ([]starlark.Tuple, error) {
	if len(args) > len(params) {
		return nil, errors.New("too many arguments")
	}
	all := make([]starlark.Tuple, 0, len(args)+len(kwargs))
	for i, v := range args {
		all = append(all, starlark.Tuple{starlark.String(params[i]), v})
	}
	for _, kv := range kwargs {
		if slices.ContainsFunc(all, func(o starlark.Tuple) bool { return o[0] == kv[0] }) {
			return nil, errors.New("an argument is given twice")
		}
		all = append(all, kv)
	}
	return all, nil
}

func callLine(t *starlark.Thread) int { return int(t.CallFrame(1).Pos.Line) }

func (c *codexFile) prefixRule(t *starlark.Thread, kwargs []starlark.Tuple) error {
	r := event.Rule{Tool: "command", Decision: "allow", Line: callLine(t)}
	var match, not []starlark.Value
	for _, kv := range kwargs {
		var err error
		switch name, v := string(kv[0].(starlark.String)), kv[1]; name {
		case "pattern":
			r.Words, err = patternOf(v)
		case "decision":
			r.Decision, err = decisionOf(v, false)
		case "justification":
			err = justification(v)
		case "match":
			match, err = elements(v)
		case "not_match":
			not, err = elements(v)
		default:
			err = errors.New("is not known")
		}
		if err != nil {
			return fmt.Errorf("prefix_rule: %s %w", cut(string(kv[0].(starlark.String)), 40), err)
		}
	}
	if len(r.Words) == 0 {
		return errors.New("prefix_rule: pattern is missing or empty")
	}
	for i, v := range append(slices.Clone(match), not...) {
		words, err := exampleWords(v)
		if err != nil {
			return fmt.Errorf("prefix_rule: an example %w", err)
		}
		if err := c.spend(words); err != nil {
			return err
		}
		c.examples = append(c.examples, example{r.Words, words, i < len(match), r.Line})
	}
	for _, alternatives := range r.Words {
		if err := c.spend(alternatives); err != nil {
			return err
		}
	}
	return c.add(r)
}

// spend bounds what all rules together may hold: a loop makes many long ones of a short file.
func (c *codexFile) spend(words []string) error {
	for _, w := range words {
		c.spent += len(w) + 16
	}
	if c.spent > 8*MaxBytes {
		return fmt.Errorf("%w: its rules are too long", errBounds)
	}
	return nil
}

func (c *codexFile) add(r event.Rule) error {
	if !add(c.out, r) {
		return fmt.Errorf("%w: more than %d rules", errBounds, maxRules)
	}
	return nil
}

func (c *codexFile) networkRule(t *starlark.Thread, kwargs []starlark.Tuple) error {
	r := event.Rule{Tool: "network", Line: callLine(t)}
	var host, protocol string
	for _, kv := range kwargs {
		var err error
		switch name, v := string(kv[0].(starlark.String)), kv[1]; name {
		case "host":
			if host, err = text(v); err == nil {
				host, err = hostOf(host)
			}
		case "protocol":
			if protocol, err = text(v); err == nil {
				protocol, err = protocolOf(protocol)
			}
		case "decision":
			r.Decision, err = decisionOf(v, true)
		case "justification":
			err = justification(v)
		default:
			err = errors.New("is not known")
		}
		if err != nil {
			return fmt.Errorf("network_rule: %s %w", cut(string(kv[0].(starlark.String)), 40), err)
		}
	}
	if host == "" || protocol == "" || r.Decision == "" {
		return errors.New("network_rule: host, protocol and decision are needed")
	}
	r.Pattern = protocol + "://" + host
	return c.add(r)
}

func (c *codexFile) hostExecutable(_ *starlark.Thread, kwargs []starlark.Tuple) error {
	var name string
	var paths []string
	for _, kv := range kwargs {
		var err error
		switch k, v := string(kv[0].(starlark.String)), kv[1]; k {
		case "name":
			name, err = text(v)
		case "paths":
			var list []starlark.Value
			if list, err = elements(v); err == nil {
				paths, err = words(list)
			}
		default:
			err = errors.New("is not known")
		}
		if err != nil {
			return fmt.Errorf("host_executable: %s %w", cut(string(kv[0].(starlark.String)), 40), err)
		}
	}
	if name == "" || strings.Contains(name, "/") {
		return errors.New("host_executable: name must be a plain file name")
	}
	for _, p := range paths {
		if !path.IsAbs(p) || path.Base(p) != name {
			return errors.New("host_executable: a path is not an absolute path of that name")
		}
	}
	if c.hosts == nil {
		c.hosts = map[string][]string{}
	}
	c.hosts[name] = paths
	note(c.out, "%s stands for %s only", cut(name, 80), cut(strings.Join(paths, ", "), 300))
	return nil
}

// check holds the examples against their rules, as Codex does when it loads the file.
func (c *codexFile) check() error {
	for _, e := range c.examples {
		if c.matches(e.rule, e.words) != e.want {
			if e.want {
				return fmt.Errorf("line %d: a match example does not match its rule", e.line)
			}
			return fmt.Errorf("line %d: a not_match example matches its rule", e.line)
		}
	}
	return nil
}

func (c *codexFile) matches(rule [][]string, words []string) bool {
	if len(words) < len(rule) {
		return false
	}
	for i, alternatives := range rule {
		w := words[i]
		if slices.Contains(alternatives, w) {
			continue
		}
		// A program given by its path falls back to the rules of its name.
		if i > 0 || !path.IsAbs(w) || !slices.Contains(alternatives, path.Base(w)) {
			return false
		}
		if paths, ok := c.hosts[path.Base(w)]; ok && !slices.Contains(paths, w) {
			return false
		}
	}
	return true
}

func justification(v starlark.Value) error {
	s, err := text(v)
	if err == nil && strings.TrimSpace(s) == "" {
		err = errors.New("is empty")
	}
	return err
}

func decisionOf(v starlark.Value, network bool) (string, error) {
	s, err := text(v)
	if err != nil {
		return "", err
	}
	switch s {
	case "allow":
		return "allow", nil
	case "prompt":
		return "ask", nil
	case "forbidden":
		return "deny", nil
	case "deny":
		if network {
			return "deny", nil
		}
	}
	return "", errors.New("is none of allow, prompt, forbidden")
}

func protocolOf(s string) (string, error) {
	switch s {
	case "http", "https", "socks5_tcp", "socks5_udp":
		return s, nil
	case "https_connect", "http-connect":
		return "https", nil
	}
	return "", errors.New("is not known")
}

// hostOf is the host that Codex compares with: lower case, without port, brackets and trailing dot.
func hostOf(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if strings.ContainsAny(s, "*/?# \t\r\n") || s == "" {
		return "", errors.New("is no host name")
	}
	if rest, ok := strings.CutPrefix(s, "["); ok {
		s, _, _ = strings.Cut(rest, "]")
	} else if _, err := netip.ParseAddr(s); err != nil {
		if h, _, ok := strings.Cut(s, ":"); ok {
			s = h
		}
	}
	s = strings.TrimSuffix(s, ".")
	if s == "" {
		return "", errors.New("is no host name")
	}
	return s, nil
}
