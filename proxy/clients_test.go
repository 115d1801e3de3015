package proxy

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// run runs a client that is a program of its own, with nothing of this machine's proxy settings.
func (l *lab) run(name string, args ...string) string {
	l.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		l.t.Skipf("%s is not here", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(l.env, "PATH="+os.Getenv("PATH"), "HOME="+l.t.TempDir(), "HTTPS_PROXY="+l.url.String(), "https_proxy="+l.url.String(),
		"PROXY_PORT="+l.url.Port())
	for _, name := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"} {
		cmd.Env = append(cmd.Env, name+"="+l.caFile)
	}
	timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func TestCurl(t *testing.T) {
	for _, proto := range []string{"--http1.1", "--http2"} {
		l := newLab(t, bundle, nil, nil)
		ask := func(url, body string) string {
			return l.run("curl", "-sS", proto, "--cacert", l.caFile, "-w", " %{http_code} %{http_version}", "-d", body, url)
		}
		version := strings.TrimPrefix(proto, "--http")
		if got := ask("https://model.test/v1/x", `{"model":"m"}`); got != `answer to {"model":"m"} 200 `+version {
			t.Errorf("%s: %s", proto, got)
		}
		if got := ask("https://model.test/v1/x", `{"model":"m","k":"`+planted+`"}`); !strings.HasSuffix(got, " 403 "+version) || !strings.Contains(got, `"rule_id":"key"`) {
			t.Errorf("%s: %s", proto, got)
		}
		if got := l.run("curl", "-sS", proto, "--cacert", l.originPF, "https://other.test/"); got != "answer to " {
			t.Errorf("%s tunnel: %s", proto, got)
		}
		l.decision(2)
		if strings.Contains(l.ledger()+l.reached(), planted) {
			t.Errorf("the secret got out: %s", l.ledger())
		}
	}
}

// Node's own https, over CONNECT, trusting rye's CA as NODE_EXTRA_CA_CERTS says.
const nodeClient = `
const http = require('http'), https = require('https');
function ask(body) {
  return new Promise((done, fail) => {
    const c = http.request({host: '127.0.0.1', port: process.env.PROXY_PORT, method: 'CONNECT', path: 'model.test:443'});
    c.on('error', fail);
    c.on('connect', (res, socket) => {
      const tls = require('tls').connect({socket, servername: 'model.test'}, () => {
        const agent = new https.Agent();
        agent.createConnection = () => tls;
        const r = https.request({host: 'model.test', path: '/v1/x', method: 'POST', agent}, (res) => {
          let text = '';
          res.on('data', d => text += d);
          res.on('end', () => { console.log(res.statusCode, text); tls.end(); done(); });
        });
        r.on('error', fail);
        r.end(body);
      });
      tls.on('error', fail);
    });
    c.end();
  });
}
ask('{"model":"m"}').then(() => ask('{"model":"m","k":"AKIAIOSFODNN7EXAMPLE"}'));
`

func TestNode(t *testing.T) {
	l := newLab(t, bundle, nil, nil)
	lines := strings.Split(strings.TrimSpace(l.run("node", "-e", nodeClient)), "\n")
	if len(lines) != 2 || lines[0] != `200 answer to {"model":"m"}` || !strings.HasPrefix(lines[1], `403 {"error":{"type":"rye_policy","rule_id":"key"`) {
		t.Errorf("%q", lines)
	}
	if d := l.decision(1); d.Decision != "deny" || d.Proto != "HTTP/1.1" {
		t.Errorf("%+v", d)
	}
}

// Node's fetch is undici's. The copy that npm carries brings the agent that sends it through a proxy.
const fetchClient = `
const {fetch, EnvHttpProxyAgent} = require(process.argv[1]);
const dispatcher = new EnvHttpProxyAgent();
async function ask(body) {
  const res = await fetch('https://model.test/v1/x', {method: 'POST', body, dispatcher});
  console.log(res.status, await res.text());
}
ask('{"model":"m"}').then(() => ask('{"model":"m","k":"AKIAIOSFODNN7EXAMPLE"}')).then(() => dispatcher.close());
`

func TestNodeFetch(t *testing.T) {
	const undici = "/usr/lib/node_modules/npm/node_modules/undici"
	if _, err := os.Stat(undici); err != nil {
		t.Skipf("npm's undici is not here: %v", err)
	}
	l := newLab(t, bundle, nil, nil)
	lines := strings.Split(strings.TrimSpace(l.run("node", "--no-warnings", "-e", fetchClient, undici)), "\n")
	if len(lines) != 2 || lines[0] != `200 answer to {"model":"m"}` || !strings.HasPrefix(lines[1], `403 {"error":{"type":"rye_policy","rule_id":"key"`) {
		t.Errorf("%q", lines)
	}
	if d := l.decision(1); d.Decision != "deny" || strings.Contains(l.ledger()+l.reached(), planted) {
		t.Errorf("%+v", d)
	}
}
