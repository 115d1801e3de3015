package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/ryehq/rye/event"
)

// selfTestName is argv[0] of the child that does three known things.
const selfTestName = "rye-self-test"

// selfTestChild opens its own executable and connects to a loopback port where nothing listens.
func selfTestChild(args []string) int {
	f, err := os.Open(args[0])
	if err != nil {
		return 1
	}
	f.Close()
	if c, err := net.DialTimeout("tcp4", selfTestAddr, time.Second); err == nil {
		c.Close()
	}
	return 0
}

const selfTestAddr = "127.0.0.1:1"

// selfTest runs a child in the session's cgroup and demands its exec, open and connect back. Programs can
// be loaded and attached and still see nothing; a session must not rest on that.
func (o *observer) selfTest() error {
	exe, err := executable()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	saw := map[string]bool{}
	complete := make(chan struct{})
	o.to(func(e event.Event) error {
		mu.Lock()
		defer mu.Unlock()
		switch b := e.Body.(type) {
		case *event.ProcessExec:
			saw["exec"] = saw["exec"] || len(b.Argv) == 2 && b.Argv[0] == selfTestName && b.Argv[1] == exe
		case *event.FileOpen:
			saw["open"] = saw["open"] || b.Path == exe && b.Result == 0
		case *event.NetConnect:
			saw["connect"] = saw["connect"] || b.Remote == selfTestAddr
		case *event.ProcessExit: // its last event: what follows is the session's
			saw["exit"] = true
		}
		if saw["exec"] && saw["open"] && saw["connect"] && saw["exit"] {
			select {
			case <-complete:
			default:
				close(complete)
			}
		}
		return nil
	})
	defer o.to(func(event.Event) error { return nil })
	if o.cg == nil {
		if err := o.probes.Adopt(uint32(os.Getpid()), 0); err != nil {
			return err
		}
		defer o.probes.Release(uint32(os.Getpid()))
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{selfTestName, exe}
	if o.cg != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: o.cg.FD()}
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run self test: %w", err)
	}
	o.coll.Kick()
	select {
	case <-complete:
		return nil
	case <-time.After(2 * time.Second):
	}
	mu.Lock()
	defer mu.Unlock()
	return fmt.Errorf("a known exec, open and connect did not all come back (exec %v, open %v, connect %v, exit %v)", saw["exec"], saw["open"], saw["connect"], saw["exit"])
}
