package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ingest/rules"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/verify"
)

func newRules() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the standing permissions that apply here, where they come from and what they let run",
		Long: `Lists every rule of the assistants' permission files that applies in this folder, in one form: decision,
tool and pattern, file and level. For each it says in which recorded session it was first seen, which answer
granted it, and what it let run since. Only recorded sessions count: what an assistant did without rye is
not known, and a rule that was there when the first session began may be older than "first seen".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := openHome()
			if err != nil {
				return &exitError{exitUsage, err}
			}
			l, err := rulesHere(h, limit)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if !asJSON {
				printRules(cmd.OutOrStdout(), l)
				return nil
			}
			b, err := marshalIndent(l)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if _, err := cmd.OutOrStdout().Write(b); err != nil && !brokenPipe(err) {
				return &exitError{exitUsage, err}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Flags().IntVar(&limit, "sessions", 100, "search the newest `N` recorded sessions, 0 for all")
	return cmd
}

// A ruleList is what rye rules prints.
type ruleList struct {
	Folder     string       `json:"folder"`
	Rules      []standing   `json:"rules"`
	Files      []ruleSource `json:"files"`       // every permission file that is there
	Searched   int          `json:"searched"`    // sessions read
	Recorded   int          `json:"recorded"`    // sessions there are
	NotCounted []string     `json:"not_counted"` // sessions whose ledger does not prove itself
}

type ruleSource struct {
	Agent  string `json:"agent"`
	Level  string `json:"level"`
	Path   string `json:"path"`
	Rules  int    `json:"rules"`
	Error  string `json:"error,omitempty"`
	Note   string `json:"note,omitempty"`
	Shared string `json:"shared"` // yes: the project's git has the file; no: on this machine only; unknown
}

// A standing is one rule with its history.
type standing struct {
	event.Rule
	Agent   string      `json:"agent"`
	Text    string      `json:"text"`
	Level   string      `json:"level"`
	Path    string      `json:"path"`
	Shared  string      `json:"shared"`
	First   *firstSight `json:"first_seen,omitempty"` // absent: in no session that was searched
	Granted *ruleGrant  `json:"granted,omitempty"`    // absent: no answer that was recorded explains it
	Used    int         `json:"used"`                 // actions it let run
	Ran     []string    `json:"ran,omitempty"`        // their commands, each once, at most maxRan
	Beyond  int         `json:"exceeded"`             // of those, actions that went beyond its words
	used    map[string]bool
}

type firstSight struct {
	Session string `json:"session"`
	Time    string `json:"time"` // RFC 3339
	At      string `json:"at"`   // start: it was there before; change: it appeared in this session
}

type ruleGrant struct {
	Session  string `json:"session"`
	Approval string `json:"approval"`
	Time     string `json:"time"`
	Command  string `json:"command"` // what was asked
	By       string `json:"by"`      // words: the answer names the rule; time: the last answer before it appeared
}

const maxRan = 20

// rulesHere reads the rules that apply in the working folder and searches sessions for their history.
func rulesHere(h *home, limit int) (*ruleList, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	user, _ := os.UserHomeDir()
	l := &ruleList{Folder: cwd, Rules: []standing{}, Files: []ruleSource{}, NotCounted: []string{}}
	w := newRuleFiles(&event.SessionStart{Home: user, CWD: cwd, Workspace: workspace(cwd)})
	for _, e := range w.start() {
		r := e.Body.(*event.RulesLoaded)
		shared := sharedByGit(workspace(cwd), r.Path)
		l.Files = append(l.Files, ruleSource{r.Agent, r.Level, r.Path, len(r.Rules), r.Error, r.Note, shared})
		for _, x := range r.Rules {
			l.Rules = append(l.Rules, standing{Rule: x, Agent: r.Agent, Text: rules.Text(x), Level: r.Level, Path: r.Path, Shared: shared, used: map[string]bool{}})
		}
	}
	ids, err := h.ids()
	if err != nil {
		return nil, err
	}
	l.Recorded = len(ids)
	if limit > 0 && len(ids) > limit {
		ids = ids[len(ids)-limit:]
	}
	if len(l.Rules) == 0 {
		return l, nil
	}
	for _, id := range ids {
		l.Searched++
		if err := l.search(h, id); err != nil {
			l.NotCounted = append(l.NotCounted, id)
		}
	}
	return l, nil
}

// search adds what one session knows of the rules.
func (l *ruleList) search(h *home, id string) error {
	report, err := judge(h.session(id), h)
	if err != nil {
		return err
	}
	if !report.Ledger.OK {
		return os.ErrInvalid
	}
	r, err := ledger.Open(h.session(id), h.trusted()...)
	if err != nil {
		return err
	}
	clock := func(uint64) string { return "" }
	var grants []*grantSeen
	for e, err := range r.Events() {
		if err != nil {
			return err
		}
		switch b := e.Body.(type) {
		case *event.SessionStart:
			began, boot := b.WallTime, e.TimeNS
			clock = func(ns uint64) string {
				t, err := time.Parse(time.RFC3339Nano, began)
				if err != nil {
					return ""
				}
				return t.Add(time.Duration(int64(ns - boot))).Format(time.RFC3339)
			}
		case *event.ApprovalGranted:
			if b.Decision == event.DecisionAlways && b.Attested {
				grants = append(grants, &grantSeen{b, e.TimeNS})
			}
		case *event.RulesLoaded:
			l.snapshot(id, b, e.TimeNS, clock, grants)
		}
	}
	l.uses(id, report)
	return nil
}

type grantSeen struct {
	*event.ApprovalGranted
	ns uint64
}

// snapshot notes the rules of a file that no earlier session or snapshot had.
func (l *ruleList) snapshot(id string, b *event.RulesLoaded, ns uint64, clock func(uint64) string, grants []*grantSeen) {
	for i := range l.Rules {
		r := &l.Rules[i]
		if r.First != nil || r.Path != b.Path || !slices.ContainsFunc(b.Rules, func(x event.Rule) bool { return x.ID == r.ID }) {
			continue
		}
		r.First = &firstSight{id, clock(ns), b.At}
		if b.At != "change" || r.Decision != "allow" {
			continue
		}
		var last *grantSeen
		by := ""
		for _, g := range grants {
			if g.Agent != r.Agent || g.ns > ns {
				continue
			}
			if names(g.Prefix, r.Rule) {
				last, by = g, "words"
			} else if by != "words" && len(g.Prefix) == 0 {
				last, by = g, "time"
			}
		}
		if last != nil {
			r.Granted = &ruleGrant{id, last.ID, clock(last.ns), last.Command, by}
		}
	}
}

// names reports whether an answer named the words of a rule.
func names(prefix []string, r event.Rule) bool {
	if len(prefix) == 0 {
		return false
	}
	if len(r.Words) > 0 {
		return slices.EqualFunc(r.Words, prefix, func(alternatives []string, w string) bool { return len(alternatives) == 1 && alternatives[0] == w })
	}
	trim := func(s string) string { return strings.TrimSpace(strings.TrimRight(s, "*: ")) }
	saved := trim(strings.Join(prefix, " "))
	return trim(r.Pattern) != "" && (saved == trim(r.Pattern) || slices.ContainsFunc(prefix, func(p string) bool { return trim(p) == trim(r.Pattern) }))
}

// grants: a rule whose use can be told from an action. What a mode, a hook or a folder lets happen is judged
// under other names, and what is asked or denied is no grant.
func (r *standing) grants() bool {
	switch r.Tool {
	case "hook", "hook.http", "hook.prompt", "statusline", "defaultMode", "additionalDirectory", "network":
		return false
	}
	return r.Decision == "allow"
}

// uses counts the actions of a session that a rule, or the answer that made it, let run.
func (l *ruleList) uses(id string, report *verify.Report) {
	for i := range l.Rules {
		r := &l.Rules[i]
		for _, a := range report.Actions {
			byRule := a.Allowed.Source == "rule" && a.Allowed.ApprovalID == r.ID && a.Allowed.Detail == r.Path
			byAnswer := r.Granted != nil && r.Granted.Session == id && a.Allowed.ApprovalID == r.Granted.Approval && a.Allowed.Type == event.DecisionAlwaysRule
			if a.Root == nil && a.Kind == "command" || !byRule && !byAnswer {
				continue
			}
			r.Used++
			if !r.used[a.Command] && len(r.Ran) < maxRan {
				r.used[a.Command] = true
				r.Ran = append(r.Ran, a.Command)
			}
			for _, n := range a.Findings {
				if n < len(report.Findings) && report.Findings[n].Code == verify.RuleExceeded {
					r.Beyond++
					break
				}
			}
		}
	}
}

// sharedByGit looks for a file in the project's git index. git itself is not asked: a repository can make it
// run programs.
func sharedByGit(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(rel, "../") || !filepath.IsAbs(path) {
		return "no"
	}
	git := filepath.Join(root, ".git")
	switch info, err := os.Stat(git); {
	case err != nil:
		return "no"
	case !info.IsDir(): // a worktree or submodule: its index is elsewhere
		return "unknown"
	}
	info, err := os.Stat(filepath.Join(git, "index"))
	if os.IsNotExist(err) {
		return "no"
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > 64<<20 {
		return "unknown"
	}
	b, err := os.ReadFile(filepath.Join(git, "index"))
	// Version 4 shortens names by what they share with the one before.
	if err != nil || len(b) < 12 || string(b[:4]) != "DIRC" || binary.BigEndian.Uint32(b[4:]) > 3 {
		return "unknown"
	}
	if bytes.Contains(b, append([]byte(rel), 0)) {
		return "yes"
	}
	return "no"
}
