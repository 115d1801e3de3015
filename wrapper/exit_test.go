package wrapper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExitStatus(t *testing.T) {
	for _, code := range []int{0, 1, 2, 42, 126, 127, 128, 255} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			x := newOuter(t, outerOptions{}, "sh", "-c", fmt.Sprintf("exit %d", code))
			x.wantExit(code)
			x.wantRestored()
			if r := x.result(); r.ExitCode != code || r.Signal != 0 || r.Name != "" {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestExitSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGSEGV, unix.SIGPIPE, unix.SIGUSR1, unix.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			x := newOuter(t, outerOptions{}, "sh", "-c", fmt.Sprintf("stty raw -echo; kill -%d $$", int(sig)))
			x.wantExit(128 + int(sig))
			x.wantRestored()
			if r := x.result(); r.Signal != sig || r.Name != unix.SignalName(sig) {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestSignalName(t *testing.T) {
	for _, tt := range []struct {
		sig  syscall.Signal
		want string
	}{{0, ""}, {unix.SIGKILL, "SIGKILL"}, {35, "SIG35"}} {
		if got := (Result{Signal: tt.sig}).SignalName(); got != tt.want {
			t.Errorf("SignalName of %d = %q, want %q", int(tt.sig), got, tt.want)
		}
	}
}

// TestExecFailure: nothing of the command has run, and the terminal is as before.
func TestExecFailure(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tt := range []struct {
		name    string
		command string
		code    int
		message string
	}{
		{"no such name", "no-such-command-at-all", 127, "no such file"},
		{"no such file", filepath.Join(dir, "none"), 127, "no such file"},
		{"no interpreter", write("interp", "#!/no/such/interpreter\n", 0o755), 127, "no such file"},
		{"not executable", write("plain", "echo hi\n", 0o644), 126, "permission denied"},
		{"directory", dir, 126, "is a directory"},
		{"binary of another kind", write("binary", "\x7fELF\x00\x00\x00 not one", 0o755), 126, "exec format"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newOuter(t, outerOptions{}, tt.command)
			x.wantExit(tt.code)
			x.wantRestored()
			if out := string(x.output()); !strings.Contains(out, tt.message) {
				t.Errorf("output %q does not say %q", out, tt.message)
			}
			if _, err := os.Stat(x.file("result")); err == nil {
				t.Error("a session was made")
			}
		})
	}
}

// TestScriptWithoutInterpreter: every shell and execvp run such a file with sh.
func TestScriptWithoutInterpreter(t *testing.T) {
	x := newOuter(t, outerOptions{}, script(t, `
echo "args $# $1"; exit 7`), "a b", "c")
	x.wantExit(7)
	if out := string(x.output()); out != "args 2 a b\r\n" {
		t.Errorf("output %q", out)
	}
}

func TestDirMissing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	_, err = Start(Options{Argv: []string{"true"}, Dir: "/no/such/dir", Stdin: r, Stdout: w, Stderr: w})
	var ee *ExecError
	if err == nil || !errors.Is(err, unix.ENOENT) || errors.As(err, &ee) || !strings.Contains(err.Error(), "/no/such/dir") {
		t.Errorf("error %v: want one about the directory", err)
	}
}

func TestBeforeExecRefuses(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	x := newOuter(t, outerOptions{fault: "exec-hook"}, "touch", made)
	x.wantExit(125)
	x.wantRestored()
	if out := string(x.output()); !strings.Contains(out, "hook says no") {
		t.Errorf("output %q", out)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("the command ran")
	}
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a/tool", 0o644)
	write("b/tool", 0o755)
	write("a/locked", 0o644)
	write("here", 0o755)
	if err := os.Mkdir(filepath.Join(dir, "c/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := func(s string) []string { return []string{"PATH=/wrong", "PATH=" + s} }
	a, b, c := dir+"/a", dir+"/b", dir+"/c"
	for _, tt := range []struct {
		name, file string
		env        []string
		dir        string
		want       string
		code       int
	}{
		{"skips what is not executable", "tool", path(a + ":" + b), "", b + "/tool", 0},
		{"skips directories", "tool", path(c + ":" + b), "", b + "/tool", 0},
		{"remembers what was not executable", "locked", path(a + ":/none:" + b), "", "", 126},
		{"not found", "absent", path(a + ":" + b), "", "", 127},
		{"not found in a file", "absent", path(a + "/tool"), "", "", 127},
		{"empty name", "", path(a), "", "", 127},
		{"empty element is the directory", "here", path(a + "::" + b), dir, "./here", 0},
		{"relative element", "tool", path("b"), dir, "b/tool", 0},
		{"slash is not looked up", "b/tool", path("/none"), dir, "b/tool", 0},
		{"slash not found", "d/tool", path(b), dir, "", 127},
		{"slash not executable", a + "/tool", path(b), "", "", 126},
		{"no PATH", "sh", nil, "", "/bin/sh", 0},
		{"empty PATH", "here", []string{"PATH="}, dir, "./here", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := LookPath(tt.file, tt.env, tt.dir)
			code := 0
			var ee *ExecError
			if errors.As(err, &ee) {
				code = ee.ExitCode()
			}
			if got != tt.want || code != tt.code || (err == nil) != (tt.code == 0) {
				t.Errorf("LookPath = %q, %v (status %d); want %q, status %d", got, err, code, tt.want, tt.code)
			}
		})
	}
}
