package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/proxy"
	"github.com/ryehq/rye/verify"
)

// ownAddress is an address of this machine that is not on loopback: what is reached there passes every hook
// that a connection to elsewhere does.
func ownAddress(t testing.TB, v6 bool) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && (n.IP.To4() == nil) == v6 {
			return n.IP.String()
		}
	}
	testutil.Skip(t, "this machine has no address beside loopback")
	return ""
}

// serve answers every request on an address of this machine with its path.
func serve(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "answer to "+r.URL.Path)
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return l.Addr().String()
}

// bodies are the events of one type.
func bodies[T any](list []event.Event) (out []T) {
	for _, e := range list {
		if b, ok := e.Body.(T); ok {
			out = append(out, b)
		}
	}
	return out
}

// The child's bundles have the system's roots, rye's CA and what the user's own variable pointed to, and no
// private key that stood in the same file.
func TestChildEnvironment(t *testing.T) {
	dir := t.TempDir()
	ca, err := proxy.NewCA(proxy.DefaultDomains(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	user, err := proxy.NewCA([]string{"corp.test"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "mine.pem")
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("planted")})
	if err := os.WriteFile(mine, slices.Concat(key, user.PEM(), user.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &home{dir}
	if err := ca.Save(h.caDir()); err != nil {
		t.Fatal(err)
	}
	l, err := listenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := &network{home: h, ca: ca, listen: l}
	err = n.arrange([]string{"HTTPS_PROXY=http://me:p%40ss@proxy.corp.test:3128", "NO_PROXY=*", "CURL_CA_BUNDLE=" + mine, "PIP_CERT=" + mine,
		"SSL_CERT_DIR=/nowhere", "NODE_EXTRA_CA_CERTS=/nowhere/either.pem", "ALL_PROXY=socks5://x", "OTHER=kept"}, true)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range n.env {
		name, value, _ := strings.Cut(kv, "=")
		if _, again := env[name]; again {
			t.Errorf("%s is set twice", name)
		}
		env[name] = value
	}
	for name, want := range map[string]string{"HTTPS_PROXY": "http://" + l.Addr().String(), "http_proxy": "http://" + l.Addr().String(),
		"NO_PROXY": loopbackAll, "no_proxy": loopbackAll, "NODE_USE_ENV_PROXY": "1", "OTHER": "kept", "SSL_CERT_DIR": "", "ALL_PROXY": ""} {
		if env[name] != want {
			t.Errorf("%s=%q, want %q", name, env[name], want)
		}
	}
	system := 0
	for _, f := range rootFiles {
		if b, err := readRoots(f); err == nil {
			system = strings.Count(string(b), "BEGIN CERTIFICATE")
			break
		}
	}
	for name, want := range map[string]int{"CURL_CA_BUNDLE": system + 2, "PIP_CERT": system + 2, "SSL_CERT_FILE": system + 1, "GIT_SSL_CAINFO": system + 1,
		"REQUESTS_CA_BUNDLE": system + 1, "CARGO_HTTP_CAINFO": system + 1, "NODE_EXTRA_CA_CERTS": 1} {
		b, err := os.ReadFile(env[name])
		if err != nil || strings.Contains(string(b), "PRIVATE") || strings.Count(string(b), "BEGIN CERTIFICATE") != want || !x509.NewCertPool().AppendCertsFromPEM(b) {
			t.Errorf("%s: %v, %d certificates, want %d", name, err, strings.Count(string(b), "BEGIN CERTIFICATE"), want)
		}
	}
	if n.about.Via != "http://[cut]@proxy.corp.test:3128" || n.about.Was["NO_PROXY"] != "*" || strings.Contains(fmt.Sprint(n.about), "p%40ss") {
		t.Errorf("%+v", n.about)
	}
}

// A request goes through the proxy, is judged and written down, and the kernel's own record says whose it was.
func TestPrivProxied(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	origin := serve(t, ownAddress(t, false))
	out, errs, code := l.wrap("--proxy", "--", "curl", "-sS", "http://"+origin+"/some/path?secret=1")
	if code != 0 || out != "answer to /some/path" {
		t.Fatalf("status %d, %q\n%s", code, out, errs)
	}
	list := l.events("last")
	applied, decided := bodies[*event.PolicyApplied](list), bodies[*event.ProxyDecision](list)
	if len(applied) != 1 || applied[0].At != "start" || applied[0].From != "built in" || applied[0].Proxy == "" || applied[0].Rules == 0 {
		t.Errorf("%+v", applied)
	}
	if len(decided) != 1 || decided[0].Decision != "allow" || decided[0].Status != 200 || decided[0].Path != "/some/path" {
		t.Fatalf("%+v", decided)
	}
	if !slices.ContainsFunc(bodies[*event.NetConnect](list), func(c *event.NetConnect) bool {
		return c.Local == decided[0].Local && c.Remote == applied[0].Proxy
	}) {
		t.Errorf("no connect of the kernel's has the local address %s", decided[0].Local)
	}
	r := l.verdict()
	if r.Verdict != verify.Verified || len(r.Findings) != 0 || r.Network == nil || len(r.Network.Requests) != 1 {
		show(t, r)
		t.Fatalf("%+v", r.Network)
	}
	if q := r.Network.Requests[0]; q.Program != "curl" || q.Action != "x1" || q.Connect == 0 || r.Network.Classes["proxy"] != 1 {
		t.Errorf("%+v %v", q, r.Network.Classes)
	}
	chain, err := l.ryeCmd("verify", "--action", "x1").CombinedOutput()
	if err != nil || !strings.Contains(string(chain), "\nrequest") || !strings.Contains(string(chain), "\nconnection") {
		t.Errorf("%v\n%s", err, chain)
	}
	// The same without the proxy's variables is found.
	l.wrap("--proxy", "--", "env", "-u", "http_proxy", "-u", "HTTP_PROXY", "curl", "-sS", "http://"+origin)
	if r = l.verdict(); codes(r) != "warning:net-bypass" || r.Findings[0].Reason != "proxy-env-changed" || !strings.Contains(r.Findings[0].Message, origin) {
		show(t, r)
		t.Errorf("findings %s", codes(r))
	}
	// Nothing runs when the policy cannot be read.
	l.file(filepath.Join(l.ryeHome, policyFile), "rules: [")
	if _, errs, code := l.wrap("--proxy", "--", "true"); code != exitOwnFailure || !strings.Contains(errs, policyFile) {
		t.Errorf("with a bad policy: status %d, %s", code, errs)
	}
}

// Names are read from the session's own packets, and the packets are there as a file that other programs read.
func TestPrivPackets(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	addr := ownAddress(t, false)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "secret answer") }))
	ln, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	srv.Listener.Close()
	srv.Listener = ln
	srv.StartTLS()
	defer srv.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	l.file("ask.py", `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(bytes.fromhex("1234010000010000000000000465766c310474657374000001 0001".replace(" ", "")), (sys.argv[1], 53))
`)
	script := fmt.Sprintf("curl -sSk --resolve bypass.test:%d:%s https://bypass.test:%d/; python3 ask.py %s", port, addr, port, addr)
	for _, how := range []string{"headers", "full", "none"} {
		if out, errs, code := l.wrap("--capture", how, "--", "sh", "-c", script); code != 0 || out != "secret answer" {
			t.Fatalf("status %d, %q\n%s", code, out, errs)
		}
		list := l.events("last")
		file := filepath.Join(l.ryeHome, "out.pcapng")
		cmd := l.ryeCmd("pcap", "last", "-o", file)
		msg, err := cmd.CombinedOutput()
		if how == "none" {
			if err == nil || len(bodies[*event.NetTLSHello](list)) != 0 {
				t.Errorf("none: packets were copied")
			}
			continue
		}
		if err != nil {
			t.Fatalf("rye pcap: %v %s", err, msg)
		}
		hellos, names := bodies[*event.NetTLSHello](list), bodies[*event.NetDNS](list)
		connects := bodies[*event.NetConnect](list)
		if len(hellos) != 1 || hellos[0].Name != "bypass.test" || !hellos[0].Sent || !slices.ContainsFunc(connects, func(c *event.NetConnect) bool {
			return c.Local == hellos[0].Local && c.Remote == hellos[0].Remote
		}) {
			t.Errorf("%s: %+v", how, hellos)
		}
		if len(names) != 1 || names[0].Remote != addr+":53" || len(names[0].Questions) != 1 || names[0].Questions[0].Name != "evl1.test" {
			t.Errorf("%s: %+v", how, names)
		}
		dump, err := exec.Command("tcpdump", "-n", "-r", file).CombinedOutput()
		if err != nil {
			if errors.Is(err, exec.ErrNotFound) {
				testutil.Skip(t, "no tcpdump")
			}
			t.Fatalf("tcpdump: %v %s", err, dump)
		}
		if !strings.Contains(string(dump), fmt.Sprintf("%s.%d: Flags [S]", addr, port)) || !strings.Contains(string(dump), "A? evl1.test.") {
			t.Errorf("%s: tcpdump reads\n%s", how, dump)
		}
		end := bodies[*event.SessionEnd](list)[0].Packets
		if end == nil || end.Copied == 0 || end.Lost+end.Left != 0 || end.Seen < end.Copied || how == "full" && end.Seen != end.Copied {
			t.Errorf("%s: %+v", how, end)
		}
	}
	// A changed file is found.
	dirs, _ := filepath.Glob(filepath.Join(l.ryeHome, "sessions", "*", packetsName))
	if len(dirs) != 2 {
		t.Fatalf("%d files of packets", len(dirs))
	}
	b, err := os.ReadFile(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(dirs[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := l.ryeCmd("pcap", filepath.Dir(dirs[0])).CombinedOutput(); err == nil || !strings.Contains(string(msg), "was changed") {
		t.Errorf("rye pcap: %v %s", err, msg)
	}
	if msg, err := l.ryeCmd("verify", filepath.Dir(dirs[0])).CombinedOutput(); err == nil || !strings.Contains(string(msg), "ledger-broken") {
		t.Errorf("rye verify: %v %s", err, msg)
	}
}

// A bundle that is applied during the session holds at once, who applied it is told, and what it denies is not
// reached another way unnoticed. Another name inside a tunnel than the proxy was asked for gets nowhere.
func TestPrivDeniedReached(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	addr := ownAddress(t, false)
	ln, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: ln, Config: &http.Server{ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "reached ") })}}
	srv.StartTLS()
	defer srv.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	l.file("deny.yaml", "id: t\nversion: \"2\"\ndefault: allow\nrules:\n  - id: no-evil\n    action: deny\n    when:\n      domains: [evil.test]\n")
	out, errs, _ := l.wrap("--proxy", "--", "sh", "-c", fmt.Sprintf(`
"$0" policy apply deny.yaml
sleep 1.2
curl -sSk --max-time 5 https://evil.test:%[1]d/
curl -sSk --max-time 5 --connect-to evil.test:%[1]d:%[2]s:%[1]d https://evil.test:%[1]d/
curl -sSk --max-time 5 --noproxy '*' --resolve evil.test:%[1]d:%[2]s https://evil.test:%[1]d/`, port, addr), l.rye)
	if strings.Count(out, "reached ") != 1 {
		t.Fatalf("%q %s", out, errs)
	}
	applied := bodies[*event.PolicyApplied](l.events("last"))
	if len(applied) != 2 || applied[1].At != "change" || applied[1].Bundle != "t@2" || applied[1].Error != "" {
		t.Fatalf("%+v", applied)
	}
	r := l.verdict()
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Code+"/"+f.Reason)
	}
	if !slices.Contains(got, "net-bypass/proxy-env-changed") && !slices.Contains(got, "net-bypass/tcp") || !slices.Contains(got, "net-denied-reached/evil.test") ||
		!slices.Contains(got, "rule-self-granted/policy") || r.Verdict != verify.Discrepancy || r.Network.Denied == 0 {
		show(t, r)
		t.Errorf("%s: %v, %+v", r.Verdict, got, r.Network)
	}
}
