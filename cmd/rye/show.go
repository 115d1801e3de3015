package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ledger"
)

func newShow() *cobra.Command {
	var asJSON bool
	var types []string
	cmd := &cobra.Command{
		Use:   "show [SESSION]",
		Short: "Show what happened in a session, in order",
		Long: `Shows the events of a session (the last one, if none is named). With --json each line is one ledger
event, byte for byte as it was signed. Bytes that are not UTF-8 are the lone surrogate escapes
\udc80 … \udcff (Python: os.fsencode gives them back).`,
		Example: `  rye show
  rye show last --type process.exec
  rye show 20261201 --json | jq 'select(.type=="net.connect")'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := openHome()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			_, dir, err := h.find(first(args))
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if asJSON {
				err = showJSON(cmd.OutOrStdout(), dir, types)
			} else {
				err = showText(cmd.OutOrStdout(), dir, types)
			}
			if err != nil && !brokenPipe(err) {
				return &exitError{exitUsage, err}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one ledger event a line")
	cmd.Flags().StringSliceVar(&types, "type", nil, "show only events of this `TYPE` (a dotted name or its beginning, e.g. process)")
	return cmd
}

func first(args []string) string {
	if len(args) == 0 {
		return "last"
	}
	return args[0]
}

// wanted reports whether an event type was asked for: by its name, or by the part before a dot.
func wanted(t event.Type, types []string) bool {
	if len(types) == 0 {
		return true
	}
	for _, w := range types {
		if string(t) == w || strings.HasPrefix(string(t), w+".") {
			return true
		}
	}
	return false
}

// showJSON copies the ledger's lines; it does not write them anew.
func showJSON(out io.Writer, dir string, types []string) error {
	f, err := os.Open(filepath.Join(dir, ledger.EventsFile))
	if err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	defer f.Close()
	in, w := bufio.NewReaderSize(f, 1<<20), bufio.NewWriterSize(out, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break // a line without its end was cut off by a crash: not an event
		}
		if err != nil {
			return fmt.Errorf("read ledger: %w", err)
		}
		if len(types) > 0 {
			h, err := event.ParseHeader(line[:len(line)-1])
			if err != nil || !wanted(h.Type, types) {
				continue
			}
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.Flush()
}

func showText(out io.Writer, dir string, types []string) error {
	r, err := ledger.Open(dir)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<16)
	p := newEventPrinter(w, colour(out))
	for e, err := range r.Events() {
		if err != nil {
			p.unreadable(e, err)
			continue
		}
		if wanted(e.Type, types) {
			p.event(&e)
		}
	}
	return w.Flush()
}

func readStart(dir string) (*event.SessionStart, error) {
	f, err := os.Open(filepath.Join(dir, ledger.EventsFile))
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, 1<<16).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the ledger has no first record")
	}
	e, err := event.ParseJSON(line[:len(line)-1])
	if err != nil {
		return nil, err
	}
	s, ok := e.Body.(*event.SessionStart)
	if !ok {
		return nil, fmt.Errorf("the ledger does not begin with %s", event.TypeSessionStart)
	}
	return s, nil
}
