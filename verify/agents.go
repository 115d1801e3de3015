package verify

import (
	"path"
	"strings"

	"github.com/ryehq/rye/proctree"
)

// Assistants this version knows by their own process. Others are judged too, as "unknown": then
// everything they start is an action.
const (
	codex    = "codex"
	claude   = "claude"
	copilot  = "copilot"
	opencode = "opencode"
	gemini   = "gemini"
	cursor   = "cursor"
	aider    = "aider"
	goose    = "goose"
	unknown  = "unknown"
)

// agentOf names the assistant whose main program an exec is, or "". Assistants also run as other
// things (a sandbox helper, a grep); those are not their main program, so identity comes from the
// executable and argv together.
func agentOf(x *proctree.Exec) string {
	a := programAgent(x)
	if a == "" || toolOf(x) != "" || helperOf(x) != "" {
		return ""
	}
	return a
}

// programAgent names the assistant whose file was executed, whatever it runs as.
func programAgent(x *proctree.Exec) string {
	base := path.Base(x.Exe)
	switch {
	case base == "codex" || strings.HasPrefix(base, "codex-x86_64-") || strings.HasPrefix(base, "codex-aarch64-"):
		return codex
	case base == "claude" || base == "claude.exe" || strings.Contains(x.Exe, "/claude/versions/") || strings.Contains(x.Exe, "/claude-code-linux-"):
		return claude
	case base == "copilot", base == "opencode", base == "gemini", base == "goose":
		return base
	case base == "cursor-agent":
		return cursor
	}
	if !isInterpreter(base) {
		return ""
	}
	script := scriptArg(x.Argv)
	sb := path.Base(script)
	switch {
	case script == "":
		return ""
	case strings.Contains(script, "claude-code") || sb == "claude":
		return claude
	case strings.Contains(script, "@openai/codex") || sb == "codex" || sb == "codex.js":
		return codex
	case strings.Contains(script, "@github/copilot") || sb == "copilot":
		return copilot
	case strings.Contains(script, "gemini-cli") || sb == "gemini":
		return gemini
	case sb == "opencode":
		return opencode
	case strings.Contains(script, "cursor-agent"):
		return cursor
	case sb == "aider":
		return aider
	}
	return ""
}

func isInterpreter(base string) bool {
	switch strings.TrimRight(base, "0123456789.") {
	case "node", "nodejs", "bun", "deno", "python", "pypy":
		return true
	}
	return false
}

// scriptArg is the script an interpreter was given.
func scriptArg(argv []string) string {
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		switch {
		case a == "run" && i == 1:
		case a == "-e" || a == "-c" || a == "-p" || a == "-m":
			return ""
		case a == "-r" || a == "--require" || a == "--import" || a == "--loader":
			i++
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

// toolOf names the tool an assistant's program plays when it is run under another name: native Claude
// builds carry grep, find and rg inside.
func toolOf(x *proctree.Exec) string {
	if len(x.Argv) == 0 || programAgent(x) != claude {
		return ""
	}
	switch path.Base(x.Argv[0]) {
	case "ugrep":
		return "grep"
	case "bfs":
		return "find"
	case "rg":
		return "rg"
	}
	return ""
}

// helperOf names the part of an assistant's machinery an exec is: it prepares a command, it is not
// the command. "" for everything else.
func helperOf(x *proctree.Exec) string {
	if len(x.Argv) == 0 {
		return ""
	}
	arg0 := path.Base(x.Argv[0])
	switch programAgent(x) {
	case codex:
		if arg0 == "codex-linux-sandbox" || path.Base(x.Path) == "codex-linux-sandbox" {
			return "codex-linux-sandbox"
		}
		if arg0 == "apply_patch" || arg0 == "applypatch" {
			return "codex-apply-patch"
		}
		if len(x.Argv) > 1 {
			if role, ok := strings.CutPrefix(x.Argv[1], "--codex-run-as-"); ok {
				return "codex-" + role
			}
		}
	case claude:
		if arg0 == "apply-seccomp" || strings.HasPrefix(x.Argv[0], "/proc/self/fd/") {
			return "claude-apply-seccomp"
		}
	default:
		// The helper keeps its name even when the file it runs from is not called codex.
		if arg0 == "codex-linux-sandbox" && path.Base(x.Path) == "codex-linux-sandbox" {
			return "codex-linux-sandbox"
		}
	}
	return ""
}

func isBwrap(x *proctree.Exec) bool {
	return path.Base(x.Exe) == "bwrap" || len(x.Argv) > 0 && path.Base(x.Argv[0]) == "bwrap"
}
