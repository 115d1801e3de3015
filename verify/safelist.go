package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/verify/shell"
)

// claudeSafe is Claude Code's built-in list of commands that run without a question in every mode, as
// measured on 2.1.332. It says nothing about whether they are harmless.
func claudeSafe(c *shell.Command) bool {
	words, ok := c.Static()
	if !ok {
		// Arguments filled in at run time are let through, the command word is not.
		if c.Name() == "" {
			return false
		}
		words = []string{c.Name()}
		for _, a := range c.Args() {
			words = append(words, a.Source)
		}
	}
	args := words[1:]
	if slices.Contains([]string{"--version", "-v", "-V"}, last(args)) && len(args) == 1 {
		switch words[0] {
		case "python3", "python", "node", "npm", "go", "git", "docker", "cargo", "rustc", "java":
			return true
		}
	}
	has := func(bad ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool {
			return slices.ContainsFunc(bad, func(b string) bool { return a == b || strings.HasPrefix(b, "--") && strings.HasPrefix(a, b+"=") })
		})
	}
	switch words[0] {
	case "ls", "cat", "head", "tail", "wc", "which", "diff", "stat", "du", "whoami", "id", "uname", "hostname", "ps", "df", "file",
		"basename", "dirname", "realpath", "sleep", "seq", "tr", "cut", "base64", "sha256sum", "sha1sum", "md5sum", "nproc", "uptime", "man",
		"tree", "jq", "grep", "egrep", "fgrep", "echo", "printf", "test", "[", "true", "false", "pwd", "readlink", "cal", "free", "nl", "rev", "tac", "paste", "column", "strings", "hexdump", "od":
		return true
	case "rg":
		return !has("--pre", "--hostname-bin", "--search-zip", "-z")
	case "find":
		return !has("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprintf", "-fprint0", "-fls")
	case "sort":
		return !has("-o", "--output", "--compress-program") && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-o") })
	case "date":
		return !has("-s", "--set")
	case "sed":
		return len(args) >= 2 && args[0] == "-n" && strings.Trim(args[1], "0123456789,$p") == ""
	case "docker":
		return len(args) > 0 && slices.Contains([]string{"ps", "images", "logs", "inspect", "version", "info"}, args[0])
	case "git":
		return gitSafeRead(args)
	}
	return false
}

func last(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[len(s)-1]
}

func gitSafeRead(args []string) bool {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return false
	}
	switch args[0] {
	case "status", "log", "diff", "show", "branch", "remote", "stash", "rev-parse", "ls-files", "blame", "describe", "shortlog", "reflog", "worktree", "cat-file", "merge-base", "ls-tree", "rev-list", "for-each-ref":
		if args[0] == "remote" && len(args) == 1 {
			return true
		}
		return gitReadOnly(args) || args[0] == "blame" || args[0] == "reflog" && (len(args) == 1 || args[1] == "show")
	}
	return false
}

// codexSafe is the list Codex had until August 2026 for the policy "untrusted".
func codexSafe(words []string) bool {
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "cat", "cd", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "paste", "pwd", "rev", "seq", "stat", "tail", "tr", "true",
		"uname", "uniq", "wc", "which", "whoami", "numfmt", "tac":
		return true
	case "base64":
		return !slices.ContainsFunc(words, func(a string) bool { return strings.HasPrefix(a, "-o") || strings.HasPrefix(a, "--output") })
	case "find":
		return !slices.ContainsFunc(words, func(a string) bool {
			return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls"}, a) || strings.HasPrefix(a, "-fprint")
		})
	case "rg":
		return !slices.ContainsFunc(words, func(a string) bool {
			return a == "-z" || a == "--search-zip" || strings.HasPrefix(a, "--pre") || strings.HasPrefix(a, "--hostname-bin")
		})
	case "sed":
		return len(words) <= 4 && len(words) >= 3 && words[1] == "-n" && strings.Trim(words[2], "0123456789,p") == ""
	}
	return false
}
