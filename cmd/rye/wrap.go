package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/wrapper"
)

type wrapConfig struct {
	name        string
	jsonSummary string
	wait        time.Duration
	quiet       bool
	noRecording bool
	tier        string
	hooks       bool
	net         netConfig
	argv        []string
}

func newWrap() *cobra.Command {
	var c wrapConfig
	cmd := &cobra.Command{
		Use:   "wrap [flags] -- COMMAND [ARG…]",
		Short: "Run a command and record what it really does",
		Long: `Runs COMMAND unchanged, in its own cgroup and pseudo-terminal, and records every exec, file open and
connect of it and its descendants from the kernel, the approval dialogs on the terminal, and what the
assistant's own transcript says. Ends with COMMAND's exit status (128+N when signal N ended it), or 125
when rye itself failed before it could start.

Without the capabilities to load kernel programs the command runs all the same; rye says so and the
verdict is indeterminate. rye doctor tells what is missing.`,
		Example: `  rye wrap -- codex
  rye wrap --name release -- make release
  rye wrap --json-summary out.json -- claude -p 'run the tests'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkTier(c.tier); err != nil {
				return &exitError{exitOwnFailure, err}
			}
			c.argv = args
			status, err := run(c)
			if err != nil {
				return &exitError{wrapFailure(err), err}
			}
			if status != 0 {
				return &exitError{code: status}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&c.name, "name", "", "name the session, for use instead of its id")
	f.StringVar(&c.jsonSummary, "json-summary", "", "write the summary and verdict as JSON to `FILE`")
	f.DurationVar(&c.wait, "wait", 3*time.Second, "how long to wait for processes that outlive the command")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "print no summary")
	f.BoolVar(&c.noRecording, "no-recording", false, "do not keep the terminal recording (session.cast)")
	f.StringVar(&c.tier, "tier", "", "kernel hooks to use: `TIER` is lsm, fentry, kprobe or tracepoint (default the best that this kernel has)")
	completeTier(cmd)
	f.BoolVar(&c.hooks, "hooks", false, "have claude or codex tell rye of each tool call, through hooks for this session alone")
	c.net.flags(f)
	return cmd
}

// wrapFailure is the status for a command that could not be run, as shells have it.
func wrapFailure(err error) int {
	var e *wrapper.ExecError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return exitOwnFailure
}

// workspace is the user's project: the top of the git tree that cwd is in, else cwd.
func workspace(cwd string) string {
	for dir := cwd; ; {
		if _, err := os.Lstat(dir + "/.git"); err == nil {
			return dir
		}
		up := dir[:max(lastSlash(dir), 0)]
		if up == "" || up == dir {
			return cwd
		}
		dir = up
	}
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

func envOr(name, other string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return other
}

var errNothingRecorded = fmt.Errorf("nothing is recorded")
