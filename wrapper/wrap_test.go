package wrapper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The tests run the test binary itself as a small "rye wrap" inside a terminal of their own: what a user sees
// can only be seen from outside. Its behaviour is chosen by variables of the environment.
const (
	envWrap      = "WRAPPER_TEST_WRAP"      // run as rye wrap
	envRecording = "WRAPPER_TEST_RECORDING" // file for the recording
	envEvents    = "WRAPPER_TEST_EVENTS"    // file for the callbacks, JSON lines
	envResult    = "WRAPPER_TEST_RESULT"    // file for the result
	envFault     = "WRAPPER_TEST_FAULT"     // panic, callback-panic, exec-hook
	envCgroup    = "WRAPPER_TEST_CGROUP"    // directory
)

func TestMain(m *testing.M) {
	if os.Getenv(envWrap) != "" {
		os.Exit(wrapMain(os.Args[1:]))
	}
	os.Exit(m.Run())
}

type testEvent struct {
	Kind    string
	Data    string `json:",omitempty"`
	TimeNS  uint64
	Skipped uint64 `json:",omitempty"`
	Cols    int    `json:",omitempty"`
	Rows    int    `json:",omitempty"`
}

type testResult struct {
	Result
	Recording, Callbacks, Terminal, Err string
	PID                                 int
	Name                                string
	HasTerminal                         bool
	Cols, Rows                          int
}

func wrapMain(argv []string) int {
	o := Options{Argv: argv}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "WRAPPER_TEST_") {
			o.Env = append(o.Env, e)
		}
	}
	if name := os.Getenv(envRecording); name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		o.Recording = f
	}
	if name := os.Getenv(envEvents); name != "" {
		f, err := os.Create(name)
		if err != nil {
			panic(err)
		}
		enc := json.NewEncoder(f)
		write := func(e testEvent) {
			if err := enc.Encode(e); err != nil {
				panic(err)
			}
		}
		o.Output = func(p []byte, t, skipped uint64) {
			write(testEvent{Kind: "o", Data: string(p), TimeNS: t, Skipped: skipped})
		}
		o.Input = func(p []byte, t, skipped uint64) {
			write(testEvent{Kind: "i", Data: string(p), TimeNS: t, Skipped: skipped})
		}
		o.Resize = func(cols, rows int, t uint64) { write(testEvent{Kind: "r", Cols: cols, Rows: rows, TimeNS: t}) }
	}
	fault := os.Getenv(envFault)
	switch fault {
	case "callback-panic":
		o.Output = func([]byte, uint64, uint64) { panic("the screen model gave up") }
	case "exec-hook":
		o.BeforeExec = func(int) error { return errors.New("hook says no") }
	}
	if name := os.Getenv(envCgroup); name != "" {
		f, err := os.Open(name)
		if err != nil {
			panic(err)
		}
		o.CgroupFD = int(f.Fd())
	}
	s, err := Start(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rye:", err)
		var ee *ExecError
		if errors.As(err, &ee) {
			return ee.ExitCode()
		}
		return 125
	}
	if fault == "panic" {
		go func() { panic("somewhere else in rye") }()
	}
	res, err := s.Wait()
	if name := os.Getenv(envResult); name != "" {
		tr := testResult{Result: res, PID: s.PID(), Name: res.SignalName()}
		tr.Cols, tr.Rows, tr.HasTerminal = s.Terminal()
		for _, e := range []struct {
			dst *string
			err error
		}{{&tr.Recording, res.Recording}, {&tr.Callbacks, res.Callbacks}, {&tr.Terminal, res.Terminal}, {&tr.Err, err}} {
			if e.err != nil {
				*e.dst = e.err.Error()
			}
		}
		b, err := json.Marshal(tr)
		if err != nil {
			panic(err)
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			panic(err)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rye:", err)
		return 125
	}
	return res.ExitCode
}
