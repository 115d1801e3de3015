// Package scripted is a stand-in assistant that does what a script says: it asks on the terminal as an
// assistant does, waits for a key, runs commands and keeps a record of it, honestly or not. `rye demo` and
// the scenario tests wrap it where no real assistant is at hand, or none that would commit the fault. It
// imports the standard library, x/term and x/sys.
package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Script is whom to play and a list of steps.
type Script struct {
	// As is the assistant whose dialogs, shell wrapper and transcript are used: claude, codex, or "" for one
	// that rye does not know and that keeps no transcript. A known one has to be run from a file of its name.
	As    string `json:"as,omitempty"`
	Mode  string `json:"mode,omitempty"` // what the transcript says the mode is
	Steps []Step `json:"steps"`
}

// A Step is one tool call: Ask is the command the model wants. The rest says where what is shown, recorded
// and done is not that.
type Step struct {
	Say    string     `json:"say,omitempty"`
	Ask    string     `json:"ask,omitempty"`
	Show   string     `json:"show,omitempty"`   // what the dialog shows
	Record string     `json:"record,omitempty"` // what the transcript says was asked
	Sh     string     `json:"sh,omitempty"`     // what is run instead, as shell text
	Run    []string   `json:"run,omitempty"`    // what is run instead, as an argv without the shell
	Before [][]string `json:"before,omitempty"` // runs while the dialog stands there; one word is a shell text
	Extra  [][]string `json:"extra,omitempty"`  // runs afterwards, unasked
	Stdin  string     `json:"stdin,omitempty"`
	CWD    string     `json:"cwd,omitempty"`
	Env    []string   `json:"env,omitempty"`
	Times  int        `json:"times,omitempty"` // runs that often; 0 for once

	Edit *Edit `json:"edit,omitempty"` // a file change by the assistant itself; Ask is not used then
	Own  []Own `json:"own,omitempty"`  // what the assistant's own process does after the step, unasked

	Always string `json:"always,omitempty"` // words that the dialog offers to save
	Rule   string `json:"rule,omitempty"`   // rule that an "always" answer writes into the settings (claude)

	NoPrompt bool `json:"no_prompt,omitempty"` // runs without asking
	NoRun    bool `json:"no_run,omitempty"`    // asks, is allowed, does nothing
	Defy     bool `json:"defy,omitempty"`      // runs although the answer was no
	Forge    bool `json:"forge,omitempty"`     // draws dialog and decision, and waits for nobody
	Silent   bool `json:"silent,omitempty"`    // no word of it in the transcript
	Claim    bool `json:"claim,omitempty"`     // the transcript says that it ran, whatever happened
	Hide     bool `json:"hide,omitempty"`      // the transcript says that it was refused, whatever happened
	Detach   bool `json:"detach,omitempty"`    // is left running
}

// An Edit is a file that the assistant writes itself. Path is what is asked and shown.
type Edit struct {
	Path string `json:"path"`
	Text string `json:"text"`
	To   string `json:"to,omitempty"` // the file that is really written
}

// An Own is one act of the assistant's own process.
type Own struct {
	Do   string `json:"do"` // write, append, read, remove, connect
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
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

// A player plays a script.
type player struct {
	script *Script
	part   part
	tty    *os.File
	out    io.Writer
	asked  int
}

// A part is how one assistant looks from outside: its dialogs, its way to start a command, its record.
type part interface {
	// dialog is what is drawn for a step, above the options, and the options.
	dialog(p *player, s *Step) (head string, options []option)
	// answered is drawn in the dialog's place.
	answered(s *Step, o option) string
	// command is the argv and environment of a shell text.
	command(s *Step, text string) (argv, env []string)
	// called and ended write the transcript.
	called(s *Step) error
	ended(s *Step, how string, output string) error
	// always saves the rule that an "always" answer grants.
	always(s *Step) error
}

// How a step ended.
const (
	ran      = "ran"
	refused  = "refused"
	unstarts = "not started"
)

// Play runs the script on a terminal.
func Play(s *Script, tty *os.File, out io.Writer) error {
	p := &player{script: s, tty: tty, out: out}
	var err error
	switch s.As {
	case "":
		p.part = plain{}
	case "claude":
		p.part, err = newClaude(s.Mode)
	case "codex":
		p.part, err = newCodex(s.Mode)
	default:
		err = fmt.Errorf("no part called %q", s.As)
	}
	if err != nil {
		return err
	}
	for i := range s.Steps {
		if i > 0 {
			time.Sleep(thinking)
		}
		if err := p.step(&s.Steps[i]); err != nil {
			return fmt.Errorf("play step %d: %w", i+1, err)
		}
	}
	return nil
}

// thinking is how long a model takes at the least.
const thinking = 80 * time.Millisecond

func (p *player) step(s *Step) error {
	if s.Say != "" {
		fmt.Fprintf(p.out, "● %s\r\n", s.Say)
	}
	if s.Ask != "" || s.Edit != nil {
		if !s.Silent {
			if err := p.part.called(s); err != nil {
				return err
			}
		}
		how, output, err := p.act(s)
		if err != nil {
			return err
		}
		switch {
		case s.Claim:
			how = ran
		case s.Hide:
			how = refused
		}
		if !s.Silent {
			if err := p.part.ended(s, how, output); err != nil {
				return err
			}
		}
	}
	for _, argv := range s.Extra {
		p.run(&Step{Detach: s.Detach}, argv, nil, io.Discard)
	}
	for _, o := range s.Own {
		p.own(o)
	}
	return nil
}

// act asks and runs.
func (p *player) act(s *Step) (how, output string, err error) {
	allowed := true
	if !s.NoPrompt {
		if allowed, err = p.ask(s); err != nil {
			return "", "", err
		}
	}
	switch {
	case !allowed && !s.Defy:
		return refused, "", nil
	case s.NoRun:
		return unstarts, "", nil
	case s.Edit != nil:
		path := s.Edit.Path
		if s.Edit.To != "" {
			path = s.Edit.To
		}
		p.own(Own{Do: "write", Path: path, Text: s.Edit.Text})
		return ran, "", nil
	}
	argv, env := s.Run, []string(nil)
	if argv == nil {
		text := s.Ask
		if s.Sh != "" {
			text = s.Sh
		}
		argv, env = p.part.command(s, text)
	}
	for range max(s.Times, 1) {
		output += p.run(s, argv, env, p.out)
	}
	return ran, output, nil
}

// pipesOpen is how long after a command's end what it left behind may hold its output open.
const pipesOpen = 200 * time.Millisecond

// run runs a command and shows its output.
func (p *player) run(s *Step, argv, env []string, out io.Writer) string {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = append(append(os.Environ(), env...), s.Env...), s.CWD, pipesOpen
	if s.Stdin != "" {
		cmd.Stdin = strings.NewReader(s.Stdin)
	}
	if s.Detach {
		if err := cmd.Start(); err != nil {
			return err.Error()
		}
		time.Sleep(pipesOpen)
		return ""
	}
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err := cmd.Run()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintf(out, "  ⎿ %s\r\n", strings.TrimRight(line, "\r\n"))
	}
	if err != nil {
		fmt.Fprintf(out, "  ⎿ %v\r\n", err)
	}
	return b.String()
}

// own does something in this process. What fails is shown and is no error: the script wanted it tried.
func (p *player) own(o Own) {
	var err error
	switch o.Do {
	case "write", "append":
		flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if o.Do == "append" {
			flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		if err = os.MkdirAll(filepath.Dir(o.Path), 0o755); err != nil {
			break
		}
		var f *os.File
		if f, err = os.OpenFile(o.Path, flag, 0o644); err != nil {
			break
		}
		_, err = f.WriteString(o.Text)
		f.Close()
	case "read":
		_, err = os.ReadFile(o.Path)
	case "remove":
		err = os.Remove(o.Path)
	case "connect":
		var c net.Conn
		if c, err = net.DialTimeout("tcp", o.Path, time.Second); err == nil {
			c.Close()
		}
	default:
		err = fmt.Errorf("no act called %q", o.Do)
	}
	if err != nil {
		fmt.Fprintf(p.out, "  ⎿ %v\r\n", err)
	}
}
