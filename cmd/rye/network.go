package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
	"github.com/ryehq/rye/policy"
	"github.com/ryehq/rye/proxy"
)

// netConfig is what rye wrap was told about the session's network.
type netConfig struct {
	proxy   bool
	shim    bool
	capture string
	enforce bool
	ports   []uint
	dns     string
}

func (c *netConfig) flags(f *pflag.FlagSet) {
	f.BoolVar(&c.proxy, "proxy", false, "give the command rye's proxy and CA: requests to model providers are judged by the policy and recorded")
	f.BoolVar(&c.shim, "shim", false, "point ANTHROPIC_BASE_URL, OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL at rye; what they named before is the upstream, else the vendor")
	f.BoolVar(&c.enforce, "enforce", false, "let the kernel refuse every connection but those to the proxy, name servers and allowed ports; implies --proxy")
	f.UintSliceVar(&c.ports, "allow-port", nil, "`PORT` on loopback that --enforce lets the command reach; may be given again")
	f.StringVar(&c.dns, "allow-dns", loader.DNSSystem, "name servers that --enforce lets the command ask: none, system (those of resolv.conf), all")
	f.StringVar(&c.capture, "capture", "headers", "packets to copy: none, headers (of a socket's first packets, and whole what carries host names), full")
}

// firstPort is where the proxy listens, or on the next port that is free.
const firstPort = 18080

// A network is rye's proxy for one session, and what the session's environment says about it.
type network struct {
	home   *home
	ca     *proxy.CA
	proxy  *proxy.Proxy
	listen net.Listener
	served chan error
	env    []string // the command's environment
	was    map[string]string

	bundle  atomic.Pointer[policy.Bundle]
	about   event.PolicyApplied
	stamp   fileStamp         // of the policy file as it was last read
	emit    func(event.Event) // set when ready is closed
	ready   chan struct{}
	quit    chan struct{}
	watch   sync.WaitGroup
	shims   sync.WaitGroup
	shimErr atomic.Pointer[error]
	once    sync.Once
	ended   error
}

// startNetwork starts the proxy when it is asked for; the nil *network is a session without one. Unlike
// recording, which a command can do without, a proxy that was asked for and cannot be had is an error:
// nothing then runs past it by accident.
func startNetwork(c netConfig, session string) (*network, error) {
	if !c.proxy && !c.enforce && !c.shim {
		return nil, nil
	}
	h, err := openHome()
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	n := &network{home: h, ready: make(chan struct{}), quit: make(chan struct{}), served: make(chan error, 1)}
	n.about.State = h.dir
	if err := n.loadPolicy("start"); err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	if n.ca, err = h.ca(); err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	if n.listen, err = listenLoopback(); err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	if err := n.arrange(os.Environ(), c.proxy || c.enforce); err != nil {
		n.listen.Close()
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	store, err := h.approvals()
	if err != nil {
		n.listen.Close()
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	n.proxy, err = proxy.New(proxy.Config{
		Approvals: store, Session: session,
		CA: n.ca, Bundle: n.bundle.Load, Emit: n.say, Boottime: boottime, Upstream: n.upstream,
	})
	if err != nil {
		n.listen.Close()
		return nil, err
	}
	if c.shim {
		if err := n.startShims(os.Environ()); err != nil {
			n.proxy.Close()
			n.listen.Close()
			return nil, err
		}
	}
	go func() { n.served <- n.proxy.Serve(n.listen) }()
	return n, nil
}

// ca loads the CA of this install, made now when there is none yet or it is about to expire.
func (h *home) ca() (*proxy.CA, error) {
	ca, err := proxy.LoadCA(h.caDir())
	if errors.Is(err, fs.ErrNotExist) || err == nil && time.Until(ca.Expires()) < 30*24*time.Hour {
		return h.rotateCA()
	}
	return ca, err
}

func listenLoopback() (net.Listener, error) {
	for port := firstPort; port < firstPort+100; port++ {
		if l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return l, nil
}

// addr is where the proxy listens.
func (n *network) addr() netip.AddrPort {
	a, _ := netip.ParseAddrPort(n.listen.Addr().String()) // a TCP address always parses
	return a
}

// to sends the proxy's events to f from now on; until then the proxy's requests wait.
func (n *network) to(f func(event.Event)) {
	if n != nil {
		n.emit = f
		close(n.ready)
	}
}

func (n *network) say(e event.Event) {
	select {
	case <-n.ready:
		n.emit(e)
		return
	default:
	}
	select {
	case <-n.ready:
		n.emit(e)
	case <-n.quit: // there is no session to write it down in
	}
}

// environ is the command's environment: rye's own without a proxy (nil).
func (n *network) environ() []string {
	if n == nil {
		return nil
	}
	return n.env
}

// begin is the session's first word about its network.
func (n *network) begin(now uint64, handed []event.NetInherited) (out []event.Event) {
	if n != nil {
		about := n.about
		out = append(out, event.New(now, nil, &about))
		n.watch.Go(n.watchPolicy)
	}
	for i := range handed {
		out = append(out, event.New(now, nil, &handed[i]))
	}
	return out
}

// close ends the proxy. When it returns, every exchange has its event.
func (n *network) close() error {
	if n == nil {
		return nil
	}
	n.once.Do(func() {
		close(n.quit)
		n.watch.Wait()
		n.ended = errors.Join(n.proxy.Close(), <-n.served, n.waitShims())
	})
	return n.ended
}

// upstream is the user's own proxy for a URL: rye stands between it and the command.
func (n *network) upstream(u *url.URL) (*url.URL, error) {
	via, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil || via == nil {
		return nil, err
	}
	// A variable left over from an earlier session may name the very port that this proxy has now.
	if via.Port() == strconv.Itoa(int(n.addr().Port())) && (via.Hostname() == "127.0.0.1" || via.Hostname() == "localhost") {
		return nil, nil
	}
	return via, nil
}

// loadPolicy reads the bundle that holds now. One that does not parse leaves the old one in force.
func (n *network) loadPolicy(at string) error {
	n.stamp = stampOf(filepath.Join(n.home.dir, policyFile))
	text, b, from, err := n.home.policy()
	n.about.At, n.about.Error = at, ""
	if err != nil {
		n.about.Error = err.Error()
		return err
	}
	sum := sha256.Sum256(text)
	n.about.Bundle, n.about.SHA256, n.about.From = b.Name(), hex.EncodeToString(sum[:]), from
	n.about.Rules, n.about.Default = len(b.Rules), string(b.Default)
	n.bundle.Store(b)
	return nil
}

// A fileStamp tells two states of a file apart.
type fileStamp struct {
	ino     uint64
	size    int64
	modTime time.Time
}

func stampOf(name string) fileStamp {
	info, err := os.Stat(name)
	if err != nil {
		return fileStamp{}
	}
	s := fileStamp{size: info.Size(), modTime: info.ModTime()}
	s.ino = inodeOf(info)
	return s
}

const policyEvery = 500 * time.Millisecond

// watchPolicy makes a bundle that is applied during the session hold in it, and puts that on record.
func (n *network) watchPolicy() {
	tick := time.NewTicker(policyEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.quit:
			return
		case <-tick.C:
		}
		if stampOf(filepath.Join(n.home.dir, policyFile)) == n.stamp {
			continue
		}
		n.loadPolicy("change") // its error is in the event
		about := n.about
		n.say(event.New(boottime(), nil, &about))
	}
}

// replaced are the variables that rye sets, with what the user had in them.
func (n *network) replaced(env []string, names []string) {
	n.was = map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) && value != "" {
			n.was[name] = withoutUser(value)
		}
	}
}

// withoutUser cuts user information out of a proxy's URL.
func withoutUser(value string) string {
	if i := strings.LastIndexByte(value, '@'); i >= 0 {
		scheme, _, ok := strings.Cut(value, "://")
		if ok && len(scheme) < i {
			return scheme + "://[cut]" + value[i:]
		}
		return "[cut]" + value[i:]
	}
	return value
}
