// Package wrapper runs a command the way the user's shell would have run it, and keeps a copy of what
// passes between the command and the terminal.
//
// Three processes take part:
//
//	rye ── monitor ── command
//
// rye (the front) stays in the shell's job, holds the user's terminal in raw mode and relays bytes between
// it and a pseudo-terminal. The monitor leads the session that has this pseudo-terminal as its controlling
// terminal, and is the command's parent. It is there because the kernel discards SIGTSTP, SIGTTIN and SIGTTOU
// in an orphaned process group, and a group is orphaned unless some member has its parent in another group
// of the same session (POSIX 3.264): a command that leads its own session could never be stopped with
// Ctrl-Z. The monitor is this same executable, started again (see [init]); it also puts the terminal
// right when rye itself is killed or panics.
//
// Each of the three standard descriptors that is not the user's terminal is handed to the command as it is:
// same open file description, no copy, no bytes seen. Descriptors that rye inherited and that are not
// close-on-exec (bash's <(...), make's job server) are inherited by the command too.
//
// What differs from running the command directly, as far as known:
//
//   - Bytes typed while the command runs in the foreground are read by rye at once. What the command did not
//     read before it ended is lost, where it would have been left for the shell.
//   - A process that outlives the command finds its terminal hung up (writes fail with EIO).
//   - SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1 and SIGUSR2 that were ignored when rye started are back at their
//     default in the command: the Go runtime replaces these dispositions before any code can read them.
//     SIGHUP, SIGINT and the job control signals stay ignored, so nohup works.
//   - GPG_TTY, if it names the user's terminal, names the pseudo-terminal in the command's environment.
//   - In a pipeline, or when rye is in the background, the command starts as a background process group
//     of the pseudo-terminal and comes to the foreground when it first reads or sets the terminal.
//
// The recording holds what was typed, but for what was typed blind: while the terminal is in line mode without echo,
// which is how passwords are asked for, each byte is recorded as an asterisk.
//
// Package wrapper imports the standard library, creack/pty and golang.org/x/sys. It knows nothing of the
// other packages; the screen model that reads the copy is wrapper/screen, and cmd/rye joins the two.
package wrapper
