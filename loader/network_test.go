package loader

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

const envChild = "RYE_LOADER_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(envChild); what != "" {
		os.Exit(child(what))
	}
	os.Exit(m.Run())
}

// child does one thing in a cgroup and exits with 0, or 1 when it was not let.
func child(what string) int {
	network, addr, _ := strings.Cut(what, " ")
	if network == "handed" { // a datagram by a socket that was made outside
		to := netip.MustParseAddrPort(addr)
		if unix.Sendto(3, []byte("x"), 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}) != nil {
			return 1
		}
		return 0
	}
	c, err := net.DialTimeout(network, addr, 20*time.Second)
	if err != nil {
		return 1
	}
	defer c.Close()
	if _, err := c.Write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc a hello and more of it")); err != nil {
		return 1
	}
	return 0
}

// found is what this kernel offers, asked once: in a guest without acceleration the kernel's types take seconds
// to read.
var found = sync.OnceValue(Detect)

// testCgroup makes a cgroup that ends with the test.
func testCgroup(t *testing.T) Options {
	t.Helper()
	if m := found().Missing(); len(m) > 0 {
		t.Skipf("%s: %s", m[0].Name, m[0].Why)
	}
	mnt := ""
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if pre, post, _ := strings.Cut(line, " - "); strings.HasPrefix(post, "cgroup2 ") {
			mnt = strings.Fields(pre)[4]
		}
	}
	dir, err := os.MkdirTemp(mnt, "rye-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	return Options{CgroupID: st.Ino, CgroupLevel: 1, CgroupPath: dir, Found: found()}
}

// inCgroup runs child in the cgroup.
func inCgroup(t *testing.T, o Options, what string, files ...*os.File) (ok bool) {
	t.Helper()
	fd, err := unix.Open(o.CgroupPath, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), envChild+"="+what), files
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	return cmd.Run() == nil
}

// ownGaps are the gaps of the network's programs: other tiers' hooks may be missing on this kernel.
func ownGaps(p *Probes) (out []Gap) {
	for _, g := range p.Gaps() {
		if _, ok := packetHooks[g.Hook]; ok || isGate(g.Hook) {
			out = append(out, g)
		}
	}
	return out
}

// The packet programs load, attach and copy what carries names, on every kernel; the socket's maker comes along.
func TestPrivPackets(t *testing.T) {
	o := testCgroup(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 100))
			c.Close()
		}
	}()
	for _, how := range []string{CaptureHeaders, CaptureFull} {
		o.Capture = how
		p, err := Load(o)
		if err != nil {
			t.Fatalf("%+v", err)
		}
		if err := p.Attach(o); err != nil {
			t.Fatal(err)
		}
		if g := ownGaps(p); len(g) != 0 || p.Packets() == nil {
			t.Fatalf("gaps %v", g)
		}
		for _, what := range []string{"udp 127.0.0.1:53", "tcp " + server.Addr().String()} {
			if !inCgroup(t, o, what) {
				t.Fatalf("%s failed", what)
			}
		}
		r, err := ringbuf.NewReader(p.Packets())
		if err != nil {
			t.Fatal(err)
		}
		r.SetDeadline(time.Now().Add(time.Second))
		n, whole := uint64(0), 0
		for {
			rec, err := r.Read()
			if err != nil {
				break
			}
			n++
			if tgid := rec.RawSample[24:28]; bytes.Contains(rec.RawSample, []byte("a hello and more of it")) {
				if whole++; bytes.Equal(tgid, make([]byte, 4)) {
					t.Errorf("%s: a packet has no owner", how)
				}
			}
		}
		seen, copied, lost, err := p.PacketCounters()
		if err != nil || copied != n || lost != 0 || seen < copied || whole != 2 {
			t.Errorf("%s: %d seen, %d copied, %d lost, %d read, %d with the payload; %v", how, seen, copied, lost, n, whole, err)
		}
		r.Close()
		p.Close()
	}
}
