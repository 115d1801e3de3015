package verify

import (
	"slices"
	"strings"

	"github.com/ryehq/rye/proctree"
)

// These programs start others only when an argument tells them to. A rule that names such a program
// was not meant for what it starts.
var noRunner = map[string]bool{
	"sed": true, "awk": true, "gawk": true, "mawk": true, "find": true, "fd": true, "fdfind": true, "bfs": true, "rg": true, "grep": true, "egrep": true,
	"ugrep": true, "sort": true, "tar": true, "ed": true, "ex": true, "cat": true, "ls": true, "head": true, "tail": true, "wc": true, "cut": true, "tr": true,
	"cp": true, "mv": true, "rm": true, "touch": true, "mkdir": true, "chmod": true, "jq": true, "diff": true, "tee": true, "stat": true, "echo": true,
	"date": true, "split": true, "zip": true, "unzip": true, "busybox": true, "toybox": true, "split.gnu": true, "yq": true,
}

// exceeds: a rule covered an action, and a program it names did more than the rule's words say.
func (v *judge) exceeds(it *item, x *proctree.Exec, st, img *image) {
	if st == nil || st.cmd == nil || st.relation != Named || img.relation != Descendant {
		return
	}
	by := x.Spawner()
	base := st.cmd.Base()
	words := ""
	switch {
	case noRunner[base]:
	case base == "git":
		if words = gitRuns(by.Argv); words == "" {
			return
		}
	default:
		return
	}
	if base == "tar" && packs(x) && !strings.Contains(strings.Join(by.Argv, " "), "command") {
		return
	}
	v.find(it, Finding{Code: RuleExceeded, Severity: Contradicts, Records: append(slices.Clone(it.allowed.Records), by.Seq, x.Seq),
		Message: sayf("The rule %s covers %s, but %s started %s, which the rule does not name.", quote(it.allowed.Rule), quoteArgv(by.Argv), firstOf(words, base), quoteArgv(x.Argv))})
}

// packs: a program that tar starts to pack or unpack, by itself or through a shell.
func packs(x *proctree.Exec) bool {
	name := program(x)
	if text, _, ok := shellText(x); ok {
		name, _, _ = strings.Cut(text, " ")
	}
	return slices.Contains([]string{"gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "compress", "pigz", "pbzip2", "lzop"}, name)
}

// gitRuns names the argument that makes git start a program of the caller's choice.
func gitRuns(argv []string) string {
	for i, a := range argv {
		if a == "-c" && i+1 < len(argv) {
			name, value, _ := strings.Cut(argv[i+1], "=")
			switch {
			case strings.HasPrefix(name, "alias."), strings.HasSuffix(name, "pager"), strings.HasSuffix(name, "fsmonitor") && value != "" && value != "false",
				strings.HasSuffix(name, "sshCommand"), strings.HasSuffix(name, "editor"), strings.HasSuffix(name, "hooksPath"), strings.Contains(name, "textconv"),
				strings.HasSuffix(name, ".cmd"), strings.HasSuffix(name, "askPass"), strings.HasSuffix(name, "helper"), strings.HasSuffix(name, "external"):
				return "git -c " + argv[i+1]
			}
		}
		if hasPrefixAny(a, "--exec-path=", "--upload-pack", "--receive-pack", "--exec=", "--open-files-in-pager", "ext::", "--config-env") || a == "-O" {
			return "git " + a
		}
	}
	return ""
}
