package ledger

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

var (
	errNoHash = errors.New("hash not stored")
	// ErrCheckpoint says that a checkpoint is not one, or its signature does not hold.
	ErrCheckpoint = errors.New("checkpoint does not hold")
)

// A Checkpoint is a signed tree head: this ledger had Size records and this root. As text:
//
//	rye/session/ID
//	SIZE
//	ROOT (base64)
//
// followed by note signatures (C2SP tlog-checkpoint and signed-note).
type Checkpoint struct {
	Session string
	Size    int64
	Root    tlog.Hash
}

const originPrefix = "rye/session/"

func (c Checkpoint) text() string {
	return originPrefix + c.Session + "\n" + strconv.FormatInt(c.Size, 10) + "\n" + c.Root.String() + "\n"
}

// Sign returns the checkpoint as a signed note.
func (c Checkpoint) Sign(s note.Signer) ([]byte, error) {
	b, err := note.Sign(&note.Note{Text: c.text()}, s)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint: %w", err)
	}
	return b, nil
}

// ParseCheckpoint reads a signed checkpoint and checks its signature against one of the verifiers.
func ParseCheckpoint(b []byte, known note.Verifiers) (Checkpoint, error) {
	var c Checkpoint
	n, err := note.Open(b, known)
	if err != nil {
		return c, fmt.Errorf("%w: %v", ErrCheckpoint, err)
	}
	// A signature's base64 has spare bits, and foreign signatures may be added: neither belongs here, and
	// allowing them would let a changed byte go unseen.
	if len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 0 {
		return c, fmt.Errorf("%w: %d signatures", ErrCheckpoint, len(n.Sigs)+len(n.UnverifiedSigs))
	}
	if sig, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64); err != nil || len(sig) == 0 {
		return c, fmt.Errorf("%w: signature is not canonical base64", ErrCheckpoint)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) < 4 {
		return c, fmt.Errorf("%w: too few lines", ErrCheckpoint)
	}
	id, ok := strings.CutPrefix(lines[0], originPrefix)
	if !ok {
		return c, fmt.Errorf("%w: origin %q", ErrCheckpoint, lines[0])
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return c, fmt.Errorf("%w: size %q", ErrCheckpoint, lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil || base64.StdEncoding.EncodeToString(root[:]) != lines[2] {
		return c, fmt.Errorf("%w: root %q", ErrCheckpoint, lines[2])
	}
	return Checkpoint{Session: id, Size: size, Root: root}, nil
}

// A Key signs checkpoints. There is one per install.
type Key struct {
	Signer   note.Signer
	Verifier string // in note's form, NAME+HASH+KEY
}

// LoadKey reads the signing key from dir, or makes one on first use. The private key is readable by its
// owner only; a file that others can read is refused.
func LoadKey(dir, name string) (*Key, error) {
	path := filepath.Join(dir, "ledger.key")
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return newKey(dir, path, name)
	case err != nil:
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read signing key: %s can be read by others (mode %v); fix it with: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, fmt.Errorf("read signing key %s: %w", path, err)
	}
	pub, err := os.ReadFile(filepath.Join(dir, "ledger.pub"))
	if err != nil {
		return nil, fmt.Errorf("read verifier key: %w", err)
	}
	return &Key{Signer: signer, Verifier: strings.TrimSpace(string(pub))}, nil
}

func newKey(dir, path, name string) (*Key, error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make signing key: %w", err)
	}
	// note's text forms: PRIVATE+KEY+NAME+HASH+KEY and NAME+HASH+KEY, key type 1 is Ed25519
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '+' || r > '~' {
			return '-'
		}
		return r
	}, name)
	verifier, err := note.NewEd25519VerifierKey(name, pub)
	if err != nil {
		return nil, fmt.Errorf("make signing key: %w", err)
	}
	fields := strings.SplitN(verifier, "+", 3)
	skey := "PRIVATE+KEY+" + name + "+" + fields[1] + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, priv.Seed()...))
	signer, err := note.NewSigner(skey)
	if err != nil {
		return nil, fmt.Errorf("make signing key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.pub"), []byte(verifier+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("write verifier key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write signing key: %w", err)
	}
	if _, err := f.WriteString(skey + "\n"); err != nil {
		f.Close()
		return nil, fmt.Errorf("write signing key: %w", err)
	}
	return &Key{Signer: signer, Verifier: verifier}, f.Close()
}
