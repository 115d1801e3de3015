package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// What stands around a command and is not in its text: the environment and the folder it was started in,
// and what a rule's words leave to the program they name.

// loaders are variables that put code into every program they reach. The text of a command can set them and
// then says so; an assistant that sets them beforehand changes what the text means.
var loaders = []string{"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "PROMPT_COMMAND", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT", "PYTHONSTARTUP"}

// judgeEnvironment compares the environment of a command with the one its assistant was started in.
func (v *judge) judgeEnvironment(it *item) {
	root := it.cand.root
	if it.ownWord() || it.cand.stray || len(root.Env) == 0 {
		return
	}
	main := v.mainOf(it.cand)
	if main == nil || main.Adopted {
		return // what the daemon was started with is not on record
	}
	for _, name := range loaders {
		val := root.Env[name]
		if val == "" || val == main.Env[name] {
			continue
		}
		v.find(it, Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "environment", Records: []uint64{main.Seq, root.Seq},
			Message: sayf("%s was started with %s=%s, which neither your environment nor its text sets: other code runs inside it.", quote(it.ran()), name, quote(val))})
		return
	}
	for name, val := range root.Env {
		if fn, ok := strings.CutPrefix(name, "BASH_FUNC_"); ok && main.Env[name] != val && it.script != nil && it.script.Err == nil {
			fn = strings.TrimSuffix(fn, "%%")
			if slices.ContainsFunc(it.script.Commands, func(c *shell.Command) bool { return c.Name() == fn }) {
				v.find(it, Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "environment", Records: []uint64{main.Seq, root.Seq},
					Message: sayf("%s was started with a function in its environment that takes the place of %s.", quote(it.ran()), quote(fn))})
				return
			}
		}
	}
}

// mainOf is the assistant's own program that started a candidate.
func (v *judge) mainOf(k *candidate) *proctree.Exec {
	for p := k.top; p != nil; p = p.Parent {
		for i := len(p.Execs) - 1; i >= 0; i-- {
			if x := p.Execs[i]; x.TimeNS <= k.startNS && slices.Contains(v.cast.main, x) {
				return x
			}
		}
	}
	return nil
}

// judgeFolder: a command of relative words means something else in another folder. The assistant's record
// says where it was to run; a shell that went elsewhere before explains another place.
func (v *judge) judgeFolder(it *item) {
	c, root := it.call, it.cand.root
	ws := v.facts.place.workspace
	if c == nil || c.CWD == "" || root.CWD == "" || it.ownWord() || it.cand.stray {
		return
	}
	at, want := clean(root.CWD), absPath(c.CWD, ws)
	if at == want || within(at, ws) || !within(want, ws) || v.wentTo(at, it.cand.startNS) {
		return
	}
	v.find(it, Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "folder", Path: at, Records: append(c.records(), root.Seq),
		Message: sayf("%s was to run in %s and ran in %s.", quote(it.ran()), quote(want), quote(at))})
}

// wentTo: an earlier command of the session changes to that folder, or to one that cannot be told.
func (v *judge) wentTo(dir string, ns uint64) bool {
	for _, o := range v.items {
		if o.kind != "command" || o.script == nil || o.start() > ns {
			continue
		}
		for _, c := range o.script.Commands {
			switch c.Name() {
			case "cd", "pushd", "popd":
				a := c.Args()
				if len(a) == 0 {
					return true
				}
				to, ok := last0(a).Static()
				if !ok || strings.HasPrefix(to, "-") || strings.HasPrefix(to, "~") || strings.Contains(to, "..") {
					return true
				}
				base := v.facts.place.workspace
				if o.cand != nil && o.cand.root != nil && o.cand.root.CWD != "" {
					base = o.cand.root.CWD
				}
				if absPath(to, base) == dir {
					return true
				}
			}
		}
	}
	return false
}

func last0(w []shell.Word) shell.Word { return w[len(w)-1] }

// judgeWrapped: a rule of Codex's is a beginning of words. One that ends at a program which only starts
// another does not name the other.
func (v *judge) judgeWrapped(it *item) {
	if it.agent() != codex || it.script == nil || it.allowed.Source != "rule" && it.allowed.Type != "always_rule_match" {
		return
	}
	rules := commandRules(v.rulesAt(codex, it.start()))
	segments, plain := shell.Plain(it.script.Text)
	if !plain {
		return
	}
	for _, words := range segments {
		text := shell.Join(words)
		s := shell.Parse(text, shell.Bash)
		if s.Err != nil || len(s.Commands) == 0 {
			continue
		}
		r := decide(rules, s.Commands[0])
		if r == nil || r.decision != "allow" {
			continue
		}
		for _, p := range s.Payloads(s.Commands[0]) {
			if !shell.Wraps(s.Commands[0].Base()) || len(words)-len(p.Words) < len(r.ref.Words) {
				continue // its words reach into what is started
			}
			if q := decide(rules, p); q != nil && q.decision == "allow" {
				continue
			}
			v.find(it, Finding{Code: RuleExceeded, Severity: Contradicts, Records: append(slices.Clone(it.allowed.Records), it.cand.root.Seq),
				Message: sayf("The rule %s names %s, and no rule names %s, which that starts.", quote(r.ref.text()), quote(s.Commands[0].Base()), quote(commandText(p)))})
			return
		}
	}
}

// judgeOmitted: a command of the model's that Claude's record does not mention, though it goes on. (Codex marks
// commands with the id of their call: see judgeRecord.)
func (v *judge) judgeOmitted(it *item) {
	k := it.cand
	if it.call != nil || k.stray || k.agent != claude || !strings.HasPrefix(k.carried.grammar, "claude-") {
		return
	}
	recorded, goesOn := []uint64(nil), false
	for _, c := range v.facts.calls {
		if c.Agent != k.agent || c.Source != "transcript" || k.thread != "" && c.Thread != "" && c.Thread != k.thread {
			continue
		}
		if len(recorded) == 0 {
			recorded = c.records()
		}
		// Times in a transcript are whole milliseconds.
		goesOn = goesOn || c.ns > min(k.endNS+2_000_000, k.startNS+50_000_000)
	}
	// Records are written a moment later; the last of one may be lost with the assistant's end.
	if !goesOn {
		return
	}
	v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "not-recorded", Records: append(recorded, k.root.Seq),
		Message: sayf("%s ran as a command of the model's, and the assistant's own record, which goes on after it, has no word of it.", quote(it.ran()))})
}
