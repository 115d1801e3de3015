// Package index keeps rye.db: a table of sessions for quick listing and, for each, the newest checkpoint
// seen, which is an anchor outside the session's own directory. Everything in it but those anchors can be
// made again from the ledgers (see Rebuild in cmd/rye). It imports the SQLite driver and nothing of rye.
package index

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// A Session is one row.
type Session struct {
	ID         string   `json:"id"`
	Name       string   `json:"name,omitempty"`
	Command    []string `json:"command"`
	CWD        string   `json:"cwd"`
	Start      string   `json:"start"` // RFC 3339
	DurationNS uint64   `json:"duration_ns"`
	ExitCode   int      `json:"exit_code"`
	State      string   `json:"state"` // running, ended, interrupted
	Records    int64    `json:"records"`
	RootHash   string   `json:"root_hash"`
	Verdict    string   `json:"verdict,omitempty"` // as of the end of the session
	Findings   int      `json:"findings"`
	AnchorSize int64    `json:"anchor_size,omitempty"` // newest checkpoint seen
	AnchorRoot string   `json:"anchor_root,omitempty"`
}

// ErrNone says that no session matches.
var ErrNone = errors.New("no such session")

// A DB is an open index.
type DB struct{ sql *sql.DB }

const schema = `
CREATE TABLE IF NOT EXISTS sessions (
	id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', command TEXT NOT NULL, cwd TEXT NOT NULL, start TEXT NOT NULL,
	duration_ns INTEGER NOT NULL DEFAULT 0, exit_code INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL,
	records INTEGER NOT NULL DEFAULT 0, root_hash TEXT NOT NULL DEFAULT '', verdict TEXT NOT NULL DEFAULT '',
	findings INTEGER NOT NULL DEFAULT 0, anchor_size INTEGER NOT NULL DEFAULT 0, anchor_root TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS sessions_start ON sessions (start);
CREATE INDEX IF NOT EXISTS sessions_name ON sessions (name);
PRAGMA user_version = 1;`

// Open opens or makes home/rye.db.
func Open(home string) (*DB, error) {
	// Several rye processes write at the same time; each waits for the other.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, "rye.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if _, err := db.Exec(schema); err != nil {
		db.Close()
		return nil, fmt.Errorf("open index: %w", err)
	}
	return &DB{db}, nil
}

// Close closes the index.
func (d *DB) Close() error { return d.sql.Close() }

// Put writes a row, replacing one with the same id. Anchors only grow.
func (d *DB) Put(s Session) error {
	cmd, err := json.Marshal(s.Command)
	if err != nil {
		return fmt.Errorf("index session %s: %w", s.ID, err)
	}
	_, err = d.sql.Exec(`INSERT INTO sessions (id, name, command, cwd, start, duration_ns, exit_code, state, records, root_hash, verdict, findings, anchor_size, anchor_root)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
		ON CONFLICT (id) DO UPDATE SET name=?2, command=?3, cwd=?4, start=?5, duration_ns=?6, exit_code=?7, state=?8, records=?9, root_hash=?10,
			verdict=?11, findings=?12,
			anchor_root=CASE WHEN ?13 > anchor_size THEN ?14 ELSE anchor_root END, anchor_size=MAX(anchor_size, ?13)`,
		s.ID, s.Name, string(cmd), s.CWD, s.Start, int64(s.DurationNS), s.ExitCode, s.State, s.Records, s.RootHash, s.Verdict, s.Findings, s.AnchorSize, s.AnchorRoot)
	if err != nil {
		return fmt.Errorf("index session %s: %w", s.ID, err)
	}
	return nil
}

// Get returns the row of an id.
func (d *DB) Get(id string) (Session, error) {
	list, err := d.query("WHERE id = ?", id)
	if err != nil {
		return Session{}, err
	}
	if len(list) == 0 {
		return Session{}, ErrNone
	}
	return list[0], nil
}

// List returns all rows, newest first.
func (d *DB) List() ([]Session, error) { return d.query("ORDER BY start DESC, id DESC") }

// Forget removes the rows whose id is not in keep.
func (d *DB) Forget(keep map[string]bool) error {
	list, err := d.List()
	if err != nil {
		return err
	}
	for _, s := range list {
		if !keep[s.ID] {
			if _, err := d.sql.Exec("DELETE FROM sessions WHERE id = ?", s.ID); err != nil {
				return fmt.Errorf("forget session %s: %w", s.ID, err)
			}
		}
	}
	return nil
}

func (d *DB) query(where string, args ...any) ([]Session, error) {
	rows, err := d.sql.Query("SELECT id, name, command, cwd, start, duration_ns, exit_code, state, records, root_hash, verdict, findings, anchor_size, anchor_root FROM sessions "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	defer rows.Close()
	var list []Session
	for rows.Next() {
		var s Session
		var cmd string
		if err := rows.Scan(&s.ID, &s.Name, &cmd, &s.CWD, &s.Start, &s.DurationNS, &s.ExitCode, &s.State, &s.Records, &s.RootHash, &s.Verdict, &s.Findings, &s.AnchorSize, &s.AnchorRoot); err != nil {
			return nil, fmt.Errorf("read index: %w", err)
		}
		if err := json.Unmarshal([]byte(cmd), &s.Command); err != nil {
			return nil, fmt.Errorf("read index: session %s: %w", s.ID, err)
		}
		list = append(list, s)
	}
	return list, rows.Err()
}
