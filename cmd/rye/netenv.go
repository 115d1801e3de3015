package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Which variable makes which program use a proxy or trust a CA differs from one to the next, so all are set.
var (
	proxyVars = []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}
	// ALL_PROXY would win over the others in some programs, and most read it as SOCKS.
	clearedVars = []string{"ALL_PROXY", "all_proxy", "SSL_CERT_DIR"}
	noProxyVars = []string{"NO_PROXY", "no_proxy"}
	// These replace the roots that a program trusts, so what they point to must have the system's as well.
	bundleVars = []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO"}
	// So do these, which win over the others where the user has set them, and are of no use where not.
	ownBundleVars = []string{"PIP_CERT", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HTTPLIB2_CA_CERTS",
		"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "DENO_CERT"}
)

const (
	extraCAVar  = "NODE_EXTRA_CA_CERTS" // adds to the roots
	nodeProxy   = "NODE_USE_ENV_PROXY"  // without it Node's own fetch reads no proxy variable
	loopbackAll = "localhost,127.0.0.1,::1"
)

// rootFiles is where distributions keep the system's roots, in the order Go's crypto/x509 looks.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// maxRoots bounds a file of certificates that a variable of the user points to.
const maxRoots = 16 << 20

// arrange makes the command's environment out of the user's own. Without the proxy that is what it was.
func (n *network) arrange(env []string, withProxy bool) error {
	n.about.DNS = resolvers()
	if !withProxy {
		n.env = slices.Clone(env)
		return nil
	}
	own := map[string]string{}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			if _, again := own[name]; !again { // getenv(3) finds the first
				own[name] = value
			}
		}
	}
	set := map[string]string{nodeProxy: "1"}
	for _, name := range proxyVars {
		set[name] = "http://" + n.addr().String()
	}
	for _, name := range noProxyVars { // a wider one would let requests past
		set[name] = loopbackAll
	}
	var system []byte
	for _, name := range rootFiles {
		if b, err := readRoots(name); err == nil && len(b) > 0 {
			system = b
			break
		}
	}
	for _, name := range slices.Concat([]string{extraCAVar}, bundleVars, ownBundleVars) {
		if slices.Contains(ownBundleVars, name) && own[name] == "" {
			continue
		}
		parts := [][]byte{n.ca.PEM()}
		if name != extraCAVar {
			parts = append(parts, system, rootsOfDir(own["SSL_CERT_DIR"]))
		}
		if file := own[name]; file != "" {
			b, err := readRoots(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a variable that names no file brings no certificates
				return fmt.Errorf("keep the certificates of %s: %w", name, err)
			}
			parts = append(parts, b)
		}
		file, err := writeRoots(n.home.caDir(), parts)
		if err != nil {
			return err
		}
		set[name] = file
	}
	var names []string
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	n.replaced(env, append(clearedVars, names...))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if _, ours := set[name]; !ours && !slices.Contains(clearedVars, name) {
			n.env = append(n.env, kv)
		}
	}
	for _, name := range names {
		n.env = append(n.env, name+"="+set[name])
	}
	n.about.Proxy, n.about.CA, n.about.Opens, n.about.Was = n.addr().String(), n.ca.Fingerprint(), n.ca.Domains(), n.was
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} { // as Go prefers them
		if v := own[name]; v != "" && n.about.Via == "" {
			n.about.Via = withoutUser(v)
		}
	}
	return nil
}

// readRoots reads the certificates of a file. What is not a certificate, such as a private key in the same
// file, is left out.
func readRoots(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRoots+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxRoots {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxRoots)
	}
	var out bytes.Buffer
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			return out.Bytes(), nil
		}
		if block.Type == "CERTIFICATE" || block.Type == "TRUSTED CERTIFICATE" {
			if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
				return nil, err
			}
		}
	}
}

// rootsOfDir reads the certificates of a user's SSL_CERT_DIR: curl would not look at SSL_CERT_FILE beside it.
func rootsOfDir(dirs string) []byte {
	var out []byte
	for dir := range strings.SplitSeq(dirs, ":") {
		if dir == "" {
			continue
		}
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		seen := map[string]bool{}
		for _, e := range list {
			name, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name())) // a folder of hashed links to the same files
			if err != nil || seen[name] || len(out) > maxRoots {
				continue
			}
			seen[name] = true
			if b, err := readRoots(name); err == nil {
				out = append(out, b...)
			}
		}
	}
	return out
}

const roots = "roots-"

// once leaves out certificates that came before: a folder of roots often has those of the file beside it.
func once(certs []byte) []byte {
	var out bytes.Buffer
	seen := map[[32]byte]bool{}
	for {
		block, rest := pem.Decode(certs)
		if block == nil {
			return out.Bytes()
		}
		if sum := sha256.Sum256(block.Bytes); !seen[sum] {
			seen[sum] = true
			out.Write(certs[:len(certs)-len(rest)])
		}
		certs = rest
	}
}

// writeRoots writes a bundle under a name made of its content, so that sessions share it and a process
// that outlives its session still finds it.
func writeRoots(dir string, parts [][]byte) (string, error) {
	all := once(bytes.Join(parts, nil))
	sum := sha256.Sum256(all)
	name := filepath.Join(dir, roots+hex.EncodeToString(sum[:8])+".pem")
	if info, err := os.Stat(name); err == nil && info.Size() == int64(len(all)) {
		now := time.Now()
		return name, os.Chtimes(name, now, now)
	}
	sweepRoots(dir)
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", fmt.Errorf("write certificates: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when the rename was done
	_, err = f.Write(all)
	for _, step := range []func() error{func() error { return f.Chmod(0o644) }, f.Close} {
		if e := step(); err == nil {
			err = e
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return "", fmt.Errorf("write certificates: %w", err)
	}
	return name, nil
}

// sweepRoots removes bundles that no session has used for a month: with every rotation of a CA they change.
func sweepRoots(dir string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), roots) && time.Since(info.ModTime()) > 30*24*time.Hour {
			os.Remove(filepath.Join(dir, e.Name())) // the next session tries again
		}
	}
}

// resolvers are the name servers of resolv.conf(5).
func resolvers() []string {
	b, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(b[:min(len(b), 1<<16)])) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "nameserver" {
			out = append(out, f[1])
		}
	}
	return out
}

func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
