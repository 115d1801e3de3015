package ingest

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestCopilot(t *testing.T) {
	for name, want := range map[string][]string{
		"copilot-once": {
			"mode   ", `call bash command "touch built.txt && make -n all 2>&1"`, "mode manual  ", "result permission approved approved by user", "result output completed exit 0",
		},
		"copilot-cancel": {
			"mode   ", `call bash command "touch built.txt && make -n all 2>&1"`, "mode manual  ", "result permission rejected cancelled by unknown",
		},
		"copilot-always": {
			"mode   ", `call bash command "touch built.txt && make -n all 2>&1"`, "mode manual  ", "result permission approved approved-for-location by user", "result output completed exit 0",
		},
	} {
		f, ok := Open("/h/.copilot/session-state/s1/events.jsonl", []string{"/h/.copilot"})
		if !ok {
			t.Fatal("the record is not taken for one")
		}
		b, err := os.ReadFile("testdata/" + name + ".events.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(f.Feed(b)); !slices.Equal(got[:len(want)], want) || f.Skipped > 0 {
			t.Errorf("%s: %q, want %q; %d skipped", name, got, want, f.Skipped)
		}
	}
	for _, path := range []string{"/h/.copilot/session-state/s1/other.jsonl", "/h/.copilot/events.jsonl", "/h/.copilot/session-state/s1/events.jsonl.zst"} {
		if _, ok := Open(path, []string{"/h/.copilot"}); ok {
			t.Errorf("%s was taken for a record", path)
		}
	}
}

// A compressed rollout gives the rows of the plain one: of two frames, read while it is cut off, and read again.
func TestCompressed(t *testing.T) {
	plain, err := os.ReadFile("testdata/codex-once.rollout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := describe(open(t, "codex-once.rollout.jsonl").Feed(plain))
	var packed bytes.Buffer
	half := len(plain) * 9 / 10
	for _, part := range [][]byte{plain[:half], plain[half:]} {
		w, err := zstd.NewWriter(&packed)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(part)
		w.Close()
	}
	fresh := func() *File {
		f, ok := Open("/h/.codex/sessions/2026/12/01/rollout-x.jsonl.zst", []string{"/h/.codex"})
		if !ok || !f.Compressed {
			t.Fatal("a compressed rollout is not taken for one")
		}
		return f
	}
	f := fresh()
	rows, err := f.Decompress(bytes.NewReader(packed.Bytes()))
	if err != nil || !slices.Equal(describe(rows), want) {
		t.Errorf("%v: %q", err, describe(rows))
	}
	if again, err := f.Decompress(bytes.NewReader(packed.Bytes())); err != nil || len(again) > 0 {
		t.Errorf("read again: %d rows, %v", len(again), err)
	}
	f = fresh()
	first, err := f.Decompress(bytes.NewReader(packed.Bytes()[:packed.Len()-8]))
	if err == nil || len(first) == 0 {
		t.Errorf("cut off: %d rows, %v", len(first), err)
	}
	rest, err := f.Decompress(bytes.NewReader(packed.Bytes()))
	if got := append(describe(first), describe(rest)...); err != nil || !slices.Equal(got, want) {
		t.Errorf("cut off and then whole: %v: %q", err, got)
	}
	if rows, err := fresh().Decompress(bytes.NewReader([]byte("no frame at all, only text"))); err == nil {
		t.Errorf("text was decompressed: %d rows", len(rows))
	}
}

func FuzzCopilot(f *testing.F) {
	b, err := os.ReadFile("testdata/copilot-once.events.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		x, _ := Open("/h/.copilot/session-state/s1/events.jsonl", []string{"/h/.copilot"})
		for _, r := range x.Feed(append(b, '\n')) {
			if r.Body == nil {
				t.Fatal("a row without a body")
			}
		}
	})
}

func FuzzDecompress(f *testing.F) {
	w, _ := zstd.NewWriter(nil)
	f.Add(w.EncodeAll([]byte("{\"timestamp\":\"x\",\"type\":\"session_meta\",\"payload\":{}}\n"), nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, _ := Open("/h/.codex/sessions/2026/12/01/rollout-x.jsonl.zst", []string{"/h/.codex"})
		x.Decompress(bytes.NewReader(b))
	})
}
