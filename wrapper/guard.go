package wrapper

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// guard is what the monitor needs to put the terminal right after rye died without a word: kill -9, a panic
// in some other part of rye. It is a small memory file that both have open; the front writes it on each
// change, the monitor reads it once, when the front is gone.
type guard struct {
	mu    sync.Mutex
	fd    int
	state guardState
	last  []byte
}

// guardState is the content of the file: the fixed part as encoding/binary writes it, then the undo bytes.
type guardState struct {
	guardHead
	undo []byte
}

type guardHead struct {
	Armed uint32 // the terminal is in raw mode
	Undo  uint32 // length of what follows
	Saved unix.Termios
	Raw   unix.Termios
}

// maxUndo is more than modes.undo ever returns; see TestUndoIsBounded.
const maxUndo = 1024

func newGuard() (*guard, error) {
	fd, err := unix.MemfdCreate("rye-terminal", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	return &guard{fd: fd}, nil
}

func (g *guard) arm(saved, raw unix.Termios) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Armed, g.state.Saved, g.state.Raw = 1, saved, raw
	return g.write()
}

func (g *guard) disarm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Armed = 0
	_ = g.write() // armed or not, the monitor also compares the terminal's settings
}

func (g *guard) setUndo(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if bytes.Equal(b, g.state.undo) {
		return
	}
	g.state.undo = append(g.state.undo[:0], b...)
	_ = g.write() // the undo at a normal end does not depend on it
}

func (g *guard) undo() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return bytes.Clone(g.state.undo)
}

// write replaces the content in one call, so that a kill between two leaves no mixture.
func (g *guard) write() error {
	g.state.Undo = uint32(len(g.state.undo))
	b, err := binary.Append(g.last[:0], binary.LittleEndian, g.state.guardHead)
	if err != nil {
		return fmt.Errorf("encode terminal state: %w", err)
	}
	g.last = append(b, g.state.undo...)
	if _, err := unix.Pwrite(g.fd, g.last, 0); err != nil {
		return fmt.Errorf("write terminal state: %w", err)
	}
	return nil
}

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	unix.Close(g.fd)
}

func readGuard(fd int) (guardState, error) {
	var s guardState
	b := make([]byte, binary.Size(s.guardHead)+maxUndo)
	n, err := unix.Pread(fd, b, 0)
	if err != nil {
		return s, fmt.Errorf("read terminal state: %w", err)
	}
	used, err := binary.Decode(b[:n], binary.LittleEndian, &s.guardHead)
	if err != nil {
		return s, fmt.Errorf("decode terminal state: %w", err)
	}
	if int(s.Undo) > n-used {
		return s, fmt.Errorf("decode terminal state: %d undo bytes in %d", s.Undo, n-used)
	}
	s.undo = b[used : used+int(s.Undo)]
	return s, nil
}

// putRight is done by the monitor when the front died. Nothing is touched unless the terminal is still as the
// front left it: the shell may have set it for its own line editor in the meantime.
func (s guardState) putRight(tty int) error {
	if s.Armed == 0 {
		return nil
	}
	now, err := unix.IoctlGetTermios(tty, unix.TCGETS)
	if err != nil || *now != s.Raw {
		return err
	}
	if len(s.undo) > 0 {
		_, _ = unix.Write(tty, s.undo) // the settings matter more
	}
	return unix.IoctlSetTermios(tty, unix.TCSETS, &s.Saved)
}
