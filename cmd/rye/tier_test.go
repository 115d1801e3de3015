package main

import (
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/loader"
)

// Every tier that this kernel has records a session, says its name, and the best is taken without being asked.
func TestPrivTierFlag(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	best := ""
	for _, tier := range loader.Tiers() {
		_, errs, code := l.wrap("-q", "--tier", string(tier), "--name", string(tier), "--", "sh", "-c", "echo x > made")
		if err := tier.Available(); err != nil {
			if code != exitOwnFailure || !strings.Contains(errs, "not on this machine") {
				t.Errorf("%s is not here (%v): status %d, %s", tier, err, code, errs)
			}
			continue
		}
		if best == "" {
			best = string(tier)
		}
		if code != 0 {
			t.Fatalf("%s: status %d\n%s", tier, code, errs)
		}
		events := l.events(string(tier))
		about := testutil.Of[*event.ObserverAttached](events)
		if len(about) != 1 || about[0].Tier != string(tier) || about[0].SelfTest != "passed" {
			t.Errorf("%s: %+v", tier, about)
		}
		made := 0
		for _, o := range testutil.Of[*event.FileOpen](events) {
			if strings.HasSuffix(o.Path, "/made") && o.Result == 0 {
				made++
			}
		}
		if made != 1 {
			t.Errorf("%s: the file is recorded %d times", tier, made)
		}
	}
	if _, errs, code := l.wrap("-q", "--name", "best", "--", "true"); code != 0 {
		t.Fatal(errs)
	}
	if about := testutil.Of[*event.ObserverAttached](l.events("best")); len(about) != 1 || about[0].Tier != best {
		t.Errorf("tier %+v without being asked, %s is there", about, best)
	}
	if _, errs, code := l.wrap("--tier", "sight", "--", "true"); code != exitOwnFailure || !strings.Contains(errs, "lsm, fentry, kprobe, tracepoint") {
		t.Errorf("status %d: %s", code, errs)
	}
}
