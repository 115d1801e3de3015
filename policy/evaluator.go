package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/ryehq/rye/policy/content"
)

const blockSize = 64 << 10 // bodies are scanned in blocks at fixed positions, so that pieces do not matter

// An Evaluator judges one request while its body passes. Close must be called. It is for one goroutine.
type Evaluator struct {
	b        *Bundle
	facts    facts
	decode   *content.Decoder
	whole    *[blockSize]byte // what buf is a part of
	buf      []byte           // the block being filled; its first carry bytes were scanned for all but long matches
	from     int              // in buf: where the next scan begins
	fresh    int              // in buf: first byte that the JSON scanner and patterns have not seen
	json     jsonScanner
	matchers []*matcher
	closed   bool
}

// blocks are used again: most bodies are far smaller than one.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// facts are what rules ask about.
type facts struct {
	head    Head
	host    string
	path    string
	header  map[string][]string // lower-case names
	wire    int64               // bytes as they came
	size    int64               // bytes decoded
	found   []bool              // needles
	matched []bool              // patterns
	models  []string
	tools   []string
	over    bool   // there were more names than are kept
	unread  string // why the body could not be judged whole
	scan    *scanner
}

func (f *facts) secretsFound() []string {
	kinds := []string{}
	for i, n := range f.scan.needles {
		if n.secret != nil && f.found[i] && !slices.Contains(kinds, n.secret.kind) {
			kinds = append(kinds, n.secret.kind)
		}
	}
	return kinds
}

// NewEvaluator begins to judge a request.
func NewEvaluator(b *Bundle, head Head) *Evaluator {
	e := &Evaluator{b: b}
	f := &e.facts
	f.head, f.host, f.path = head, hostname(head.Host), cleanPath(head.Path)
	f.header = make(map[string][]string, len(head.Header))
	for _, name := range sortedKeys(head.Header) {
		low := strings.ToLower(name)
		f.header[low] = append(f.header[low], head.Header[name]...)
	}
	f.scan = &b.scan
	f.found = make([]bool, len(b.scan.needles))
	if m := modelInPath(f.path); m != "" {
		f.models = []string{m}
	}
	if !b.needs.body {
		return e
	}
	e.decode = content.NewDecoder(f.header["content-encoding"], e.take)
	for _, r := range b.Rules {
		for _, p := range r.when.patterns {
			e.matchers = append(e.matchers, newMatcher(p, new(bool)))
		}
	}
	return e
}

// Write takes the next bytes of the body as they are on the wire. It never fails; the error is there to
// make an Evaluator an io.Writer.
func (e *Evaluator) Write(p []byte) (int, error) {
	e.facts.wire += int64(len(p))
	if e.decode != nil {
		e.decode.Write(p)
	} else {
		e.facts.size += int64(len(p))
	}
	return len(p), nil
}

// take gathers decoded bytes into blocks.
func (e *Evaluator) take(p []byte) {
	e.facts.size += int64(len(p))
	if e.buf == nil {
		e.whole = blocks.Get().(*[blockSize]byte)
		e.buf = e.whole[:0]
	}
	for len(p) > 0 {
		n := min(len(p), cap(e.buf)-len(e.buf))
		e.buf = append(e.buf, p[:n]...)
		p = p[n:]
		if len(e.buf) == cap(e.buf) {
			e.scan(false)
		}
	}
}

// scan looks through the buffer and keeps of it what a match that is not complete may need: the last bytes, and
// two before them that say whether a word begins there.
func (e *Evaluator) scan(last bool) {
	fresh := e.buf[e.fresh:]
	if e.b.needs.json {
		e.json.write(fresh)
	}
	for _, m := range e.matchers {
		m.scan(e.buf, e.fresh)
	}
	to := len(e.buf)
	if !last {
		to -= e.b.scan.reach
	}
	e.b.scan.scan(e.buf, e.from, to, e.facts.found)
	keep := max(to-2, 0)
	n := copy(e.buf, e.buf[keep:])
	e.buf, e.from, e.fresh = e.buf[:n], to-keep, n
}

// Close ends the body and decides. Further calls give the same decision.
func (e *Evaluator) Close() Decision {
	if !e.closed {
		e.closed = true
		if e.decode != nil {
			e.facts.unread = e.decode.Close()
			if e.facts.wire == 0 {
				e.facts.unread = "" // no body: there was nothing to decode
			}
			e.scan(true)
			if e.whole != nil {
				blocks.Put(e.whole)
				e.whole, e.buf = nil, nil
			}
		}
		for _, m := range e.matchers {
			m.close()
			e.facts.matched = append(e.facts.matched, *m.found)
		}
		e.facts.models = append(e.facts.models, e.json.models...)
		e.facts.tools, e.facts.over = e.json.tools, e.json.over
	}
	return e.decide()
}

func (e *Evaluator) decide() Decision {
	d := Decision{Bundle: e.b.Name(), Action: e.b.Default, Reason: "no rule matched; the bundle's default is " + string(e.b.Default)}
	for i := range e.b.Rules {
		r := &e.b.Rules[i]
		t := r.when.holds(&e.facts, r.Action)
		if t == no || t == unknown && !r.Action.restricts() {
			continue
		}
		if r.Action == Log {
			d.Logged = append(d.Logged, r.ID)
			continue
		}
		d.Action, d.RuleID, d.RuleVersion, d.Reason = r.Action, r.ID, r.Version, r.Reason
		if d.Reason == "" {
			d.Reason = "rule " + r.ID
		}
		if t == unknown {
			d.Unjudged = "the rule's conditions could not be judged"
		}
		break
	}
	if e.facts.unread != "" {
		d.Unjudged = e.facts.unread
	} else if e.facts.over && d.Unjudged != "" {
		d.Unjudged = "the body holds more or longer names than are compared"
	}
	return d
}

// modelInPath is the model that Gemini (models/M:verb) and Azure (deployments/M/verb) name in the path.
func modelInPath(p string) string {
	for _, before := range []string{"/models/", "/deployments/"} {
		if _, after, ok := strings.Cut(p, before); ok {
			m, _, _ := strings.Cut(after, "/")
			m, _, _ = strings.Cut(m, ":")
			return m
		}
	}
	return ""
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
