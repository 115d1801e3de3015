package screen

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
)

// A sink keeps what a witness tells.
type sink struct{ events []event.Event }

func (s *sink) emit(e event.Event) { s.events = append(s.events, e) }

func (s *sink) told() []string { return told(s.events) }

func TestIdleTellsWithoutOutput(t *testing.T) {
	var k sink
	s := New(80, 24, k.emit)
	s.Output([]byte(fakeAgent("make")), 1e9)
	s.Idle(1e9 + 10e6)
	if len(k.events) != 0 {
		t.Errorf("told after 10 ms: %q", k.told())
	}
	s.Idle(1e9 + 200e6)
	if got, want := k.told(), []string{`prompted generic command "make" options=2`}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if k.events[0].TimeNS != 1e9 {
		t.Errorf("at %d, drawn at %d", k.events[0].TimeNS, uint64(1e9))
	}
	s.Input([]byte("\x1b"), 2e9) // a lone ESC is a key once nothing follows it
	s.Idle(2e9 + 100e6)
	s.Close(3e9)
	if got := k.told(); len(got) != 2 || !strings.HasPrefix(got[1], "denied cancelled") {
		t.Errorf("told %q", got)
	}
}

func TestSkippedOutput(t *testing.T) {
	var k sink
	s := New(80, 24, k.emit)
	s.Output([]byte("some text\x1b[2"), 1e9)
	s.Skipped(5000, 2e9)
	s.Output([]byte("\r\n\r\n"+strings.Join(codexAsks("make", 0), "\r\n")), 3e9)
	s.Input([]byte("y"), 4e9)
	s.Output([]byte(codexScreen(approved("make"))), 5e9)
	s.Output([]byte(codexScreen(approved("make"), codexAsks("make b", 0)...)), 6e9)
	s.Input([]byte("y"), 7e9)
	s.Output([]byte(codexScreen(approved("make")+approved("make b"))), 8e9)
	s.Close(9e9)
	want := []string{
		`unreadable "output was skipped" key="" rows=0 skipped=5000`,
		`prompted codex-0.171 command "make" reason="scripted" options=2`,
		`granted this_time command "make" key="y" attested=true row="✔ You approved codex to run make this time" uncertain="output was skipped before it was drawn"`,
		`prompted codex-0.171 command "make b" reason="scripted" options=2`,
		`granted this_time command "make b" key="y" attested=true row="✔ You approved codex to run make b this time"`,
	}
	if got := k.told(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if off := k.events[1].Body.(*event.ApprovalPrompted).OutputOffset; off < 5000 {
		t.Errorf("offset %d does not count what was skipped", off)
	}
}

func TestResize(t *testing.T) {
	var k sink
	s := New(80, 24, k.emit)
	s.Output([]byte(codexScreen("", codexAsks("make one two three four five six seven eight", 0)...)), 1e9)
	s.Resize(60, 24, 2e9)
	s.Output([]byte("\x1b[?2026h\x1b[1;1H\x1b[?2026l"), 2e9+1e6) // not yet for the new size
	s.Input([]byte("y"), 2e9+2e6)
	s.Output([]byte("\x1b[?2026h\x1b[H\x1b[J"+strings.ReplaceAll(approved("make one two three four five\n  six seven eight"), "\n", "\r\n")+"\x1b[?2026l"), 3e9)
	s.Close(4e9)
	want := []string{
		`prompted codex-0.171 command "make one two three four five six seven eight" reason="scripted" options=2`,
		`granted this_time command "make one two three four five six seven eight" key="y" attested=true row="✔ You approved codex to run make one two three four five six seven eight this time"`,
	}
	if got := k.told(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTerminalLargerThanTheModel(t *testing.T) {
	var k sink
	New(4000, 10, k.emit)
	if got := k.told(); len(got) != 1 || !strings.Contains(got[0], "larger than the model") {
		t.Errorf("told %q", got)
	}
}

// TestFault makes a grammar fail: the witness says so and goes on.
func TestFault(t *testing.T) {
	var k sink
	s := New(80, 24, k.emit)
	s.grammars = append([]grammar{{"broken", func(v *view) *dialog {
		if strings.Contains(v.lines[0].text, "boom") {
			panic("boom")
		}
		return nil
	}}}, s.grammars...)
	s.Output([]byte("boom"), 1e9)
	s.Output([]byte("\x1b[H\x1b[J"+fakeAgent("make")), 2e9)
	s.Input([]byte("1"), 3e9)
	s.Close(4e9)
	want := []string{
		`unreadable "the screen reader failed: boom" key="" rows=0 skipped=0`,
		`prompted generic command "make" options=2`,
	}
	got := k.told()
	if len(got) != 3 || !slices.Equal(got[:2], want) {
		t.Errorf("told %q", got)
	}
	if off := k.events[1].Body.(*event.ApprovalPrompted).OutputOffset; off < 4+6 {
		t.Errorf("offset %d", off)
	}

	k.events = nil
	for i := range uint64(100) {
		s.Output([]byte("\x1b[H\x1b[Jboom"), 5e9+i*1e9)
	}
	got = k.told()
	if len(got) > maxFaults+1 || !strings.Contains(got[len(got)-1], "gave up") {
		t.Errorf("told %d events, the last %q", len(got), got[len(got)-1])
	}
}

func TestSyncThatNeverEnds(t *testing.T) {
	asks := strings.TrimSuffix(codexScreen("", codexAsks("make", 0)...), "\x1b[?2026l")
	for _, test := range []struct {
		wait uint64
		want int
	}{{100e6, 0}, {2e9, 1}} { // terminals show what is pending after a second
		var k sink
		s := New(80, 24, k.emit)
		s.Output([]byte(asks), 1e9)
		s.Input([]byte("y"), 1e9+test.wait)
		if got := count(k.events); got != test.want {
			t.Errorf("%d dialogs after %v, want %d", got, time.Duration(test.wait), test.want)
		}
	}
}

// TestHostileOutput holds streams made to keep the reader busy or to fill its memory.
func TestHostileOutput(t *testing.T) {
	menu := fakeAgent("x")
	for name, one := range map[string]string{
		"erases":         "x\x1b[J",
		"resets":         "x\x1bc",
		"screens":        "\x1b[?1049hx\x1b[?1049l",
		"dialogs":        "\x1b[H\x1b[J" + menu,
		"boxes":          "\x1b[H╭──╮\r\n│╭╮│\r\n╰──╯\x1b[J",
		"rows":           "\x1b[?2026h\x1b[H✔ You approved codex to run " + strings.Repeat("a ", 20) + " this time\x1b[?2026l",
		"strings":        "\x1b]0;" + strings.Repeat("x", 5000) + "\x07",
		"syncs":          "\x1b[?2026hx\x1b[?2026l",
		"marks":          "\u0301\u200b",
		"numbered lines": "\x1b[H\x1b[J1. a\r\n2. b\r\n❯ 3. c\r\n4. d\r\n",
	} {
		var events int
		s := New(200, 50, func(event.Event) { events++ })
		start := time.Now()
		stream := []byte(strings.Repeat(one, 1+50_000/len(one)))
		s.Output(stream, 1e9)
		s.Close(2e9)
		if d := time.Since(start); d > 30*time.Second { // some 100 ms on an idle machine
			t.Errorf("%s: %d KB took %v", name, len(stream)/1000, d)
		}
		t.Logf("%s: %v, %d events", name, time.Since(start), events)
		if events > 3000 {
			t.Errorf("%s: %d events", name, events)
		}
	}
}

func FuzzScreen(f *testing.F) {
	f.Add([]byte(codexScreen("", codexAsks("make", 0)...)), []byte("y"), 80, 24)
	f.Add([]byte(claudeScreen("", claudeAsksFor("Bash command", "make", 0)...)), []byte("\x1b[B\r"), 60, 20)
	f.Add([]byte(fakeAgent("a\x1b[8mb")+frames(2)+boxed("ls")), []byte("\x1b[<0;3;4M1"), 40, 10)
	f.Add([]byte("\x1b[?1049h╭──────╮\r\n│ ╭──╮ │\r\n│ ❯ 1. Yes\r\n╰──────╯┃ △ Permission required\r\nAllow once enter confirm"), []byte("\t\x1b"), 20, 5)
	f.Fuzz(fuzzOne)
}

// fuzzOne plays the same session in one piece and byte by byte.
func fuzzOne(t *testing.T, out, in []byte, cols, rows int) {
	var a, b []event.Event
	s := New(cols%300, rows%100, func(e event.Event) { a = append(a, e) })
	r := New(cols%300, rows%100, func(e event.Event) { b = append(b, e) })
	for i, now := 0, uint64(1e9); i < 3; i++ {
		s.Output(out, now)
		for j := range out {
			r.Output(out[j:j+1], now)
		}
		now += 40e6
		for _, w := range []*Screen{s, r} {
			w.Input(in, now)
			w.Resize(rows%200+i, cols%90, now)
			w.Skipped(uint64(i%2), now)
		}
		now += 400e6
	}
	s.Close(9e9)
	r.Close(9e9)
	if x, y := strings.Join(told(a), "\n"), strings.Join(told(b), "\n"); x != y {
		t.Fatalf("whole:\n%s\nbyte by byte:\n%s", x, y)
	}
	for _, e := range a {
		if u, ok := e.Body.(*event.ScreenUnreadable); ok && strings.Contains(u.Why, "failed") {
			t.Fatal(u.Why)
		}
	}
}
