package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCACommands(t *testing.T) {
	home := t.TempDir()
	t.Setenv("RYE_HOME", home)
	if _, code, err := runRye(t, "ca", "show"); code != 1 || !strings.Contains(err.Error(), "rye ca rotate") {
		t.Errorf("show without a CA: %d %v", code, err)
	}
	first, code, err := runRye(t, "ca", "rotate")
	if code != 0 {
		t.Fatal(err)
	}
	shown, code, _ := runRye(t, "ca", "show")
	if code != 0 || !strings.HasPrefix(shown, first) || !strings.Contains(shown, "BEGIN CERTIFICATE") || strings.Contains(shown, "PRIVATE") || !strings.Contains(shown, " anthropic.com") {
		t.Errorf("show: %d\n%s", code, shown)
	}
	info, err := os.Stat(filepath.Join(home, "ca", "rye.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v %v", info, err)
	}
	if second, code, _ := runRye(t, "ca", "rotate"); code != 0 || second == first {
		t.Errorf("rotate: %d\n%s", code, second)
	}
	if out, code, err := runRye(t, "ca", "rotate", "--add", "Gateway.example.com", "--without", "claude.ai,cursor.sh"); code != 0 || !strings.Contains(out, " gateway.example.com") || strings.Contains(out, "claude.ai") || strings.Contains(out, "cursor.sh") {
		t.Errorf("rotate with changes: %d %v\n%s", code, err, out)
	}
	if out, _, _ := runRye(t, "ca", "rotate"); !strings.Contains(out, " gateway.example.com") || strings.Contains(out, "claude.ai") {
		t.Errorf("the domains were not kept:\n%s", out)
	}
	for _, args := range [][]string{{"--without", "nowhere.test"}, {"--add", "com"}, {"--add", "https://x.test"}, {"--add", "*.x.test"}} {
		if _, code, err := runRye(t, append([]string{"ca", "rotate"}, args...)...); code == 0 {
			t.Errorf("%v: %v", args, err)
		}
	}
	if out, code, _ := runRye(t, "ca", "remove"); code != 0 || out != "removed\n" {
		t.Errorf("remove: %d %s", code, out)
	}
	if list, err := os.ReadDir(filepath.Join(home, "ca")); err != nil || len(list) != 0 {
		t.Errorf("left behind: %v %v", list, err)
	}
}
