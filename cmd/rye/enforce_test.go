package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/internal/testutil"
	"github.com/ryehq/rye/verify"
)

// waysOut tries every way past a proxy that a program has, and says of each what came of it.
const waysOut = `
import errno, os, socket, struct, sys
v4, v6, port, dns = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
def way(name, f):
    try:
        f()
        print(name, 'ok', flush=True)
    except OSError as e:
        print(name, errno.errorcode.get(e.errno, e.errno), flush=True)
def tcp():
    s = socket.create_connection((v4, port), 3); s.sendall(b'tcp\n'); s.close()
def nonblocking():
    s = socket.socket(); s.setblocking(False)
    e = s.connect_ex((v4, port))
    if e not in (0, errno.EINPROGRESS): raise OSError(e, '')
def ipv6():
    s = socket.create_connection((v6, port), 3); s.sendall(b'ipv6\n'); s.close()
def mapped():
    s = socket.socket(socket.AF_INET6); s.settimeout(3); s.connect(('::ffff:' + v4, port)); s.close()
def fastopen():
    s = socket.socket(); s.sendto(b'fastopen\n', socket.MSG_FASTOPEN, (v4, port)); s.close()
def udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'udp', (v4, port))
def udp_connected():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect((v6, port)); s.send(b'udp6')
def resolver():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes.fromhex('123401000001000000000000047465787404746573740000010001'), (v4, 53))
def own_resolver():
    s = socket.socket(socket.AF_INET6 if ':' in dns else socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(bytes.fromhex('123401000001000000000000047465787404746573740000010001'), (dns, 53))
def raw():
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); s.sendto(b'\x08\0\xf7\xff\0\0\0\0', (v4, 0))
def packet():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)
def mptcp():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.settimeout(3); s.connect((v4, port)); s.sendall(b'mptcp\n'); s.close()
def ping():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.sendto(b'\x08\0\xf7\xff\0\0\0\0', (v4, 0))
def inherited():
    s = socket.socket(fileno=os.dup(3)); s.sendall(b'inherited\n')
for f in tcp, nonblocking, ipv6, mapped, fastopen, udp, udp_connected, resolver, own_resolver, raw, packet, mptcp, ping, inherited:
    way(f.__name__, f)
`

// A sink is what waysOut tries to reach, on this machine's own addresses.
type sink struct {
	mu  sync.Mutex
	got []string
	tcp net.Listener
}

func (s *sink) add(what string) { s.mu.Lock(); s.got = append(s.got, what); s.mu.Unlock() }
func (s *sink) take() []string {
	time.Sleep(100 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.got
	s.got = nil
	return g
}

func newSink(t *testing.T) (s *sink, port int) {
	t.Helper()
	s = &sink{}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s.tcp, port = l, l.Addr().(*net.TCPAddr).Port
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.SetReadDeadline(time.Now().Add(20 * time.Second))
				for b := make([]byte, 100); ; {
					n, err := c.Read(b)
					if n > 0 {
						s.add(strings.TrimSpace(string(b[:n])))
					}
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	u, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	go func() {
		for b := make([]byte, 100); ; {
			n, _, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			s.add(string(b[:n]))
		}
	}()
	return s, port
}

// Each way past the proxy is found when nothing holds it, and refused, without a byte getting out, by
// --enforce.
func TestPrivWaysOut(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	v4, v6 := ownAddress(t, false), ownAddress(t, true)
	dns := resolvers()
	if len(dns) == 0 {
		testutil.Skip(t, "no name server in resolv.conf")
	}
	s, port := newSink(t)
	l.file("ways.py", waysOut)
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	run := func(flags ...string) (map[string]string, []event.Event, *verify.Report) {
		t.Helper()
		c, err := net.Dial("tcp", net.JoinHostPort(v4, fmt.Sprint(port)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { c.Close(); f.Close() }()
		cmd := l.ryeCmd(slices.Concat([]string{"wrap"}, flags, []string{"--", python, "ways.py", v4, v6, fmt.Sprint(port), dns[0]})...)
		cmd.ExtraFiles = []*os.File{f} // descriptor 3, left open for the command
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, &errs)
		}
		came := map[string]string{}
		for line := range strings.Lines(string(out)) {
			name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
			came[name] = result
		}
		if len(came) != 14 {
			t.Fatalf("%v\n%s", came, &errs)
		}
		return came, l.events("last"), l.verdict()
	}

	came, list, r := run("--proxy")
	ping := came["ping"] // who may have such a socket is the machine's own setting
	for name, result := range came {
		if result != "ok" && name != "ping" {
			t.Errorf("free: %s: %s", name, result)
		}
	}
	if got := s.take(); !slices.Contains(got, "tcp") || !slices.Contains(got, "inherited") || !slices.Contains(got, "fastopen") || !slices.Contains(got, "udp") || !slices.Contains(got, "udp6") {
		t.Errorf("free: %q came through", got)
	}
	host4, host6 := net.JoinHostPort(v4, fmt.Sprint(port)), net.JoinHostPort(v6, fmt.Sprint(port))
	reasons := map[string]int{}
	for _, f := range r.Findings {
		reasons[f.Code+"/"+f.Reason] += len(f.Records)
		if f.Severity != verify.Warning {
			t.Errorf("%s %s: %s", f.Severity, f.Code, f.Message)
		}
	}
	// tcp, nonblocking, mapped, fastopen, mptcp and ipv6 are connects; their records are told in two findings.
	if reasons["net-bypass/tcp"] < 6 || reasons["net-bypass/udp"] < 2 || reasons["net-bypass/dns"] != 1 || reasons["net-bypass/inherited"] != 1 ||
		reasons["escape-attempt/raw_socket"] == 0 || reasons["escape-attempt/packet_socket"] == 0 {
		show(t, r)
		t.Errorf("free: %v", reasons)
	}
	tcp := 0
	for _, c := range bodies[*event.NetConnect](list) {
		if (c.Remote == host4 || c.Remote == "[::ffff:"+v4+"]:"+fmt.Sprint(port) || c.Remote == host6) && c.Proto != "udp" {
			tcp++
		}
	}
	if tcp != 6 {
		t.Errorf("free: %d connects", tcp)
	}

	came, list, r = run("--enforce")
	for name, result := range came {
		want := "EPERM"
		switch name {
		case "own_resolver":
			want = "ok"
		case "inherited":
			want = "EBADF"
		case "ping":
			if ping != "ok" {
				want = ping
			}
		}
		if result != want {
			t.Errorf("enforced: %s: %s, want %s", name, result, want)
		}
	}
	if got := s.take(); len(got) != 0 {
		t.Errorf("enforced: %q came through", got)
	}
	how := map[string]int{}
	for _, x := range bodies[*event.NetRefused](list) {
		how[x.How+" "+x.Proto] += int(x.Count)
	}
	if how["connect tcp"] < 5 || how["connect udp"] != 1 || how["send udp"] != 2 {
		t.Errorf("enforced: %v", how)
	}
	if ping == "ok" && how["packet icmp"] != 1 {
		t.Errorf("enforced: %v", how)
	}
	// Raw and packet sockets are not even made: the capability for them is gone.
	for _, x := range bodies[*event.Escape](list) {
		if (x.What == "raw_socket" || x.What == "packet_socket") && x.Error != "EPERM" {
			t.Errorf("enforced: %s %s", x.What, x.Error)
		}
	}
	for _, f := range r.Findings {
		if f.Code == verify.NetBypass && f.Severity != verify.Info {
			t.Errorf("enforced: %s %s: %s", f.Severity, f.Reason, f.Message)
		}
	}
	if r.Network == nil || !r.Network.Enforced || r.Network.Classes["refused"] == 0 || r.Network.Classes["bypass"] != 0 {
		t.Errorf("enforced: %+v", r.Network)
	}
	if in := bodies[*event.NetInherited](list); len(in) != 1 || !in[0].Closed || in[0].FD != 3 || in[0].Remote != host4 {
		t.Errorf("enforced: %+v", in)
	}
}

// When rye dies, what is left of the session reaches nothing.
func TestPrivEnforceFailsClosed(t *testing.T) {
	testutil.Privileged(t)
	l := newLab(t)
	s, port := newSink(t)
	script := fmt.Sprintf(`echo up; read x <go; exec 2>/dev/null; echo late > /dev/tcp/%s/%d; echo $? > result`, ownAddress(t, false), port)
	if err := syscall.Mkfifo(l.project+"/go", 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := l.ryeCmd("wrap", "--enforce", "--", "setsid", "bash", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := os.WriteFile(l.project+"/go", []byte("now\n"), 0); err != nil {
		t.Fatal(err)
	}
	var result []byte
	for range 100 {
		if result, err = os.ReadFile(l.project + "/result"); err == nil && len(result) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if strings.TrimSpace(string(result)) != "1" {
		t.Errorf("the connection's status is %q, %v", result, err)
	}
	if got := s.take(); len(got) != 0 {
		t.Errorf("%q came through", got)
	}
}
