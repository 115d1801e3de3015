package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/policy"
	"github.com/ryehq/rye/report"
)

// policyFile is the applied bundle, under the state folder. Without it the bundle that ships with rye holds.
const policyFile = "policy.yaml"

// maxPolicyInput bounds the files that `rye policy` reads: more than a bundle may have, and bodies that
// people try rules on.
const maxPolicyInput = 64 << 20

func newPolicy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check, try, show or apply the rules for requests to model APIs",
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "validate FILE", Short: "Check a bundle (- for standard input)", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				_, b, err := readBundle(cmd.InOrStdin(), args[0])
				if err == nil {
					printBundle(cmd.OutOrStdout(), b, "ok")
				}
				return err
			},
		},
		&cobra.Command{
			Use: "show", Short: "Print the bundle that holds now", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				h, err := openHome()
				if err != nil {
					return &exitError{exitOwnFailure, err}
				}
				text, _, from, err := h.policy()
				if err != nil {
					return &exitError{1, err}
				}
				printPolicyText(cmd.OutOrStdout(), text, from)
				return nil
			},
		},
		&cobra.Command{
			Use: "apply FILE", Short: "Make a bundle the one that holds; a bad one changes nothing", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				text, b, err := readBundle(cmd.InOrStdin(), args[0])
				if err != nil {
					return err
				}
				h, err := openHome()
				if err != nil {
					return &exitError{exitOwnFailure, err}
				}
				if err := h.applyPolicy(text); err != nil {
					return &exitError{exitOwnFailure, err}
				}
				printBundle(cmd.OutOrStdout(), b, "applied")
				return nil
			},
		},
		newPolicyTest())
	return cmd
}

// A policyRequest is the JSON of `rye policy test --request`.
type policyRequest struct {
	Method  string              `json:"method"`
	Host    string              `json:"host"`
	Path    string              `json:"path"`
	Headers map[string][]string `json:"headers"`
	Body    json.RawMessage     `json:"body"` // a string is the body's text; any other value is sent as JSON
	Want    string              `json:"want"` // decision, or decision and rule: deny:no-keys
}

// An outcome is a line of `rye policy test` where there are several requests.
type outcome struct {
	Request int `json:"request"` // from 1
	policy.Decision
	Want string `json:"want,omitempty"`
	OK   *bool  `json:"ok,omitempty"` // whether it is what was wanted
}

func newPolicyTest() *cobra.Command {
	var request string
	cmd := &cobra.Command{
		Use:   "test FILE --request REQ.json",
		Short: "Say what a bundle decides on requests",
		Long: `The request is JSON: {"method", "host", "path", "headers": {"name": ["value"]}, "body"}. A body that is a string is
the text itself; any other value is judged as its JSON. Prints the decision as JSON.
Exit status: 0 allow, 1 deny or require_approval, 2 the bundle or the request cannot be read.

A file may hold several requests, one after the other. Each gives one line of JSON. With "want" (a decision, or a decision
and the rule that is to make it, as in "deny:no-keys") the exit status is 0 when all are as wanted, else 1.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, b, err := readBundle(cmd.InOrStdin(), args[0])
			if err != nil {
				return &exitError{exitUsage, err}
			}
			text, err := readInput(cmd.InOrStdin(), request)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			list, err := parsePolicyRequests(text)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			out, good, err := policyOutcomes(b, list)
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(out); err != nil {
				return err
			}
			if !good {
				return &exitError{code: 1}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&request, "request", "", "file with the request")
	cmd.MarkFlagRequired("request") // fails only for a flag that is not there
	return cmd
}

func parsePolicyRequests(text []byte) ([]policyRequest, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var list []policyRequest
	for {
		var in policyRequest
		err := dec.Decode(&in)
		if errors.Is(err, io.EOF) && len(list) > 0 {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read request %d: %w", len(list)+1, err)
		}
		list = append(list, in)
	}
}

func (in *policyRequest) request() policy.Request {
	body := []byte(in.Body)
	var s string
	if json.Unmarshal(in.Body, &s) == nil {
		body = []byte(s)
	}
	return policy.Request{Head: policy.Head{Method: in.Method, Host: in.Host, Path: in.Path, Header: in.Headers}, Body: body}
}

// policyOutcomes judges requests. It reports whether each was decided as wanted; allowed, where nothing was.
func policyOutcomes(b *policy.Bundle, list []policyRequest) (out []byte, good bool, err error) {
	good = true
	for i := range list {
		in := &list[i]
		o := outcome{Request: i + 1, Decision: policy.Decide(b, in.request()), Want: in.Want}
		ok := o.Action == policy.Allow
		if in.Want != "" {
			action, rule, named := strings.Cut(in.Want, ":")
			ok = string(o.Action) == action && (!named || o.RuleID == rule)
			o.OK = &ok
		}
		good = good && ok
		var line []byte
		if len(list) == 1 && in.Want == "" {
			line, err = marshalIndent(o.Decision)
		} else if line, err = json.Marshal(o); err == nil {
			line = append(line, '\n')
		}
		if err != nil {
			return nil, false, err
		}
		out = append(out, line...)
	}
	return out, good, nil
}

func readInput(stdin io.Reader, name string) ([]byte, error) {
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxPolicyInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(b) > maxPolicyInput {
		return nil, fmt.Errorf("read %s: larger than %d bytes", name, maxPolicyInput)
	}
	return b, nil
}

func readBundle(stdin io.Reader, name string) ([]byte, *policy.Bundle, error) {
	text, err := readInput(stdin, name)
	if err != nil {
		return nil, nil, &exitError{1, err}
	}
	b, err := policy.Parse(text)
	if err != nil {
		return nil, nil, &exitError{1, fmt.Errorf("%s: %w", name, err)}
	}
	return text, b, nil
}

// policy reads the bundle that holds: the applied one, else the one that ships with rye. An applied
// bundle that does not parse is an error, never a reason to fall back to another.
func (h *home) policy() (text []byte, b *policy.Bundle, from string, err error) {
	from = filepath.Join(h.dir, policyFile)
	text, err = os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		text, from, err = policy.DefaultYAML(), "built in", nil
	}
	if err != nil {
		return nil, nil, from, fmt.Errorf("read policy: %w", err)
	}
	if b, err = policy.Parse(text); err != nil {
		return nil, nil, from, fmt.Errorf("%s: %w", from, err)
	}
	return text, b, from, nil
}

// applyPolicy puts a checked bundle in place in one step: a reader sees the old one or the new one.
func (h *home) applyPolicy(text []byte) error {
	f, err := os.CreateTemp(h.dir, policyFile+".*")
	if err != nil {
		return fmt.Errorf("write policy: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when the rename was done
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(h.dir, policyFile))
	}
	if err != nil {
		return fmt.Errorf("write policy: %w", err)
	}
	return nil
}

func printBundle(w io.Writer, b *policy.Bundle, what string) {
	fmt.Fprintf(w, "%s: %s, %s, default %s\n", what, b.Name(), plural(len(b.Rules), "rule", "rules"), b.Default)
}

// printPolicyText prints a bundle line by line: it is a file that somebody gave.
func printPolicyText(w io.Writer, text []byte, from string) {
	fmt.Fprintf(w, "# %s\n", report.Line(from))
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(w, report.Line(strings.TrimSuffix(line, "\n")))
	}
}
