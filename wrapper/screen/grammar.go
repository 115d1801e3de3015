package screen

import (
	"regexp"
	"strings"

	"github.com/ryehq/rye/event"
)

// A grammar reads the dialogs of one assistant. It returns nil for a screen that holds none of them.
type grammar struct {
	agent string
	read  func(v *view) *dialog
}

// grammars are asked in this order; the first that knows the screen is taken. The generic one, which
// knows no assistant, is the last.
func grammars() []grammar {
	return []grammar{
		{"codex", readCodex},
		{"claude", readClaude},
		{"copilot", readCopilot},
		{"opencode", readOpencode},
		{"unknown", readGeneric},
	}
}

// A labelRule says what an option means. The expression is matched against the label without the
// keys it names; its first group, if any, is what an "always" answer saves.
type labelRule struct {
	label    *regexp.Regexp
	decision string
	words    func(saved string) []string
	input    bool
}

// Labels are sentences of the assistants' own; both apostrophes occur.
func label(expr, decision string) labelRule {
	expr = strings.ReplaceAll(expr, "'", "['’]")
	return labelRule{label: regexp.MustCompile(`^(?:` + expr + `)$`), decision: decision}
}

func (r labelRule) saves(words func(string) []string) labelRule {
	r.words = words
	return r
}

func (r labelRule) typed() labelRule {
	r.input = true
	return r
}

// name gives every option the meaning that rules know for its label, and its keys.
func name(options []option, rules []labelRule) {
	for i := range options {
		o := &options[i]
		text, keys := cutKeys(o.label)
		o.keys = keys
		for _, r := range rules {
			m := r.label.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			o.decision, o.input = r.decision, r.input
			if r.words != nil && len(m) > 1 {
				o.prefix = r.words(m[1])
			}
			break
		}
	}
}

// keyNames are the keys a label may name in brackets at its end.
var keyNames = regexp.MustCompile(`^[a-zA-Z0-9]$|^(?i:esc|enter|return|tab|space|shift\+tab|(?:ctrl|alt)[+-][a-z]|f[0-9]{1,2}|backspace|delete)$`)

// cutKeys cuts "(y)", "(esc)", "(Esc to stop)" and the like off the end of a label.
func cutKeys(label string) (text string, keys []string) {
	text = strings.TrimRight(strings.ReplaceAll(label, "\u00a0", " "), " ")
	open := strings.LastIndexByte(text, '(')
	if open < 0 || !strings.HasSuffix(text, ")") {
		return text, nil
	}
	inside := strings.TrimSuffix(text[open+1:], ")")
	inside, _, _ = strings.Cut(inside, " to ") // "(Esc to stop)"
	for _, k := range strings.FieldsFunc(inside, func(r rune) bool { return r == '/' || r == ',' || r == '|' }) {
		k = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(k), "or "))
		if !keyNames.MatchString(k) {
			return text, nil
		}
		keys = append(keys, canonicalKey(k))
	}
	if keys == nil {
		return text, nil
	}
	return strings.TrimRight(text[:open], " "), keys
}

func canonicalKey(k string) string {
	k = strings.ReplaceAll(strings.ToLower(k), "-", "+")
	if k == "return" {
		return "enter"
	}
	return k
}

// granted reports whether a decision lets the action happen.
func granted(decision string) bool {
	switch decision {
	case event.DecisionThisTime, event.DecisionSession, event.DecisionAlways:
		return true
	}
	return false
}
