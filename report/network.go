package report

import (
	"fmt"
	"strings"

	"github.com/ryehq/rye/verify"
)

// Network is one line on where a session's connections went; "" for a session that was given no proxy.
func Network(n *verify.Network) string {
	if n == nil || n.Policy == "" {
		return ""
	}
	parts := []string{fmt.Sprintf("%d requests judged by %s", len(n.Requests)+n.More, Line(n.Policy))}
	if n.Denied > 0 {
		parts = append(parts, fmt.Sprintf("%d not let through", n.Denied))
	}
	for _, c := range []struct{ class, says string }{
		{"proxy", "to the proxy"}, {"tunnelled", "tunnelled"}, {"shim", "to the shim"}, {"session", "to the session's own listeners"}, {"loopback", "to loopback"},
		{"dns", "to name servers"}, {"bypass", "past the proxy"}, {"failed", "failed"}, {"refused", "refused"},
	} {
		if k := n.Classes[c.class]; k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, c.says))
		}
	}
	s := "network: " + strings.Join(parts, " · ")
	if n.Enforced {
		s += " · enforced"
	}
	return s
}
