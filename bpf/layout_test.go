package bpf

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// Every struct of the union must have the size and member offsets in Go that the object's BTF gives it, and
// no padding that is not a named member. The list is the union's own: a new event is checked without being
// added here, as long as Go has a type for it.
func TestLayout(t *testing.T) {
	spec, err := LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	var union *btf.Union
	if err := spec.Types.TypeByName("event", &union); err != nil {
		t.Fatal(err)
	}
	inGo := map[string]any{
		"event_header": ProbeEventHeader{}, "fork_event": ProbeForkEvent{}, "exec_event": ProbeExecEvent{}, "exec_failed_event": ProbeExecFailedEvent{},
		"exit_event": ProbeExitEvent{}, "open_event": ProbeOpenEvent{}, "connect_event": ProbeConnectEvent{}, "ipc_event": ProbeIpcEvent{},
		"cgroup_event": ProbeCgroupEvent{}, "pathop_event": ProbePathopEvent{}, "escape_event": ProbeEscapeEvent{},
		"refused_event": ProbeRefusedEvent{},
	}
	if len(union.Members) != len(inGo) {
		t.Errorf("the union has %d members, Go has %d types", len(union.Members), len(inGo))
	}
	for _, m := range union.Members {
		s, ok := btf.UnderlyingType(m.Type).(*btf.Struct)
		if !ok {
			t.Fatalf("%s is no struct", m.Name)
		}
		v, ok := inGo[s.Name]
		if !ok {
			t.Errorf("struct %s has no Go type in this test", s.Name)
			continue
		}
		typ := reflect.TypeOf(v)
		if int(s.Size) != int(typ.Size()) || int(s.Size) != binary.Size(v) {
			t.Errorf("struct %s: %d bytes in C, %d in Go, %d without padding", s.Name, s.Size, typ.Size(), binary.Size(v))
		}
		field := 0
		for _, cm := range s.Members {
			for field < typ.NumField() && typ.Field(field).Name == "_" {
				field++
			}
			if field == typ.NumField() {
				t.Errorf("struct %s: Go lacks %s", s.Name, cm.Name)
				break
			}
			if got, want := typ.Field(field).Offset, uintptr(cm.Offset.Bytes()); got != want {
				t.Errorf("struct %s: %s at %d in Go, %d in C", s.Name, cm.Name, got, want)
			}
			field++
		}
	}
}
