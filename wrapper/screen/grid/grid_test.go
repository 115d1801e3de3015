package grid

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func screenOf(g *Grid) string {
	_, rows := g.Size()
	var out []string
	for y := range rows {
		out = append(out, g.Row(y).Raw())
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// TestTerminal holds what terminals agree on, at 10 columns and 3 rows, each case in one piece and in
// single bytes.
func TestTerminal(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"text", "ab\r\ncd", "ab\ncd"},
		{"autowrap", "0123456789ab", "0123456789\nab"},
		{"no wrap before the next character", "0123456789\r\nab", "0123456789\nab"},
		{"autowrap off", "\x1b[?7l0123456789ab", "012345678b"},
		{"scroll", "1\r\n2\r\n3\r\n4", "2\n3\n4"},
		{"a title with the byte 9C in it", "\x1b]0;✳ Claude Code\x07rm x", "rm x"},
		{"a title ended by ST", "\x1b]2;t\x1b\\x", "x"},
		{"wide character at the edge", "012345678日x", "012345678\n日x"},
		{"wide character overwritten in half", "日\x1b[2Gx", " x"},
		{"wide character overwritten on the left", "日\x1b[Gx", "x"},
		{"mark on a letter", "e\u0301cho", "e\u0301cho"},
		{"mark on the last column", "012345678e\u0301", "012345678e\u0301"},
		{"emoji of several characters", "👩\u200d💻x", "👩\u200d💻x"},
		{"skin tone", "👍🏽x", "👍🏽x"},
		{"zero-width characters stay beside their cell", "a\u200bb\u202ec", "a\u200bb\u202ec"},
		{"incomplete UTF-8 before a sequence", "a\xe2\x1b[2Kb", "  b"},
		{"bytes that are no UTF-8", "a\x9b2Kb", "a\ufffd2Kb"},
		{"overlong UTF-8", "\xc0\xafx", "\ufffd\ufffdx"},
		{"C1 in UTF-8 is obeyed", "abc\u009b2Gx", "axc"},
		{"erase below, above, all", "11\r\n22\r\n33\x1b[2;2H\x1b[J", "11\n2"},
		{"erase above", "11\r\n22\r\n33\x1b[2;1H\x1b[1J", "\n 2\n33"},
		{"erase scrollback leaves the screen", "hello\x1b[3J!", "hello!"},
		{"erase line", "hello\x1b[3G\x1b[K", "he"},
		{"erase to the left", "hello\x1b[3G\x1b[1K", "   lo"},
		{"insert and delete characters", "abcdef\x1b[2G\x1b[2@\x1b[6G\x1b[P", "a  bcef"},
		{"insert mode", "abc\x1b[G\x1b[4hx", "xabc"},
		{"erase characters", "abcdef\x1b[2G\x1b[2X", "a  def"},
		{"insert and delete lines", "1\r\n2\r\n3\x1b[1;1H\x1b[L\x1b[3;1H\x1b[M", "\n1"},
		{"repeat", "ab\x1b[3bc", "abbbbc"},
		{"tabs", "a\tb", "a       b"},
		{"tab stops of one's own", "\x1b[3g\x1b[5G\x1bH\x1b[Ga\tb", "a   b"},
		{"back tab", "a\tb\x1b[Zc", "a       c"},
		{"save and restore the cursor", "ab\x1b7cd\x1b8X", "abXd"},
		{"the same, SCO style", "ab\x1b[scd\x1b[uX", "abXd"},
		{"next line", "ab\x1bEcd", "ab\ncd"},
		{"reverse index at the top scrolls", "1\r\n2\x1b[H\x1bMx", "x\n1\n2"},
		{"scroll region", "1\r\n2\r\n3\x1b[2;3r\x1b[3;1H\nx", "1\n3\nx"},
		{"scroll up and down", "1\r\n2\r\n3\x1b[S\x1b[2T", "\n\n2"},
		{"origin mode", "\x1b[2;3r\x1b[?6h\x1b[1;1Hx", "\nx"},
		{"alternate screen and back", "main\x1b[?1049halt\x1b[?1049lX", "mainX"},
		{"alternate screen, old style", "main\x1b[?47h\x1b[Halt\x1b[?47lX", "maiX"},
		{"line drawing", "\x1b(0qx\x1b(Bq", "─│q"},
		{"shift out and in", "\x1b)0\x0eq\x0fq", "─q"},
		{"single shift", "\x1b*0\x1bNqq", "─q"},
		{"sequences that draw nothing", "\x1b[?1h\x1b=\x1b>\x1b[6n\x1b[c\x1b[>4;2m\x1b[?u\x1bP+q544e\x1b\\\x1b_a\x1b\\\x1b^p\x1b\\\x1bXs\x1b\\x", "x"},
		{"a sequence broken off", "\x1b[12\x18x", "x"},
		{"a letter in a sequence", "\x1b[12日x", "日x"},
		{"decaln", "\x1b#8", "EEEEEEEEEE\nEEEEEEEEEE\nEEEEEEEEEE"},
		{"reset", "ab\x1bcx", "x"},
		{"numbers beyond any screen", "a\x1b[2147483647Cb\x1b[99999999999999999999;99999999999999999999Hc\x1b[2147483647A\x1b[4294967298Dd", "d        b\n\n         c"},
		{"zeros before a number", "abc\x1b[0000000000000002Gx", "axc"},
	}
	for _, test := range tests {
		for _, size := range []int{len(test.in), 1} {
			g := New(10, 3)
			for i := 0; i < len(test.in); i += size {
				g.Write([]byte(test.in[i:min(i+size, len(test.in))]))
			}
			if got := screenOf(g); got != test.want {
				t.Errorf("%s, in pieces of %d: %q, want %q", test.name, size, got, test.want)
			}
		}
	}
}

func TestWrappedRows(t *testing.T) {
	g := New(5, 4)
	g.Write([]byte("abcdefg\r\nhijkl\r\nm"))
	for y, want := range []bool{true, false, false, false} {
		if got := g.Row(y).Wrapped; got != want {
			t.Errorf("row %d: wrapped %t, want %t", y, got, want)
		}
	}
	g.Write([]byte("\x1b[1;4H\x1b[K"))
	if g.Row(0).Wrapped {
		t.Error("row 0 still wrapped after its end was erased")
	}
}

func TestStyles(t *testing.T) {
	tests := []struct {
		in   string
		want Style
	}{
		{"\x1b[1;2;3m", Style{Attr: Bold | Dim | Italic}},
		{"\x1b[1m\x1b[22m", Style{}},
		{"\x1b[4:0m", Style{}},
		{"\x1b[4:3m", Style{Attr: Underline}},
		{"\x1b[7;8;9m\x1b[27;29m", Style{Attr: Conceal}},
		{"\x1b[31;42m", Style{Fg: Palette | 1, Bg: Palette | 2}},
		{"\x1b[97;107m", Style{Fg: Palette | 15, Bg: Palette | 15}},
		{"\x1b[38;5;2;49m", Style{Fg: Palette | 2}},
		{"\x1b[38;2;1;2;3;1m", Style{Fg: RGB | 0x010203, Attr: Bold}},
		{"\x1b[38:2::1:2:3m", Style{Fg: RGB | 0x010203}},
		{"\x1b[38:2:1:2:3m", Style{Fg: RGB | 0x010203}},
		{"\x1b[48:5:7;3m", Style{Bg: Palette | 7, Attr: Italic}},
		{"\x1b[58;5;1;3m", Style{Attr: Italic}},
		{"\x1b[1m\x1b[m", Style{}},
		{"\x1b[38;5m\x1b[1m", Style{Attr: Bold, Fg: Palette}},
		{"\x1b[>4;1m", Style{}},
	}
	for _, test := range tests {
		g := New(10, 1)
		g.Write([]byte(test.in + "x"))
		if got := g.Row(0).Cells[0].Style; got != test.want {
			t.Errorf("%q: %+v, want %+v", test.in, got, test.want)
		}
	}
}

func TestLinks(t *testing.T) {
	g := New(20, 2)
	g.Write([]byte("a\x1b]8;id=1;http://x/?a;b\x1b\\bc\x1b]8;;\x1b\\d"))
	for x, want := range []string{"", "http://x/?a;b", "http://x/?a;b", ""} {
		if got := g.Link(g.Row(0).Cells[x]); got != want {
			t.Errorf("cell %d leads to %q, want %q", x, got, want)
		}
	}
	for i := range 5000 { // more than are kept; what is on the screen stays known
		fmt.Fprintf(w{g}, "\x1b[2;1H\x1b]8;;http://y/%d\x07z\x1b]8;;\x07", i)
	}
	if got := g.Link(g.Row(1).Cells[0]); got != "http://y/4999" {
		t.Errorf("the last link leads to %q", got)
	}
	if got := g.Link(g.Row(0).Cells[1]); got != "http://x/?a;b" {
		t.Errorf("the first link leads to %q", got)
	}
	if len(g.links) > maxLinks {
		t.Errorf("%d links kept", len(g.links))
	}
}

type w struct{ g *Grid }

func (w w) Write(p []byte) (int, error) { w.g.Write(p); return len(p), nil }

func TestFrames(t *testing.T) {
	var seen []string
	g := New(10, 2)
	g.Hooks.Frame = func(sync bool) {
		s := "finished "
		if sync {
			s = "whole "
		}
		seen = append(seen, s+g.Row(0).Text())
	}
	g.Write([]byte("a\x1b[?2026h\x1b[H\x1b[2Jb\x1b[?1049hc\x1b[?2026l\x1b[2Jd\x1b[?1049l"))
	want := "whole  c,finished  c,finished   d"
	if got := strings.Join(seen, ","); got != want {
		t.Errorf("frames %q, want %q", got, want)
	}
}

func TestResizeKeepsTheCursorsRow(t *testing.T) {
	g := New(10, 4)
	g.Write([]byte("1\r\n2\r\n3\r\n日x"))
	g.Resize(1, 2)
	if got, want := screenOf(g), "3"; got != want {
		t.Errorf("after the resize %q, want %q", got, want)
	}
	if got := g.Scrolled(); got != 2 {
		t.Errorf("%d rows scrolled away, want 2", got)
	}
	g.Resize(3, 3)
	g.Write([]byte("\x1b[3;1Hend"))
	if got, want := screenOf(g), "3\n\nend"; got != want {
		t.Errorf("after the second resize %q, want %q", got, want)
	}
}

// TestHostileCounts holds sequences that would keep a naive terminal busy for hours.
func TestHostileCounts(t *testing.T) {
	start := time.Now()
	g := New(200, 50)
	for range 2000 {
		g.Write([]byte("a\x1b[2147483647b\x1b[2147483647@\x1b[2147483647P\x1b[2147483647L\x1b[2147483647M\x1b[2147483647S\x1b[2147483647T\x1b[2147483647I\x1b[2147483647Z\x1b[2147483647X"))
	}
	g.Write([]byte("\x1b]0;" + strings.Repeat("x", 1<<20) + "\x07e" + strings.Repeat("\u0301", 1<<16)))
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	for y := range 50 {
		for _, c := range g.Row(y).Cells {
			if len(c.Text) > maxCluster+4 {
				t.Fatalf("a cell of %d bytes", len(c.Text))
			}
		}
	}
}

func FuzzGrid(f *testing.F) {
	f.Add([]byte("abc\x1b[2J日本\x1b[?1049h\u0301\x1b[5b\x1b[?1049l"), 10, 3)
	f.Add([]byte("\x1b[2;3r\x1b[?6h\n\n\n\x1bM\x1b[4h日\x1b[P\x1b[1@"), 4, 4)
	f.Add([]byte("\x1b]8;;x\x07\xe2\x82\x1b[38:2::1:2:3m\x9b\x1b(0q"), 1, 1)
	f.Fuzz(func(t *testing.T, in []byte, cols, rows int) {
		cols, rows = 1+abs(cols)%120, 1+abs(rows)%40
		g, h := New(cols, rows), New(cols, rows)
		g.Write(in)
		for i := range in {
			h.Write(in[i : i+1])
		}
		if a, b := screenOf(g), screenOf(h); a != b {
			t.Fatalf("whole %q, byte by byte %q", a, b)
		}
		g.Resize(rows, cols)
		g.Write(in)
		check(t, g)
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// check holds what must be true of any grid: wide characters are whole, rows have all their cells.
func check(t *testing.T, g *Grid) {
	t.Helper()
	cols, rows := g.Size()
	if x, y := g.Cursor(); x < 0 || x >= cols || y < 0 || y >= rows {
		t.Fatalf("cursor at %d,%d of %dx%d", x, y, cols, rows)
	}
	for y := range rows {
		cells := g.Row(y).Cells
		if len(cells) != cols {
			t.Fatalf("row %d has %d cells of %d", y, len(cells), cols)
		}
		for x, c := range cells {
			switch {
			case c.Width > 2:
				t.Fatalf("cell %d,%d is %d wide", x, y, c.Width)
			case c.Width == 2 && (x+1 == cols || cells[x+1].Width != 0):
				t.Fatalf("cell %d,%d lost its right half", x, y)
			case c.Width == 0 && (x == 0 || cells[x-1].Width != 2):
				t.Fatalf("cell %d,%d lost its left half", x, y)
			}
		}
	}
}

// Text drawn in runs is the text drawn byte by byte, whatever stands between and under it.
func FuzzRun(f *testing.F) {
	f.Add("hello \x1b[31mworld\x1b[0m\r\nwide 漢字 over\rxx", 20, 4)
	f.Add("\x1b(0qqq\x1b(B abc \x1b[4hins\x1b[4l \x1b[?7lno wrap at the edge of it", 10, 3)
	f.Add("\x1b[2;9H漢\x1b[2;8Habc\x1bNx\x0e\x0fmore\u0301 text", 12, 3)
	f.Fuzz(func(t *testing.T, s string, cols, rows int) {
		cols, rows = min(max(cols, 1), 60), min(max(rows, 1), 20)
		whole, bytewise := New(cols, rows), New(cols, rows)
		whole.Write([]byte(s))
		for i := range len(s) {
			bytewise.writeByte(s[i])
		}
		wx, wy := whole.Cursor()
		if bx, by := bytewise.Cursor(); wx != bx || wy != by || whole.Written() != bytewise.Written() || whole.Scrolled() != bytewise.Scrolled() {
			t.Fatalf("cursor %d,%d and %d,%d", wx, wy, bx, by)
		}
		for y := range rows {
			a, b := whole.Row(y), bytewise.Row(y)
			if a.Wrapped != b.Wrapped || a.Lead != b.Lead || !slices.Equal(a.Cells, b.Cells) {
				t.Fatalf("row %d: %q and %q", y, a.Raw(), b.Raw())
			}
		}
	})
}
