package policy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/ryehq/rye/policy/content"
)

func mustParse(t testing.TB, text string) *Bundle {
	t.Helper()
	b, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func one(action, when string) string {
	def := "allow"
	if action == "allow" {
		def = "deny"
	}
	return "id: t\nversion: 1\ndefault: " + def + "\nrules:\n- id: r\n  action: " + action + "\n  when: " + when + "\n"
}

func post(host, path, body string) Request {
	return Request{Head{"POST", host, path, map[string][]string{"Content-Type": {"application/json"}}}, []byte(body)}
}

func TestDefaultBundle(t *testing.T) {
	b := mustParse(t, string(DefaultYAML()))
	for _, c := range []struct {
		name string
		r    Request
		act  Action
		rule string
	}{
		{"plain", post("api.openai.com", "/v1/responses", `{"model":"m","input":"hi"}`), Allow, "llm-domains"},
		{"port, case, dot", post("API.Anthropic.com.:443", "/v1/messages", `{"model":"m"}`), Allow, "llm-domains"},
		{"key", post("api.openai.com", "/v1/responses", `{"model":"m","input":"-----BEGIN OPENSSH PRIVATE KEY-----\n"}`), Deny, "no-openssh-key"},
		{"key elsewhere", post("example.org", "/x", "BEGIN OPENSSH PRIVATE KEY"), Deny, "no-openssh-key"},
		{"2 MB exactly", post("example.org", "/", strings.Repeat("a", 2e6)), Allow, ""},
		{"2 MB and one", post("example.org", "/", strings.Repeat("a", 2e6+1)), Deny, "no-large-body"},
		{"no model", post("api.anthropic.com", "/v1/messages", `{"messages":[{"model":"nested"}]}`), RequireApproval, "model-named"},
		{"path in disguise", post("api.anthropic.com", "/v1/%6d//x/../essages", `{}`), Allow, "llm-domains"},
		{"path in disguise 2", post("api.anthropic.com", "/v1//x/../%6dessages", `{}`), RequireApproval, "model-named"},
		{"model in path", post("generativelanguage.googleapis.com", "/v1beta/models/gemini-x:generateContent", `{}`), Allow, "llm-domains"},
		{"other", post("notopenai.com", "/v1/messages", `{}`), Allow, ""},
	} {
		d := Decide(b, c.r)
		if d.Action != c.act || d.RuleID != c.rule || d.Bundle != "rye-default@1" || d.Reason == "" {
			t.Errorf("%s: %+v, want %s by %q", c.name, d, c.act, c.rule)
		}
	}
}

func TestConditions(t *testing.T) {
	chat := `{"model":"gpt-9","tools":[{"type":"function","function":{"name":"shell"}},{"name":"Bash"}],"messages":[{"content":"tools name Evil"}]}`
	gemini := `{"tools":[{"functionDeclarations":[{"name":"run","parameters":{"properties":{"name":{"name":"no"}}}}]}]}`
	for _, c := range []struct {
		when  string
		r     Request
		match bool
	}{
		{`{body_matches: 'a+b$'}`, post("h", "/", "xxaaab"), true},
		{`{body_matches: 'a+b$'}`, post("h", "/", "xxaaabx"), false},
		{`{body_matches: '^x.*é$'}`, post("h", "/", "x\xffé"), true},
		{`{body_contains: ab}`, post("h", "/", "xxab"), true},
		{`{body_contains: [zz, xxab]}`, post("h", "/", "xxab"), true},
		{`{body_larger_than: 3}`, post("h", "/", "abc"), false},
		{`{body_larger_than: 2B}`, post("h", "/", "abc"), true},
		{`{methods: [get, post]}`, post("h", "/", ""), true},
		{`{methods: get}`, post("h", "/", ""), false},
		{`{paths: /v1/*/x}`, post("h", "/v1/a/b/x?q=1", ""), true},
		{`{paths: /v1/x}`, post("h", "/v1/xy", ""), false},
		{`{header_present: content-TYPE}`, post("h", "/", ""), true},
		{`{header_present: x-y}`, post("h", "/", ""), false},
		{`{domains: b.c}`, post("a.b.c", "/", ""), true},
		{`{domains: b.c}`, post("ab.c", "/", ""), false},
		{`{domains: "::1"}`, post("[::1]:443", "/", ""), true},
		{`{models: "gpt-*"}`, post("h", "/", chat), true},
		{`{models: claude}`, post("h", "/", chat), false},
		{`{models: x}`, post("h", "/", `{"mod\u0065l":"\u0078"}`), true},
		{`{models: b}`, post("h", "/", `{"model":"a","model":"b"}`), true},
		{`{models: gpt-4}`, post("h", "/openai/deployments/gpt-4/chat", `{}`), true},
		{`{model_missing: false}`, post("h", "/", chat), true},
		{`{model_missing: true}`, post("h", "/", `{"model":["x"]}`), true},
		{`{tools: Bash}`, post("h", "/", chat), true},
		{`{tools: shell}`, post("h", "/", chat), true},
		{`{tools: [Evil, function]}`, post("h", "/", chat), false},
		{`{tools: run}`, post("h", "/", gemini), true},
		{`{tools: "no"}`, post("h", "/", gemini), false},
		{`{cel: 'method == "POST" && "Bash" in tools && body_size > 10'}`, post("h", "/", chat), true},
		{`{cel: 'header["content-type"][0].startsWith("text/")'}`, post("h", "/", chat), false},
		{`{cel: 'size(secrets) > 0'}`, post("h", "/", "x AKIAIOSFODNN7EXAMPLE x"), true},
		{`{domains: h, methods: GET}`, post("h", "/", ""), false},
	} {
		d := Decide(mustParse(t, one("deny", c.when)), c.r)
		if (d.Action == Deny) != c.match || d.Unjudged != "" {
			t.Errorf("%s on %.60q: %+v, want match %v", c.when, c.r.Body, d, c.match)
		}
	}
}

// To allow, every name must be listed; to restrict, one is enough.
func TestNamesByAction(t *testing.T) {
	both := post("h", "/", `{"model":"good","model":"bad"}`)
	for action, want := range map[string]Action{"allow": Deny, "deny": Deny} {
		if d := Decide(mustParse(t, one(action, `{models: good}`)), both); d.Action != want {
			t.Errorf("%s: %+v", action, d)
		}
	}
}

func TestLogGoesOn(t *testing.T) {
	b := mustParse(t, `{"id":"b","version":"2","default":"deny","rules":[
	{"id":"l","action":"log","when":{"methods":["POST"]}},
	{"id":"a","version":"7","action":"allow","reason":"fine","when":{"domains":["h"]}},
	{"id":"d","action":"deny","when":{"domains":["h"]}}]}`)
	d := Decide(b, post("h", "/", ""))
	if d.Action != Allow || d.RuleID != "a" || d.RuleVersion != "7" || d.Bundle != "b@2" || d.Reason != "fine" || fmt.Sprint(d.Logged) != "[l]" {
		t.Errorf("%+v", d)
	}
	if d := Decide(b, post("x", "/", "")); d.Action != Deny || d.RuleID != "" {
		t.Errorf("default: %+v", d)
	}
}

func TestSecrets(t *testing.T) {
	a := strings.Repeat("aB3dE", 30)
	up := strings.Repeat("A2B3", 30)
	for kind, texts := range map[string][]string{
		"private_key":   {"-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PGP PRIVATE KEY BLOCK-----", "AGE-SECRET-KEY-1" + up[:58]},
		"aws_key":       {"AKIA" + up[:16], `k\nASIA` + up[:16]},
		"google_key":    {"AIza" + a[:35]},
		"azure_key":     {"AccountKey=" + a[:86] + "=="},
		"anthropic_key": {"sk-ant-api03-" + a[:80]},
		"openai_key":    {"sk-proj-" + a[:60], "sk-" + a[:20] + "T3BlbkFJ" + a[:20]},
		"github_token":  {"ghp_" + a[:36], "github_pat_" + a[:82]},
		"gitlab_token":  {"glpat-" + a[:20]},
		"slack_token":   {"xoxb-" + a[:40]},
		"model_key":     {"hf_" + a[:34], "gsk_" + a[:52], "sk-or-v1-" + strings.Repeat("0a", 32)},
		"npm_token":     {"npm_" + a[:36]},
		"stripe_key":    {"sk_live_" + a[:24]},
	} {
		b := mustParse(t, one("deny", "{secrets: "+kind+"}"))
		for _, text := range texts {
			for _, body := range []string{text, `{"x":"` + text + `"}`, "z " + text + " z"} {
				if d := Decide(b, post("h", "/", body)); d.Action != Deny {
					t.Errorf("%s not found in %s", kind, body)
				}
			}
		}
	}
	b := mustParse(t, one("deny", "{secrets: any}"))
	for _, text := range []string{"-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "AKIA short", "xAKIA" + up[:16], "AKIA" + up[:17],
		"the sk-ant- prefix", "ghp_" + a[:20], "AIzaXYZ", "gsk_enable"} {
		if d := Decide(b, post("h", "/", text)); d.Action != Allow {
			t.Errorf("%q taken for a secret", text)
		}
	}
}

func encode(t testing.TB, name string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	switch name {
	case "gzip":
		w := gzip.NewWriter(&out)
		w.Write(b)
		w.Close()
	case "br":
		w := brotli.NewWriter(&out)
		w.Write(b)
		w.Close()
	case "zstd":
		w, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(b)
		w.Close()
	}
	return out.Bytes()
}

func TestCompressed(t *testing.T) {
	b := mustParse(t, one("deny", "{body_contains: BEGIN OPENSSH PRIVATE KEY}"))
	secret := []byte(strings.Repeat("padding ", 20000) + "BEGIN OPENSSH PRIVATE KEY")
	plain := []byte(strings.Repeat("padding ", 20000))
	judge := func(enc string, body []byte) Decision {
		return Decide(b, Request{Head{"POST", "h", "/", map[string][]string{"content-encoding": {enc}}}, body})
	}
	for _, name := range []string{"gzip", "br", "zstd"} {
		if d := judge(name, encode(t, name, secret)); d.Action != Deny || d.Unjudged != "" {
			t.Errorf("%s secret: %+v", name, d)
		}
		if d := judge(name, encode(t, name, plain)); d.Action != Allow || d.Unjudged != "" {
			t.Errorf("%s plain: %+v", name, d)
		}
		whole := encode(t, name, plain)
		for what, body := range map[string][]byte{"cut": whole[:len(whole)-3], "trailing": append(whole[:len(whole):len(whole)], "xx"...), "not encoded": []byte("plain text here")} {
			if d := judge(name, body); d.Action != Deny || !strings.Contains(d.Unjudged, name) && !strings.Contains(d.Unjudged, "after the end") {
				t.Errorf("%s %s must count as a match: %+v", name, what, d)
			}
		}
		if d := judge(name, nil); d.Action != Allow || d.Unjudged != "" {
			t.Errorf("%s without a body: %+v", name, d)
		}
	}
	twice := encode(t, "zstd", encode(t, "gzip", secret))
	if d := judge("gzip, zstd", twice); d.Action != Deny || d.Unjudged != "" {
		t.Errorf("two encodings: %+v", d)
	}
	if d := judge("lzma", plain); d.Action != Deny || d.Unjudged == "" {
		t.Errorf("unknown encoding: %+v", d)
	}
	bomb := encode(t, "gzip", make([]byte, content.MaxDecoded+1))
	if d := judge("gzip", bomb); d.Action != Deny || !strings.Contains(d.Unjudged, content.ErrTooMuch.Error()) {
		t.Errorf("bomb: %+v", d)
	}
	allow := mustParse(t, one("allow", "{body_contains: padding}"))
	if d := Decide(allow, Request{Head{"POST", "h", "/", map[string][]string{"content-encoding": {"gzip"}}}, []byte("padding")}); d.Action != Deny {
		t.Errorf("an undecodable body was allowed: %+v", d)
	}
}

func TestParseRefuses(t *testing.T) {
	head := "id: t\nversion: 1\ndefault: allow\nrules:\n- id: r\n  action: deny\n"
	for _, c := range []struct {
		text      string
		line, col int
		msg       string
	}{
		{"", 0, 0, "empty"},
		{"a: [", 1, 0, "did not find"},
		{"[]", 1, 1, "not a mapping"},
		{"id: t\nversion: 1\ndefault: allow\nrules: []\nextra: 1\n", 5, 1, `unknown key "extra"`},
		{"version: 1\ndefault: allow\nrules: []", 1, 1, "id is missing"},
		{"id: t\nversion: 1\nrules: []", 1, 1, "default is missing"},
		{"id: t\nversion: 1\ndefault: log\nrules: []", 3, 10, "none of"},
		{"id: t\nid: u", 2, 1, "twice"},
		{"id: t\nversion: 1\ndefault: allow\nrules: []\n---\na: 1\n", 5, 1, "more than one document"},
		{head, 5, 3, "no when"},
		{head + "  when: {}\n", 7, 9, "empty when"},
		{head + "  when:\n    body_contain: x\n", 8, 5, "unknown condition"},
		{head + "  when:\n    body_matches: '('\n", 8, 19, "missing closing"},
		{head + "  when:\n    body_larger_than: 2XB\n", 8, 23, "not a size"},
		{head + "  when:\n    domains: ['https://x']\n", 8, 15, "not a domain"},
		{head + "  when:\n    domains: ['*.x.com']\n", 8, 15, "not a domain"},
		{head + "  when:\n    model_missing: maybe\n", 8, 20, "neither true"},
		{head + "  when:\n    secrets: [nope]\n", 8, 15, "no detector"},
		{head + "  when:\n    cel: 'size(tools)'\n", 8, 10, "not bool"},
		{head + "  when:\n    cel: 'nope > 1'\n", 8, 10, "undeclared reference"},
		{head + "  when: &a {methods: GET}\n- id: s\n  action: deny\n  when: *a\n", 10, 9, "not a mapping"},
		{head + "  when: {methods: GET}\n- id: r\n  action: deny\n  when: {methods: GET}\n", 8, 3, "already"},
		{"{\n\t\"id\": \"t\",\n\t\"x\": 1\n}", 3, 2, "unknown key"},
	} {
		b, err := Parse([]byte(c.text))
		var pe *ParseError
		if b != nil || !errors.As(err, &pe) {
			t.Errorf("%q: %v, %v", c.text, b, err)
			continue
		}
		if pe.Line != c.line || pe.Col != c.col || !strings.Contains(pe.Msg, c.msg) {
			t.Errorf("%q: %v, want line %d, column %d, %q", c.text, err, c.line, c.col, c.msg)
		}
	}
}
