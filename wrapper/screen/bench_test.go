package screen

import (
	"strings"
	"testing"

	"github.com/ryehq/rye/event"
)

// BenchmarkOutput is what the reader costs on a program's output and on an assistant's own frames.
func BenchmarkOutput(b *testing.B) {
	text := []byte(strings.Repeat("\x1b[32mok\x1b[0m   github.com/example/project/package\t0.004s and some more words\r\n", 1000))
	frames := []byte(strings.Repeat(codexScreen("• Ran make\n  └ ok\n", codexAsks("make", 0)...)+codexScreen("• Ran make\n  └ ok\n"), 100))
	for name, in := range map[string][]byte{"text": text, "frames": frames} {
		b.Run(name, func(b *testing.B) {
			s := New(120, 40, func(event.Event) {})
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for now := uint64(1e9); b.Loop(); now += 1e6 {
				s.Output(in, now)
			}
		})
	}
}
