package policy

import (
	"regexp"
	"strings"
	"testing"
)

// Patterns that begin with a text, and what they are to find.
var prefixed = []string{`never[0-9]+z`, `abc`, `aab(?:aab)*c`, `key\s*=\s*\S{3}$`, `(?m)key.*end$`, `word\b`, `xyz(?s:.*)zyx`, `éü.{2}z`, `aaa.{0,40}b`}

func matched(t testing.TB, b *Bundle, body []byte, step int) bool {
	t.Helper()
	return inPieces(b, Head{Method: "POST", Host: "h", Path: "/"}, body, step).Action == Deny
}

// A pattern that is asked only where its prefix stands finds what it finds everywhere.
func TestPrefixedPatterns(t *testing.T) {
	for _, text := range prefixed {
		p, err := newPattern(text)
		if err != nil || p.prefix == nil {
			t.Errorf("%s has no prefix: %v", text, err)
		}
		b := mustParse(t, one("deny", "{body_matches: '"+text+"'}"))
		re := regexp.MustCompile(text)
		for _, unit := range []string{"never12z", "never12", "abc", "aabaabaabc", "aabaab", "key = abc", "key=x end\n", "word.", "words", "xyz--zyx", "éü12z", strings.Repeat("a", 60) + "b", strings.Repeat("aaa ", 2000)} {
			for _, before := range []int{0, blockSize - 3, blockSize - 70} {
				for _, after := range []string{"", " and more", "\n"} {
					body := []byte(strings.Repeat(".", before) + unit + after)
					for _, step := range []int{len(body), 7} {
						if got, want := matched(t, b, body, step), re.Match(body); got != want {
							t.Errorf("%s in %d dots, %.20q, %q in steps of %d: %v, want %v", text, before, unit, after, step, got, want)
						}
					}
				}
			}
		}
	}
	for _, text := range []string{`\bword`, `^abcd`, `(?i)abcd`, `ab[0-9]`, `(abcd|efgh)`} {
		if p, err := newPattern(text); err != nil || p.prefix != nil {
			t.Errorf("%s: prefix %q, %v", text, p.prefix, err)
		}
	}
}

func FuzzPrefixedPatterns(f *testing.F) {
	var bundles []*Bundle
	for _, text := range prefixed {
		b, err := Parse([]byte(one("deny", "{body_matches: '"+text+"'}")))
		if err != nil {
			f.Fatal(err)
		}
		bundles = append(bundles, b)
	}
	f.Add([]byte("aabaabaabaabc"), uint16(3))
	f.Add([]byte("key=never1zz key = end"), uint16(1))
	f.Add([]byte("\xc3éü\xff\xffz xyz"), uint16(2))
	f.Fuzz(func(t *testing.T, body []byte, step uint16) {
		for i, text := range prefixed {
			if got, want := matched(t, bundles[i], body, int(step)+1), regexp.MustCompile(text).Match(body); got != want {
				t.Fatalf("%s: %v, want %v", text, got, want)
			}
		}
	})
}
