// Package deps holds the direction of dependencies, in the manner of go/build's deps_test: the table below
// is a statement of policy. A package may import the packages its line names and nothing else of rye, and
// those outside packages that the second table reserves only if it is listed there.
package deps

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ryehq/rye/"

// From leaves to the top. cmd/rye is the only place where siblings meet.
var allowed = map[string][]string{
	"event":             {},
	"proctree":          {"event"},
	"bpf":               {},
	"loader":            {"bpf"},
	"collector":         {"bpf", "event"},
	"wrapper":           {},
	"wrapper/cgroup":    {},
	"wrapper/screen":    {"event"},
	"ingest":            {"event", "toolcall"},
	"ingest/codexstate": {"event"},
	"ingest/rules":      {"event"},
	"ledger":            {"event"},
	"index":             {},
	"verify/shell":      {},
	"verify":            {"event", "proctree", "verify/shell"},
	"report":            {"verify"},
	"policy/content":    {},
	"policy":            {"event", "policy/content"},
	"toolcall":          {"event"},
	"modelapi":          {},
	"approvals":         {},
	"proxy":             {"event", "policy", "policy/content", "modelapi", "toolcall", "approvals"},
	"packet":            {"event"},
	"vm":                {},

	"internal/bench":       {},
	"internal/bench/proxy": {"event", "ledger", "policy", "proxy"},
	"internal/conformance": {},
	"internal/scripted":    {},
	"internal/scenarios":   {"internal/scripted", "verify"},
	"internal/deps":        {},
	"internal/vmtest":      {},
	"internal/icount":      {},
	"internal/testutil":    {"event", "loader", "collector"},
}

// Outside packages that only some may import.
var reserved = map[string][]string{
	"github.com/cilium/ebpf":     {"bpf", "loader", "collector", "internal/testutil"},
	"net/http":                   {"proxy", "cmd/rye", "internal/bench/proxy", "internal/testutil"},
	"os/exec":                    {"wrapper", "vm", "internal/bench", "internal/bench/proxy", "internal/scripted", "internal/scenarios", "internal/testutil", "cmd/rye"},
	"database/sql":               {"index", "ingest/codexstate"},
	"go.starlark.net":            {"ingest/rules"},
	"github.com/google/gopacket": {"packet"},
}

// Subpackages of these are part of them.
var roots = []string{"policy/content", "wrapper/screen", "verify/shell", "wrapper/cgroup"}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		list = append(list, p)
	}
}

func root(path string) string {
	for _, r := range roots {
		if path == r || strings.HasPrefix(path, r+"/") {
			return r
		}
	}
	return path
}

func TestDependencies(t *testing.T) {
	list := packages(t)
	if len(list) < 10 {
		t.Fatalf("only %d packages listed", len(list))
	}
	for _, p := range list {
		name := root(p.ImportPath)
		may, known := allowed[name]
		if !known && !strings.HasPrefix(name, "cmd/") {
			t.Errorf("%s is in no line of the table: say what it may import", name)
			continue
		}
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, module); ok {
				if own = root(own); own != name && known && !slices.Contains(may, own) {
					t.Errorf("%s imports %s; it may import %v", name, own, may)
				}
				continue
			}
			for outside, who := range reserved {
				if (i == outside || strings.HasPrefix(i, outside+"/")) && !slices.Contains(who, name) {
					t.Errorf("%s imports %s; only %v may", name, i, who)
				}
			}
		}
	}
}

// verify, policy, proctree and the rule readers say the same on any machine at any time: nothing in them may reach out.
func TestPure(t *testing.T) {
	for _, p := range packages(t) {
		switch root(p.ImportPath) {
		case "verify", "verify/shell", "policy", "policy/content", "modelapi", "toolcall", "proctree", "event", "ingest/rules":
		default:
			continue
		}
		for _, i := range p.Imports {
			switch i {
			case "os", "net", "syscall", "math/rand", "math/rand/v2", "crypto/rand", "golang.org/x/sys/unix":
				t.Errorf("%s imports %s: it must not reach out of the process", p.ImportPath, i)
			}
		}
	}
}
