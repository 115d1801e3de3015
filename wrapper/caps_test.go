package wrapper

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPrivFileCapabilities: a rye with file capabilities gets them again at the exec of its monitor, which drops them; the
// command never has any.
func TestPrivFileCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to set file capabilities")
	}
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) { // for another user to reach it
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(testBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	rye := filepath.Join(dir, "rye")
	if err := os.WriteFile(rye, b, 0o755); err != nil {
		t.Fatal(err)
	}
	// struct vfs_cap_data, revision 2, effective: permitted and inheritable, low and high halves.
	caps := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	for _, word := range []uint32{1 << unix.CAP_NET_ADMIN, 0, 1 << (unix.CAP_BPF - 32), 0} {
		caps = binary.LittleEndian.AppendUint32(caps, word)
	}
	if err := unix.Setxattr(rye, "security.capability", caps, 0); err != nil {
		t.Skipf("no file capabilities here: %v", err)
	}
	const show = `for p in $PPID $(cut -d" " -f4 /proc/$PPID/stat) self; do grep -E "^Cap(Prm|Eff)" /proc/$p/status; done`
	x := newOuter(t, outerOptions{direct: true, uid: 65534, dir: "/", env: []string{envWrap + "=1"}}, rye, "sh", "-c", show)
	x.wantExit(0)
	var got []string
	for line := range strings.Lines(string(x.output())) {
		got = append(got, strings.TrimLeft(strings.TrimSpace(line[strings.IndexByte(line, ':')+1:]), "0"))
	}
	// The monitor's, the front's (this small one does not drop them: the premise), the command's.
	const some = "8000001000"
	if want := []string{"", "", some, some, "", ""}; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("capabilities %q, want %q", got, want)
	}
}
