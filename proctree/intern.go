package proctree

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// An interner keeps one copy of what comes again and again. The tables stop growing at a limit; past
// it things are simply kept as they come.
type interner struct {
	seed     maphash.Seed
	texts    map[string]string
	argvs    map[uint64][]string
	programs map[programKey]*Program
}

type programKey struct {
	path, exe, interp, cwd, marks string
	dev, ino, env                 uint64
}

const (
	maxInterned     = 1 << 14
	maxInternedText = 64      // bytes of one argument; longer ones seldom repeat
	maxInternedArgv = 4 << 10 // bytes of a whole argv
)

func newInterner() interner {
	return interner{
		seed:     maphash.MakeSeed(),
		texts:    make(map[string]string),
		argvs:    make(map[uint64][]string),
		programs: make(map[programKey]*Program),
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
		if size > maxInternedArgv {
			return argv
		}
		h.WriteString(a)
		h.WriteByte(0)
	}
	k := h.Sum64()
	if kept, ok := n.argvs[k]; ok && slices.Equal(kept, argv) {
		return kept
	}
	argv = slices.Clone(argv)
	for i, a := range argv {
		argv[i] = n.text(a)
	}
	if len(n.argvs) < maxInterned {
		n.argvs[k] = argv
	}
	return argv
}

func (n *interner) program(b *event.ProcessExec) *Program {
	k := programKey{b.Path, b.Exe, b.Interp, b.CWD, strings.Join(b.Marks, ","), b.ExeDev, b.ExeIno, 0}
	for name, value := range b.Env { // a sum, so that map order does not matter
		k.env += maphash.String(n.seed, name)*31 + maphash.String(n.seed, value)
	}
	if p, ok := n.programs[k]; ok && maps.Equal(p.Env, b.Env) {
		return p
	}
	p := &Program{b.Path, b.Exe, b.Interp, b.CWD, b.ExeDev, b.ExeIno, b.Env, b.Marks}
	if len(n.programs) < maxInterned {
		n.programs[k] = p
	}
	return p
}
