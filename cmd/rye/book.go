package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/index"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/verify"
	"github.com/ryehq/rye/wrapper"
)

// A book is what a session is written into: ledger, terminal recording and a row of the index. When the
// state folder cannot be used the command still runs, so a book may be empty; err says why.
type book struct {
	id   string
	home *home
	dir  string // "" when nothing is recorded
	log  *ledger.Writer
	cast *castFile
	err  error
}

// castFile is session.cast, hashed while it is written so that the ledger can bind it.
type castFile struct {
	f   *os.File
	sum hash.Hash
}

func (c *castFile) Write(p []byte) (int, error) {
	n, err := c.f.Write(p)
	c.sum.Write(p[:n])
	return n, err
}

const castName = "session.cast"

func openBook(c wrapConfig, id string) *book {
	b := &book{id: id}
	if b.err = b.open(c); b.err != nil {
		warn(os.Stderr, fmt.Errorf("%w: %w", errNothingRecorded, b.err))
	}
	return b
}

func (b *book) open(c wrapConfig) error {
	h, err := openHome()
	if err != nil {
		return err
	}
	key, err := h.key()
	if err != nil {
		return err
	}
	dir := h.session(b.id)
	log, err := ledger.Create(dir, b.id, key)
	if err != nil {
		os.RemoveAll(dir)
		return err
	}
	b.home, b.dir, b.log = h, dir, log
	if c.noRecording {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, castName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create recording: %w", err)
	}
	b.cast = &castFile{f, sha256.New()}
	return nil
}

// recording is where the asciicast goes, nil for nowhere. The nil must be an untyped one.
func (b *book) recording() io.Writer {
	if b.cast == nil {
		return nil
	}
	return b.cast
}

func (b *book) recordingDigest() string {
	if b.cast == nil {
		return ""
	}
	info, err := b.cast.f.Stat()
	if err != nil || info.Size() == 0 { // no terminal: nothing was recorded
		return ""
	}
	return hex.EncodeToString(b.cast.sum.Sum(nil))
}

func (b *book) append(e *event.Event) error {
	if b.log == nil {
		return nil
	}
	return b.log.Append(e)
}

func (b *book) flush() error {
	if b.log == nil {
		return nil
	}
	return b.log.Flush()
}

// finish closes the ledger for good.
func (b *book) finish() error {
	if b.log == nil {
		return nil
	}
	err := b.log.Close()
	if n, why := b.log.Missing(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d events are not in it: %w", n, why))
	}
	b.log = nil
	if err != nil {
		return fmt.Errorf("the ledger is not whole: %w", err)
	}
	return nil
}

// discard removes a session that never began.
func (b *book) discard() {
	if b.dir != "" {
		b.finish()
		os.RemoveAll(b.dir)
		b.dir = ""
	}
}

func (b *book) close() {
	b.finish()
	if b.cast != nil {
		b.cast.f.Close()
		b.cast = nil
	}
}

// indexRow writes the session's row of rye.db. The index is a convenience: failing to write it costs no
// evidence and is not worth more than a warning.
func (b *book) indexRow(s index.Session) {
	if b.dir == "" {
		return
	}
	db, err := b.home.index()
	if err == nil {
		err = db.Put(s)
		db.Close()
	}
	if err != nil {
		warn(os.Stderr, fmt.Errorf("%w (rye index rebuild makes it again)", err))
	}
}

func (b *book) indexResult(r *verify.Report, start *event.SessionStart, res wrapper.Result) {
	row := index.Session{ID: b.id, Name: start.Name, Command: start.Command, CWD: start.CWD, Start: start.WallTime, State: "ended", ExitCode: res.ExitCode}
	if t, err := time.Parse(time.RFC3339Nano, start.WallTime); err == nil {
		row.DurationNS = uint64(time.Since(t))
	}
	if r != nil {
		row.Records, row.RootHash = r.Ledger.Records, r.Ledger.RootHash
		row.Verdict, row.Findings = string(r.Verdict), len(r.Findings)
		if r.Ledger.OK {
			row.AnchorSize, row.AnchorRoot = r.Ledger.Records, r.Ledger.RootHash
		}
	}
	b.indexRow(row)
}

// checkFile holds a file beside the ledger against its digest in the ledger.
func checkFile(dir, name, what, want string) error {
	if want == "" {
		return nil
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("%s is missing: %w", what, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != want {
		return errors.New(name + " was changed")
	}
	return nil
}
