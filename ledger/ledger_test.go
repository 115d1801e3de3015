package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
)

func testKey(t testing.TB) *Key {
	t.Helper()
	k, err := LoadKey(t.TempDir(), "test host+1")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// write makes a ledger of n records with a checkpoint after every third; it is closed unless kill is set.
func write(t testing.TB, dir string, key *Key, n int, kill bool) {
	t.Helper()
	w, err := Create(dir, "s1", key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var e event.Event
		switch {
		case i == 0:
			e = event.New(1, nil, &event.SessionStart{ID: "s1", Command: []string{"make", "<a> & \xff"}})
		case i == n-1 && !kill:
			e = event.New(uint64(i), nil, &event.SessionEnd{})
		default:
			e = event.New(uint64(i), &event.ProcessKey{TGID: uint32(i), StartNS: 7}, &event.ProcessFork{})
		}
		if err := w.Append(&e); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			w.renewed = historyEvery // every checkpoint into the history
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if kill { // what was flushed is in the files, the rest is gone with the process
		for _, f := range []*os.File{w.events, w.leaves, w.points} {
			f.Close()
		}
		return
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir string, trusted ...string) (State, int) {
	t.Helper()
	r, err := Open(dir, trusted...)
	if err != nil {
		t.Fatal(err)
	}
	good := 0
	for _, err := range r.Events() {
		if err == nil {
			good++
		}
	}
	return r.State(), good
}

func TestTree(t *testing.T) {
	var leaves []tlog.Hash
	var tr tree
	for i := range 130 {
		r, err := newLeafReader(leaves)
		if err != nil {
			t.Fatal(err)
		}
		want, err := tlog.TreeHash(int64(i), r)
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.root(); got != want {
			t.Fatalf("tree of %d: root %v, want %v", i, got, want)
		}
		leaf := tlog.RecordHash(fmt.Appendf(nil, "leaf %d", i))
		leaves = append(leaves, leaf)
		tr.add(leaf)
	}
}

func TestWhole(t *testing.T) {
	dir, key := t.TempDir(), testKey(t)
	write(t, dir, key, 20, false)
	s, n := read(t, dir, key.Verifier)
	if !s.OK || n != 20 || s.Records != 20 || s.Signed != 20 || s.Interrupted || !s.KeyKnown || s.Session != "s1" || s.BadRecord != -1 {
		t.Errorf("state %+v, %d events", s, n)
	}
	if s, _ := read(t, dir); !s.OK || s.KeyKnown {
		t.Errorf("without a trusted key: %+v", s)
	}
}

// One changed byte anywhere must be found, and a changed record must be named.
func TestEveryByte(t *testing.T) {
	dir, key := t.TempDir(), testKey(t)
	write(t, dir, key, 7, false)
	for _, name := range []string{EventsFile, LeavesFile, CheckpointFile, CheckpointsFile, KeyFile} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line := int64(0)
		for i := range whole {
			for _, bit := range []byte{1, 0x40} {
				bad := bytes.Clone(whole)
				bad[i] ^= bit
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				s, _ := read(t, dir, key.Verifier)
				if s.OK {
					t.Fatalf("%s: byte %d (%q) changed by %#x: not noticed", name, i, whole[i], bit)
				}
				if name == EventsFile && s.BadRecord != line {
					t.Fatalf("%s: byte %d changed: record %d named (%s), want %d", name, i, s.BadRecord, s.Problem, line)
				}
				if name == LeavesFile && s.BadRecord != int64(i/tlog.HashSize) {
					t.Fatalf("%s: byte %d changed: record %d named, want %d", name, i, s.BadRecord, i/tlog.HashSize)
				}
			}
			if whole[i] == '\n' {
				line++
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, _ := read(t, dir, key.Verifier); !s.OK {
		t.Fatalf("restored ledger: %+v", s)
	}
}

// Somebody who rewrites a record and its leaf is still caught by the signed root, and the range is given.
func TestRewrittenLeaf(t *testing.T) {
	dir, key := t.TempDir(), testKey(t)
	write(t, dir, key, 11, false)
	path := filepath.Join(dir, EventsFile)
	b, _ := os.ReadFile(path)
	lines := bytes.SplitAfter(b, []byte("\n"))
	lines[5] = bytes.Replace(lines[5], []byte(`"tgid":5`), []byte(`"tgid":6`), 1)
	os.WriteFile(path, bytes.Join(lines, nil), 0o600)
	leaf := tlog.RecordHash(bytes.TrimSuffix(lines[5], []byte("\n")))
	leaves, _ := os.ReadFile(filepath.Join(dir, LeavesFile))
	copy(leaves[5*tlog.HashSize:], leaf[:])
	os.WriteFile(filepath.Join(dir, LeavesFile), leaves, 0o600)
	s, _ := read(t, dir)
	if s.OK || s.BadRecord != 4 || !strings.Contains(s.Problem, "records 4 to 6") {
		t.Errorf("state %+v", s)
	}
}

func TestShortened(t *testing.T) {
	dir, key := t.TempDir(), testKey(t)
	write(t, dir, key, 11, false)
	b, _ := os.ReadFile(filepath.Join(dir, EventsFile))
	lines := bytes.SplitAfter(b, []byte("\n"))
	os.WriteFile(filepath.Join(dir, EventsFile), bytes.Join(lines[:8], nil), 0o600)
	leaves, _ := os.ReadFile(filepath.Join(dir, LeavesFile))
	os.WriteFile(filepath.Join(dir, LeavesFile), leaves[:8*tlog.HashSize], 0o600)
	if s, _ := read(t, dir); s.OK || !s.Interrupted || !strings.Contains(s.Problem, "cut off") {
		t.Errorf("state %+v", s)
	}
}

// Cutting the end off and putting an older checkpoint in place is not enough.
func TestShortenedWithOldCheckpoint(t *testing.T) {
	dir, key := t.TempDir(), testKey(t)
	write(t, dir, key, 11, false)
	all, _ := os.ReadFile(filepath.Join(dir, CheckpointsFile))
	first, _, _ := bytes.Cut(all, []byte("\n\n"+originPrefix))
	b, _ := os.ReadFile(filepath.Join(dir, EventsFile))
	lines := bytes.SplitAfter(b, []byte("\n"))
	leaves, _ := os.ReadFile(filepath.Join(dir, LeavesFile))
	os.WriteFile(filepath.Join(dir, CheckpointFile), append(first, '\n'), 0o600)
	os.WriteFile(filepath.Join(dir, EventsFile), bytes.Join(lines[:4], nil), 0o600)
	os.WriteFile(filepath.Join(dir, LeavesFile), leaves[:4*tlog.HashSize], 0o600)
	if s, _ := read(t, dir); s.OK || !strings.Contains(s.Problem, "cut off") {
		t.Errorf("state %+v", s)
	}
}

// After a kill at any byte of the events file everything before it is readable, and what was signed by
// then is proved.
func TestCutAnywhere(t *testing.T) {
	dir, key := t.TempDir(), testKey(t)
	write(t, dir, key, 8, true) // flushed and signed up to record 6
	path := filepath.Join(dir, EventsFile)
	whole, _ := os.ReadFile(path)
	signed := bytes.Count(whole, []byte("\n"))
	if signed != 7 {
		t.Fatalf("%d records flushed, want 7", signed)
	}
	tail := []byte(`{"seq":7,"time_ns":7,"type":"process.fork"`)
	for n := range len(tail) + 1 {
		os.WriteFile(path, append(bytes.Clone(whole), tail[:n]...), 0o600)
		s, good := read(t, dir, key.Verifier)
		if !s.OK || good != 7 || !s.Interrupted || s.CutBytes != int64(n) {
			t.Fatalf("cut after %d bytes: %+v, %d events", n, s, good)
		}
	}
}

func TestProve(t *testing.T) {
	dir, key := t.TempDir(), testKey(t)
	write(t, dir, key, 13, false)
	for i := range int64(13) {
		p, err := Prove(dir, i)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var q Proof
		if err := json.Unmarshal(b, &q); err != nil {
			t.Fatal(err)
		}
		if head, err := CheckProof(&q, key.Verifier); err != nil || head.Size != 13 {
			t.Fatalf("proof %d: %v", i, err)
		}
		bad := q
		bad.Record = bytes.Replace(q.Record, []byte(`"time_ns":`), []byte(`"time_ns":1`), 1)
		if _, err := CheckProof(&bad); err == nil {
			t.Fatalf("proof %d holds for another record", i)
		}
		bad = q
		bad.Index = (i + 1) % 13
		if _, err := CheckProof(&bad); err == nil {
			t.Fatalf("proof %d holds at another index", i)
		}
		if _, err := CheckProof(&q, testKey(t).Verifier); err == nil {
			t.Fatalf("proof %d holds for a stranger's key", i)
		}
	}
	if _, err := Prove(dir, 13); err == nil {
		t.Error("proved a record that is not there")
	}
}

func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	k, err := LoadKey(dir, "h")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "ledger.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key mode %v, %v", info.Mode(), err)
	}
	again, err := LoadKey(dir, "other")
	if err != nil || again.Verifier != k.Verifier {
		t.Fatalf("second load: %v", err)
	}
	os.Chmod(filepath.Join(dir, "ledger.key"), 0o640)
	if _, err := LoadKey(dir, "h"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable key accepted: %v", err)
	}
}

// A full disk costs records, is told, and what was written before and after is whole.
func TestPrivDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	mnt := t.TempDir()
	if err := unix.Mount("tmpfs", mnt, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatalf("mount tmpfs: %v", err)
	}
	defer unix.Unmount(mnt, unix.MNT_DETACH)
	dir := filepath.Join(mnt, "s")
	w, err := Create(dir, "s1", testKey(t))
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 4000)
	put := func(n int) (failed int) {
		for range n {
			e := event.New(1, nil, &event.FileOpen{Path: big})
			err := w.Append(&e)
			if err == nil {
				err = w.Flush()
			}
			if err != nil {
				failed++
			}
		}
		return failed
	}
	if put(100) == 0 {
		t.Fatal("256 KiB took 400 KB")
	}
	if n, err := w.Failed(); err == nil || n == 0 {
		t.Fatalf("failure not kept: %v, %d", err, n)
	}
	if err := unix.Mount("tmpfs", mnt, "tmpfs", unix.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	if n := put(5); n != 0 {
		t.Fatalf("%d writes failed after there was room again", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, _ := Open(dir)
	var lost, opens uint64
	for e, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case *event.ObserverLost:
			lost += b.Counts["ledger"]
		case *event.FileOpen:
			opens++
		}
	}
	if s := r.State(); !s.OK || opens+lost != 105 || lost == 0 {
		t.Errorf("state %+v; %d opens + %d lost, want 105", s, opens, lost)
	}
}

// The disk fills at every place there is: within a line, within the hashes, between the two.
func TestPrivDiskFullAnywhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	mnt := t.TempDir()
	if err := unix.Mount("tmpfs", mnt, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatalf("mount tmpfs: %v", err)
	}
	defer unix.Unmount(mnt, unix.MNT_DETACH)
	for pages := range 40 {
		dir := filepath.Join(mnt, "s")
		w, err := Create(dir, "s1", testKey(t))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		put := func(records int) {
			for range records {
				e := event.New(1, nil, &event.FileOpen{Path: strings.Repeat("x", n%97)})
				n++
				_ = w.Append(&e) // counted, as the ledger has to say
				if n%61 == 0 {
					_ = w.Flush()
				}
			}
		}
		put(300)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		// A file takes what is left but for some pages.
		var st unix.Statfs_t
		if err := unix.Statfs(mnt, &st); err != nil {
			t.Fatal(err)
		}
		filler := filepath.Join(mnt, "filler")
		if err := os.WriteFile(filler, make([]byte, (int(st.Bavail)-pages)*int(st.Bsize)), 0o600); err != nil {
			t.Fatal(err)
		}
		put(2000)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		put(500)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var lost uint64
		opens := 0
		for e, err := range r.Events() {
			if err != nil {
				t.Fatalf("%d pages left: %v", pages, err)
			}
			switch b := e.Body.(type) {
			case *event.ObserverLost:
				lost += b.Counts["ledger"]
			case *event.FileOpen:
				opens++
			}
		}
		missing, _ := w.Missing()
		if s := r.State(); !s.OK || opens+int(lost) != n || lost != missing || lost == 0 {
			t.Errorf("%d pages left: state %+v; %d opens + %d lost, want %d; missing %d", pages, s, opens, lost, n, missing)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	w, err := Create(b.TempDir()+"/s", "s1", testKey(b))
	if err != nil {
		b.Fatal(err)
	}
	e := event.New(1, &event.ProcessKey{TGID: 1, StartNS: 2}, &event.FileOpen{Path: "/home/dev/app/src/main.go", Flags: []string{"O_RDONLY", "O_CLOEXEC"}, Dev: 5, Ino: 6, Count: 1})
	for b.Loop() {
		if err := w.Append(&e); err != nil {
			b.Fatal(err)
		}
	}
	w.Close()
}
