package policy

import (
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

const everything = `
id: all
version: 1
default: allow
rules:
- {id: l1, action: log, when: {body_contains: [needle, ab]}}
- {id: l2, action: log, when: {body_matches: ['(?m)x+y$', 'é.{3}z$', '\bword\b']}}
- {id: l3, action: log, when: {secrets: any}}
- {id: l4, action: log, when: {models: 'm*'}}
- {id: l5, action: log, when: {tools: ['t*', 'Bash']}}
- {id: l6, action: log, when: {cel: 'body_size > 70000 || "slack_token" in secrets'}}
- {id: d1, action: deny, when: {body_larger_than: 100kB}}
- {id: d2, action: require_approval, when: {model_missing: true}}
`

func inPieces(b *Bundle, h Head, body []byte, step int) Decision {
	e := NewEvaluator(b, h)
	for len(body) > 0 {
		n := min(step, len(body))
		piece := append([]byte(nil), body[:n]...)
		e.Write(piece)
		clear(piece) // an evaluator may not keep what it was given
		body = body[n:]
	}
	return e.Close()
}

func TestAnySplitDecidesTheSame(t *testing.T) {
	b := mustParse(t, everything)
	texts := []string{
		"needle", "ab", "xxxy\n", "é123z", "word", "AKIAIOSFODNN7EXAMPLE", "-----BEGIN EC PRIVATE KEY-----",
		`{"model":"m\u0031","tools":[{"name":"Bash"}]}`, `{"tools":[{"function":{"name":"tt"}}],"model":"x"}`,
	}
	for _, text := range texts {
		// Also right across the border of a block.
		for _, before := range []int{1, blockSize - 190, blockSize - len(text)/2} {
			body := []byte(strings.Repeat(" ", before) + text)
			for _, enc := range []string{"", "gzip", "br", "zstd"} {
				h, wire := Head{Method: "POST", Host: "h", Path: "/"}, body
				if enc != "" {
					h.Header = map[string][]string{"Content-Encoding": {enc}}
					wire = encode(t, enc, body)
				}
				want := inPieces(b, h, wire, len(wire))
				if len(want.Logged) == 0 || want.Unjudged != "" {
					t.Errorf("%q after %d, %q: nothing found: %+v", text, before, enc, want)
				}
				for _, step := range []int{3, blockSize + 1} {
					if got := inPieces(b, h, wire, step); !reflect.DeepEqual(got, want) {
						t.Errorf("%q after %d, %q in steps of %d:\n got %+v\nwant %+v", text, before, enc, step, got, want)
					}
				}
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	b, err := Parse([]byte(everything))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"model":"m","tools":[{"name":"t"}]} needle`), uint16(3), "")
	f.Add(encode(f, "gzip", []byte("xxxy\né123z AKIAIOSFODNN7EXAMPLE")), uint16(1), "gzip")
	f.Add(encode(f, "zstd", []byte("needle")), uint16(2), "zstd")
	f.Add(encode(f, "br", []byte("needle")), uint16(2), "br")
	f.Fuzz(func(t *testing.T, body []byte, step uint16, enc string) {
		h := Head{Method: "POST", Host: "h", Path: "/", Header: map[string][]string{"Content-Encoding": {enc}}}
		want := Decide(b, Request{h, body})
		if got := inPieces(b, h, body, int(step)+1); !reflect.DeepEqual(got, want) {
			t.Fatalf("steps of %d:\n got %+v\nwant %+v", step+1, got, want)
		}
		if enc == "" && strings.Contains(string(body), "needle") != (len(want.Logged) > 0 && want.Logged[0] == "l1") && !strings.Contains(string(body), "ab") {
			t.Fatalf("needle: %+v", want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add(DefaultYAML())
	f.Add([]byte(`{"id":"b","version":"2","default":"deny","rules":[{"id":"l","action":"log","when":{"methods":["POST"]}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Parse(text)
		if err != nil {
			if b != nil {
				t.Fatal("a refused bundle was returned")
			}
			return
		}
		d := Decide(b, post("h", "/", `{"model":"m"}`))
		if d.Bundle != b.Name() || d.Action != Allow && d.Action != Deny && d.Action != RequireApproval {
			t.Fatalf("%+v", d)
		}
	})
}

// Memory is a block and what decoding needs, whatever the body's size.
func TestBoundedMemory(t *testing.T) {
	b := mustParse(t, everything)
	h := Head{Method: "POST", Host: "h", Path: "/"}
	piece := []byte(strings.Repeat(`{"a":"bcd", `, 1000))
	small := testing.AllocsPerRun(3, func() { inPieces(b, h, piece, len(piece)) })
	e := NewEvaluator(b, h)
	e.Write(piece)
	for range 10 {
		e.Write(piece)
	}
	grown := testing.AllocsPerRun(3, func() {
		for range 200 {
			e.Write(piece)
		}
	})
	if cap(e.buf) != blockSize {
		t.Errorf("buffer of %d", cap(e.buf))
	}
	e.Close()
	if grown > small {
		t.Errorf("%v allocations for 2.4 MB more, %v for all of a small body", grown, small)
	}
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkEvaluate(b *testing.B) {
	// A conversation about code, as the APIs carry it.
	line := `func (s *server) handle(w http.ResponseWriter, r *http.Request) error {\n\treturn fmt.Errorf(\"read body of request: %w\", err)\n}\n`
	body := []byte(`{"model":"m","tools":[{"name":"Bash"}],"input":[`)
	for len(body) < 1<<20 {
		body = append(body, `{"role":"user","content":"`+strings.Repeat(line, 8)+`"},`...)
	}
	body = append(body, `{}]}`...)
	for name, text := range map[string]string{
		"default": string(defaultYAML),
		"secrets": one("deny", "{secrets: any, model_missing: true}"),
		"regexp":  one("deny", "{body_matches: 'never[0-9]+'}"),
	} {
		bundle := mustParse(b, text)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				Decide(bundle, Request{Head{Method: "POST", Host: "api.openai.com", Path: "/v1/responses"}, body})
			}
			// Of this process's own time: on a shared machine the clock also counts what others do.
			b.ReportMetric(float64(len(body))*float64(b.N)/1e6/(cpu(b)-before).Seconds(), "MB/cpu-s")
		})
	}
}
