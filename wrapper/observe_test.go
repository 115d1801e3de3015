package wrapper

import (
	"strings"
	"testing"
)

// TestCallbackOrder: a key is told before the output it causes, with times that agree.
func TestCallbackOrder(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", `stty raw -echo; printf READY; for i in 1 2 3 4 5; do k=$(dd bs=1 count=1 2>/dev/null); printf "<$k>"; done`)
	x.expect("READY")
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		x.send(k)
		x.expect("<" + k + ">")
	}
	x.wantExit(0)
	events := x.events()
	if len(events) == 0 || events[0].Kind != "r" || events[0].Cols != 80 || events[0].Rows != 24 {
		t.Fatalf("first event is not the size: %+v", events)
	}
	var story strings.Builder
	last := uint64(0)
	for _, e := range events {
		if e.TimeNS < last || e.TimeNS == 0 || e.Skipped != 0 {
			t.Errorf("event %+v after %d", e, last)
		}
		last = e.TimeNS
		story.WriteString(e.Data)
	}
	if want := "READYa<a>b<b>c<c>d<d>e<e>"; story.String() != want {
		t.Errorf("callbacks told %q, want %q", story.String(), want)
	}
	if r := x.result(); r.InputBytes != 5 || r.OutputBytes != 20 || r.Callbacks != "" {
		t.Errorf("result %+v", r)
	}
}

// TestCallbackPanic: the session goes on.
func TestCallbackPanic(t *testing.T) {
	x := newOuter(t, outerOptions{fault: "callback-panic"}, "sh", "-c", "echo one; sleep 0.1; echo two; exit 8")
	x.wantExit(8)
	if out := string(x.output()); out != "one\r\ntwo\r\n" {
		t.Errorf("output %q", out)
	}
	if r := x.result(); !strings.Contains(r.Callbacks, "the screen model gave up") {
		t.Errorf("result %+v", r)
	}
	x.wantRestored()
}

// TestNoTerminalNoCallbacks: without a terminal the bytes do not pass through rye.
func TestNoTerminalNoCallbacks(t *testing.T) {
	events := t.TempDir() + "/events"
	t.Setenv(envEvents, events)
	t.Setenv(envRecording, t.TempDir()+"/cast")
	out, _, code := piped(t, strings.NewReader("x"), nil, "cat")
	if string(out) != "x" || code != 0 {
		t.Errorf("output %q, status %d", out, code)
	}
	x := outer{t: t, files: strings.TrimSuffix(events, "/events")}
	if got := x.events(); len(got) != 0 {
		t.Errorf("callbacks %+v", got)
	}
}
