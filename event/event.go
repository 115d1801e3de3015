// Package event is rye's one vocabulary: what a witness saw, as plain values.
//
// It is a leaf. It imports the standard library only, holds no state, reads no clock
// and does no I/O, so every other package may import it and meet the others through it.
//
// One Go struct stands for one event type. On disk and on the wire an event is one line of
// JSON in a fixed key order (see [Event.AppendJSON]); that line is what the ledger hashes.
package event

import "fmt"

// A Type is an event's dotted name.
type Type string

// The vocabulary. Kernel facts carry the kernel's own time stamps; the others are stamped by
// the witness with the same clock (CLOCK_BOOTTIME).
const (
	TypeSessionStart     Type = "session.start"
	TypeSessionEnd       Type = "session.end"
	TypeObserverAttached Type = "observer.attached"
	TypeObserverLost     Type = "observer.lost"

	TypeProcessFork       Type = "process.fork"
	TypeProcessExec       Type = "process.exec"
	TypeProcessExecFailed Type = "process.exec_failed"
	TypeProcessExit       Type = "process.exit"
	TypeProcessAdopted    Type = "process.adopted"
	TypeCgroupLeft        Type = "cgroup.left"

	TypeFileOpen   Type = "file.open"
	TypeFileDelete Type = "file.delete"
	TypeFileRename Type = "file.rename"
	TypeFileChange Type = "file.change"
	TypeFileMap    Type = "file.map"
	TypeFileDigest Type = "file.digest"

	TypeNetConnect Type = "net.connect"
	TypeNetBind    Type = "net.bind"
	TypeIPCConnect Type = "ipc.connect"
	TypeEscape     Type = "escape" // the ledger shows escape.WHAT; see [Escape]

	TypeApprovalPrompted Type = "approval.prompted"
	TypeApprovalGranted  Type = "approval.granted"
	TypeApprovalDenied   Type = "approval.denied"
	TypeScreenUnreadable Type = "screen.unreadable"

	TypeToolCall    Type = "tool.call"
	TypeToolResult  Type = "tool.result"
	TypeTurnContext Type = "turn.context"
	TypeRulesLoaded Type = "rules.loaded"
)

// A ProcessKey identifies a process for as long as the machine is up. A pid alone does not: the
// kernel hands it out again.
type ProcessKey struct {
	TGID    uint32 `json:"tgid"`     // thread group id in the initial pid namespace
	StartNS uint64 `json:"start_ns"` // group leader's start, CLOCK_BOOTTIME nanoseconds
}

// IsZero reports whether k names no process.
func (k ProcessKey) IsZero() bool { return k.TGID == 0 && k.StartNS == 0 }

func (k ProcessKey) String() string { return fmt.Sprintf("%d@%d", k.TGID, k.StartNS) }

// A Header is what every event has. Its fields come first in the JSON, in this order.
type Header struct {
	Seq    uint64      `json:"seq"`            // position in the ledger, from 0; set by the ledger
	TimeNS uint64      `json:"time_ns"`        // CLOCK_BOOTTIME nanoseconds
	Type   Type        `json:"type"`           //
	Proc   *ProcessKey `json:"proc,omitempty"` // the acting process, where there is one
}

// An Event is a header and the facts of its type.
type Event struct {
	Header
	Body Body
}

// A Body holds the facts of one event type. The set is closed: see newBody.
type Body interface{ eventType() Type }

// New returns an event of body's type at the given boot time. proc may be nil.
func New(timeNS uint64, proc *ProcessKey, body Body) Event {
	return Event{Header: Header{TimeNS: timeNS, Type: body.eventType(), Proc: proc}, Body: body}
}
