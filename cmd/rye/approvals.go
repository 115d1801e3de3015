package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/approvals"
	"github.com/ryehq/rye/report"
)

// approvals opens the store of requests that wait, under the state folder.
func (h *home) approvals() (*approvals.Store, error) {
	return approvals.Open(filepath.Join(h.dir, "approvals"))
}

func openApprovals() (*approvals.Store, error) {
	h, err := openHome()
	if err != nil {
		return nil, &exitError{exitOwnFailure, err}
	}
	s, err := h.approvals()
	if err != nil {
		return nil, &exitError{exitOwnFailure, err}
	}
	return s, nil
}

func newApprovals() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List the requests that a require_approval rule holds up, and the answers that hold",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := openApprovals()
			if err != nil {
				return err
			}
			list, err := s.List()
			if err != nil {
				return &exitError{exitOwnFailure, err}
			}
			if asJSON {
				if list == nil {
					list = []approvals.Entry{}
				}
				out, err := marshalIndent(list)
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(out)
				return err
			}
			printApprovals(cmd.OutOrStdout(), list, time.Now())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}

func newApprove() *cobra.Command {
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Let a request that waits pass when it is tried again",
		Long: `Lets the request pass once, within an hour: the same method, host, path, query and body. With --for, every
request that the same rule holds up for the same host passes for that time (24 h at most). Who approved and
when is written to the session's ledger with each request that passes.

A beginning of the id is enough. Inside a session that rye has wrapped this is refused: what is judged
may not judge itself.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answerApproval(cmd.OutOrStdout(), "approve", func(s *approvals.Store, by string) (approvals.Entry, error) {
				return s.Approve(args[0], by, span)
			})
		},
	}
	cmd.Flags().DurationVar(&span, "for", 0, "approve the rule and host for this long, not the one request")
	return cmd
}

func newDeny() *cobra.Command {
	return &cobra.Command{
		Use:   "deny ID",
		Short: "Refuse a request that waits, or take an approval back",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answerApproval(cmd.OutOrStdout(), "deny", func(s *approvals.Store, by string) (approvals.Entry, error) {
				return s.Deny(args[0], by)
			})
		},
	}
}

func answerApproval(w io.Writer, verb string, answer func(*approvals.Store, string) (approvals.Entry, error)) error {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return &exitError{exitOwnFailure, fmt.Errorf("%s: %w", verb, err)}
	}
	if id := sessionOfCgroup(string(own)); id != "" {
		return &exitError{1, fmt.Errorf("%s: this is inside session %s; answer from outside of it", verb, id)}
	}
	s, err := openApprovals()
	if err != nil {
		return err
	}
	e, err := answer(s, whoAnswers())
	if errors.Is(err, approvals.ErrNone) {
		return &exitError{1, fmt.Errorf("%w; see: rye approvals", err)}
	}
	if err != nil {
		return &exitError{1, err}
	}
	_, err = fmt.Fprintf(w, "%s: %s %s %s%s, %s\n", e.ID, e.State, e.Method, report.Line(e.Host), report.Line(e.Path), e.For())
	return err
}

var sessionCgroup = regexp.MustCompile(`(?m)/rye/(\d{8}-\d{6}-[0-9a-f]{8})(/|$)`)

// sessionOfCgroup is the session that a process with this /proc/PID/cgroup belongs to, "" for none.
func sessionOfCgroup(s string) string {
	if m := sessionCgroup.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// whoAnswers is written down with an answer: the user, the process, and the terminal if there is one.
func whoAnswers() string {
	name := "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	s := fmt.Sprintf("%s (uid %d, pid %d", name, os.Getuid(), os.Getpid())
	if tty, err := os.Readlink("/proc/self/fd/0"); err == nil && strings.HasPrefix(tty, "/dev/pts/") {
		s += ", " + tty
	}
	return s + ")"
}

func printApprovals(w io.Writer, list []approvals.Entry, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "nothing waits, and no answer holds")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tAGE\tRULE\tREQUEST\tBYTES\tASKED\tANSWER")
	for i := range list {
		e := &list[i]
		answer := "rye approve " + e.ID
		if e.State != approvals.Waiting {
			answer = fmt.Sprintf("%s, for %s", e.By, e.For())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", report.Line(e.ID), report.Line(string(e.State)), now.Sub(e.First).Round(time.Second),
			report.Line(e.Rule+": "+e.Reason), report.Line(e.Method+" "+e.Host+e.Path), e.Bytes, e.Count, report.Line(answer))
	}
	t.Flush() // what w cannot take is lost to it alone
}
