// Package shell says what a command line names: which programs, with which arguments, in which files.
//
// It is what an approval is compared with. A person approved a text; the kernel reports programs.
// [Parse] reads the text as the shell that ran it would and lists every simple command in it: those of
// lists, pipelines, subshells, functions and substitutions, those behind wrappers such as timeout,
// xargs or find -exec, and those in texts handed on to another shell. A [Command] then agrees with an
// argv or it does not, word by word; what the shell fills in at run time (variables, globs,
// substitutions) is a wildcard.
//
// It imports the standard library and mvdan.cc/sh/v3/syntax. It does no I/O and never expands
// anything against the machine it runs on.
//
// A text that cannot be parsed is said to be so ([Script.Err]); it never counts as matching.
package shell

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Lang is the shell that read a text. They differ in what a quote means.
type Lang uint8

const (
	Bash Lang = iota
	POSIX
	Zsh
	Korn
)

// LangOf picks the language by a shell's executable, e.g. /usr/bin/dash.
func LangOf(exe string) Lang {
	switch strings.TrimRight(path.Base(exe), "0123456789.-") {
	case "dash", "sh", "ash":
		return POSIX
	case "zsh":
		return Zsh
	case "ksh", "mksh", "lksh", "oksh", "pdksh":
		return Korn
	}
	return Bash
}

func (l Lang) variant() syntax.LangVariant {
	switch l {
	case POSIX:
		return syntax.LangPOSIX
	case Zsh:
		return syntax.LangZsh
	case Korn:
		return syntax.LangMirBSDKorn
	}
	return syntax.LangBash
}

const (
	maxText   = 1 << 20 // bytes of one text; the kernel's limit for one argument is 128 KiB
	maxNested = 400     // brackets open at once
	maxInner  = 8       // shells within shells
	maxWords  = 1 << 16 // words of all commands together
)

var (
	// ErrTooLong and ErrTooDeep are limits of this package, not of the shell.
	ErrTooLong = errors.New("text too long to parse")
	ErrTooDeep = errors.New("text nested too deeply to parse")
)

// A Script is what one text names.
type Script struct {
	Text      string
	Lang      Lang
	Err       error      // why the text could not be parsed; nothing below is filled in then
	Commands  []*Command // in the order of the text, payloads of wrappers after the wrapper
	Redirects []Redirect // files the shell itself opens
	Assigns   []Assign   // every variable the text sets
	Opaque    []Opaque   // where something that the text does not show becomes code
	// Dynamic says that part of the text itself was filled in at run time, so that a program it does
	// not name may still have been named by the text the shell got.
	Dynamic bool

	functions map[string]bool
	vars      map[string][]Word // literal values assigned in the text; nil value: not only literals
	words     int
	depth     int
}

// A Redirect is a file the text tells the shell to open.
type Redirect struct {
	Target Word
	Write  bool
}

// Opaque is a place where the text does not show the code that will run.
type Opaque struct {
	Why  string // stdin-fed, eval, source, command-word, shell-text
	What string // the command's source text
}

// Parse reads a text as the given shell would. It always returns a script; see [Script.Err].
func Parse(text string, lang Lang) *Script {
	s := &Script{Text: text, Lang: lang}
	s.parse(0)
	return s
}

func (s *Script) parse(depth int) {
	s.depth = depth
	f, err := parseFile(s.Text, s.Lang)
	if err != nil {
		s.Err = err
		return
	}
	s.walk(f)
}

func parseFile(text string, lang Lang) (f *syntax.File, err error) {
	if len(text) > maxText {
		return nil, ErrTooLong
	}
	if nesting(text) > maxNested {
		return nil, ErrTooDeep
	}
	// The parser is well fuzzed, but a verdict must not die of one input that was missed.
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("parse shell text: %v", r)
		}
	}()
	f, err = syntax.NewParser(syntax.Variant(lang.variant())).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("parse shell text: %w", err)
	}
	return f, nil
}

// nesting is a cheap upper bound for the depth the parser will recurse to. It does not know quotes,
// so it can only be too high.
func nesting(text string) int {
	depth, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			depth++
			most = max(most, depth)
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return most
}
