package collector

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/ryehq/rye/bpf"
	"github.com/ryehq/rye/event"
)

// record puts a fixed part and its tail together as the kernel does.
func record(t testing.TB, h *bpf.ProbeEventHeader, fixed any, tail string) []byte {
	t.Helper()
	h.Size = uint32(binary.Size(fixed) + len(tail))
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, fixed); err != nil {
		t.Fatal(err)
	}
	b.WriteString(tail)
	return b.Bytes()
}

func execRecord(t testing.TB) []byte {
	path, interp, exe, cwd := "./run.sh", "/bin/sh", "/usr/bin/dash", "/home/dev/app"
	env := "PATH=/usr/bin:/bin\x00API_KEY=secret\x00HOME=/home/dev\x00GIT_TOKEN=x\x00"
	argv := "sh\x00\x00a b\x00\xff\n\x00"
	e := bpf.ProbeExecEvent{
		Parent: bpf.ProbeProcKey{StartNs: 1, Tgid: 2}, ExeDev: 8<<20 | 1, ExeIno: 9, ExeNlink: 1, ArgvBytes: uint64(len(argv)), EnvBytes: uint64(len(env)),
		PathLen: uint32(len(path)), InterpLen: uint32(len(interp)), ExeLen: uint32(len(exe)), CwdLen: uint32(len(cwd)), EnvLen: uint32(len(env)), ArgvLen: uint32(len(argv)),
	}
	e.H = bpf.ProbeEventHeader{TimeNs: 5, Type: bpf.ProbeEventTypeEVENT_EXEC, Proc: bpf.ProbeProcKey{StartNs: 3, Tgid: 4}}
	raw := record(t, &e.H, &e, path+interp+exe+cwd+argv+env)
	return raw
}

func openRecord(t testing.TB) []byte {
	path := "/home/dev/app/main.go"
	e := bpf.ProbeOpenEvent{Dentry: 77, Dev: 8<<20 | 1, Ino: 12, F_flags: 0o100000 | 0o2000000, I_mode: 0o100644, Nlink: 1, PathLen: uint32(len(path))}
	e.H = bpf.ProbeEventHeader{TimeNs: 5, Type: bpf.ProbeEventTypeEVENT_OPEN, Proc: bpf.ProbeProcKey{StartNs: 3, Tgid: 4}}
	return record(t, &e.H, &e, path)
}

func forkRecord(t testing.TB) []byte {
	e := bpf.ProbeForkEvent{Parent: bpf.ProbeProcKey{StartNs: 1, Tgid: 2}}
	e.H = bpf.ProbeEventHeader{TimeNs: 5, Type: bpf.ProbeEventTypeEVENT_FORK, Proc: bpf.ProbeProcKey{StartNs: 3, Tgid: 4}}
	return record(t, &e.H, &e, "")
}

func TestDecode(t *testing.T) {
	e, _, err := Decode(execRecord(t))
	if err != nil {
		t.Fatal(err)
	}
	x := e.Body.(*event.ProcessExec)
	want := &event.ProcessExec{
		Parent: event.ProcessKey{TGID: 2, StartNS: 1}, Argv: []string{"sh", "", "a b", "\xff\n"}, ArgvBytes: 11, Path: "./run.sh", Interp: "/bin/sh",
		Exe: "/usr/bin/dash", ExeDev: 0x801, ExeIno: 9, CWD: "/home/dev/app",
		Env: map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/home/dev", "GIT_TOKEN": Cut},
	}
	if !reflect.DeepEqual(x, want) || e.TimeNS != 5 || *e.Proc != (event.ProcessKey{TGID: 4, StartNS: 3}) {
		t.Errorf("got  %+v\nwant %+v", x, want)
	}
	e, key, err := Decode(openRecord(t))
	if err != nil || key.Lo != 77 || key.Hi != 12 {
		t.Fatalf("%v %+v", err, key)
	}
	if o := e.Body.(*event.FileOpen); o.Path != "/home/dev/app/main.go" || strings.Join(o.Flags, "|") != "O_RDONLY|O_CLOEXEC" || o.Dev != 0x801 || o.Count != 1 {
		t.Errorf("%+v", o)
	}
}

// A record that lies about its lengths is refused, never read past.
func TestDecodeShort(t *testing.T) {
	for _, raw := range [][]byte{execRecord(t), openRecord(t), forkRecord(t)} {
		for n := range raw {
			if e, _, err := Decode(raw[:n]); err == nil {
				t.Fatalf("%d of %d bytes decoded: %+v", n, len(raw), e)
			}
		}
	}
}

func TestEnvSecrets(t *testing.T) {
	env := chosenEnv([]byte("HTTPS_PROXY=http://me:pw@h:8/\x00http_proxy=me:pw@h\x00GIT_CONFIG_KEY_0=core.pager\x00GIT_CONFIG_VALUE_0=tok\x00OPENAI_API_KEY=sk\x00CODEX_SANDBOX_TOKEN=t\x00=x\x00noeq\x00PATH=a\x00PATH=b\x00"))
	want := map[string]string{"HTTPS_PROXY": "http://[cut]@h:8/", "http_proxy": "[cut]@h", "GIT_CONFIG_KEY_0": "core.pager", "GIT_CONFIG_VALUE_0": Cut, "CODEX_SANDBOX_TOKEN": Cut, "PATH": "a"}
	if !reflect.DeepEqual(env, want) {
		t.Errorf("%q", env)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(execRecord(f))
	f.Add(openRecord(f))
	f.Add(forkRecord(f))
	for typ := range bpf.ProbeEventTypeEVENT_TYPE_MAX {
		e := bpf.ProbeExecEvent{PathLen: 3, ExeLen: 1 << 31}
		e.H.Type = typ
		f.Add(record(f, &e.H, &e, "abc"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, _, err := Decode(raw)
		if err != nil {
			return
		}
		line := e.AppendJSON(nil)
		if _, err := event.ParseJSON(line); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, raw := range map[string][]byte{"exec": execRecord(b), "open": openRecord(b), "fork": forkRecord(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
