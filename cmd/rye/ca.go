package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/proxy"
	"github.com/ryehq/rye/report"
)

// caDir is where the CA of this install is, under the state folder.
func (h *home) caDir() string { return filepath.Join(h.dir, "ca") }

// rotateCA makes a new CA in the place of the old one, for the same domains or, without an old one, the providers'
// that rye knows.
func (h *home) rotateCA() (*proxy.CA, error) { return h.makeCA(nil, nil) }

// makeCA is rotateCA with domains added and taken away.
func (h *home) makeCA(add, without []string) (*proxy.CA, error) {
	domains := proxy.DefaultDomains()
	old, err := proxy.LoadCA(h.caDir())
	if err == nil {
		domains = old.Domains()
	} else if !errors.Is(err, fs.ErrNotExist) && len(add)+len(without) > 0 {
		return nil, fmt.Errorf("read the domains of the old CA: %w", err) // rotating without changes is what mends it
	}
	for _, d := range add {
		if d, err = proxy.Domain(d); err != nil {
			return nil, err
		}
		if !slices.Contains(domains, d) {
			domains = append(domains, d)
		}
	}
	for _, d := range without {
		i := slices.Index(domains, strings.ToLower(d))
		if i < 0 {
			return nil, fmt.Errorf("%q is none of the CA's domains: %s", d, strings.Join(domains, " "))
		}
		domains = slices.Delete(domains, i, i+1)
	}
	ca, err := proxy.NewCA(domains, time.Now())
	if err != nil {
		return nil, err
	}
	return ca, ca.Save(h.caDir())
}

func newCA() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "The certificate authority of this install, for rye's proxy",
		Long: `rye's proxy opens TLS connections to model providers with certificates of a CA that is made on this machine and
constrained to those providers' domains. rye installs it nowhere: only programs that are told to trust it do.`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Print the certificate and what it is good for", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				h, err := openHome()
				if err != nil {
					return &exitError{exitOwnFailure, err}
				}
				ca, err := proxy.LoadCA(h.caDir())
				if errors.Is(err, fs.ErrNotExist) {
					return &exitError{1, errors.New("no CA yet; make one with: rye ca rotate")}
				}
				if err != nil {
					return &exitError{1, err}
				}
				printCA(cmd.OutOrStdout(), ca, filepath.Join(h.caDir(), proxy.CertFile))
				_, err = cmd.OutOrStdout().Write(ca.PEM())
				return err
			},
		},
		newCARotate(),
		&cobra.Command{
			Use: "remove", Short: "Delete the CA and its key", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				h, err := openHome()
				if err != nil {
					return &exitError{exitOwnFailure, err}
				}
				had, err := proxy.RemoveCA(h.caDir())
				if err != nil {
					return &exitError{exitOwnFailure, err}
				}
				what := "removed"
				if !had {
					what = "there was none"
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), what)
				return err
			},
		})
	return cmd
}

func newCARotate() *cobra.Command {
	var add, without []string
	cmd := &cobra.Command{
		Use: "rotate", Short: "Make a new CA; what trusted the old one has to be told of it", Args: cobra.NoArgs,
		Long: `Makes a new CA for the domains of the old one. Connections to a domain of the CA, and to its subdomains, are opened
by the proxy; all others are tunnels, recorded and not looked into. Take out a domain whose clients pin its key.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := openHome()
			if err != nil {
				return &exitError{exitOwnFailure, err}
			}
			ca, err := h.makeCA(add, without)
			if err != nil {
				return &exitError{exitOwnFailure, err}
			}
			printCA(cmd.OutOrStdout(), ca, filepath.Join(h.caDir(), proxy.CertFile))
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&add, "add", nil, "open connections to this `DOMAIN` as well")
	cmd.Flags().StringSliceVar(&without, "without", nil, "no longer open connections to this `DOMAIN`")
	return cmd
}

func printCA(w io.Writer, ca *proxy.CA, file string) {
	fmt.Fprintf(w, "file: %s\nsha256: %s\nexpires: %s\ngood only for:", report.Line(file), ca.Fingerprint(), ca.Expires().UTC().Format(time.DateOnly))
	for _, d := range ca.Domains() {
		fmt.Fprintf(w, " %s", report.Line(d))
	}
	fmt.Fprintln(w)
}
