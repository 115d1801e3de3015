package main

import (
	"fmt"
	"strings"

	"github.com/ryehq/rye/event"
)

// describeNet is describe for the events of the session's network.
func describeNet(body event.Body) string {
	switch b := body.(type) {
	case *event.PolicyApplied:
		s := fmt.Sprintf("%s from %s, %s, default %s", b.Bundle, b.From, plural(b.Rules, "rule", "rules"), b.Default)
		if b.Proxy != "" {
			s += ", proxy " + b.Proxy
		}
		if b.Via != "" {
			s += " via " + b.Via
		}
		if b.Enforce != nil {
			s += ", enforced"
		}
		if b.Error != "" {
			s += "; refused: " + b.Error
		}
		return s
	case *event.NetRefused:
		s := fmt.Sprintf("%s %s -> %s (%s)", b.Proto, b.Local, b.Remote, b.How)
		if b.Count > 1 || b.Repeats {
			s += fmt.Sprintf(" %d more times", b.Count)
		}
		return s + marks(b.Marks)
	case *event.NetInherited:
		s := fmt.Sprintf("descriptor %d: %s %s -> %s", b.FD, b.Proto, b.Local, b.Remote)
		if b.Closed {
			s += ", taken away"
		}
		return s
	case *event.NetDNS:
		return describeDNS(b)
	case *event.NetTLSHello:
		s := fmt.Sprintf("%s %s -> %s", b.Proto, b.Local, b.Remote)
		if b.Name != "" {
			s += " asks for " + b.Name
		}
		if len(b.ALPN) > 0 {
			s += " (" + strings.Join(b.ALPN, ", ") + ")"
		}
		if b.ECH {
			s += ", true name encrypted"
		}
		if b.Unread != "" {
			s += "; name not read: " + b.Unread
		}
		return s
	}
	return ""
}

func describeDNS(b *event.NetDNS) string {
	s := b.Proto + " "
	if b.Sent {
		s += "to " + b.Remote
	} else {
		s += "from " + b.Remote
	}
	for _, q := range b.Questions {
		s += fmt.Sprintf(" %s %s", q.Kind, q.Name)
	}
	if b.Answer {
		s += ":"
	}
	for _, a := range b.Answers {
		s += " " + strings.TrimSpace(a.Kind+" "+a.Value)
	}
	if b.Code != "" {
		s += " " + b.Code
	}
	if b.Cut != "" {
		s += " (cut: " + b.Cut + ")"
	}
	return s
}
