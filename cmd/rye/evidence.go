package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/verify"
)

// An evidence is one record of a ledger with what holds it there and what rests on it: rye verify --at.
type evidence struct {
	Session   string           `json:"session"`
	Verdict   verify.Verdict   `json:"verdict"`
	Record    json.RawMessage  `json:"record"` // as it was signed, but for white space and escapes; rye prove gives its bytes
	Included  inclusion        `json:"included"`
	Actions   []actionRole     `json:"actions"`
	Findings  []verify.Finding `json:"findings"`
	Housekeep string           `json:"housekeeping,omitempty"` // the assistant's own program that it is the start of

	event event.Event
	start uint64
}

// An inclusion is the proof that a record is in the tree that the session's signed head names.
type inclusion struct {
	OK       bool   `json:"ok"`
	Problem  string `json:"problem,omitempty"`
	Size     int64  `json:"size,omitempty"`
	RootHash string `json:"root_hash,omitempty"`
	Signer   string `json:"signer,omitempty"`
	Known    bool   `json:"key_known"` // the signer is this install
	Path     int    `json:"path"`      // hashes of the audit path
}

// An actionRole is an action that a record belongs to, and as what.
type actionRole struct {
	Action  string         `json:"action"`
	Role    string         `json:"role"` // asked, allowed, ran, named, descendant, unexplained, failed, finding, effect
	Verdict verify.Verdict `json:"verdict"`
	Command string         `json:"command"`
}

// gatherEvidence finds out all that hangs on record seq.
func gatherEvidence(dir string, h *home, r *verify.Report, seq uint64) (*evidence, error) {
	ev := &evidence{Session: r.Session, Verdict: r.Verdict, Actions: []actionRole{}, Findings: []verify.Finding{}}
	if err := ev.read(dir, seq); err != nil {
		return nil, err
	}
	ev.Included = proveIncluded(dir, h, int64(seq), ev.Record)
	for i := range r.Actions {
		a := &r.Actions[i]
		c := chainOf(r, a)
		role := c.role[seq]
		if role == "" && ev.event.Proc != nil && c.procs[*ev.event.Proc] {
			role = "by its process"
			if c.effect(&ev.event) {
				role = "effect"
			}
		}
		if role != "" {
			ev.Actions = append(ev.Actions, actionRole{a.ID, role, a.Verdict, a.Command})
		}
	}
	for _, f := range r.Findings {
		for _, n := range f.Records {
			if n == seq {
				ev.Findings = append(ev.Findings, f)
				break
			}
		}
	}
	for _, k := range r.Housekeeping {
		if k.Seq == seq {
			ev.Housekeep = k.Kind
		}
	}
	return ev, nil
}

// read finds the record's line and its event.
func (ev *evidence) read(dir string, seq uint64) error {
	led, err := ledger.Open(dir)
	if err != nil {
		return err
	}
	found := false
	for e, err := range led.Events() {
		if err == nil && ev.start == 0 {
			ev.start = e.TimeNS
		}
		if e.Seq == seq {
			if err != nil {
				return fmt.Errorf("read record %d: %w", seq, err)
			}
			ev.event, found = e, true
			break
		}
	}
	if !found {
		return fmt.Errorf("the ledger has no record %d", seq)
	}
	var line bytes.Buffer
	if err := showJSON(&only{out: &line, want: seq}, dir, nil); err != nil {
		return err
	}
	ev.Record = bytes.TrimSuffix(line.Bytes(), []byte("\n"))
	return nil
}

// only passes one line on: that of a record.
type only struct {
	out  *bytes.Buffer
	want uint64
	rest []byte
}

func (o *only) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		i := bytes.IndexByte(o.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		if h, err := event.ParseHeader(o.rest[:i]); err == nil && h.Seq == o.want && o.out.Len() == 0 {
			o.out.Write(o.rest[:i+1])
		}
		o.rest = o.rest[i+1:]
	}
}

func proveIncluded(dir string, h *home, seq int64, record []byte) (in inclusion) {
	p, err := ledger.Prove(dir, seq)
	if err == nil && !bytes.Equal(p.Record, record) {
		err = fmt.Errorf("the record is not the one that the proof is for")
	}
	var head ledger.Checkpoint
	if err == nil {
		head, err = ledger.CheckProof(p)
	}
	if err != nil {
		in.Problem = err.Error()
		return in
	}
	in = inclusion{OK: true, Size: head.Size, RootHash: head.Root.String(), Signer: p.Verifier, Path: len(p.Hashes)}
	if h != nil {
		for _, k := range h.trusted() {
			in.Known = in.Known || strings.TrimSpace(k) == strings.TrimSpace(p.Verifier)
		}
	}
	return in
}

func recordNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("%q is not a record number", s)
	}
	return n, nil
}
