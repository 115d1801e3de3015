// Package codexstate reads what Codex keeps of its threads in state_5.sqlite: which there are, in which mode, and
// which thread started which. It is a copy that is read: opening a database that is in use makes files beside it, and
// can hold up the one who writes. It imports event and SQLite.
package codexstate

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver

	"github.com/ryehq/rye/event"
)

// A Thread is one conversation, as Codex's state has it.
type Thread struct {
	ID         string
	Parent     string // the thread that started it, "" for the user's own
	Agent      string // what the sub-agent is called
	CWD        string
	Approval   string // on-request, never, …
	Sandbox    string
	Rollout    string // its transcript
	CLIVersion string
	Updated    time.Time
}

const (
	maxFile    = 512 << 20 // bytes of a database that are copied
	maxThreads = 100_000
	patience   = 10 * time.Second
)

var errTooLarge = errors.New("file too large")

// Read reads the threads of a state database. Columns that a version does not have are left empty.
func Read(path string) ([]Thread, error) {
	dir, err := os.MkdirTemp("", "rye-state-")
	if err != nil {
		return nil, fmt.Errorf("copy state: %w", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "state.sqlite")
	// The log first: what moves from it into the database meanwhile is then read twice, not lost.
	if err := copyFile(path+"-wal", name+"-wal"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := copyFile(path, name); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+name)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	defer db.Close()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	threads, err := readThreads(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read threads: %w", err)
	}
	if err := readEdges(ctx, db, threads); err != nil {
		return nil, fmt.Errorf("read threads: %w", err)
	}
	return threads, nil
}

// copyFile copies a regular file; it may have been swapped for a link or a pipe.
func copyFile(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("copy state %s: %w", from, errTooLarge)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	defer out.Close()
	if _, err := io.Copy(out, io.LimitReader(in, maxFile)); err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	return out.Close()
}

func columns(ctx context.Context, db *sql.DB, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func readThreads(ctx context.Context, db *sql.DB) ([]Thread, error) {
	have, err := columns(ctx, db, "threads")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(have, "id") {
		return nil, errors.New("no table of threads")
	}
	query := "SELECT id"
	for _, c := range []string{"cwd", "approval_mode", "sandbox_policy", "rollout_path", "cli_version", "agent_nickname", "agent_role", "updated_at_ms", "updated_at"} {
		if !slices.Contains(have, c) {
			c = "NULL"
		}
		query += ", " + c
	}
	rows, err := db.QueryContext(ctx, query+" FROM threads LIMIT ?", maxThreads)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Thread
	for rows.Next() {
		var id, cwd, approval, sandbox, rollout, version, nick, role sql.NullString
		var ms, s sql.NullInt64
		if err := rows.Scan(&id, &cwd, &approval, &sandbox, &rollout, &version, &nick, &role, &ms, &s); err != nil {
			return nil, err
		}
		t := Thread{ID: id.String, CWD: cwd.String, Approval: approval.String, Sandbox: sandboxName(sandbox.String), Rollout: rollout.String, CLIVersion: version.String, Agent: nick.String}
		if t.Agent == "" {
			t.Agent = role.String
		}
		switch {
		case ms.Int64 > 0:
			t.Updated = time.UnixMilli(ms.Int64)
		case s.Int64 > 0:
			t.Updated = time.Unix(s.Int64, 0)
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// sandboxName is the kind of a sandbox policy, or of the permission profile that took its place.
func sandboxName(policy string) string {
	var p struct{ Type, Mode string }
	if json.Unmarshal([]byte(policy), &p) != nil {
		return ""
	}
	switch p.Type + p.Mode {
	case "disabled":
		return "danger-full-access"
	case "managed": // says nothing by its name: what it lets through stands in the rollout
		return ""
	}
	return p.Type + p.Mode
}

func readEdges(ctx context.Context, db *sql.DB, threads []Thread) error {
	have, err := columns(ctx, db, "thread_spawn_edges")
	if err != nil || !slices.Contains(have, "parent_thread_id") || !slices.Contains(have, "child_thread_id") {
		return err
	}
	rows, err := db.QueryContext(ctx, "SELECT parent_thread_id, child_thread_id FROM thread_spawn_edges LIMIT ?", maxThreads)
	if err != nil {
		return err
	}
	defer rows.Close()
	parents := map[string]string{}
	for rows.Next() {
		var parent, child sql.NullString
		if err := rows.Scan(&parent, &child); err != nil {
			return err
		}
		parents[child.String] = parent.String
	}
	for i := range threads {
		threads[i].Parent = parents[threads[i].ID]
	}
	return rows.Err()
}

// Below keeps the threads that one of roots started, or one that those started, and so on.
func Below(threads []Thread, roots map[string]bool) []Thread {
	in := map[string]bool{}
	for id := range roots {
		in[id] = true
	}
	var out []Thread
	for again := true; again; {
		again = false
		for _, t := range threads {
			if !in[t.ID] && t.Parent != "" && in[t.Parent] {
				in[t.ID], again = true, true
				out = append(out, t)
			}
		}
	}
	return out
}

// Context is a thread's mode and lineage as an event.
func (t Thread) Context(file string) *event.TurnContext {
	return &event.TurnContext{
		Agent: "codex", Thread: t.ID, ParentThread: t.Parent, Subagent: t.Agent, CWD: t.CWD, ApprovalPolicy: t.Approval, Sandbox: t.Sandbox,
		Version: t.CLIVersion, File: file,
	}
}
