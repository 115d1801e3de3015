package cgroup

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseMountinfo(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []Mount
		v1         bool
	}{
		{name: "nothing", text: "22 1 254:0 / / rw - ext4 /dev/vda rw\n"},
		{
			name: "pure v2",
			text: "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			want: []Mount{{Point: "/sys/fs/cgroup", Root: "/"}},
		},
		{
			name: "hybrid",
			text: "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
				"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			want: []Mount{{Point: "/sys/fs/cgroup/unified", Root: "/"}}, v1: true,
		},
		{name: "v1 only", text: "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", v1: true},
		{
			name: "read-only mount, and read-only file system",
			text: "1 1 0:1 / /a ro - cgroup2 c rw\n2 1 0:1 / /b rw - cgroup2 c ro\n3 1 0:1 / /c rw,nosuid shared:1 master:2 - cgroup2 c rw\n",
			want: []Mount{{"/a", "/", true}, {"/b", "/", true}, {"/c", "/", false}},
		},
		{
			name: "whole hierarchies first",
			text: "1 1 0:1 /user.slice /part rw - cgroup2 c rw\n2 1 0:1 / /whole rw - cgroup2 c rw\n",
			want: []Mount{{"/whole", "/", false}, {"/part", "/user.slice", false}},
		},
		{
			name: "mounted over",
			text: "1 1 0:1 / /a rw - cgroup2 c rw\n2 1 0:2 / /a rw - tmpfs t rw\n3 1 0:1 / /b ro - cgroup2 c rw\n4 3 0:1 / /b rw - cgroup2 c rw\n",
			want: []Mount{{"/b", "/", false}},
		},
		{
			name: "escapes",
			text: `1 1 0:1 /a\040b /mnt/c\011d\134 rw - cgroup2 none rw` + "\n",
			want: []Mount{{"/mnt/c\td\\", "/a b", false}},
		},
		{name: "cut lines", text: "1 1 0:1 / /a rw - \n1 1 0:1 / - cgroup2\n - cgroup2 c rw\n\n1 1 0:1 / a rw - cgroup2 c rw"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, v1, err := ParseMountinfo(strings.NewReader(tt.text))
			if err != nil || v1 != tt.v1 || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v, v1 %v, %v; want %+v, v1 %v", got, v1, err, tt.want, tt.v1)
			}
		})
	}
	if _, _, err := ParseMountinfo(strings.NewReader(strings.Repeat("x", maxMountLine+1))); err == nil {
		t.Error("an endless line was read")
	}
}

func FuzzParseMountinfo(f *testing.F) {
	f.Add("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
	f.Add(`1 1 0:1 /a\040 /b\1 ro - cgroup2 c rw` + "\n" + `1 1 0:1 / /b\1 ro - cgroup c rw`)
	f.Fuzz(func(t *testing.T, text string) {
		mounts, _, err := ParseMountinfo(strings.NewReader(text))
		if err != nil && len(mounts) > 0 {
			t.Fatalf("%+v with error %v", mounts, err)
		}
		if len(mounts) > strings.Count(text, "cgroup2") {
			t.Fatalf("%d mounts out of %q", len(mounts), text)
		}
		for _, m := range mounts {
			if !strings.HasPrefix(m.Point, "/") || !strings.HasPrefix(m.Root, "/") {
				t.Fatalf("mount %+v", m)
			}
		}
	})
}

func TestParseOwn(t *testing.T) {
	for text, want := range map[string]string{
		"0::/user.slice/a b\n":                     "/user.slice/a b",
		"12:cpu:/x\n1:name=systemd:/y\n0::/init\n": "/init",
		"12:cpu:/x\n":                              "",
		"":                                         "",
		"0::\n":                                    "",
		"0::/../elsewhere":                         "/../elsewhere",
	} {
		if got := parseOwn([]byte(text)); got != want {
			t.Errorf("parseOwn(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		name, own string
		mounts    []Mount
		want      []string
	}{
		{"below the own one first", "/user.slice/x.scope", []Mount{{Point: "/cg", Root: "/"}}, []string{"/cg/user.slice/x.scope", "/cg"}},
		{"own is the root", "/", []Mount{{Point: "/cg", Root: "/"}}, []string{"/cg"}},
		{"own unknown", "", []Mount{{Point: "/cg", Root: "/"}}, []string{"/cg"}},
		{"part of the hierarchy mounted", "/a/b/c", []Mount{{Point: "/cg", Root: "/a/b"}}, []string{"/cg/c", "/cg"}},
		{"own is the root of the part", "/a/b", []Mount{{Point: "/cg", Root: "/a/b"}}, []string{"/cg"}},
		{"own is not in the part", "/a/bc", []Mount{{Point: "/cg", Root: "/a/b"}}, []string{"/cg"}},
		{"outside the namespace's root", "/../x", []Mount{{Point: "/cg", Root: "/"}}, []string{"/cg"}},
		{"mount from outside the namespace", "/", []Mount{{Point: "/cg", Root: "/.."}}, []string{"/cg"}},
		{"two mounts", "/a", []Mount{{Point: "/cg", Root: "/"}, {Point: "/part", Root: "/a"}}, []string{"/cg/a", "/cg", "/part"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range (Host{Mounts: tt.mounts, Own: tt.own}).places() {
				got = append(got, p.dir())
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("places %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLevel(t *testing.T) {
	for _, tt := range []struct {
		root, name string
		initial    bool
		want       int
	}{
		{"/", "/cg/rye/1", true, 2},
		{"/", "/cg/user.slice/x.scope/rye/1", true, 4},
		{"/a/b", "/cg/rye/1", true, 4},
		{"/", "/cg/rye/1", false, 2},
		{"/../..", "/cg/rye/1", false, 2},
	} {
		got, exact := Host{InitialNamespace: tt.initial}.level(Mount{Point: "/cg", Root: tt.root}, tt.name)
		if got != tt.want || exact != tt.initial {
			t.Errorf("level of %s on %s = %d, %v; want %d, %v", tt.name, tt.root, got, exact, tt.want, tt.initial)
		}
	}
}

// TestUnavailable: one line that says why and what to do.
func TestUnavailable(t *testing.T) {
	for _, tt := range []struct {
		host   Host
		reason Reason
		say    []string
	}{
		{Host{}, NotMounted, []string{"not mounted", "mount -t cgroup2"}},
		{Host{V1: true}, V1Only, []string{"only cgroup v1", "mount -t cgroup2"}},
		{Host{Mounts: []Mount{{Point: "/proc/self", Root: "/"}}}, NotWritable, []string{"not writable", "/proc/self", "systemd-run --user --scope -p Delegate=yes"}},
	} {
		_, err := tt.host.Create("x")
		var u *Unavailable
		if !errors.As(err, &u) || u.Reason != tt.reason {
			t.Errorf("error %v, want reason %d", err, tt.reason)
			continue
		}
		for _, s := range tt.say {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q does not say %q", err, s)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
	}
	for err, want := range map[error]Reason{unix.EROFS: ReadOnly, unix.EACCES: NotWritable, unix.EPERM: NotWritable, unix.EAGAIN: Limited, unix.EOPNOTSUPP: Threaded} {
		if got := reasonOf(err); got != want {
			t.Errorf("reasonOf(%v) = %d, want %d", err, got, want)
		}
		if u := (&Unavailable{Reason: want, Err: err}); u.Hint() == "" || !errors.Is(u, err) {
			t.Errorf("%v has no hint", u)
		}
	}
}

func TestBadID(t *testing.T) {
	for _, id := range []string{"", ".", "..", "a/b", "a\nb", strings.Repeat("x", 300)} {
		if _, err := (Host{Mounts: []Mount{{Point: t.TempDir(), Root: "/"}}}).Create(id); err == nil {
			t.Errorf("id %q was taken", id)
		}
	}
}
