package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/index"
	"github.com/ryehq/rye/ledger"
)

func newSessions() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List recorded sessions, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := openHome()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			list, err := h.list()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if asJSON {
				b, err := marshalIndent(list)
				if err != nil {
					return &exitError{exitUsage, err}
				}
				_, err = cmd.OutOrStdout().Write(b)
				return err
			}
			printSessions(cmd.OutOrStdout(), list)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// list joins the index with the folders: a session that the index does not have (it runs, or rye was
// killed) is read from its ledger.
func (h *home) list() ([]index.Session, error) {
	db, err := h.index()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ids, err := h.ids()
	if err != nil {
		return nil, err
	}
	list := []index.Session{}
	for i := len(ids) - 1; i >= 0; i-- {
		row, err := db.Get(ids[i])
		if err != nil {
			if row, err = h.fromLedger(ids[i], false); err != nil {
				row = index.Session{ID: ids[i], State: "unreadable", Command: []string{}}
			}
		}
		list = append(list, row)
	}
	return list, nil
}

// fromLedger makes an index row from a ledger; whole reads and judges all of it.
func (h *home) fromLedger(id string, whole bool) (index.Session, error) {
	dir := h.session(id)
	start, err := readStart(dir)
	if err != nil {
		return index.Session{}, err
	}
	row := index.Session{ID: id, Name: start.Name, Command: start.Command, CWD: start.CWD, Start: start.WallTime, State: "interrupted"}
	if start.BootID == bootID() && alive(start) {
		row.State = "running"
	}
	if !whole {
		return row, nil
	}
	r, err := ledger.Open(dir, h.trusted()...)
	if err != nil {
		return row, err
	}
	for e := range r.Events() {
		if end, ok := e.Body.(*event.SessionEnd); ok {
			row.State, row.ExitCode, row.DurationNS = "ended", end.ExitCode, end.DurationNS
		}
	}
	s := r.State()
	row.Records, row.RootHash = s.Records, s.RootHash
	report, err := judge(dir, h)
	if err != nil {
		return row, err
	}
	row.Verdict, row.Findings = string(report.Verdict), len(report.Findings)
	return row, nil
}

// alive reports whether the wrapped command still runs.
func alive(s *event.SessionStart) bool {
	_, ok := processKey(s.PID)
	return s.PID > 0 && ok
}

func newIndex() *cobra.Command {
	cmd := &cobra.Command{Use: "index", Short: "Look after the index of sessions (rye.db)"}
	cmd.AddCommand(&cobra.Command{
		Use:   "rebuild",
		Short: "Make the index again from the ledgers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := openHome()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			n, bad, err := h.rebuild()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			printRebuilt(cmd.OutOrStdout(), n, bad)
			return nil
		},
	})
	return cmd
}

// rebuild makes rye.db again. Anchors cannot be made again from the ledgers they anchor: those of sessions
// that still have their row are kept.
func (h *home) rebuild() (n int, bad []string, err error) {
	db, err := h.index()
	if err != nil {
		// A damaged database is set aside, not deleted.
		path := h.dir + "/rye.db"
		aside := fmt.Sprintf("%s.damaged-%d", path, time.Now().Unix())
		if os.Rename(path, aside) != nil {
			return 0, nil, err
		}
		os.Remove(path + "-wal")
		os.Remove(path + "-shm")
		if db, err = h.index(); err != nil {
			return 0, nil, err
		}
	}
	defer db.Close()
	ids, err := h.ids()
	if err != nil {
		return 0, nil, err
	}
	keep := map[string]bool{}
	for _, id := range ids {
		keep[id] = true
		row, err := h.fromLedger(id, true)
		if err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", id, err))
			continue
		}
		if err := db.Put(row); err != nil {
			return n, bad, err
		}
		n++
	}
	return n, bad, db.Forget(keep)
}

// completeSession offers ids and names to the shell.
func completeSession(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	h, err := openHome()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	list, err := h.list()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	out := []string{"last"}
	for _, s := range list {
		out = append(out, s.ID)
		if s.Name != "" {
			out = append(out, s.Name)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}
