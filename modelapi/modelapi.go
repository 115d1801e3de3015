// Package modelapi reads what a model asks for from the answers of its API, as they stream: tool_use of Anthropic's
// Messages, function_call, custom_tool_call and local_shell_call of OpenAI's Responses, tool_calls of Chat
// Completions, functionCall of Gemini; as server-sent events, as one JSON document or as an array of them.
//
// Bytes are pushed in whatever pieces they arrive; memory is bounded; the bytes are never changed. Tools that the
// provider runs itself (server_tool_use, web_search_call, mcp_call …) are not calls to this machine and are left out.
//
// It is pure and imports the standard library only.
package modelapi

import (
	"crypto/sha256"
	"hash"
)

// Names of the APIs, as calls carry them.
const (
	Anthropic = "anthropic"
	Responses = "openai-responses"
	Chat      = "openai-chat"
	Gemini    = "gemini"
)

// Bounds on one answer. What is beyond them is said ([Reader.Close], [Call.Cut]), never left out silently.
const (
	MaxDocument  = 4 << 20   // one event, or one document of JSON
	MaxArguments = 64 << 10  // of one call
	maxOpen      = 64        // calls that are being written at once
	maxHeld      = 256 << 10 // arguments of all of them
	maxKey       = 256       // of an id or name
	maxSeen      = 4096      // ids, so that no call is told twice
)

// A Call is one tool call of a model.
type Call struct {
	API        string
	ID         string // the id that the result is to name; "" where the API gives none
	Namespace  string
	Name       string
	Arguments  []byte // as the model wrote them, JSON or text; at most MaxArguments
	Size       uint64 // of all arguments
	SHA256     [32]byte
	Cut        bool     // Arguments is not all of them, or an id or name is too long
	Argv       []string // of a local_shell_call
	CWD        string   // likewise
	Unfinished bool     // the answer ended before the call did
}

// An open call is one whose arguments are still coming.
type open struct {
	call Call
	sum  hash.Hash
}

func (o *open) write(r *Reader, s string) {
	o.sum.Write([]byte(s))
	o.call.Size += uint64(len(s))
	room := min(MaxArguments-len(o.call.Arguments), maxHeld-r.held)
	if len(s) > room {
		s, o.call.Cut = s[:max(room, 0)], true
	}
	o.call.Arguments = append(o.call.Arguments, s...)
	r.held += len(s)
}

// key bounds an id or a name.
func (c *Call) key(s string) string {
	if len(s) > maxKey {
		c.Cut = true
		return s[:maxKey]
	}
	return s
}

func (r *Reader) start(at, api, id, namespace, name string) *open {
	o := &open{call: Call{API: api}, sum: sha256.New()}
	o.call.ID, o.call.Namespace, o.call.Name = o.call.key(id), o.call.key(namespace), o.call.key(name)
	if len(r.open) >= maxOpen {
		r.miss("more than 64 calls at once")
		return o // of nobody's
	}
	r.open[at] = o
	r.order = append(r.order, at)
	return o
}

// finish hands on the call that is open at a place.
func (r *Reader) finish(at string) {
	o := r.open[at]
	if o == nil {
		return
	}
	delete(r.open, at)
	for i, s := range r.order {
		if s == at {
			r.order = append(r.order[:i], r.order[i+1:]...)
			break
		}
	}
	r.held -= len(o.call.Arguments)
	o.sum.Sum(o.call.SHA256[:0])
	r.hand(o.call)
}

// whole hands on a call that came in one piece.
func (r *Reader) whole(c Call, arguments string) {
	c.ID, c.Namespace, c.Name = c.key(c.ID), c.key(c.Namespace), c.key(c.Name)
	c.Size, c.SHA256 = uint64(len(arguments)), sha256.Sum256([]byte(arguments))
	if len(arguments) > MaxArguments {
		arguments, c.Cut = arguments[:MaxArguments], true
	}
	c.Arguments = []byte(arguments)
	r.hand(c)
}

func (r *Reader) hand(c Call) {
	if c.ID != "" {
		key := c.API + " " + c.ID
		if r.seen[key] {
			return // the end of a Responses stream repeats them all
		}
		if len(r.seen) < maxSeen {
			r.seen[key] = true
		}
	}
	r.emit(c)
}

// miss notes why calls may be missing. The first reason counts.
func (r *Reader) miss(why string) {
	if r.why == "" {
		r.why = why
	}
}
