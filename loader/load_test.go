package loader

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Every probe answers, a no says why, and what is needed and missing says how to get it.
func TestDetect(t *testing.T) {
	f := found()
	if f.Kernel == "" || len(f.List) < 8 {
		t.Fatalf("%+v", f)
	}
	for _, x := range f.List {
		switch {
		case x.Answer != Yes && x.Answer != No && x.Answer != Unknown:
			t.Errorf("%s: answer %q", x.Name, x.Answer)
		case x.Answer != Yes && x.Why == "":
			t.Errorf("%s: %s without a reason", x.Name, x.Answer)
		case x.Needed && x.Answer == No && x.Fix == "":
			t.Errorf("%s is needed, missing, and no fix is given", x.Name)
		}
	}
	if (f.Tier == "none") != (len(f.Missing()) > 0) {
		t.Errorf("tier %s with %d missing", f.Tier, len(f.Missing()))
	}
}

// Every tier that the kernel offers must load and attach whole: a program that a verifier refuses is a bug,
// not a gap. Only hooks that this kernel does not have may be missing. The best one is what Load picks itself,
// and without a cgroup processes can be adopted on each.
func TestPrivTiers(t *testing.T) {
	f := found()
	if m := f.Missing(); len(m) > 0 {
		t.Skipf("%s: %s", m[0].Name, m[0].Why)
	}
	best := f.probe.bestTier()
	if f.Tier != string(best) {
		t.Errorf("best tier %s, detected %s", best, f.Tier)
	}
	t.Logf("best tier: %s", best)
	for _, tier := range Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			if err := f.Available(tier); err != nil {
				t.Logf("not here: %v", err)
				return
			}
			o := Options{Tier: tier, Found: f}
			if tier == best {
				o = Options{} // nothing said and nothing known: Load finds out
			}
			p, err := Load(o)
			if err != nil {
				t.Fatalf("%+v", err)
			}
			defer p.Close()
			if err := p.Attach(o); err != nil {
				t.Fatal(err)
			}
			if p.Tier() != tier {
				t.Errorf("loaded %s", p.Tier())
			}
			if tier == Tracepoint && (len(p.Hooks()) != 5 || len(p.Gaps()) != 4) {
				t.Errorf("hooks %v, gaps %v", p.Hooks(), p.Gaps())
			}
			if err := p.Adopt(uint32(unix.Getpid()), 1); err != nil || !p.Member(uint32(unix.Getpid())) {
				t.Errorf("adopt: %v", err)
			}
			for _, g := range p.Gaps() {
				// a struct by value among the arguments: trampolines refuse it before 6.0
				if _, ok := socketHooks[g.Hook]; !ok && !strings.Contains(fmt.Sprint(g.Err), "type STRUCT is unsupported") {
					t.Errorf("gap %s: %+v", g.Hook, g.Err)
				}
			}
			t.Logf("%d hooks", len(p.Hooks()))
			for _, b := range p.Blind() {
				t.Logf("blind to %s: %s", b.What, b.Why)
			}
		})
	}
	if _, err := Load(Options{Tier: "sight"}); !errors.Is(err, ErrTier) {
		t.Errorf("an unknown tier: %v", err)
	}
}
