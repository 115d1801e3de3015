package wrapper

import (
	"testing"
	"time"
)

func TestSizeAtStart(t *testing.T) {
	for _, tt := range []struct {
		rows, cols int
		want       string
	}{{33, 101, "33 101"}, {1, 1, "1 1"}, {500, 1000, "500 1000"}} {
		x := newOuter(t, outerOptions{rows: tt.rows, cols: tt.cols}, "stty", "size")
		x.wantExit(0)
		if out := string(x.output()); out != tt.want+"\r\n" {
			t.Errorf("output %q, want %q", out, tt.want)
		}
		if r := x.result(); r.Rows != tt.rows || r.Cols != tt.cols || !r.HasTerminal {
			t.Errorf("result %+v", r)
		}
	}
}

// TestSizeUnknown: a terminal may have no size; the command sees the same.
func TestSizeUnknown(t *testing.T) {
	x := newOuter(t, outerOptions{rows: 0, cols: 1}, "stty", "size")
	x.wantExit(0)
	if out := string(x.output()); out != "0 1\r\n" {
		t.Errorf("output %q", out)
	}
}

// TestSizeBurst: after many changes the last one stays, and the command heard of it.
func TestSizeBurst(t *testing.T) {
	need(t, "bash")
	x := newOuter(t, outerOptions{rows: 33, cols: 101}, "bash", script(t, `
trap 'echo "winch $(stty size)"' WINCH
echo "READY $(stty size)"
while read -r -t 0.05 line || [ $? -gt 128 ]; do [ "$line" = q ] && break; done
echo "final $(stty size)"`))
	x.expect("READY 33 101")
	for i := range 40 {
		x.resize(20+i, 60+i)
	}
	x.resize(41, 77)
	x.expect("winch 41 77")
	x.send("q\r")
	x.expect("final 41 77")
	x.wantExit(0)
	var last testEvent
	for _, e := range x.events() {
		if e.Kind == "r" {
			last = e
		}
	}
	if last.Rows != 41 || last.Cols != 77 {
		t.Errorf("last size told is %+v", last)
	}
}

// TestSizeBeforeEffect: the callbacks hear of a size before they see output made for it.
func TestSizeBeforeEffect(t *testing.T) {
	need(t, "bash")
	x := newOuter(t, outerOptions{}, "bash", script(t, `
trap 'echo "now $(stty size)"; exit' WINCH
echo READY
while :; do sleep 0.05; done`))
	x.expect("READY")
	time.Sleep(20 * time.Millisecond)
	x.resize(50, 120)
	x.expect("now 50 120")
	x.wantExit(0)
	told := false
	for _, e := range x.events() {
		if e.Kind == "r" && e.Rows == 50 && e.Cols == 120 {
			told = true
		}
		if e.Kind == "o" && e.Data == "now 50 120\r\n" && !told {
			t.Error("output came before the size it was made for")
		}
	}
	if !told {
		t.Error("the size was not told")
	}
}
