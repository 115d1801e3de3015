package screen

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/ryehq/rye/wrapper/screen/grid"
)

// TestOracle compares the terminal model with another one (xterm.js), which rendered these recordings
// when they were made: 526 screens, every row of them.
func TestOracle(t *testing.T) {
	files, err := recordings()
	if err != nil {
		t.Fatal(err)
	}
	screens := 0
	for _, name := range recordingNames(t) {
		oracle, ok := files[path.Join(name, "screens.txt")]
		if !ok {
			continue
		}
		r := load(t, name)
		raw := files[path.Join(name, "pty.raw")]
		g := grid.New(r.cols, r.rows)
		drawn := 0
		for _, part := range bytes.Split(append([]byte("\n"), oracle...), []byte("\n=== snap "))[1:] {
			head, body, _ := bytes.Cut(part, []byte("\n"))
			var snap, buffer string
			var at, base, x, y int
			if _, err := fmt.Sscanf(string(head), "%s @%d buf=%s base=%d cur=%d,%d", &snap, &at, &buffer, &base, &x, &y); err != nil {
				t.Fatalf("%s: %q: %v", name, head, err)
			}
			g.Write(raw[drawn:at])
			drawn = at
			screens++
			want := strings.Split(string(body), "\n")
			for row := range max(r.rows, len(want)) {
				w := ""
				if row < len(want) {
					w = want[row]
				}
				if got := g.Row(row).Raw(); trim(got) != trim(w) {
					t.Errorf("%s, %s, row %d: %q, the other terminal has %q", name, snap, row, got, w)
				}
			}
			if (buffer == "alternate") != g.Alternate() {
				t.Errorf("%s, %s: alternate screen %t", name, snap, g.Alternate())
			}
		}
	}
	if screens != 526 {
		t.Errorf("%d screens compared", screens)
	}
}

func trim(s string) string { return strings.TrimRight(s, " \u00a0") }
