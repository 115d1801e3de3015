package collector

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// envKept are the variables a verdict can need: how a command was started, by which call of the assistant,
// and what could change the program that a name means. Everything else is dropped before it is stored.
var envKept = []string{
	"AI_AGENT", "BASH_ENV", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SHELL_PREFIX",
	"CLAUDE_CONFIG_DIR", "CLAUDE_PID", "CODEX_CI", "CODEX_HOME", "CODEX_MANAGED_BY_NPM", "CODEX_PERMISSION_PROFILE", "CODEX_SESSION_ID",
	"CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION", "DOCKER_HOST", "ENV", "HOME", "IFS", "LD_AUDIT", "LD_LIBRARY_PATH",
	"LD_PRELOAD", "NODE_OPTIONS", "NO_PROXY", "PATH", "PERL5LIB", "PERL5OPT", "PROMPT_COMMAND", "PWD", "PYTHONPATH", "PYTHONSTARTUP",
	"RUBYOPT", "SHELLOPTS", "SSH_AUTH_SOCK", "TMPDIR", "npm_lifecycle_event",
}

var envPrefixKept = []string{"BASH_FUNC_", "CODEX_SANDBOX", "GIT_"}

var proxyVars = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}

// Cut stands for a value that was there and was not kept.
const Cut = "[cut]"

const envValueCap = 8192

// chosenEnv picks the kept variables out of an environment block. Values of anything that looks like a
// secret, and user information in proxy URLs, are cut.
func chosenEnv(block []byte) map[string]string {
	env := map[string]string{}
	for len(block) > 0 {
		entry, rest, _ := bytes.Cut(block, []byte{0})
		block = rest
		i := bytes.IndexByte(entry, '=')
		if i <= 0 {
			continue
		}
		name, value := string(entry[:i]), entry[i+1:]
		upper := strings.ToUpper(name)
		proxy := slices.Contains(proxyVars, upper)
		kept := proxy || upper == "NO_PROXY" || slices.Contains(envKept, name) || slices.ContainsFunc(envPrefixKept, func(p string) bool { return strings.HasPrefix(name, p) })
		if !kept {
			continue
		}
		if _, ok := env[name]; ok {
			continue // getenv(3) finds the first
		}
		switch {
		case secretName(upper):
			env[name] = Cut
		case proxy:
			env[name] = withoutUserinfo(string(value))
		default:
			env[name] = string(value[:min(len(value), envValueCap)])
		}
	}
	return env
}

// secretName reports whether a variable's name promises a secret. git's own numbered configuration keys
// (GIT_CONFIG_KEY_0) are names, their values may be anything.
func secretName(upper string) bool {
	if strings.HasPrefix(upper, "GIT_CONFIG_KEY_") {
		return false
	}
	for _, word := range []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "GIT_CONFIG_VALUE_", "GIT_CONFIG_PARAMETERS"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return false
}

func withoutUserinfo(value string) string {
	if !strings.Contains(value, "@") {
		return value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		// user:password@host without a scheme, or nothing that parses: keep what follows the last @
		scheme, rest, ok := strings.Cut(value, "://")
		if !ok {
			scheme, rest = "", value
		} else {
			scheme += "://"
		}
		return scheme + Cut + rest[strings.LastIndexByte(rest, '@'):]
	}
	if u.User != nil {
		u.User = nil
		return strings.Replace(u.String(), "://", "://"+Cut+"@", 1)
	}
	return value
}
