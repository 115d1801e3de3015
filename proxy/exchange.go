package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ryehq/rye/policy"
)

// exchange judges one request and, if it is allowed, passes it on and its answer back.
func (p *Proxy) exchange(w http.ResponseWriter, r *http.Request, way route) {
	x := p.begin(r, way.target)
	x.ev.Shim = way.shim
	defer x.finish()
	if way.host == "" && !sameHost(r.Host, way.target, way.scheme) {
		// The policy judges by host, and so must the server: not one name outside and another inside.
		x.refusedByProxy("the request is for another host than its connection")
		x.refuse(w, http.StatusMisdirectedRequest)
		return
	}
	e := policy.NewEvaluator(p.c.Bundle(), policy.Head{Method: r.Method, Host: way.target, Path: r.URL.EscapedPath(), Header: r.Header})
	body, err := p.hold(r, x, e)
	defer body.release()
	x.decided(e.Close())
	if err == nil {
		x.ask(r)
	}
	switch {
	case errors.Is(err, errTooLarge) && x.ev.Decision == string(policy.Allow):
		x.refusedByProxy("the body is larger than is held for judging")
		x.refuse(w, http.StatusRequestEntityTooLarge)
		return
	case errors.Is(err, errTooMuch):
		x.refusedByProxy("too much is being judged at the moment")
		x.refuse(w, http.StatusServiceUnavailable)
		return
	case errors.Is(err, errSpool):
		x.ev.Error = "spool"
		x.refusedByProxy("the body cannot be kept while it is judged")
		x.refuse(w, http.StatusInsufficientStorage)
		return
	case err != nil && !errors.Is(err, errTooLarge):
		x.ev.Error = "client-gone"
		panic(http.ErrAbortHandler)
	case x.ev.Decision != string(policy.Allow):
		x.refuse(w, http.StatusForbidden)
		return
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		x.upgraded(w, r, way)
		return
	case r.Header.Get("Upgrade") != "":
		x.refusedByProxy("what passes on a connection upgraded to another protocol could not be judged")
		x.refuse(w, http.StatusForbidden)
		return
	}
	out := outgoing(r, way, body)
	res, err := p.transport.RoundTrip(out)
	if err != nil {
		if r.Context().Err() != nil {
			x.ev.Error = "client-gone"
			panic(http.ErrAbortHandler)
		}
		x.fail(w, err)
		return
	}
	defer res.Body.Close()
	var copied *asked
	if way.opened {
		copied = x.newAsked(agentOf(r.Header), res.Header.Values("Content-Encoding"))
	}
	x.passBack(w, res, copied)
}

// refusedByProxy is a refusal that no rule made.
func (x *record) refusedByProxy(reason string) {
	x.ev.Decision, x.ev.Rule, x.ev.RuleVersion, x.ev.Reason = string(policy.Deny), "", "", reason
	if x.ev.Bundle == "" {
		x.ev.Bundle = x.p.c.Bundle().Name()
	}
}

// hold reads the whole body, past the evaluator, before anything is sent on.
func (p *Proxy) hold(r *http.Request, x *record, e *policy.Evaluator) (*spool, error) {
	body := &spool{p: p}
	sum := sha256.New()
	var err error
	if r.Body != http.NoBody {
		err = body.fill(r.Body, r.ContentLength, func(piece []byte) {
			sum.Write(piece)
			e.Write(piece)
			x.ev.RequestBytes += uint64(len(piece))
		})
	}
	x.ev.RequestSHA256 = hex.EncodeToString(sum.Sum(nil))
	x.ev.RequestCut = err != nil
	return body, err
}

// outgoing is the request as the server is to see it: the client's, less what concerns only the
// connection to the proxy.
func outgoing(r *http.Request, way route, body *spool) *http.Request {
	u := &url.URL{Scheme: way.scheme, Host: way.target, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	out := &http.Request{Method: r.Method, URL: u, Host: r.Host, Header: r.Header.Clone(), Trailer: r.Trailer, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if way.host != "" {
		out.Host = way.host
	}
	out = out.WithContext(r.Context())
	hopByHop(out.Header)
	if body.size > 0 || r.ContentLength != 0 {
		out.ContentLength = body.size
		out.GetBody = func() (io.ReadCloser, error) { return body.reader(), nil }
		out.Body, _ = out.GetBody() // never fails
		if len(r.Trailer) > 0 {
			out.ContentLength = -1 // trailers need chunks
		}
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // or the transport would name itself
	}
	return out
}

// hopByHop removes the fields of RFC 9110, 7.6.1, and those that speak to a proxy.
func hopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	trailers := strings.Contains(strings.ToLower(h.Get("Te")), "trailers")
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
	if trailers {
		h.Set("Te", "trailers")
	}
}

// passBack hands on the answer, each piece when it comes.
func (x *record) passBack(w http.ResponseWriter, res *http.Response, copied *asked) {
	if copied != nil {
		defer copied.close()
	}
	h := w.Header()
	for name, values := range res.Header {
		h[name] = values
	}
	hopByHop(h)
	h.Del("Alt-Svc") // it would send the client to HTTP/3, past the proxy
	announced := map[string]bool{}
	for name := range res.Trailer {
		h.Add("Trailer", name)
		announced[name] = true
	}
	for _, name := range []string{"Content-Type", "Date"} {
		if _, ok := h[name]; !ok {
			h[name] = nil // or the server would make one up
		}
	}
	x.ev.Status = res.StatusCode
	w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(w).Flush
	sum := sha256.New()
	defer func() { x.ev.ResponseSHA256 = hex.EncodeToString(sum.Sum(nil)) }()
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	buf := piece[:]
	n, err := firstPiece(res.Body, buf, flush)
	for {
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				err = werr
				break
			}
			sum.Write(buf[:n])
			x.ev.ResponseBytes += uint64(n)
			if err != io.EOF { // what came before an answer broke off is the client's, too
				if ferr := flush(); ferr != nil {
					err = ferr
					break
				}
			}
			if copied != nil {
				copied.write(buf[:n])
			}
		}
		if err != nil {
			break
		}
		n, err = res.Body.Read(buf)
	}
	if err != io.EOF {
		// The client must not take a cut answer for a whole one.
		x.ev.ResponseCut = true
		x.ev.Error = "response-cut"
		if res.Request.Context().Err() != nil {
			x.ev.Error = "client-gone"
		}
		panic(http.ErrAbortHandler)
	}
	for name, values := range res.Trailer {
		if !announced[name] {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// headerWait is how long the head of an answer may wait to leave together with the first of its body.
const headerWait = time.Millisecond

// firstPiece reads the first of a body. Should that take longer, the head does not wait for it.
func firstPiece(body io.Reader, buf []byte, flush func() error) (int, error) {
	var mu sync.Mutex
	came := false
	var failed error
	head := time.AfterFunc(headerWait, func() {
		mu.Lock()
		defer mu.Unlock()
		if !came {
			failed = flush()
		}
	})
	n, err := body.Read(buf)
	mu.Lock()
	defer mu.Unlock()
	came = true
	head.Stop()
	if failed != nil {
		return 0, failed
	}
	return n, err
}

// sameHost compares a Host field with the host:port that the client asked the proxy for.
func sameHost(field, target, scheme string) bool {
	port := "443"
	if scheme == "http" {
		port = "80"
	}
	full := func(s string) string {
		s = strings.ToLower(s)
		if h, p, err := net.SplitHostPort(s); err == nil {
			return net.JoinHostPort(strings.TrimSuffix(h, "."), p)
		}
		return net.JoinHostPort(strings.TrimSuffix(strings.Trim(s, "[]"), "."), port)
	}
	return full(field) == full(target)
}
