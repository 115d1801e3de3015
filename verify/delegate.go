package verify

import (
	"path"
	"slices"
	"strings"

	"github.com/ryehq/rye/event"
)

// A socketKind says what the program behind a unix socket can do for its client.
type socketKind struct {
	name     string
	executes bool // it can run a program on the client's behalf
}

// socketOf recognises well-known sockets by path and by who listens. ok is false for one that is
// unknown, harmless for one that cannot act for anyone.
func socketOf(name, peer string) (k socketKind, harmless, ok bool) {
	for _, h := range harmlessSockets {
		if name == h || strings.HasSuffix(h, "/") && strings.HasPrefix(name, h) {
			return socketKind{}, true, true
		}
	}
	for _, s := range knownSockets {
		if globs(s.pattern, name) {
			return s.kind, false, true
		}
	}
	if k, found := knownPeers[path.Base(peer)]; found {
		return k, false, true
	}
	return socketKind{}, false, false
}

// Services that answer questions and do nothing else: names, users, logs.
var harmlessSockets = []string{
	"/run/nscd/", "/var/run/nscd/", "/dev/log", "/run/systemd/journal/", "/run/systemd/resolve/", "/run/systemd/userdb/", "/run/systemd/notify",
	"/run/systemd/io.system.ManagedOOM", "/run/systemd/timesync/", "/var/lib/sss/pipes/", "/run/avahi-daemon/socket", "/var/run/avahi-daemon/socket", "/run/uuidd/request", "/run/cups/cups.sock",
	"/run/rpcbind.sock", "/run/utmp", "/run/nslcd/socket", "/var/run/nslcd/socket", "/run/dbus/machine-id", "/run/syslog", "@/org/kernel/linux/storage/multipathd",
}

var knownSockets = []struct {
	pattern string
	kind    socketKind
}{
	{"*/docker.sock", socketKind{"docker", true}}, {"*/docker-*.sock", socketKind{"docker", true}}, {"*/podman.sock", socketKind{"podman", true}},
	{"*/containerd*.sock*", socketKind{"containerd", true}}, {"*/crio.sock", socketKind{"cri-o", true}}, {"*/buildkitd.sock", socketKind{"buildkit", true}},
	{"*/lxd/unix.socket", socketKind{"lxd", true}}, {"*/incus/unix.socket", socketKind{"incus", true}}, {"*/libvirt/*", socketKind{"libvirt", true}},
	{"*/systemd/private", socketKind{"systemd", true}}, {"*/systemd/io.systemd.*", socketKind{"systemd", true}}, {"*/dbus/system_bus_socket", socketKind{"the system D-Bus", true}},
	{"/run/user/*/bus", socketKind{"the user D-Bus", true}}, {"@/tmp/dbus-*", socketKind{"a D-Bus", true}}, {"/tmp/dbus-*", socketKind{"a D-Bus", true}},
	{"*/tmux-*/*", socketKind{"tmux", true}}, {"/run/screen/*", socketKind{"screen", true}}, {"*/.screen/*", socketKind{"screen", true}}, {"*zellij*", socketKind{"zellij", true}},
	{"*/ssh-*/agent.*", socketKind{"ssh-agent", true}}, {"*/keyring/ssh", socketKind{"ssh-agent", true}}, {"*/ssh-agent*", socketKind{"ssh-agent", true}}, {"*/.ssh/cm*", socketKind{"an open ssh connection", true}},
	{"*/S.gpg-agent*", socketKind{"gpg-agent", true}}, {"*/S.scdaemon", socketKind{"gpg-agent", true}}, {"*/keyring/*", socketKind{"the keyring", false}}, {"*/S.keyboxd", socketKind{"gpg", false}}, {"*/S.dirmngr", socketKind{"gpg", false}},
	{"/run/snapd*.socket", socketKind{"snapd", true}}, {"*/polkit*", socketKind{"polkit", true}}, {"*/emacs*/server", socketKind{"emacs", true}}, {"*nvim*", socketKind{"nvim", true}},
	{"*vscode-ipc-*", socketKind{"VS Code", true}}, {"*vscode-git-*", socketKind{"VS Code", true}}, {"*/kitty*", socketKind{"kitty", true}}, {"@kitty*", socketKind{"kitty", true}}, {"*wezterm*", socketKind{"wezterm", true}},
	{"*/.X11-unix/*", socketKind{"the X display", true}}, {"*/wayland-*", socketKind{"the Wayland display", false}}, {"*/pulse/native", socketKind{"the sound server", false}}, {"*/pipewire-*", socketKind{"the sound server", false}},
	{"*/cron*.sock", socketKind{"cron", true}}, {"*/atd*", socketKind{"at", true}}, {"*/supervisor.sock", socketKind{"supervisor", true}}, {"*/watchman*", socketKind{"watchman", true}},
	{"*.s.PGSQL.*", socketKind{"PostgreSQL", false}}, {"*/mysqld.sock", socketKind{"MySQL", false}}, {"*/redis*.sock", socketKind{"Redis", false}},
}

var knownPeers = map[string]socketKind{
	"dockerd": {"docker", true}, "containerd": {"containerd", true}, "podman": {"podman", true}, "systemd": {"systemd", true}, "dbus-daemon": {"a D-Bus", true}, "dbus-broker": {"a D-Bus", true},
	"tmux": {"tmux", true}, "tmux: server": {"tmux", true}, "screen": {"screen", true}, "ssh-agent": {"ssh-agent", true}, "gpg-agent": {"gpg-agent", true}, "gnome-keyring-daemon": {"the keyring", false},
	"sshd": {"sshd", true}, "atd": {"at", true}, "cron": {"cron", true}, "crond": {"cron", true}, "nvim": {"nvim", true}, "emacs": {"emacs", true}, "Xorg": {"the X display", true}, "Xwayland": {"the X display", true},
	"snapd": {"snapd", true}, "libvirtd": {"libvirt", true}, "code": {"VS Code", true},
}

// delegations are connects to programs outside the session that can act for their client. What those
// do is outside the evidence, and the finding says so.
func (v *judge) delegations() {
	type key struct {
		it   *item
		own  ownerKind
		path string
		peer string
	}
	told := make(map[key]int)
	for i := range v.facts.ipc {
		r := &v.facts.ipc[i]
		if r.Result != 0 && r.Error != "EINPROGRESS" && r.Error != "EAGAIN" || v.inSession(r) {
			continue
		}
		peer := ""
		if r.Peer != nil {
			peer = r.Peer.Exe
		}
		kind, harmless, known := socketOf(r.Path, peer)
		if harmless {
			continue
		}
		o := v.cast.ownerOf(r.proc)
		if o.kind == witness || v.ryesOwn(r.Path) {
			continue
		}
		it, _ := v.account(o)
		k := key{it, o.kind, r.Path, peer}
		if j, ok := told[k]; ok {
			v.again(j, r.seq, Info, nil)
			continue
		}
		f := v.delegation(r, o, it, kind, known, peer)
		told[k] = len(v.findings)
		v.find(it, f)
	}
}

func (v *judge) delegation(r *ipcRecord, o owner, it *item, kind socketKind, known bool, peer string) Finding {
	who := "A process"
	if p := v.facts.tree.Lookup(r.proc); p != nil {
		if x := p.ImageAt(r.ns); x != nil {
			who = program(x)
		}
	}
	f := Finding{Code: Delegated, Severity: Warning, Reason: firstOf(kind.name, "unknown-listener"), Path: r.Path, Records: []uint64{r.seq}}
	at := quote(r.Path)
	if peer != "" {
		at += " (" + quote(peer) + sayf(", pid %d)", r.Peer.TGID)
	}
	switch {
	case known && kind.executes:
		f.Message = sayf("%s talked to %s at %s, which can run programs outside the session: what was done there is outside the evidence.", who, kind.name, at)
	case known:
		f.Severity = Info
		f.Message = sayf("%s talked to %s at %s, outside the session.", who, kind.name, at)
	case r.Peer == nil || slices.Contains(r.Marks, "peer-unknown"):
		f.Message = sayf("%s connected to %s; who listens there could not be told, so what was done there is outside the evidence.", who, at)
	default:
		f.Message = sayf("%s connected to %s, a program outside the session: what was done there is outside the evidence.", who, at)
	}
	if it == nil && o.kind != nobody {
		// The assistant's own clipboard, keyring and editor connections are not an action's.
		f.Severity = Info
	}
	return f
}

// inSession: the listener is one of the session's own processes, or an adopted assistant daemon.
// tickNS: rye knows its own start in the clock ticks of /proc only.
const tickNS = 10_000_000

func (v *judge) inSession(r *ipcRecord) bool {
	if slices.Contains(r.Marks, "peer-in-session") {
		return true
	}
	if r.Peer == nil {
		return v.assistantSocket(r.Path)
	}
	if me := v.facts.rye; me.TGID == r.Peer.TGID && distance(me.StartNS, r.Peer.StartNS) < tickNS {
		return true // a hook's word to rye itself
	}
	p := v.facts.tree.Lookup(event.ProcessKey{TGID: r.Peer.TGID, StartNS: r.Peer.StartNS})
	return p != nil && p.Seen
}

// assistantSocket is a socket in an assistant's own folder or of its sandbox's proxy.
func (v *judge) assistantSocket(name string) bool {
	base := path.Base(name)
	return v.facts.place.inHomes(name) || strings.HasPrefix(base, "claude-http-") || strings.HasPrefix(base, "claude-socks-") || strings.HasPrefix(name, "/tmp/cc-socks/")
}

func (v *judge) ryesOwn(name string) bool {
	return strings.HasPrefix(name, "/run/rye/") || strings.Contains(name, "/.rye/")
}
