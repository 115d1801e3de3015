package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/proxy"
	"github.com/ryehq/rye/report"
)

// caDir is where the CA of this install is, under the state folder.
func (h *home) caDir() string { return filepath.Join(h.dir, "ca") }

// rotateCA makes a new CA in the place of the old one.
func (h *home) rotateCA() (*proxy.CA, error) {
	ca, err := proxy.NewCA(proxy.DefaultDomains(), time.Now())
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
		&cobra.Command{
			Use: "rotate", Short: "Make a new CA; what trusted the old one has to be told of it", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				h, err := openHome()
				if err != nil {
					return &exitError{exitOwnFailure, err}
				}
				ca, err := h.rotateCA()
				if err != nil {
					return &exitError{exitOwnFailure, err}
				}
				printCA(cmd.OutOrStdout(), ca, filepath.Join(h.caDir(), proxy.CertFile))
				return nil
			},
		},
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

func printCA(w io.Writer, ca *proxy.CA, file string) {
	fmt.Fprintf(w, "file: %s\nsha256: %s\nexpires: %s\ngood only for:", report.Line(file), ca.Fingerprint(), ca.Expires().UTC().Format(time.DateOnly))
	for _, d := range ca.Domains() {
		fmt.Fprintf(w, " %s", report.Line(d))
	}
	fmt.Fprintln(w)
}
