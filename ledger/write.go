package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ryehq/rye/event"
)

// Files of a session's directory.
const (
	EventsFile      = "events.jsonl"
	LeavesFile      = "leaves"
	CheckpointFile  = "checkpoint"
	CheckpointsFile = "checkpoints"
	KeyFile         = "key.pub"
)

// A Writer appends to one ledger. It is safe for use by several goroutines; records are ordered by the
// lock. A write error (a full disk) does not end it: what could not be written is counted, the file is cut
// back to its last whole record, and when writing works again a record of type observer.lost says how many
// events are missing.
type Writer struct {
	mu      sync.Mutex
	dir     string
	session string
	key     *Key

	events  *os.File
	buf     *bufio.Writer
	leaves  *os.File
	points  *os.File
	line    []byte
	pending []byte // leaf hashes since the last flush

	tree    tree
	durable int64 // bytes of events.jsonl that were written whole
	held    int64 // records in both files
	size    int64 // bytes including the buffer
	signed  int64 // tree size of the last checkpoint
	noted   int64 // tree size of the last one in the history
	renewed int   // checkpoints since then

	dropped uint64 // since writing failed
	failed  error
	missing uint64 // records that could not be written, in all
	why     error  // the first reason
}

// Create makes dir (mode 0700) and an empty ledger in it.
func Create(dir, session string, key *Key) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	w := &Writer{dir: dir, session: session, key: key}
	var err error
	open := func(name string) *os.File {
		var f *os.File
		if err == nil {
			f, err = os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
		return f
	}
	w.events, w.leaves, w.points = open(EventsFile), open(LeavesFile), open(CheckpointsFile)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, KeyFile), []byte(key.Verifier+"\n"), 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	w.buf = bufio.NewWriterSize(w.events, 256<<10)
	return w, nil
}

// Append gives e the next sequence number and writes it. The error is also kept: see Failed.
func (w *Writer) Append(e *event.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		if err := w.resume(e.TimeNS); err != nil {
			w.dropped++
			return err
		}
	}
	return w.append(e)
}

func (w *Writer) append(e *event.Event) error {
	e.Seq = uint64(w.tree.n)
	w.line = e.AppendJSON(w.line[:0])
	leaf := tlog.RecordHash(w.line)
	w.line = append(w.line, '\n')
	if _, err := w.buf.Write(w.line); err != nil {
		w.fail(err)
		w.dropped++
		return err
	}
	w.size += int64(len(w.line))
	w.tree.add(leaf)
	w.pending = append(w.pending, leaf[:]...)
	return nil
}

// fail notes a write error and forgets what was buffered: those records are not in the file.
func (w *Writer) fail(err error) {
	w.failed = fmt.Errorf("write ledger: %w", err)
	if w.why == nil {
		w.why = w.failed
	}
	w.dropped += uint64(len(w.pending) / tlog.HashSize)
	w.pending = w.pending[:0]
	w.size = w.durable
	w.cut() // tried again before anything is written
	w.rebuild()
}

// cut takes away what a write that failed left behind: either file may have got a part of it.
func (w *Writer) cut() error {
	for _, x := range []struct {
		f    *os.File
		size int64
	}{{w.events, w.durable}, {w.leaves, w.held * tlog.HashSize}} {
		if err := x.f.Truncate(x.size); err != nil {
			return err
		}
		if _, err := x.f.Seek(x.size, io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}

// rebuild makes the tree describe what the files hold.
func (w *Writer) rebuild() {
	b, err := os.ReadFile(filepath.Join(w.dir, LeavesFile))
	if err != nil {
		return // Flush keeps failing; the ledger ends here
	}
	w.tree = tree{}
	for ; len(b) >= tlog.HashSize && w.tree.n < w.held; b = b[tlog.HashSize:] {
		w.tree.add(tlog.Hash(b[:tlog.HashSize]))
	}
}

// resume tries to write again after a failure.
func (w *Writer) resume(timeNS uint64) error {
	if err := w.cut(); err != nil {
		return w.failed
	}
	w.buf.Reset(w.events)
	why := w.failed
	n := w.dropped
	lost := event.New(timeNS, nil, &event.ObserverLost{Counts: map[string]uint64{"ledger": n}, Reason: why.Error()})
	w.failed = nil
	err := w.append(&lost)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		w.dropped = n // fail counted the report itself
		return err
	}
	w.missing += w.dropped
	w.dropped = 0
	return nil
}

// flush writes what is buffered: the lines first, then their hashes.
func (w *Writer) flush() error {
	if w.failed != nil {
		return w.failed
	}
	if err := w.buf.Flush(); err != nil {
		w.fail(err)
		return w.failed
	}
	if len(w.pending) > 0 {
		if _, err := w.leaves.Write(w.pending); err != nil {
			w.fail(err)
			return w.failed
		}
		w.pending = w.pending[:0]
	}
	w.durable, w.held = w.size, w.tree.n
	return nil
}

// Flush writes what is buffered and, if there are new records, signs a checkpoint over all of them.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.flush(); err != nil {
		return err
	}
	if w.tree.n == w.signed {
		return nil
	}
	return w.checkpoint(w.noted == 0 || w.renewed >= historyEvery)
}

// historyEvery is how many renewals of the checkpoint pass between two that are kept in the history: it
// bounds a change to the records between them, and a long session's history stays small.
const historyEvery = 50

func (w *Writer) checkpoint(keep bool) error {
	b, err := Checkpoint{Session: w.session, Size: w.tree.n, Root: w.tree.root()}.Sign(w.key.Signer)
	if err != nil {
		return err
	}
	w.renewed++
	if keep && w.noted < w.tree.n {
		if _, err := w.points.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("write checkpoint: %w", err)
		}
		w.noted, w.renewed = w.tree.n, 0
	}
	// The newest is replaced as a whole: a reader sees the old one or the new one.
	tmp := filepath.Join(w.dir, CheckpointFile+".tmp")
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(w.dir, CheckpointFile)); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	w.signed = w.tree.n
	return nil
}

// Failed returns the error that keeps the ledger from being written, and how many events it cost so far.
func (w *Writer) Failed() (dropped uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped, w.failed
}

// Missing returns how many events could not be written, also before writing worked again, and the first reason.
func (w *Writer) Missing() (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missing + w.dropped, w.why
}

// Size returns the number of records and the current root.
func (w *Writer) Size() (int64, tlog.Hash) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tree.n, w.tree.root()
}

// Close flushes, signs, and makes the files durable.
func (w *Writer) Close() error {
	errs := []error{w.Flush()}
	w.mu.Lock()
	if w.failed == nil && w.noted < w.tree.n {
		errs = append(errs, w.checkpoint(true))
	}
	w.mu.Unlock()
	for _, f := range []*os.File{w.events, w.leaves, w.points} {
		errs = append(errs, f.Sync(), f.Close())
	}
	return errors.Join(errs...)
}
