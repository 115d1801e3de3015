package vm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kernel returns the path of a kernel that scripts/kernels has put into the cache.
func kernel(t *testing.T, name string) string {
	t.Helper()
	cache := os.Getenv("RYE_CACHE")
	if cache == "" {
		cache = "../.cache"
	}
	p := filepath.Join(cache, "kernels", name, "vmlinuz")
	if _, err := os.Stat(p); err != nil {
		t.Skipf("no kernel %s in the cache (make vmtest fetches it)", name)
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("no qemu-system-x86_64")
	}
	return p
}

func TestBoot(t *testing.T) {
	k := kernel(t, "6.1")
	r, err := Boot(context.Background(), Machine{
		Kernel: k, Accel: "tcg",
		Files:   []File{{Path: "/a/b/hello", Data: []byte("#!/bin/sh\necho \"$1 from $(uname -r)\"; echo err >&2; echo \"$X\"; exit 42\n")}},
		Command: []string{"/a/b/hello", "it's 'me'"}, Env: []string{"X=a b'c"},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Console)
	}
	lines := strings.Split(string(r.Output), "\n")
	if r.ExitStatus != 42 || len(lines) != 4 || !strings.HasPrefix(lines[0], "it's 'me' from 6.1.") || lines[1] != "err" || lines[2] != "a b'c" {
		t.Errorf("status %d, output %q", r.ExitStatus, r.Output)
	}
	t.Logf("%v under %s", r.Took, r.Accel)
}

func TestParse(t *testing.T) {
	for in, want := range map[string]struct {
		body         string
		status       int
		ready, ended bool
	}{
		"": {}, "noise\n": {},
		"rye-vm-ready\nhi": {body: "hi", ready: true},
		"rye-vm-ready\r\nhi\r\n\r\nrye-vm-exit=3\r\n":              {body: "hi\n", status: 3, ready: true, ended: true},
		"rye-vm-ready\n\nrye-vm-exit=0\nmore\n\nrye-vm-exit=143\n": {body: "\nrye-vm-exit=0\nmore\n", status: 143, ready: true, ended: true},
	} {
		body, status, ready, ended := parse([]byte(in))
		if string(body) != want.body || status != want.status || ready != want.ready || ended != want.ended {
			t.Errorf("%q: %q %d %v %v", in, body, status, ready, ended)
		}
	}
}
