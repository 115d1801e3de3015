package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/loader"
)

// checkTier refuses a tier that does not exist or cannot be had: who asks for one wants no other.
func checkTier(name string) error {
	switch t := loader.Tier(name); {
	case name == "":
		return nil
	case !t.Exists():
		return fmt.Errorf("--tier %s: %w; there are %s", name, loader.ErrTier, strings.Join(tierNames(), ", "))
	default:
		if err := t.Available(); err != nil {
			return fmt.Errorf("--tier %s: not on this machine: %s; without --tier rye takes the best there is (rye doctor)", name, loader.Words(err))
		}
	}
	return nil
}

func tierNames() []string {
	var names []string
	for _, t := range loader.Tiers() {
		names = append(names, string(t))
	}
	return names
}

func completeTier(cmd *cobra.Command) {
	// It fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(tierNames(), cobra.ShellCompDirectiveNoFileComp))
}

// affects names the events that a missing hook weakens.
func affects(hook string) string {
	switch {
	case strings.Contains(hook, "path_"):
		return "file"
	case strings.HasPrefix(hook, "after_open"):
		return "open"
	case strings.Contains(hook, "unix_"):
		return "ipc"
	case strings.Contains(hook, "file_receive"):
		return "open,connect"
	}
	return "connect"
}
