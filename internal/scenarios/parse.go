// Package scenarios is the labelled corpus: small sessions, honest and not, each with the verdict and the
// findings that it has to end in. The sessions are in testdata/scenarios, the tests of this package run them
// under `rye wrap` with the real kernel. It may import internal/scripted and verify.
//
// A file holds scenarios one after the other:
//
//	=== NAME
//	about: what is honest or wrong here
//	as: claude                    whom the scripted assistant plays: claude, codex, or nobody rye knows;
//	                              real-claude and real-codex are the programs themselves, asked by a scripted model
//	cols: 60                      width of the terminal, 120 when not given
//	flags: ARGS                   further arguments of the assistant
//	mode: acceptEdits             what its transcript says the mode is
//	file PATH: TEXT               a file made beforehand; #! makes it executable, a path is below the workspace
//	setup: SHELL                  run in the workspace beforehand, without rye
//	step: COMMAND                 what the model asks for; what follows says how it is handled
//	  show: COMMAND               what the dialog shows           record: COMMAND   what the transcript has
//	  sh: COMMAND                 what a shell runs instead       argv: ["a","b"]   what runs without a shell
//	  before: COMMAND             runs while the dialog stands    also: COMMAND     runs afterwards, unasked; or an argv
//	  answer: 1                   a digit, esc, enter, or down,enter; 1 when not given
//	  always: WORDS               what the dialog offers to save  rule: RULE        what is saved then
//	  but: noprompt norun defy forge silent claim hide detach
//	  times: 2, stdin: TEXT, cwd: DIR, env: NAME=VALUE
//	edit: PATH                    a file the assistant writes itself; text: TEXT, to: PATH (the one really written)
//	own: write PATH TEXT          what the assistant's own process does: write, append, read, remove, connect
//	want: discrepancy             the session's verdict
//	x1: discrepancy exec-differs write-outside:warning
//	session: evidence-lost:warning
//
// A finding is CODE, CODE/REASON, and :warning or :info after it when it is not a discrepancy. A value that
// is left empty is in the lines below it that begin with "| ". {WS}, {OUT}, {HOME} and {TMP} are the
// workspace, a folder outside it, the home folder and the temporary folder.
package scenarios

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ryehq/rye/internal/scripted"
	"github.com/ryehq/rye/verify"
)

// A Scenario is one session of the corpus.
type Scenario struct {
	File, Name, About string

	As, Mode string
	Flags    []string
	Cols     int
	Files    []File
	Setup    []string
	Steps    []scripted.Step
	Answers  []string // keys, one entry a question

	Want    verify.Verdict
	Actions map[string]Want // by id
	Session []string        // findings that belong to no action
}

// A File is made before the session starts.
type File struct{ Path, Text string }

// A Want is what an action has to end in.
type Want struct {
	Verdict  verify.Verdict
	Findings []string
}

// Parse reads the scenarios of one file.
func Parse(file, text string) ([]*Scenario, error) {
	p := &parser{file: file}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		p.line = i + 1
		switch t := strings.TrimSpace(line); {
		case t == "" || strings.HasPrefix(t, "#"):
			continue
		case strings.HasPrefix(t, "==="):
			if err := p.begin(strings.TrimSpace(t[3:])); err != nil {
				return nil, err
			}
			continue
		}
		name, value, ok := strings.Cut(strings.TrimLeft(line, " "), ":")
		if !ok || p.s == nil {
			return nil, p.fail("no field")
		}
		value = strings.TrimSpace(value)
		if value == "" {
			var block []string
			for i+1 < len(lines) && (strings.HasPrefix(strings.TrimLeft(lines[i+1], " "), "| ") || strings.TrimSpace(lines[i+1]) == "|") {
				i++
				_, rest, _ := strings.Cut(lines[i], "|")
				block = append(block, strings.TrimPrefix(rest, " "))
			}
			value = strings.Join(block, "\n")
			if strings.HasPrefix(name, "file ") {
				value += "\n"
			}
		}
		if err := p.field(name, value); err != nil {
			return nil, err
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return p.all, nil
}

type parser struct {
	file string
	line int
	all  []*Scenario
	s    *Scenario
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("read %s:%d: %s", p.file, p.line, fmt.Sprintf(format, args...))
}

func (p *parser) begin(name string) error {
	if err := p.end(); err != nil {
		return err
	}
	for _, s := range p.all {
		if s.Name == name {
			return p.fail("%s is there twice", name)
		}
	}
	p.s = &Scenario{File: p.file, Name: name, Cols: 120, Actions: map[string]Want{}}
	return nil
}

func (p *parser) end() error {
	if p.s == nil {
		return nil
	}
	if p.s.Want == "" || len(p.s.Steps) == 0 || p.s.About == "" {
		return p.fail("%s has no step, no word what it is about, or no verdict", p.s.Name)
	}
	p.all = append(p.all, p.s)
	p.s = nil
	return nil
}

func (p *parser) field(name, value string) error {
	s := p.s
	if path, ok := strings.CutPrefix(name, "file "); ok {
		s.Files = append(s.Files, File{path, value})
		return nil
	}
	if n, ok := strings.CutPrefix(name, "x"); ok && strings.Trim(n, "0123456789") == "" {
		words := strings.Fields(value)
		if len(words) == 0 || !isVerdict(words[0]) {
			return p.fail("no verdict for %s", name)
		}
		s.Actions[name] = Want{verify.Verdict(words[0]), words[1:]}
		return nil
	}
	switch name {
	case "about":
		s.About = value
	case "as":
		s.As = value
	case "mode":
		s.Mode = value
	case "flags":
		s.Flags = strings.Fields(value)
	case "cols":
		n, err := strconv.Atoi(value)
		if err != nil {
			return p.fail("width %q", value)
		}
		s.Cols = n
	case "setup":
		s.Setup = append(s.Setup, value)
	case "step":
		s.Steps = append(s.Steps, scripted.Step{Ask: value})
		s.Answers = append(s.Answers, "1")
	case "edit":
		s.Steps = append(s.Steps, scripted.Step{Edit: &scripted.Edit{Path: value}})
		s.Answers = append(s.Answers, "1")
	case "own":
		f := append(strings.SplitN(value, " ", 3), "", "")
		own := scripted.Own{Do: f[0], Path: f[1], Text: f[2]}
		if len(s.Steps) == 0 {
			s.Steps = append(s.Steps, scripted.Step{})
			s.Answers = append(s.Answers, "")
		}
		last := &s.Steps[len(s.Steps)-1]
		last.Own = append(last.Own, own)
	case "want":
		if !isVerdict(value) {
			return p.fail("verdict %q", value)
		}
		s.Want = verify.Verdict(value)
	case "session":
		s.Session = strings.Fields(value)
	default:
		return p.stepField(name, value)
	}
	return nil
}

func (p *parser) stepField(name, value string) error {
	if len(p.s.Steps) == 0 {
		return p.fail("%s without a step", name)
	}
	last := &p.s.Steps[len(p.s.Steps)-1]
	switch name {
	case "say":
		last.Say = value
	case "show":
		last.Show = value
	case "record":
		last.Record = value
	case "sh":
		last.Sh = value
	case "argv":
		if err := json.Unmarshal([]byte(value), &last.Run); err != nil {
			return p.fail("argv: %v", err)
		}
	case "before":
		last.Before = append(last.Before, []string{value})
	case "also":
		argv := []string{"bash", "-c", value}
		if strings.HasPrefix(value, "[") {
			if err := json.Unmarshal([]byte(value), &argv); err != nil {
				return p.fail("also: %v", err)
			}
		}
		last.Extra = append(last.Extra, argv)
	case "stdin":
		last.Stdin = value
	case "cwd":
		last.CWD = value
	case "env":
		last.Env = append(last.Env, value)
	case "always":
		last.Always = value
	case "rule":
		last.Rule = value
	case "answer":
		p.s.Answers[len(p.s.Answers)-1] = value
	case "times":
		n, err := strconv.Atoi(value)
		if err != nil {
			return p.fail("times %q", value)
		}
		last.Times = n
	case "text", "to":
		if last.Edit == nil {
			return p.fail("%s without an edit", name)
		}
		if name == "to" {
			last.Edit.To = value
		} else {
			last.Edit.Text = value + "\n"
		}
	case "but":
		for _, w := range strings.Fields(value) {
			if !but(last, w) {
				return p.fail("no way to be %q", w)
			}
		}
		if last.NoPrompt || last.Forge {
			p.s.Answers[len(p.s.Answers)-1] = ""
		}
	default:
		return p.fail("no field called %q", name)
	}
	return nil
}

func but(s *scripted.Step, word string) bool {
	flag, ok := map[string]*bool{
		"noprompt": &s.NoPrompt, "norun": &s.NoRun, "defy": &s.Defy, "forge": &s.Forge, "silent": &s.Silent,
		"claim": &s.Claim, "hide": &s.Hide, "detach": &s.Detach,
	}[word]
	if ok {
		*flag = true
	}
	return ok
}

func isVerdict(s string) bool {
	switch verify.Verdict(s) {
	case verify.Verified, verify.Discrepancy, verify.Indeterminate:
		return true
	}
	return false
}
