package event

// SessionStart opens a ledger: who ran what, where, on which machine.
type SessionStart struct {
	ID        string   `json:"id"`
	Name      string   `json:"name,omitempty"`
	Command   []string `json:"command"`        // argv of the wrapped command, as the user gave it
	Path      string   `json:"path,omitempty"` // the executable it resolved to
	PID       int      `json:"pid,omitempty"`  // of the wrapped command, 0 when it never started
	CWD       string   `json:"cwd"`
	Workspace string   `json:"workspace"`            // root of the user's project: the git top level, else cwd
	Home      string   `json:"home,omitempty"`       // the user's home, where assistants keep their state
	TempDir   string   `json:"temp_dir,omitempty"`   // TMPDIR of the session, else /tmp
	SearchDir string   `json:"search_dir,omitempty"` // PATH of the session, colon separated
	UID       int      `json:"uid"`
	GID       int      `json:"gid"`
	Terminal  bool     `json:"terminal"` // child ran in a PTY (false: pipes)
	Cols      int      `json:"cols,omitempty"`
	Rows      int      `json:"rows,omitempty"`
	Host      string   `json:"host"`
	Kernel    string   `json:"kernel"`           // uname -r
	BootID    string   `json:"boot_id"`          // makes boottime comparable
	Cgroup    string   `json:"cgroup,omitempty"` // path of the session's cgroup, "" without one
	WallTime  string   `json:"wall_time"`        // RFC 3339, same moment as time_ns
	Rye       string   `json:"rye"`              // version of rye that wrote the ledger
	// AssistantHomes are state folders of assistants in this session (CODEX_HOME, ~/.claude …).
	AssistantHomes []string `json:"assistant_homes,omitempty"`
}

// SessionEnd closes a ledger. A ledger without one was interrupted.
type SessionEnd struct {
	ExitCode   int        `json:"exit_code"`        // as rye wrap passes it on (128+signal for a signal)
	Signal     string     `json:"signal,omitempty"` // e.g. "SIGTERM" when a signal ended the command
	DurationNS uint64     `json:"duration_ns"`
	Survivors  []Survivor `json:"survivors,omitempty"` // session processes still alive at the end
	// DegradedBy says why what was recorded is not whole (e.g. the recording or ledger could not be
	// written). Empty when nothing is known to be missing.
	DegradedBy []string `json:"degraded_by,omitempty"`
	InputBytes uint64   `json:"input_bytes,omitempty"` // bytes the user typed
	// RecordingSHA256 binds session.cast to the ledger; "" when there is no recording.
	RecordingSHA256 string        `json:"recording_sha256,omitempty"`
	Packets         *PacketTotals `json:"packets,omitempty"` // nil when none were copied
}

// PacketTotals is how much of the session's packets was copied, and binds the file of them to the ledger.
type PacketTotals struct {
	Seen   uint64 `json:"seen"`             // passed through the session's sockets
	Copied uint64 `json:"copied"`           //
	Lost   uint64 `json:"lost,omitempty"`   // were to be copied, and the ring was full
	Left   uint64 `json:"left,omitempty"`   // were copied and found no room in the file
	SHA256 string `json:"sha256,omitempty"` // hex, of packets.pcapng
}

// A Survivor is a session process that outlived the wrapped command and the wait for stragglers.
type Survivor struct {
	Proc ProcessKey `json:"proc"`
	Exe  string     `json:"exe"`
	Argv []string   `json:"argv,omitempty"`
	Role string     `json:"role"` // "assistant-daemon" or "straggler"
}

// ObserverAttached says what the kernel witness can see in this session, and what it cannot.
type ObserverAttached struct {
	Tier       string            `json:"tier"`                 // lsm, fentry, kprobe, tracepoint, none
	Hooks      []string          `json:"hooks,omitempty"`      // attached programs
	Gaps       []Gap             `json:"gaps,omitempty"`       // what this tier is known not to see
	Membership string            `json:"membership,omitempty"` // cgroup+descent, descent
	SelfTest   string            `json:"self_test"`            // passed, failed, not-run
	Detail     string            `json:"detail,omitempty"`     // why, when tier is none or the self test failed
	RingBytes  uint64            `json:"ring_bytes,omitempty"`
	Features   map[string]string `json:"features,omitempty"` // probe -> yes, no, unknown
	ABI        uint32            `json:"abi,omitempty"`      // layout version of bpf/event.h
}

// A Gap is something the observer is known not to see.
type Gap struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Affect string `json:"affects,omitempty"` // verdicts this limits: exec, open, connect, …
}

// ObserverLost reports events the kernel could not deliver. Counts are exact and are per event type.
type ObserverLost struct {
	Counts map[string]uint64 `json:"counts"`
	Reason string            `json:"reason,omitempty"`
	Final  bool              `json:"final,omitempty"` // written after the drain: totals of the session
}

func (*SessionStart) eventType() Type     { return TypeSessionStart }
func (*SessionEnd) eventType() Type       { return TypeSessionEnd }
func (*ObserverAttached) eventType() Type { return TypeObserverAttached }
func (*ObserverLost) eventType() Type     { return TypeObserverLost }
