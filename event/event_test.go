package event

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

var allTypes = []Type{
	TypeSessionStart, TypeSessionEnd, TypeObserverAttached, TypeObserverLost, TypeProcessFork, TypeProcessExec,
	TypeProcessExecFailed, TypeProcessExit, TypeProcessAdopted, TypeCgroupLeft, TypeFileOpen, TypeFileDelete,
	TypeFileRename, TypeFileChange, TypeFileMap, TypeFileDigest, TypeNetConnect, TypeNetBind, TypeIPCConnect, "escape.ptrace",
	TypeApprovalPrompted, TypeApprovalGranted, TypeApprovalDenied, TypeScreenUnreadable, TypeToolCall,
	TypeToolResult, TypeTurnContext, TypeRulesLoaded, TypeProxyDecision, TypePolicyApplied, TypeNetRefused, TypeNetInherited,
	TypeNetDNS, TypeNetTLSHello,
}

// fill sets every field to something that is not its zero value.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(-7)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(math.MaxUint32)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), text)
		fill(v.Index(1), "")
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, text)
		v.SetMapIndex(reflect.ValueOf("k"+text), e)
		v.SetMapIndex(reflect.ValueOf("a"), e)
	}
}

func TestEveryTypeHasABody(t *testing.T) {
	for _, typ := range allTypes {
		for _, text := range []string{"plain", "", "new\nline \"q\" \\ \x00\x1f\x7f", "bad\xff\xc3utf8\xed\xb2\x80", "日本 \U0001f600\ufffd"} {
			b := newBody(typ)
			if b == nil {
				t.Fatalf("%s: no body", typ)
			}
			fill(reflect.ValueOf(b).Elem(), text)
			want := New(math.MaxUint64, &ProcessKey{7, math.MaxUint64}, b)
			want.Seq = 42
			if want.Type != typ {
				t.Fatalf("%s: body says %s", typ, want.Type)
			}
			line := want.AppendJSON(nil)
			if !json.Valid(line) || bytes.ContainsRune(line, '\n') {
				t.Fatalf("%s: not one line of JSON: %s", typ, line)
			}
			got, err := ParseJSON(line)
			if err != nil {
				t.Fatalf("%s: %v\n%s", typ, err, line)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: round trip\n got %s\nwant %s", typ, got.AppendJSON(nil), line)
			}
			if h, err := ParseHeader(line); err != nil || h.Seq != 42 || h.Type != typ || *h.Proc != *want.Proc {
				t.Errorf("%s: header %+v, %v", typ, h, err)
			}
		}
	}
}

// The encoding of bytes that are not UTF-8 is a promise to readers in other languages.
func TestInvalidUTF8(t *testing.T) {
	e := New(1, nil, &ProcessExec{Argv: []string{"a\xffb", "\xe2\x80", ""}, Env: map[string]string{}})
	line := string(e.AppendJSON(nil))
	if want := `"argv":["a\udcffb","\udce2\udc80",""]`; !strings.Contains(line, want) {
		t.Errorf("got %s\nwant %s", line, want)
	}
}

func TestHeaderOrder(t *testing.T) {
	e := New(5, &ProcessKey{3, 4}, &ProcessFork{Parent: ProcessKey{1, 2}})
	want := `{"seq":0,"time_ns":5,"type":"process.fork","proc":{"tgid":3,"start_ns":4},"parent":{"tgid":1,"start_ns":2}}`
	if got := string(e.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNewerLedger(t *testing.T) {
	line := `{"seq":1,"time_ns":2,"type":"process.fork","parent":{"tgid":1,"start_ns":2,"x":[{"y":-1.5e3}]},"later":{"a":[true,null]}}`
	e, err := ParseJSON([]byte(line))
	if err != nil || e.Body.(*ProcessFork).Parent.TGID != 1 {
		t.Errorf("unknown keys: %+v, %v", e, err)
	}
	e, err = ParseJSON([]byte(`{"seq":9,"time_ns":2,"type":"process.later","x":1}`))
	if err == nil || e.Seq != 9 {
		t.Errorf("unknown type: %+v, %v", e, err)
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, typ := range allTypes {
		b := newBody(typ)
		fill(reflect.ValueOf(b).Elem(), "s\xff\n")
		e := New(9, &ProcessKey{1, 2}, b)
		f.Add(e.AppendJSON(nil))
	}
	f.Add([]byte(`{"seq":1,"type":"process.fork","x":{"y":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseJSON(line)
		if err != nil {
			return
		}
		again := e.AppendJSON(nil)
		e2, err := ParseJSON(again)
		if err != nil {
			t.Fatalf("own output does not parse: %v\n%s", err, again)
		}
		if third := e2.AppendJSON(nil); !bytes.Equal(again, third) {
			t.Fatalf("not canonical:\n%s\n%s", again, third)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	e := New(123456789, &ProcessKey{1234, 987654321}, &FileOpen{Path: "/home/dev/app/src/main.go", Flags: []string{"O_RDONLY", "O_CLOEXEC"}, Dev: 65024, Ino: 12345, Count: 1})
	line := e.AppendJSON(nil)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			line = e.AppendJSON(line[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseJSON(line); err != nil {
				b.Fatal(err)
			}
		}
	})
}
