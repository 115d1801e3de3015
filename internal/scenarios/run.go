package scenarios

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/ryehq/rye/internal/scripted"
	"github.com/ryehq/rye/verify"
)

// A Lab runs scenarios with one build of rye.
type Lab struct {
	Dir     string // where sessions live; not below /tmp
	rye     string
	as      map[string]string // the scripted assistant under each name it plays
	goCache string
}

// NewLab makes the files of the assistants that are played: copies of rye, because rye knows an assistant by
// the file that the kernel executes.
func NewLab(dir, rye string) (*Lab, error) {
	l := &Lab{Dir: dir, rye: rye, as: map[string]string{"": rye}}
	b, err := os.ReadFile(rye)
	if err != nil {
		return nil, fmt.Errorf("read rye: %w", err)
	}
	for _, name := range []string{"claude", "codex"} {
		bin := filepath.Join(dir, "bin", name)
		if err := os.MkdirAll(filepath.Dir(bin), 0o755); err != nil {
			return nil, fmt.Errorf("make lab: %w", err)
		}
		if err := os.WriteFile(bin, b, 0o755); err != nil {
			return nil, fmt.Errorf("make lab: %w", err)
		}
		l.as[name] = bin
	}
	return l, l.warmGo()
}

// warmGo lends the scenarios this user's build cache, below the temporary folder: Go would compile its library
// for every one of them anew.
func (l *Lab) warmGo() error {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return nil // no Go here: the scenarios that need it will say so
	}
	if l.goCache, err = os.MkdirTemp("", "rye-scenarios-go-"); err != nil {
		return fmt.Errorf("make build cache: %w", err)
	}
	// Links, where the file system can: entries are written once. Without them the cache begins empty.
	_ = exec.Command("cp", "-al", strings.TrimSpace(string(out))+"/.", l.goCache).Run()
	return nil
}

// Close removes what the lab keeps outside its folder.
func (l *Lab) Close() error {
	if l.goCache == "" {
		return nil
	}
	return os.RemoveAll(l.goCache)
}

// A Result is what came of a scenario.
type Result struct {
	Report   *verify.Report
	Terminal string // what was on the terminal
	Dir      string
}

// patience bounds one session; none takes a tenth of it.
const patience = 60 * time.Second

// Run plays a scenario under rye wrap and judges it.
func (l *Lab) Run(s *Scenario) (*Result, error) {
	dir, err := os.MkdirTemp(l.Dir, "s-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	places := map[string]string{}
	for _, name := range []string{"ws", "out", "home", "tmp", "rye"} {
		places[name] = filepath.Join(dir, name)
		if err := os.Mkdir(places[name], 0o755); err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
	}
	fill := strings.NewReplacer("{WS}", places["ws"], "{OUT}", places["out"], "{HOME}", places["home"], "{TMP}", places["tmp"])
	env := append(environment(places), "GOCACHE="+l.goCache)
	if err := prepare(s, places["ws"], env, fill); err != nil {
		return nil, err
	}
	b, err := json.Marshal(scripted.Script{As: s.As, Mode: s.Mode, Steps: s.Steps})
	if err != nil {
		return nil, fmt.Errorf("write script: %w", err)
	}
	script := filepath.Join(dir, "script.json")
	if err := os.WriteFile(script, []byte(fill.Replace(string(b))), 0o644); err != nil {
		return nil, fmt.Errorf("write script: %w", err)
	}
	args := []string{"wrap", "-q", "--wait", "100ms", "--", l.as[s.As], "demo", "--assistant", script}
	cmd := exec.Command(l.rye, append(args, s.Flags...)...)
	cmd.Dir, cmd.Env = places["ws"], env
	var answers []string
	for _, a := range s.Answers {
		if a != "" {
			answers = append(answers, a)
		}
	}
	screen, err := play(cmd, s.Cols, answers)
	if err != nil {
		return nil, fmt.Errorf("%w; the terminal showed:\n%s", err, screen)
	}
	verdict := exec.Command(l.rye, "verify", "last", "--json")
	verdict.Env = env
	var stderr bytes.Buffer
	verdict.Stderr = &stderr
	out, err := verdict.Output()
	r := &Result{Report: &verify.Report{}, Terminal: screen, Dir: dir}
	if e := json.Unmarshal(out, r.Report); e != nil {
		return nil, fmt.Errorf("judge session: %w (%v): %s\n%s", e, err, stderr.Bytes(), screen)
	}
	return r, nil
}

func environment(places map[string]string) []string {
	return []string{
		"HOME=" + places["home"], "RYE_HOME=" + places["rye"], "TMPDIR=" + places["tmp"], "W=" + places["ws"], "OUT=" + places["out"],
		"PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash", "USER=root",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.invalid", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.invalid",
		"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "npm_config_offline=true", "PIP_NO_INDEX=1",
	}
}

func prepare(s *Scenario, ws string, env []string, fill *strings.Replacer) error {
	for _, f := range s.Files {
		path := fill.Replace(f.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(ws, path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make file: %w", err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(f.Text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(fill.Replace(f.Text)), mode); err != nil {
			return fmt.Errorf("make file: %w", err)
		}
	}
	for _, text := range s.Setup {
		cmd := exec.Command("bash", "-ec", fill.Replace(text))
		cmd.Dir, cmd.Env = ws, env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("set up: %w: %s", err, out)
		}
	}
	return nil
}

// play runs a command in a terminal and answers its questions.
func play(cmd *exec.Cmd, cols int, answers []string) (string, error) {
	m, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 45, Cols: uint16(cols)}, &syscall.SysProcAttr{Setsid: true, Setctty: true})
	if err != nil {
		return "", fmt.Errorf("start in a terminal: %w", err)
	}
	defer m.Close()
	timeout := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timeout.Stop()
	var seen strings.Builder
	buf := make([]byte, 65536)
	for asked := 0; ; {
		n, err := m.Read(buf)
		seen.Write(buf[:n])
		for ; strings.Count(seen.String(), scripted.Waiting) > asked; asked++ {
			if asked >= len(answers) {
				cmd.Process.Kill()
				cmd.Wait()
				return seen.String(), errors.New("a question that the scenario has no answer for")
			}
			for key := range strings.SplitSeq(answers[asked], ",") {
				time.Sleep(120 * time.Millisecond) // a person reads first
				m.Write([]byte(keyBytes(key)))
			}
		}
		if err != nil { // EIO: the other side is closed
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return seen.String(), fmt.Errorf("play scenario: %w", err)
	}
	return seen.String(), nil
}

func keyBytes(name string) string {
	switch name {
	case "enter":
		return "\r"
	case "esc":
		return "\x1b"
	case "down":
		return "\x1b[B"
	case "up":
		return "\x1b[A"
	}
	return name
}
