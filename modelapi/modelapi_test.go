package modelapi

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func read(body string, step int) (calls []string, why string) {
	r := NewReader(func(c Call) {
		s := fmt.Sprintf("%s %s %s%s(%s)", c.API, c.ID, c.Namespace, c.Name, c.Arguments)
		if c.Argv != nil {
			s += fmt.Sprintf(" argv %q in %s", c.Argv, c.CWD)
		}
		if c.Cut {
			s += " cut"
		} else if c.SHA256 != sha256.Sum256(c.Arguments) || c.Size != uint64(len(c.Arguments)) {
			s += " wrong digest or size"
		}
		if c.Unfinished {
			s += " unfinished"
		}
		calls = append(calls, s)
	})
	for len(body) > 0 {
		n := min(step, len(body))
		piece := []byte(body[:n])
		r.Write(piece)
		clear(piece) // a reader may not keep what it was given
		body = body[n:]
	}
	return calls, r.Close()
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "event: x\ndata: %s\n\n", e)
	}
	return b.String()
}

var cases = []struct {
	name, body string
	calls      []string
	why        string
}{
	{"messages, streamed", sse(
		`{"type":"message_start","message":{"id":"msg_1","type":"message","content":[]}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"tool_use"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"Now","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"comm"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"and\":\"ls\"}"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`,
		`{"type":"message_stop"}`),
		[]string{`anthropic toolu_1 Bash({"command":"ls"})`, `anthropic toolu_2 Now({})`}, ""},
	{"messages, cut off", sse(
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"comm"}}`),
		[]string{`anthropic toolu_1 Bash({"comm) unfinished`}, ""},
	{"messages", `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"{\"type\":\"tool_use\"}"},{"type":"tool_use","id":"toolu_1","name":"Write","input":{"file_path":"/a"}}]}`,
		[]string{`anthropic toolu_1 Write({"file_path":"/a"})`}, ""},
	{"responses, streamed", "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"output\":[]}}\r\n\r\n" + sse(
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"exec_command","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{\"cmd\":"}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"\"ls\"}"}`,
		`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":"{\"cmd\":\"ls\"}"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"custom_tool_call","id":"ctc_1","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n"}}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"local_shell_call","id":"lsh_1","call_id":"call_3","action":{"type":"exec","command":["ls","-l"],"working_directory":"/w"}}}`,
		`{"type":"response.output_item.done","output_index":3,"item":{"type":"web_search_call","id":"ws_1","action":{"query":"x"}}}`,
		`{"type":"response.output_item.done","output_index":4,"item":{"type":"shell_call","id":"sh_1","call_id":"call_4","action":{"commands":["id"]}}}`,
		`{"type":"response.completed","response":{"id":"resp_1","output":[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}]}}`),
		[]string{`openai-responses call_1 exec_command({"cmd":"ls"})`, `openai-responses call_2 apply_patch(*** Begin Patch` + "\n)",
			`openai-responses call_3 local_shell_call({"type":"exec","command":["ls","-l"],"working_directory":"/w"}) argv ["ls" "-l"] in /w`,
			`openai-responses call_4 shell_call({"commands":["id"]})`}, ""},
	{"responses, only in the end", sse(`{"type":"response.completed","response":{"output":[{"type":"function_call","id":"fc_1","call_id":"call_1","namespace":"mcp__m","name":"f","arguments":"{}"}]}}`),
		[]string{`openai-responses call_1 mcp__mf({})`}, ""},
	{"responses, cut off", sse(
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"exec_command","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{\"cmd\":"}`),
		[]string{`openai-responses call_1 exec_command({"cmd":) unfinished`}, ""},
	{"responses", `{"id":"resp_1","object":"response","output":[{"type":"reasoning","id":"rs_1"},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"}]}`,
		[]string{`openai-responses call_1 f({})`}, ""},
	{"chat, streamed", sse(
		`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"sh","arguments":""}}]},"finish_reason":null}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}},{"index":1,"id":"call_2","function":{"name":"two","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`[DONE]`),
		[]string{`openai-chat call_1 sh({"a":1})`, `openai-chat call_2 two({})`}, ""},
	{"chat, no finish reason", sse(`{"choices":[{"delta":{"tool_calls":[{"id":"call_1","function":{"name":"sh","arguments":"{}"}}]}}]}`, `[DONE]`),
		[]string{`openai-chat call_1 sh({})`}, ""},
	{"chat", `{"choices":[{"message":{"content":"x","tool_calls":[{"id":"call_1","type":"function","function":{"name":"sh","arguments":"{\"a\":1}"}}]}},{"message":{"function_call":{"name":"old","arguments":"{}"}}}]}`,
		[]string{`openai-chat call_1 sh({"a":1})`, `openai-chat  old({})`}, ""},
	{"gemini, streamed", "data: " + `{"candidates":[{"content":{"parts":[{"text":"x"},{"functionCall":{"name":"run_shell_command","args":{"command":"ls"}}}],"role":"model"}}]}` + "\r\n\r\n" +
		"data: " + `{"response":{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c2","name":"g","args":{}}}]}}]}}` + "\r\n\r\n",
		[]string{`gemini  run_shell_command({"command":"ls"})`, `gemini c2 g({})`}, ""},
	{"gemini, an array", "[" + `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"s":"]}\\\""}}}]}}]}` + ",\r\n" + `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"g","args":{}}}]}}]}` + "]",
		[]string{`gemini  f({"s":"]}\\\""})`, `gemini  g({})`}, ""},
	{"documents one after the other", `{"choices":[]}` + "\n" + `{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a"}}]}}]}`, []string{`openai-chat 1 a()`}, ""},
	{"event without its end", `data:{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a"}}]}}]}`, []string{`openai-chat 1 a()`}, ""},
	{"an event in two lines", "\xef\xbb\xbfdata: {\"choices\":[{\"message\":\ndata: {\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"a\"}}]}}]}\n\n", []string{`openai-chat 1 a()`}, ""},
	{"carriage returns", ": ping\rdata: {\"choices\":[{\"message\":\rdata:{\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"a\"}}]}}]}\r\r", []string{`openai-chat 1 a()`}, ""},
	{"not JSON", "data: {oops tool_use\n\n", nil, "part of the answer is not JSON"},
	{"cut document", `{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a"}}]}}]`, nil, "the answer ends within a JSON document"},
	{"web page", "<html>\ndatabase: {\n</html>", nil, ""},
	{"nothing", "", nil, ""},
	{"fields of other types", `{"type":7,"index":"a","choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a","arguments":{"b":1}}}]}}]}`, []string{`openai-chat 1 a({"b":1})`}, ""},
}

// Whatever the pieces, the calls are the same.
func TestCalls(t *testing.T) {
	for _, c := range cases {
		for step := 1; step <= len(c.body)+1; step++ {
			calls, why := read(c.body, step)
			if !reflect.DeepEqual(calls, c.calls) || why != c.why {
				t.Errorf("%s, in steps of %d:\n got %q %q\nwant %q %q", c.name, step, calls, why, c.calls, c.why)
				break
			}
		}
	}
}

func TestBounds(t *testing.T) {
	big := strings.Repeat("x", MaxArguments)
	calls, why := read(sse(
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"W","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+big+`"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"yy"}}`,
		`{"type":"content_block_stop","index":0}`), 1000)
	if len(calls) != 1 || !strings.HasSuffix(calls[0], "x) cut") || why != "" {
		t.Errorf("%d calls, %q", len(calls), why)
	}
	calls, why = read(sse(`{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a","arguments":"y`+big+`"}}]}}]}`), 1000)
	if len(calls) != 1 || !strings.HasSuffix(calls[0], "x) cut") || why != "" {
		t.Errorf("%d calls, %q", len(calls), why)
	}
	long := `{"pad":"` + strings.Repeat("x", MaxDocument) + `"}`
	for _, body := range []string{sse(long, `{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a"}}]}}]}`), long + `{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a"}}]}}]}`} {
		if calls, why := read(body, 1<<20); len(calls) != 1 || !strings.Contains(why, "longer than 4 MiB") {
			t.Errorf("after a long one: %q %q", calls, why)
		}
	}
	var many []string
	for i := range maxOpen + 1 {
		many = append(many, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"t%d","name":"W"}}`, i, i))
	}
	if calls, why := read(sse(many...), 1<<20); len(calls) != maxOpen || why == "" {
		t.Errorf("%d calls, %q", len(calls), why)
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range cases {
		f.Add(c.body, uint16(3))
	}
	f.Fuzz(func(t *testing.T, body string, step uint16) {
		calls, why := read(body, len(body)+1)
		again, whyAgain := read(body, int(step)+1)
		if !reflect.DeepEqual(calls, again) || why != whyAgain {
			t.Fatalf("in steps of %d:\n got %q %q\nwant %q %q", step+1, again, whyAgain, calls, why)
		}
		for _, c := range calls {
			if strings.Contains(c, "wrong digest") {
				t.Fatal(c)
			}
		}
	})
}
