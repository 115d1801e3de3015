package verify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/ryehq/rye/proctree"
	"github.com/ryehq/rye/verify/shell"
)

// Codex puts a text of about 20 KB before a command: it keeps some variables, reads the shell snapshot,
// puts the variables back and then execs the shell again, in the same process, with the command alone:
//
//	__CODEX_SNAPSHOT_…="${…}" … if . 'SNAPSHOT' …; then :; fi … exec '/bin/bash' -c 'COMMAND'
//
// So the kernel shows the command by itself, as that process's next exec; the text here only says which
// exec that has to be.
func codexPreamble(x *proctree.Exec) (next []string, ok bool) {
	text, _, ok := shellText(x)
	if !ok || !strings.Contains(text, "__CODEX_SNAPSHOT_") && !strings.Contains(text, "/shell_snapshots/") || !strings.Contains(text, "\nexec ") {
		return nil, false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || len(f.Stmts) < 2 {
		return nil, false
	}
	last, ok := f.Stmts[len(f.Stmts)-1].Cmd.(*syntax.CallExpr)
	if !ok || len(last.Args) < 4 || last.Args[0].Lit() != "exec" || hasSubstitution(last) {
		return nil, false
	}
	for _, w := range last.Args[1:] {
		v, ok := shell.Value(w)
		if !ok {
			return nil, false
		}
		next = append(next, v)
	}
	return next, next[1] == "-c"
}

// codexWrapper names what an exec is within Codex's way of starting a command: "" when it is the
// command itself.
func codexWrapper(x *proctree.Exec) string {
	if h := helperOf(x); h != "" {
		return h
	}
	if isBwrap(x) {
		return "bwrap"
	}
	if _, ok := codexPreamble(x); ok {
		return "codex-snapshot-preamble"
	}
	return ""
}

// claudeWrapper is the same for Claude Code. Unsandboxed commands have no wrapper of their own: the
// first exec carries the text. In the sandbox a watchdog shell starts bwrap, bwrap a shell that opens
// the proxy's sockets, that one the seccomp helper, and only that the shell with the text.
func claudeWrapper(x *proctree.Exec) string {
	if h := helperOf(x); h != "" {
		return h
	}
	if isBwrap(x) {
		return "bwrap"
	}
	text, _, ok := shellText(x)
	switch {
	case !ok:
	case len(x.Argv) == 5 && strings.HasPrefix(x.Argv[4], "bwrap ") && strings.Contains(text, "read -r line <&7"):
		return "claude-sandbox-watchdog"
	case strings.Contains(text, "ARGV0=apply-seccomp ") && strings.Contains(text, "socat TCP6-LISTEN:"):
		return "claude-sandbox-shell"
	}
	return ""
}

func wrapperOf(agent string, x *proctree.Exec) string {
	switch agent {
	case codex:
		return codexWrapper(x)
	case claude:
		return claudeWrapper(x)
	}
	return ""
}
