package screen

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ryehq/rye/event"
)

// recordings returns the files of testdata/recordings.tar.zst: what real assistants wrote to their
// terminal while a scripted model answered them. dialogs/ and claude/ hold one dialog each, keys/
// answers with arrows, the mouse, text and in the middle of a resize, versions/ the releases between
// those of claude/ and Codex 0.58 to 0.149.
var recordings = sync.OnceValues(func() (map[string][]byte, error) {
	f, err := os.Open("testdata/recordings.tar.zst")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := make(map[string][]byte)
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
})

// A step is one thing that happened in a recorded session.
type step struct {
	timeNS     uint64
	out        []byte
	in         string
	cols, rows int
}

// A recording is a terminal's size and what happened on it.
type recording struct {
	name       string
	cols, rows int
	steps      []step
}

func load(t testing.TB, name string) recording {
	t.Helper()
	files, err := recordings()
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.HasSuffix(name, ".cast"):
		return loadCast(t, name, files[name])
	case strings.HasSuffix(name, ".raw"):
		return loadRaw(t, name, files[name])
	}
	return loadTiming(t, name, files[path.Join(name, "pty.raw")], files[path.Join(name, "timing.jsonl")])
}

func nanos(seconds float64) uint64 { return uint64(seconds*1e9) + 1e9 }

func loadCast(t testing.TB, name string, data []byte) recording {
	r := recording{name: name}
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		if i == 0 {
			var head struct{ Width, Height int }
			if err := json.Unmarshal(line, &head); err != nil {
				t.Fatal(err)
			}
			r.cols, r.rows = head.Width, head.Height
			continue
		}
		var e [3]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		s := step{timeNS: nanos(e[0].(float64))}
		switch text := e[2].(string); e[1] {
		case "i":
			s.in = text
		case "r":
			if _, err := fmt.Sscanf(text, "%dx%d", &s.cols, &s.rows); err != nil {
				t.Fatal(err)
			}
		default:
			s.out = []byte(text)
		}
		r.steps = append(r.steps, s)
	}
	return r
}

func loadTiming(t testing.TB, name string, raw, timing []byte) recording {
	r := recording{name: name, cols: 100, rows: 40}
	switch {
	case strings.Contains(name, "_c80"):
		r.cols, r.rows = 80, 30
	case strings.Contains(name, "_see"):
		r.cols, r.rows = 80, 24
	}
	if len(raw) == 0 {
		t.Fatalf("no recording %s", name)
	}
	for line := range bytes.Lines(timing) {
		var e struct {
			T   float64
			Off *int
			Len int
			In  string
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.In != "":
			r.steps = append(r.steps, step{timeNS: nanos(e.T), in: e.In})
		case e.Len > 0:
			r.steps = append(r.steps, step{timeNS: nanos(e.T), out: raw[*e.Off : *e.Off+e.Len]})
		}
	}
	return r
}

// The streams of Codex 0.171 were kept without times and keys. Where a key was pressed is known from
// what followed: these keys are put back right after the frame that they answer (at is the offset in
// the output), as is the one change of size.
type put struct {
	at         int
	key        string
	cols, rows int
}

var rawSizes = map[string][2]int{
	"codex-0.171/altscreen-110x40-resize-70x40-rawmode.raw": {110, 40},
	"codex-0.171/inline-100x45-approvals.raw":               {100, 45},
	"codex-0.171/inline-100x45-auto-review.raw":             {100, 45},
	"codex-0.171/inline-110x40-hook-rewrite.raw":            {110, 40},
	"codex-0.171/inline-110x45-daemon-mode.raw":             {110, 45},
	"codex-0.171/inline-110x45-mcp-approval.raw":            {110, 45},
	"codex-0.171/inline-110x45-patch-stdin-prefix.raw":      {110, 45},
}

var rawPuts = map[string][]put{
	"codex-0.171/altscreen-110x40-resize-70x40-rawmode.raw": {{at: 12138, key: "y"}, {at: 16075, key: "y"}, {at: 22475, key: "y"}, {at: 36780, cols: 70, rows: 40}},
	"codex-0.171/inline-100x45-approvals.raw": {{at: 8769, key: "y"}, {at: 15878, key: "p"}, {at: 23001, key: "y"}, {at: 30926, key: "1"},
		{at: 38033, key: "\r"}, {at: 48821, key: "y"}, {at: 57794, key: "y"}, {at: 65347, key: "\x1b"}},
	"codex-0.171/inline-110x40-hook-rewrite.raw":       {{at: 9726, key: "y"}},
	"codex-0.171/inline-110x45-daemon-mode.raw":        {{at: 12129, key: "y"}},
	"codex-0.171/inline-110x45-mcp-approval.raw":       {{at: 8370, key: "\r"}, {at: 13442, key: "\x1b[B"}, {at: 14110, key: "\r"}},
	"codex-0.171/inline-110x45-patch-stdin-prefix.raw": {{at: 19428, key: "y"}, {at: 23989, key: "y"}, {at: 34479, key: "y"}, {at: 39232, key: "y"}, {at: 45604, key: "y"}, {at: 51912, key: "p"}},
}

// loadRaw gives every 4 KiB of output, and what is put in, a time of its own.
func loadRaw(t testing.TB, name string, data []byte) recording {
	size, ok := rawSizes[name]
	if !ok || len(data) == 0 {
		t.Fatalf("no recording %s", name)
	}
	r := recording{name: name, cols: size[0], rows: size[1]}
	now, at := uint64(1e9), 0
	output := func(to int) {
		for at < to {
			n := min(4096, to-at)
			r.steps = append(r.steps, step{timeNS: now, out: data[at : at+n]})
			at += n
			now += 1e6
		}
	}
	for _, p := range rawPuts[name] {
		output(p.at)
		now += 700e6
		r.steps = append(r.steps, step{timeNS: now, in: p.key, cols: p.cols, rows: p.rows})
		now += 10e6
	}
	output(len(data))
	return r
}

// withoutKeys is the recording as if nobody had typed anything.
func (r recording) withoutKeys() recording {
	var steps []step
	for _, s := range r.steps {
		if s.in == "" {
			steps = append(steps, s)
		}
	}
	r.steps = steps
	return r
}

// cut returns the recording with each piece of output in pieces of size(), which were read at the
// same time.
func (r recording) cut(size func() int) recording {
	var steps []step
	for _, s := range r.steps {
		for len(s.out) > 0 {
			n := min(size(), len(s.out))
			steps = append(steps, step{timeNS: s.timeNS, out: s.out[:n]})
			s.out = s.out[n:]
		}
		if s.in != "" || s.cols > 0 {
			steps = append(steps, s)
		}
	}
	r.steps = steps
	return r
}

// pieces are the ways a stream may arrive.
func pieces(seed uint64) map[string]func() int {
	random := rand.New(rand.NewPCG(seed, 7))
	return map[string]func() int{
		"1-byte":  func() int { return 1 },
		"7-byte":  func() int { return 7 },
		"random":  func() int { return 1 + random.IntN(300) },
		"as read": func() int { return 1 << 20 },
	}
}

// replay feeds a recording to a witness and returns what it told.
func replay(r recording) ([]event.Event, *Screen) {
	var events []event.Event
	s := New(r.cols, r.rows, func(e event.Event) { events = append(events, e) })
	end := uint64(1e9)
	for _, st := range r.steps {
		switch {
		case st.cols > 0:
			s.Resize(st.cols, st.rows, st.timeNS)
		case st.in != "":
			s.Input([]byte(st.in), st.timeNS)
		default:
			s.Output(st.out, st.timeNS)
		}
		end = st.timeNS
	}
	s.Close(end + 1e9)
	return events, s
}
