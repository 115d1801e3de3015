package rules

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

// brief is a file's rules, one a line: decision tool pattern-or-words.
func brief(f *event.RulesLoaded) []string {
	out := []string{}
	for _, r := range f.Rules {
		s := r.Decision + " " + r.Tool
		if r.Pattern != "" {
			s += " " + r.Pattern
		}
		for _, w := range r.Words {
			s += " " + strings.Join(w, "|")
		}
		out = append(out, s)
	}
	return out
}

func TestClaude(t *testing.T) {
	for _, c := range []struct {
		name, in  string
		want      []string
		err, note string
	}{
		{"the three lists, in the order they are asked", `{"permissions":{"allow":["Bash(npm run *)","Edit"],"deny":["Read(./.env)"],"ask":["Bash(git push:*)"]}}`,
			[]string{"deny Read ./.env", "ask Bash git push:*", "allow Bash npm run *", "allow Edit"}, "", ""},
		{"a star is everything", `{"permissions":{"allow":["Bash(*)","mcp__srv__*"]}}`, []string{"allow Bash", "allow mcp__srv__*"}, "", ""},
		{"parentheses inside", `{"permissions":{"allow":["Bash(echo $(id))"]}}`, []string{"allow Bash echo $(id)"}, "", ""},
		{"modes and folders", `{"permissions":{"defaultMode":"acceptEdits","additionalDirectories":["../docs"]}}`,
			[]string{"allow defaultMode acceptEdits", "allow additionalDirectory ../docs"}, "", ""},
		{"a mode that asks", `{"permissions":{"defaultMode":"plan"}}`, []string{"ask defaultMode plan"}, "", ""},
		{"hooks", `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"./check"},{"type":"command","command":"./check"}]}],"Stop":[{"hooks":[{"type":"command","command":"bell"}]}]},"permissions":{"allow":["WebFetch(domain:example.com)"]}}`,
			[]string{"allow WebFetch domain:example.com", "allow hook ./check", "allow hook bell"}, "", "hooks at PreToolUse, Stop"},
		{"a prompt hook starts nothing", `{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"rm x"}]}]}}`, []string{"allow hook.prompt rm x"}, "", "hooks at Stop"},
		{"status line", `{"statusLine":{"type":"command","command":"prompt.sh"}}`, []string{"allow statusline prompt.sh"}, "", ""},
		{"nothing of this kind", `{"model":"x"}`, []string{}, "", ""},
		{"byte order mark", "\ufeff{\"permissions\":{\"allow\":[\"Edit\"]}}", []string{"allow Edit"}, "", ""},
		{"keys are exact", `{"Permissions":{"allow":["Edit"]},"permissions":{"Allow":["Edit"]}}`, []string{}, "", ""},
		{"the last of two keys counts", `{"permissions":{"allow":["Edit"],"allow":["Read"]}}`, []string{"allow Read"}, "", ""},
		{"an empty specifier is not everything", `{"permissions":{"allow":["Bash()","Bash(","(x)","Bash (x)",""]}}`, []string{}, "", "no form that is known"},
		{"not strings", `{"permissions":{"allow":[1,null,"Edit"],"deny":"Bash"}}`, []string{"allow Edit"}, "", "are no strings"},
		{"syntax", `{"permissions":{"allow":["Edit"],}}`, []string{}, "syntax error at byte 34", "does not apply"},
		{"comments", "{\n// x\n}", []string{}, "syntax error", "does not apply"},
		{"no object", `[]`, []string{}, "not a JSON object", "does not apply"},
		{"null", `null`, []string{}, "not a JSON object", "does not apply"},
		{"empty", ``, []string{}, "syntax error at byte 0", "does not apply"},
		{"permissions of another kind", `{"permissions":[]}`, []string{}, "permissions: not a JSON object", "does not apply"},
		{"too long", `{"x":"` + strings.Repeat("x", MaxBytes) + `"}`, []string{}, "not read by rye: the file is too long", ""},
		{"deep", strings.Repeat("[", 20000), []string{}, "not a JSON object", "does not apply"},
	} {
		f := Claude("/p", User, []byte(c.in))
		if got := brief(f); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if !strings.Contains(f.Error, c.err) || (f.Error == "") != (c.err == "") || !strings.Contains(f.Note, c.note) || c.note == "" && f.Note != "" {
			t.Errorf("%s: error %q, note %q", c.name, f.Error, f.Note)
		}
	}
}

func TestCodex(t *testing.T) {
	for _, c := range []struct {
		name, in  string
		want      []string
		err, note string
	}{
		{"as saved by an answer", "prefix_rule(pattern=[\"git\", \"status\"], decision=\"allow\")\n", []string{"allow command git status"}, "", ""},
		{"allow is the default", `prefix_rule(pattern=["ls"])`, []string{"allow command ls"}, "", ""},
		{"alternatives, first word too", `prefix_rule(pattern=[["git", "hub"], ["push", "fetch"], "-v"], decision="prompt", justification="asks")`, []string{"ask command git|hub push|fetch -v"}, "", ""},
		{"forbidden", `prefix_rule(pattern=["rm"], decision="forbidden")`, []string{"deny command rm"}, "", ""},
		{"network", `network_rule(host="API.Example.com.:443", protocol="https_connect", decision="allow")`, []string{"allow network https://api.example.com"}, "", ""},
		{"network, address", `network_rule(host="[::1]:80", protocol="http", decision="deny")`, []string{"deny network http://::1"}, "", ""},
		{"host executable", `host_executable(name="git", paths=["/usr/bin/git"])`, []string{}, "", "git stands for /usr/bin/git only"},
		{"examples that hold", `prefix_rule(pattern=["git", ["log", "show"]], match=[["git", "log"], "git show 'a b'", "/usr/bin/git log"], not_match=["git", "git push", "gitlog"])`, []string{"allow command git log|show"}, "", ""},
		{"a function, a loop and a list", "tools = [\"go\", \"make\"]\ndef f(t):\n  prefix_rule(pattern=[t, \"test\"])\n[f(t) for t in tools]\n", []string{"allow command go test", "allow command make test"}, "", ""},
		{"comment and nothing", "# nothing\n", []string{}, "", ""},

		{"example", `prefix_rule(pattern=["git", "log"], match=["git push"])`, []string{}, "line 1: a match example does not match", "drops all rules"},
		{"counter-example", "\nprefix_rule(pattern=[\"git\"], not_match=[\"git push\"])", []string{}, "line 2: a not_match example matches", "drops all rules"},
		{"example at another path", `host_executable(name="git", paths=["/usr/bin/git"])` + "\n" + `prefix_rule(pattern=["git"], match=["/tmp/git x"])`, []string{}, "match example", "drops all rules"},
		{"one mistake drops the file", "prefix_rule(pattern=[\"ls\"])\nprefix_rule(pattern=[\"ls\"]\n", []string{}, "line ", "drops all rules"},
		{"no such decision", `prefix_rule(pattern=["ls"], decision="maybe")`, []string{}, "decision is none of", "drops all rules"},
		{"no pattern", `prefix_rule(decision="allow")`, []string{}, "pattern is missing", "drops all rules"},
		{"empty pattern", `prefix_rule(pattern=[])`, []string{}, "pattern is missing", "drops all rules"},
		{"no alternatives", `prefix_rule(pattern=["a", []])`, []string{}, "without alternatives", "drops all rules"},
		{"numbers", `prefix_rule(pattern=["a", 1])`, []string{}, "neither string nor list", "drops all rules"},
		{"empty justification", `prefix_rule(pattern=["a"], justification=" ")`, []string{}, "justification is empty", "drops all rules"},
		{"unknown argument", `prefix_rule(pattern=["a"], patern=["b"])`, []string{}, "patern is not known", "drops all rules"},
		{"by place", `prefix_rule(["a"], "prompt", [["a"]], [["b"]], "why")` + "\n" + `network_rule("a.b", "https", "deny", "why")`, []string{"ask command a", "deny network https://a.b"}, "", ""},
		{"top level", "for t in [\"a\", \"b\"]:\n  prefix_rule(pattern=[t])\nif True:\n  x = 1\nx = 2\n", []string{"allow command a", "allow command b"}, "", ""},
		{"tuple", `prefix_rule(pattern=("a",))`, []string{}, "pattern is no list", "drops all rules"},
		{"deny is for the network", `prefix_rule(pattern=["a"], decision="deny")`, []string{}, "decision is none of", "drops all rules"},
		{"twice", `prefix_rule(["a"], pattern=["b"])`, []string{}, "given twice", "drops all rules"},
		{"too many", `host_executable("a", ["/a"], 1)`, []string{}, "too many arguments", "drops all rules"},
		{"unknown name", `prefix_rules(pattern=["a"])`, []string{}, "undefined: prefix_rules", "drops all rules"},
		{"print", `print("a")`, []string{}, "print is not known", "drops all rules"},
		{"annotation", "def f(x: str) -> None:\n  prefix_rule(pattern=[x])\nf(\"a\")", []string{}, "not read by rye: ", "Codex may"},
		{"f-string", `x = f"{a}"`, []string{}, "not read by rye: ", "Codex may"},
		{"wildcard host", `network_rule(host="*.example.com", protocol="https", decision="allow")`, []string{}, "host is no host name", "drops all rules"},
		{"relative executable", `host_executable(name="git", paths=["git"])`, []string{}, "not an absolute path", "drops all rules"},
		{"load", `load("x", "y")`, []string{}, "load is not allowed", "drops all rules"},
		{"while", "def f():\n  while True:\n    pass\nf()", []string{}, "", "drops all rules"},
		{"recursion", "def f():\n  f()\nf()", []string{}, "called recursively", "Codex may"},

		{"memory by a built-in", `x = list(range(1 << 40))`, []string{}, "line 1 uses", "Codex may"},
		{"a built-in by another name", "def f():\n  range = 1\nx = range\n", []string{}, "a built-in function", "Codex may"},
		{"memory by repetition", `x = "x" * 1000000000`, []string{}, "operator *", "Codex may"},
		{"memory by addition", "a = [1]\nb = a + a", []string{}, "operator +", "Codex may"},
		{"comparison", "a = [1] == [1]", []string{}, "operator ==", "Codex may"},
		{"method", `x = "a".join(["b"])`, []string{}, "line 1 uses", "Codex may"},
		{"time", "l = [1,2,3,4,5,6,7,8,9,10]\ndef f():\n  for a in l:\n    for b in l:\n      for c in l:\n        for d in l:\n          for e in l:\n            for g in l:\n              x = a\nf()", []string{}, "runs too long", "Codex may"},
		{"many rules", "l = [1,2,3,4,5,6,7,8,9,10]\n[prefix_rule(pattern=[\"a\"]) for a in l for b in l for c in l for d in l]", []string{}, "more than 4096", "Codex may"},
		{"nesting", "x = " + strings.Repeat("[", 5000), []string{}, "nests too deep", "Codex may"},
		{"brackets in strings do not nest", `prefix_rule(pattern=["` + strings.Repeat("[", 100) + `"])` + " # " + strings.Repeat("(", 100), []string{"allow command " + strings.Repeat("[", 100)}, "", ""},
		{"negations", "x = " + strings.Repeat("not ", 60000) + "1", []string{}, "nests too deep", "Codex may"},
		{"signs", "x = " + strings.Repeat("-", MaxBytes-10) + "1", []string{}, "nests too deep", "Codex may"},
		{"too long", "#" + strings.Repeat("x", MaxBytes), []string{}, "too long", "Codex may"},
	} {
		f := Codex("/p", User, []byte(c.in))
		if got := brief(f); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		fails := c.note == "drops all rules" || c.note == "Codex may"
		if !strings.Contains(f.Error, c.err) || (f.Error != "") != fails || !strings.Contains(f.Note, c.note) || c.note == "" && f.Note != "" {
			t.Errorf("%s: error %q, note %q", c.name, f.Error, f.Note)
		}
		if len(f.Error) > 500 {
			t.Errorf("%s: an error of %d bytes", c.name, len(f.Error))
		}
	}
}

// A rule keeps its id when the file around it changes, and two rules that differ have two.
func TestIDs(t *testing.T) {
	a := Codex("/a", User, []byte(`prefix_rule(pattern=["git", "status"], decision="allow")`)).Rules[0]
	b := Codex("/b", Project, []byte("# moved\n\nprefix_rule(decision = 'allow', pattern = ['git','status'], justification='x')")).Rules[0]
	if a.ID != b.ID || len(a.ID) != 12 || a.Line != 1 || b.Line != 3 {
		t.Errorf("%+v %+v", a, b)
	}
	seen := map[string]string{}
	for _, r := range Codex("/a", User, []byte("prefix_rule(pattern=['a','b'])\nprefix_rule(pattern=[['a','b']])\nprefix_rule(pattern=['a b'])\nprefix_rule(pattern=['a','b'],decision='prompt')\nnetwork_rule(host='a',protocol='http',decision='allow')")).Rules {
		if other, ok := seen[r.ID]; ok {
			t.Errorf("%s and %s have one id", other, Text(r))
		}
		seen[r.ID] = Text(r)
	}
	c := Claude("/c", User, []byte("{\n\"permissions\": {\n\"allow\": [\n\"Bash(a && b)\"]}}")).Rules[0]
	if c.Line != 4 || c.ID == "" {
		t.Errorf("%+v", c)
	}
}

func TestSplit(t *testing.T) {
	for in, want := range map[string]string{
		`a b`: `["a" "b"]`, `a 'b c' "d \"e"`: `["a" "b c" "d \"e"]`, `''`: `[""]`, `a\ b`: `["a b"]`, `"a\b"`: `["a\\b"]`, `a # b`: `["a"]`, ` `: `[]`, `a#b`: `["a#b"]`,
	} {
		if got, ok := split(in); !ok || fmt.Sprintf("%q", got) != want {
			t.Errorf("split(%q) = %q, %v; want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{`'a`, `"a`, `a\`} {
		if got, ok := split(in); ok {
			t.Errorf("split(%q) = %q", in, got)
		}
	}
}

// What holds for any bytes: it ends, it does not panic, and every rule has an id, a tool and a decision.
func sane(t *testing.T, f *event.RulesLoaded) {
	if len(f.Error) > 1000 || len(f.Note) > 4000 || len(f.Rules) > maxRules {
		t.Fatalf("out of bounds: %d %d %d", len(f.Error), len(f.Note), len(f.Rules))
	}
	if f.Error != "" && len(f.Rules) > 0 {
		t.Fatalf("rules of a file that was refused: %q", f.Error)
	}
	for _, r := range f.Rules {
		if len(r.ID) != 12 || r.Tool == "" || r.Decision != "allow" && r.Decision != "ask" && r.Decision != "deny" {
			t.Fatalf("%+v", r)
		}
	}
}

func FuzzClaude(f *testing.F) {
	f.Add([]byte(`{"permissions":{"allow":["Bash(a *)"],"defaultMode":"auto","additionalDirectories":["x"]},"hooks":{"Stop":[{"hooks":[{"command":"x"}]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) { sane(t, Claude("/p", Local, b)) })
}

func FuzzCodex(f *testing.F) {
	for _, s := range []string{
		`prefix_rule(pattern=["a", ["b","c"]], decision="prompt", match=["a b"], not_match=[["a"]])`, `network_rule(host="h", protocol="http", decision="deny")`,
		`host_executable(name="a", paths=["/a"])`, "def f(x):\n  if x:\n    return 1\n[f(x) for x in [1]]", `x = "" if not 1 else ''''''`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sane(t, Codex("/p", User, b)) })
}
