package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

// good is a session in which everything agrees; edit spoils its evidence before it is judged.
func good(t *testing.T, edit func(s *stranger)) *Report {
	t.Helper()
	s := newStranger(t)
	s.ask("touch a")
	s.bash("touch a").exec("touch", "a").exit()
	s.end()
	edit(s)
	return s.verify()
}

func TestEvidence(t *testing.T) {
	for _, c := range []struct {
		name     string
		edit     func(s *stranger)
		verdict  Verdict
		action   Verdict
		findings string
	}{
		{"whole", func(s *stranger) {}, Verified, Verified, ""},
		{"no observer", func(s *stranger) {
			s.events[1].Body = &event.ObserverAttached{Tier: "none", SelfTest: "not-run", Detail: "no capability"}
		}, Indeterminate, Indeterminate, "w:evidence-lost/no-observer"},
		{"no word of an observer", func(s *stranger) { s.events = append(s.events[:1:1], s.events[2:]...) }, Indeterminate, Indeterminate, "w:evidence-lost/no-observer"},
		{"self-test failed", func(s *stranger) { s.events[1].Body.(*event.ObserverAttached).SelfTest = "failed" }, Indeterminate, Indeterminate, "w:evidence-lost/self-test"},
		{"self-test not run", func(s *stranger) { s.events[1].Body.(*event.ObserverAttached).SelfTest = "not-run" }, Verified, Verified, "i:evidence-lost/self-test"},
		{"lost execs", func(s *stranger) { s.lose("process.exec", 0) }, Indeterminate, Indeterminate, "w:evidence-lost/lost"},
		{"lost opens", func(s *stranger) { s.lose("file.open", 0) }, Indeterminate, Indeterminate, "w:evidence-lost/lost"},
		{"lost nothing", func(s *stranger) {
			s.insert(&event.ObserverLost{Counts: map[string]uint64{"file.open": 0}, Final: true})
		}, Verified, Verified, ""},
		{"totals only", func(s *stranger) {
			s.insert(&event.ObserverLost{Counts: map[string]uint64{"file.open": 3}, Final: true})
		}, Indeterminate, Indeterminate, "w:evidence-lost/lost"},
		{"degraded", func(s *stranger) {
			s.events[len(s.events)-1].Body.(*event.SessionEnd).DegradedBy = []string{"the recording could not be written"}
		}, Indeterminate, Indeterminate, "w:evidence-lost/degraded"},
		{"interrupted, the action had ended", func(s *stranger) { s.events = s.events[:len(s.events)-1] }, Indeterminate, Verified, "w:evidence-lost/interrupted"},
		{"the ledger's reader says interrupted", func(s *stranger) { s.ledger.Interrupted = true }, Indeterminate, Verified, "w:evidence-lost/interrupted"},
		{"a changed record", func(s *stranger) { s.ledger.OK, s.ledger.Problem, s.ledger.BadRecord = false, "hash differs", 4 }, Indeterminate, Indeterminate, "w:ledger-broken"},
		{"a short ledger", func(s *stranger) { s.ledger.OK, s.ledger.Problem = false, "shorter than its newest checkpoint" }, Indeterminate, Indeterminate, "w:ledger-broken"},
		{"no start", func(s *stranger) { s.events = s.events[1:] }, Indeterminate, Indeterminate, "w:evidence-lost/no-start"},
		{"a straggler", func(s *stranger) {
			s.events[len(s.events)-1].Body.(*event.SessionEnd).Survivors = []event.Survivor{{Proc: s.root.key, Exe: "/usr/bin/x", Argv: []string{"x"}, Role: "straggler"}, {Exe: "/opt/codex", Role: "assistant-daemon"}}
		}, Verified, Verified, "i:evidence-lost/still-running"},
		{"the root's arguments were cut", func(s *stranger) { s.exec("bash").ArgvTruncated = true }, Indeterminate, Indeterminate, "w:evidence-lost/arguments-cut"},
		{"a child's arguments were cut", func(s *stranger) { s.exec("touch").ArgvTruncated = true }, Indeterminate, Indeterminate, "w:evidence-lost/arguments-cut"},
		{"arguments not read", func(s *stranger) { x := s.exec("bash"); x.Argv, x.Marks = nil, []string{"argv-unreadable"} }, Indeterminate, Indeterminate, "w:evidence-lost/arguments-cut"},
		{"the tree was not seen", func(s *stranger) {
			for i := range s.events {
				if x, ok := s.events[i].Body.(*event.ProcessExec); ok && x.Argv[0] == "bash" {
					x.Parent = event.ProcessKey{TGID: 7, StartNS: 3}
				}
				if _, ok := s.events[i].Body.(*event.ProcessFork); ok && s.events[i].Proc.TGID != 1000 {
					s.events[i].Body = &event.ProcessFork{Parent: event.ProcessKey{TGID: 7, StartNS: 3}}
				}
			}
		}, Indeterminate, Indeterminate, "w:evidence-lost/lineage-unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := good(t, c.edit)
			if r.Verdict != c.verdict || len(r.Actions) == 0 || r.Actions[0].Verdict != c.action || c.findings != "" && codes(r) != c.findings {
				t.Errorf("got %s [%s] want %s %s [%s]\n%s", r.Verdict, codes(r), c.verdict, c.action, c.findings, brief(r))
			}
		})
	}
}

func (l *lab) insert(b event.Body) {
	end := l.events[len(l.events)-1]
	e := event.New(end.TimeNS-1, nil, b)
	l.events = append(l.events[:len(l.events)-1:len(l.events)-1], e, end)
	for i := range l.events {
		l.events[i].Seq = uint64(i)
	}
}

func (l *lab) lose(typ string, _ int) {
	l.insert(&event.ObserverLost{Counts: map[string]uint64{typ: 2}, Reason: "ring full"})
}

func (l *lab) exec(name string) *event.ProcessExec {
	for _, e := range l.events {
		if x, ok := e.Body.(*event.ProcessExec); ok && x.Argv[0] == name {
			return x
		}
	}
	l.t.Fatalf("no exec of %s", name)
	return nil
}

// Loss touches what ran while records were lost, and nothing else.
func TestLossTouchesItsTime(t *testing.T) {
	s := newStranger(t)
	s.ask("touch a")
	s.bash("touch a").exec("touch", "a").exit()
	s.add(nil, &event.ObserverLost{Counts: map[string]uint64{"process.exec": 1}})
	s.ask("touch b")
	s.bash("touch b").exec("touch", "b").exit()
	s.ask("touch c") // approved and, it seems, never run
	r := s.judge()
	var got []Verdict
	for _, a := range r.Actions {
		got = append(got, a.Verdict)
	}
	if fmt.Sprint(got) != "[indeterminate verified indeterminate]" || strings.Contains(codes(r), ApprovedNotRun) {
		t.Error(brief(r))
	}
	if r.Coverage.Lost["process.exec"] != 1 {
		t.Errorf("coverage: %+v", r.Coverage)
	}
	// A discrepancy stays one: loss cannot have hidden the approval of what was seen to run.
	s = newStranger(t)
	s.askOnly("touch a")
	s.bash("touch a").exec("touch", "a").exit()
	s.end()
	s.lose("process.exec", 0)
	if r := s.verify(); r.Verdict != Discrepancy {
		t.Error(brief(r))
	}
	// But a program whose parent may be among the lost is not called unexplained for sure.
	s = newStranger(t)
	s.ask("touch a")
	p := s.bash("touch a")
	p.run("touch", "a")
	p.run("cc")
	s.end()
	s.lose("process.fork", 0)
	if r := s.verify(); r.Verdict != Indeterminate {
		t.Error(brief(r))
	}
}

func TestSessionWithoutActions(t *testing.T) {
	l, _ := codexLab(t)
	r := l.judge()
	want(t, r, Verified, "")
	if len(r.Actions) != 0 {
		t.Error(brief(r))
	}
	l, _ = codexLab(t)
	l.end()
	l.events[1].Body.(*event.ObserverAttached).Tier = "none"
	want(t, l.verify(), Indeterminate, "w:evidence-lost/no-observer")
}

// The JSON is a contract: these keys, in this nesting.
func TestReportJSON(t *testing.T) {
	r := good(t, func(s *stranger) { s.events[1].Body.(*event.ObserverAttached).SelfTest = "not-run" })
	var m struct {
		Session *string
		Verdict *string
		Actions []struct {
			ID, Verdict, Command *string
			Allowed              *struct {
				Source     *string
				ApprovalID *string `json:"approval_id"`
				Type       *string
			}
			Link *string
			Root *struct {
				TGID    *uint32
				StartNS *uint64 `json:"start_ns"`
				Argv    []string
			}
			Execs []struct {
				Argv     []string
				Relation *string
			}
		}
		Findings []struct {
			Code, Severity, Message *string
			Records                 []uint64
		}
		Coverage *struct {
			Tier      *string
			Lost      map[string]uint64
			Truncated *int
			SelfTest  *string `json:"self_test"`
		}
		Ledger *struct {
			OK       *bool
			Records  *int64
			RootHash *string `json:"root_hash"`
		}
	}
	if err := json.Unmarshal(mustJSON(t, r), &m); err != nil {
		t.Fatal(err)
	}
	a := m.Actions[0]
	if *m.Session != "s1" || *m.Verdict != "verified" || *a.ID != "x1" || *a.Verdict != "verified" || *a.Command != "touch a" || *a.Allowed.Source != "terminal" ||
		*a.Allowed.ApprovalID != "a2" || *a.Allowed.Type != "this_time" || *a.Link != "text" || *a.Root.TGID == 0 || *a.Root.StartNS == 0 || a.Root.Argv[2] != "touch a" ||
		*a.Execs[1].Relation != "named" || a.Execs[1].Argv[0] != "touch" || *m.Findings[0].Code != "evidence-lost" || *m.Findings[0].Severity != "info" || m.Findings[0].Records == nil ||
		*m.Coverage.Tier != "lsm" || m.Coverage.Lost == nil || *m.Coverage.Truncated != 0 || *m.Coverage.SelfTest != "not-run" || !*m.Ledger.OK || *m.Ledger.Records == 0 || *m.Ledger.RootHash != "root" {
		t.Errorf("report: %s", mustJSON(t, r))
	}
	for v, code := range map[Verdict]int{Verified: 0, Discrepancy: 1, Indeterminate: 2} {
		if v.ExitCode() != code {
			t.Errorf("%s exits %d", v, v.ExitCode())
		}
	}
	// An empty session keeps its lists.
	empty, err := Verify(Input{Events: func(func(event.Event, error) bool) {}, Ledger: LedgerState{OK: true, BadRecord: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if b := string(mustJSON(t, empty)); !strings.Contains(b, `"actions":[`) || !strings.Contains(b, `"findings":[{`) || empty.Verdict != Indeterminate {
		t.Errorf("empty: %s", b)
	}
}

func TestUnreadableRecords(t *testing.T) {
	s := newStranger(t)
	s.end()
	with := func(err error, at int) (*Report, error) {
		return Verify(Input{Ledger: s.ledger, Events: func(yield func(event.Event, error) bool) {
			for i, e := range s.events {
				if i == at && !yield(event.Event{Header: event.Header{Seq: uint64(i)}}, err) {
					return
				}
				if !yield(e, nil) {
					return
				}
			}
		}})
	}
	// A newer rye's record is counted, not judged.
	r, err := with(fmt.Errorf("parse: %w", event.ErrUnknownType), 3)
	if err != nil || r.Verdict != Verified || r.Coverage.Unknown != 1 {
		t.Errorf("%v %+v", err, r)
	}
	r, err = with(errors.New("garbage"), 3)
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, Indeterminate, "w:ledger-broken/record")
	if _, err := Verify(Input{Events: func(yield func(event.Event, error) bool) { yield(event.Event{}, errors.New("no such file")) }}); err == nil {
		t.Error("nothing could be read, and no error")
	}
	if _, err := Verify(Input{}); err == nil {
		t.Error("no events, and no error")
	}
	// The reader knows the ledger's state only at the end.
	read := false
	r, err = Verify(Input{Events: func(yield func(event.Event, error) bool) {
		for _, e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
		read = true
	}, State: func() LedgerState { return LedgerState{OK: read, BadRecord: -1, Records: 7} }})
	if err != nil || !r.Ledger.OK || r.Ledger.Records != 7 {
		t.Errorf("%v %+v", err, r.Ledger)
	}
}
