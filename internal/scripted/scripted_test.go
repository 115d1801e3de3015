package scripted

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"ls", 10, []string{"ls"}},
		{"one two three", 8, []string{"one two", "three"}},
		{"a\nb  c", 10, []string{"a", "b  c"}},
		{"aaaaaaaaaaaa b", 5, []string{"aaaaa", "aaaaa", "aa b"}},
		{"", 5, []string{""}},
	} {
		if got := rows(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestSnippet(t *testing.T) {
	if got := snippetOf("one\ntwo"); got != "one ..." {
		t.Errorf("%q", got)
	}
	if got := snippetOf(strings.Repeat("x", 90)); len(got) != 80 || !strings.HasSuffix(got, "...") {
		t.Errorf("%q", got)
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte(`{"as":"codex","steps":[{"ask":"ls","times":2}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(file); err != nil || s.As != "codex" || s.Steps[0].Times != 2 {
		t.Errorf("%+v %v", s, err)
	}
	if err := os.WriteFile(file, []byte(`{"steps":`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + "-none"} {
		if s, err := Load(name); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if err := Play(&Script{As: "nobody"}, os.Stdin, os.Stdout); err == nil {
		t.Error("nobody was played")
	}
}
