package main

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ryehq/rye/index"
	"github.com/ryehq/rye/ledger"
)

// A home is rye's state folder:
//
//	sessions/ID/   one ledger each
//	ledger.key     signs checkpoints (0600); ledger.pub checks them
//	approvals/     requests that wait for an answer
//	rye.db         index, made again by `rye index rebuild`
type home struct{ dir string }

// openHome finds the state folder and makes it when it is not there.
func openHome() (*home, error) {
	dir := os.Getenv("RYE_HOME")
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("find home folder: %w; set RYE_HOME", err)
		}
		dir = filepath.Join(user, ".rye")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find home folder: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "sessions"), 0o700); err != nil {
		return nil, fmt.Errorf("make state folder: %w", err)
	}
	return &home{dir}, nil
}

func (h *home) session(id string) string { return filepath.Join(h.dir, "sessions", id) }

func (h *home) index() (*index.DB, error) { return index.Open(h.dir) }

func (h *home) key() (*ledger.Key, error) {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "rye"
	}
	return ledger.LoadKey(h.dir, name)
}

// trusted returns the verifier key of this install, if there is one yet.
func (h *home) trusted() []string {
	b, err := os.ReadFile(filepath.Join(h.dir, "ledger.pub"))
	if err != nil {
		return nil
	}
	return []string{string(b)}
}

// newSessionID is sortable by start and unique: date, time, the fraction of the second in two bytes, two
// random bytes.
func newSessionID(now time.Time) string {
	var b [4]byte
	rand.Read(b[2:])                                                 // never fails (crypto/rand)
	binary.BigEndian.PutUint16(b[:], uint16(now.Nanosecond()/15259)) // 10^9/2^16, rounded up
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// ids lists the sessions that have a folder, oldest first.
func (h *home) ids() ([]string, error) {
	list, err := os.ReadDir(filepath.Join(h.dir, "sessions"))
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var ids []string
	for _, e := range list {
		if _, err := os.Stat(filepath.Join(h.session(e.Name()), ledger.EventsFile)); err == nil {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

var errNoSession = errors.New("no session recorded yet; record one with: rye wrap -- COMMAND")

// find turns what the user calls a session into its folder: an id, a unique prefix of one, a name (the
// newest of that name), `last`, or a folder with a ledger in it.
func (h *home) find(what string) (id, dir string, err error) {
	if strings.ContainsRune(what, filepath.Separator) || what == "." {
		if _, err := os.Stat(filepath.Join(what, ledger.EventsFile)); err != nil {
			return "", "", fmt.Errorf("%s holds no ledger (%s): %w", what, ledger.EventsFile, err)
		}
		return filepath.Base(what), what, nil
	}
	ids, err := h.ids()
	if err != nil {
		return "", "", err
	}
	if len(ids) == 0 {
		return "", "", errNoSession
	}
	if what == "" || what == "last" {
		id := ids[len(ids)-1]
		return id, h.session(id), nil
	}
	if slices.Contains(ids, what) {
		return what, h.session(what), nil
	}
	if id := h.named(what, ids); id != "" {
		return id, h.session(id), nil
	}
	var match []string
	for _, id := range ids {
		if strings.HasPrefix(id, what) {
			match = append(match, id)
		}
	}
	switch len(match) {
	case 1:
		return match[0], h.session(match[0]), nil
	case 0:
		if _, err := os.Stat(filepath.Join(what, ledger.EventsFile)); err == nil {
			return filepath.Base(what), what, nil
		}
		return "", "", fmt.Errorf("no session %q; list them with: rye sessions", what)
	}
	return "", "", fmt.Errorf("%q is the beginning of %d sessions (%s …); give more of it", what, len(match), match[0])
}

// named returns the newest session of a name. The index is asked first; without it the ledgers are.
func (h *home) named(name string, ids []string) string {
	db, err := h.index()
	if err == nil {
		defer db.Close()
		list, err := db.List()
		if err == nil {
			for _, s := range list {
				if s.Name == name && slices.Contains(ids, s.ID) {
					return s.ID
				}
			}
		}
	}
	for _, id := range slices.Backward(ids) {
		if start, err := readStart(h.session(id)); err == nil && start.Name == name {
			return id
		}
	}
	return ""
}
