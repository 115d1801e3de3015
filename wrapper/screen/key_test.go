package screen

import (
	"slices"
	"testing"
)

func TestKeys(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"y", []string{"y"}},
		{"1\r", []string{"1", "enter"}},
		{"\x1b[A\x1b[B\x1bOA\x1b[1;5C", []string{"up", "down", "up", "ctrl+right"}},
		{"\x1b[Z\t", []string{"shift+tab", "tab"}},
		{"\x03\x0e", []string{"ctrl+c", "ctrl+n"}},
		{"\x1by", []string{"alt+y"}},
		{"\x1b\x1b[A", []string{"esc", "up"}},
		{"日", []string{"日"}},
		{"\x1b[121u\x1b[27u\x1b[13u", []string{"y", "esc", "enter"}},              // kitty
		{"\x1b[121;1:3u\x1b[121;5u\x1b[57441u", []string{"ctrl+y"}},               // release, ctrl, a bare shift
		{"\x1b[27;5;121~", []string{"ctrl+y"}},                                    // modifyOtherKeys
		{"\x1b[<0;5;4M\x1b[<0;5;4m\x1b[<35;6;6M\x1b[<64;1;1M", []string{"mouse"}}, // press, release, move, wheel
		{"\x1b[M !!", []string{"mouse"}},
		{"\x1b[200~y\r1\x1b[201~n", []string{"paste", "n"}},
		{"\x1b[?62;22c\x1b[>0;10;1c\x1b[4;1R\x1b[?2026;2$y\x1b[I\x1b[O", nil},
		{"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b]11;x\x07\x1bP>|xterm(390)\x1b\\\x1b_Gok\x1b\\", nil},
		{"\x7f\xff", []string{"backspace"}},
	}
	for _, test := range tests {
		for cut := range len(test.in) {
			var k keyParser
			keys := append(k.take([]byte(test.in[:cut])), k.take([]byte(test.in[cut:]))...)
			var got []string
			for _, one := range append(keys, k.flush()...) {
				got = append(got, one.name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q cut at %d: %q, want %q", test.in, cut, got, test.want)
			}
		}
	}
	var k keyParser
	if keys := k.take([]byte("\x1b")); len(keys) != 0 {
		t.Errorf("a lone ESC is read at once: %v", keys)
	}
	if keys := k.flush(); len(keys) != 1 || keys[0].name != "esc" {
		t.Errorf("a lone ESC is not the Esc key: %v", keys)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("1\r\x1b[<0;5;4M\x1b[200~"), 3)
	f.Add([]byte("\x1b]11;?\x1b[27;5;121~\x1b[M\xff\xfe\xe2\x82"), 1)
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		var k keyParser
		n = 1 + max(n, 0)%16
		for i := 0; i < len(in); i += n {
			for _, one := range k.take(in[i:min(i+n, len(in))]) {
				if one.name == "" {
					t.Fatal("a key without a name")
				}
			}
			if len(k.pending) > maxPending+16 {
				t.Fatalf("%d bytes pending", len(k.pending))
			}
		}
		k.flush()
	})
}
