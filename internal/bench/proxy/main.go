// Command proxy measures rye's proxy beside elazarl/goproxy and mitmdump in one run, on loopback TLS: requests per
// second with eight clients, and what one client waits longer than without a proxy. rye judges with the bundle that
// it ships and writes its ledger; the others do neither. Tools take turns within a round; each round begins without
// a proxy, and a tool is set against its own round.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ledger"
	"github.com/ryehq/rye/policy"
	"github.com/ryehq/rye/proxy"
)

func main() {
	rounds := flag.Int("rounds", 5, "rounds")
	n := flag.Int("n", 3000, "requests of each kind in a round; mitmdump gets a tenth")
	flag.Parse()
	var err error
	switch flag.Arg(0) {
	case "": // the measuring itself
		err = run(*rounds, *n)
	case "origin":
		err = origin(flag.Arg(1), flag.Arg(2))
	case "rye":
		err = rye(flag.Arg(1), flag.Arg(2))
	default:
		err = fmt.Errorf("%q is nothing to run", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const answerSize = 2 << 10

// origin answers every request with 2 KiB of JSON, under the certificate in dir.
func origin(addr, dir string) error {
	body := []byte(`{"text":"` + strings.Repeat("x", answerSize-11) + `"}`)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, proxy.CertFile), filepath.Join(dir, proxy.KeyFile))
	if err != nil {
		return err
	}
	s := &http.Server{
		Addr: addr, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Write(body)
		}),
	}
	return s.ListenAndServeTLS("", "")
}

// rye is the proxy as a session has it: the bundle that ships with it, and a ledger.
func rye(addr, dir string) error {
	ca, err := proxy.LoadCA(dir)
	if err != nil {
		return err
	}
	bundle, err := policy.Parse(policy.DefaultYAML())
	if err != nil {
		return err
	}
	key, err := ledger.LoadKey(dir, "bench")
	if err != nil {
		return err
	}
	book, err := ledger.Create(filepath.Join(dir, "session"), "bench", key)
	if err != nil {
		return err
	}
	start := time.Now()
	p, err := proxy.New(proxy.Config{
		CA: ca, Bundle: func() *policy.Bundle { return bundle }, Boottime: func() uint64 { return uint64(time.Since(start)) },
		Emit:    func(e event.Event) { _ = book.Append(&e) }, // a failure is kept in the ledger's writer
		RootCAs: roots(dir),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return p.Serve(l)
}

type tool struct {
	name  string
	proxy *url.URL // nil for none
	share int      // of the requests
	runs  []result
}

func run(rounds, n int) error {
	dir, err := os.MkdirTemp("", "rye-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ca, err := proxy.NewCA([]string{"127.0.0.1"}, time.Now())
	if err != nil {
		return err
	}
	if err := ca.Save(filepath.Join(dir, "ca")); err != nil {
		return err
	}
	if err := selfSigned(filepath.Join(dir, "origin")); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var started []*exec.Cmd
	defer func() {
		for _, c := range started {
			c.Process.Kill()
			c.Wait()
		}
	}()
	start := func(argv ...string) error {
		c := exec.Command(argv[0], argv[1:]...)
		c.Stderr = os.Stderr
		started = append(started, c)
		return c.Start()
	}
	ports, err := free(4)
	if err != nil {
		return err
	}
	if err := start(self, "origin", ports[0], filepath.Join(dir, "origin")); err != nil {
		return err
	}
	tools := []*tool{{name: "no proxy", share: 1}, {name: "rye", share: 1}}
	if err := start(self, "rye", ports[1], filepath.Join(dir, "ca")); err != nil {
		return err
	}
	other := filepath.Join(dir, "goproxy")
	build := exec.Command("go", "build", "-o", other, ".")
	build.Dir = "internal/bench/goproxy"
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: goproxy could not be built and is left out: %s\n", out)
	} else if err := start(other, ports[2], filepath.Join(dir, "ca", proxy.CertFile), filepath.Join(dir, "ca", proxy.KeyFile)); err != nil {
		return err
	} else {
		tools = append(tools, &tool{name: "goproxy", share: 1})
	}
	if path, err := exec.LookPath("mitmdump"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: no mitmdump: left out")
	} else {
		_, port, _ := net.SplitHostPort(ports[3]) // as free gave it
		if err := start(path, "-q", "-k", "--listen-host", "127.0.0.1", "-p", port, "--set", "confdir="+filepath.Join(dir, "mitm")); err != nil {
			return err
		}
		tools = append(tools, &tool{name: "mitmdump", share: 10})
	}
	for _, t := range tools {
		at := map[string]string{"no proxy": ports[0], "rye": ports[1], "goproxy": ports[2], "mitmdump": ports[3]}[t.name]
		if t.name != "no proxy" {
			t.proxy = &url.URL{Scheme: "http", Host: at}
		}
		if err := reachable(at); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	target := "https://" + ports[0] + "/v1/messages"
	for r := range rounds {
		for _, t := range tools {
			res, err := measure(target, t.proxy, n/t.share)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			t.runs = append(t.runs, res)
			fmt.Fprintf(os.Stderr, "round %d, %s: %.0f requests/s, %v\n", r+1, t.name, res.rate, res.wait)
		}
	}
	print(tools)
	return nil
}

// free returns n addresses on loopback on which nothing listens.
func free(n int) ([]string, error) {
	var list []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list, nil
}

func reachable(addr string) error {
	for range 300 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("did not start")
}

func median[T int64 | float64](list []T) T {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

// print gives medians over rounds, and of ratios within them.
func print(tools []*tool) {
	fmt.Println("| proxy | requests/s | of goproxy's | one client waits, µs | added, µs | of goproxy's | of mitmdump's |")
	fmt.Println("|---|---|---|---|---|---|---|")
	byName := map[string]*tool{}
	for _, t := range tools {
		byName[t.name] = t
	}
	added := func(t *tool, round int) float64 {
		return float64(t.runs[round].wait-byName["no proxy"].runs[round].wait) / 1e3
	}
	ratio := func(t *tool, to string, of func(*tool, int) float64) string {
		other := byName[to]
		if other == nil || other == t || t.proxy == nil {
			return ""
		}
		var list []float64
		for r := range t.runs {
			list = append(list, of(t, r)/of(other, r))
		}
		return fmt.Sprintf("%.2f", median(list))
	}
	for _, t := range tools {
		var rates, waits, more []float64
		for r, res := range t.runs {
			rates, waits, more = append(rates, res.rate), append(waits, float64(res.wait)/1e3), append(more, added(t, r))
		}
		rate := func(t *tool, r int) float64 { return t.runs[r].rate }
		fmt.Printf("| %s | %.0f | %s | %.0f | %.0f | %s | %s |\n", t.name, median(rates), ratio(t, "goproxy", rate), median(waits), median(more),
			ratio(t, "goproxy", added), ratio(t, "mitmdump", added))
	}
}
