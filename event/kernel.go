package event

import "strings"

// Strings in kernel events are the bytes the kernel had. Linux does not promise UTF-8; see
// [Event.AppendJSON] for how other bytes are written.

// ProcessFork is a new process (not a thread). The event's Proc is the child.
type ProcessFork struct {
	Parent ProcessKey `json:"parent"`
}

// ProcessExec is a committed exec: what the kernel mapped, not what was asked for.
type ProcessExec struct {
	Parent        ProcessKey `json:"parent"`
	Argv          []string   `json:"argv"`
	ArgvBytes     uint64     `json:"argv_bytes"`     // true length, NULs included
	ArgvTruncated bool       `json:"argv_truncated"` // argv holds only the first part
	Path          string     `json:"path"`           // as asked (bprm->filename)
	Exe           string     `json:"exe"`            // the file the kernel mapped
	ExeDev        uint64     `json:"exe_dev"`
	ExeIno        uint64     `json:"exe_ino"`
	ExeMtimeNS    uint64     `json:"exe_mtime_ns,omitempty"`
	Interp        string     `json:"interp,omitempty"` // script interpreter, when the path is a script
	CWD           string     `json:"cwd"`
	UID           uint32     `json:"uid"`
	GID           uint32     `json:"gid"`
	EUID          uint32     `json:"euid"`
	CgroupID      uint64     `json:"cgroup_id,omitempty"`
	// Env holds the chosen variables only; user information in URLs and values of *TOKEN*, *KEY* and
	// the like are cut.
	Env map[string]string `json:"env"`
	// Marks: memfd, deleted, setuid, and what could not be read whole: argv-unreadable, env-unreadable,
	// env-truncated, exe-unreadable, exe-truncated, cwd-unreadable, cwd-truncated.
	Marks []string `json:"marks,omitempty"`
}

// ProcessExecFailed is an execve or execveat that returned an error. Path is what the caller passed,
// read from its memory: a hint, not a fact.
type ProcessExecFailed struct {
	Path   string `json:"path"`
	Result int32  `json:"result"` // negative errno
	Error  string `json:"error"`  // its name, e.g. ENOENT
}

// ProcessExit is the end of a process: its last thread is gone.
type ProcessExit struct {
	Code   int32  `json:"code"`
	Signal int32  `json:"signal,omitempty"`
	Exe    string `json:"exe,omitempty"`
}

// ProcessAdopted says that a process outside the session acts for it and is recorded from now on, with
// all its descendants.
type ProcessAdopted struct {
	Exe    string   `json:"exe"`
	Argv   []string `json:"argv,omitempty"`
	Reason string   `json:"reason"`        // assistant-daemon, child-of-adopted
	By     uint64   `json:"by,omitempty"`  // seq of the ipc.connect that led to it
	Via    string   `json:"via,omitempty"` // socket path
}

// CgroupLeft is a session process moving to a cgroup outside the session's.
type CgroupLeft struct {
	To       string     `json:"to"`                 // cgroup path it moved to
	CgroupID uint64     `json:"cgroup_id"`          //
	By       ProcessKey `json:"by,omitempty"`       // who moved it
	Escaped  bool       `json:"escaped"`            // outside the session's cgroup subtree
	Exe      string     `json:"exe,omitempty"`      // of the process moved
	Recorded bool       `json:"recorded,omitempty"` // it is still recorded (by descent)
}

// FileOpen stands for Count opens of one file with one access by one process. The first is written
// when it happens; repeats are counted in the kernel and written with the same path when the process
// exits (Repeats set). The sum of Count is the number of opens done.
type FileOpen struct {
	Path    string   `json:"path"`
	Flags   []string `json:"flags"` // open(2) words
	Mode    uint32   `json:"mode,omitempty"`
	Dev     uint64   `json:"dev"`
	Ino     uint64   `json:"ino"`
	Nlink   uint32   `json:"nlink,omitempty"`
	Result  int32    `json:"result"`            // 0, or a negative errno
	Error   string   `json:"error,omitempty"`   // errno's name
	Count   uint64   `json:"count"`             // opens this record stands for
	Repeats bool     `json:"repeats,omitempty"` // Count are repeats of an earlier record
	Created bool     `json:"created,omitempty"` // this open made the file
	Kind    string   `json:"kind,omitempty"`    // dir, fifo, socket, char, block; "" for a regular file
	// Marks: path-unreadable, path-truncated, path-from-user (a failed open: the caller's own string),
	// deleted, memfd, received (another process
	// handed the open file over), io_uring.
	Marks []string `json:"marks,omitempty"`
}

// FileDelete is an unlink or rmdir.
type FileDelete struct {
	Path   string   `json:"path"`
	Dev    uint64   `json:"dev,omitempty"`
	Ino    uint64   `json:"ino,omitempty"`
	Result int32    `json:"result"`
	Marks  []string `json:"marks,omitempty"`
}

// FileRename is a rename; the target, if it existed, is gone.
type FileRename struct {
	From   string   `json:"from"`
	To     string   `json:"to"`
	Dev    uint64   `json:"dev,omitempty"`
	Ino    uint64   `json:"ino,omitempty"`
	Result int32    `json:"result"`
	How    string   `json:"how,omitempty"` // rename, link, symlink
	Marks  []string `json:"marks,omitempty"`
}

// FileChange is a file that changed without an open that shows it: How is truncate, mkdir, chmod, chown or mknod.
type FileChange struct {
	Path   string   `json:"path"`
	How    string   `json:"how"`
	Result int32    `json:"result"`
	Marks  []string `json:"marks,omitempty"`
}

// FileMap is a file mapped as program code by a program that was started without an interpreter: a loader
// (ld.so run as a command), or a static program that loads others. No exec shows what runs then. Mapping a
// deleted or memory file is reported for every program. The first of a process and file is an event.
type FileMap struct {
	Path  string   `json:"path"`
	Dev   uint64   `json:"dev"`
	Ino   uint64   `json:"ino"`
	Marks []string `json:"marks,omitempty"` // deleted, memfd, and as for FileOpen
}

// FileDigest is the content of a file at a moment rye chose (user space; a race with a writer is
// possible and the open records show it).
type FileDigest struct {
	Path    string `json:"path"`
	Dev     uint64 `json:"dev"`
	Ino     uint64 `json:"ino"`
	Size    int64  `json:"size"`
	MtimeNS int64  `json:"mtime_ns"`
	SHA256  string `json:"sha256"`           // hex; "" when it could not be read
	At      string `json:"at"`               // prompt, exec, exe
	For     uint64 `json:"for,omitempty"`    // seq of the event it was taken for
	Detail  string `json:"detail,omitempty"` // why it could not be read
}

// NetConnect is a connect, or the first datagram to an address.
type NetConnect struct {
	Family string   `json:"family"`          // inet, inet6
	Proto  string   `json:"proto"`           // tcp, udp, …
	Local  string   `json:"local,omitempty"` // address:port
	Remote string   `json:"remote"`          // address:port
	Result int32    `json:"result"`          // 0, or a negative errno (EINPROGRESS is not a failure)
	Error  string   `json:"error,omitempty"`
	Count  uint64   `json:"count,omitempty"`
	Marks  []string `json:"marks,omitempty"` // no-result, io_uring, remote-from-user, repeats, received, inherited
}

// NetBind is a socket bound to listen or receive.
type NetBind struct {
	Family string   `json:"family"`
	Proto  string   `json:"proto"`
	Local  string   `json:"local"`
	Result int32    `json:"result"`
	Error  string   `json:"error,omitempty"`
	Marks  []string `json:"marks,omitempty"`
}

// IPCConnect is a connect to a unix socket, or the first datagram to one.
type IPCConnect struct {
	Path   string   `json:"path"` // file system path, or @name for an abstract socket
	Peer   *Peer    `json:"peer,omitempty"`
	Type   string   `json:"sock_type,omitempty"` // stream, dgram, seqpacket
	Result int32    `json:"result"`
	Error  string   `json:"error,omitempty"`
	Count  uint64   `json:"count,omitempty"` // datagrams this record stands for, when more than one
	Marks  []string `json:"marks,omitempty"` // path-from-user, peer-unknown, peer-in-session, repeats, received, inherited
}

// A Peer is the process that listens at the other end (as of its listen call).
type Peer struct {
	TGID     uint32 `json:"tgid"`
	StartNS  uint64 `json:"start_ns"`
	Exe      string `json:"exe"`
	CgroupID uint64 `json:"cgroup_id,omitempty"`
}

// Escape is an attempt at something the witness may not be able to follow. Its type in the ledger is
// "escape." + What: ptrace, process_vm_writev, proc_mem, bpf, mount, module, unshare, setns, io_uring,
// memfd_exec, raw_socket, packet_socket, vsock, setuid, tiocsti, …
type Escape struct {
	What   string            `json:"-"`
	Detail map[string]string `json:"detail,omitempty"`
	Result int32             `json:"result"`
	Error  string            `json:"error,omitempty"`
}

const escapePrefix = string(TypeEscape) + "."

func cutEscape(t Type) (string, bool) {
	what, ok := strings.CutPrefix(string(t), escapePrefix)
	return what, ok && what != ""
}

func (*ProcessFork) eventType() Type       { return TypeProcessFork }
func (*ProcessExec) eventType() Type       { return TypeProcessExec }
func (*ProcessExecFailed) eventType() Type { return TypeProcessExecFailed }
func (*ProcessExit) eventType() Type       { return TypeProcessExit }
func (*ProcessAdopted) eventType() Type    { return TypeProcessAdopted }
func (*CgroupLeft) eventType() Type        { return TypeCgroupLeft }
func (*FileOpen) eventType() Type          { return TypeFileOpen }
func (*FileDelete) eventType() Type        { return TypeFileDelete }
func (*FileRename) eventType() Type        { return TypeFileRename }
func (*FileChange) eventType() Type        { return TypeFileChange }
func (*FileMap) eventType() Type           { return TypeFileMap }
func (*FileDigest) eventType() Type        { return TypeFileDigest }
func (*NetConnect) eventType() Type        { return TypeNetConnect }
func (*NetBind) eventType() Type           { return TypeNetBind }
func (*IPCConnect) eventType() Type        { return TypeIPCConnect }
func (e *Escape) eventType() Type          { return Type(escapePrefix + e.What) }
