package shell

import (
	"strings"
	"unicode/utf8"
)

// ansiC decodes the inside of $'…' as bash does in a UTF-8 locale. An escape that gives NUL ends the
// string: bash keeps C strings.
func ansiC(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		i++
		c := s[i]
		i++
		var v rune
		var n int
		switch c {
		case 'a':
			v = 7
		case 'b':
			v = 8
		case 'e', 'E':
			v = 0x1b
		case 'f':
			v = 12
		case 'n':
			v = 10
		case 'r':
			v = 13
		case 't':
			v = 9
		case 'v':
			v = 11
		case '\\', '\'', '"', '?':
			v = rune(c)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v, n = digits(s[i-1:], 3, 8)
			i += n - 1
			v &= 0xff
		case 'x':
			if v, n = digits(s[i:], 2, 16); n == 0 {
				b.WriteString(`\x`)
				continue
			}
			i += n
		case 'u', 'U':
			most := 4
			if c == 'U' {
				most = 8
			}
			if v, n = digits(s[i:], most, 16); n == 0 {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			i += n
			if v != 0 {
				b.WriteString(string(utf8.AppendRune(nil, v)))
				continue
			}
		case 'c':
			if i == len(s) {
				b.WriteString(`\c`)
				continue
			}
			x := s[i]
			i++
			if x == '\\' && i < len(s) && s[i] == '\\' {
				i++
			}
			v = rune(x) & 0x1f
			if x == '?' {
				v = 0x7f
			}
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
			continue
		}
		if v == 0 {
			return b.String()
		}
		b.WriteByte(byte(v))
	}
	return b.String()
}

// digits reads up to most digits of a base; n is how many there were.
func digits(s string, most, base int) (v rune, n int) {
	for n < most && n < len(s) {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] >= '0' && s[n] <= '9' {
			d = int(s[n] - '0')
		}
		if d < 0 || d >= base {
			break
		}
		v = v*rune(base) + rune(d)
		n++
	}
	return v, n
}
