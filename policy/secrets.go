package policy

import (
	"bytes"
	"sync"
)

// A detector finds one kind of secret: a literal beginning and a check of what follows it. Only a kind
// is ever reported, never the bytes.
type detector struct {
	kind   string
	prefix string
	check  func(rest []byte) bool // rest begins after the prefix and holds at least lookahead bytes, or all
	inWord bool                   // the prefix may stand inside a longer word
}

const lookahead = 160 // bytes after a prefix that a check may read

// detectors are the shapes that the issuers document. A key without a recognisable shape (an AWS secret
// access key, a password) has no detector.
func detectors() []detector {
	list := []detector{
		{"private_key", "-----BEGIN ", privateKey, true},
		{"private_key", "AGE-SECRET-KEY-1", run(58, 58, upperNum), false},
		{"private_key", "PuTTY-User-Key-File-", run(1, 1, digit), false},
		{"aws_key", "AKIA", run(16, 16, upperNum), false},
		{"aws_key", "ASIA", run(16, 16, upperNum), false},
		{"google_key", "AIza", run(35, 35, urlSafe), false},
		{"azure_key", "AccountKey=", run(86, 86, base64Char), true},
		{"anthropic_key", "sk-ant-", run(20, 0, urlSafe), false},
		{"openai_key", "sk-proj-", run(20, 0, urlSafe), false},
		{"openai_key", "sk-svcacct-", run(20, 0, urlSafe), false},
		{"openai_key", "sk-admin-", run(20, 0, urlSafe), false},
		{"openai_key", "T3BlbkFJ", run(20, 0, urlSafe), true}, // stands in the middle of OpenAI's keys
		{"model_key", "sk-or-v1-", run(40, 0, alnum), false},
		{"model_key", "gsk_", run(40, 0, alnum), false},
		{"model_key", "xai-", run(60, 0, alnum), false},
		{"model_key", "hf_", run(34, 0, alnum), false},
		{"github_token", "github_pat_", run(60, 0, urlSafe), false},
		{"gitlab_token", "glpat-", run(20, 0, urlSafe), false},
		{"slack_token", "xoxb-", run(20, 0, urlSafe), false},
		{"slack_token", "xoxp-", run(20, 0, urlSafe), false},
		{"npm_token", "npm_", run(36, 36, alnum), false},
		{"stripe_key", "sk_live_", run(20, 0, alnum), false},
	}
	for _, c := range "pousr" {
		list = append(list, detector{"github_token", "gh" + string(c) + "_", run(36, 0, alnum), false})
	}
	return list
}

// secretKinds lists the kinds, each once, in the order of detectors.
func secretKinds() []string {
	var kinds []string
	for _, d := range detectors() {
		if len(kinds) == 0 || !contains(kinds, d.kind) {
			kinds = append(kinds, d.kind)
		}
	}
	return kinds
}

// privateKey reads the rest of a PEM header (RFC 7468): words in capitals, then PRIVATE KEY.
func privateKey(rest []byte) bool {
	if len(rest) > 64 {
		rest = rest[:64]
	}
	label, _, ok := bytes.Cut(rest, []byte("-----"))
	if !ok {
		return false
	}
	return bytes.HasSuffix(label, []byte("PRIVATE KEY")) || bytes.HasSuffix(label, []byte("PRIVATE KEY BLOCK"))
}

// run checks for at least least characters of a class and, when most is given, no more than that.
func run(least, most int, class func(byte) bool) func([]byte) bool {
	return func(rest []byte) bool {
		n := 0
		for n < len(rest) && n <= max(least, most) && class(rest[n]) {
			n++
		}
		return n >= least && (most == 0 || n <= most)
	}
}

func digit(c byte) bool      { return c >= '0' && c <= '9' }
func upperNum(c byte) bool   { return digit(c) || c >= 'A' && c <= 'Z' }
func alnum(c byte) bool      { return upperNum(c) || c >= 'a' && c <= 'z' }
func urlSafe(c byte) bool    { return alnum(c) || c == '-' || c == '_' }
func base64Char(c byte) bool { return alnum(c) || c == '+' || c == '/' }

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// SecretsIn names the kinds of secrets in b.
func SecretsIn(b []byte) []string {
	s := secretScanner()
	f := facts{scan: s, found: make([]bool, len(s.needles))}
	s.scan(b, 0, len(b), f.found)
	return f.secretsFound()
}

var secretScanner = sync.OnceValue(func() *scanner {
	var needles []needle
	for _, d := range detectors() {
		needles = append(needles, needle{text: []byte(d.prefix), secret: &d})
	}
	s := newScanner(needles)
	return &s
})

// WithoutSecrets replaces each secret in s, and whatever is joined to it without white space or a quote, by its
// kind. Of a private key, which has lines, everything from its header on goes. It reports whether there was one.
func WithoutSecrets(s string) (string, bool) {
	if len(SecretsIn([]byte(s))) == 0 {
		return s, false
	}
	b := []byte(s)
	sc := secretScanner()
	var out []byte
	from := 0
	for at := 0; at < len(b); at++ {
		for i := range sc.needles {
			n := &sc.needles[i]
			if !sc.matches(b, at, n) {
				continue
			}
			start := at
			for start > from && joined(b[start-1]) {
				start--
			}
			end := at + len(n.text)
			for end < len(b) && joined(b[end]) {
				end++
			}
			if n.secret.kind == "private_key" {
				end = len(b)
			}
			out = append(append(out, b[from:start]...), "[cut: "+n.secret.kind+"]"...)
			from, at = end, end-1
			break
		}
	}
	return string(append(out, b[from:]...)), true
}

// joined reports whether c may be part of a secret's word.
func joined(c byte) bool { return base64Char(c) || c == '-' || c == '_' || c == '=' || c == '.' }
