package verify

import (
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// judgeScripts: a script that was approved by its name must still be the file it was when the dialog
// stood on the screen.
func (v *judge) judgeScripts(it *item) {
	d := it.decision
	if d == nil || d.denied {
		return
	}
	for _, p := range v.facts.digests {
		if p.At != "prompt" || d.prompt != nil && p.For != 0 && p.For != d.prompt.seq || p.ns > it.cand.endNS || p.ns+slack < d.askedNS() && p.For == 0 {
			continue
		}
		at, seq := v.scriptRun(it, p)
		if at == 0 {
			continue
		}
		if v.changedDigest(it, p) || v.rewritten(it, p, at, seq) {
			return
		}
	}
}

// scriptRun is when an action ran a file as code: the exec of the file, of an interpreter that was
// given it, or of the shell whose text sources it. A file that is only data to a command may change.
func (v *judge) scriptRun(it *item, p digest) (ns, seq uint64) {
	for _, x := range v.execsOf(it.cand) {
		if x.Path != "" && absPath(x.Path, x.CWD) == p.Path || x.Exe == p.Path || x.Dev == p.Dev && x.Ino == p.Ino && p.Ino != 0 {
			return x.TimeNS, x.Seq
		}
		if s := codeFile(x); s != "" && absPath(s, x.CWD) == p.Path {
			return x.TimeNS, x.Seq
		}
	}
	if it.script != nil {
		for _, c := range it.script.Commands {
			if b := c.Base(); (b == "source" || b == ".") && len(c.Words) > 1 {
				if s, ok := c.Words[1].Static(); ok && absPath(s, it.cand.root.CWD) == p.Path {
					return it.cand.root.TimeNS, it.cand.root.Seq
				}
			}
		}
	}
	return 0, 0
}

// codeFile is the file that an interpreter or a shell was given to run.
func codeFile(x *proctree.Exec) string {
	base := path.Base(x.Exe)
	switch {
	case isInterpreter(base):
		return scriptArg(x.Argv)
	case shell.IsShell(base):
		if _, _, text := shellText(x); text {
			return ""
		}
		for i := 1; i < len(x.Argv); i++ {
			switch a := x.Argv[i]; {
			case a == "-o" || a == "+o" || a == "-O" || a == "+O" || a == "--rcfile" || a == "--init-file":
				i++
			case a == "" || a[0] != '-' && a[0] != '+':
				return a
			}
		}
	}
	return ""
}

// changedDigest compares the content at the prompt with the content at the run.
func (v *judge) changedDigest(it *item, p digest) bool {
	for _, e := range v.facts.digests {
		if e.At != "exec" || e.Path != p.Path || e.ns < p.ns || e.ns > it.cand.endNS+slack {
			continue
		}
		seqs := []uint64{p.seq, e.seq, it.cand.root.Seq}
		switch {
		case p.SHA256 == "" || e.SHA256 == "":
			v.doubt(it, EvidenceLost, "script-unread", sayf("The content of %s could not be read when it was approved or run (%s).", quote(p.Path), firstOf(e.Detail, p.Detail, "no reason given")), seqs...)
			return true
		case p.SHA256 != e.SHA256:
			v.find(it, Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "script-changed", Path: p.Path, Records: seqs,
				Message: sayf("%s was changed between the approval and the run: the file that ran is not the file that was approved.", quote(p.Path))})
			return true
		}
	}
	return false
}

// rewritten: something opened the file for writing, or put another in its place, in between.
func (v *judge) rewritten(it *item, p digest, at, seq uint64) bool {
	for _, w := range v.facts.files {
		if w.how == "read" || w.ns <= p.ns || w.ns >= at || w.path != p.Path && (w.node != inode{p.Dev, p.Ino} || p.Ino == 0) {
			continue
		}
		f := Finding{Code: ExecDiffers, Severity: Contradicts, Reason: "script-rewritten", Path: p.Path, Records: []uint64{p.seq, w.seq, seq},
			Message: sayf("%s was %s between the approval and the run.", quote(p.Path), w.how)}
		if o := v.cast.ownerOf(w.proc); o.kind == command && o.cand == it.cand {
			// The approved text did it itself; the person could see that it would.
			f.Severity = Warning
		}
		v.find(it, f)
		return true
	}
	return false
}

func absPath(name, cwd string) string {
	if strings.HasPrefix(name, "/") {
		return clean(name)
	}
	return clean(cwd + "/" + name)
}

// judgeRecord compares what ran with what the assistant wrote down about it.
func (v *judge) judgeRecord(it *item) {
	k := it.cand
	if it.call != nil {
		for _, r := range it.call.results {
			if len(r.Command) == 0 || k.root.Truncated {
				continue
			}
			text, _ := argvText(r.Command)
			if k.runs(text) >= invisible || redacted(text) || len(k.carried.texts) == 0 && slices.Equal(r.Command, k.root.Argv) {
				continue
			}
			v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "other-command", Records: []uint64{r.seq, k.root.Seq},
				Message: sayf("The assistant recorded that %s ran; the kernel saw %s.", quote(text), quote(it.ran()))})
			break
		}
		return
	}
	if k.callID == "" || !v.readsTranscript(k) {
		return
	}
	v.find(it, Finding{Code: TranscriptDiffers, Severity: Contradicts, Reason: "not-recorded", Records: []uint64{k.root.Seq},
		Message: sayf("%s ran as call %s, which the assistant's own record does not have.", quote(it.ran()), k.callID)})
}

// readsTranscript: the record of the thread that ran something was read, so a call missing in it is
// missing there, not here.
func (v *judge) readsTranscript(k *candidate) bool {
	for _, c := range v.facts.calls {
		if c.Agent == k.agent && c.Source == "transcript" && (k.thread == "" || c.Thread == "" || c.Thread == k.thread) {
			return true
		}
	}
	return false
}

func redacted(s string) bool { return len(s) > 0 && (containsAny(s, "[REDACTED", "[redacted")) }

// judgeDenyRules: a rule that says no is a no, however the command was written.
func (v *judge) judgeDenyRules(it *item) {
	if it.ownWord() {
		return
	}
	var deny []lineRule
	for _, r := range commandRules(v.rulesAt(it.agent(), it.start())) {
		if r.decision == "deny" || r.decision == "forbidden" {
			deny = append(deny, r)
		}
	}
	if len(deny) == 0 {
		return
	}
	told := make(map[string]bool)
	for _, x := range it.execs {
		for _, r := range deny {
			if told[r.ref.ID] || !denies(r, x) {
				continue
			}
			told[r.ref.ID] = true
			f := Finding{Code: DeniedButRan, Severity: Contradicts, Reason: "rule", Records: []uint64{r.ref.seq, x.Seq},
				Message: sayf("The rule %s forbids %s, and it ran.", quote(r.ref.text()), quoteArgv(x.Argv))}
			if x.Relation == Descendant {
				f.Severity = Warning
			}
			v.find(it, f)
		}
	}
}

// denies tests a program that ran, under its name and under its full path.
func denies(r lineRule, x Exec) bool {
	if len(x.Argv) == 0 {
		return false
	}
	argv := append([]string{baseOf(x.Argv[0])}, x.Argv[1:]...)
	for _, name := range []string{argv[0], x.Argv[0], x.Exe} {
		argv[0] = name
		if name != "" && r.matches(literalCommand(argv)) {
			return true
		}
	}
	// The loader runs the program it is given.
	if b := baseOf(x.Exe); len(x.Argv) > 1 && (hasPrefixAny(b, "ld-linux", "ld-musl", "ld-")) && x.Argv[1] != "" && x.Argv[1][0] != '-' {
		return r.matches(literalCommand(x.Argv[1:])) || r.matches(literalCommand(append([]string{baseOf(x.Argv[1])}, x.Argv[2:]...)))
	}
	return false
}
