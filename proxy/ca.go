package proxy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Files of a CA in its folder.
const (
	CertFile = "rye.pem"
	KeyFile  = "rye.key" // 0600
)

const (
	caLife   = 825 * 24 * time.Hour
	leafLife = 7 * 24 * time.Hour
	backdate = 48 * time.Hour // clocks of containers and virtual machines are behind at times
	maxLeafs = 256
)

// DefaultDomains are the model providers whose connections are opened. Subdomains are included.
func DefaultDomains() []string {
	return []string{"openai.com", "chatgpt.com", "anthropic.com", "claude.ai", "claude.com", "cursor.sh", "cursor.com",
		"codeium.com", "windsurf.com", "generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"}
}

var domainShape = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*$`)

// Domain checks a name that connections are to be opened for: a domain, of more than one label, or an IP address.
func Domain(s string) (string, error) {
	d := strings.ToLower(strings.TrimSuffix(s, "."))
	if net.ParseIP(d) == nil && (len(d) > 253 || !domainShape.MatchString(d)) {
		return "", fmt.Errorf("%q is not a domain (write example.com: subdomains are included)", s)
	}
	return d, nil
}

// A CA signs the certificates that the proxy shows to its clients. It is made on the machine where it is
// used, and a name constraint (RFC 5280, 4.2.1.10) keeps its signature from being good for any other
// domain than those it was made for.
type CA struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	leafKey *ecdsa.PrivateKey

	mu    sync.Mutex
	leafs map[string]*tls.Certificate
	order []string
}

// NewCA makes a CA for domains, good from now on.
func NewCA(domains []string, now time.Time) (*CA, error) {
	if len(domains) == 0 {
		return nil, errors.New("make CA: no domains to constrain it to")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	host, _ := os.Hostname() // only for people who look at the certificate
	t := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{CommonName: "rye local CA " + host, Organization: []string{"rye (made on this machine)"}},
		NotBefore:                   now.Add(-backdate),
		NotAfter:                    now.Add(caLife),
		KeyUsage:                    x509.KeyUsageCertSign,
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: true,
	}
	var ips bool
	for _, d := range domains {
		if ip := net.ParseIP(d); ip != nil {
			bits := 8 * len(canonical(ip))
			t.PermittedIPRanges = append(t.PermittedIPRanges, &net.IPNet{IP: canonical(ip), Mask: net.CIDRMask(bits, bits)})
			ips = true
			continue
		}
		t.PermittedDNSDomains = append(t.PermittedDNSDomains, strings.ToLower(d))
	}
	if !ips { // a kind of name without a constraint would be unconstrained
		t.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	return newCA(cert, key)
}

func canonical(ip net.IP) net.IP {
	if v4 := ip.To4(); v4 != nil {
		return v4
	}
	return ip
}

func newCA(cert *x509.Certificate, key *ecdsa.PrivateKey) (*CA, error) {
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // in memory only
	if err != nil {
		return nil, fmt.Errorf("make leaf key: %w", err)
	}
	return &CA{cert: cert, key: key, leafKey: leafKey, leafs: map[string]*tls.Certificate{}}, nil
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	b[0] &= 0x7f
	b[0] |= 0x40 // positive and of one length
	return new(big.Int).SetBytes(b[:])
}

// LoadCA reads the CA in dir. A key that others may read is refused.
func LoadCA(dir string) (*CA, error) {
	keyName := filepath.Join(dir, KeyFile)
	info, err := os.Stat(keyName)
	if err != nil {
		return nil, fmt.Errorf("load CA: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("load CA: %s may be read by others (mode %04o)", keyName, info.Mode().Perm())
	}
	keyText, err := os.ReadFile(keyName)
	if err != nil {
		return nil, fmt.Errorf("load CA: %w", err)
	}
	certText, err := os.ReadFile(filepath.Join(dir, CertFile))
	if err != nil {
		return nil, fmt.Errorf("load CA: %w", err)
	}
	pair, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		return nil, fmt.Errorf("load CA: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA || len(pair.Leaf.PermittedDNSDomains)+len(pair.Leaf.PermittedIPRanges) == 0 {
		return nil, errors.New("load CA: not a CA that rye made")
	}
	return newCA(pair.Leaf, key)
}

// Save writes the CA to dir: the key first, readable by its owner only, each file in one step.
func (ca *CA) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save CA: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ca.key)
	if err != nil {
		return fmt.Errorf("save CA: %w", err)
	}
	if err := place(filepath.Join(dir, KeyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("save CA: %w", err)
	}
	if err := place(filepath.Join(dir, CertFile), ca.PEM(), 0o644); err != nil {
		return fmt.Errorf("save CA: %w", err)
	}
	return nil
}

func place(name string, b []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when the rename was done
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// RemoveCA deletes the CA in dir. It reports whether there was one.
func RemoveCA(dir string) (bool, error) {
	var had bool
	for _, name := range []string{KeyFile, CertFile} {
		err := os.Remove(filepath.Join(dir, name))
		if err == nil {
			had = true
		} else if !errors.Is(err, os.ErrNotExist) {
			return had, fmt.Errorf("remove CA: %w", err)
		}
	}
	return had, nil
}

// PEM is the certificate that clients are to trust.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

// Fingerprint is the certificate's SHA-256 in hex.
func (ca *CA) Fingerprint() string {
	sum := sha256.Sum256(ca.cert.Raw)
	return hex.EncodeToString(sum[:])
}

// Domains are what the CA is constrained to.
func (ca *CA) Domains() []string {
	list := slices.Clone(ca.cert.PermittedDNSDomains)
	for _, n := range ca.cert.PermittedIPRanges {
		list = append(list, n.IP.String())
	}
	return list
}

// Expires is the end of the certificate's life.
func (ca *CA) Expires() time.Time { return ca.cert.NotAfter }

// leaf returns a certificate for a host, from the cache while it is good for another day.
func (ca *CA) leaf(host string, now time.Time) (*tls.Certificate, error) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if c := ca.leafs[host]; c != nil && now.Add(24*time.Hour).Before(c.Leaf.NotAfter) {
		return c, nil
	}
	t := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: host},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if len(host) > 64 { // upper bound of a common name; the name that counts is the other one
		t.Subject = pkix.Name{}
	}
	if t.NotAfter.After(ca.cert.NotAfter) {
		t.NotAfter = ca.cert.NotAfter
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, ca.leafKey.Public(), crypto.Signer(ca.key))
	if err != nil {
		return nil, fmt.Errorf("sign leaf: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("sign leaf: %w", err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, ca.cert.Raw}, PrivateKey: ca.leafKey, Leaf: parsed}
	if ca.leafs[host] == nil {
		if len(ca.order) == maxLeafs {
			delete(ca.leafs, ca.order[0])
			ca.order = ca.order[1:]
		}
		ca.order = append(ca.order, host)
	}
	ca.leafs[host] = c
	return c, nil
}
