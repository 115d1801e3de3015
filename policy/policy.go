// Package policy decides whether a request to a model API may leave the machine.
//
// A bundle is an ordered list of rules; the first that matches decides, a log rule is noted and goes on,
// and a bundle says what happens when none matches. [Parse] refuses a bad bundle whole.
//
// The body is judged as a stream in bounded memory, whatever pieces it arrives in ([Evaluator]). What
// cannot be judged (a body that does not decode, an expression that fails) counts as a match for a rule
// that restricts and as no match for one that allows, and the decision says so.
//
// The package is pure: no I/O, no clock. It imports the standard library, cel-go, YAML, and decoders for
// compressed bodies.
package policy

import (
	_ "embed"
	"path"
	"strings"
)

// An Action is what a rule does with a request.
type Action string

// Actions. A require_approval that nobody can answer is a refusal; the proxy says so.
const (
	Allow           Action = "allow"
	Deny            Action = "deny"
	RequireApproval Action = "require_approval"
	Log             Action = "log" // noted; the next rule is asked
)

// restricts reports whether what is not known counts as a match.
func (a Action) restricts() bool { return a != Allow }

// A Bundle is a parsed policy, ready to judge. It does not change and may be shared.
type Bundle struct {
	ID      string
	Version string
	Default Action // allow or deny
	Rules   []Rule

	scan  scanner // literals and secrets of all rules
	needs needs
}

// A Rule is one line of a bundle.
type Rule struct {
	ID      string
	Version string // "" when the rule has none of its own
	Action  Action
	Reason  string
	Line    int // in the bundle's text, from 1
	when    conditions
}

// needs is what has to be read of a body for the bundle's rules.
type needs struct{ body, json bool }

// Name is the bundle as decisions cite it: id@version.
func (b *Bundle) Name() string { return b.ID + "@" + b.Version }

// A Head is a request without its body.
type Head struct {
	Method string
	Host   string              // with or without port
	Path   string              // as sent, without the query
	Header map[string][]string // names in any case
}

// A Request is a head and a whole body, as it is on the wire (compressed if it is).
type Request struct {
	Head
	Body []byte
}

// A Decision is what a bundle says of one request.
type Decision struct {
	Action      Action   `json:"action"`                 // allow, deny, require_approval
	RuleID      string   `json:"rule_id"`                // "" when the default decided
	RuleVersion string   `json:"rule_version,omitempty"` // the rule's own version
	Bundle      string   `json:"bundle"`                 // id@version
	Reason      string   `json:"reason"`                 //
	Logged      []string `json:"logged,omitempty"`       // log rules that matched on the way
	Unjudged    string   `json:"unjudged,omitempty"`     // why part of the request could not be judged
}

// Decide judges a whole request.
func Decide(b *Bundle, r Request) Decision {
	e := NewEvaluator(b, r.Head)
	e.Write(r.Body)
	return e.Close()
}

//go:embed default.yaml
var defaultYAML []byte

// DefaultYAML is the text of the bundle that ships with rye.
func DefaultYAML() []byte { return append([]byte(nil), defaultYAML...) }

// hostname is a host in the form in which domains are compared: lower case, no port, no final dot.
func hostname(s string) string {
	if h, ok := strings.CutPrefix(s, "["); ok {
		h, _, _ = strings.Cut(h, "]")
		return strings.ToLower(h)
	}
	if strings.Count(s, ":") == 1 {
		s, _, _ = strings.Cut(s, ":")
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// cleanPath undoes what hides a path from a comparison: percent signs, doubled slashes, dot segments.
func cleanPath(s string) string {
	s, _, _ = strings.Cut(s, "?")
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return path.Clean("/" + b.String())
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
