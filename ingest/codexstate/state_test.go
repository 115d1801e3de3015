package codexstate

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func state(t *testing.T, schema ...string) (string, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state_5.sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, s := range schema {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return path, db
}

const (
	threads = `CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT, cwd TEXT, sandbox_policy TEXT, approval_mode TEXT, cli_version TEXT,
		agent_nickname TEXT, agent_role TEXT, updated_at_ms INTEGER, something_new BLOB)`
	edges = `CREATE TABLE thread_spawn_edges (parent_thread_id TEXT, child_thread_id TEXT, status TEXT)`
)

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A database that is in use: rows that are in its log only are read, its folder stays as it is, and the writer's
// transaction does not stand in the way.
func TestReadInUse(t *testing.T) {
	path, db := state(t, threads, edges,
		`INSERT INTO threads (id, cwd, approval_mode, sandbox_policy, cli_version) VALUES ('root', '/w', 'on-request', '{"type":"managed"}', '0.171.0')`,
		`INSERT INTO threads (id, agent_nickname, sandbox_policy) VALUES ('child', 'Ada', '{"type":"disabled"}'), ('grandchild', NULL, 'not json'), ('other', NULL, NULL)`,
		`INSERT INTO thread_spawn_edges VALUES ('root', 'child', 'open'), ('child', 'grandchild', 'closed')`)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("the rows are not in the log: %v", err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`INSERT INTO threads (id) VALUES ('not committed')`); err != nil {
		t.Fatal(err)
	}
	before := list(t, filepath.Dir(path))
	got, err := Read(path)
	if err != nil || len(got) != 4 {
		t.Fatalf("%v: %+v", err, got)
	}
	if after := list(t, filepath.Dir(path)); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("the writer: %v", err)
	}
	below := Below(got, map[string]bool{"root": true})
	if len(below) != 2 || below[0].ID != "child" || below[0].Agent != "Ada" || below[0].Sandbox != "danger-full-access" || below[1].Parent != "child" {
		t.Errorf("%+v", below)
	}
	if c := below[0].Context(path); c.ParentThread != "root" || c.Subagent != "Ada" || c.Agent != "codex" {
		t.Errorf("%+v", c)
	}
}

func TestReadOther(t *testing.T) {
	path, _ := state(t, `CREATE TABLE threads (id TEXT)`, `INSERT INTO threads VALUES ('a')`)
	if got, err := Read(path); err != nil || len(got) != 1 || got[0] != (Thread{ID: "a"}) {
		t.Errorf("an older one: %v %+v", err, got)
	}
	path, _ = state(t, `CREATE TABLE jobs (id TEXT)`)
	if got, err := Read(path); err == nil {
		t.Errorf("a database without threads: %+v", got)
	}
	file := filepath.Join(t.TempDir(), "state_5.sqlite")
	if err := os.WriteFile(file, []byte("not a database, but long enough to have a header of one, were it one ................................................"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(file); err == nil {
		t.Errorf("no database at all: %+v", got)
	}
	link := file + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(link); err == nil {
		t.Error("a link was followed")
	}
	if _, err := Read(file + ".none"); err == nil {
		t.Error("a missing file was read")
	}
}

// Edges in a circle end.
func TestBelowCircle(t *testing.T) {
	all := []Thread{{ID: "a", Parent: "b"}, {ID: "b", Parent: "a"}, {ID: "c", Parent: "c"}}
	if got := Below(all, map[string]bool{"a": true}); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("%+v", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("SQLite format 3\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		Read(file)
	})
}
