// Package ledger keeps a session's events so that a change to any of them shows.
//
//	events.jsonl  the truth: one canonical JSON record a line, in order
//	leaves        RFC 6962 leaf hash of each line, 32 bytes each: names the record that was changed
//	checkpoint    the signed tree head (C2SP tlog-checkpoint, Ed25519 note), renewed while the session runs
//	checkpoints   every checkpoint so far, appended: bounds a change that also rewrote leaves
//	key.pub       the verifier key that signed them
//
// The package imports event, x/mod/sumdb and the standard library. It reads no clock.
package ledger

import "golang.org/x/mod/sumdb/tlog"

// A tree is the right edge of an RFC 6962 Merkle tree: the roots of its complete subtrees, largest first.
type tree struct {
	n     int64
	edge  []tlog.Hash
	level []int // log2 of the leaves below each
}

// add appends a leaf.
func (t *tree) add(leaf tlog.Hash) {
	h, l := leaf, 0
	for len(t.edge) > 0 && t.level[len(t.level)-1] == l {
		last := len(t.edge) - 1
		h = tlog.NodeHash(t.edge[last], h)
		t.edge, t.level = t.edge[:last], t.level[:last]
		l++
	}
	t.edge, t.level = append(t.edge, h), append(t.level, l)
	t.n++
}

// root returns the tree head (RFC 6962 section 2.1).
func (t *tree) root() tlog.Hash {
	if t.n == 0 {
		h, _ := tlog.TreeHash(0, nil) // the hash of no input; reads nothing
		return h
	}
	h := t.edge[len(t.edge)-1]
	for i := len(t.edge) - 2; i >= 0; i-- {
		h = tlog.NodeHash(t.edge[i], h)
	}
	return h
}

// leafReader serves tlog's stored hashes from leaf hashes in memory. It is for proofs, not for appending.
type leafReader struct{ stored []tlog.Hash }

func newLeafReader(leaves []tlog.Hash) (*leafReader, error) {
	r := &leafReader{stored: make([]tlog.Hash, 0, 2*len(leaves))}
	for i, leaf := range leaves {
		hs, err := tlog.StoredHashesForRecordHash(int64(i), leaf, r)
		if err != nil {
			return nil, err
		}
		r.stored = append(r.stored, hs...)
	}
	return r, nil
}

// ReadHashes implements tlog.HashReader.
func (r *leafReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		if x < 0 || x >= int64(len(r.stored)) {
			return nil, errNoHash
		}
		out[i] = r.stored[x]
	}
	return out, nil
}
