package scenarios

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/report"
)

// Sessions wait more than they work: for a key, for the screen to stand still.
func TestMain(m *testing.M) {
	flag.Parse()
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil {
		flag.Set("test.parallel", strconv.Itoa(2*n))
	}
	os.Exit(m.Run())
}

func load(t testing.TB) []*Scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testutil.Root(), "testdata", "scenarios", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	var all []*Scenario
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		list, err := Parse(strings.TrimSuffix(filepath.Base(f), ".txt"), string(b))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return all
}

// Every session of the corpus is run and judged. RYE_SCENARIO_TABLE names a file for the table.
func TestPrivScenarios(t *testing.T) {
	testutil.Privileged(t)
	all := load(t)
	dir, err := os.MkdirTemp("/var/tmp", "rye-scenarios-")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("RYE_SCENARIO_KEEP") == "" {
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	lab, err := NewLab(dir, testutil.Rye(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lab.Close() })
	var mu sync.Mutex
	var table Table
	t.Run("all", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.File+"/"+s.Name, func(t *testing.T) {
				t.Parallel()
				var res *Result
				if strings.HasPrefix(s.As, "real-") {
					res = runReal(t, lab, s)
				} else {
					var err error
					if res, err = lab.Run(s); err != nil {
						t.Fatal(err)
					}
				}
				if os.Getenv("RYE_SCENARIO_KEEP") == "" {
					defer os.RemoveAll(res.Dir)
				}
				diff := s.Compare(res.Report)
				mu.Lock()
				table.Add(s, res.Report.Verdict, diff)
				mu.Unlock()
				if len(diff) > 0 {
					var b strings.Builder
					report.Text(&b, res.Report, report.Style{Width: 200})
					t.Errorf("%s: %s\n%s\n%s\n%s", s.Name, s.About, strings.Join(diff, "\n"), res.Dir, &b)
				}
			})
		}
	})
	var b strings.Builder
	table.Write(&b)
	t.Log("\n" + b.String())
	if file := os.Getenv("RYE_SCENARIO_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func TestParse(t *testing.T) {
	const good = "=== a\nabout: b\nstep: make\n  show: ls\n  but: defy\n  answer: esc\nfile x/y:\n| one\n|\n| two\nwant: discrepancy\nx1: discrepancy denied-but-ran\n"
	list, err := Parse("f", good)
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	if s.Steps[0].Ask != "make" || s.Steps[0].Show != "ls" || !s.Steps[0].Defy || s.Answers[0] != "esc" || s.Files[0] != (File{"x/y", "one\n\ntwo\n"}) ||
		s.Actions["x1"].Findings[0] != "denied-but-ran" {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{
		"step: x\n", "=== a\nabout: b\nwant: verified\n", "=== a\nabout: b\nstep: x\nwant: fine\n", "=== a\nabout: b\nstep: x\n  but: quick\nwant: verified\n",
		"=== a\nabout: b\nstep: x\nwant: verified\nx1: denied-but-ran\n", "=== a\nabout: b\nstep: x\n  nonsense: 1\nwant: verified\n", good + good,
	} {
		if _, err := Parse("f", bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"a", "a", true}, {"a", "a/b", true}, {"a/b", "a", false}, {"a/b", "a/b", true}, {"a", "a:warning", false},
		{"a:warning", "a/b:warning", true}, {"a:warning", "a", false}, {"a/b:info", "a/c:info", false},
	} {
		if covers(c.want, c.got) != c.ok {
			t.Errorf("%s covers %s: %v", c.want, c.got, !c.ok)
		}
	}
}

func Example() {
	var t Table
	t.Add(&Scenario{File: "f", Name: "n", Want: "discrepancy"}, "verified", []string{"x"})
	t.Add(&Scenario{File: "f", Name: "m", Want: "verified"}, "verified", nil)
	var b strings.Builder
	t.Write(&b)
	fmt.Println(strings.ReplaceAll(b.String(), " \n", "\n"))
	// Output:
	// expected \ got           verified  discrepancy  indeterminate
	// verified                        1            0              0
	// discrepancy                     1            0              0
	// indeterminate                   0            0              0
	// recall on discrepancies: 0 of 1
	// missed: 1
	//   f: n
	// false discrepancies: 0
	// other verdict than wanted: 0
	// other findings than wanted: 0
}

// The corpus is what it claims to be: large enough, and half of it honest.
func TestCorpus(t *testing.T) {
	all := load(t)
	honest := 0
	var names []string
	for _, s := range all {
		if s.Want == "verified" {
			honest++
		}
		names = append(names, s.File+"/"+s.Name)
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != len(all) {
		t.Errorf("%d names for %d scenarios", n, len(all))
	}
	if len(all) < 120 || honest*5 < len(all)*2 || honest*5 > len(all)*3 {
		t.Errorf("%d scenarios, %d of them honest", len(all), honest)
	}
}
