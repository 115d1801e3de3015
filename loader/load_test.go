package loader

import (
	"encoding/json"
	"testing"
)

func TestDetect(t *testing.T) {
	f := Detect()
	b, _ := json.MarshalIndent(f, "", " ")
	t.Logf("%s", b)
}
func TestPrivLoad(t *testing.T) {
	p, err := Load(Options{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer p.Close()
	if err := p.Attach(Options{}); err != nil {
		t.Fatal(err)
	}
	t.Log(p.Hooks(), p.Gaps())
}
