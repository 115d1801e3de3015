package event

// Decision types of an approval.
const (
	DecisionThisTime   = "this_time"
	DecisionSession    = "session"
	DecisionAlways     = "always"
	DecisionAlwaysRule = "always_rule_match" // an earlier "always" answer covered it; no dialog

	DecisionDenied    = "denied"
	DecisionCancelled = "cancelled"
	DecisionTimeout   = "timeout"
)

// ApprovalPrompted is a dialog that became readable on the user's terminal. One dialog is one event,
// however often it is repainted.
type ApprovalPrompted struct {
	ID           string   `json:"id"`                      // unique in the session: "p1", "p2", …
	Agent        string   `json:"agent"`                   // codex, claude, …; "unknown" for an unknown shape
	Grammar      string   `json:"grammar"`                 // the grammar (file and version) that read it
	Kind         string   `json:"kind"`                    // command, edit, network, mcp, permissions, stdin, subagent, unknown
	Command      string   `json:"command,omitempty"`       // full text the dialog names, wraps undone
	Ambiguous    bool     `json:"ambiguous,omitempty"`     // a wrap and a real space or newline could not be told apart
	Cut          bool     `json:"cut,omitempty"`           // part of the text was not on the screen (scrolled off, shortened)
	Hidden       []string `json:"hidden,omitempty"`        // what the eye may miss: bidi, zero-width, control, padding
	Reason       string   `json:"reason,omitempty"`        // justification the assistant shows
	Options      []string `json:"options,omitempty"`       // answers offered, in order
	Prefix       []string `json:"prefix,omitempty"`        // words the "always" option would save
	Thread       string   `json:"thread,omitempty"`        // sub-agent or thread label, when the dialog shows one
	Screen       []string `json:"screen,omitempty"`        // rows of the dialog as shown
	Cols         int      `json:"cols"`                    //
	Rows         int      `json:"rows"`                    //
	OutputOffset uint64   `json:"output_offset,omitempty"` // byte offset in the terminal output when it was read
}

// ApprovalGranted is a dialog answered yes, or a decision line the assistant printed.
type ApprovalGranted struct {
	ID           string   `json:"id"`                  // "a1", "a2", …
	Prompt       string   `json:"prompt,omitempty"`    // id of the dialog, "" when none was seen
	Agent        string   `json:"agent"`               //
	Kind         string   `json:"kind"`                // as in ApprovalPrompted
	Command      string   `json:"command"`             // the dialog's text; the decision row's when there was no dialog
	Row          string   `json:"row,omitempty"`       // the decision row, if the assistant prints one
	RowCut       bool     `json:"row_cut,omitempty"`   // the row shortens the command
	Decision     string   `json:"decision"`            // this_time, session, always, always_rule_match
	Prefix       []string `json:"prefix,omitempty"`    // words of the saved rule
	Rule         string   `json:"rule,omitempty"`      // approval or rule id that it rests on (always_rule_match)
	Attested     bool     `json:"attested"`            // an answer came from the user's side of the terminal
	Key          string   `json:"key,omitempty"`       // that answer: "y", "enter", "1", "mouse", …
	KeyTimeNS    uint64   `json:"key_ns,omitempty"`    // when it was typed
	Screen       []string `json:"screen,omitempty"`    // dialog rows on the screen at that moment
	Uncertain    string   `json:"uncertain,omitempty"` // why the reading is not sure, "" when it is
	OutputOffset uint64   `json:"output_offset,omitempty"`
}

// ApprovalDenied is a dialog answered no, or a denial the assistant printed.
type ApprovalDenied struct {
	ID           string   `json:"id"`
	Prompt       string   `json:"prompt,omitempty"`
	Agent        string   `json:"agent"`
	Kind         string   `json:"kind"`
	Command      string   `json:"command"`
	Row          string   `json:"row,omitempty"`
	RowCut       bool     `json:"row_cut,omitempty"`
	Decision     string   `json:"decision"` // denied, cancelled, timeout
	Attested     bool     `json:"attested"`
	By           string   `json:"by,omitempty"` // user, reviewer
	Key          string   `json:"key,omitempty"`
	KeyTimeNS    uint64   `json:"key_ns,omitempty"`
	Screen       []string `json:"screen,omitempty"`
	Uncertain    string   `json:"uncertain,omitempty"`
	OutputOffset uint64   `json:"output_offset,omitempty"`
}

// ScreenUnreadable says that something prompt-like was on the screen and no grammar could read it, or
// that output was skipped by the scanner. It never means "no prompt".
type ScreenUnreadable struct {
	Why          string   `json:"why"`
	Screen       []string `json:"screen,omitempty"`
	AnsweredKey  string   `json:"answered_key,omitempty"` // a key typed while it stood there
	Skipped      uint64   `json:"skipped,omitempty"`      // bytes of output not scanned
	OutputOffset uint64   `json:"output_offset,omitempty"`
}

// ToolCall is what the model asked for, as a witness other than the screen tells it.
type ToolCall struct {
	ID            string   `json:"id"`               // call id: call_…, toolu_…
	Agent         string   `json:"agent"`            // codex, claude, …
	Source        string   `json:"source"`           // transcript, api, hook
	Thread        string   `json:"thread,omitempty"` // conversation id
	ParentThread  string   `json:"parent_thread,omitempty"`
	Subagent      string   `json:"subagent,omitempty"` // which sub-agent asked
	Tool          string   `json:"tool"`               // exec_command, Bash, apply_patch, Edit, …
	Kind          string   `json:"kind"`               // command, edit, fetch, mcp, stdin, other
	Command       string   `json:"command,omitempty"`  // for kind command
	Argv          []string `json:"argv,omitempty"`     // when the model gave words, not text
	CWD           string   `json:"cwd,omitempty"`
	Paths         []string `json:"paths,omitempty"`     // files an edit names
	Escalated     bool     `json:"escalated,omitempty"` // asked to run outside the assistant's sandbox
	Justification string   `json:"justification,omitempty"`
	AskedTimeNS   uint64   `json:"asked_ns,omitempty"` // the transcript's own time, converted to boottime
	File          string   `json:"file,omitempty"`     // evidence: transcript file
	Offset        int64    `json:"offset,omitempty"`   // and byte offset of its line

	// Where the source is api: the call as the model's own answer has it, read on its way through the proxy.
	API             string `json:"api,omitempty"`              // anthropic, openai-responses, openai-chat, gemini
	Request         string `json:"request,omitempty"`          // id of the proxy.decision whose answer it stood in
	Arguments       string `json:"arguments,omitempty"`        // as the model wrote them, at most 64 KiB
	ArgumentsBytes  uint64 `json:"arguments_bytes,omitempty"`  // their true length
	ArgumentsSHA256 string `json:"arguments_sha256,omitempty"` // hex, of all of them
	ArgumentsCut    bool   `json:"arguments_cut,omitempty"`    // what is kept is not all: too long, or a secret was cut out
	Unfinished      bool   `json:"unfinished,omitempty"`       // the answer broke off before the call was complete
}

// ToolResult is how a call ended, as the assistant's own record tells it.
type ToolResult struct {
	ID          string   `json:"id"`
	Agent       string   `json:"agent"`
	Source      string   `json:"source"`
	Thread      string   `json:"thread,omitempty"`
	Status      string   `json:"status"`                 // completed, failed, declined, aborted, rejected
	Record      string   `json:"record,omitempty"`       // item (says what ran), output (what the model was told)
	Command     []string `json:"command,omitempty"`      // argv the assistant says it ran
	ExitCode    *int     `json:"exit_code,omitempty"`    //
	Decision    string   `json:"decision,omitempty"`     // permissionDecision or the like, when recorded
	DecisionBy  string   `json:"decision_by,omitempty"`  // its source: user, rule, hook, mode, classifier
	UserShell   bool     `json:"user_shell,omitempty"`   // the user ran it himself (!cmd)
	Paths       []string `json:"paths,omitempty"`        // files changed
	OutputBytes int      `json:"output_bytes,omitempty"` //
	File        string   `json:"file,omitempty"`
	Offset      int64    `json:"offset,omitempty"`
}

// TurnContext is the mode an assistant says it worked in from here on.
type TurnContext struct {
	Agent            string   `json:"agent"`
	Thread           string   `json:"thread,omitempty"`
	ParentThread     string   `json:"parent_thread,omitempty"` // the thread that started this one
	Subagent         string   `json:"subagent,omitempty"`      // what the sub-agent is called
	Turn             string   `json:"turn,omitempty"`
	CWD              string   `json:"cwd,omitempty"`
	ApprovalPolicy   string   `json:"approval_policy,omitempty"`   // on-request, never, … or Claude's permission mode
	ApprovalReviewer string   `json:"approval_reviewer,omitempty"` // user, auto_review
	Sandbox          string   `json:"sandbox,omitempty"`           // read-only, workspace-write, danger-full-access, disabled
	WriteRoots       []string `json:"write_roots,omitempty"`
	ReadOnlyPaths    []string `json:"read_only_paths,omitempty"`
	Network          string   `json:"network,omitempty"` // restricted, enabled
	Version          string   `json:"version,omitempty"` // of the assistant
	File             string   `json:"file,omitempty"`
	Offset           int64    `json:"offset,omitempty"`
}

// RulesLoaded is a snapshot of one file that grants or refuses by rule.
type RulesLoaded struct {
	Agent  string `json:"agent"`
	Path   string `json:"path"`
	Level  string `json:"level"` // managed, user, project, local, session, command-line
	SHA256 string `json:"sha256"`
	Rules  []Rule `json:"rules"`
	Error  string `json:"error,omitempty"` // parse error: what the assistant does with it is in Note
	Note   string `json:"note,omitempty"`
	At     string `json:"at"` // start, change
}

// A Rule is one line of permission in normal form.
type Rule struct {
	ID       string     `json:"id"`                // stable in its file: hash of its text
	Decision string     `json:"decision"`          // allow, ask, deny
	Tool     string     `json:"tool,omitempty"`    // Bash, Edit, network, …
	Pattern  string     `json:"pattern,omitempty"` // as written
	Words    [][]string `json:"words,omitempty"`   // token prefix, each with its alternatives (Codex)
	Line     int        `json:"line,omitempty"`
}

func (*ApprovalPrompted) eventType() Type { return TypeApprovalPrompted }
func (*ApprovalGranted) eventType() Type  { return TypeApprovalGranted }
func (*ApprovalDenied) eventType() Type   { return TypeApprovalDenied }
func (*ScreenUnreadable) eventType() Type { return TypeScreenUnreadable }
func (*ToolCall) eventType() Type         { return TypeToolCall }
func (*ToolResult) eventType() Type       { return TypeToolResult }
func (*TurnContext) eventType() Type      { return TypeTurnContext }
func (*RulesLoaded) eventType() Type      { return TypeRulesLoaded }
