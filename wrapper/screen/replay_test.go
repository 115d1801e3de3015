package screen

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

var update = flag.Bool("update", false, "write testdata/decisions.golden anew")

const golden = "testdata/decisions.golden"

// TestRecordings replays every recording, its output cut in four ways, and compares what the witness
// told with the list in testdata/decisions.golden, which was checked against the scenarios by eye.
func TestRecordings(t *testing.T) {
	names := recordingNames(t)
	if *update {
		writeGolden(t, names)
	}
	want := readGolden(t)
	if len(want) != len(names) {
		t.Errorf("%d recordings, %d in %s", len(names), len(want), golden)
	}
	for i, name := range names {
		r := load(t, name)
		for how, size := range pieces(uint64(i)) {
			events, _ := replay(r.cut(size))
			if got := strings.Join(told(events), "\n"); got != want[name] {
				t.Errorf("%s, %s: told\n%s\nwant\n%s", name, how, got, want[name])
			}
		}
	}
}

// TestNobodyTyped replays the recordings without the keys: nothing may be attested, and the same
// dialogs be told.
func TestNobodyTyped(t *testing.T) {
	other := map[string]int{
		"keys/cl-ctrlo.cast":         +1, // without the key that hid the dialog, it went and another came
		"keys/cl-parallel-same.cast": -1, // without the key between them, two equal dialogs are one
	}
	for _, name := range recordingNames(t) {
		with, _ := replay(load(t, name))
		without, _ := replay(load(t, name).withoutKeys())
		for _, e := range without {
			switch b := e.Body.(type) {
			case *event.ApprovalGranted:
				if b.Attested || b.Key != "" {
					t.Errorf("%s: attested without a key: %s", name, words(e))
				}
				if b.Row == "" && b.Uncertain == "" {
					t.Errorf("%s: sure without a key or a row: %s", name, words(e))
				}
			case *event.ApprovalDenied:
				if b.Attested || b.By == "user" {
					t.Errorf("%s: attested without a key: %s", name, words(e))
				}
			}
		}
		if a, b := count(with)+other[name], count(without); a != b {
			t.Errorf("%s: %d dialogs with keys, %d without", name, a, b)
		}
	}
}

func count(events []event.Event) (prompts int) {
	for _, e := range events {
		if _, ok := e.Body.(*event.ApprovalPrompted); ok {
			prompts++
		}
	}
	return prompts
}

// recordingNames lists the recordings of the archive.
func recordingNames(t testing.TB) []string {
	t.Helper()
	files, err := recordings()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range maps.Keys(files) {
		switch {
		case strings.HasSuffix(name, "/pty.raw"):
			names = append(names, strings.TrimSuffix(name, "/pty.raw"))
		case strings.HasSuffix(name, ".cast"), strings.HasSuffix(name, ".raw"):
			names = append(names, name)
		}
	}
	if len(names) < 100 {
		t.Fatalf("%d recordings in the archive", len(names))
	}
	slices.Sort(names)
	return names
}

// told puts events into words, without ids, offsets and screens.
func told(events []event.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, words(e))
	}
	return out
}

func words(e event.Event) string {
	flags := func(ambiguous, cut bool, hidden []string) string {
		var f []string
		if ambiguous {
			f = append(f, "ambiguous")
		}
		if cut {
			f = append(f, "cut")
		}
		for _, h := range hidden {
			f = append(f, "hidden: "+h)
		}
		if f == nil {
			return ""
		}
		return " [" + strings.Join(f, ", ") + "]"
	}
	switch b := e.Body.(type) {
	case *event.ApprovalPrompted:
		s := fmt.Sprintf("prompted %s %s %q%s", b.Grammar, b.Kind, b.Command, flags(b.Ambiguous, b.Cut, b.Hidden))
		if b.Reason != "" {
			s += fmt.Sprintf(" reason=%q", b.Reason)
		}
		if b.Thread != "" {
			s += fmt.Sprintf(" thread=%q", b.Thread)
		}
		if b.Prefix != nil {
			s += fmt.Sprintf(" prefix=%q", b.Prefix)
		}
		return s + fmt.Sprintf(" options=%d", len(b.Options))
	case *event.ApprovalGranted:
		s := fmt.Sprintf("granted %s %s %q key=%q attested=%t", b.Decision, b.Kind, b.Command, b.Key, b.Attested)
		if b.Prefix != nil {
			s += fmt.Sprintf(" prefix=%q", b.Prefix)
		}
		return s + rowAndDoubt(b.Row, b.RowCut, b.Uncertain)
	case *event.ApprovalDenied:
		return fmt.Sprintf("denied %s %s %q key=%q attested=%t by=%s", b.Decision, b.Kind, b.Command, b.Key, b.Attested, b.By) +
			rowAndDoubt(b.Row, b.RowCut, b.Uncertain)
	case *event.ScreenUnreadable:
		return fmt.Sprintf("unreadable %q key=%q rows=%d skipped=%d", b.Why, b.AnsweredKey, len(b.Screen), b.Skipped)
	}
	return fmt.Sprintf("%T", e.Body)
}

func rowAndDoubt(row string, cut bool, uncertain string) string {
	s := ""
	if row != "" {
		s += fmt.Sprintf(" row=%q", row)
	}
	if cut {
		s += " rowcut"
	}
	if uncertain != "" {
		s += fmt.Sprintf(" uncertain=%q", uncertain)
	}
	return s
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		want[name] = strings.TrimSpace(body)
	}
	return want
}

func writeGolden(t *testing.T, names []string) {
	t.Helper()
	var b strings.Builder
	for _, name := range names {
		events, _ := replay(load(t, name))
		fmt.Fprintf(&b, "== %s\n", name)
		for _, l := range told(events) {
			b.WriteString(l + "\n")
		}
		b.WriteString("\n")
	}
	if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
