// Command rye is an independent witness for AI coding assistants.
//
// This is the only package where the others meet. Read run.go first: it is rye from top to bottom. Only
// tui.go prints.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/spf13/cobra"
)

// version is set at build time (see Makefile).
var version = "devel"

// An exitError ends rye with a status and, when it has one, a message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Exit codes beside the wrapped command's own.
const (
	exitOwnFailure = 125 // rye itself could not do what was asked
	exitUsage      = 2
)

func main() {
	if len(os.Args) > 1 && os.Args[0] == selfTestName {
		os.Exit(selfTestChild(os.Args[1:]))
	}
	log.SetOutput(io.Discard) // net/http has things to say about servers; the terminal is the wrapped command's
	root := newRoot()
	if err := root.Execute(); err != nil {
		var exit *exitError
		if errors.As(err, &exit) {
			if exit.err != nil {
				printError(os.Stderr, exit.err)
			}
			os.Exit(exit.code)
		}
		printError(os.Stderr, err)
		printHint(os.Stderr, "see `rye --help`")
		os.Exit(exitUsage)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "rye",
		Short: "An independent, kernel-level witness for AI coding assistants",
		Long: `rye runs an AI coding assistant unchanged and records, from the kernel, what it really did: every
program, file and connection of its own cgroup. It reads the approval dialogs from the terminal and
the assistant's own record from its transcript, and judges one against the other.

  rye wrap -- codex          run an assistant (or any command) and record it
  rye verify                 was what was allowed what actually ran? (the last session)
  rye show                   what happened, in order

Records are kept under ~/.rye (RYE_HOME overrides).`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newWrap(), newVerify(), newShow(), newSessions(), newDoctor(), newIndex(), newRules(), newProve(), newCheckProof(), newDemo(), newHook(), newVersion(), newPolicy(), newCA(), newApprovals(), newApprove(), newDeny(), newPcap())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "rye %s\n", version)
			return err
		},
	}
}
