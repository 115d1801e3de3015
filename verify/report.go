package verify

import (
	"encoding/json"
	"unicode/utf8"
)

// A Verdict is the judgement of an action or of a session.
type Verdict string

const (
	Verified      Verdict = "verified"
	Discrepancy   Verdict = "discrepancy"
	Indeterminate Verdict = "indeterminate" // loss, truncation, a missing witness: never folded into the other two
)

// ExitCode is what rye verify exits with.
func (v Verdict) ExitCode() int {
	switch v {
	case Verified:
		return 0
	case Discrepancy:
		return 1
	}
	return 2
}

// A Severity says what a finding does to a verdict: a discrepancy makes its action and session one,
// the other two are shown and leave it alone.
type Severity string

const (
	Info        Severity = "info"        // the allowed text names it
	Warning     Severity = "warning"     // a side effect of what was allowed, not named by it
	Contradicts Severity = "discrepancy" // not covered, or contradicts what was allowed
)

// Finding codes. They are stable: scripts match on them.
const (
	ExecUnapproved     = "exec-unapproved"
	ExecDiffers        = "exec-differs"
	AskedDiffers       = "asked-differs"
	TranscriptDiffers  = "transcript-differs"
	ExecBeforeApproval = "exec-before-approval"
	DeniedButRan       = "denied-but-ran"
	ApprovedNotRun     = "approved-not-run"
	ApprovalHidden     = "approval-hidden"
	ApprovalUnattested = "approval-unattested"
	RuleExceeded       = "rule-exceeded"
	RuleSelfGranted    = "rule-self-granted"
	BinaryShadowed     = "binary-shadowed"
	NetBypass          = "net-bypass"
	NetDeniedReached   = "net-denied-reached"
	SandboxClaimBroken = "sandbox-claim-broken"
	WriteOutside       = "write-outside"
	SecretRead         = "secret-read"
	Delegated          = "delegated"
	EscapeAttempt      = "escape-attempt"
	EvidenceLost       = "evidence-lost"
	LedgerBroken       = "ledger-broken"
)

// A Report is the judgement of one session.
//
// Its JSON is plain encoding/json, but for one thing: a byte that is not UTF-8 is written as the lone
// surrogate escape \udc80 … \udcff, as in the ledger (see event.Event.AppendJSON), so that two argv
// that differ only in such bytes stay different.
type Report struct {
	Session      string         `json:"session"`
	Verdict      Verdict        `json:"verdict"`
	Actions      []Action       `json:"actions"`
	Findings     []Finding      `json:"findings"`
	Housekeeping []Housekeeping `json:"housekeeping"`      // what the assistant ran for itself, not on anybody's word
	Network      *Network       `json:"network,omitempty"` // nil: the session was given no proxy and reached nothing
	Coverage     Coverage       `json:"coverage"`
	Ledger       LedgerReport   `json:"ledger"`
}

// An Action is one command, file edit, fetch or MCP call, with its chain: asked, allowed, ran.
type Action struct {
	ID      string  `json:"id"` // "x1", "x2", … in order of time
	Verdict Verdict `json:"verdict"`
	Kind    string  `json:"kind"` // command, edit, fetch, mcp, stdin
	Agent   string  `json:"agent,omitempty"`
	Command string  `json:"command"` // what ran, as text; what was asked or approved when nothing ran
	Asked   *Asked  `json:"asked,omitempty"`
	Allowed Allowed `json:"allowed"`
	Link    string  `json:"link"` // what ties run and approval together: CODEX_TOOL_CALL_ID, text, time, session; "" when nothing ran
	Root    *Root   `json:"root"` // null when nothing ran
	Execs   []Exec  `json:"execs"`
	// ExecCount is how many programs ran. Execs leaves out descendants past a limit, never others.
	ExecCount int       `json:"exec_count"`
	Wrapper   []string  `json:"wrapper,omitempty"`  // what the assistant put around the command, outermost first
	Static    string    `json:"static,omitempty"`   // "unparsed" when the text could not be read as shell
	Attempts  []Attempt `json:"attempts,omitempty"` // programs that could not be started
	Paths     []string  `json:"paths,omitempty"`    // files an edit was to change
	StartNS   uint64    `json:"start_ns,omitempty"`
	EndNS     uint64    `json:"end_ns,omitempty"`
	Findings  []int     `json:"findings,omitempty"` // indexes into the report's findings
}

// Asked is what the model asked for.
type Asked struct {
	ID      string   `json:"id"`
	Source  string   `json:"source"` // transcript, api, hook
	Tool    string   `json:"tool"`
	Command string   `json:"command,omitempty"`
	Thread  string   `json:"thread,omitempty"`
	Parent  string   `json:"parent_thread,omitempty"` // the thread that started that one
	Agent   string   `json:"subagent,omitempty"`      // the sub-agent that asked, "" for the conversation with the user
	Records []uint64 `json:"records"`
}

// Allowed says what let an action run.
type Allowed struct {
	Source     string   `json:"source"` // terminal, rule, mode, safe-list, hook, user-shell, user-command-line, none
	ApprovalID string   `json:"approval_id"`
	Type       string   `json:"type"`
	Rule       string   `json:"rule,omitempty"`   // the rule's text
	Detail     string   `json:"detail,omitempty"` // where it comes from
	Records    []uint64 `json:"records,omitempty"`
}

// Root is the process that ran the action, as of the exec that carries the allowed text.
type Root struct {
	TGID    uint32   `json:"tgid"`
	StartNS uint64   `json:"start_ns"`
	Argv    []string `json:"argv"`
	Exe     string   `json:"exe,omitempty"`
	Seq     uint64   `json:"seq"`
	TimeNS  uint64   `json:"time_ns"`
}

// An Exec is one program that ran as part of an action.
type Exec struct {
	Argv     []string `json:"argv"`
	Relation string   `json:"relation"` // named, descendant, unexplained
	Reason   string   `json:"reason,omitempty"`
	Exe      string   `json:"exe,omitempty"`
	TGID     uint32   `json:"tgid"`
	StartNS  uint64   `json:"start_ns"`
	Seq      uint64   `json:"seq"`
}

const (
	Named       = "named"
	Descendant  = "descendant"
	Unexplained = "unexplained"
)

// An Attempt is a program that was tried and never started.
type Attempt struct {
	Path  string `json:"path"`
	Error string `json:"error"`
	Count int    `json:"count"`
	Seq   uint64 `json:"seq"`
}

// A Finding is one thing a person should know.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Records  []uint64 `json:"records"`          // ledger positions of both sides
	Action   string   `json:"action,omitempty"` // id of the action, "" for the session
	Reason   string   `json:"reason,omitempty"` // the kind within the code
	Path     string   `json:"path,omitempty"`
}

// Housekeeping is something the assistant started for itself.
type Housekeeping struct {
	Kind  string   `json:"kind"` // git-status, shell-snapshot, sandbox-probe, hook, mcp-server, …
	Agent string   `json:"agent"`
	Argv  []string `json:"argv"`
	Exe   string   `json:"exe,omitempty"`
	Seq   uint64   `json:"seq"`
	TGID  uint32   `json:"tgid"`
	Below int      `json:"below,omitempty"` // programs started by it
	// Presumed says that the kind is inferred from how it was started, not from a shape that was seen
	// in that assistant.
	Presumed bool `json:"presumed,omitempty"`
}

// Coverage is what the kernel witness could and could not see.
type Coverage struct {
	Tier      string            `json:"tier"`
	Lost      map[string]uint64 `json:"lost"`
	Truncated int               `json:"truncated"` // execs whose arguments were cut
	SelfTest  string            `json:"self_test"`
	Gaps      []string          `json:"gaps,omitempty"`
	Survivors int               `json:"survivors,omitempty"`
	Degraded  []string          `json:"degraded_by,omitempty"`
	Unknown   uint64            `json:"unknown_records,omitempty"` // records of a type this version does not know
	Events    uint64            `json:"events"`
}

// LedgerReport repeats what the ledger's own check said.
type LedgerReport struct {
	OK       bool   `json:"ok"`
	Records  int64  `json:"records"`
	RootHash string `json:"root_hash"`
	Problem  string `json:"problem,omitempty"`
	Anchored bool   `json:"anchored"` // the tree head was also found outside this machine's user
}

// text is a string whose JSON keeps bytes that are not UTF-8.
type text string

func (t text) MarshalJSON() ([]byte, error) {
	s := string(t)
	if utf8.ValidString(s) {
		return json.Marshal(s)
	}
	out := []byte{'"'}
	for len(s) > 0 {
		n := 0
		for n < len(s) {
			r, size := utf8.DecodeRuneInString(s[n:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}
		q, err := json.Marshal(s[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, q[1:len(q)-1]...)
		if n < len(s) {
			const hex = "0123456789abcdef"
			out = append(out, '\\', 'u', 'd', 'c', hex[s[n]>>4], hex[s[n]&15])
			n++
		}
		s = s[n:]
	}
	return append(out, '"'), nil
}

func texts(argv []string) []text {
	out := make([]text, len(argv))
	for i, a := range argv {
		out[i] = text(a)
	}
	return out
}

// MarshalJSON implements json.Marshaler; see [Report].
func (r Root) MarshalJSON() ([]byte, error) {
	type plain Root
	return json.Marshal(struct {
		plain
		Argv []text `json:"argv"`
		Exe  text   `json:"exe,omitempty"`
	}{plain(r), texts(r.Argv), text(r.Exe)})
}

// MarshalJSON implements json.Marshaler; see [Report].
func (x Exec) MarshalJSON() ([]byte, error) {
	type plain Exec
	return json.Marshal(struct {
		Argv     []text `json:"argv"`
		Relation string `json:"relation"`
		plain
		Exe text `json:"exe,omitempty"`
	}{texts(x.Argv), x.Relation, plain(x), text(x.Exe)})
}

// MarshalJSON implements json.Marshaler; see [Report].
func (h Housekeeping) MarshalJSON() ([]byte, error) {
	type plain Housekeeping
	return json.Marshal(struct {
		plain
		Argv []text `json:"argv"`
		Exe  text   `json:"exe,omitempty"`
	}{plain(h), texts(h.Argv), text(h.Exe)})
}

// MarshalJSON implements json.Marshaler; see [Report].
func (a Action) MarshalJSON() ([]byte, error) {
	type plain Action
	return json.Marshal(struct {
		ID      string  `json:"id"`
		Verdict Verdict `json:"verdict"`
		Command text    `json:"command"`
		plain
	}{a.ID, a.Verdict, text(a.Command), plain(a)})
}

// MarshalJSON implements json.Marshaler; see [Report].
func (a Asked) MarshalJSON() ([]byte, error) {
	type plain Asked
	return json.Marshal(struct {
		plain
		Command text `json:"command,omitempty"`
	}{plain(a), text(a.Command)})
}

// MarshalJSON implements json.Marshaler; see [Report].
func (f Finding) MarshalJSON() ([]byte, error) {
	type plain Finding
	return json.Marshal(struct {
		Code     string   `json:"code"`
		Severity Severity `json:"severity"`
		Message  text     `json:"message"`
		plain
		Path text `json:"path,omitempty"`
	}{f.Code, f.Severity, text(f.Message), plain(f), text(f.Path)})
}
