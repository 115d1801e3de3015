package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ryehq/rye/modelapi"
	"github.com/ryehq/rye/policy"
	"github.com/ryehq/rye/policy/content"
)

// WebSocket (RFC 6455) on opened connections and shims. Each message of the client's is a request of its own to the
// policy: it is held until it is whole and judged, and what is refused ends the connection. What the server sends
// passes as it comes. Compression is not offered to the server, so that what is sent can be read.

// Opcodes and close codes.
const (
	opContinuation = 0x0
	opText         = 0x1
	opClose        = 0x8

	closeProtocol = 1002
	closePolicy   = 1008
)

// A frameHead is the beginning of a frame.
type frameHead struct {
	raw    [14]byte
	n      int // bytes of raw
	final  bool
	rsv    bool
	opcode byte
	masked bool
	mask   [4]byte
	size   uint64
}

var errFrame = errors.New("not a WebSocket frame")

// readFrameHead reads up to the payload. io.EOF means that there is no further frame.
func readFrameHead(r io.Reader) (h frameHead, err error) {
	if _, err := io.ReadFull(r, h.raw[:2]); err != nil {
		return h, err
	}
	h.n = 2
	h.final, h.rsv, h.opcode = h.raw[0]&0x80 != 0, h.raw[0]&0x70 != 0, h.raw[0]&0x0f
	h.masked, h.size = h.raw[1]&0x80 != 0, uint64(h.raw[1]&0x7f)
	more := 0
	switch h.size {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if h.masked {
		more += 4
	}
	rest := h.raw[2 : 2+more]
	if _, err := io.ReadFull(r, rest); err != nil {
		return h, errFrame
	}
	h.n += more
	switch h.size {
	case 126:
		h.size, rest = uint64(binary.BigEndian.Uint16(rest)), rest[2:]
	case 127:
		h.size, rest = binary.BigEndian.Uint64(rest), rest[8:]
	}
	copy(h.mask[:], rest)
	if h.size>>63 != 0 || h.control() && (h.size > 125 || !h.final) {
		return h, errFrame
	}
	return h, nil
}

func (h *frameHead) control() bool { return h.opcode&0x8 != 0 }

// unmask undoes the masking of the payload's bytes from offset at on.
func (h *frameHead) unmask(b []byte, at uint64) {
	for i := range b {
		b[i] ^= h.mask[(at+uint64(i))&3]
	}
}

// upgraded answers a request for a web socket whose head the policy allows.
func (x *record) upgraded(w http.ResponseWriter, r *http.Request, way route) {
	p := x.p
	out := outgoing(r, way, &spool{p: p})
	out.Header.Set("Connection", "Upgrade")
	out.Header.Set("Upgrade", "websocket")
	out.Header.Del("Sec-Websocket-Extensions")
	res, err := p.transport.RoundTrip(out)
	if err != nil {
		x.fail(w, err)
		return
	}
	defer res.Body.Close()
	server, ok := res.Body.(io.ReadWriteCloser)
	if res.StatusCode != http.StatusSwitchingProtocols || !ok {
		x.passBack(w, res, nil)
		return
	}
	client, err := hijack(w)
	if err != nil {
		x.ev.Error = "client-gone"
		return
	}
	if !p.track(client) {
		return
	}
	defer p.untrack(client)
	x.ev.Status, x.ev.Upgraded = res.StatusCode, "websocket"
	var head strings.Builder
	fmt.Fprintf(&head, "HTTP/1.1 101 Switching Protocols\r\n")
	_ = res.Header.Write(&head) // a Builder takes everything
	if _, err := io.WriteString(client, head.String()+"\r\n"); err != nil {
		x.ev.Error = "client-gone"
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer server.Close()
		x.fromClient(r, way, client, server)
	})
	both.Go(func() {
		defer client.Close()
		x.fromServer(agentOf(r.Header), client, server)
	})
	both.Wait()
}

// fromClient passes messages on, each when it is judged.
func (x *record) fromClient(r *http.Request, way route, client net.Conn, server io.Writer) {
	for {
		m := &message{x: x, body: &spool{p: x.p}, judge: policy.NewEvaluator(x.p.c.Bundle(), policy.Head{Method: r.Method, Host: way.target, Path: r.URL.EscapedPath(), Header: messageHeader(r.Header)})}
		err := m.read(client, server)
		d := m.judge.Close()
		if err == nil {
			x.ev.Messages++
			x.ev.RequestSHA256 = hex.EncodeToString(m.sum[:]) // of the last message: a refused one is that
			x.decidedAlso(d)
			x.ask(r)
			if x.ev.Decision == string(policy.Allow) {
				_, err = io.Copy(server, m.body.reader())
			}
		}
		m.body.release()
		switch {
		case errors.Is(err, errFrame):
			x.refusedByProxy("what was sent is not WebSocket, or uses an extension that was not agreed on")
			writeClose(client, closeProtocol, x.ev.Reason)
		case errors.Is(err, errTooLarge), errors.Is(err, errTooMuch), errors.Is(err, errSpool):
			x.refusedByProxy("a message is larger than can be held for judging")
			writeClose(client, closePolicy, x.ev.Reason)
		case err == nil && x.ev.Decision != string(policy.Allow):
			writeClose(client, closePolicy, x.message("rye_policy", x.ev.Reason))
		case err == nil:
			continue
		default:
			return
		}
		// Closing with something unread would take the close frame back from the client.
		client.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, client) // what comes now is not looked at
		return
	}
}

// decidedAlso records the decision on a further message; what earlier ones left to say stays said.
func (x *record) decidedAlso(d policy.Decision) {
	logged, unjudged := x.ev.Logged, x.ev.Unjudged
	x.decided(d)
	for _, rule := range d.Logged {
		if !slices.Contains(logged, rule) {
			logged = append(logged, rule)
		}
	}
	x.ev.Logged = logged
	if unjudged != "" {
		x.ev.Unjudged = unjudged
	}
}

// messageHeader is the head that messages are judged with: no coding of the handshake's is theirs.
func messageHeader(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Content-Encoding")
	return h
}

// A message is held as it came, masks and fragments included.
type message struct {
	x     *record
	body  *spool
	judge *policy.Evaluator
	sum   [sha256.Size]byte
}

// read takes one message. Control frames between its fragments are passed on at once.
func (m *message) read(client io.Reader, server io.Writer) error {
	sum := sha256.New()
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	begun := false
	for {
		h, err := readFrameHead(client)
		if err != nil {
			return err
		}
		if h.rsv || !h.masked || !h.control() && begun != (h.opcode == opContinuation) {
			return errFrame
		}
		if h.control() {
			frame := append([]byte(nil), h.raw[:h.n]...)
			frame = append(frame, make([]byte, h.size)...)
			if _, err := io.ReadFull(client, frame[h.n:]); err != nil {
				return err
			}
			if _, err := server.Write(frame); err != nil {
				return err
			}
			continue
		}
		begun = true
		if err := m.body.add(h.raw[:h.n]); err != nil {
			return err
		}
		for at := uint64(0); at < h.size; {
			n, err := client.Read(piece[:min(h.size-at, pieceSize)])
			if err != nil && n == 0 {
				return err
			}
			if err := m.body.add(piece[:n]); err != nil {
				return err
			}
			h.unmask(piece[:n], at)
			m.judge.Write(piece[:n])
			sum.Write(piece[:n])
			m.x.ev.RequestBytes += uint64(n)
			at += uint64(n)
		}
		if h.final {
			sum.Sum(m.sum[:0])
			return nil
		}
	}
}

// writeClose ends the connection with a reason that the client may show. A reason is at most 123 bytes.
func writeClose(client io.Writer, code uint16, reason string) {
	reason = strings.ToValidUTF8(reason[:min(len(reason), 123)], "")
	frame := binary.BigEndian.AppendUint16([]byte{0x80 | opClose, byte(2 + len(reason))}, code)
	_, _ = client.Write(append(frame, reason...)) // the connection is given up anyway
}

// fromServer passes on what comes and reads, on a copy, what the model asks for.
func (x *record) fromServer(agent string, client io.Writer, server io.Reader) {
	a := &asked{x: x, agent: agent}
	a.reader = modelapi.NewReader(a.call)
	broken := false
	copied := content.NewFeed(func(f *content.Feed) { broken = readMessages(f, a.reader.Write) != nil })
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	for {
		n, err := server.Read(piece[:])
		if n > 0 {
			if _, werr := client.Write(piece[:n]); werr != nil {
				break
			}
			x.ev.ResponseBytes += uint64(n)
			copied.Write(piece[:n])
		}
		if err != nil {
			break
		}
	}
	copied.Close()
	if x.ev.ResponseUnread = a.reader.Close(); broken && x.ev.ResponseUnread == "" {
		x.ev.ResponseUnread = "what the server sent is not WebSocket to its end"
	}
}

// readMessages hands on the payloads of a server's messages. Text ones hold a document each, binary ones are no
// model's words.
func readMessages(r io.Reader, take func([]byte)) error {
	buf := make([]byte, 4<<10)
	kind := byte(opText)
	for {
		h, err := readFrameHead(r)
		if err == io.EOF {
			return nil
		}
		if err != nil || h.rsv || h.masked {
			return errFrame
		}
		if !h.control() && h.opcode != opContinuation {
			kind = h.opcode
		}
		for left := h.size; left > 0; {
			n, err := r.Read(buf[:min(left, uint64(len(buf)))])
			if n == 0 && err != nil {
				return errFrame
			}
			if !h.control() && kind == opText {
				take(buf[:n])
			}
			left -= uint64(n)
		}
	}
}
