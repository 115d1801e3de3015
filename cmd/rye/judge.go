package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/report"
	"github.com/ryehq/rye/verify"
)

// verifyOptions are the flags of rye verify.
type verifyOptions struct {
	asJSON, all             bool
	action, code, at, since string
}

func newVerify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [SESSION|DIRECTORY]",
		Short: "Judge whether what was allowed is what ran",
		Long: `Checks the ledger's own proof, then judges every action of a session: what the model asked for, what
the user or a rule allowed, and what the kernel saw run. The session is the last one if none is named; a
folder with a ledger in it can be judged anywhere, without root and without rye's state.

Exit status: 0 everything verified, 1 discrepancies, 2 indeterminate or the evidence cannot be used. Of
many sessions (--all, --since) it is that of the worst.`,
		Example: `  rye verify
  rye verify 20261201 --json
  rye verify --action x2
  rye verify --at 42
  rye verify --since 7d
  rye verify --explain rule-exceeded
  rye verify ./evidence/session-1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.code != "":
				return printExplanation(cmd.OutOrStdout(), o.code)
			case (o.all || o.since != "") && len(args) > 0:
				return &exitError{exitUsage, fmt.Errorf("--all and --since are for all sessions: name none")}
			}
			status, err := o.run(cmd.OutOrStdout(), args)
			if err != nil && !brokenPipe(err) {
				return &exitError{exitUsage, err}
			}
			if status != 0 {
				return &exitError{code: status}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	f.StringVar(&o.action, "action", "", "show one action (`ID`, such as x2): its whole chain with times; the exit status is its own")
	f.StringVar(&o.at, "at", "", "show the evidence of record `SEQ`: the record, its proof, and what rests on it")
	f.BoolVar(&o.all, "all", false, "judge all sessions, one line each")
	f.StringVar(&o.since, "since", "", "judge the sessions since a `TIME` or for a duration back (2026-11-30, 36h, 7d)")
	f.StringVar(&o.code, "explain", "", "say what a finding `CODE` means and what to do; list gives all codes")
	cmd.MarkFlagsMutuallyExclusive("action", "explain", "at", "all")
	cmd.MarkFlagsMutuallyExclusive("action", "explain", "at", "since")
	_ = cmd.RegisterFlagCompletionFunc("explain", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		codes := []string{"list"}
		for _, e := range report.Explanations() {
			codes = append(codes, e.Code)
		}
		return codes, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// run prints what was asked for and returns the exit status.
func (o *verifyOptions) run(out io.Writer, args []string) (int, error) {
	h, err := openHome()
	if err != nil {
		return 0, err
	}
	if o.all || o.since != "" {
		return o.many(out, h)
	}
	_, dir, err := h.find(first(args))
	if err != nil {
		return 0, err
	}
	r, err := judge(dir, h)
	if err != nil {
		return 0, err
	}
	switch {
	case o.action != "":
		a, err := findAction(r, o.action)
		if err != nil {
			return 0, err
		}
		if o.asJSON {
			return a.Verdict.ExitCode(), writeJSON(out, a)
		}
		return a.Verdict.ExitCode(), showChain(out, dir, r, a)
	case o.at != "":
		seq, err := recordNumber(o.at)
		if err != nil {
			return 0, err
		}
		e, err := gatherEvidence(dir, h, r, seq)
		if err != nil {
			return 0, err
		}
		status := 0
		if !e.Included.OK {
			status = verify.Indeterminate.ExitCode()
		}
		if o.asJSON {
			return status, writeJSON(out, e)
		}
		printEvidence(out, e)
		return status, nil
	case o.asJSON:
		return r.Verdict.ExitCode(), writeJSON(out, r)
	}
	printReport(out, r)
	return r.Verdict.ExitCode(), nil
}

func (o *verifyOptions) many(out io.Writer, h *home) (int, error) {
	var since time.Time
	if o.since != "" {
		var err error
		if since, err = parseSince(o.since, time.Now()); err != nil {
			return 0, err
		}
	}
	list, err := judgeMany(h, since)
	if err != nil {
		return 0, err
	}
	if o.asJSON {
		return worst(list), writeJSON(out, list)
	}
	printJudged(out, list)
	return worst(list), nil
}

func writeJSON(out io.Writer, v any) error {
	b, err := marshalIndent(v)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	return err
}

// judge reads a ledger and judges it. h may be nil: then no key is known but the ledger's own.
func judge(dir string, h *home) (*verify.Report, error) {
	var keys []string
	if h != nil {
		keys = h.trusted()
	}
	r, err := ledger.Open(dir, keys...)
	if err != nil {
		return nil, err
	}
	cast, packets := "", "" // digests of the terminal recording and the packets, as session.end has them
	in := verify.Input{Events: func(yield func(event.Event, error) bool) {
		for e, err := range r.Events() {
			if end, ok := e.Body.(*event.SessionEnd); ok {
				cast = end.RecordingSHA256
				if end.Packets != nil {
					packets = end.Packets.SHA256
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}}
	in.State = func() verify.LedgerState {
		s := r.State()
		l := verify.LedgerState{
			OK: s.OK, Records: s.Records, RootHash: s.RootHash, Problem: s.Problem, BadRecord: s.BadRecord,
			Interrupted: s.Interrupted,
		}
		if h != nil {
			h.anchor(dir, s, &l)
		}
		if err := errors.Join(checkFile(dir, castName, "the terminal recording", cast), checkFile(dir, packetsName, "the file of packets", packets)); err != nil && l.OK {
			l.OK, l.Problem = false, err.Error()
		}
		return l
	}
	return verify.Verify(in)
}

// anchor holds a ledger of this install against what was noted outside its folder.
func (h *home) anchor(dir string, s ledger.State, l *verify.LedgerState) {
	if filepath.Dir(dir) != filepath.Join(h.dir, "sessions") {
		return
	}
	if l.OK && !s.KeyKnown {
		l.OK, l.Problem = false, "it is signed with a key that this install does not know"
		return
	}
	db, err := h.index()
	if err != nil {
		return
	}
	defer db.Close()
	row, err := db.Get(filepath.Base(dir))
	if err != nil || row.AnchorSize == 0 {
		return
	}
	l.Anchored = true
	switch {
	case !l.OK:
	case s.Records < row.AnchorSize:
		l.OK, l.Problem = false, fmt.Sprintf("it has %d records; %d were noted when the session ended", s.Records, row.AnchorSize)
	case s.Records == row.AnchorSize && s.RootHash != row.AnchorRoot:
		l.OK, l.Problem = false, "its root is not the one noted when the session ended"
	}
}

func newProve() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "prove SESSION SEQ",
		Short: "Write a proof that one record is in a session's ledger",
		Long: `Writes an inclusion proof of record SEQ (its seq in rye show --json): the record, the audit path and
the signed tree head. It shows that one record and discloses no other. rye check-proof checks it alone.`,
		Example: "  rye prove last 42 -o record-42.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := openHome()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			_, dir, err := h.find(args[0])
			if err != nil {
				return &exitError{exitUsage, err}
			}
			var seq int64
			if _, err := fmt.Sscanf(args[1], "%d", &seq); err != nil || fmt.Sprint(seq) != args[1] {
				return &exitError{exitUsage, fmt.Errorf("%q is not a record number", args[1])}
			}
			p, err := ledger.Prove(dir, seq)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			b, err := p.JSON()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if out == "" || out == "-" {
				_, err = cmd.OutOrStdout().Write(b)
			} else {
				err = os.WriteFile(out, b, 0o644)
			}
			if err != nil {
				return &exitError{exitUsage, err}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

func newCheckProof() *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "check-proof FILE",
		Short: "Check an inclusion proof, with nothing but the proof",
		Long: `Checks that the record in FILE is in the ledger whose signed tree head the proof carries. Needs no
state, no root and no network. With --key the signing key must be the one you were given; without it the
proof's own key is used, and you are told its name.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := os.ReadFile(args[0])
			if err != nil {
				return &exitError{exitUsage, fmt.Errorf("read proof: %w", err)}
			}
			var p ledger.Proof
			if err := json.Unmarshal(b, &p); err != nil {
				return &exitError{exitUsage, fmt.Errorf("%s is not a proof: %w", args[0], err)}
			}
			var keys []string
			if keyFile != "" {
				k, err := os.ReadFile(keyFile)
				if err != nil {
					return &exitError{exitUsage, fmt.Errorf("read key: %w", err)}
				}
				keys = append(keys, string(k))
			}
			head, err := ledger.CheckProof(&p, keys...)
			if err != nil {
				return &exitError{1, fmt.Errorf("the proof does not hold: %w", err)}
			}
			printProof(cmd.OutOrStdout(), &p, head, len(keys) > 0)
			return nil
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "verifier key `FILE` that the proof must be signed with (an install's ledger.pub)")
	return cmd
}
