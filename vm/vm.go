// Package vm boots a Linux kernel under QEMU with a few files in memory, runs one command in it and brings
// back its output and exit status. No disk image, no network, nothing to install in the guest: the files
// travel in the initramfs and the results over a serial line.
//
// It imports the standard library and needs qemu-system-x86_64 (or -aarch64) and a static busybox.
package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Machine is what to boot and what to run in it.
type Machine struct {
	Kernel  string        // path of a bzImage (amd64) or Image (arm64)
	Files   []File        // what the guest finds, beside busybox
	Command []string      // argv; its first word is a path in the guest or a busybox applet
	Env     []string      // added to a minimal environment
	Memory  int           // MiB; 0 for 1024
	CPUs    int           // 0 for 1
	Accel   string        // kvm, tcg; "" to try kvm and fall back
	Icount  bool          // count instructions: guest time is deterministic (tcg only, one cpu)
	Append  string        // added to the kernel's command line
	Timeout time.Duration // 0 for 3 minutes
	Arch    string        // amd64, arm64; "" for the host's
	Busybox string        // a static one for Arch; "" for the host's own
}

// A File is put into the guest at Path. Data, or the host file From.
type File struct {
	Path string
	From string
	Data []byte
	Mode os.FileMode // 0 for 0755
}

// A Result is what came back.
type Result struct {
	Output     []byte // standard output and error of the command
	Console    []byte // the kernel's messages
	ExitStatus int    // of the command; 128+N for a signal
	Accel      string // what it ran under
	Took       time.Duration
	CPU        time.Duration // what the guest cost the host: it does not depend on who else is busy
}

// ErrNoGuest says that the guest never got as far as running the command; Result.Console says why.
var ErrNoGuest = errors.New("guest did not come up")

// Marks on the result line. What the command prints cannot forge the status: it is taken from the last line.
const (
	readyMark = "rye-vm-ready"
	exitMark  = "rye-vm-exit="
)

// Boot runs m and returns when the guest is gone.
func Boot(ctx context.Context, m Machine) (*Result, error) {
	if len(m.Command) == 0 {
		return nil, errors.New("boot guest: no command")
	}
	if m.Arch == "" {
		m.Arch = runtime.GOARCH
	}
	accels := []string{m.Accel}
	if m.Accel == "" {
		accels = []string{"tcg"}
		if _, err := os.Stat("/dev/kvm"); err == nil && m.Arch == runtime.GOARCH && !m.Icount {
			accels = []string{"kvm", "tcg"} // kvm can be there and not work (nested virtualisation)
		}
	}
	dir, err := os.MkdirTemp("", "rye-vm-")
	if err != nil {
		return nil, fmt.Errorf("boot guest: %w", err)
	}
	defer os.RemoveAll(dir)
	initrd := filepath.Join(dir, "initrd")
	if err := writeInitramfs(initrd, m); err != nil {
		return nil, fmt.Errorf("boot guest: %w", err)
	}
	for _, accel := range accels {
		r, bootErr := m.boot(ctx, dir, initrd, accel)
		if err = bootErr; err == nil || !errors.Is(err, ErrNoGuest) {
			return r, err
		}
		if r != nil && accel == accels[len(accels)-1] {
			return r, err
		}
	}
	return nil, err
}

func (m Machine) boot(ctx context.Context, dir, initrd, accel string) (*Result, error) {
	timeout := m.Timeout
	if timeout == 0 {
		timeout = 3 * time.Minute
	}
	if accel == "kvm" {
		// A kvm that does not work hangs or dies at once; one that works is up in a second.
		timeout = min(timeout, time.Minute)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	qemu, args := m.command(dir, initrd, accel)
	cmd := exec.CommandContext(ctx, qemu, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	start := time.Now()
	runErr := cmd.Run()
	r := &Result{Accel: accel, Took: time.Since(start), ExitStatus: -1}
	if s := cmd.ProcessState; s != nil {
		r.CPU = s.UserTime() + s.SystemTime()
	}
	r.Console, _ = os.ReadFile(filepath.Join(dir, "console"))
	out, _ := os.ReadFile(filepath.Join(dir, "result"))
	body, status, ready, ended := parse(out)
	r.Output = body
	switch {
	case ended:
		r.ExitStatus = status
		return r, nil
	case errors.Is(runErr, exec.ErrNotFound):
		return r, fmt.Errorf("boot guest: %w (install qemu-system-x86)", runErr)
	case !ready:
		return r, fmt.Errorf("%w under %s within %v: %v: %s%s", ErrNoGuest, accel, timeout, runErr, lastWords(said.Bytes()), lastWords(r.Console))
	case ctx.Err() != nil:
		return r, fmt.Errorf("run command in guest: %w after %v; last output: %s", ctx.Err(), r.Took.Round(time.Second), lastWords(body))
	}
	return r, fmt.Errorf("run command in guest: the guest died: %v: %s", runErr, lastWords(r.Console))
}

func (m Machine) command(dir, initrd, accel string) (string, []string) {
	qemu, machine, cpu, console := "qemu-system-x86_64", "q35", "max", "ttyS0"
	if m.Arch == "arm64" {
		qemu, machine, cpu, console = "qemu-system-aarch64", "virt", "max", "ttyAMA0"
	}
	if accel == "kvm" {
		cpu = "host"
	}
	memory, cpus := m.Memory, max(m.CPUs, 1)
	if memory == 0 {
		memory = 1024
	}
	if accel == "tcg" && cpus > 1 {
		// CPUs in threads of their own execute code that another is patching (tracepoints being switched on)
		// half old, half new, and the guest panics: seen with QEMU 7.2 on kernels 6.12 and 7.2.
		accel = "tcg,thread=single"
	}
	args := []string{
		"-machine", machine, "-accel", accel, "-cpu", cpu, "-smp", strconv.Itoa(cpus), "-m", strconv.Itoa(memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
		"-serial", "file:" + filepath.Join(dir, "console"),
		"-kernel", m.Kernel, "-initrd", initrd,
		"-append", strings.TrimSpace("console=" + console + " quiet loglevel=4 panic=-1 rdinit=/init " + m.Append),
	}
	if m.Arch == "arm64" {
		// One UART on this board: results go over another on the PCI bus, whose driver Debian builds in.
		args = append(args, "-chardev", "file,id=result,path="+filepath.Join(dir, "result"), "-device", "pci-serial,chardev=result")
	} else {
		args = append(args, "-serial", "file:"+filepath.Join(dir, "result"))
	}
	if m.Icount {
		args = append(args, "-icount", "shift=0,sleep=off")
	}
	return qemu, args
}

// parse takes the result line apart.
func parse(out []byte) (body []byte, status int, ready, ended bool) {
	out = bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))
	_, rest, ready := bytes.Cut(out, []byte(readyMark+"\n"))
	if !ready {
		return nil, 0, false, false
	}
	i := bytes.LastIndex(rest, []byte("\n"+exitMark))
	if i < 0 {
		return rest, 0, true, false
	}
	line, _, _ := bytes.Cut(rest[i+1+len(exitMark):], []byte("\n"))
	status, err := strconv.Atoi(string(line))
	if err != nil {
		return rest, 0, true, false
	}
	return rest[:i], status, true, true
}

// lastWords are the kernel's last lines, where the reason for a panic stands.
func lastWords(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
