package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/report"
)

// An eventPrinter writes events for people, one a line: time since the start, type, process, fact.
type eventPrinter struct {
	w      io.Writer
	colour bool
	start  uint64
}

func newEventPrinter(w io.Writer, colour bool) *eventPrinter {
	return &eventPrinter{w: w, colour: colour}
}

func (p *eventPrinter) unreadable(e event.Event, err error) {
	fmt.Fprintf(p.w, "%6d  (not readable: %s)\n", e.Seq, report.Line(err.Error()))
}

// heading begins a line that event ends: the part an event plays in an action's chain.
func (p *eventPrinter) heading(role string) { fmt.Fprintf(p.w, "%-12s", role) }

func (p *eventPrinter) more(n int) {
	fmt.Fprintf(p.w, "%-12s%s\n", "", plural(n, "more effect", "more effects")+"; rye show --json has all")
}

func (p *eventPrinter) event(e *event.Event) {
	if p.start == 0 {
		p.start = e.TimeNS
	}
	at := time.Duration(int64(e.TimeNS) - int64(p.start))
	pid := ""
	if e.Proc != nil {
		pid = fmt.Sprint(e.Proc.TGID)
	}
	fmt.Fprintf(p.w, "%6d %9.3fs %-19s %7s  %s\n", e.Seq, at.Seconds(), e.Type, pid, report.Cut(report.Line(describe(e.Body)), 200))
}

// describe is one line on what an event says.
func describe(body event.Body) string {
	switch b := body.(type) {
	case *event.SessionStart:
		return fmt.Sprintf("%s in %s", strings.Join(b.Command, " "), b.CWD)
	case *event.SessionEnd:
		s := fmt.Sprintf("exit %d after %v", b.ExitCode, time.Duration(b.DurationNS).Round(time.Millisecond))
		for _, x := range b.Survivors {
			s += fmt.Sprintf("; still running: %d %s (%s)", x.Proc.TGID, x.Exe, x.Role)
		}
		for _, d := range b.DegradedBy {
			s += "; " + d
		}
		return s
	case *event.ObserverAttached:
		return fmt.Sprintf("tier %s, membership %s, self test %s %s", b.Tier, b.Membership, b.SelfTest, b.Detail)
	case *event.ObserverLost:
		return fmt.Sprintf("%v %s", b.Counts, b.Reason)
	case *event.ProcessFork:
		return fmt.Sprintf("from %d", b.Parent.TGID)
	case *event.ProcessExec:
		s := fmt.Sprintf("%s %q", b.Exe, b.Argv)
		if b.ArgvTruncated {
			s += fmt.Sprintf(" (cut, %d bytes)", b.ArgvBytes)
		}
		return s + marks(b.Marks)
	case *event.ProcessExecFailed:
		return fmt.Sprintf("%s: %s", b.Path, b.Error)
	case *event.ProcessExit:
		if b.Signal != 0 {
			return fmt.Sprintf("signal %d (%s)", b.Signal, b.Exe)
		}
		return fmt.Sprintf("status %d (%s)", b.Code, b.Exe)
	case *event.ProcessAdopted:
		return fmt.Sprintf("%s (%s, via %s)", b.Exe, b.Reason, b.Via)
	case *event.CgroupLeft:
		return fmt.Sprintf("to %s, escaped %v", b.To, b.Escaped)
	case *event.FileOpen:
		s := fmt.Sprintf("%s %s", b.Path, strings.Join(b.Flags, "|"))
		if b.Error != "" {
			s += " " + b.Error
		}
		if b.Count > 1 || b.Repeats {
			s += fmt.Sprintf(" %d more times", b.Count)
		}
		return s + marks(b.Marks)
	case *event.FileDelete:
		return b.Path + marks(b.Marks)
	case *event.FileRename:
		return fmt.Sprintf("%s %s -> %s%s", b.How, b.From, b.To, marks(b.Marks))
	case *event.FileChange:
		return fmt.Sprintf("%s %s%s", b.How, b.Path, marks(b.Marks))
	case *event.FileMap:
		return b.Path + marks(b.Marks)
	case *event.FileDigest:
		return fmt.Sprintf("%s at %s: %s %s", b.Path, b.At, b.SHA256, b.Detail)
	case *event.NetConnect:
		return fmt.Sprintf("%s %s -> %s %s%s", b.Proto, b.Local, b.Remote, b.Error, marks(b.Marks))
	case *event.NetBind:
		return fmt.Sprintf("%s %s %s", b.Proto, b.Local, b.Error)
	case *event.IPCConnect:
		s := b.Path + " " + b.Error
		if b.Peer != nil {
			s += fmt.Sprintf(" peer %d %s", b.Peer.TGID, b.Peer.Exe)
		}
		return s + marks(b.Marks)
	case *event.Escape:
		return fmt.Sprintf("%v %s", b.Detail, b.Error)
	case *event.ApprovalPrompted:
		return fmt.Sprintf("%s %s asks: %s", b.ID, b.Agent, b.Command)
	case *event.ApprovalGranted:
		return fmt.Sprintf("%s %s by key %q: %s", b.ID, b.Decision, b.Key, b.Command)
	case *event.ApprovalDenied:
		return fmt.Sprintf("%s %s by key %q: %s", b.ID, b.Decision, b.Key, b.Command)
	case *event.ScreenUnreadable:
		return b.Why
	case *event.ToolCall:
		return fmt.Sprintf("%s %s %s %s", b.ID, b.Tool, b.Command, strings.Join(b.Paths, " "))
	case *event.ToolResult:
		return fmt.Sprintf("%s %s %q", b.ID, b.Status, b.Command)
	case *event.TurnContext:
		return fmt.Sprintf("%s approvals %s, sandbox %s, network %s", b.Agent, b.ApprovalPolicy, b.Sandbox, b.Network)
	case *event.ProxyDecision:
		return fmt.Sprintf("%s %s%s: %s", b.Method, b.Host, b.Path, b.Decision)
	case *event.PolicyApplied, *event.NetRefused, *event.NetInherited, *event.NetDNS, *event.NetTLSHello:
		return describeNet(body)
	case *event.RulesLoaded:
		return fmt.Sprintf("%s: %d rules %s", b.Path, len(b.Rules), b.Error)
	}
	return ""
}

func marks(m []string) string {
	if len(m) == 0 {
		return ""
	}
	return " [" + strings.Join(m, " ") + "]"
}
