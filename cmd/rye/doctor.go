package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
	"github.com/ryehq/rye/wrapper/cgroup"
)

// A diagnosis is what rye doctor prints.
type diagnosis struct {
	Version  string                 `json:"version"`
	Kernel   string                 `json:"kernel"`
	Tier     string                 `json:"tier"`
	Features []loader.Feature       `json:"features"`
	Cgroup   loader.Feature         `json:"cgroup"`
	Observer event.ObserverAttached `json:"observer"` // what a session would record of itself
	Home     string                 `json:"home"`
	HomeErr  string                 `json:"home_error,omitempty"`
	Tools    map[string]string      `json:"assistants"` // assistants on the PATH
	OK       bool                   `json:"ok"`
}

func newDoctor() *cobra.Command {
	var asJSON bool
	var tier string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what rye can see on this machine, and how to get what is missing",
		Long: `Probes the kernel, loads the programs, runs the self test that every session begins with, and says what
cannot be seen. Exit status: 0 a kernel witness is available, 1 it is not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkTier(tier); err != nil {
				return &exitError{1, err}
			}
			d := diagnose(loader.Tier(tier))
			if asJSON {
				b, err := marshalIndent(d)
				if err != nil {
					return err
				}
				if _, err := cmd.OutOrStdout().Write(b); err != nil {
					return err
				}
			} else {
				printDiagnosis(cmd.OutOrStdout(), d)
			}
			if !d.OK {
				return &exitError{code: 1}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Flags().StringVar(&tier, "tier", "", "kernel hooks to try: `TIER` is lsm, fentry, kprobe or tracepoint (default the best that this kernel has)")
	completeTier(cmd)
	return cmd
}

func diagnose(tier loader.Tier) *diagnosis {
	f := loader.Detect()
	d := &diagnosis{Version: version, Kernel: f.Kernel, Tier: f.Tier, Features: f.List, Tools: map[string]string{}}
	d.Cgroup = loader.Feature{Name: "cgroup2", Answer: loader.Yes, For: "membership that leaving cannot hide, and the socket hooks"}
	obs := startObserver("doctor-"+fmt.Sprint(os.Getpid()), loader.Options{Capture: loader.CaptureHeaders, Tier: tier})
	d.Observer = obs.about
	d.Tier = obs.about.Tier
	if obs.cg == nil {
		_, err := cgroup.Create("doctor-probe")
		d.Cgroup.Answer = loader.No
		if err != nil {
			d.Cgroup.Why = err.Error()
		}
	}
	obs.drain()
	obs.close()
	if obs.cg != nil {
		obs.cg.Remove()
	}
	h, err := openHome()
	if err != nil {
		d.HomeErr = err.Error()
	} else {
		d.Home = h.dir
	}
	for _, name := range []string{"codex", "claude", "gemini", "opencode", "copilot"} {
		if path, err := exec.LookPath(name); err == nil {
			d.Tools[name] = path
		}
	}
	d.OK = obs.about.Tier != "none" && obs.about.SelfTest == "passed"
	return d
}
