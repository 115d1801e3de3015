package verify

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/verify/shell"
)

// testdata/claude-rules-2.1.332.json holds what Claude Code 2.1.332 did with about 300 commands under
// given rules: RUN without a question, DENY (it asked, or refused), ERR (it asked; or it ran and the
// command failed, when the reason is a rule or the safe list).
type oracle map[string]struct {
	Permissions struct{ Allow, Deny []string }
	Commands    [][3]string
}

// Claude asks more often than a rule's words call for: it will not look into some constructs at all.
// Where it asked and the words of the rule do cover everything the line runs, this package says
// covered; that such a run had no question before it is then no discrepancy.
var askedAnyway = map[string]bool{
	"too-complex": true, "semantics": true, "safetyCheck": true, "shell-operators": true, "assigned-variable": true,
}

func TestClaudeOracle(t *testing.T) {
	b, err := os.ReadFile("testdata/claude-rules-2.1.332.json")
	if err != nil {
		t.Fatal(err)
	}
	var o oracle
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	total, strict := 0, 0
	for name, set := range o {
		if len(set.Permissions.Deny) > 0 {
			continue // what a deny rule forbids is judged by what ran: TestDenyRules
		}
		var refs []ruleRef
		for _, a := range set.Permissions.Allow {
			refs = append(refs, ruleRef{Rule: &event.Rule{ID: a, Decision: "allow", Tool: "Bash", Pattern: a}})
		}
		rules := commandRules(refs)
		for _, c := range set.Commands {
			cmd, did, why := c[0], c[1], strings.TrimPrefix(c[2], "bashMiss:")
			total++
			_, ok := coverLine(shell.Parse(cmd, shell.Bash), rules, claudeSafe)
			ran := did == "RUN" || did == "ERR" && (why == "subcommandResults" || why == "rule")
			switch {
			case ran == ok:
			case !ran && ok && askedAnyway[why]:
				strict++
			case lenient[cmd] || ran && !ok && stricter[cmd]:
				strict++
			default:
				t.Errorf("%s: %q: Claude %s (%s), covered here: %v", name, cmd, did, why, ok)
			}
		}
	}
	t.Logf("%d commands, %d decided otherwise on purpose", total, strict)
}

// Lines that Claude asked about and that are covered here.
var lenient = map[string]bool{
	"FOO=1 foo run x":         true, // a harmless variable does not change what a rule is about
	"A=1 foo run build":       true,
	"foo run  build":          true, // the same argv
	"foo run x && export A=1": true,
	"cd /tmp && foo run x":    true, // which folders it may enter is not about commands
	"cat /etc/hostname":       true, "cat ~/.bashrc": true, "ls /": true,
	"tail -f /dev/null & true": true,
	"command -v ls":            true, // asks the shell, runs nothing
	"foo run x\r\nfoo run y":   true, // it refuses any carriage return
}

// Lines that Claude let through and that are not covered here.
var stricter = map[string]bool{
	"xargs bar < hello.py": true, "env bar x": true, // a rule for the wrapper is not one for what it runs
}
