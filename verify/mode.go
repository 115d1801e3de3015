package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/verify/shell"
)

// A mode is how freely an assistant may act, as far as the user's own command line says so. The
// assistant's record of it (turn.context) is more exact where there is one.
type mode struct {
	approval string // never, bypassPermissions, …
	sandbox  string
	rules    []ruleRef
}

// commandLineMode reads the flags the user gave the assistant.
func commandLineMode(s *event.SessionStart, seq uint64) mode {
	var m mode
	if s == nil {
		return m
	}
	var allow, deny []event.Rule
	argv := s.Command
	for i := 1; i < len(argv); i++ {
		name, value, inline := strings.Cut(argv[i], "=")
		next := func() string {
			if inline {
				return value
			}
			if i+1 < len(argv) {
				i++
				return argv[i]
			}
			return ""
		}
		switch name {
		case "--":
			return m
		case "--dangerously-skip-permissions":
			m.approval = "bypassPermissions"
		case "--permission-mode":
			m.approval = next()
		case "--yolo", "--dangerously-bypass-approvals-and-sandbox":
			m.approval, m.sandbox = "never", "danger-full-access"
		case "--full-auto":
			m.sandbox = "workspace-write"
		case "-a", "--ask-for-approval":
			m.approval = next()
		case "-s", "--sandbox":
			m.sandbox = next()
		case "--allow-all-tools", "--allow-all":
			m.approval = "allow-all-tools"
		case "--allowedTools", "--allowed-tools":
			for v := next(); v != ""; v = "" {
				allow = append(allow, toolRules(v, "allow")...)
				for i+1 < len(argv) && !inline && !strings.HasPrefix(argv[i+1], "-") && looksLikeTool(argv[i+1]) {
					i++
					allow = append(allow, toolRules(argv[i], "allow")...)
				}
			}
		case "--disallowedTools", "--disallowed-tools":
			deny = append(deny, toolRules(next(), "deny")...)
		}
	}
	for _, r := range slices.Concat(allow, deny) {
		m.rules = append(m.rules, ruleRef{Rule: &r, file: "command line", level: "command-line", agent: claude, seq: seq})
	}
	return m
}

func looksLikeTool(s string) bool {
	return s != "" && (s[0] >= 'A' && s[0] <= 'Z' && !strings.Contains(s, " ") || strings.Contains(s, "(") || strings.HasPrefix(s, "mcp__"))
}

// toolRules splits "Bash(git *),Edit" into rules.
func toolRules(list, decision string) []event.Rule {
	var out []event.Rule
	depth, from := 0, 0
	add := func(t string) {
		t = strings.TrimSpace(t)
		if t == "" {
			return
		}
		tool, pattern, _ := strings.Cut(t, "(")
		out = append(out, event.Rule{ID: "command-line:" + t, Decision: decision, Tool: tool, Pattern: strings.TrimSuffix(pattern, ")")})
	}
	for i, r := range list {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case (r == ',' || r == ' ') && depth == 0:
			add(list[from:i])
			from = i + 1
		}
	}
	add(list[from:])
	return out
}

// contextAt is the mode an assistant said it was in at a time: of the thread when it is known.
func (v *judge) contextAt(agent, thread string, ns uint64) *turnContext {
	var best *turnContext
	for i := range v.facts.contexts {
		t := &v.facts.contexts[i]
		if t.Agent != agent || thread != "" && t.Thread != "" && t.Thread != thread {
			continue
		}
		// The record is written at the start of a turn and read a little later.
		if best == nil || t.ns <= ns+slack {
			best = t
		}
	}
	return best
}

// coverMode looks for a mode that lets an action run without a question.
func (v *judge) coverMode(it *item) (Allowed, bool) {
	agent := it.agent()
	thread := ""
	if it.cand != nil {
		thread = it.cand.thread
	}
	if it.call != nil {
		thread = firstOf(it.call.Thread, thread)
	}
	approval, sandbox := v.mode.approval, v.mode.sandbox
	var records []uint64
	detail := ""
	if approval != "" || sandbox != "" {
		detail = "the user's command line"
		records = append(records, v.facts.startSeq)
	}
	if t := v.contextAt(agent, thread, it.start()); t != nil {
		approval, sandbox = firstOf(t.ApprovalPolicy, approval), firstOf(t.Sandbox, sandbox)
		detail, records = "the assistant's own record of its mode", []uint64{t.seq}
	}
	a := Allowed{Source: "mode", Detail: detail, Records: records}
	if it.kind == "edit" {
		return v.coverEditMode(it, a, approval, sandbox)
	}
	boxed := it.cand != nil && it.cand.sandbox
	switch agent {
	case codex:
		switch {
		case boxed && approval != "untrusted":
			a.Type = "sandbox:" + firstOf(sandbox, "unknown")
			for _, x := range it.cand.chain {
				if w := wrapperOf(codex, x); w == "codex-linux-sandbox" || w == "bwrap" {
					a.Records = append(a.Records, x.Seq)
					break
				}
			}
			a.Detail = "the kernel saw the sandbox around it"
			return a, true
		case sandbox == "danger-full-access" || sandbox == "disabled" || sandbox == "external-sandbox":
			a.Type = sandbox
			return a, true
		case approval == "never":
			a.Type = "never"
			return a, true
		}
	case claude:
		switch approval {
		case "bypassPermissions", "auto":
			a.Type = approval
			return a, true
		case "acceptEdits":
			if it.script != nil && acceptEditsCovers(it.script) {
				a.Type = approval
				return a, true
			}
		}
		if boxed {
			a.Type = "sandbox:" + firstOf(sandbox, "bwrap")
			a.Detail = "the kernel saw the sandbox around it"
			return a, true
		}
	default:
		switch approval {
		case "never", "bypassPermissions", "auto", "yolo", "allow-all-tools", "danger-full-access":
			a.Type = approval
			return a, true
		}
	}
	return Allowed{}, false
}

// coverEditMode: files that an assistant may change without asking, in the places its mode names.
func (v *judge) coverEditMode(it *item, a Allowed, approval, sandbox string) (Allowed, bool) {
	if it.call == nil {
		return a, false
	}
	roots := []string{v.facts.place.workspace}
	if t := v.contextAt(it.agent(), it.call.Thread, it.start()); t != nil {
		roots = append(roots, t.WriteRoots...)
	}
	inside := len(it.call.Paths) > 0
	for _, p := range it.call.Paths {
		p = absPath(p, firstOf(it.call.CWD, v.facts.place.workspace))
		inside = inside && (slices.ContainsFunc(roots, func(r string) bool { return within(p, clean(r)) }) || it.agent() == codex && v.facts.place.isTemp(p))
		// What decides about permissions is never part of it.
		if rules, mild := v.facts.place.assistantRules(p); rules && !mild {
			inside = false
		}
	}
	switch {
	case sandbox == "danger-full-access" || sandbox == "disabled":
		a.Type = sandbox
	case approval == "bypassPermissions" || approval == "auto" || approval == "allow-all-tools":
		a.Type = approval
	case it.agent() == codex && sandbox == "workspace-write" && approval != "untrusted" && inside:
		a.Type = "sandbox:" + sandbox
	case approval == "acceptEdits" && inside:
		a.Type = approval
	default:
		return a, false
	}
	return a, true
}

// acceptEditsCovers: Claude's "accept edits" lets common file commands run.
func acceptEditsCovers(s *shell.Script) bool {
	names := s.SimpleNames()
	for _, n := range names {
		switch n {
		case "mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed":
		default:
			return false
		}
	}
	return len(names) > 0
}
