package wrapper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ExecError says that the command could not be executed. Nothing of it has run.
type ExecError struct {
	Path string // as given or resolved
	Err  error  // an errno, or exec-specific sentinel
}

func (e *ExecError) Error() string { return fmt.Sprintf("execute %s: %v", e.Path, e.Err) }
func (e *ExecError) Unwrap() error { return e.Err }

// ExitCode is the status a shell gives in this case: 127 for a command that was not found, 126 for one that
// was found and cannot be executed.
func (e *ExecError) ExitCode() int {
	if errors.Is(e.Err, unix.ENOENT) || errors.Is(e.Err, unix.ENOTDIR) {
		return 127
	}
	return 126
}

// defaultPath is what execvp searches when there is no PATH.
const defaultPath = "/bin:/usr/bin"

// LookPath finds the executable for file as execvp(3) does: a name with a slash is taken as it is, others
// are looked up in the PATH of env. Relative results are relative to dir ("" for the working directory),
// where the command will start. The error is an [*ExecError].
func LookPath(file string, env []string, dir string) (string, error) {
	if file == "" {
		return "", &ExecError{file, unix.ENOENT}
	}
	if strings.Contains(file, "/") {
		if err := executable(file, dir); err != nil {
			return "", &ExecError{file, err}
		}
		return file, nil
	}
	path, ok := lookupEnv(env, "PATH")
	if !ok {
		path = defaultPath
	}
	found := error(unix.ENOENT)
	for _, d := range strings.Split(path, ":") {
		if d == "" {
			d = "."
		}
		name := d + "/" + file // not filepath.Join: the kernel gets what a shell would have passed
		err := executable(name, dir)
		if err == nil {
			return name, nil
		}
		// execvp goes on after EACCES but reports it when nothing better turns up. A folder that this user
		// may not look into holds nothing for him, as for a shell: not found, not forbidden.
		var st unix.Stat_t
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && unix.Stat(absolute(name, dir), &st) == nil {
			found = err
		}
	}
	return "", &ExecError{file, found}
}

func absolute(name, dir string) string {
	if dir != "" && !filepath.IsAbs(name) {
		return filepath.Join(dir, name)
	}
	return name
}

func executable(name, dir string) error {
	name = absolute(name, dir)
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	return unix.Faccessat(unix.AT_FDCWD, name, unix.X_OK, unix.AT_EACCESS)
}

// lookupEnv returns the last value of a name, as a process that builds a map from its environment sees it.
func lookupEnv(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// textScript reports whether a file the kernel refused with ENOEXEC may be a script without "#!", which
// execvp and every shell then give to /bin/sh. Like bash it takes a NUL in the first bytes for a binary.
func textScript(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false
	}
	return !strings.Contains(string(head[:n]), "\x00")
}
