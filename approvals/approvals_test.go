package approvals

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "approvals"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(key string) Request {
	return Request{Key: key, Rule: "r", Bundle: "b@1", Method: "POST", Host: "h:443", Path: "/p", Bytes: 3}
}

func ask(t *testing.T, s *Store, r Request, want State) Entry {
	t.Helper()
	e, err := s.Ask(r)
	if err != nil || e.State != want {
		t.Fatalf("%+v %v, want %s", e, err, want)
	}
	return e
}

func TestOnce(t *testing.T) {
	s := open(t)
	first := ask(t, s, request("k"), Waiting)
	if again := ask(t, s, request("k"), Waiting); again.ID != first.ID || again.Count != 2 {
		t.Errorf("%+v", again)
	}
	other := ask(t, s, request("other"), Waiting)
	if other.ID == first.ID {
		t.Error("two requests are one")
	}
	if _, err := s.Approve("w", "me", 0); err == nil {
		t.Error("an id of two")
	}
	for _, id := range []string{"", "x"} {
		if _, err := s.Approve(id, "me", 0); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if e, err := s.Approve(first.ID, "me", 0); err != nil || e.State != Approved || e.By != "me" || e.For() != "this request" {
		t.Fatalf("%+v %v", e, err)
	}
	if e := ask(t, s, request("k"), Approved); e.ID != first.ID || e.By != "me" || e.At.IsZero() {
		t.Errorf("%+v", e)
	}
	if e := ask(t, s, request("k"), Waiting); e.ID == first.ID {
		t.Error("one approval for two requests")
	}
	ask(t, s, request("other"), Waiting)
	if _, err := s.Deny(other.ID, "me"); err != nil {
		t.Fatal(err)
	}
	ask(t, s, request("other"), Denied)
	ask(t, s, request("other"), Denied)
}

func TestForATime(t *testing.T) {
	s := open(t)
	now := time.Now()
	s.now = func() time.Time { return now }
	e := ask(t, s, request("k"), Waiting)
	denied := ask(t, s, request("no"), Waiting)
	if _, err := s.Deny(denied.ID, "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approve(e.ID, "me", MaxFor+1); err == nil {
		t.Error("approved for too long")
	}
	if _, err := s.Approve(e.ID, "me", time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ask(t, s, request("another"), Approved)
	}
	ask(t, s, request("no"), Denied) // what was refused by itself stays refused
	for i, change := range []func(*Request){
		func(r *Request) { r.Rule = "r2" }, func(r *Request) { r.Host = "other:443" }, func(r *Request) { r.Bundle = "b@2" }, func(r *Request) { r.RuleVersion = "2" },
	} {
		r := request(fmt.Sprint("x", i))
		change(&r)
		ask(t, s, r, Waiting)
	}
	now = now.Add(time.Hour + time.Second)
	ask(t, s, request("another"), Waiting)
}

func TestAnswersEnd(t *testing.T) {
	s := open(t)
	now := time.Now()
	s.now = func() time.Time { return now }
	e := ask(t, s, request("k"), Waiting)
	if _, err := s.Approve(e.ID, "me", 0); err != nil {
		t.Fatal(err)
	}
	now = now.Add(onceLife + time.Second)
	ask(t, s, request("k"), Waiting)
	now = now.Add(waitLife + time.Second)
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestBounds(t *testing.T) {
	s := open(t)
	r := request("long")
	r.Path, r.Reason = strings.Repeat("p", 1<<20), strings.Repeat("r", 1<<20)
	if e := ask(t, s, r, Waiting); len(e.Path) > 600 || len(e.Reason) > 600 {
		t.Errorf("%d %d", len(e.Path), len(e.Reason))
	}
	list := make([]Entry, maxEntries)
	for i := range list {
		list[i] = Entry{ID: fmt.Sprint("w", i), State: Approved, Request: request(fmt.Sprint(i)), Until: time.Now().Add(time.Hour)}
	}
	if err := s.write(list); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ask(request("more")); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	list[7].State, list[7].Last = Waiting, time.Now()
	if err := s.write(list); err != nil {
		t.Fatal(err)
	}
	ask(t, s, request("more"), Waiting) // in the place of the one that waited
	if got, err := s.List(); err != nil || len(got) != maxEntries {
		t.Errorf("%d %v", len(got), err)
	}
}

func TestFiles(t *testing.T) {
	s := open(t)
	e := ask(t, s, request("k"), Waiting)
	for _, name := range []string{file, lockFile} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, file+".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	name := filepath.Join(s.dir, file)
	if err := os.Chmod(name, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approve(e.ID, "me", 0); err == nil {
		t.Error("a file that others may write")
	}
	if err := os.WriteFile(name, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ask(request("k")); err == nil {
		t.Error("a broken file")
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "[{" {
		t.Errorf("a broken file was overwritten: %q %v", b, err)
	}
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.dir); err == nil {
		t.Error("a folder that others may write")
	}
}

// One approval lets one of many requests pass, in whatever process they are.
func TestProcesses(t *testing.T) {
	if dir := os.Getenv("APPROVALS_DIR"); dir != "" {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Ask(request("k"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("state=%s\n", e.State)
		return
	}
	s := open(t)
	e := ask(t, s, request("k"), Waiting)
	if _, err := s.Approve(e.ID, "me", 0); err != nil {
		t.Fatal(err)
	}
	var passed, waiting atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestProcesses$")
			cmd.Env = append(os.Environ(), "APPROVALS_DIR="+s.dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			passed.Add(int64(strings.Count(string(out), "state=approved")))
			waiting.Add(int64(strings.Count(string(out), "state=waiting")))
		})
	}
	all.Wait()
	if passed.Load() != 1 || waiting.Load() != 7 {
		t.Errorf("%d passed, %d wait", passed.Load(), waiting.Load())
	}
}
