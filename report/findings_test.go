package report

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ryehq/rye/verify"
)

var update = flag.Bool("update", false, "write docs/findings.md")

// codes are the finding codes that verify declares, read from its source.
func codes(t *testing.T) (list []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../verify/report.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || !strings.HasPrefix(g.Doc.Text(), "Finding codes") {
			continue
		}
		for _, s := range g.Specs {
			lit, ok := s.(*ast.ValueSpec).Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatal("a finding code that is no literal")
			}
			code, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, code)
		}
	}
	return list
}

// Every code has exactly one explanation, and no explanation is of another code.
func TestEveryCodeIsExplained(t *testing.T) {
	want := codes(t)
	if len(want) < 20 {
		t.Fatalf("only %d codes found", len(want))
	}
	var got []string
	for _, e := range Explanations() {
		got = append(got, e.Code)
		if len(e.Means) < 40 || len(e.Do) < 10 {
			t.Errorf("%s is not explained: %+v", e.Code, e)
		}
		if x, ok := Explain(e.Code); !ok || x != e {
			t.Errorf("Explain(%q) = %+v, %v", e.Code, x, ok)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("explained %q\ndeclared  %q", got, want)
	}
	if _, ok := Explain("no-such-code"); ok {
		t.Error("an unknown code is explained")
	}
}

func TestExplanationFits(t *testing.T) {
	for _, e := range Explanations() {
		for _, line := range strings.Split(e.Text(60), "\n") {
			if utf8.RuneCountInString(line) > 60 {
				t.Errorf("%s: a row of %d columns: %s", e.Code, utf8.RuneCountInString(line), line)
			}
		}
	}
}

func TestFindingsPage(t *testing.T) {
	const page = "../docs/findings.md"
	if *update {
		if err := os.WriteFile(page, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Markdown() {
		t.Error("docs/findings.md is not as the explanations are: go test ./report -update")
	}
}

// An edit has no exec: that it was done is said, not "did not run".
func TestActionText(t *testing.T) {
	r := &verify.Report{Findings: []verify.Finding{{Code: verify.WriteOutside, Severity: verify.Warning, Message: "x\x1b[2J", Records: []uint64{4}, Action: "x1"}}}
	for _, c := range []struct {
		a    verify.Action
		want string
	}{
		{verify.Action{ID: "x1", Kind: "edit", Command: "a.txt", Link: "time", Allowed: verify.Allowed{Source: "terminal", Type: "this_time", ApprovalID: "a1"}}, "allowed by terminal this_time (a1); done, linked by time"},
		{verify.Action{ID: "x1", Kind: "edit", Command: "a.txt"}, "allowed by nothing that rye saw; did not run"},
		{verify.Action{ID: "x1", Kind: "command", Command: "ls", Link: "text", Root: &verify.Root{}, Findings: []int{0}}, `write-outside x\x1b[2J (x1, record 4)`},
	} {
		var b strings.Builder
		if err := Action(&b, r, &c.a, Style{}); err != nil || !strings.Contains(b.String(), c.want) || strings.Contains(b.String(), "\x1b") {
			t.Errorf("got %q (%v), want %q in it", b.String(), err, c.want)
		}
	}
}
