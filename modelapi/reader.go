package modelapi

import "bytes"

// A Reader takes one answer, decoded. It is for one goroutine.
type Reader struct {
	emit  func(Call)
	form  func(*Reader, []byte)
	open  map[string]*open
	order []string // of open, oldest first
	held  int
	seen  map[string]bool
	why   string

	// server-sent events
	started bool
	cr      bool   // the last byte was a carriage return: a line feed after it ends no second line
	prefix  []byte // the line's beginning, until it is known whether it is data
	inData  bool   // the line is data
	data    []byte // of the event
	any     bool   // the event has data, if only of no bytes
	long    bool   // it is longer than MaxDocument

	// documents
	depth int
	array bool // the documents are elements of one array
	text  bool // in a string
	esc   bool
}

// NewReader calls emit for each call, when it is complete.
func NewReader(emit func(Call)) *Reader {
	return &Reader{emit: emit, open: map[string]*open{}, seen: map[string]bool{}}
}

// Write takes the next bytes. Whether they are events or documents is told by the first of them, not by a header:
// a client that is as tolerant must not hear more than is recorded.
func (r *Reader) Write(p []byte) {
	for !r.started && len(p) > 0 {
		switch p[0] {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf: // white space, or a byte order mark
			p = p[1:]
		case '{', '[':
			r.started, r.form = true, (*Reader).documents
		default:
			r.started, r.form = true, (*Reader).events
		}
	}
	if r.started {
		r.form(r, p)
	}
}

// Close ends the answer and says why calls may be missing, "" when none are.
func (r *Reader) Close() string {
	if r.any { // an event without the empty line that ends it; some clients take it
		r.dispatch()
	}
	if r.depth > 0 || r.text {
		r.miss("the answer ends within a JSON document")
	}
	for len(r.order) > 0 {
		r.open[r.order[0]].call.Unfinished = true
		r.finish(r.order[0])
	}
	return r.why
}

// events reads lines (WHATWG HTML, 9.2.6). Only data fields are kept.
func (r *Reader) events(p []byte) {
	for len(p) > 0 {
		if r.cr {
			r.cr = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := bytes.IndexAny(p, "\r\n")
		line := p
		if end >= 0 {
			line = p[:end]
		}
		r.line(line)
		if end < 0 {
			return
		}
		r.cr = p[end] == '\r'
		p = p[end+1:]
		r.lineEnd()
	}
}

const field = "data:"

// line takes a piece of a line.
func (r *Reader) line(p []byte) {
	if !r.inData {
		n := min(len(field)+1-len(r.prefix), len(p)) // one more: a space after the colon is not data
		r.prefix = append(r.prefix, p[:n]...)
		p = p[n:]
		if len(r.prefix) <= len(field) || string(r.prefix[:len(field)]) != field {
			return
		}
		r.begin()
		if r.prefix[len(field)] != ' ' {
			r.keep(r.prefix[len(field):])
		}
	}
	r.keep(p)
}

func (r *Reader) begin() {
	r.inData = true
	if r.any {
		r.keep([]byte{'\n'})
	}
	r.any = true
}

func (r *Reader) keep(p []byte) {
	if r.long || len(r.data)+len(p) > MaxDocument {
		r.long = true
		r.data = r.data[:0]
		return
	}
	r.data = append(r.data, p...)
}

func (r *Reader) lineEnd() {
	switch {
	case r.inData:
	case string(r.prefix) == field, string(r.prefix) == field[:len(field)-1]:
		r.begin() // an empty one
	case len(r.prefix) == 0 && r.any:
		r.dispatch()
	}
	r.prefix, r.inData = r.prefix[:0], false
}

func (r *Reader) dispatch() {
	if r.long {
		r.miss("an event is longer than 4 MiB")
	} else if d := bytes.TrimSpace(r.data); string(d) == "[DONE]" {
		r.finishChat("")
	} else if len(d) > 0 {
		r.document(d)
	}
	r.data, r.any, r.long = r.data[:0], false, false
	if cap(r.data) > MaxDocument/4 {
		r.data = nil // a long event is rare: its memory is not kept for the rest
	}
}

// documents splits values that follow each other, or the elements of an array.
func (r *Reader) documents(p []byte) {
	base := 0 // depth at which documents stand
	if r.array {
		base = 1
	}
	from := 0
	for i := 0; i < len(p); i++ {
		if r.text {
			switch {
			case r.esc:
				r.esc = false
			case p[i] == '\\':
				r.esc = true
			case p[i] == '"':
				r.text = false
			default:
				if n := bytes.IndexAny(p[i:], `"\`); n < 0 {
					i = len(p) - 1
				} else {
					i += n - 1
				}
			}
			continue
		}
		switch p[i] {
		case '"':
			r.text = true
		case '{', '[':
			if r.depth == 0 && p[i] == '[' {
				r.array, base = true, 1
			} else if r.depth == base {
				from = i
			}
			r.depth++
		case '}', ']':
			if r.depth == 0 {
				break
			}
			if r.depth--; r.depth == 0 && r.array {
				r.array, base = false, 0
			} else if r.depth == base {
				r.keep(p[from : i+1])
				if r.long {
					r.miss("a JSON document is longer than 4 MiB")
				} else {
					r.document(r.data)
				}
				r.data, r.long = r.data[:0], false
			}
		}
	}
	if r.depth > base {
		r.keep(p[from:])
	}
}
