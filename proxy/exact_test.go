package proxy

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// blob is n bytes of no meaning, the same for a seed.
func blob(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // never fails
	return b
}

// Real clients, each in the way it finds a proxy and a CA by itself: every byte of a request and of a streamed answer
// is what it was.
func TestClientsAreExact(t *testing.T) {
	dir := t.TempDir()
	in, out := blob(1, 1_700_000), blob(2, 3_000_000)
	file, answer := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(file, in, 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "https://model.test/blob"
	python := func(library, more string) []string {
		return []string{"/usr/bin/python3", "-c", "import sys," + library + "\n" + more + "\nopen(sys.argv[3],'wb').write(r.content)", url, file, answer}
	}
	undici := "/usr/lib/node_modules/npm/node_modules/undici"
	for _, c := range []struct {
		name, proto string
		needs       []string // a command that says whether the client is here
		argv        []string
	}{
		{"curl, HTTP/1.1", "HTTP/1.1", nil, []string{"curl", "-sSf", "--http1.1", "--data-binary", "@" + file, "-o", answer, url}},
		{"curl, HTTP/2", "HTTP/2.0", nil, []string{"curl", "-sSf", "--http2", "--data-binary", "@" + file, "-o", answer, url}},
		{"requests", "HTTP/1.1", []string{"/usr/bin/python3", "-c", "import requests"}, python("requests", "r=requests.post(sys.argv[1],data=open(sys.argv[2],'rb'))")},
		{"httpx", "HTTP/1.1", []string{"/usr/bin/python3", "-c", "import httpx"}, python("httpx", "r=httpx.post(sys.argv[1],content=open(sys.argv[2],'rb').read(),timeout=20)")},
		{"httpx, HTTP/2", "HTTP/2.0", []string{"/usr/bin/python3", "-c", "import httpx,h2"}, python("httpx", "r=httpx.Client(http2=True,timeout=20).post(sys.argv[1],content=open(sys.argv[2],'rb').read())")},
		{"fetch", "HTTP/1.1", []string{"ls", undici}, []string{"node", "--no-warnings", "-e", `
const {fetch, EnvHttpProxyAgent} = require(process.argv[1]), fs = require('fs');
fetch(process.argv[2], {method: 'POST', body: fs.readFileSync(process.argv[3]), dispatcher: new EnvHttpProxyAgent()})
  .then(r => r.arrayBuffer()).then(b => { fs.writeFileSync(process.argv[4], Buffer.from(b)); process.exit(0); });`, undici, url, file, answer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != nil && exec.Command(c.needs[0], c.needs[1:]...).Run() != nil {
				t.Skip("not here")
			}
			var got [sha256.Size]byte
			l := newLab(t, bundle, func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got = sha256.Sum256(b)
				for at := 0; at < len(out); at += 70_001 {
					w.Write(out[at:min(at+70_001, len(out))])
					w.(http.Flusher).Flush()
				}
			}, nil)
			l.run(c.argv[0], c.argv[1:]...)
			b, err := os.ReadFile(answer)
			if err != nil || !bytes.Equal(b, out) {
				t.Errorf("the answer differs: %d bytes of %d, %v", len(b), len(out), err)
			}
			if err := os.Remove(answer); err != nil {
				t.Error(err)
			}
			if got != sha256.Sum256(in) {
				t.Error("the request differs")
			}
			if d := l.decision(0); d.Proto != c.proto || d.Decision != "allow" || d.RequestSHA256 != fmt.Sprintf("%x", sha256.Sum256(in)) || d.ResponseSHA256 != fmt.Sprintf("%x", sha256.Sum256(out)) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// git clones and pushes over https, as it does anywhere.
func TestGit(t *testing.T) {
	root := t.TempDir()
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	backend := filepath.Join(git(root, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skipf("no git-http-backend: %v", err)
	}
	git(root, "init", "-q", "-b", "main", "work")
	work := filepath.Join(root, "work")
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(work, fmt.Sprint("f", i)), blob(byte(i), 50_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(work, "add", ".")
	git(work, "commit", "-qm", "one")
	git(root, "clone", "-q", "--bare", "work", "repo.git")
	git(root, "-C", "repo.git", "config", "http.receivepack", "true")
	serve := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=me"}}
	l := newLab(t, bundle, serve.ServeHTTP, nil)
	there := t.TempDir()
	l.env = append(l.env, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	l.run("git", "clone", "-q", "https://model.test/repo.git", filepath.Join(there, "c"))
	clone := filepath.Join(there, "c")
	if a, b := git(work, "rev-parse", "HEAD^{tree}"), git(clone, "rev-parse", "HEAD^{tree}"); a != b {
		t.Errorf("cloned %s, want %s", b, a)
	}
	git(clone, "fsck", "--strict")
	if err := os.WriteFile(filepath.Join(clone, "new"), blob(99, 1_200_000), 0o600); err != nil {
		t.Fatal(err)
	}
	git(clone, "add", ".")
	git(clone, "commit", "-qm", "two")
	l.run("git", "-C", clone, "push", "-q", "origin", "main")
	if a, b := git(clone, "rev-parse", "HEAD"), git(filepath.Join(root, "repo.git"), "rev-parse", "main"); a != b {
		t.Errorf("pushed %s, there is %s", a, b)
	}
	git(filepath.Join(root, "repo.git"), "fsck", "--strict")
	time.Sleep(50 * time.Millisecond)
	if strings.Contains(l.ledger(), `"tunnel":true`) || strings.Contains(l.ledger(), `"unjudged"`) || !strings.Contains(l.ledger(), "git-receive-pack") {
		t.Errorf("%s", l.ledger())
	}
}
