package scripted

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A transcript is a file of JSON lines.
type transcript struct{ f *os.File }

func newTranscript(path string) (transcript, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return transcript{}, fmt.Errorf("make transcript: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return transcript{}, fmt.Errorf("make transcript: %w", err)
	}
	return transcript{f}, nil
}

func (t transcript) row(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	if _, err := t.f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return nil
}

type object = map[string]any

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

func newUUID() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func recorded(s *Step) string {
	if s.Record != "" {
		return s.Record
	}
	return s.Ask
}

// quote makes one word of a text for bash.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }
