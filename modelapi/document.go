package modelapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// A document is an event or an answer of any of the APIs. Their fields do not collide, so that the API need not be
// known beforehand: a gateway may speak any of them at any address.
type document struct {
	Type string `json:"type"`

	// Anthropic
	Index        int             `json:"index"`
	ContentBlock *block          `json:"content_block"`
	Delta        json.RawMessage `json:"delta"`
	Content      json.RawMessage `json:"content"`

	// Responses
	Item      *item           `json:"item"`
	ItemID    string          `json:"item_id"`
	Arguments *string         `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output"`
	Response  json.RawMessage `json:"response"` // Gemini's Code Assist wraps its answers in one, too

	Choices    []choice    `json:"choices"`    // Chat
	Candidates []candidate `json:"candidates"` // Gemini
}

type block struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Action    json.RawMessage `json:"action"`
	Operation json.RawMessage `json:"operation"`
}

type choice struct {
	Index   int     `json:"index"`
	Delta   *asked  `json:"delta"`
	Message *asked  `json:"message"`
	Finish  *string `json:"finish_reason"`
}

type asked struct {
	ToolCalls []struct {
		Index    *int     `json:"index"`
		ID       string   `json:"id"`
		Function function `json:"function"`
		Custom   struct {
			Name  string `json:"name"`
			Input string `json:"input"`
		} `json:"custom"`
	} `json:"tool_calls"`
	FunctionCall *function `json:"function_call"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type candidate struct {
	Content struct {
		Parts []struct {
			FunctionCall *struct {
				ID   string          `json:"id"`
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			} `json:"functionCall"`
		} `json:"parts"`
	} `json:"content"`
}

// document reads one event or answer.
func (r *Reader) document(b []byte) {
	if len(r.order) == 0 && !mayCall(b) {
		return
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		var other *json.UnmarshalTypeError
		if !errors.As(err, &other) { // a field of another type than is known is none of a call's
			r.miss("part of the answer is not JSON")
			return
		}
	}
	r.anthropic(&d)
	r.responses(&d)
	for i := range d.Choices {
		r.chat(&d.Choices[i])
	}
	r.gemini(d.Candidates)
}

// mayCall reports whether a call can begin in b. Most events of a stream are pieces of text, and need no decoding.
func mayCall(b []byte) bool {
	for _, word := range []string{"tool_use", "_call", "functionCall", `\u`} { // the last may spell any of the others
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

func (r *Reader) anthropic(d *document) {
	at := "block " + strconv.Itoa(d.Index)
	switch d.Type {
	case "message":
		var blocks []block
		_ = json.Unmarshal(d.Content, &blocks) // a text has no calls
		for _, b := range blocks {
			if b.Type == "tool_use" {
				r.whole(Call{API: Anthropic, ID: b.ID, Name: b.Name}, string(b.Input))
			}
		}
	case "content_block_start":
		if b := d.ContentBlock; b != nil && b.Type == "tool_use" {
			r.finish(at)
			o := r.start(at, Anthropic, b.ID, "", b.Name)
			if s := string(b.Input); s != "" && s != "{}" && s != "null" {
				o.write(r, s)
			}
		}
	case "content_block_delta":
		var delta struct {
			Type    string `json:"type"`
			Partial string `json:"partial_json"`
		}
		_ = json.Unmarshal(d.Delta, &delta) // of another kind
		if o := r.open[at]; o != nil && delta.Type == "input_json_delta" {
			o.write(r, delta.Partial)
		}
	case "content_block_stop":
		if o := r.open[at]; o != nil && o.call.Size == 0 {
			o.write(r, "{}")
		}
		r.finish(at)
	}
}

func (r *Reader) responses(d *document) {
	at := "item " + d.ItemID
	switch {
	case strings.HasSuffix(d.Type, "_arguments.delta"), strings.HasSuffix(d.Type, "_call_input.delta"):
		if o := r.open[at]; o != nil {
			o.write(r, rawText(d.Delta))
		}
	case d.Type == "response.output_item.added":
		if i := d.Item; i != nil && i.ID != "" && i.local() {
			at = "item " + i.ID
			r.finish(at)
			r.start(at, Responses, i.callID(), i.Namespace, i.name())
		}
	case d.Type == "response.output_item.done":
		if d.Item != nil {
			r.item(d.Item)
		}
	case d.Response != nil:
		var inner document
		_ = json.Unmarshal(d.Response, &inner) // Responses' or Gemini's; else it has neither
		r.items(inner.Output)
		r.gemini(inner.Candidates)
	case d.Output != nil:
		r.items(d.Output)
	}
}

func (r *Reader) items(b json.RawMessage) {
	var list []item
	_ = json.Unmarshal(b, &list) // an output of another kind has no calls
	for i := range list {
		r.item(&list[i])
	}
}

// item hands on a call that is complete; what was gathered of it from pieces is then not needed.
func (r *Reader) item(i *item) {
	if !i.local() {
		return
	}
	at := "item " + i.ID
	if o := r.open[at]; o != nil {
		delete(r.open, at)
		r.held -= len(o.call.Arguments)
		for n, s := range r.order {
			if s == at {
				r.order = append(r.order[:n], r.order[n+1:]...)
				break
			}
		}
	}
	c := Call{API: Responses, ID: i.callID(), Namespace: i.Namespace, Name: i.name()}
	arguments := rawText(i.Arguments)
	switch i.Type {
	case "custom_tool_call":
		arguments = rawText(i.Input)
	case "local_shell_call":
		var action struct {
			Command []string `json:"command"`
			CWD     string   `json:"working_directory"`
		}
		_ = json.Unmarshal(i.Action, &action) // what it has of these
		c.Argv, c.CWD = append([]string{}, action.Command...), action.CWD
		arguments = string(i.Action)
	case "function_call":
	default:
		if i.Action != nil {
			arguments = string(i.Action)
		} else if i.Operation != nil {
			arguments = string(i.Operation)
		}
	}
	if len(arguments) > MaxArguments {
		c.Argv = nil // no more of them is kept than of others
	}
	r.whole(c, arguments)
}

// local reports whether the item asks the client to do something.
func (i *item) local() bool {
	switch i.Type {
	case "function_call", "custom_tool_call", "local_shell_call":
		return true
	case "mcp_call", "web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call":
		return false
	}
	return strings.HasSuffix(i.Type, "_call") && i.CallID != "" // shell_call, apply_patch_call, computer_call …
}

func (i *item) callID() string {
	if i.CallID != "" {
		return i.CallID
	}
	return i.ID
}

func (i *item) name() string {
	if i.Name != "" {
		return i.Name
	}
	return i.Type
}

func (r *Reader) chat(c *choice) {
	choice := "choice " + strconv.Itoa(c.Index)
	if m := c.Message; m != nil {
		for _, t := range m.ToolCalls {
			name, arguments := t.Function.Name, rawText(t.Function.Arguments)
			if t.Custom.Name != "" {
				name, arguments = t.Custom.Name, t.Custom.Input
			}
			r.whole(Call{API: Chat, ID: t.ID, Name: name}, arguments)
		}
		if f := m.FunctionCall; f != nil {
			r.whole(Call{API: Chat, Name: f.Name}, rawText(f.Arguments))
		}
	}
	if m := c.Delta; m != nil {
		for n, t := range m.ToolCalls {
			if t.Index != nil {
				n = *t.Index
			}
			at := choice + " call " + strconv.Itoa(n)
			name, arguments := t.Function.Name+t.Custom.Name, rawText(t.Function.Arguments)+t.Custom.Input
			o := r.open[at]
			if o == nil || t.ID != "" && t.ID != o.call.ID {
				r.finish(at)
				o = r.start(at, Chat, t.ID, "", name)
			} else if o.call.Name == "" {
				o.call.Name = o.call.key(name)
			}
			o.write(r, arguments)
		}
		if f := m.FunctionCall; f != nil {
			at := choice + " function"
			o := r.open[at]
			if o == nil {
				o = r.start(at, Chat, "", "", f.Name)
			}
			o.write(r, rawText(f.Arguments))
		}
	}
	if c.Finish != nil && *c.Finish != "" {
		r.finishChat(choice)
	}
}

// finishChat hands on the calls of a choice, of all when it is "".
func (r *Reader) finishChat(choice string) {
	for _, at := range append([]string(nil), r.order...) {
		if strings.HasPrefix(at, "choice ") && (choice == "" || strings.HasPrefix(at, choice+" ")) {
			r.finish(at)
		}
	}
}

func (r *Reader) gemini(list []candidate) {
	for _, c := range list {
		for _, p := range c.Content.Parts {
			if f := p.FunctionCall; f != nil {
				r.whole(Call{API: Gemini, ID: f.ID, Name: f.Name}, string(f.Args))
			}
		}
	}
}

// rawText is a string, or the JSON of what is none.
func rawText(b json.RawMessage) string {
	if len(b) == 0 || string(b) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	return string(b)
}
