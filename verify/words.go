package verify

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// quote writes a text for a sentence: shortened, and with everything a terminal would hide or obey
// made visible. The report is read by people who may be looking for exactly such tricks.
func quote(s string) string {
	const most = 160
	var b strings.Builder
	b.WriteByte('`')
	n := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if n >= most {
			fmt.Fprintf(&b, "` … (%d bytes in all)", len(s))
			return b.String()
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case isHidden(r) || !unicode.IsPrint(r):
			if r < 0x80 {
				fmt.Fprintf(&b, `\x%02x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
		i += size
		n++
	}
	b.WriteByte('`')
	return b.String()
}

func quoteArgv(argv []string) string { return quote(shell.Join(argv)) }

// program names an exec for a sentence.
func program(x *proctree.Exec) string {
	if len(x.Argv) > 0 && x.Argv[0] != "" {
		return baseOf(x.Argv[0])
	}
	return baseOf(x.Exe)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func splitSeq(path string) iter.Seq[string] { return strings.SplitSeq(path, ":") }

func containsAny(s string, subs ...string) bool {
	for _, x := range subs {
		if strings.Contains(s, x) {
			return true
		}
	}
	return false
}

func hasPrefixAny(s string, prefixes ...string) bool {
	for _, x := range prefixes {
		if strings.HasPrefix(s, x) {
			return true
		}
	}
	return false
}

func literalCommand(argv []string) *shell.Command {
	c := &shell.Command{Source: shell.Join(argv)}
	for _, a := range argv {
		c.Words = append(c.Words, shell.Literal(a))
	}
	return c
}
