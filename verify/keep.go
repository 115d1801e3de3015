package verify

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ryehq/rye/proctree"
)

// A keep says why a candidate is housekeeping: something the assistant started for itself. What a
// model asked for never is; the marks that assistants put into the environment of a model's commands
// settle that first.
type keep struct {
	kind     string
	presumed bool // inferred from the way it was started, not a shape seen in that assistant
}

// probe recognises the sandbox helpers that stand beside a command rather than around it.
func probe(agent string, x *proctree.Exec) *keep {
	n := len(x.Argv)
	switch {
	case agent != codex && agent != claude || n == 0:
	case isBwrap(x) && n > 2 && path.IsAbs(x.Argv[n-1]) && path.Base(x.Argv[n-1]) == "true":
		return &keep{kind: "sandbox-probe"}
	case isBwrap(x) && n == 2 && (x.Argv[1] == "--help" || x.Argv[1] == "--version"):
		return &keep{kind: "sandbox-probe"}
	case agent == codex && slices.Contains(x.Argv, "--codex-run-as-fs-helper"):
		return &keep{kind: "edit-helper"}
	case agent == codex && helperOf(x) == "codex-apply-patch":
		return &keep{kind: "edit-helper"}
	case agent == claude && path.Base(x.Exe) == "socat" && (strings.Contains(strings.Join(x.Argv, " "), "/claude-http-") || strings.Contains(strings.Join(x.Argv, " "), "claude-socks-")):
		return &keep{kind: "sandbox-proxy"}
	}
	return nil
}

// housekeeping recognises what an assistant does by itself, by shapes seen in its releases.
func housekeeping(k *candidate) *keep {
	x := k.root
	if x == nil || len(x.Argv) == 0 || k.stray {
		return nil
	}
	switch k.agent {
	case codex:
		// Every command of the model carries a call id (0.171 and later).
		if k.callID != "" || len(k.chain) > 0 {
			return nil
		}
		return codexKeeps(x)
	case claude:
		if strings.HasSuffix(x.Env["AI_AGENT"], "_agent") || strings.HasPrefix(k.carried.grammar, "claude-") {
			return nil
		}
		return claudeKeeps(k)
	case unknown:
		return nil
	}
	// Other known assistants run a model's commands through a shell; what they start directly and
	// only to look around is their own.
	if base := path.Base(x.Argv[0]); k.agent != "" && (base == "git" && gitReads(x.Argv[1:], "") || base == "rg" && slices.Contains(x.Argv, "--files")) {
		return &keep{kind: "look-around", presumed: true}
	}
	return nil
}

// called is a program's name and its arguments; for a script the script's, not its interpreter's.
func called(x *proctree.Exec) (base string, args []string) {
	names, args := callees(x)
	return path.Base(names[0]), args
}

func codexKeeps(x *proctree.Exec) *keep {
	base, args := called(x)
	text, _, isText := shellText(x)
	switch {
	case base == "git" && gitReads(args, "safe.bareRepository=explicit"):
		return &keep{kind: "git-status"}
	case base == "git" && slices.Contains(args, "ls-remote") && slices.Contains(args, "https://github.com/openai/plugins.git") && slices.Contains(args, "safe.bareRepository=explicit"):
		return &keep{kind: "plugin-check"}
	case isText && strings.HasPrefix(text, "set -e; . \"") && strings.Contains(text, "/shell_snapshots/") && strings.Count(text, "\n") == 0 && strings.Count(text, ";") == 1:
		return &keep{kind: "shell-snapshot"}
	case isText && strings.Contains(text, "__codex_snapshot_") && strings.Contains(text, ". \"$HOME/.bashrc\""), isText && strings.Contains(text, "# Snapshot file") && strings.Contains(text, "codex"):
		return &keep{kind: "shell-snapshot"}
	case isText && slices.Contains(codexTexts, text):
		return &keep{kind: "system-info"}
	case base == "lsb_release" && slices.Equal(args, []string{"-a"}), base == "getconf" && slices.Equal(args, []string{"LONG_BIT"}):
		return &keep{kind: "system-info"}
	case base == "ps" && len(args) == 6 && args[0] == "-p" && args[3] == "stat=" && args[5] == "lstart=":
		return &keep{kind: "daemon-check"}
	case base == "codex-code-mode-host":
		return &keep{kind: "code-mode-host"}
	case base == "rg" && slices.Contains(args, "--files"):
		return &keep{kind: "file-search"}
	}
	return nil
}

// serverAfter is how long a program the assistant marked as its own has to run to be taken for a server.
const serverAfter = 5_000_000_000

func claudeKeeps(k *candidate) *keep {
	x := k.root
	base, args := called(x)
	if toolOf(x) == "rg" || base == "rg" && strings.Contains(x.Exe, "/vendor/ripgrep/") {
		return &keep{kind: "file-search"}
	}
	text, _, isText := shellText(x)
	switch {
	case base == "git" && gitReads(args, ""):
		return &keep{kind: "git-status"}
	case base == "git" && slices.Contains(args, "clone") && strings.Contains(last(args), "/.claude/plugins/"), base == "ssh" && slices.Contains(args, "-T") && last(args) == "git@github.com":
		return &keep{kind: "plugin-check"}
	case isText && strings.HasPrefix(text, "SNAPSHOT_FILE=") && strings.Contains(text, "/shell-snapshots/snapshot-"):
		return &keep{kind: "shell-snapshot"}
	case isText && text == "env":
		return &keep{kind: "shell-environment"}
	case isText && slices.ContainsFunc(claudeTexts, func(re *regexp.Regexp) bool { return re.MatchString(text) }):
		return &keep{kind: "system-info"}
	case base == "which" && len(args) == 1, base == "uname" && slices.Equal(args, []string{"-sr"}), base == "npm" && slices.Equal(args, []string{"root", "-g"}),
		base == "bwrap" && slices.Equal(args, []string{"--version"}), base == "ldd" && slices.Equal(args, []string{"/bin/ls"}):
		return &keep{kind: "system-info"}
	case base == "ps" && len(args) == 5 && args[0] == "-o" && args[3] == "--ppid":
		return &keep{kind: "background-tasks"}
	case base == "socat" && len(args) > 0 && strings.HasPrefix(args[0], "UNIX-LISTEN:") && strings.Contains(args[0], "/claude-"):
		return &keep{kind: "sandbox-proxy"}
	case strings.HasSuffix(x.Env["AI_AGENT"], "_harness"):
		// Claude marks what it starts for itself: a shell is a hook or a status line, what stays is a
		// configured server.
		if isText {
			return &keep{kind: "hook"}
		}
		if k.alive || k.endNS > k.startNS+serverAfter {
			return &keep{kind: "mcp-server", presumed: true}
		}
		return &keep{kind: "own-helper", presumed: true}
	}
	return nil
}

// codexTexts are lines Codex gives to sh -c for itself.
var codexTexts = []string{"if command -v flock >/dev/null 2>&1; then exit 1; else exit 2; fi"}

// claudeTexts are the lines Claude gives to sh -c at its start.
var claudeTexts = []*regexp.Regexp{
	regexp.MustCompile(`^git rev-parse --show-toplevel$`),
	regexp.MustCompile(`^which (zsh|bash|git|bwrap|socat)$`),
	regexp.MustCompile(`^npm root -g$`),
	regexp.MustCompile(`^ldd /bin/ls 2>/dev/null$`),
	regexp.MustCompile(`^ps aux \| grep -E "[a-z|-]+" \| grep -v grep$`),
	regexp.MustCompile(`^git log -n 1000 --pretty=format: --name-only --diff-filter=M( --author=\$\(git config user\.email\))? \| sort \| uniq -c \| sort -nr \| head -n 20$`),
}

// gitReads reports whether git was asked only to tell something about a repository. want, when set, is
// a -c setting the assistant always gives.
func gitReads(args []string, want string) bool {
	i, seen := 0, want == ""
	for ; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-c" && i+1 < len(args):
			i++
			if args[i] == want {
				seen = true
			} else if !gitSafe(args[i]) {
				return false
			}
		case a == "-C" && i+1 < len(args):
			i++
		case a == "--no-optional-locks", a == "--no-pager", strings.HasPrefix(a, "--git-dir="):
		default:
			return seen && gitReadOnly(args[i:])
		}
	}
	return false
}

// gitSafe: a setting that takes power away, not one that gives some.
func gitSafe(setting string) bool {
	name, value, _ := strings.Cut(setting, "=")
	switch name {
	case "core.hooksPath":
		return value == "/dev/null"
	case "core.fsmonitor":
		return value == "" || value == "false"
	case "core.askPass", "core.pager":
		return value == ""
	case "core.alternateRefsCommand":
		return value == "" || value == `f() { git --git-dir="$1" for-each-ref --format='%(objectname)'; }; f`
	case "safe.bareRepository", "protocol.ext.allow", "protocol.file.allow", "submodule.recurse", "log.showSignature", "format.pretty", "gc.auto",
		"maintenance.auto", "diff.autoRefreshIndex", "core.ignorecase", "core.quotePath", "core.quotepath", "color.ui":
		return true
	}
	return strings.HasPrefix(name, "hook.") && strings.HasSuffix(name, ".enabled") && value == "false"
}

func gitReadOnly(args []string) bool {
	rest := args[1:]
	if slices.ContainsFunc(rest, func(a string) bool {
		return strings.HasPrefix(a, "--output") || strings.HasPrefix(a, "--exec") || strings.HasPrefix(a, "--ext-diff") || strings.HasPrefix(a, "--upload-pack") || a == "-O"
	}) {
		return false
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(rest, func(a string) bool { return slices.Contains(words, a) })
	}
	switch args[0] {
	case "rev-parse", "status", "log", "diff", "show", "ls-files", "merge-base", "for-each-ref", "rev-list", "cat-file", "check-ignore",
		"describe", "ls-tree", "symbolic-ref", "--version", "version", "name-rev", "show-ref", "diff-index", "diff-tree", "shortlog":
		return args[0] != "symbolic-ref" || len(rest) <= 2
	case "remote":
		return len(rest) == 0 || rest[0] == "get-url" || rest[0] == "-v" || rest[0] == "show"
	case "branch":
		return len(rest) == 0 || has("--show-current", "--list", "-l", "-a", "-r", "--format", "-v", "-vv") && !has("-d", "-D", "-m", "-M", "-f")
	case "config":
		return has("--get", "--get-all", "--get-regexp", "--list", "-l", "--null") && !has("--unset", "--add", "--replace-all") ||
			len(rest) == 1 && strings.Contains(rest[0], ".") || len(rest) == 2 && strings.HasPrefix(rest[0], "--no-includes")
	case "worktree", "stash":
		return len(rest) > 0 && rest[0] == "list"
	}
	return false
}
