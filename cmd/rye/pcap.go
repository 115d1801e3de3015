package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ledger"
)

func newPcap() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "pcap [SESSION]",
		Short: "Write a session's copied packets as pcapng",
		Long: `Writes the packets that rye copied from a session's own sockets as pcapng, for Wireshark, tshark and tcpdump. What was
copied is chosen when the session is recorded: rye wrap --capture headers (the default: headers of the first packets of each
socket, and whole what carries host names), full, or none. The file is held against its digest in the ledger first.`,
		Example: `  rye pcap last -o session.pcapng
  rye pcap last | tshark -r -`,
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
			totals, err := writePcap(cmd.OutOrStdout(), dir, out)
			if err != nil && !brokenPipe(err) {
				return &exitError{exitUsage, err}
			}
			printPackets(cmd.ErrOrStderr(), totals)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

// writePcap copies the file of packets once it is known to be what was recorded.
func writePcap(stdout io.Writer, dir, out string) (*event.PacketTotals, error) {
	totals, err := packetTotals(dir)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, packetsName)
	in, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no packets were copied in this session (rye wrap --capture)")
	}
	if err != nil {
		return nil, fmt.Errorf("open packets: %w", err)
	}
	defer in.Close()
	if totals == nil {
		totals = &event.PacketTotals{} // the session was interrupted: nothing binds the file, and it may be cut
	} else if err := checkFile(dir, packetsName, "the file of packets", totals.SHA256); err != nil {
		return nil, err
	}
	w := stdout
	if out != "" && out != "-" {
		f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, fmt.Errorf("write packets: %w", err)
		}
		defer f.Close()
		w = f
	} else if f, ok := stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return nil, errors.New("pcapng is not for a terminal; use -o FILE or a pipe")
	}
	if _, err := io.Copy(w, in); err != nil {
		return nil, fmt.Errorf("write packets: %w", err)
	}
	if f, ok := w.(*os.File); ok && w != stdout {
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("write packets: %w", err)
		}
	}
	return totals, nil
}

// packetTotals is what session.end says of the packets, nil for a session without an end.
func packetTotals(dir string) (*event.PacketTotals, error) {
	led, err := ledger.Open(dir)
	if err != nil {
		return nil, err
	}
	for e, err := range led.Events() {
		if end, ok := e.Body.(*event.SessionEnd); ok && err == nil {
			if end.Packets == nil {
				return &event.PacketTotals{}, nil
			}
			return end.Packets, nil
		}
	}
	return nil, nil
}
