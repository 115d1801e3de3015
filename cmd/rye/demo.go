package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ryehq/rye/internal/scripted"
)

// newDemo is `rye demo`: the main job on a machine without an assistant. A scripted assistant asks to run
// one command, is allowed to, and runs one thing more.
func newDemo() *cobra.Command {
	var script string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the whole thing work: a scripted assistant does one thing more than was approved",
		Long: `Wraps a scripted assistant in an empty folder. It asks to run one command; the demo answers yes for you
when nobody is at a terminal. The assistant then runs that command, and something else that nobody allowed.
The verdict shows it. Nothing outside the folder is touched.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if script != "" {
				return playScript(script)
			}
			return demo(cmd)
		},
	}
	cmd.Flags().StringVar(&script, "assistant", "", "be the scripted assistant and play this `SCRIPT` (used by the demo itself)")
	cmd.Flags().MarkHidden("assistant")
	cmd.FParseErrWhitelist.UnknownFlags = true // an assistant's own flags, for rye to read as the user's words
	return cmd
}

func playScript(path string) error {
	s, err := scripted.Load(path)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if err := scripted.Play(s, os.Stdin, os.Stdout); err != nil {
		return &exitError{1, err}
	}
	return nil
}

var demoScript = scripted.Script{Steps: []scripted.Step{
	{Say: "I will look at the project first."},
	{
		Ask:   "ls -l && date +%Y > year.txt",
		Extra: [][]string{{"sh", "-c", "cp year.txt .hidden-copy && chmod 700 .hidden-copy"}},
	},
	{Say: "Done. I listed the files and wrote year.txt."},
}}

func demo(cmd *cobra.Command) error {
	fail := func(err error) error { return &exitError{exitOwnFailure, err} }
	exe, err := executable()
	if err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp("", "rye-demo-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "project")
	if err := os.Mkdir(work, 0o755); err != nil {
		return fail(err)
	}
	b, err := json.Marshal(demoScript)
	if err != nil {
		return fail(err)
	}
	script := filepath.Join(dir, "script.json")
	if err := os.WriteFile(script, b, 0o644); err != nil {
		return fail(err)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "$ rye wrap -- scripted-assistant\n")
	wrap := exec.Command(exe, "wrap", "--name", "demo", "--", exe, "demo", "--assistant", script)
	wrap.Dir = work
	if term.IsTerminal(0) && term.IsTerminal(1) {
		wrap.Stdin, wrap.Stdout, wrap.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = wrap.Run()
	} else {
		err = answered(cmd, wrap)
	}
	if err != nil {
		return fail(fmt.Errorf("run demo: %w", err))
	}
	fmt.Fprintf(out, "\n$ rye verify demo\n")
	h, err := openHome()
	if err != nil {
		return fail(err)
	}
	_, session, err := h.find("demo")
	if err != nil {
		return fail(err)
	}
	r, err := judge(session, h)
	if err != nil {
		return fail(err)
	}
	printReport(out, r)
	return nil
}

// answered runs the wrapped assistant in a pseudo-terminal and presses 1 when it asks.
func answered(cmd *cobra.Command, wrap *exec.Cmd) error {
	if !colour(cmd.OutOrStdout()) {
		wrap.Env = append(os.Environ(), "NO_COLOR=1") // the terminal between here and there has colours, this end has not
	}
	master, err := pty.StartWithAttrs(wrap, &pty.Winsize{Rows: 30, Cols: 100}, &syscall.SysProcAttr{Setsid: true, Setctty: true})
	if err != nil {
		return fmt.Errorf("start in a terminal: %w", err)
	}
	defer master.Close()
	seen, buf, pressed := "", make([]byte, 4096), false
	for {
		n, err := master.Read(buf)
		cmd.OutOrStdout().Write(buf[:n])
		seen += string(buf[:n])
		if !pressed && strings.Contains(seen, "proceed?") && strings.Contains(seen, "2. No") {
			pressed = true
			time.AfterFunc(500*time.Millisecond, func() { master.Write([]byte("1")) })
		}
		if err != nil { // EIO: the other side is closed
			break
		}
	}
	return wrap.Wait()
}
