package verify

import (
	"strings"

	"github.com/ryehq/rye/event"
)

// The chains below are those of the recorded execve traces, with the same argv shapes.

const codexBin = "/opt/codex/bin/codex"

// snapshotPreamble is the text Codex puts before a command, in the form of 0.171 with fewer variables.
func snapshotPreamble(cmd string) string {
	q := strings.ReplaceAll(cmd, "'", `'"'"'`)
	return "__CODEX_SNAPSHOT_OVERRIDE_SET_0=\"${CODEX_THREAD_ID+x}\"\n__CODEX_SNAPSHOT_OVERRIDE_0=\"${CODEX_THREAD_ID-}\"\n" +
		"__CODEX_SNAPSHOT_PROXY_OVERRIDE_SET_0=\"${ALL_PROXY+x}\"\n__CODEX_SNAPSHOT_PROXY_OVERRIDE_0=\"${ALL_PROXY-}\"\n" +
		"__CODEX_SNAPSHOT_PROXY_ENV_SET=\"${CODEX_NETWORK_PROXY_ACTIVE+x}\"\n\n" +
		"if . '/home/dev/.codex/shell_snapshots/01a2318e.1796127770231588731.sh' >/dev/null 2>&1; then :; fi\n\n" +
		"if [ -n \"${__CODEX_SNAPSHOT_OVERRIDE_SET_0}\" ]; then export CODEX_THREAD_ID=\"${__CODEX_SNAPSHOT_OVERRIDE_0}\"; else unset CODEX_THREAD_ID; fi\n" +
		"if [ -n \"$__CODEX_SNAPSHOT_PROXY_ENV_SET\" ] || [ -n \"${CODEX_NETWORK_PROXY_ACTIVE+x}\" ]; then\n" +
		"if [ -n \"${__CODEX_SNAPSHOT_PROXY_OVERRIDE_SET_0}\" ]; then export ALL_PROXY=\"${__CODEX_SNAPSHOT_PROXY_OVERRIDE_0}\"; else unset ALL_PROXY; fi\nfi\n\n" +
		"exec '/bin/bash' -c '" + q + "'"
}

func newCodex(l *lab) *proc { return l.root }

// codexRun is one exec_command outside the sandbox: one process, four execs if CMD is a simple command.
// It returns the process as it runs bash -c CMD.
func codexRun(by *proc, callID, cmd string) *proc {
	p := by.fork()
	p.env["CODEX_TOOL_CALL_ID"], p.env["CODEX_THREAD_ID"] = callID, "t1"
	pre := snapshotPreamble(cmd)
	p.execAs(event.ProcessExec{Path: "/proc/self/exe", Exe: codexBin,
		Argv: []string{"/proc/self/exe", "--codex-run-as-process-setup", "44", "26612", "pipe", "", labWork, "/bin/bash", "/bin/bash", "-c", pre}})
	p.exec("/bin/bash", "-c", pre)
	return p.exec("/bin/bash", "-c", cmd)
}

const permissionProfile = `{"type":"managed","file_system":{"type":"restricted","entries":[]},"network":"restricted"}`

// codexSandboxed is the same inside the sandbox: five processes and a probe.
func codexSandboxed(by *proc, callID, cmd string) *proc {
	const arg0 = "/home/dev/.codex/tmp/arg0-linux/codex-arg0KH1BIy/codex-linux-sandbox"
	pre := snapshotPreamble(cmd)
	box := []string{arg0, "--sandbox-policy-cwd", labWork, "--command-cwd", labWork, "--permission-profile", permissionProfile, "--", "/bin/bash", "-c", pre}
	p := by.fork()
	p.env["CODEX_TOOL_CALL_ID"], p.env["CODEX_THREAD_ID"], p.env["CODEX_SANDBOX_NETWORK_DISABLED"] = callID, "t1", "1"
	p.execAs(event.ProcessExec{Path: "/proc/self/exe", Exe: codexBin,
		Argv: append([]string{"/proc/self/exe", "--codex-run-as-process-setup", "44", "28929", "pipe", "", labWork, arg0}, box...)})
	p.execAs(event.ProcessExec{Path: arg0, Exe: codexBin, Argv: box})
	const bwrap = "/opt/codex/codex-resources/bwrap"
	probe := p.spawnAs(event.ProcessExec{Path: "/proc/self/fd/3", Exe: bwrap, Argv: []string{"bwrap", "--as-pid-1", "--new-session", "--tmpfs", "/", "--unshare-user", "--cap-drop", "ALL", "--", "/usr/bin/true"}})
	probe.run("/usr/bin/true")
	probe.exit()
	b := p.spawnAs(event.ProcessExec{Path: "/proc/self/fd/3", Exe: bwrap, Argv: []string{"bwrap", "--as-pid-1", "--ro-bind", "/", "/", "--bind", labWork, labWork, "--argv0", "codex-linux-sandbox", "--", codexBin, "--apply-seccomp-then-exec", "--", "/bin/bash", "-c", pre}})
	s := b.spawnAs(event.ProcessExec{Path: codexBin, Exe: codexBin, Argv: []string{"codex-linux-sandbox", "--sandbox-policy-cwd", labWork, "--command-cwd", labWork, "--permission-profile", permissionProfile, "--apply-seccomp-then-exec", "--", "/bin/bash", "-c", pre}})
	c := s.spawn("/bin/bash", "-c", pre)
	return c.exec("/bin/bash", "-c", cmd)
}

// codexStartup is what Codex runs for itself when it starts.
func codexStartup(by *proc) {
	git := func(args ...string) {
		by.run(append([]string{"git", "-c", "safe.bareRepository=explicit", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"}, args...)...)
	}
	ls := by.spawn("/usr/bin/git", "-c", "safe.bareRepository=explicit", "ls-remote", "https://github.com/openai/plugins.git", "HEAD")
	ls.spawn("/usr/lib/git-core/git", "remote-https", "https://github.com/openai/plugins.git", "https://github.com/openai/plugins.git").
		run("/usr/lib/git-core/git-remote-https", "https://github.com/openai/plugins.git", "https://github.com/openai/plugins.git")
	git("rev-parse", "--git-dir")
	git("rev-parse", "HEAD")
	git("rev-parse", "--abbrev-ref", "HEAD")
	git("remote", "get-url", "origin")
	by.run("/bin/bash", "-lc", "if [ -z \"${BASH_ENV-}\" ] && [ -n \"${HOME-}\" ] && [ -r \"$HOME/.bashrc\" ]; then\n  . \"$HOME/.bashrc\"\nfi\necho '# Snapshot file'\nprintf '%s' \"$__codex_snapshot_export_name\"\n")
	by.run("/bin/bash", "-c", `set -e; . "/home/dev/.codex/shell_snapshots/01a2318e.tmp-1796127770231588731"`)
	git("config", "--null", "--get-regexp", `^(remote\.|url\.)`)
	by.run("git", "-c", "safe.bareRepository=explicit", "config", "--null", "--get", "core.fsmonitor")
	git("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--ignore-submodules=dirty")
}

const (
	claudeBin  = "/opt/claude/claude"
	claudeSnap = "/home/dev/.claude/shell-snapshots/snapshot-bash-1796128246675-xfap39.sh"
)

func shquote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }

// claudeScript is the text Claude Code gives to bash, per version.
func claudeScript(version, cmd string) []string {
	const unset = " >/dev/null 2>&1 || true"
	switch version {
	case "1.0.60": // a command without a pipe
		return []string{"/bin/bash", "-c", "-l", "source " + claudeSnap + " && eval " + shquote(cmd) + ` \< /dev/null && pwd -P >| /tmp/claude-58e5-cwd`}
	case "2.0.76":
		return []string{"/bin/bash", "-c", "-l", "source " + claudeSnap + " && { shopt -u extglob || setopt NO_EXTENDED_GLOB; } 2>/dev/null || true && eval " + shquote(cmd) + ` \< /dev/null && pwd -P >| /tmp/claude-ea15-cwd`}
	case "2.1.112":
		return []string{"/bin/bash", "-c", "source " + claudeSnap + " 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval " + shquote(cmd) + " < /dev/null && pwd -P >| /tmp/claude-a164-cwd"}
	}
	return []string{"/bin/bash", "-c", `{ case "${BASH_VERSINFO-}" in '2'|'3') \builtin printf '%s\n' '__CLAUDE_CODE_DID_NOT_RUN_BASH_TOO_OLD='"${BASH_VERSION-}" >&2; \builtin exit 126; \exit 126;; esac; } && source ` +
		claudeSnap + ` 2>/dev/null || true && \builtin shopt -u extglob 2>/dev/null || true && { \builtin unalias -- 'which'; \builtin unset -f -- 'which'; }` + unset +
		` && { \builtin unalias -- 'unsetenv'; \builtin unset -f -- 'unsetenv'; }` + unset + " && eval " + shquote(cmd) + " < /dev/null && pwd -P >| /tmp/claude-225f-cwd"}
}

// claudeRun is one Bash tool call.
func claudeRun(by *proc, version, cmd string) *proc {
	p := by.fork()
	p.env["CLAUDECODE"] = "1"
	if version == "2.1.332" {
		p.env["AI_AGENT"], p.env["CLAUDE_CODE_SESSION_ID"] = "claude-code_2-1-332_agent", "c1"
	}
	return p.exec(claudeScript(version, cmd)...)
}

// claudeStartup is what Claude Code 2.1.332 runs for itself when it starts.
func claudeStartup(by *proc) {
	p := by.fork().with("AI_AGENT", "claude-code_2-1-332_harness")
	p.exec("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "-c", "safe.bareRepository=explicit", "-c", "protocol.file.allow=never", "ls-files", "--error-unmatch", "--", ":(icase).claude/settings.local.json").exit()
	p = by.fork().with("AI_AGENT", "claude-code_2-1-332_harness")
	p.exec("/usr/bin/git", "-c", "core.askPass=", "-c", "protocol.ext.allow=never", "-c", "core.alternateRefsCommand=f() { git --git-dir=\"$1\" for-each-ref --format='%(objectname)'; }; f",
		"-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "hook.pre-commit.enabled=false", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "remote", "get-url", "origin").exit()
	p = by.fork().with("AI_AGENT", "claude-code_2-1-332_harness").with("CLAUDECODE", "1")
	p.exec("/bin/bash", "-c", "env").exec("env").exit()
	p = by.fork().with("AI_AGENT", "claude-code_2-1-332_harness").with("CLAUDECODE", "1")
	p.exec("/bin/bash", "-c", "-l", "SNAPSHOT_FILE="+claudeSnap+"\n      source \"/home/dev/.bashrc\" < /dev/null\n      echo \"# Snapshot file\" >| \"$SNAPSHOT_FILE\"\n")
	p.run("id", "-u")
	p.run("awk", `$2 == "on" {print "set -o " $1}`)
	p.exit()
}
