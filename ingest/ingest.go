// Package ingest reads the records that assistants keep of themselves and turns them into events: what the
// model asked for, how it ended, in which mode. These records are one witness among several. They are
// written by the assistant, late and at its leisure, in formats that their vendors call internal; nothing
// here trusts them further than to say what they say.
//
// The package is fed bytes and imports event only. It never fails on what it does not understand: a line
// that is not one of the known shapes is counted and passed over.
package ingest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/ryehq/rye/event"
)

// A Row is one fact of a transcript with the transcript's own time (zero when the line has none).
type Row struct {
	Time time.Time
	Body event.Body
}

// maxLine bounds one line. Real transcripts hold images as base64, some megabytes each.
const maxLine = 64 << 20

// A File turns the growing content of one transcript into rows.
type File struct {
	Path       string
	Compressed bool // its bytes go through Decompress first

	line    func(f *File, b []byte, offset int64) []Row
	buf     []byte
	offset  int64 // of buf[0] in the file
	skip    bool  // inside a line over maxLine
	thread  string
	parent  string
	agent   string // sub-agent
	version string
	turn    string
	cwd     string

	Skipped int // lines that were not understood or were too long
}

// Open returns a File for a path that is an assistant's transcript by its name and place, and false for
// any other. homes are the assistants' state folders (CODEX_HOME, ~/.claude …).
func Open(path string, homes []string) (*File, bool) {
	plain := strings.TrimSuffix(path, ".zst")
	base := filepath.Base(plain)
	if filepath.Ext(base) != ".jsonl" {
		return nil, false
	}
	in := func(sub ...string) bool {
		for _, h := range homes {
			for _, s := range sub {
				if strings.HasPrefix(path, filepath.Join(h, s)+string(filepath.Separator)) {
					return true
				}
			}
		}
		return false
	}
	switch {
	case strings.HasPrefix(base, "rollout-") && in("sessions", "archived_sessions"):
		return &File{Path: path, Compressed: plain != path, line: codexLine}, true
	case plain != path:
		return nil, false // nobody else compresses its records
	case base == "events.jsonl" && in("session-state"):
		return &File{Path: path, line: copilotLine, thread: filepath.Base(filepath.Dir(path))}, true
	case in("projects"):
		return &File{Path: path, line: claudeLine, thread: strings.TrimSuffix(base, ".jsonl")}, true
	}
	return nil, false
}

// Feed takes the next bytes of the file and returns the rows of the lines that they complete.
func (f *File) Feed(p []byte) []Row {
	var rows []Row
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			if f.skip || len(f.buf)+len(p) > maxLine {
				f.offset += int64(len(f.buf) + len(p))
				f.buf, f.skip = f.buf[:0], true
				return rows
			}
			f.buf = append(f.buf, p...)
			return rows
		}
		line := p[:i]
		if len(f.buf) > 0 {
			f.buf = append(f.buf, line...)
			line = f.buf
		}
		size := int64(len(line)) + 1
		switch {
		case f.skip:
			f.skip = false
			f.Skipped++
		case len(bytes.TrimSpace(line)) > 0:
			rows = append(rows, f.line(f, line, f.offset)...)
		}
		f.offset += size
		f.buf = f.buf[:0]
		p = p[i+1:]
	}
	return rows
}

// parse reads a line as JSON into v.
func (f *File) parse(b []byte, v any) bool {
	if err := json.Unmarshal(b, v); err != nil {
		f.Skipped++
		return false
	}
	return true
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// raw decodes a value that is a JSON string or any other JSON.
func rawText(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	return string(b)
}
