package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Proof shows that one record is in a ledger, and discloses no other. It is checked alone: see
// CheckProof.
type Proof struct {
	Record     json.RawMessage  `json:"record"`     // the line as it stands in events.jsonl
	Index      int64            `json:"index"`      // its number
	Hashes     tlog.RecordProof `json:"proof"`      // RFC 6962 audit path, base64
	Checkpoint string           `json:"checkpoint"` // the signed tree head
	Verifier   string           `json:"verifier"`   // the key that signed it, as the ledger names it
}

// JSON writes the proof. The record keeps its bytes: encoding/json would escape <, > and &, and the proof
// of what it made of them would not hold.
func (p *Proof) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encode proof: %w", err)
	}
	return b.Bytes(), nil
}

// Prove makes the proof of record index in dir's ledger against its newest checkpoint.
func Prove(dir string, index int64) (*Proof, error) {
	point, err := os.ReadFile(filepath.Join(dir, CheckpointFile))
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		return nil, fmt.Errorf("read verifier key: %w", err)
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(string(key)))
	if err != nil {
		return nil, fmt.Errorf("read verifier key: %w", err)
	}
	head, err := ParseCheckpoint(point, note.VerifierList(verifier))
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= head.Size {
		return nil, fmt.Errorf("prove record %d: the newest checkpoint covers records 0 to %d", index, head.Size-1)
	}
	f, err := os.Open(filepath.Join(dir, EventsFile))
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	defer f.Close()
	var record []byte
	leaves := make([]tlog.Hash, 0, head.Size)
	batches, stop := make(chan batch, 4), make(chan struct{})
	defer close(stop)
	var cut int64
	go hashLines(f, batches, stop, &cut)
	for b := range batches {
		if b.err != nil {
			return nil, b.err
		}
		for i, leaf := range b.leaf {
			if int64(len(leaves)) == head.Size {
				break
			}
			if int64(len(leaves)) == index {
				record = b.lines[i]
			}
			leaves = append(leaves, leaf)
		}
	}
	if int64(len(leaves)) < head.Size {
		return nil, fmt.Errorf("prove record %d: the ledger is shorter than its newest checkpoint", index)
	}
	r, err := newLeafReader(leaves)
	if err != nil {
		return nil, fmt.Errorf("prove record %d: %w", index, err)
	}
	hashes, err := tlog.ProveRecord(head.Size, index, r)
	if err != nil {
		return nil, fmt.Errorf("prove record %d: %w", index, err)
	}
	p := &Proof{Record: record, Index: index, Hashes: hashes, Checkpoint: string(point), Verifier: verifierText(key)}
	// Never hand out a proof that does not hold: the ledger may have been changed.
	if _, err := CheckProof(p); err != nil {
		return nil, fmt.Errorf("prove record %d: %w", index, err)
	}
	return p, nil
}

func verifierText(key []byte) string { return strings.TrimSpace(string(key)) }

// CheckProof checks a proof with nothing but itself: the record is number Index of the tree whose head
// Checkpoint signs with Verifier. Whether that key is to be trusted is the reader's to decide: pass keys
// from elsewhere as trusted, and a proof signed by another is refused.
func CheckProof(p *Proof, trusted ...string) (Checkpoint, error) {
	if len(trusted) > 0 {
		found := false
		for _, k := range trusted {
			found = found || strings.TrimSpace(k) == p.Verifier
		}
		if !found {
			return Checkpoint{}, fmt.Errorf("%w: signed by %q, which is not a key you gave", ErrCheckpoint, p.Verifier)
		}
	}
	v, err := note.NewVerifier(p.Verifier)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: verifier key: %v", ErrCheckpoint, err)
	}
	head, err := ParseCheckpoint([]byte(p.Checkpoint), note.VerifierList(v))
	if err != nil {
		return head, err
	}
	if err := tlog.CheckRecord(p.Hashes, head.Size, head.Root, p.Index, tlog.RecordHash(p.Record)); err != nil {
		return head, fmt.Errorf("record %d is not in the tree of %d records that the checkpoint signs: %w", p.Index, head.Size, err)
	}
	return head, nil
}
