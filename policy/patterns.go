package policy

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/ryehq/rye/policy/content"
)

// A pattern is one of body_matches. A regular expression costs fifty times what the search for a text does, so one
// that has to begin with a text is only asked where that text stands.
type pattern struct {
	re     *regexp.Regexp
	here   *regexp.Regexp // the same, at the beginning only
	prefix []byte         // what every match begins with; nil when too short to be of use
	text   bool           // there is nothing more to it
}

// Bounds on prefixes, and on expressions that run beside each other before the pattern is asked everywhere.
const (
	minPrefix = 3
	maxPrefix = 64
	maxTries  = 8
	maxBegun  = 1024 // in one body
)

func newPattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p := &pattern{re: re}
	// Not re.LiteralPrefix: it has one for a pattern that only matches at the beginning of a body.
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	prefix, whole := prog.Prefix()
	if len(prefix) < minPrefix || len(prefix) > maxPrefix || strings.ContainsRune(prefix, utf8.RuneError) { // the last matches what is no text
		return p, nil
	}
	if p.here, err = regexp.Compile(`\A(?:` + text + `)`); err != nil {
		return nil, err
	}
	p.prefix, p.text = []byte(prefix), whole
	return p, nil
}

// A matcher looks for a pattern in one body.
type matcher struct {
	p     *pattern
	found *bool
	all   *content.Feed   // asks everywhere from some place on
	tries []*content.Feed // ask at one place each
	begun int
}

func newMatcher(p *pattern, found *bool) *matcher {
	m := &matcher{p: p, found: found}
	if p.prefix == nil {
		m.all = m.feed(p.re)
	}
	return m
}

func (m *matcher) feed(re *regexp.Regexp) *content.Feed {
	return content.NewFeed(func(in *content.Feed) {
		if re.MatchReader(content.Runes{Feed: in}) {
			*m.found = true
		}
	})
}

// scan takes buf, of which what is before fresh was there the last time.
func (m *matcher) scan(buf []byte, fresh int) {
	if *m.found {
		return
	}
	still := m.tries[:0]
	for _, f := range m.tries {
		if f.Write(buf[fresh:]); f.Done() {
			f.Close()
			continue
		}
		still = append(still, f)
	}
	m.tries = still
	if m.all != nil {
		if !m.all.Done() {
			m.all.Write(buf[fresh:])
		}
		return
	}
	for from := max(fresh-len(m.p.prefix)+1, 0); !*m.found; {
		i := bytes.Index(buf[from:], m.p.prefix)
		if i < 0 {
			return
		}
		at := from + i
		from = at + 1
		if m.p.text {
			*m.found = true
			return
		}
		if len(m.tries) == maxTries || m.begun == maxBegun {
			m.all = m.feed(m.p.re)
			m.all.Write(buf[at:])
			return
		}
		m.begun++
		f := m.feed(m.p.here)
		if f.Write(buf[at:]); f.Done() {
			f.Close()
			continue
		}
		m.tries = append(m.tries, f)
	}
}

// close ends the body.
func (m *matcher) close() {
	for _, f := range m.tries {
		f.Close()
	}
	if m.all != nil {
		m.all.Close()
	}
}
