package proxy

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCA(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	now := time.Now()
	made, err := NewCA([]string{"example.com"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Save(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key: %v %v", info.Mode(), err)
	}
	ca, err := LoadCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	if ca.Fingerprint() != made.Fingerprint() {
		t.Error("another certificate was loaded")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("the PEM holds no certificate")
	}
	// The constraint is the CA's own: whatever is signed with its key, a verifier takes only its domains.
	for host, good := range map[string]bool{"example.com": true, "api.example.com": true, "example.org": false, "notexample.com": false, "127.0.0.1": false, "::1": false} {
		leaf, err := ca.leaf(host, now)
		if err != nil {
			t.Fatal(err)
		}
		_, err = leaf.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
		if (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, shift := range []time.Duration{-24 * time.Hour, 12 * time.Hour} { // clocks that are not right
		leaf, err := ca.leaf("example.com", now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "example.com", Roots: roots, CurrentTime: now.Add(shift)}); err != nil {
			t.Errorf("%v from now: %v", shift, err)
		}
	}
	a, _ := ca.leaf("example.com", now)
	if b, _ := ca.leaf("example.com", now.Add(time.Hour)); a != b {
		t.Error("leaf not kept")
	}
	if b, _ := ca.leaf("example.com", now.Add(leafLife-time.Hour)); a == b {
		t.Error("a leaf about to expire was kept")
	}
	if err := os.Chmod(filepath.Join(dir, KeyFile), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCA(dir); err == nil {
		t.Error("a key that others may read was taken")
	}
	if had, err := RemoveCA(dir); !had || err != nil {
		t.Errorf("remove: %v %v", had, err)
	}
	if had, err := RemoveCA(dir); had || err != nil {
		t.Errorf("remove again: %v %v", had, err)
	}
}
