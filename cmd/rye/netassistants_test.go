package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/verify"
)

// behindCompany is a scripted model behind TLS that answers as the vendors' hosts, and a proxy of the user's own that
// leads there: what a company network looks like to rye. It returns the variables that the user has set.
func behindCompany(t testing.TB, m *testutil.Model) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"api.openai.com", "api.anthropic.com"}}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(m)
	srv.EnableHTTP2 = true
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leafDER}, PrivateKey: key}}}
	srv.StartTLS()
	t.Cleanup(srv.Close)

	file := filepath.Join(t.TempDir(), "corp.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"HTTPS_PROXY=http://corp:p%40ss@" + corpProxy(t, srv.Listener.Addr().String()), "SSL_CERT_FILE=" + file}
}

// corpProxy answers CONNECT to the vendors' hosts with a connection to addr, and knows no other host.
func corpProxy(t testing.TB, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(c net.Conn) {
		defer c.Close()
		r := bufio.NewReader(c)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, _, ok := (&http.Request{Header: http.Header{"Authorization": req.Header["Proxy-Authorization"]}}).BasicAuth(); !ok {
			io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
			return
		}
		if req.Method != http.MethodConnect || req.Host != "api.openai.com:443" && req.Host != "api.anthropic.com:443" {
			io.WriteString(c, "HTTP/1.1 502 no such host\r\n\r\n")
			return
		}
		up, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer up.Close()
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(up, r); up.Close() }()
		io.Copy(c, up)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// checkThrough holds a session of an assistant behind rye's proxy to what it must show: its requests, each tied
// to a process, none past the proxy, and no secret in the ledger.
func (l *lab) checkThrough(r *verify.Report, host, command string) {
	l.t.Helper()
	a := find(r, command)
	if a == nil || a.Verdict != verify.Verified || r.Verdict != verify.Verified {
		show(l.t, r)
		l.t.Fatalf("verdict %s, action %+v", r.Verdict, a)
	}
	for _, f := range r.Findings {
		if f.Code == verify.NetDeniedReached || f.Code == verify.NetBypass && (f.Severity != verify.Info || f.Reason != "refused") {
			show(l.t, r)
			l.t.Errorf("a connection past the proxy: %s", f.Message)
		}
	}
	n, judged := r.Network, 0
	if n == nil {
		l.t.Fatal("no network in the report")
	}
	for _, q := range n.Requests {
		if strings.HasPrefix(q.Host, host) && q.Method == http.MethodPost && q.Status == http.StatusOK && q.Decision == "allow" {
			judged++
		}
		if q.Connect == 0 || q.Program == "" {
			l.t.Errorf("whose request is it: %+v", q)
		}
	}
	if judged < 2 || n.Classes["proxy"] == 0 || n.Classes["bypass"] != 0 {
		l.t.Errorf("%d requests to %s, %+v", judged, host, n)
	}
	list := l.events("last")
	if p := bodies[*event.PolicyApplied](list); len(p) != 1 || !strings.HasPrefix(p[0].Via, "http://[cut]@127.0.0.1:") {
		l.t.Errorf("%+v", p)
	}
	dir, _ := filepath.Glob(filepath.Join(l.ryeHome, "sessions", "*", "events.jsonl"))
	for _, f := range dir {
		b, err := os.ReadFile(f)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, secret := range []string{"p%40ss", "p@ss", claudeKey, "planted-openai-key"} {
			if strings.Contains(string(b), secret) {
				l.t.Errorf("%s stands in the ledger", secret)
			}
		}
	}
}

func TestPrivCodexThroughProxy(t *testing.T) {
	testutil.Privileged(t)
	for _, flag := range []string{"--proxy", "--enforce"} {
		t.Run(flag, func(t *testing.T) {
			l := newLab(t)
			target := filepath.Join(l.home, "one")
			m := testutil.NewModel(t, "!touch "+target)
			l.env = append(l.env, behindCompany(t, m)...)
			model := testutil.Model{}
			model.URL = "https://api.openai.com"
			codex := l.codex(&model, "do it")
			l.env = append(l.env, "FAKE_KEY=planted-openai-key")
			defer l.stopDaemon()
			testutil.Drive(t, l.ryeCmd(append([]string{"wrap", flag, "--"}, codex...)...), 100, 40, []testutil.Key{
				{Wait: "Would you like to run the following command?", Send: "y"},
				{Wait: "DONE", Send: quit, Pause: time.Second},
				{Wait: "", Send: quit, Pause: 500 * time.Millisecond},
			})
			if _, err := os.Stat(target); err != nil {
				t.Fatal("the command did not run")
			}
			l.checkThrough(l.verdict(), "api.openai.com", "touch "+target)
		})
	}
}

func TestPrivClaudeThroughProxy(t *testing.T) {
	testutil.Privileged(t)
	for _, flag := range []string{"--proxy", "--enforce"} {
		t.Run(flag, func(t *testing.T) {
			l := newLab(t)
			m := testutil.NewModel(t, "touch one && mkdir two")
			l.env = append(l.env, behindCompany(t, m)...)
			model := testutil.Model{}
			model.URL = "https://api.anthropic.com"
			claude := l.claude(&model, "")
			testutil.Drive(t, l.ryeCmd(append([]string{"wrap", flag, "--"}, claude...)...), 100, 40,
				append([]testutil.Key{{Wait: ask, Send: "1", Pause: time.Second}}, leave("DONE")...))
			if _, err := os.Stat(filepath.Join(l.project, "two")); err != nil {
				t.Fatal("the command did not run")
			}
			l.checkThrough(l.verdict(), "api.anthropic.com", "touch one")
		})
	}
}

// The shim stands in front of what the variable named before; the assistant needs no CA for it.
func TestPrivClaudeThroughShim(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	m := testutil.NewModel(t, "touch one && mkdir two")
	claude := l.claude(m, "")
	testutil.Drive(t, l.ryeCmd(append([]string{"wrap", "--shim", "--"}, claude...)...), 100, 40,
		append([]testutil.Key{{Wait: ask, Send: "1", Pause: time.Second}}, leave("DONE")...))
	r := l.verdict()
	a := find(r, "touch one")
	if a == nil || a.Verdict != verify.Verified || r.Verdict != verify.Verified || r.Network == nil {
		show(t, r)
		t.Fatalf("action %+v", a)
	}
	list := l.events("last")
	applied := bodies[*event.PolicyApplied](list)
	if len(applied) != 1 || applied[0].Proxy != "" || applied[0].Was["ANTHROPIC_BASE_URL"] != m.URL || len(applied[0].Shims) != 3 {
		t.Errorf("%+v", applied)
	}
	judged := 0
	for _, q := range r.Network.Requests {
		if q.Method == http.MethodPost && q.Status == http.StatusOK && q.Connect != 0 && q.Program != "" {
			judged++
		}
	}
	if judged < 2 || r.Network.Classes["shim"] == 0 {
		t.Errorf("%+v", r.Network)
	}
}
