package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ryehq/rye/event"
)

// maxLine bounds one record: an exec carries up to 128 KiB of argv, each byte at most six in JSON.
const maxLine = 4 << 20

// State is what is known of a ledger once it was read to its end.
type State struct {
	OK          bool   `json:"ok"`
	Records     int64  `json:"records"`
	RootHash    string `json:"root_hash"` // base64, over all records in the file
	Signed      int64  `json:"signed"`    // records under the newest checkpoint
	Problem     string `json:"problem,omitempty"`
	BadRecord   int64  `json:"bad_record"` // -1: none, or not to be told
	Interrupted bool   `json:"interrupted"`
	CutBytes    int64  `json:"cut_bytes,omitempty"` // of an unfinished last line, passed over
	Key         string `json:"key,omitempty"`       // name of the key that signed
	KeyKnown    bool   `json:"key_known"`           // this install knows the key by itself, not from the ledger
	Anchored    bool   `json:"anchored"`            // the newest checkpoint was compared with a copy kept elsewhere
	Session     string `json:"session"`
}

// A Reader checks a ledger while it reads it.
type Reader struct {
	dir      string
	trusted  []string
	state    State
	finished bool
}

// Open prepares to read the ledger in dir. trusted are verifier keys that this install knows by itself; the
// ledger's own key.pub is used when none of them signed, and State says so.
func Open(dir string, trusted ...string) (*Reader, error) {
	if _, err := os.Stat(filepath.Join(dir, EventsFile)); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return &Reader{dir: dir, trusted: trusted, state: State{BadRecord: -1}}, nil
}

// State returns what was found. It is complete only after Events was read to its end.
func (r *Reader) State() State { return r.state }

type batch struct {
	lines [][]byte
	leaf  []tlog.Hash
	err   error
}

// Events reads all records in order. Lines are hashed in a second goroutine. A record that is not an event
// is given as an error and reading goes on; State then names it.
func (r *Reader) Events() iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		f, err := os.Open(filepath.Join(r.dir, EventsFile))
		if err != nil {
			yield(event.Event{}, fmt.Errorf("open ledger: %w", err))
			return
		}
		defer f.Close()
		check := newChecker(r)
		defer check.close()
		batches, stop := make(chan batch, 4), make(chan struct{})
		defer close(stop)
		go hashLines(f, batches, stop, &r.state.CutBytes)

		n := int64(0)
		ended := false
		for b := range batches {
			for i, line := range b.lines {
				check.record(n, b.leaf[i])
				e, err := event.ParseJSON(line)
				switch {
				case err == nil && e.Seq != uint64(n):
					err = fmt.Errorf("record %d says it is number %d", n, e.Seq)
					r.broken(n, err.Error())
				case errors.Is(err, event.ErrUnknownType):
					// a newer rye wrote it; the hash holds, the content is not judged
				case err != nil:
					r.broken(n, fmt.Sprintf("record %d is not an event", n))
				}
				ended = e.Type == event.TypeSessionEnd
				n++
				if !yield(e, err) {
					return
				}
			}
			if b.err != nil {
				r.broken(n, b.err.Error())
				yield(event.Event{}, b.err)
				return
			}
		}
		r.state.Records = n
		r.state.Interrupted = !ended
		check.finish(n)
		r.finished = true
	}
}

func (r *Reader) broken(n int64, problem string) {
	if r.state.Problem == "" {
		r.state.Problem, r.state.BadRecord = problem, n
	}
}

func hashLines(f io.Reader, out chan<- batch, stop <-chan struct{}, cut *int64) {
	defer close(out)
	br := bufio.NewReaderSize(f, 1<<20)
	var b batch
	var held int
	send := func() bool {
		select {
		case out <- b:
			b, held = batch{}, 0
			return true
		case <-stop:
			return false
		}
	}
	for {
		line, err := readLine(br)
		if err == io.EOF {
			*cut = int64(len(line)) // no newline: cut off while it was written
			send()
			return
		}
		if err != nil {
			b.err = fmt.Errorf("read ledger: %w", err)
			send()
			return
		}
		b.lines = append(b.lines, line)
		b.leaf = append(b.leaf, tlog.RecordHash(line))
		if held += len(line); held > 64<<10 && !send() {
			return
		}
	}
}

func readLine(br *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("a record is over %d bytes", maxLine)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return line, err
		}
		return line[:len(line)-1], nil
	}
}

// A checker holds lines against leaves and checkpoints.
type checker struct {
	r      *Reader
	leaves *bufio.Reader
	file   *os.File
	tree   tree
	points []Checkpoint // ascending, signature checked
	next   int
	newest Checkpoint
	good   int64 // records under the last checkpoint that held
}

func newChecker(r *Reader) *checker {
	c := &checker{r: r}
	if f, err := os.Open(filepath.Join(r.dir, LeavesFile)); err == nil {
		c.file, c.leaves = f, bufio.NewReaderSize(f, 1<<16)
	}
	known := r.verifiers()
	b, err := os.ReadFile(filepath.Join(r.dir, CheckpointFile))
	if err == nil {
		c.newest, err = ParseCheckpoint(b, known)
	}
	if err != nil {
		r.broken(-1, fmt.Sprintf("the newest checkpoint: %v", err))
	}
	r.state.Session = c.newest.Session
	all, _ := os.ReadFile(filepath.Join(r.dir, CheckpointsFile))
	c.history(all, known)
	return c
}

// history reads every checkpoint so far. Only an unfinished last one, cut off by a crash, is passed over.
func (c *checker) history(all []byte, known note.Verifiers) {
	whole := bytes.HasSuffix(all, []byte("\n\n"))
	notes := bytes.SplitAfter(all, []byte("\n\n"+originPrefix))
	for i, one := range notes {
		// The separator belongs to the next note; a note itself ends with one newline.
		if i < len(notes)-1 {
			one = bytes.TrimSuffix(one, []byte("\n"+originPrefix))
		} else if whole {
			one = bytes.TrimSuffix(one, []byte("\n"))
		}
		if i > 0 {
			one = append([]byte(originPrefix), one...)
		}
		if len(one) == 0 {
			continue
		}
		p, err := ParseCheckpoint(one, known)
		switch {
		case err != nil && i == len(notes)-1 && !whole:
		case err != nil:
			c.r.broken(-1, fmt.Sprintf("checkpoint %d in %s: %v", i, CheckpointsFile, err))
		case len(c.points) > 0 && p.Size <= c.points[len(c.points)-1].Size:
			c.r.broken(-1, fmt.Sprintf("checkpoint %d in %s is not newer than the one before", i, CheckpointsFile))
		default:
			c.points = append(c.points, p)
		}
	}
}

func (r *Reader) verifiers() note.Verifiers {
	var vs []note.Verifier
	known := map[string]bool{}
	add := func(key string) {
		v, err := note.NewVerifier(strings.TrimSpace(key))
		if err != nil {
			return
		}
		id := fmt.Sprintf("%s+%08x", v.Name(), v.KeyHash())
		if known[id] {
			return
		}
		known[id] = true
		vs = append(vs, v)
	}
	file, _ := os.ReadFile(filepath.Join(r.dir, KeyFile))
	own, whole := strings.CutSuffix(string(file), "\n")
	if v, err := note.NewVerifier(own); err != nil || !whole {
		r.broken(-1, KeyFile+" does not hold a verifier key")
	} else {
		r.state.Key = v.Name()
	}
	for _, k := range r.trusted {
		if strings.TrimSpace(k) == own {
			r.state.KeyKnown = true
		}
		add(k)
	}
	add(own)
	return note.VerifierList(vs...)
}

func (c *checker) record(n int64, leaf tlog.Hash) {
	if c.leaves != nil {
		var want tlog.Hash
		if _, err := io.ReadFull(c.leaves, want[:]); err != nil {
			// The hashes are written after the lines: a kill in between leaves them short.
			c.leaves = nil
			if n < c.newest.Size {
				c.r.broken(n, fmt.Sprintf("the hash of record %d is missing", n))
			}
		} else if want != leaf {
			c.r.broken(n, fmt.Sprintf("record %d was changed", n))
		}
	}
	c.tree.add(leaf)
	for c.next < len(c.points) && c.points[c.next].Size == c.tree.n {
		if c.points[c.next].Root != c.tree.root() {
			c.r.broken(c.good, fmt.Sprintf("records %d to %d do not match the checkpoint over them", c.good, c.tree.n-1))
		} else {
			c.good = c.tree.n
		}
		c.next++
	}
	if c.tree.n == c.newest.Size && c.tree.root() != c.newest.Root {
		c.r.broken(c.good, fmt.Sprintf("records %d to %d do not match the newest checkpoint", c.good, c.tree.n-1))
	}
}

func (c *checker) finish(n int64) {
	s := &c.r.state
	root := c.tree.root()
	s.RootHash = root.String()
	s.Signed = c.newest.Size
	if n < c.newest.Size {
		c.r.broken(n, fmt.Sprintf("the ledger has %d records, its newest checkpoint %d: the end was cut off", n, c.newest.Size))
	}
	// A session that ended has its newest checkpoint in the history too. While it runs the history lags; a
	// kill between the two writes leaves it one ahead.
	last := Checkpoint{}
	if len(c.points) > 0 {
		last = c.points[len(c.points)-1]
	}
	switch {
	case last.Size > n && c.newest.Size <= n:
		c.r.broken(n, fmt.Sprintf("the ledger has %d records, its checkpoint history %d: the end was cut off", n, last.Size))
	case last.Size < c.newest.Size && (!s.Interrupted || last.Size == 0):
		c.r.broken(-1, CheckpointsFile+" does not end with the newest checkpoint")
	case last.Size > c.newest.Size && !s.Interrupted:
		c.r.broken(-1, fmt.Sprintf("an older checkpoint stands in for the newest (%d of %d records)", c.newest.Size, last.Size))
	}
	if c.leaves != nil {
		if _, err := c.leaves.ReadByte(); err == nil {
			c.r.broken(n, fmt.Sprintf("records after number %d are missing, their hashes are there", n-1))
		}
	}
	s.OK = s.Problem == ""
}

func (c *checker) close() {
	if c.file != nil {
		c.file.Close()
	}
}
