package verify

import (
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/ryehq/rye/verify/shell"
)

// Claude Code runs a command as
//
//	source SNAPSHOT [2>/dev/null || true] && PREAMBLE … && eval 'COMMAND' [< /dev/null] && pwd -P >| CWDFILE
//
// with a preamble that changes from version to version (seen: 1.0.60 to 2.1.332). Only a text that is
// this from end to end is unwrapped: a statement that is none of these makes it somebody else's.
//
//	claude-eval/1.0.60   eval WORD \< /dev/null [\| WORD]    the command is cut at its first pipe
//	claude-eval/1.0.128  eval 'A < /dev/null | B'            the redirection is put into the text
//	claude-eval/2.1.112  eval 'COMMAND' < /dev/null          the command is whole
func unwrapClaude(c *carried, text string) {
	if !strings.Contains(text, "eval ") || !strings.Contains(text, "pwd -P >") {
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return
	}
	var steps []*syntax.Stmt
	for _, st := range f.Stmts {
		steps = append(steps, andList(st)...)
	}
	n := len(steps)
	if n < 3 || !isCwdFile(steps[n-1]) || !isSnapshot(steps) {
		return
	}
	words, outside, ok := evalWords(steps[n-2])
	if !ok {
		return
	}
	for _, st := range steps[:n-2] {
		if !isPreamble(st) {
			return
		}
	}
	c.snippet = true
	const null = " < /dev/null"
	switch {
	case len(words) >= 3 && words[1] == "<" && words[2] == "/dev/null":
		c.grammar = "claude-eval/1.0.60"
		c.texts = []string{words[0] + strings.Join(words[3:], "")}
	case len(words) != 1:
		return
	case !outside && strings.Contains(words[0], null):
		c.grammar = "claude-eval/1.0.128"
		c.texts = []string{strings.Replace(words[0], null, "", 1), words[0]}
	default:
		c.grammar = "claude-eval/2.1.112"
		c.texts = []string{words[0]}
	}
}

// andList flattens A && B || C into its parts. The grouping does not matter for knowing the form.
func andList(st *syntax.Stmt) []*syntax.Stmt {
	b, ok := st.Cmd.(*syntax.BinaryCmd)
	if !ok || b.Op != syntax.AndStmt && b.Op != syntax.OrStmt || st.Background || len(st.Redirs) > 0 {
		return []*syntax.Stmt{st}
	}
	return append(andList(b.X), andList(b.Y)...)
}

func callWords(st *syntax.Stmt) []string {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Background || st.Negated || len(call.Assigns) > 0 {
		return nil
	}
	var out []string
	for _, w := range call.Args {
		v, ok := shell.Value(w)
		if !ok {
			return nil
		}
		out = append(out, v)
	}
	return out
}

func evalWords(st *syntax.Stmt) (words []string, outside, ok bool) {
	words = callWords(st)
	if len(words) < 2 || words[0] != "eval" {
		return nil, false, false
	}
	for _, r := range st.Redirs {
		if r.Op != syntax.RdrIn || r.Word.Lit() != "/dev/null" {
			return nil, false, false
		}
		outside = true
	}
	return words[1:], outside, true
}

func isCwdFile(st *syntax.Stmt) bool {
	words := callWords(st)
	if len(words) != 2 || words[0] != "pwd" || words[1] != "-P" || len(st.Redirs) != 1 || st.Redirs[0].Op != syntax.RdrClob {
		return false
	}
	name, ok := shell.Value(st.Redirs[0].Word)
	base := path.Base(name)
	return ok && (strings.HasSuffix(base, "-cwd") || strings.HasPrefix(base, "cwd-"))
}

// isSnapshot: the first file the shell reads is Claude's own snapshot.
func isSnapshot(steps []*syntax.Stmt) bool {
	for _, st := range steps {
		w := callWords(st)
		if len(w) == 2 && w[0] == "source" {
			return snapshotFile.MatchString(w[1])
		}
	}
	return false
}

var snapshotFile = regexp.MustCompile(`/shell-snapshots/snapshot-[a-z]+-[0-9A-Za-z-]+\.sh$`)

// isPreamble: one statement of what stands before eval. None of these runs a program.
func isPreamble(st *syntax.Stmt) bool {
	if st.Background || !quiet(st.Redirs) {
		return false
	}
	switch c := st.Cmd.(type) {
	case *syntax.Block:
		for _, s := range c.Stmts {
			for _, part := range andList(s) {
				if !isPreamble(part) {
					return false
				}
			}
		}
		return true
	case *syntax.CaseClause:
		if hasSubstitution(c) {
			return false
		}
		for _, it := range c.Items {
			for _, s := range it.Stmts {
				if w := quietWords(s); len(w) == 0 || w[0] != "printf" && w[0] != "exit" {
					return false
				}
			}
		}
		return true
	case *syntax.DeclClause:
		// export TMPDIR=… and GIT_CONFIG_PARAMETERS=…: the sandbox's own
		return c.Variant.Value == "export" && !hasSubstitution(c)
	}
	w := quietWords(st)
	if len(w) == 0 {
		return false
	}
	switch w[0] {
	case "source":
		return len(w) == 2 && (snapshotFile.MatchString(w[1]) || strings.Contains(w[1], "/.claude/session-env/"))
	case "true", "shopt", "setopt", "unalias", "unset", "exit":
		return true
	case "exec":
		return len(w) == 1 // exec 3<&-
	}
	return false
}

// quietWords are a statement's words, builtin taken off. A word that is filled in at run time is left empty.
func quietWords(st *syntax.Stmt) []string {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Background || len(call.Assigns) > 0 || hasSubstitution(call) {
		return nil
	}
	if !quiet(st.Redirs) {
		return nil
	}
	var out []string
	for _, w := range call.Args {
		v, _ := shell.Value(w)
		out = append(out, v)
	}
	if len(out) > 1 && out[0] == "builtin" {
		out = out[1:]
	}
	return out
}

// quiet: nothing is redirected but to /dev/null and between descriptors.
func quiet(redirs []*syntax.Redirect) bool {
	for _, r := range redirs {
		if t := r.Word.Lit(); t != "/dev/null" && t != "-" && strings.Trim(t, "0123456789") != "" {
			return false
		}
	}
	return true
}

func hasSubstitution(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}
