// Package collector turns ring buffer records into events: it decodes, counts what was lost, adds up
// repeats, and knows when the ring is empty. It imports bpf (layouts) and event; the loader hands it maps.
//
// Decode is pure and is the only place where a kernel layout becomes an event.
package collector

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/bpf"
	"github.com/ryehq/rye/event"
)

// ErrRecord says that bytes are not a record of this layout.
var ErrRecord = errors.New("not a record of this layout")

// fixed copies a record's fixed part into v and returns the tail. bpf2go's structs have the kernel's layout
// byte for byte (bpf/layout_test.go), and both targets are little-endian; a copy also does not care how raw
// is aligned.
func fixed[T any](raw []byte, v *T) ([]byte, error) {
	n := int(unsafe.Sizeof(*v))
	if len(raw) < n {
		return nil, fmt.Errorf("%w: %d bytes, %d wanted", ErrRecord, len(raw), n)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(v)), n), raw)
	return raw[n:], nil
}

// A tail is the strings behind the fixed part, taken off in order.
type tail struct {
	b   []byte
	bad bool
}

func (t *tail) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(t.b)) {
		t.bad = true
		return nil
	}
	s := t.b[:n]
	t.b = t.b[n:]
	return s
}

func (t *tail) string(n uint32) string { return string(t.bytes(n)) }

// Decode turns one record into an event. The second result identifies what later repeats will be counted
// under; it is the zero key for records that have none.
func Decode(raw []byte) (event.Event, bpf.ProbeRepeatKey, error) {
	var none bpf.ProbeRepeatKey
	var h bpf.ProbeEventHeader
	if _, err := fixed(raw, &h); err != nil {
		return event.Event{}, none, err
	}
	if uint64(h.Size) != uint64(len(raw)) {
		// The ring rounds up to 8 bytes; the record says its own length.
		if uint64(h.Size) > uint64(len(raw)) || len(raw)-int(h.Size) > 7 {
			return event.Event{}, none, fmt.Errorf("%w: size %d in %d bytes", ErrRecord, h.Size, len(raw))
		}
		raw = raw[:h.Size]
	}
	var body event.Body
	var key bpf.ProbeRepeatKey
	var err error
	switch h.Type {
	case bpf.ProbeEventTypeEVENT_FORK:
		body, err = decodeFork(raw)
	case bpf.ProbeEventTypeEVENT_EXEC:
		body, err = decodeExec(raw)
	case bpf.ProbeEventTypeEVENT_EXEC_FAILED:
		body, err = decodeExecFailed(raw)
	case bpf.ProbeEventTypeEVENT_EXIT:
		body, err = decodeExit(raw)
	case bpf.ProbeEventTypeEVENT_OPEN:
		body, key, err = decodeOpen(raw)
	case bpf.ProbeEventTypeEVENT_CONNECT:
		body, key, err = decodeConnect(raw)
	case bpf.ProbeEventTypeEVENT_BIND:
		body, err = decodeBind(raw)
	case bpf.ProbeEventTypeEVENT_IPC:
		body, key, err = decodeIPC(raw)
	case bpf.ProbeEventTypeEVENT_CGROUP:
		body, err = decodeCgroup(raw)
	case bpf.ProbeEventTypeEVENT_PATHOP:
		body, err = decodePathop(raw)
	case bpf.ProbeEventTypeEVENT_ESCAPE:
		body, err = decodeEscape(raw)
	case bpf.ProbeEventTypeEVENT_REFUSED:
		body, key, err = decodeRefused(raw)
		if err == nil && h.Proc.Tgid == 0 {
			return event.New(h.TimeNs, nil, body), key, nil
		}
	default:
		return event.Event{}, none, fmt.Errorf("%w: type %d", ErrRecord, h.Type)
	}
	if err != nil {
		return event.Event{}, none, err
	}
	k := procKey(h.Proc)
	return event.New(h.TimeNs, &k, body), key, nil
}

func procKey(k bpf.ProbeProcKey) event.ProcessKey {
	return event.ProcessKey{TGID: k.Tgid, StartNS: k.StartNs}
}

// device turns the kernel's dev_t into what stat(2) shows.
func device(d uint64) uint64 { return unix.Mkdev(uint32(d>>20), uint32(d&0xfffff)) }

func errnoName(result int32) string {
	if result >= 0 {
		return ""
	}
	if n := unix.ErrnoName(unix.Errno(-result)); n != "" {
		return n
	}
	return "errno " + strconv.Itoa(int(-result))
}

// flagMarks names the flags of a header that are set, in a fixed order.
func flagMarks(f bpf.ProbeEventFlag, marks []string) []string {
	for _, m := range [...]struct {
		flag bpf.ProbeEventFlag
		name string
	}{
		{bpf.ProbeEventFlagFLAG_PATH_UNREADABLE, "path-unreadable"},
		{bpf.ProbeEventFlagFLAG_PATH_TRUNCATED, "path-truncated"},
		{bpf.ProbeEventFlagFLAG_PATH_FROM_USER, "path-from-user"},
		{bpf.ProbeEventFlagFLAG_ARGV_UNREADABLE, "argv-unreadable"},
		{bpf.ProbeEventFlagFLAG_ENV_UNREADABLE, "env-unreadable"},
		{bpf.ProbeEventFlagFLAG_ENV_TRUNCATED, "env-truncated"},
		{bpf.ProbeEventFlagFLAG_EXE_UNREADABLE, "exe-unreadable"},
		{bpf.ProbeEventFlagFLAG_EXE_TRUNCATED, "exe-truncated"},
		{bpf.ProbeEventFlagFLAG_CWD_UNREADABLE, "cwd-unreadable"},
		{bpf.ProbeEventFlagFLAG_CWD_TRUNCATED, "cwd-truncated"},
		{bpf.ProbeEventFlagFLAG_COMPAT, "32-bit-call"},
		{bpf.ProbeEventFlagFLAG_IO_URING, "io_uring"},
		{bpf.ProbeEventFlagFLAG_REMOTE_FROM_USER, "remote-from-user"},
		{bpf.ProbeEventFlagFLAG_PATH2UNREADABLE, "path2-unreadable"},
		{bpf.ProbeEventFlagFLAG_NO_RESULT, "no-result"},
		{bpf.ProbeEventFlagFLAG_RECEIVED, "received"},
	} {
		if f&m.flag != 0 {
			marks = append(marks, m.name)
		}
	}
	return marks
}

func decodeFork(raw []byte) (event.Body, error) {
	var r bpf.ProbeForkEvent
	if _, err := fixed(raw, &r); err != nil {
		return nil, err
	}
	return &event.ProcessFork{Parent: procKey(r.Parent)}, nil
}

func decodeExec(raw []byte) (event.Body, error) {
	var r bpf.ProbeExecEvent
	rest, err := fixed(raw, &r)
	if err != nil {
		return nil, err
	}
	t := tail{b: rest}
	e := &event.ProcessExec{
		Parent: procKey(r.Parent), ArgvBytes: r.ArgvBytes, ArgvTruncated: r.H.Flags&bpf.ProbeEventFlagFLAG_ARGV_TRUNCATED != 0,
		ExeDev: device(r.ExeDev), ExeIno: r.ExeIno, ExeMtimeNS: r.ExeMtimeNs, UID: r.Uid, GID: r.Gid, EUID: r.Euid, CgroupID: r.H.CgroupId,
	}
	e.Path = t.string(r.PathLen)
	if interp := t.string(r.InterpLen); interp != e.Path {
		e.Interp = interp
	}
	e.Exe = t.string(r.ExeLen)
	e.CWD = t.string(r.CwdLen)
	e.Argv = splitArgv(t.bytes(r.ArgvLen))
	e.Env = chosenEnv(t.bytes(r.EnvLen))
	if t.bad {
		return nil, fmt.Errorf("%w: exec tail", ErrRecord)
	}
	if r.ExeNlink == 0 {
		if strings.HasPrefix(e.Exe, "/memfd:") {
			e.Marks = append(e.Marks, "memfd")
		} else {
			e.Marks = append(e.Marks, "deleted")
		}
	}
	if r.ExeMode&unix.S_ISUID != 0 {
		e.Marks = append(e.Marks, "setuid")
	}
	e.Marks = flagMarks(r.H.Flags, e.Marks)
	return e, nil
}

// splitArgv splits the kernel's argument block. Every argument ends with a NUL, also the empty ones; a
// last piece without one was cut.
func splitArgv(b []byte) []string {
	if len(b) == 0 {
		return []string{}
	}
	argv := make([]string, 0, bytes.Count(b, []byte{0})+1)
	for len(b) > 0 {
		arg, rest, _ := bytes.Cut(b, []byte{0})
		argv = append(argv, string(arg))
		b = rest
	}
	return argv
}

func decodeExecFailed(raw []byte) (event.Body, error) {
	var r bpf.ProbeExecFailedEvent
	rest, err := fixed(raw, &r)
	if err != nil {
		return nil, err
	}
	t := tail{b: rest}
	e := &event.ProcessExecFailed{Path: t.string(r.PathLen), Result: r.Result, Error: errnoName(r.Result)}
	if t.bad {
		return nil, fmt.Errorf("%w: exec tail", ErrRecord)
	}
	return e, nil
}

func decodeExit(raw []byte) (event.Body, error) {
	var r bpf.ProbeExitEvent
	if _, err := fixed(raw, &r); err != nil {
		return nil, err
	}
	return &event.ProcessExit{Code: int32(r.Status >> 8 & 0xff), Signal: int32(r.Status & 0x7f)}, nil
}

func decodeOpen(raw []byte) (event.Body, bpf.ProbeRepeatKey, error) {
	var r bpf.ProbeOpenEvent
	var key bpf.ProbeRepeatKey
	rest, err := fixed(raw, &r)
	if err != nil {
		return nil, key, err
	}
	t := tail{b: rest}
	base, name := t.string(r.BaseLen), t.string(r.PathLen)
	if t.bad {
		return nil, key, fmt.Errorf("%w: open tail", ErrRecord)
	}
	flags := r.OpenFlags &^ (unix.O_ACCMODE | unix.O_PATH)
	e := &event.FileOpen{
		Path: join(base, name), Flags: openFlags(flags|r.F_flags, r.Result), Mode: uint32(r.I_mode & 0o7777), Dev: device(r.Dev), Ino: r.Ino,
		Nlink: r.Nlink, Result: r.Result, Error: errnoName(r.Result), Count: 1, Created: r.F_mode&fmodeCreated != 0, Kind: fileKind(r.I_mode),
	}
	if r.Result < 0 {
		e.Flags = openFlags(r.OpenFlags, r.Result)
	} else if r.Nlink == 0 {
		e.Marks = append(e.Marks, "deleted")
	}
	e.Marks = flagMarks(r.H.Flags, e.Marks)
	if r.Result == 0 {
		key = bpf.ProbeRepeatKey{Proc: r.H.Proc, Lo: r.Dentry, Hi: r.Ino, Dev: uint32(r.Dev), Access: r.Access}
	}
	if r.H.Flags&bpf.ProbeEventFlagFLAG_MAPPED != 0 {
		return &event.FileMap{Path: e.Path, Dev: e.Dev, Ino: e.Ino, Marks: e.Marks}, key, nil
	}
	return e, key, nil
}

const fmodeCreated = 0x100000

func fileKind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "dir"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR:
		return "char"
	case unix.S_IFBLK:
		return "block"
	}
	return ""
}

// join puts a caller's relative path behind the directory it started from. The result is not cleaned:
// "a/../b" through a symlink is not "b".
func join(base, name string) string {
	switch {
	case base == "" || path.IsAbs(name):
		return name
	case name == "":
		return base
	case base == "/":
		return base + name
	}
	return base + "/" + name
}

// openFlags names open(2) flags. O_LARGEFILE is set by the kernel on every 64-bit open and left out.
func openFlags(f uint32, _ int32) []string {
	var words []string
	switch f & unix.O_ACCMODE {
	case unix.O_WRONLY:
		words = append(words, "O_WRONLY")
	case unix.O_RDWR:
		words = append(words, "O_RDWR")
	default:
		words = append(words, "O_RDONLY")
	}
	for _, x := range [...]struct {
		bits uint32
		name string
	}{
		{unix.O_CREAT, "O_CREAT"}, {unix.O_EXCL, "O_EXCL"}, {unix.O_NOCTTY, "O_NOCTTY"}, {unix.O_TRUNC, "O_TRUNC"}, {unix.O_APPEND, "O_APPEND"},
		{unix.O_NONBLOCK, "O_NONBLOCK"}, {unix.O_SYNC, "O_SYNC"}, {unix.O_ASYNC, "O_ASYNC"}, {unix.O_DIRECT, "O_DIRECT"},
		{unix.O_TMPFILE, "O_TMPFILE"}, {unix.O_DIRECTORY, "O_DIRECTORY"}, {unix.O_NOFOLLOW, "O_NOFOLLOW"}, {unix.O_NOATIME, "O_NOATIME"},
		{unix.O_CLOEXEC, "O_CLOEXEC"}, {unix.O_PATH, "O_PATH"},
	} {
		if f&x.bits == x.bits {
			words = append(words, x.name)
			f &^= x.bits
		}
	}
	return words
}

func decodeConnect(raw []byte) (event.Body, bpf.ProbeRepeatKey, error) {
	var r bpf.ProbeConnectEvent
	var key bpf.ProbeRepeatKey
	if _, err := fixed(raw, &r); err != nil {
		return nil, key, err
	}
	e := &event.NetConnect{
		Family: familyName(r.Family), Proto: protoName(r.Protocol, r.SockType), Remote: address(r.Family, r.Remote, r.RemotePort),
		Result: r.Result, Error: errnoName(r.Result), Marks: flagMarks(r.H.Flags, nil), Count: 1,
	}
	if r.LocalPort != 0 {
		e.Local = address(r.Family, r.Local, r.LocalPort)
	}
	if r.Access != 0 {
		key = bpf.ProbeRepeatKey{Proc: r.H.Proc, Lo: r.KeyLo, Hi: r.KeyHi, Dev: uint32(r.RemotePort), Access: r.Access}
	}
	return e, key, nil
}

func decodeBind(raw []byte) (event.Body, error) {
	var r bpf.ProbeConnectEvent
	if _, err := fixed(raw, &r); err != nil {
		return nil, err
	}
	return &event.NetBind{Family: familyName(r.Family), Proto: protoName(r.Protocol, r.SockType), Local: address(r.Family, r.Local, r.LocalPort),
		Result: r.Result, Error: errnoName(r.Result), Marks: flagMarks(r.H.Flags, nil)}, nil
}

func familyName(f uint16) string {
	switch f {
	case unix.AF_INET:
		return "inet"
	case unix.AF_INET6:
		return "inet6"
	}
	return strconv.Itoa(int(f))
}

func protoName(proto uint32, sockType uint16) string {
	switch proto {
	case unix.IPPROTO_TCP:
		return "tcp"
	case unix.IPPROTO_UDP:
		return "udp"
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		return "icmp"
	case unix.IPPROTO_SCTP:
		return "sctp"
	case unix.IPPROTO_MPTCP:
		return "mptcp"
	case 0:
		switch sockType {
		case unix.SOCK_STREAM:
			return "tcp"
		case unix.SOCK_DGRAM:
			return "udp"
		}
	}
	return strconv.Itoa(int(proto))
}

func address(family uint16, b [16]uint8, port uint16) string {
	if family == unix.AF_INET6 {
		return netip.AddrPortFrom(netip.AddrFrom16(b), port).String()
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[:4])), port).String()
}

func decodeIPC(raw []byte) (event.Body, bpf.ProbeRepeatKey, error) {
	var r bpf.ProbeIpcEvent
	var key bpf.ProbeRepeatKey
	rest, err := fixed(raw, &r)
	if err != nil {
		return nil, key, err
	}
	t := tail{b: rest}
	name, exe := t.bytes(r.PathLen), t.string(r.ExeLen)
	if t.bad {
		return nil, key, fmt.Errorf("%w: ipc tail", ErrRecord)
	}
	e := &event.IPCConnect{Result: r.Result, Error: errnoName(r.Result), Marks: flagMarks(r.H.Flags, nil)}
	if r.H.Flags&bpf.ProbeEventFlagFLAG_ABSTRACT != 0 && len(name) > 0 {
		e.Path = "@" + string(name[1:])
	} else {
		name, _, _ = bytes.Cut(name, []byte{0})
		e.Path = string(name)
	}
	switch r.SockType {
	case unix.SOCK_STREAM:
		e.Type = "stream"
	case unix.SOCK_DGRAM:
		e.Type = "dgram"
	case unix.SOCK_SEQPACKET:
		e.Type = "seqpacket"
	}
	if r.Peer.Tgid != 0 {
		e.Peer = &event.Peer{TGID: r.Peer.Tgid, StartNS: r.Peer.StartNs, Exe: exe, CgroupID: r.PeerCgroup}
	} else if r.Result == 0 {
		e.Marks = append(e.Marks, "peer-unknown")
	}
	if r.Access != 0 {
		key = bpf.ProbeRepeatKey{Proc: r.H.Proc, Lo: r.KeyLo, Hi: r.KeyHi, Access: r.Access}
	}
	return e, key, nil
}

func decodeCgroup(raw []byte) (event.Body, error) {
	var r bpf.ProbeCgroupEvent
	rest, err := fixed(raw, &r)
	if err != nil {
		return nil, err
	}
	t := tail{b: rest}
	e := &event.CgroupLeft{To: t.string(r.PathLen), CgroupID: r.ToId, By: procKey(r.By), Escaped: r.Escaped != 0, Recorded: true}
	if t.bad {
		return nil, fmt.Errorf("%w: cgroup tail", ErrRecord)
	}
	return e, nil
}
