package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ryehq/rye/internal/testutil"
)

// The real Codex says whether it takes a file, and what it decides about `ls x`. Where rye says that it cannot
// know, it need not agree.
func TestCodexOracle(t *testing.T) {
	codex := testutil.Assistant(t, "codex")
	// Codex wants no state folder below /tmp.
	home, err := os.MkdirTemp("/var/tmp", "rye-oracle-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	files := []string{
		`prefix_rule(pattern=["ls"])`, `prefix_rule(pattern=["ls", "x", "y"])`, `prefix_rule(pattern=[["a", "ls"], "x"], decision="prompt")`,
		`prefix_rule(pattern=["ls"], decision="forbidden")`, "prefix_rule(pattern=['ls'])\nprefix_rule(pattern=['ls', 'x'], decision='prompt')",
		`prefix_rule(["ls"], "prompt", [["ls"]], [["a"]], "why")`, `prefix_rule(pattern=("ls",))`, `prefix_rule(pattern=["ls"], decision="deny")`,
		`prefix_rule(pattern=[["ls", ["x"]]])`, `prefix_rule(pattern=[("ls", "a")])`, `prefix_rule(pattern=["ls", []])`, `prefix_rule(pattern=[])`,
		`prefix_rule(pattern="ls")`, `prefix_rule(pattern=[""])`, `prefix_rule(pattern=["ls"], pattern=["a"])`, `prefix_rule(pattern=["ls"], foo=1)`,
		`prefix_rule(pattern=["ls"], justification=" ")`, `prefix_rule(pattern=["ls"], justification=1)`, `prefix_rule(pattern=["ls"], justification=None)`,
		`prefix_rule(pattern=["ls"], match=None)`, `prefix_rule(pattern=["ls"], match=[""])`, `prefix_rule(pattern=["ls"], match=[[]])`,
		`prefix_rule(pattern=["ls"], match=["ls \"a"])`, `prefix_rule(pattern=["ls"], match=["ls # x", "/bin/ls 'a b'"], not_match=["lsx", "l s"])`,
		`prefix_rule(pattern=["ls"], match="ls")`, `prefix_rule(pattern=["ls"], not_match=["ls x"])`, `prefix_rule(pattern=["ls", "-l"], match=["ls -a"])`,
		"host_executable(name='git', paths=['/usr/bin/git'])\nprefix_rule(pattern=['git'], match=['/tmp/git x'])",
		"prefix_rule(pattern=['git'], match=['/tmp/git x'])\nhost_executable(name='git', paths=['/usr/bin/git'])",
		`host_executable("git", ["/usr/bin/git"])`, `host_executable(name="git", paths=[])`, `host_executable(name="git", paths=["git"])`,
		`host_executable(name="git", paths=["/usr/bin/gitx"])`, `host_executable(name="a/git", paths=["/a/git"])`,
		`network_rule("a.b", "https", "allow", "why")`, `network_rule(host="A.b.:443", protocol="https_connect", decision="deny")`,
		`network_rule(host="[::1]:80", protocol="http", decision="forbidden")`, `network_rule(host="::1", protocol="http", decision="prompt")`,
		`network_rule(host=" a.b ", protocol="http-connect", decision="allow")`, `network_rule(host="a.b", protocol="http")`,
		`network_rule(host="*.b", protocol="http", decision="allow")`, `network_rule(host="https://a.b", protocol="http", decision="allow")`,
		`network_rule(host="", protocol="http", decision="allow")`, `network_rule(host="a.b#x", protocol="http", decision="allow")`,
		`network_rule(host="a.b", protocol="HTTPS", decision="allow")`, `network_rule(host="a.b", protocol="http", decision="allow", justification="")`,
		"for t in ['ls']:\n  prefix_rule(pattern=[t])\n", "if True:\n  prefix_rule(pattern=['ls'])\n", "a = 1\na = 2\n",
		"t = ['ls', 'make']\ndef f(x):\n  prefix_rule(pattern=[x, 'x'])\n[f(x) for x in t]\n", "f = lambda x: prefix_rule(pattern=[x])\nf('ls')",
		"def f():\n  f()\n", "def f():\n  while True:\n    pass\n", `load("x", "y")`, `print("a")`, `x = y`, "", "# nothing", "prefix_rule(\r\n  pattern=[\"ls\"],\r\n)\r\n",
		"\ufeffprefix_rule(pattern=[\"ls\"])", "prefix_rule(pattern=['ls']", "prefix_rule(pattern=['ls'])\n  x = 1",
		"def f(x: str) -> None:\n  prefix_rule(pattern=[x])\nf('ls')", "a = ['ls']\nprefix_rule(pattern=a + ['x'])", "x = len([1])",
	}
	words := []string{"ls", "x"}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, text := range files {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			name := filepath.Join(home, strings.Repeat("x", i+1)+".rules")
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Error(err)
				return
			}
			cmd := exec.Command(codex, append([]string{"execpolicy", "check", "--rules", name}, words...)...)
			cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
			out, err := cmd.Output()
			var says struct {
				Decision string `json:"decision"`
			}
			if err == nil && json.Unmarshal(out, &says) != nil {
				t.Errorf("%q: Codex said %s", text, out)
				return
			}
			f := Codex(name, User, []byte(text))
			switch {
			case strings.HasPrefix(f.Error, NotRead):
			case (f.Error == "") != (err == nil):
				t.Errorf("%q: Codex takes it: %v; rye's error: %q", text, err == nil, f.Error)
			case f.Error == "":
				got, rank := "", map[string]int{"": 0, "allow": 1, "prompt": 2, "forbidden": 3}
				for _, r := range f.Rules {
					d := map[string]string{"allow": "allow", "ask": "prompt", "deny": "forbidden"}[r.Decision]
					if r.Tool == "command" && (&codexFile{}).matches(r.Words, words) && rank[d] > rank[got] {
						got = d
					}
				}
				if got != says.Decision {
					t.Errorf("%q: Codex decides %q, rye's rules %q", text, says.Decision, got)
				}
			}
		}()
	}
	wg.Wait()
}
