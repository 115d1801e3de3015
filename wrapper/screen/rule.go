package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// A savedRule is an answer of this session that lets later commands run without a dialog.
type savedRule struct {
	id     string
	agent  string
	kind   string
	prefix []string
	exact  string // an answer for the session: this very command, and no other
}

const maxRules = 1024

func (s *Screen) save(r savedRule) {
	if (len(r.prefix) > 0 || r.exact != "") && r.kind == kindCommand && len(s.rules) < maxRules {
		s.rules = append(s.rules, r)
	}
}

// RuleMatch reports whether an "always" answer (or, of Codex, one for the session) given earlier in this session covers command, so that
// the assistant runs it without a dialog. The event is an approval.granted with Decision
// always_rule_match that rests on the answer; it is returned, not emitted. Where several answers cover
// the parts of a command list, Rule names them all, separated by commas.
//
// What a rule covers is the assistant's own understanding of it. Codex: the words of every plain
// command in a list must begin with a saved prefix, and a script it cannot split must be the saved one.
// Claude Code: every command of the list must be named by a rule; what is not certain is not covered.
func (s *Screen) RuleMatch(command string, timeNS uint64) (event.Event, bool) {
	for _, agent := range []string{"codex", "claude", "copilot"} {
		var rules []savedRule
		for _, r := range s.rules {
			if r.agent == agent {
				rules = append(rules, r)
			}
		}
		if len(rules) == 0 {
			continue
		}
		used := coverCodex(rules, command)
		if agent != "codex" {
			used = coverClaude(rules, command)
		}
		if len(used) == 0 {
			continue
		}
		s.answers++
		var ids []string
		for _, r := range used {
			ids = append(ids, r.id)
		}
		return event.New(timeNS, nil, &event.ApprovalGranted{
			ID: fmt.Sprintf("a%d", s.answers), Agent: agent, Kind: kindCommand, Command: command,
			Decision: event.DecisionAlwaysRule, Prefix: used[0].prefix, Rule: strings.Join(ids, ","),
			OutputOffset: s.offset(),
		}), true
	}
	return event.Event{}, false
}

// coverCodex returns the rules that together cover the command, nil if they do not.
func coverCodex(rules []savedRule, command string) []savedRule {
	for _, r := range rules {
		if r.exact != "" && r.exact == command {
			return []savedRule{r}
		}
	}
	commands, ok := plainCommands(command)
	if !ok { // one command to Codex: the shell with this script
		for _, r := range rules {
			if len(r.prefix) == 1 && r.prefix[0] == command {
				return []savedRule{r}
			}
		}
		return nil
	}
	return coverEach(rules, commands, func(r savedRule, words []string) bool {
		return len(r.prefix) > 0 && len(words) >= len(r.prefix) && slices.Equal(words[:len(r.prefix)], r.prefix)
	})
}

// coverClaude does the same for Claude Code and Copilot, whose answers save one rule a command.
func coverClaude(rules []savedRule, command string) []savedRule {
	commands, ok := plainCommands(command)
	if !ok {
		for _, r := range rules {
			if slices.Contains(r.prefix, command) {
				return []savedRule{r}
			}
		}
		return nil
	}
	return coverEach(rules, commands, func(r savedRule, words []string) bool {
		return slices.ContainsFunc(r.prefix, func(rule string) bool { return claudeRule(rule, words) })
	})
}

func coverEach(rules []savedRule, commands [][]string, covers func(savedRule, []string) bool) []savedRule {
	var used []savedRule
	for _, words := range commands {
		i := slices.IndexFunc(rules, func(r savedRule) bool { return covers(r, words) })
		if i < 0 {
			return nil
		}
		if !slices.ContainsFunc(used, func(r savedRule) bool { return r.id == rules[i].id }) {
			used = append(used, rules[i])
		}
	}
	return used
}

// claudeRule reports whether a rule as the dialog names it covers a command: "git commit *" and
// "python3:*" by prefix, anything else word by word.
func claudeRule(rule string, words []string) bool {
	open := false
	for _, end := range []string{":*", " *"} {
		if r, ok := strings.CutSuffix(rule, end); ok {
			rule, open = r, true
		}
	}
	want, ok := plainCommands(rule)
	if !ok || len(want) != 1 || len(words) < len(want[0]) {
		return false
	}
	return slices.Equal(words[:len(want[0])], want[0]) && (open || len(words) == len(want[0]))
}
