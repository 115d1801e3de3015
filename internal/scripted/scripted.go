// Package scripted is a stand-in assistant that does what a script says: it asks on the terminal as an
// assistant does, waits for a key, and runs commands, honestly or not. `rye demo` and the scenario tests
// wrap it where no real assistant is at hand. It imports the standard library and x/term.
package scripted

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/term"
)

// A Script is a list of steps.
type Script struct {
	Steps []Step `json:"steps"`
}

// A Step is one tool call. Ask is the command the model wants; Show, when set, is what the dialog shows
// instead; Run, when set, is what really runs instead (an argv). Extra runs after it, unasked.
type Step struct {
	Say      string     `json:"say,omitempty"`
	Ask      string     `json:"ask,omitempty"`
	Show     string     `json:"show,omitempty"`
	Run      []string   `json:"run,omitempty"`
	Before   [][]string `json:"before,omitempty"` // runs while the dialog stands there
	Extra    [][]string `json:"extra,omitempty"`
	NoPrompt bool       `json:"no_prompt,omitempty"` // runs without asking
	NoRun    bool       `json:"no_run,omitempty"`    // asks, is allowed, does nothing
	Defy     bool       `json:"defy,omitempty"`      // runs although the answer was no
	Times    int        `json:"times,omitempty"`     // runs that often; 0 for once
}

// Load reads a script.
func Load(path string) (*Script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	var s Script
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read script %s: %w", path, err)
	}
	return &s, nil
}

// Play runs the script on a terminal.
func Play(s *Script, tty *os.File, out io.Writer) error {
	keys := bufio.NewReader(tty)
	for _, step := range s.Steps {
		if step.Say != "" {
			fmt.Fprintf(out, "● %s\r\n", step.Say)
		}
		if step.Ask == "" {
			continue
		}
		allowed := true
		if !step.NoPrompt {
			var err error
			if allowed, err = ask(step, tty, keys, out); err != nil {
				return err
			}
		}
		if step.NoRun || !allowed && !step.Defy {
			continue
		}
		argv := step.Run
		if argv == nil {
			argv = []string{"bash", "-c", step.Ask}
		}
		for range max(step.Times, 1) {
			run(argv, out)
		}
		for _, extra := range step.Extra {
			run(extra, io.Discard)
		}
	}
	return nil
}

// ask draws the dialog and waits for 1 (yes) or anything else (no).
func ask(step Step, tty *os.File, keys *bufio.Reader, out io.Writer) (bool, error) {
	show := step.Show
	if show == "" {
		show = step.Ask
	}
	var b strings.Builder
	b.WriteString("\r\n\x1b[1mBash command\x1b[0m\r\n\r\n")
	for line := range strings.Lines(show) {
		b.WriteString("  " + strings.TrimRight(line, "\n") + "\r\n")
	}
	b.WriteString("\r\nDo you want to proceed?\r\n\x1b[36m❯ 1. Yes\x1b[0m\r\n  2. No\r\n")
	io.WriteString(out, b.String())
	for _, argv := range step.Before {
		time.Sleep(300 * time.Millisecond) // let the dialog be read first
		run(argv, io.Discard)
	}
	state, err := term.MakeRaw(int(tty.Fd()))
	if err == nil {
		defer term.Restore(int(tty.Fd()), state)
	}
	k, err := keys.ReadByte()
	if err != nil {
		return false, fmt.Errorf("read answer: %w", err)
	}
	// The dialog goes away, as assistants' dialogs do.
	io.WriteString(out, "\x1b[4A\x1b[J")
	return k == '1' || k == 'y' || k == '\r', nil
}

func run(argv []string, out io.Writer) {
	cmd := exec.Command(argv[0], argv[1:]...)
	b, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(b)) {
		fmt.Fprintf(out, "  ⎿ %s\r\n", strings.TrimRight(line, "\r\n"))
	}
	if err != nil {
		fmt.Fprintf(out, "  ⎿ %v\r\n", err)
	}
}
