package screen

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A key is one thing the user did: a key press, a mouse click, a paste.
type key struct {
	name string // "y", "enter", "esc", "up", "ctrl+c", "shift+tab", "mouse", "paste"
	text string // what it types, if it types
	x, y int    // of a click, from 0
}

// keyParser cuts the terminal's input into keys. Answers of the terminal itself (to queries, focus
// changes, mouse movement) come the same way and are left out: no user typed them.
type keyParser struct {
	pending []byte
	paste   bool
}

const maxPending = 256 // no key and no terminal answer is longer

// take returns the keys in p. What may be the start of a sequence is kept for the next call.
func (k *keyParser) take(p []byte) []key {
	buf := append(k.pending, p...)
	k.pending = nil
	var keys []key
	for len(buf) > 0 {
		if k.paste {
			end := bytes.Index(buf, []byte("\x1b[201~"))
			if end < 0 { // keep what the end mark may begin in
				k.pending = append(k.pending, buf[max(0, len(buf)-5):]...)
				return keys
			}
			k.paste = false
			buf = buf[end+6:]
			keys = append(keys, key{name: "paste"})
			continue
		}
		one, n, whole := parseKey(buf)
		if !whole && len(buf) < maxPending {
			k.pending = append(k.pending, buf...)
			return keys
		}
		if one.name == "paste-start" {
			k.paste = true
		} else if one.name != "" {
			keys = append(keys, one)
		}
		buf = buf[max(n, 1):]
	}
	return keys
}

// flush returns what is pending as keys: an ESC that nothing followed is the Esc key.
func (k *keyParser) flush() []key {
	if len(k.pending) == 0 || k.paste {
		return nil
	}
	rest := k.pending
	k.pending = nil
	if len(rest) == 1 && rest[0] == 0x1b {
		return []key{{name: "esc"}}
	}
	return nil
}

// parseKey reads one key off the start of b and returns its length. whole is false when b may be the
// beginning of a longer one.
func parseKey(b []byte) (k key, n int, whole bool) {
	if b[0] != 0x1b {
		return plainKey(b)
	}
	if len(b) == 1 {
		return key{name: "esc"}, 1, false
	}
	switch b[1] {
	case '[':
		return csiKey(b)
	case 'O':
		if len(b) < 3 {
			return key{}, 0, false
		}
		return key{name: finalNames(b[2])}, 3, true
	case 'P', ']', '_', '^', 'X': // an answer of the terminal: a string up to ST or BEL
		if end := bytes.Index(b[2:], []byte("\x1b\\")); end >= 0 {
			return key{}, end + 4, true
		}
		if end := bytes.IndexByte(b[2:], 7); end >= 0 && b[1] == ']' {
			return key{}, end + 3, true
		}
		return key{}, len(b), false
	case 0x1b:
		return key{name: "esc"}, 1, true
	}
	if k, n, whole = plainKey(b[1:]); k.name != "" {
		k = key{name: "alt+" + k.name}
	}
	return k, n + 1, whole
}

func plainKey(b []byte) (key, int, bool) {
	switch c := b[0]; {
	case c == '\r' || c == '\n':
		return key{name: "enter"}, 1, true
	case c == '\t':
		return key{name: "tab"}, 1, true
	case c == 0x7f || c == '\b':
		return key{name: "backspace"}, 1, true
	case c == 0:
		return key{name: "ctrl+space"}, 1, true
	case c < 0x20:
		return key{name: "ctrl+" + string(rune(c|0x60))}, 1, true
	case c == ' ':
		return key{name: "space", text: " "}, 1, true
	case c < 0x80:
		return key{name: string(rune(c)), text: string(rune(c))}, 1, true
	}
	if !utf8.FullRune(b) {
		return key{}, 0, false
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError {
		return key{}, n, true
	}
	return key{name: string(r), text: string(r)}, n, true
}

// csiKey reads a control sequence: ESC [ parameters final.
func csiKey(b []byte) (key, int, bool) {
	end := 2
	for end < len(b) && b[end] >= 0x20 && b[end] <= 0x3f {
		end++
	}
	if end == len(b) {
		return key{}, 0, false
	}
	params, final := string(b[2:end]), b[end]
	n := end + 1
	if final == 'M' && params == "" { // X10 mouse: three bytes follow
		if len(b) < n+3 {
			return key{}, 0, false
		}
		if b[n] == 32 {
			return key{name: "mouse", x: int(b[n+1]) - 33, y: int(b[n+2]) - 33}, n + 3, true
		}
		return key{}, n + 3, true
	}
	switch {
	case strings.HasPrefix(params, "<"):
		return mouseKey(params[1:], final), n, true
	case params != "" && strings.ContainsAny(params[:1], "?>="), strings.ContainsAny(params, "$ "):
		return key{}, n, true // an answer to a query
	case final == 'u':
		return kittyKey(params), n, true
	case final == '~':
		return tildeKey(params), n, true
	}
	if final == 'Z' {
		return key{name: "shift+tab"}, n, true
	}
	nums := strings.Split(params, ";")
	k := key{name: finalNames(final)} // I, O (focus) and R, c, n, t (answers) have no name
	if len(nums) == 2 && k.name != "" {
		mod, event, _ := strings.Cut(nums[1], ":")
		if event == "3" { // release
			return key{}, n, true
		}
		k.name = modifiers(mod) + k.name
	}
	return k, n, true
}

func finalNames(final byte) string {
	switch final {
	case 'A':
		return "up"
	case 'B':
		return "down"
	case 'C':
		return "right"
	case 'D':
		return "left"
	case 'H':
		return "home"
	case 'F':
		return "end"
	case 'M':
		return "enter" // of the keypad, after ESC O
	}
	return ""
}

// mouseKey reads an SGR mouse report. Only a press of the left button is an answer to anything.
func mouseKey(params string, final byte) key {
	f := strings.Split(params, ";")
	if final != 'M' || len(f) != 3 || f[0] != "0" {
		return key{}
	}
	x, errX := strconv.Atoi(f[1])
	y, errY := strconv.Atoi(f[2])
	if errX != nil || errY != nil {
		return key{}
	}
	return key{name: "mouse", x: x - 1, y: y - 1}
}

// kittyKey reads CSI code;modifiers:event u.
func kittyKey(params string) key {
	f := strings.Split(params, ";")
	code, _, _ := strings.Cut(f[0], ":")
	mod := ""
	if len(f) > 1 {
		m, event, _ := strings.Cut(f[1], ":")
		if event == "3" {
			return key{}
		}
		mod = modifiers(m)
	}
	n, err := strconv.Atoi(code)
	if err != nil || n < 0 || n > utf8.MaxRune {
		return key{}
	}
	switch n {
	case 27:
		return key{name: mod + "esc"}
	case 57414:
		return key{name: mod + "enter"}
	}
	if n >= 57344 && n <= 63743 { // keys without text
		return key{}
	}
	k, _, _ := plainKey(utf8.AppendRune(nil, rune(n)))
	if mod != "" {
		k.text = ""
	}
	k.name = mod + k.name
	return k
}

func tildeKey(params string) key {
	f := strings.Split(params, ";")
	switch f[0] {
	case "200":
		return key{name: "paste-start"}
	case "1", "7":
		return key{name: "home"}
	case "4", "8":
		return key{name: "end"}
	case "5":
		return key{name: "pageup"}
	case "6":
		return key{name: "pagedown"}
	case "27": // modifyOtherKeys: 27;modifiers;code
		if len(f) == 3 {
			return kittyKey(f[2] + ";" + f[1])
		}
	}
	return key{}
}

// modifiers names the xterm modifier parameter (1 + bits).
func modifiers(s string) string {
	n, err := strconv.Atoi(s)
	if err != nil || n < 2 {
		return ""
	}
	n--
	name := ""
	if n&4 != 0 {
		name += "ctrl+"
	}
	if n&2 != 0 {
		name += "alt+"
	}
	if n&1 != 0 {
		name += "shift+"
	}
	return name
}
