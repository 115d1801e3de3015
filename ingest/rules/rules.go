// Package rules reads the files in which assistants keep permissions: Claude Code's settings and Codex's
// .rules. It turns the bytes of one file into one event.RulesLoaded. What a rule then covers is for verify
// to say.
//
// The files belong to the user, but a project brings its own and a session can write any of them, so they
// are read as hostile input: size, nesting and work are bounded, and a message never repeats a value. The
// package does no I/O and imports event, go.starlark.net and a TOML decoder only.
package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ryehq/rye/event"
)

// Levels of a file, from the one that nobody but an administrator can change to the one that the project's
// author can.
const (
	Managed     = "managed"
	User        = "user"
	Project     = "project"
	Local       = "local"
	CommandLine = "command-line"
)

// Bounds of one file. Real ones have tens of rules.
const (
	MaxBytes = 256 << 10 // a longer file is reported, not read
	maxRules = 4096
	maxText  = 8 << 10 // bytes of one pattern or word
)

// NotRead begins the error of a file that rye could not read and that its assistant may have read: its rules
// are unknown, and those of other files stand. verify knows the words.
const NotRead = "not read by rye"

// file begins a snapshot of a file. One that is too long has no digest: the caller may have read only the
// beginning of it.
func file(agent, path, level string, b []byte) *event.RulesLoaded {
	f := &event.RulesLoaded{Agent: agent, Path: path, Level: level, Rules: []event.Rule{}}
	if len(b) <= MaxBytes {
		sum := sha256.Sum256(b)
		f.SHA256 = hex.EncodeToString(sum[:])
	}
	return f
}

// id names a rule by its text: the same rule has the same id in every file, session and machine.
func id(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// Text is a rule in the form its assistant writes it, without what does not change its meaning. Its hash
// is the rule's ID.
func Text(r event.Rule) string {
	switch {
	case len(r.Words) > 0 && (r.Tool == "command" || r.Tool == ""):
		var b strings.Builder
		b.WriteString("prefix_rule(pattern=[")
		for i, alternatives := range r.Words {
			if i > 0 {
				b.WriteString(", ")
			}
			if len(alternatives) == 1 {
				fmt.Fprintf(&b, "%q", alternatives[0])
				continue
			}
			b.WriteByte('[')
			for j, w := range alternatives {
				if j > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%q", w)
			}
			b.WriteByte(']')
		}
		decision := r.Decision
		switch decision { // in Codex's words
		case "ask":
			decision = "prompt"
		case "deny":
			decision = "forbidden"
		}
		fmt.Fprintf(&b, "], decision=%q)", decision)
		return b.String()
	case r.Pattern != "":
		return r.Decision + " " + r.Tool + "(" + r.Pattern + ")"
	}
	return r.Decision + " " + r.Tool
}

// add appends a rule and reports whether there was room for it.
func add(f *event.RulesLoaded, r event.Rule) bool {
	if len(f.Rules) >= maxRules {
		return false
	}
	r.ID = id(Text(r))
	f.Rules = append(f.Rules, r)
	return true
}

func note(f *event.RulesLoaded, format string, args ...any) {
	if len(f.Note) > 2000 {
		return
	}
	if f.Note != "" {
		f.Note += "; "
	}
	f.Note += fmt.Sprintf(format, args...)
}

// cut shortens what is repeated in a note.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
