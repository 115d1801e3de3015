package wrapper

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modesTests are outputs and what undoes them.
var modesTests = []struct {
	name, out, undo string
}{
	{"nothing", "plain text\r\n", ""},
	{"alternate screen", "\x1b[?1049h", "\x1b[?1049l"},
	{"alternate screen left", "\x1b[?1049h text \x1b[?1049l", ""},
	{"older alternate screens", "\x1b[?47h\x1b[?47l\x1b[?1047h", "\x1b[?1047l"},
	{"alternate screen is one mode", "\x1b[?1049h\x1b[?47l", ""},
	{"cursor hidden", "\x1b[?25l", "\x1b[?25h"},
	{"cursor hidden and shown", "\x1b[?25l\x1b[?25h\x1b[?25h", ""},
	{"bracketed paste", "\x1b[?2004h", "\x1b[?2004l"},
	{"mouse", "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h", "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"},
	{"mouse in one sequence", "\x1b[?1000;1006;1015h\x1b[?1006l", "\x1b[?1000l\x1b[?1015l"},
	{"focus", "\x1b[?1004h", "\x1b[?1004l"},
	{"synchronised output", "\x1b[?2026h half a frame", "\x1b[?2026l"},
	{"frames", "\x1b[?2026h a \x1b[?2026l\x1b[?2026h b \x1b[?2026l", ""},
	{"colour scheme and size reports", "\x1b[?2031h\x1b[?2048h", "\x1b[?2031l\x1b[?2048l"},
	{"unknown private mode", "\x1b[?31337h", ""},
	{"autowrap off", "\x1b[?7l", "\x1b[?7h"},
	{"cursor keys and keypad", "\x1b[?1h\x1b=", "\x1b[?1l\x1b>"},
	{"keypad reset", "\x1b[?1h\x1b=\x1b[?1l\x1b>", ""},
	{"saved and restored", "\x1b[?1000h\x1b[?1000s\x1b[?1000l\x1b[?1000r", "\x1b[?1000l"},
	{"restored to off", "\x1b[?2004s\x1b[?2004h\x1b[?2004r", ""},
	{"insert mode", "\x1b[4h", "\x1b[4l"},
	{"ansi modes that are not followed", "\x1b[20h", ""},

	{"keyboard pushed twice", "\x1b[>1u\x1b[>5u", "\x1b[<u\x1b[<u"},
	{"keyboard pushed and popped", "\x1b[>1u\x1b[<u", ""},
	{"keyboard popped several", "\x1b[>1u\x1b[>1u\x1b[>1u\x1b[<2u", "\x1b[<u"},
	{"keyboard popped too often", "\x1b[<u\x1b[<9u\x1b[>1u", "\x1b[<u"},
	{"keyboard flags set", "\x1b[=1u", "\x1b[=0u"},
	{"keyboard flags set and cleared", "\x1b[=5;2u\x1b[=0u", ""},
	{"keyboard flags set above a push", "\x1b[>1u\x1b[=5u\x1b[<u", ""},
	{"keyboard query", "\x1b[?u", ""},
	{"keyboard of the alternate screen", "\x1b[>1u\x1b[?1049h\x1b[>1u\x1b[>1u", "\x1b[<u\x1b[<u\x1b[?1049l\x1b[<u"},
	{"keyboard left on the alternate screen", "\x1b[?1049h\x1b[>1u\x1b[?1049l", ""},
	{"endless pushes", strings.Repeat("\x1b[>1u", 1000), strings.Repeat("\x1b[<u", maxPushes)},
	{"modifyOtherKeys", "\x1b[>4;2m", "\x1b[>4m"},
	{"modifyOtherKeys reset", "\x1b[>4;2m\x1b[>4m", ""},
	{"modifyOtherKeys disabled", "\x1b[>4;1m\x1b[>4n", ""},

	{"scroll region", "\x1b[3;20r", "\x1b7\x1b[r\x1b8"},
	{"scroll region from the top", "\x1b[1;20r", "\x1b7\x1b[r\x1b8"},
	{"scroll region reset", "\x1b[3;20r\x1b[r", ""},
	{"scroll region of the whole screen", "\x1b[3;20r\x1b[1;24r", ""},
	{"scroll region beyond the screen", "\x1b[1;99r", ""},

	{"bold", "\x1b[1mtext", "\x1b[0m"},
	{"bold reset", "\x1b[1mtext\x1b[m", ""},
	{"bold ended", "\x1b[1mtext\x1b[22m", ""},
	{"colours ended one by one", "\x1b[31;44;1m x \x1b[39m\x1b[49;22m", ""},
	{"one colour left", "\x1b[31;44m x \x1b[39m", "\x1b[0m"},
	{"indexed colour is not bold", "\x1b[38;5;1m\x1b[39m", ""},
	{"true colour has arguments", "\x1b[38;2;1;3;4m\x1b[48;2;9;9;9m\x1b[39;49m", ""},
	{"colour with colons", "\x1b[38:2::1:3:4m\x1b[39m", ""},
	{"curly underline", "\x1b[4:3m\x1b[4:0m", ""},
	{"curly underline left", "\x1b[4:3m", "\x1b[0m"},
	{"underline colour", "\x1b[58:5:1m\x1b[59m\x1b[58;2;1;1;1m", "\x1b[0m"},
	{"all attributes ended", "\x1b[1;2;3;4;5;6;7;8;9;11;20;21;26;51;53;60;73;90;100m" +
		"\x1b[22;23;24;25;27;28;29;10;50;54;55;65;75;39;49m", ""},
	{"unknown attribute", "\x1b[777m", ""},
	{"too many attributes", "\x1b[" + strings.Repeat("1;", 500) + "1m\x1b[0m", ""},

	{"line drawing", "\x1b(0lqqk", "\x1b(B"},
	{"line drawing ended", "\x1b(0lqqk\x1b(B", ""},
	{"link", "\x1b]8;;https://example.org\x1b\\text", "\x1b]8;;\x1b\\"},
	{"link with an id, ended", "\x1b]8;id=1;https://example.org\x07text\x1b]8;;\x07", ""},
	{"title is no link", "\x1b]0;8;x\x07\x1b]88;;x\x07", ""},
	{"cursor shape", "\x1b[5 q", "\x1b[0 q"},
	{"cursor shape reset", "\x1b[5 q\x1b[ q\x1b[2 q\x1b[0 q", ""},

	{"soft reset", "\x1b[?25l\x1b[1m\x1b[2;3r\x1b[?1h\x1b[?2004h\x1b[!p", "\x1b[?2004l"},
	{"full reset", "\x1b[?1049h\x1b[>1u\x1b[?25l\x1b[1m\x1b[?1000h\x1bc", ""},

	{"cut in a control sequence", "\x1b[?104", "\x18"},
	{"cut after escape", "text\x1b", "\x18"},
	{"cut in a control string", "\x1b]52;c;aGVsbG8", "\x18\x1b\\"},
	{"cut in a device string", "\x1bPq#0", "\x18\x1b\\"},
	{"cancelled", "\x1b[?104\x18 9h", ""},
	{"text in a string", "\x1b]0;[?1049h\x07\x1b_[?25l\x1b\\", ""},
	{"escape starts over", "\x1b[?10\x1b[?25l", "\x1b[?25h"},
	{"control character inside", "\x1b[?2\n5l", "\x1b[?25h"},
	{"malformed", "\x1b[?1?25l\x1b[1 5q\x1b[<1;?u", ""},
	{"number too large", "\x1b[?99999999999999999999h\x1b[?65536049h", ""},
	{"C1 is text", "\x9b?25l", ""},
	{"text inside a sequence", "\x1b[?2\xc3\xa95l", ""},
}

func TestModes(t *testing.T) {
	for _, tt := range modesTests {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range []int{len(tt.out), 1, 3, 7} {
				m := &modes{rows: 24}
				for p := []byte(tt.out); len(p) > 0; {
					n := min(step, len(p))
					m.write(p[:n])
					p = p[n:]
				}
				undo := m.undo()
				if string(undo) != tt.undo {
					t.Errorf("in pieces of %d: undo %q, want %q", step, undo, tt.undo)
				}
				if m.write(undo); len(m.undo()) != 0 {
					t.Errorf("after undo there is still %q to undo", m.undo())
				}
			}
		})
	}
}

// TestModesOfAssistants: recordings of real programs that ended by themselves. All but one cleaned up, and get nothing
// added.
func TestModesOfAssistants(t *testing.T) {
	for _, tt := range []struct {
		file string
		rows int
		undo string
	}{
		{"codex-0.171-110x40.raw", 40, ""},
		{"claude-2.1.332-fullscreen.raw", 35, ""},
		{"copilot-1.0.102.raw", 35, ""},
		{"claude-1.0.60.raw", 35, "\x1b[?2004l"}, // this version did leave it on
	} {
		b, err := os.ReadFile(filepath.Join("testdata", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		m := &modes{rows: tt.rows}
		m.write(b)
		if got := string(m.undo()); got != tt.undo {
			t.Errorf("%s: undo %q, want %q", tt.file, got, tt.undo)
		}
		// Killed at any moment, everything it had set is undone.
		for i := 0; i < len(b); i += 97 {
			m := &modes{rows: tt.rows}
			m.write(b[:i])
			undo := m.undo()
			if m.write(undo); len(m.undo()) != 0 {
				t.Fatalf("%s: killed after %d bytes, %q undoes all but %q", tt.file, i, undo, m.undo())
			}
		}
	}
}

func TestUndoIsBounded(t *testing.T) {
	var worst bytes.Buffer
	for _, p := range privateModes {
		worst.WriteString("\x1b[?")
		worst.WriteString(strings.TrimLeft(string([]byte{'0' + byte(p.number/1000), '0' + byte(p.number/100%10), '0' + byte(p.number/10%10), '0' + byte(p.number%10)}), "0"))
		worst.WriteString(onOff(!p.on))
	}
	worst.WriteString("\x1b[=1u" + strings.Repeat("\x1b[>1u", 2*maxPushes) + "\x1b[?1049h\x1b[=1u" + strings.Repeat("\x1b[>1u", 2*maxPushes))
	worst.WriteString("\x1b[>4;1m\x1b=\x1b[4h\x1b(0\x1b]8;;x\x07\x1b[1m\x1b[2;3r\x1b[4 q\x1b]0;")
	m := &modes{}
	m.write(worst.Bytes())
	undo := m.undo()
	if len(undo) < 700 || len(undo) > maxUndo {
		t.Errorf("%d bytes of undo, the limit is %d", len(undo), maxUndo)
	}
	for _, p := range m.private {
		if !p {
			t.Error("not the worst case: a mode is at its default")
		}
	}
}

// TestChangedIsNotMissed: whenever undo differs from before, takeChanged says so.
func TestChangedIsNotMissed(t *testing.T) {
	b, err := os.ReadFile("testdata/codex-0.171-110x40.raw")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range modesTests {
		b = append(b, tt.out...)
	}
	m := &modes{rows: 24}
	var last []byte
	for i := range b {
		m.write(b[i : i+1])
		now := m.undo()
		if changed := m.takeChanged(); !changed && !bytes.Equal(now, last) {
			t.Fatalf("byte %d: undo went from %q to %q unnoticed", i, last, now)
		}
		last = now
	}
}

// FuzzModes: any bytes in any pieces; the pieces make no difference, undoing is complete and bounded.
func FuzzModes(f *testing.F) {
	for _, tt := range modesTests {
		f.Add([]byte(tt.out), uint8(3))
	}
	f.Fuzz(func(t *testing.T, out []byte, step uint8) {
		whole, pieces := &modes{rows: 24}, &modes{rows: 24}
		whole.write(out)
		for p := out; len(p) > 0; {
			n := min(int(step)+1, len(p))
			pieces.write(p[:n])
			p = p[n:]
		}
		undo := whole.undo()
		if !bytes.Equal(undo, pieces.undo()) {
			t.Fatalf("undo %q, in pieces %q", undo, pieces.undo())
		}
		if len(undo) > maxUndo {
			t.Fatalf("%d bytes of undo", len(undo))
		}
		if whole.write(undo); len(whole.undo()) != 0 {
			t.Fatalf("after %q there is still %q", undo, whole.undo())
		}
	})
}

func BenchmarkModes(b *testing.B) {
	recording, err := os.ReadFile("testdata/codex-0.171-110x40.raw")
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name string
		p    []byte
	}{{"text", bytes.Repeat([]byte("the quick brown fox\r\n"), 3000)}, {"codex", recording}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.p)))
			m := &modes{rows: 40}
			for b.Loop() {
				m.write(bb.p)
			}
		})
	}
}

// TestCrashUndoesModes: in a real terminal, an assistant that crashed and one that cleaned up.
func TestCrashUndoesModes(t *testing.T) {
	const set = `\033[?1049h\033[?2004h\033[>1u\033[>5u\033[?1000h\033[?25l`
	x := newOuter(t, outerOptions{}, "sh", "-c", "stty raw -echo; printf '"+set+"'; kill -9 $$")
	x.wantExit(137)
	x.wantRestored()
	want := "\x1b[?1049h\x1b[?2004h\x1b[>1u\x1b[>5u\x1b[?1000h\x1b[?25l" +
		"\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[<u\x1b[<u\x1b[?1049l"
	if out := string(x.output()); out != want {
		t.Errorf("output %q, want %q", out, want)
	}

	const clean = `\033[?1049h\033[?2004h\033[>1u\033[?25l\033[?25h\033[<u\033[?2004l\033[?1049l`
	x = newOuter(t, outerOptions{}, "printf", clean)
	x.wantExit(0)
	if out, want := string(x.output()), strings.ReplaceAll(clean, `\033`, "\x1b"); out != want {
		t.Errorf("output %q, want %q", out, want)
	}
}
