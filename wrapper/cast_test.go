package wrapper

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// castEvent is an event of a recording as any JSON reader sees it.
type castEvent struct {
	time float64
	code string
	data string
}

func parseCast(t *testing.T, b []byte) (header map[string]any, events []castEvent) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	if err := json.Unmarshal(lines[0], &header); err != nil {
		t.Fatalf("header %q: %v", lines[0], err)
	}
	for _, line := range lines[1:] {
		var a []any
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("event %q: %v", line, err)
		}
		if len(a) != 3 {
			t.Fatalf("event %q", line)
		}
		e := castEvent{a[0].(float64), a[1].(string), a[2].(string)}
		if n := len(events); n > 0 && e.time < events[n-1].time {
			t.Errorf("time goes back at %q", line)
		}
		events = append(events, e)
	}
	return header, events
}

func joined(events []castEvent, code string) string {
	var b strings.Builder
	for _, e := range events {
		if e.code == code {
			b.WriteString(e.data)
		}
	}
	return b.String()
}

func TestCast(t *testing.T) {
	var b bytes.Buffer
	c, err := newCastWriter(&b, castHeader{
		cols: 100, rows: 30, start: 5e9, wall: time.Unix(1700000000, 0),
		command: []string{"codex", "-c", "a b", "it's", ""}, env: []string{"TERM=xterm", "SECRET=1", "SHELL=/bin/zsh"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		it item
		p  string
	}{
		{item{kind: itemOutput, time: 5e9}, "a\xe2\x82"}, // the euro sign, cut
		{item{kind: itemInput, time: 5e9 + 1500}, "\xc3"},
		{item{kind: itemOutput, time: 6e9 + 42_000}, "\xacb\r\n\x1b[0m\"\\\x00\x7f"},
		{item{kind: itemResize, time: 7e9, cols: 90, rows: 20}, ""},
		{item{kind: itemInput, time: 8e9}, "\xa9"},
		{item{kind: itemOutput, time: 75e9 + 999_999_999}, "\xff\xfe<>&\u2028😀"},
		{item{kind: itemOutput, time: 76e9, skipped: 12345}, "after"},
		{item{kind: itemOutput, time: 77e9}, "\xf0\x9f"}, // never completed
	} {
		if err := c.write(s.it, []byte(s.p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"width":100,"height":30,"timestamp":1700000000,"command":"codex -c 'a b' 'it'\\''s' ''","env":{"SHELL":"/bin/zsh","TERM":"xterm"}}
[0.000000, "o", "a"]
[1.000042, "o", "€b\r\n\u001b[0m\"\\\u0000\u007f"]
[2.000000, "r", "90x20"]
[3.000000, "i", "é"]
[70.999999, "o", "��<>&` + "\u2028" + `😀"]
[71.000000, "m", "rye: 12345 bytes of output not recorded"]
[71.000000, "o", "after"]
[72.000000, "o", "��"]
`
	if b.String() != want {
		t.Errorf("recording\n%s\nwant\n%s", b.String(), want)
	}
	parseCast(t, b.Bytes())
}

// TestCastWithoutSize: players refuse 0.
func TestCastWithoutSize(t *testing.T) {
	var b bytes.Buffer
	c, err := newCastWriter(&b, castHeader{command: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if h, _ := parseCast(t, b.Bytes()); h["width"] != 80.0 || h["height"] != 24.0 {
		t.Errorf("header %v", h)
	}
}

func TestPlainEight(t *testing.T) {
	for c := range 256 {
		for at := range 8 {
			b := []byte("abcdefgh")
			b[at] = byte(c)
			want := c >= 0x20 && c < 0x7f && c != '"' && c != '\\'
			if got := plainEight(binary.LittleEndian.Uint64(b)); got != want {
				t.Errorf("plainEight(%q) = %v", b, got)
			}
		}
	}
}

func BenchmarkCast(b *testing.B) {
	recording, err := os.ReadFile("testdata/codex-0.171-110x40.raw")
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name string
		p    []byte
	}{{"text", bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog and compiles\r\n"), 70)}, {"codex", recording}} {
		b.Run(bb.name, func(b *testing.B) {
			c, err := newCastWriter(io.Discard, castHeader{command: []string{"x"}})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(bb.p)))
			for b.Loop() {
				if err := c.write(item{kind: itemOutput}, bb.p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestIncompleteTail(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want int
	}{
		{"", 0}, {"a", 0}, {"é", 0}, {"a\xc3", 1}, {"\xe2\x82", 2}, {"\xf0\x9f\x98", 3}, {"😀", 0},
		{"\x80", 0}, {"\xff", 0}, {"\xc3a", 0}, {"\x82\x82\x82\x82", 0}, {"\xe2\x28", 0}, {"x\xf0", 1},
	} {
		if got := incompleteTail([]byte(tt.s)); got != tt.want {
			t.Errorf("incompleteTail(%q) = %d, want %d", tt.s, got, tt.want)
		}
	}
}

// FuzzCast: whatever the bytes and pieces, each line is JSON, and the text is the bytes with U+FFFD for what is no UTF-8.
func FuzzCast(f *testing.F) {
	f.Add([]byte("plain\r\n"), uint8(1))
	f.Add([]byte("\xe2\x82\xac\xf0\x9f\x98\x80\"\\\x00\x1b"), uint8(0))
	f.Add([]byte("\xff\xc3\xc3\xa9\xe2\x28\xed\xa0\x80"), uint8(2))
	f.Fuzz(func(t *testing.T, out []byte, step uint8) {
		var b bytes.Buffer
		c, err := newCastWriter(&b, castHeader{cols: 80, rows: 24, command: []string{string(out)}})
		if err != nil {
			t.Fatal(err)
		}
		for p := out; len(p) > 0; {
			n := min(int(step)+1, len(p))
			if err := c.write(item{kind: itemOutput}, p[:n]); err != nil {
				t.Fatal(err)
			}
			p = p[n:]
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		_, events := parseCast(t, b.Bytes())
		if got, want := joined(events, "o"), strings.ToValidUTF8(string(out), "\ufffd"); utf8.Valid(out) && got != want {
			t.Fatalf("text %q, want %q", got, want)
		} else if got != string([]rune(string(out))) {
			t.Fatalf("text %q, want %q", got, []rune(string(out)))
		}
	})
}

type failAfter struct {
	n   int
	err error
}

func (f *failAfter) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, f.err
	}
	return len(p), nil
}

// TestRecorderFailure: the queue is emptied on, and the error told.
func TestRecorderFailure(t *testing.T) {
	broken := errors.New("broken")
	for _, after := range []int{0, 300, 100_000} {
		r := newRecorder(&failAfter{after, broken})
		go r.run()
		for range 100 {
			r.q.put(itemOutput, bytes.Repeat([]byte("x"), 2000), 1)
		}
		r.q.close()
		<-r.done
		if err := r.result(); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	}
}

type slowWriter struct{ release chan struct{} }

func (s slowWriter) Write(p []byte) (int, error) { <-s.release; return len(p), nil }

// TestRecorderTooSlow: the session goes on, and the recording is said not to be whole.
func TestRecorderTooSlow(t *testing.T) {
	s := slowWriter{make(chan struct{})}
	r := newRecorder(s)
	go r.run()
	for range recordBytes/(1<<16) + 10 {
		r.q.put(itemOutput, make([]byte, 1<<16), 1)
	}
	close(s.release)
	r.q.close()
	<-r.done
	if err := r.result(); err == nil || !strings.Contains(err.Error(), "left out") {
		t.Errorf("error %v", err)
	}
}

// TestRecording is a whole session: output, typed input and sizes in the order they happened.
func TestRecording(t *testing.T) {
	x := newOuter(t, outerOptions{rows: 25, cols: 81}, "sh", "-c", `printf 'na\303'; sleep 0.1; printf '\257ve> '; read x; echo "got $x"; read y; stty size`)
	x.expect("> ")
	x.send("abc\r")
	x.expect("got abc")
	x.resize(26, 82)
	x.send("\r")
	x.expect("26 82")
	x.wantExit(0)
	b, err := os.ReadFile(x.file("cast"))
	if err != nil {
		t.Fatal(err)
	}
	header, events := parseCast(t, b)
	if header["width"] != 81.0 || header["height"] != 25.0 || header["env"].(map[string]any)["TERM"] != "xterm-256color" {
		t.Errorf("header %v", header)
	}
	if got, want := joined(events, "o"), string(x.output()); got != want {
		t.Errorf("output recorded %q, seen %q", got, want)
	}
	if got := joined(events, "i"); got != "abc\r\r" {
		t.Errorf("input recorded %q", got)
	}
	if got := joined(events, "r"); got != "82x26" {
		t.Errorf("sizes recorded %q", got)
	}
	if !strings.Contains(joined(events, "o"), "naïve> ") {
		t.Errorf("a character split over two reads was not joined: %q", joined(events, "o"))
	}
}

// TestRecordingDiskFull: the session is as without a recording, and its result says what became of it.
func TestRecordingDiskFull(t *testing.T) {
	x := newOuter(t, outerOptions{recordTo: "/dev/full"}, "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; exit 5")
	x.wantExit(5)
	if n := len(x.output()); n != 100000 {
		t.Errorf("%d bytes of output", n)
	}
	if r := x.result(); !strings.Contains(r.Recording, "no space left") {
		t.Errorf("result %+v", r)
	}
}

// TestPasswordsAreNotRecorded: line mode without echo is how they are asked for.
func TestPasswordsAreNotRecorded(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", `stty -echo; printf 'Password: '; read p; stty echo; printf 'name: '; read n; echo "<$p><$n>" > /dev/null`)
	x.expect("Password: ")
	x.send("hunter2\r")
	x.expect("name: ")
	x.send("joe\r")
	x.wantExit(0)
	b, err := os.ReadFile(x.file("cast"))
	if err != nil {
		t.Fatal(err)
	}
	_, events := parseCast(t, b)
	if got := joined(events, "i"); got != "*******\rjoe\r" {
		t.Errorf("input recorded %q", got)
	}
}
