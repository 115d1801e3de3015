package main

import (
	"fmt"
	"net"
	"strings"
)

// shimmed are the variables that tools take a vendor's base URL from, and the vendor's own.
var shimmed = []struct{ name, vendor string }{
	{"ANTHROPIC_BASE_URL", "https://api.anthropic.com"},
	{"OPENAI_BASE_URL", "https://api.openai.com/v1"},
	{"GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"},
}

// startShims puts a shim in front of each upstream and points the variables at them.
func (n *network) startShims(env []string) error {
	n.about.Shims = map[string]string{}
	for _, s := range shimmed {
		upstream := s.vendor
		for _, kv := range env {
			if name, value, _ := strings.Cut(kv, "="); name == s.name && value != "" {
				upstream = value
				break
			}
		}
		shim, err := n.proxy.NewShim(upstream)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen for shim: %w", err)
		}
		n.shims.Go(func() {
			if err := shim.Serve(l); err != nil {
				n.shimErr.Store(&err)
			}
		})
		n.about.Shims[s.name] = l.Addr().String()
		if upstream != s.vendor {
			if n.about.Was == nil {
				n.about.Was = map[string]string{}
			}
			n.about.Was[s.name] = withoutUser(upstream)
		}
		n.setenv(s.name, shim.URL(l))
	}
	return nil
}

// setenv replaces a variable of the command's environment.
func (n *network) setenv(name, value string) {
	kept := n.env[:0:0]
	for _, kv := range n.env {
		if had, _, _ := strings.Cut(kv, "="); had != name {
			kept = append(kept, kv)
		}
	}
	n.env = append(kept, name+"="+value)
}

// waitShims returns when the shims have ended with their proxy.
func (n *network) waitShims() error {
	n.shims.Wait()
	if err := n.shimErr.Load(); err != nil {
		return *err
	}
	return nil
}
