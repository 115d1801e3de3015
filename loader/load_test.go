package loader

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Every probe answers, a no says why, and what is needed and missing says how to get it.
func TestDetect(t *testing.T) {
	f := Detect()
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

func TestPrivLoadWithoutCgroup(t *testing.T) {
	if m := Detect().Missing(); len(m) > 0 {
		t.Skipf("%s: %s", m[0].Name, m[0].Why)
	}
	p, err := Load(Options{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer p.Close()
	if err := p.Attach(Options{}); err != nil {
		t.Fatal(err)
	}
	if len(p.Hooks()) != 5 || len(p.Gaps()) != 4 {
		t.Errorf("hooks %v, gaps %v", p.Hooks(), p.Gaps())
	}
	if err := p.Adopt(uint32(unix.Getpid()), 1); err != nil || !p.Member(uint32(unix.Getpid())) {
		t.Errorf("adopt: %v", err)
	}
}
