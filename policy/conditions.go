package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
)

// conditions are the parts of a rule's when; all must hold. Of a list, one must.
type conditions struct {
	head []func(*facts) bool // method, host, path, headers

	larger       int64 // body_larger_than; -1 when absent
	contains     []int // needles
	secrets      []int // needles
	patterns     []*pattern
	firstPattern int // index of patterns[0] among the bundle's
	modelMissing *bool
	models       []string
	tools        []string
	cel          cel.Program
}

// A truth is yes, no, or not known (because the body could not be read, or an expression failed).
type truth int

const (
	no truth = iota
	unknown
	yes
)

func known(b bool) truth {
	if b {
		return yes
	}
	return no
}

// holds is whether all conditions hold for facts. action decides how lists of names are compared: to
// allow, every name in the request must be listed; to restrict, one is enough.
func (c *conditions) holds(f *facts, action Action) truth {
	for _, test := range c.head {
		if !test(f) {
			return no
		}
	}
	result := yes
	body := func(found, sure bool) {
		t := known(found)
		if t == no && !sure {
			t = unknown
		}
		result = min(result, t)
	}
	whole := f.unread == ""
	if c.larger >= 0 {
		body(f.wire > c.larger || f.size > c.larger, whole)
	}
	if c.contains != nil {
		body(slices.ContainsFunc(c.contains, func(i int) bool { return f.found[i] }), whole)
	}
	if c.secrets != nil {
		body(slices.ContainsFunc(c.secrets, func(i int) bool { return f.found[i] }), whole)
	}
	if c.patterns != nil {
		matched := f.matched[c.firstPattern : c.firstPattern+len(c.patterns)]
		body(slices.Contains(matched, true), whole)
	}
	if c.modelMissing != nil {
		missing := len(f.models) == 0
		if missing && (!whole || f.over) {
			result = min(result, unknown)
		} else {
			result = min(result, known(missing == *c.modelMissing))
		}
	}
	if c.models != nil {
		result = min(result, names(f.models, c.models, action, whole && !f.over))
	}
	if c.tools != nil {
		result = min(result, names(f.tools, c.tools, action, whole && !f.over))
	}
	if c.cel != nil && result != no {
		t := evalCEL(c.cel, f)
		if !whole && t != yes {
			t = unknown
		}
		result = min(result, t)
	}
	if !whole && result == yes && action == Allow && c.readsBody() {
		return unknown
	}
	return result
}

func (c *conditions) readsBody() bool {
	return c.larger >= 0 || c.contains != nil || c.secrets != nil || c.patterns != nil || c.modelMissing != nil ||
		c.models != nil || c.tools != nil || c.cel != nil
}

// names compares the names in a request with patterns (path.Match's).
func names(have, patterns []string, action Action, sure bool) truth {
	listed := func(name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
	}
	if action == Allow {
		if !sure {
			return unknown
		}
		return known(len(have) > 0 && !slices.ContainsFunc(have, func(n string) bool { return !listed(n) }))
	}
	if slices.ContainsFunc(have, listed) {
		return yes
	}
	if !sure {
		return unknown
	}
	return no
}

func inDomains(domains []string) func(*facts) bool {
	return func(f *facts) bool {
		return slices.ContainsFunc(domains, func(d string) bool {
			return f.host == d || strings.HasSuffix(f.host, "."+d)
		})
	}
}

func hasMethod(methods []string) func(*facts) bool {
	return func(f *facts) bool {
		return slices.ContainsFunc(methods, func(m string) bool { return strings.EqualFold(m, f.head.Method) })
	}
}

func hasHeader(names []string) func(*facts) bool {
	return func(f *facts) bool {
		return slices.ContainsFunc(names, func(n string) bool { return len(f.header[strings.ToLower(n)]) > 0 })
	}
}

// hasPath matches whole paths; * stands for any run of characters, slashes too.
func hasPath(patterns []string) func(*facts) bool {
	return func(f *facts) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return glob(p, f.path) })
	}
}

func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(s, first) || len(s) < len(first)+len(last) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return true
}
