package index

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
)

func TestIndex(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Session{ID: "a", Name: "n", Command: []string{"make", "all \"x\""}, CWD: "/w", Start: "2026-01-02T00:00:00Z", State: "running", AnchorSize: 3, AnchorRoot: "r3"}
	if err := db.Put(want); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Get("a"); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	// An anchor never goes back: that is what it is for.
	older := want
	older.AnchorSize, older.AnchorRoot, older.State = 2, "r2", "ended"
	if err := db.Put(older); err != nil {
		t.Fatal(err)
	}
	if got, _ := db.Get("a"); got.AnchorSize != 3 || got.AnchorRoot != "r3" || got.State != "ended" {
		t.Errorf("anchor went back: %+v", got)
	}
	if _, err := db.Get("b"); !errors.Is(err, ErrNone) {
		t.Errorf("missing row: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			other, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer other.Close()
			if err := other.Put(Session{ID: fmt.Sprint(i), Command: []string{}, Start: fmt.Sprintf("2026-01-01T00:00:0%dZ", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := db.List()
	if err != nil || len(list) != 9 || list[0].ID != "a" || list[1].ID != "7" {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	if err := db.Forget(map[string]bool{"a": true}); err != nil {
		t.Fatal(err)
	}
	if list, _ := db.List(); len(list) != 1 {
		t.Errorf("%d rows left", len(list))
	}
	db.Close()
}
