package wrapper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Options says what to run and who looks on.
type Options struct {
	Argv []string // argv[0] and arguments
	Path string   // executable; "" to look up Argv[0] in the PATH of Env
	Env  []string // the command's whole environment; nil for rye's own
	Dir  string   // working directory; "" for rye's own

	Stdin, Stdout, Stderr *os.File // nil for rye's own

	// CgroupFD is an open cgroup v2 directory in which the command is born (clone3 with CLONE_INTO_CGROUP), so
	// that no moment of it passes elsewhere. 0 or less for none.
	CgroupFD int

	// BeforeExec is called once the command's parent exists and before the command does: all that parent starts
	// is the command. An error ends the start.
	BeforeExec func(parentPID int) error

	// Output, Input and Resize see the terminal: bytes the command wrote, bytes the user typed, and the size
	// (once at the start, then at each change). All are called from one goroutine, in the order in which these
	// things happened; a key is queued before the command can read it. They never delay the relay: what their
	// queue cannot take is left out, and the next call of the same function says how many bytes that were. p is
	// valid during the call only. Times are Clock's, taken when the bytes were read.
	Output func(p []byte, timeNS, skipped uint64)
	Input  func(p []byte, timeNS, skipped uint64)
	Resize func(cols, rows int, timeNS uint64)

	// Idle is called now and then, from the same goroutine, when nothing is waiting: the other functions were
	// told all that happened up to timeNS.
	Idle func(timeNS uint64)

	// Recording takes an asciicast v2 of the terminal; see castWriter. Without a terminal nothing is written.
	Recording io.Writer

	Clock func() uint64 // ns; nil for CLOCK_BOOTTIME
}

// Result is how a session ended.
type Result struct {
	ExitCode    int            // 0 to 255; 128+N when signal N ended the command
	Signal      syscall.Signal // 0 when it exited
	InputBytes  uint64         // typed by the user and given to the command's terminal
	OutputBytes uint64         // written by the command to its terminal
	Recording   error          // why the recording is not whole, nil if it is
	Callbacks   error          // why Output, Input and Resize did not see everything to the end
	Terminal    error          // why the user's terminal may not be as it was
}

// SignalName is the name of the signal that ended the command ("SIGTERM"), "" when it exited.
func (r Result) SignalName() string {
	if r.Signal == 0 {
		return ""
	}
	if name := unix.SignalName(r.Signal); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(r.Signal)) // real-time signals
}

// ErrMonitor says that the command's parent ended before the command. How the command ends is then unknown.
var ErrMonitor = errors.New("the session's monitor process ended before the command")

func (o *Options) defaults() {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Clock == nil {
		o.Clock = boottime
	}
}
