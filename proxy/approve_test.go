package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ryehq/rye/approvals"
)

func TestApproval(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "approvals")
	store, err := approvals.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, bundle, nil, func(c *Config) { c.Approvals, c.Session = store, "s1" })
	n := 0
	ask := func(path, body string, status int) (approval string) {
		t.Helper()
		res, err := l.client(true).Post("https://model.test"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status {
			t.Fatalf("%d %s %v, want %d", res.StatusCode, text, err, status)
		}
		d := l.decision(n)
		n++
		if status == http.StatusForbidden && d.Approval != "" && d.Decision == "require_approval" && !strings.Contains(string(text), "rye approve "+d.Approval) {
			t.Errorf("the client is not told what to do: %s", text)
		}
		return d.Approval
	}
	const body = `{"x":"secret-body"}`
	first := ask("/v1/x?key=secret-query", body, 403)
	if first == "" || ask("/v1/x?key=secret-query", body, 403) != first {
		t.Error("a retry is another request")
	}
	for _, other := range []string{ask("/v1/x?key=2", body, 403), ask("/v1/y?key=secret-query", body, 403), ask("/v1/x?key=secret-query", "{}", 403)} {
		if other == first {
			t.Error("another request is the same")
		}
	}
	if _, err := store.Approve(first, "someone (uid 7)", 0); err != nil {
		t.Fatal(err)
	}
	ask("/v1/x?key=secret-query", body, 200)
	d := l.decision(n - 1)
	if _, err := time.Parse(time.RFC3339, d.AnsweredAt); err != nil || d.Decision != "allow" || d.Rule != "nomodel" || d.Approval != first || d.AnsweredBy != "someone (uid 7)" || d.AnsweredFor != "this request" {
		t.Errorf("%+v", d)
	}
	if l.reached() != "POST /v1/x?key=secret-query "+body {
		t.Errorf("reached: %q", l.reached())
	}
	again := ask("/v1/x?key=secret-query", body, 403)
	if again == first {
		t.Error("one approval, two requests")
	}
	if _, err := store.Deny(again, "someone"); err != nil {
		t.Fatal(err)
	}
	ask("/v1/x?key=secret-query", body, 403)
	if d := l.decision(n - 1); d.Decision != "deny" || d.AnsweredBy != "someone" {
		t.Errorf("%+v", d)
	}
	b, err := os.ReadFile(filepath.Join(dir, "approvals.json"))
	if err != nil || !strings.Contains(string(b), `"session": "s1"`) || strings.Contains(string(b)+l.ledger(), "secret-") {
		t.Errorf("%v\n%s", err, b)
	}

	// With a store that cannot be read nothing passes, and it is said.
	if err := os.WriteFile(filepath.Join(dir, "approvals.json"), []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask("/v1/x", "{}", 403)
	if d := l.decision(n - 1); d.Error != "approvals" || d.Decision != "require_approval" || !strings.Contains(d.Reason, "cannot be kept") {
		t.Errorf("%+v", d)
	}
}

// Each API's clients find the message where they look for it, and all of rye's fields in error.
func TestRefusalShapes(t *testing.T) {
	l := newLab(t, bundle, nil, nil)
	for i, c := range []struct {
		path  string
		check func(map[string]any, map[string]any) bool
	}{
		{"/v1/messages", func(top, e map[string]any) bool {
			return top["type"] == "error" && top["request_id"] == e["request_id"]
		}},
		{"/v1/responses", func(top, e map[string]any) bool { return e["code"] == "rye_policy" && top["type"] == nil }},
		{"/v1/chat/completions", func(top, e map[string]any) bool { return e["code"] == "rye_policy" }},
		{"/v1beta/models/g:streamGenerateContent", func(top, e map[string]any) bool { return e["code"] == 403.0 && e["status"] == "PERMISSION_DENIED" }},
	} {
		res, err := l.client(true).Post("https://model.test"+c.path, "application/json", strings.NewReader(`{"model":"m","x":"`+planted+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		var top struct {
			all   map[string]any
			Error map[string]any
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || json.Unmarshal(b, &top) != nil || json.Unmarshal(b, &top.all) != nil {
			t.Fatalf("%s %v", b, err)
		}
		e, d := top.Error, l.decision(i)
		if res.StatusCode != 403 || e["type"] != "rye_policy" || e["rule_id"] != "key" || e["rule_version"] != "2" || e["bundle"] != "lab@4" || e["decision"] != "deny" ||
			e["reason"] != "a private key" || e["request_id"] != d.ID || e["message"] != "rye: refused by policy lab@4, rule key: a private key ["+d.ID+"]" || !c.check(top.all, e) {
			t.Errorf("%s: %s", c.path, b)
		}
	}
}
