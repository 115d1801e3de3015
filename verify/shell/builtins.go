package shell

// builtins are the commands that bash, dash and zsh do themselves when a text calls them. Behind an
// external wrapper (timeout 5 echo) they are programs again.
var builtins = set(
	".", ":", "[", "[[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen",
	"complete", "compopt", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec",
	"exit", "export", "false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let",
	"local", "logout", "mapfile", "popd", "print", "printf", "pushd", "pwd", "read", "readarray", "readonly",
	"return", "set", "setopt", "shift", "shopt", "source", "suspend", "test", "times", "trap", "true",
	"type", "typeset", "ulimit", "umask", "unalias", "unset", "unsetopt", "wait",
)

// shells are programs that read shell text.
var shells = set("sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "lksh", "rbash", "yash", "fish")

// interpreters take code on standard input when they get no file.
var interpreters = set("python", "python2", "python3", "perl", "ruby", "node", "nodejs", "php", "lua", "deno", "bun", "Rscript", "tclsh", "osascript")

// IsShell reports whether a program of that base name reads shell text.
func IsShell(base string) bool { return shells[base] }

// IsBuiltin reports whether a shell does that command itself.
func IsBuiltin(name string) bool { return builtins[name] }

// A wrapper is a program whose arguments name another program to run in its place.
type wrapper struct {
	args     string // options, separated by spaces, that take the next word as their value
	operands int    // words before the command (timeout's duration)
	assigns  bool   // NAME=value words may stand before the command
	code     string // option whose value is shell text (flock -c)
}

var wrappers = map[string]wrapper{
	"env":              {args: "-u --unset -C --chdir", assigns: true},
	"timeout":          {args: "-s --signal -k --kill-after", operands: 1},
	"nice":             {args: "-n --adjustment"},
	"nohup":            {},
	"setsid":           {},
	"stdbuf":           {args: "-i --input -o --output -e --error"},
	"ionice":           {args: "-c --class -n --classdata"},
	"chrt":             {args: "-T -P -D --sched-runtime --sched-period --sched-deadline", operands: 1},
	"taskset":          {operands: 1},
	"time":             {args: "-f --format -o --output"},
	"sudo":             {args: "-u --user -g --group -h --host -p --prompt -C -T -r --role -t --type -D --chdir -R --chroot -U", assigns: true},
	"doas":             {args: "-u -C"},
	"strace":           {args: "-e -o -p -s -u -E -P -I -O -S -a -b -X --output --trace"},
	"ltrace":           {args: "-e -o -p -s -u -l -n -x -a -A -D -F -w"},
	"flock":            {args: "-w --wait --timeout -E --conflict-exit-code", operands: 1, code: "-c"},
	"unshare":          {args: "-S --setuid -G --setgid -R --root -w --wd"},
	"nsenter":          {args: "-t --target -S --setuid -G --setgid"},
	"chroot":           {operands: 1},
	"setpriv":          {},
	"prlimit":          {args: "-p --pid"},
	"setarch":          {operands: 1},
	"linux64":          {},
	"runuser":          {args: "-u --user -g --group -G -s --shell", code: "-c"},
	"su":               {args: "-g -G -s --shell -w", code: "-c", operands: 99},
	"script":           {args: "-I -O -B -T -m -E -o", code: "-c", operands: 99},
	"exec":             {args: "-a"},
	"command":          {},
	"builtin":          {},
	"noglob":           {},
	"caffeinate":       {args: "-t -w"},
	"xvfb-run":         {args: "-n -s -e -f -p -w --server-num --server-args"},
	"dbus-run-session": {args: "--config-file --dbus-daemon"},
	"watch":            {args: "-n --interval -q --equexit -s --shotsdir", code: "words"},
	"busybox":          {},
	"toybox":           {},
	"ld.so":            {args: "--library-path --preload --audit --argv0 --glibc-hwcaps-mask"},
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// Wraps reports whether a program of that base name does nothing of its own but start another.
func Wraps(base string) bool { _, ok := wrappers[base]; return ok }
