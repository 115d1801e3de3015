package verify

import (
	"slices"

	"github.com/ryehq/rye/proctree"
)

// findUnknown looks for the process of an assistant that is not known by its program: the one that
// started something whose text was asked for or approved. It was there when it asked, so a program
// that came later and stands between the two is part of what was run. Without such a match the
// assistant is the wrapped command itself.
func (c *cast) findUnknown(procs []*proctree.Proc) {
	texts := c.facts.askedTexts()
	matched := make(map[*proctree.Proc]bool)
	for _, p := range procs {
		if p.Parent == nil || p == c.root || slices.ContainsFunc(ancestors(p), func(a *proctree.Proc) bool { return matched[a] }) {
			continue
		}
		for _, x := range p.Execs {
			asked, ok := carriedBy(unknown, x).among(texts)
			if !ok {
				continue
			}
			matched[p] = true
			img := p.Parent.ImageAt(p.Key.StartNS)
			for asked > 0 && img != nil && img.TimeNS > asked && img.Spawner() != nil {
				img = img.Spawner()
			}
			if img != nil {
				c.unknownIs[img] = true
			}
			break
		}
	}
	if len(c.unknownIs) == 0 && c.root != nil {
		c.unknownIs[c.root.Execs[len(c.root.Execs)-1]] = true
	}
}

// askedTexts are the command texts that were asked for or answered, with the earliest time of each
// (0 when no witness gives one).
func (f *facts) askedTexts() map[string]uint64 {
	texts := make(map[string]uint64)
	add := func(t string, ns uint64) {
		if have, ok := texts[t]; t != "" && (!ok || have == 0 || ns > 0 && ns < have) {
			texts[t] = ns
		}
	}
	for _, k := range f.calls {
		add(k.Command, k.ns)
	}
	for _, d := range f.decisions {
		add(d.command, d.askedNS())
	}
	return texts
}

func ancestors(p *proctree.Proc) []*proctree.Proc { return slices.Collect(p.Ancestors()) }

// among reports whether the command is one of the given texts, and when that was first heard of.
func (c *carried) among(texts map[string]uint64) (ns uint64, ok bool) {
	for _, t := range c.texts {
		if ns, ok := texts[t]; ok {
			return ns, true
		}
	}
	return 0, false
}
