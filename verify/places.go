package verify

import (
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// places knows what the parts of this user's file system are for. Paths are compared as the kernel
// resolved them.
type places struct {
	workspace string
	home      string
	temp      string
	tempWide  bool // the workspace lies inside the temp folder, so being in it says little
	homes     []string
	search    []string // PATH of the session
}

func newPlaces(s *event.SessionStart) *places {
	if s == nil {
		return &places{}
	}
	p := &places{workspace: clean(s.Workspace), home: clean(s.Home), temp: clean(s.TempDir)}
	if p.workspace == "" {
		p.workspace = clean(s.CWD)
	}
	if p.temp == "" {
		p.temp = "/tmp"
	}
	p.tempWide = within(p.workspace, p.temp)
	for _, h := range s.AssistantHomes {
		if h = clean(h); h != "" && h != "/" {
			p.homes = append(p.homes, h)
		}
	}
	if p.home != "" {
		for _, d := range assistantHomes {
			p.homes = append(p.homes, path.Join(p.home, d))
		}
	}
	for _, d := range strings.Split(s.SearchDir, ":") {
		if d != "" && !slices.Contains(p.search, d) {
			p.search = append(p.search, d)
		}
	}
	return p
}

// Folders under the home where assistants keep their own state.
var assistantHomes = []string{
	".claude", ".claude.json", ".codex", ".copilot", ".config/github-copilot", ".gemini", ".cursor", ".aider",
	".config/opencode", ".local/share/opencode", ".local/state/opencode", ".config/goose", ".local/share/goose", ".local/state/goose",
	".local/share/claude", ".cache/claude", ".cache/claude-cli-nodejs", ".rye",
}

func clean(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// within reports whether a path is a folder or something in it.
func within(p, dir string) bool {
	return dir != "" && (p == dir || dir == "/" || strings.HasPrefix(p, dir) && len(p) > len(dir) && p[len(dir)] == '/')
}

// A class is what a path means when something writes to it.
type class struct {
	outside bool   // not workspace, temp folder or an assistant's own state
	cache   bool   // a tool's cache, log or history: outside, but of no weight by itself
	power   string // what it grants later: shell-startup, git-hook, cron, …
	rules   bool   // an assistant's own permissions, hooks, MCP servers or instructions
	mild    bool   // instructions: text for the model, not a permission
	unknown bool   // where it lies could not be told
}

func (c class) matters() bool { return c.outside || c.power != "" || c.rules }

// write classifies a path that is created, written, renamed to or deleted.
func (p *places) write(name string) class {
	if strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/dev/shm/") || strings.HasPrefix(name, "/proc/") && !strings.HasPrefix(name, "/proc/sys/") {
		return class{}
	}
	if !path.IsAbs(name) { // memfd:…, pipe:[…], (unreachable)…
		return class{}
	}
	var c class
	c.rules, c.mild = p.assistantRules(name)
	c.power = p.power(name)
	switch {
	case within(name, p.workspace):
		if c.power == "path-folder" {
			c.power = ""
		}
	case p.inHomes(name), p.isTemp(name):
	default:
		c.outside = true
		c.cache = p.isCache(name)
	}
	return c
}

func (p *places) inHomes(name string) bool {
	return slices.ContainsFunc(p.homes, func(h string) bool { return within(name, h) || strings.HasPrefix(name, h+".") })
}

// isTemp reports whether a path is scratch. When the workspace itself lies in the temp folder, only
// what looks like a scratch name counts: a folder beside the workspace may be anything.
func (p *places) isTemp(name string) bool {
	if strings.HasPrefix(name, "/dev/shm/") {
		return true
	}
	if within(name, p.home) && within(p.home, p.temp) {
		return false
	}
	for _, t := range []string{"/tmp", "/var/tmp"} {
		if within(name, t) && p.temp != t && !within(p.workspace, t) && !within(p.home, t) {
			return true
		}
	}
	if !within(name, p.temp) {
		return false
	}
	if !p.tempWide {
		return true
	}
	rest := strings.TrimPrefix(name[len(p.temp):], "/")
	first, below, _ := strings.Cut(rest, "/")
	if below == "" {
		return true
	}
	for _, s := range []string{"tmp", "claude-", "codex-", "cc-socks", "go-build", "npm-", "pip-", "node-", "cargo-", "rustc", ".X11", ".ICE", "cc", "sh-thd"} {
		if strings.HasPrefix(first, s) {
			return true
		}
	}
	return false
}

var caches = []string{
	".cache", ".npm", ".yarn", ".pnpm-store", ".local/share/pnpm", ".cargo/registry", ".cargo/git", ".rustup", "go/pkg", ".m2",
	".gradle", ".ivy2", ".nuget", ".bun/install/cache", ".deno", ".conda/pkgs", ".config/configstore", ".node-gyp", ".electron",
	".composer/cache", ".config/go/telemetry", ".gem", ".bundle/cache", ".pub-cache", ".local/state", ".local/share/uv", ".local/share/virtualenv",
	".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".lesshst", ".viminfo", ".wget-hsts", ".sqlite_history",
}

func (p *places) isCache(name string) bool {
	for _, s := range []string{"/var/cache", "/var/log", "/run/user"} {
		if within(name, s) {
			return true
		}
	}
	rel, ok := p.inHome(name)
	return ok && slices.ContainsFunc(caches, func(c string) bool { return within(rel, c) })
}

func (p *places) inHome(name string) (rel string, ok bool) {
	if p.home == "" || p.home == "/" {
		return "", false
	}
	return strings.CutPrefix(name, p.home+"/")
}

// power names what a file makes happen later, without anyone being asked.
func (p *places) power(name string) string {
	base := path.Base(name)
	if i := strings.Index(name, "/.git/hooks/"); i >= 0 && !strings.HasSuffix(base, ".sample") {
		return "git-hook"
	}
	if base == ".envrc" || strings.Contains(name, "/shell-snapshots/") || strings.Contains(name, "/shell_snapshots/") {
		return "shell-startup"
	}
	if strings.HasSuffix(name, "/.vscode/tasks.json") {
		return "editor-task"
	}
	if rel, ok := p.inHome(name); ok {
		for _, x := range homePower {
			if within(rel, x.path) {
				return x.power
			}
		}
	}
	for _, x := range systemPower {
		if within(name, x.path) || strings.HasSuffix(x.path, "*") && strings.HasPrefix(name, strings.TrimSuffix(x.path, "*")) {
			return x.power
		}
	}
	if slices.Contains(p.search, path.Dir(name)) {
		return "path-folder"
	}
	return ""
}

type powerPlace struct{ path, power string }

var homePower = []powerPlace{
	{".bashrc", "shell-startup"}, {".bash_profile", "shell-startup"}, {".bash_login", "shell-startup"}, {".bash_logout", "shell-startup"},
	{".bash_aliases", "shell-startup"}, {".profile", "shell-startup"}, {".zshrc", "shell-startup"}, {".zshenv", "shell-startup"}, {".zprofile", "shell-startup"},
	{".zlogin", "shell-startup"}, {".config/fish", "shell-startup"}, {".xprofile", "shell-startup"}, {".xinitrc", "shell-startup"},
	{".pam_environment", "shell-startup"}, {".config/environment.d", "shell-startup"}, {".inputrc", "shell-startup"},
	{".ssh", "ssh"}, {".aws", "cloud-keys"}, {".azure", "cloud-keys"}, {".config/gcloud", "cloud-keys"}, {".kube", "cloud-keys"}, {".gnupg", "keys"},
	{".gitconfig", "git-config"}, {".config/git/config", "git-config"}, {".config/git/attributes", "git-config"}, {".config/autostart", "autostart"}, {".config/systemd/user", "systemd-unit"},
	{".local/share/systemd/user", "systemd-unit"}, {".vimrc", "editor-startup"}, {".config/nvim", "editor-startup"}, {".emacs", "editor-startup"},
	{".emacs.d", "editor-startup"}, {".npmrc", "package-manager"}, {".config/pip", "package-manager"}, {".docker/config.json", "keys"},
}

var systemPower = []powerPlace{
	{"/etc/cron*", "cron"}, {"/var/spool/cron", "cron"}, {"/var/spool/at", "cron"}, {"/etc/anacrontab", "cron"},
	{"/etc/systemd", "systemd-unit"}, {"/usr/lib/systemd", "systemd-unit"}, {"/lib/systemd", "systemd-unit"}, {"/run/systemd", "systemd-unit"},
	{"/etc/profile*", "shell-startup"}, {"/etc/bash.bashrc", "shell-startup"}, {"/etc/zsh", "shell-startup"}, {"/etc/environment", "shell-startup"},
	{"/etc/ld.so*", "loader"}, {"/etc/sudoers*", "sudo"}, {"/etc/passwd", "accounts"}, {"/etc/shadow", "accounts"}, {"/etc/group", "accounts"},
	{"/etc/pam.d", "accounts"}, {"/etc/init.d", "boot"}, {"/etc/rc.local", "boot"}, {"/boot", "boot"}, {"/lib/modules", "boot"},
	{"/etc/ssh", "ssh"}, {"/root/.ssh", "ssh"}, {"/etc/gitconfig", "git-config"},
}

// assistantRules tells the files that decide what an assistant may do, or what it is told to do.
func (p *places) assistantRules(name string) (rules, mild bool) {
	base := path.Base(name)
	switch base {
	case "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", "copilot-instructions.md", ".cursorrules":
		return true, true
	case ".mcp.json", ".claude.json":
		return true, false
	}
	if i := strings.LastIndex(name, "/.claude/"); i >= 0 {
		rest := name[i+len("/.claude/"):]
		return strings.HasPrefix(rest, "settings") && strings.HasSuffix(rest, ".json") || strings.HasPrefix(rest, "hooks/") ||
			strings.HasPrefix(rest, "agents/") || strings.HasPrefix(rest, "commands/") || strings.HasPrefix(rest, "skills/"), false
	}
	if i := strings.LastIndex(name, "/.codex/"); i >= 0 {
		rest := name[i+len("/.codex/"):]
		return rest == "config.toml" || rest == "hooks.json" || strings.HasPrefix(rest, "rules/"), false
	}
	for _, s := range []string{"/.cursor/mcp.json", "/.cursor/cli-config.json", "/.gemini/settings.json", "/opencode/opencode.json"} {
		if strings.HasSuffix(name, s) {
			return true, false
		}
	}
	return within(name, "/etc/codex") || within(name, "/etc/claude-code") || strings.Contains(name, "/.cursor/rules/") || strings.Contains(name, "/.gemini/policies/"), false
}
