package proctree

import (
	"hash/maphash"
	"maps"
	"slices"
)

// An interner keeps one copy of texts that come again and again: a build starts the same compiler
// with the same environment a hundred thousand times. The tables stop growing at a limit; past it
// texts are simply kept as they come.
type interner struct {
	seed  maphash.Seed
	texts map[string]string
	argvs map[uint64][]string
	envs  map[uint64]map[string]string
}

const (
	maxInterned     = 1 << 15
	maxInternedText = 4 << 10 // bytes; longer texts seldom repeat
)

func newInterner() interner {
	return interner{
		seed:  maphash.MakeSeed(),
		texts: make(map[string]string),
		argvs: make(map[uint64][]string),
		envs:  make(map[uint64]map[string]string),
	}
}

func (n *interner) text(s string) string {
	if s == "" || len(s) > maxInternedText {
		return s
	}
	if t, ok := n.texts[s]; ok {
		return t
	}
	if len(n.texts) < maxInterned {
		n.texts[s] = s
	}
	return s
}

func (n *interner) words(argv []string) []string {
	var h maphash.Hash
	h.SetSeed(n.seed)
	size := 0
	for _, a := range argv {
		size += len(a)
		if size > maxInternedText {
			return argv
		}
		h.WriteString(a)
		h.WriteByte(0)
	}
	k := h.Sum64()
	if kept, ok := n.argvs[k]; ok && slices.Equal(kept, argv) {
		return kept
	}
	argv = slices.Clip(slices.Clone(argv))
	if len(n.argvs) < maxInterned {
		n.argvs[k] = argv
	}
	return argv
}

func (n *interner) env(env map[string]string) map[string]string {
	if len(env) == 0 {
		return nil
	}
	var k uint64 // a sum, so that map order does not matter
	for name, value := range env {
		k += maphash.String(n.seed, name)*31 + maphash.String(n.seed, value)
	}
	if kept, ok := n.envs[k]; ok && maps.Equal(kept, env) {
		return kept
	}
	if len(n.envs) < maxInterned {
		n.envs[k] = env
	}
	return env
}
