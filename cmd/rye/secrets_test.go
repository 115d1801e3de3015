package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/internal/testutil"
)

// vendor is a TLS origin for a model provider's name, reached through a proxy of the user's own.
func vendor(t *testing.T, name string, handler http.HandlerFunc) (viaAddr, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	caFile = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	origin := httptest.NewUnstartedServer(handler)
	origin.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	origin.StartTLS()
	t.Cleanup(origin.Close)
	via := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up, err := net.Dial("tcp", origin.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer up.Close()
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(up, bufio.NewReader(rw))
		io.Copy(conn, up)
	}))
	t.Cleanup(via.Close)
	return via.Listener.Addr().String(), caFile
}

// What is planted where secrets are: none of it is in what rye keeps or prints.
func TestSecretsAreNotKept(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		testutil.Skip(t, "no curl")
	}
	planted := map[string]string{
		"key in a header":              "sk-ant-api03-" + strings.Repeat("h1H", 20),
		"token in a header":            "tok-3c9a55e1d0",
		"text in a body":               "planted-body-text",
		"key in a body":                "AKIAIOSFODNN7EXAMPLE",
		"key in a query":               "AIza" + strings.Repeat("q2", 17) + "q",
		"key in a path":                "ghp_" + strings.Repeat("p3P4", 9),
		"text of an answer":            "planted-answer-text",
		"key in a tool call":           "sk-proj-" + strings.Repeat("t5T", 10),
		"file content in a tool call":  "glpat-" + strings.Repeat("f6", 11),
		"password of the user's proxy": "planted-proxy-password",
	}
	answer := `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"OPENAI_API_KEY=` + planted["key in a tool call"] + ` make\",\"x\":\"` + planted["file content in a tool call"] + `\"}"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"` + planted["text of an answer"] + `"}}

`
	via, roots := vendor(t, "api.anthropic.com", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, answer)
	})
	l := newLab(t)
	l.env = append(l.env, "HTTPS_PROXY=http://me:"+planted["password of the user's proxy"]+"@"+via, "SSL_CERT_FILE="+roots)
	bundle := l.file("bundle.yaml", `{"id":"s","version":"1","default":"allow","rules":[
{"id":"keys","action":"deny","when":{"secrets":"any"}},{"id":"ask","action":"require_approval","when":{"body_contains":"planted-body"}}]}`)
	if out, err := l.ryeCmd("policy", "apply", bundle).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for i, body := range []string{"{}", planted["text in a body"], planted["key in a body"]} {
		l.file(fmt.Sprintf("%d.body", i), body)
		l.file(fmt.Sprintf("%d.curl", i), fmt.Sprintf("url = \"https://api.anthropic.com/v1/messages/%s?key=%s\"\nheader = \"x-api-key: %s\"\nheader = \"Authorization: Bearer %s\"\ndata-binary = \"@%d.body\"\nuser-agent = \"claude-cli/2\"\n",
			planted["key in a path"], planted["key in a query"], planted["key in a header"], planted["token in a header"], i))
	}
	out, errs, code := l.wrap("--proxy", "--", "sh", "-c", `for i in 0 1 2; do curl -sS -o answer -w '%{http_code}\n' -K $i.curl; done`)
	if code != 0 || out != "200\n403\n403\n" {
		t.Fatalf("status %d: %s\n%s", code, out, errs)
	}
	kept := map[string]string{"output of rye wrap": out + errs}
	for _, args := range [][]string{{"verify", "last"}, {"verify", "last", "--json"}, {"show", "last"}, {"show", "last", "--json"}, {"approvals"}, {"approvals", "--json"}, {"sessions"}, {"policy", "show"}} {
		b, _ := l.ryeCmd(args...).CombinedOutput() // a verdict is no failure
		if len(b) == 0 {
			t.Errorf("rye %v prints nothing", args)
		}
		kept["output of rye "+strings.Join(args, " ")] = string(b)
	}
	err := filepath.WalkDir(l.ryeHome, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if filepath.Base(name) != "rye.key" && filepath.Base(name) != "ledger.key" {
			kept[name] = string(b)
		} else if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(l.ryeHome, "ca", "rye.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	planted["the CA's key"] = base64.StdEncoding.EncodeToString(block.Bytes)[60:]
	var ledger string
	for where, text := range kept {
		for what, secret := range planted {
			if strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))) {
				t.Errorf("%s is in %s", what, where)
			}
		}
		if filepath.Base(where) == "events.jsonl" {
			ledger = text
		}
	}
	// It was all there to be kept.
	for _, want := range []string{`"decision":"allow"`, `"decision":"deny"`, `"decision":"require_approval"`, `"source":"api"`, "[cut: openai_key] make", `"path":"[cut]"`, "[cut]@" + via} {
		if !strings.Contains(ledger, want) {
			t.Errorf("no %s in the ledger", want)
		}
	}
}
