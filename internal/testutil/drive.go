package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A Key is typed when Wait has appeared on the terminal since the last one.
type Key struct {
	Wait  string        // text, escapes and white space left out
	Send  string        //
	Pause time.Duration // after the text appeared; 0 for 600 ms
	Do    func()        // called before Send is typed
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?<>=:]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[@-Z\\-_=>78]`)

func visible(s string) string {
	return strings.Join(strings.Fields(escapes.ReplaceAllString(s, "")), "")
}

// Drive runs cmd in a terminal of the given size, types keys as they are waited for, and returns all
// output when the command ends. A text that never comes within 40 s fails the test.
func Drive(t testing.TB, cmd *exec.Cmd, cols, rows int, keys []Key) string {
	t.Helper()
	m, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}, &syscall.SysProcAttr{Setsid: true, Setctty: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	type chunk struct {
		b   []byte
		err error
	}
	in := make(chan chunk, 64)
	go func() {
		for {
			buf := make([]byte, 65536)
			n, err := m.Read(buf)
			in <- chunk{buf[:n], err}
			if err != nil {
				return
			}
		}
	}()
	all, seen, closed := "", "", false
	take := func(c chunk) {
		s := string(c.b)
		all, seen = all+s, seen+s
		// What terminals answer, so that full-screen programs start.
		for q, a := range map[string]string{"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?1;2c", "\x1b[?u": "\x1b[?0u"} {
			if strings.Contains(s, q) {
				m.Write([]byte(a))
			}
		}
		closed = closed || c.err != nil
	}
	pump := func(d time.Duration) {
		end := time.After(d)
		for !closed {
			select {
			case c := <-in:
				take(c)
			case <-end:
				return
			}
		}
	}
	for _, k := range keys {
		want, deadline := visible(k.Wait), time.Now().Add(40*time.Second)
		for !strings.Contains(visible(seen), want) {
			if closed || time.Now().After(deadline) {
				cmd.Process.Kill()
				cmd.Wait()
				t.Fatalf("%q never came; the terminal showed:\n%s", k.Wait, tail(visible(all), 3000))
			}
			pump(100 * time.Millisecond)
		}
		pause := k.Pause
		if pause == 0 {
			pause = 600 * time.Millisecond
		}
		pump(pause)
		seen = ""
		if k.Do != nil {
			k.Do()
		}
		m.Write([]byte(k.Send))
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	for end := time.After(60 * time.Second); ; {
		select {
		case c := <-in:
			take(c)
		case <-done:
			pump(200 * time.Millisecond)
			return all
		case <-end:
			cmd.Process.Kill()
			t.Fatalf("the command did not end; the terminal showed:\n%s", tail(visible(all), 3000))
		}
	}
}

func tail(s string, n int) string { return s[max(len(s)-n, 0):] }

// Assistant returns the path of a real assistant (codex, claude) that `make test-deps` installed.
func Assistant(t testing.TB, name string) string {
	t.Helper()
	cache := os.Getenv("RYE_CACHE")
	if cache == "" {
		cache = Root() + "/.cache"
	}
	path := fmt.Sprintf("%s/npm/node_modules/.bin/%s", cache, name)
	if _, err := os.Stat(path); err != nil {
		Skip(t, "no %s here (make test-deps installs it where npm can be reached)", name)
	}
	return path
}

// Rye returns the path of the program under test: RYE_BIN, else one built now without cgo (capabilities can
// only be dropped on all threads without it).
func Rye(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv("RYE_BIN"); bin != "" {
		return bin
	}
	out := t.TempDir() + "/rye"
	cmd := exec.Command("go", "build", "-o", out, "./cmd/rye")
	cmd.Dir, cmd.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build rye: %v\n%s", err, b)
	}
	return out
}
