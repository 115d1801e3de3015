/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The layout of every record in the ring buffer. This is the only description: Go reads it from the
 * object's BTF (bpf2go), never retypes it.
 *
 * A record is one struct of union event, then a tail of strings in the order in which their lengths
 * stand in the struct, without separators. No pointers, no bitfields, no implicit padding: every byte
 * is set. To evolve: add at the end of a struct, or add a type; and raise EVENT_ABI.
 */
#ifndef RYE_EVENT_H
#define RYE_EVENT_H

#define EVENT_ABI 3

#define PATH_CAP 4096      /* longest path kept; longer ones keep their end and are flagged */
#define ARGV_CAP 131072    /* longest argv block kept */
#define ENV_CAP 65536      /* longest environment block handed to user space (never stored whole) */

enum event_type {
	EVENT_NONE,
	EVENT_FORK,
	EVENT_EXEC,
	EVENT_EXEC_FAILED,
	EVENT_EXIT,
	EVENT_OPEN,
	EVENT_CONNECT,
	EVENT_BIND,
	EVENT_IPC,
	EVENT_CGROUP,
	EVENT_PATHOP,
	EVENT_ESCAPE,
	EVENT_REFUSED,
	EVENT_TYPE_MAX,
};

/* header.flags: what could not be read whole */
enum event_flag {
	FLAG_PATH_UNREADABLE = 1 << 0,
	FLAG_PATH_TRUNCATED = 1 << 1,
	FLAG_PATH_FROM_USER = 1 << 2, /* the caller's own string, not the kernel's object */
	FLAG_ARGV_UNREADABLE = 1 << 3,
	FLAG_ARGV_TRUNCATED = 1 << 4,
	FLAG_ENV_UNREADABLE = 1 << 5,
	FLAG_ENV_TRUNCATED = 1 << 6,
	FLAG_EXE_UNREADABLE = 1 << 7,
	FLAG_EXE_TRUNCATED = 1 << 8,
	FLAG_CWD_UNREADABLE = 1 << 9,
	FLAG_CWD_TRUNCATED = 1 << 10,
	FLAG_COMPAT = 1 << 12,          /* 32-bit system call (int 0x80) */
	FLAG_IO_URING = 1 << 13,        /* done by an io_uring worker; result not known */
	FLAG_REMOTE_FROM_USER = 1 << 14,
	FLAG_ABSTRACT = 1 << 15,        /* unix socket in the abstract name space */
	FLAG_PATH2_UNREADABLE = 1 << 16,
	FLAG_NO_RESULT = 1 << 17,       /* seen before the call's result was known */
	FLAG_RECEIVED = 1 << 18,        /* not opened or connected: handed over by another process */
	FLAG_MAPPED = 1 << 19,          /* an open_event of a file mapped as program code */
};

enum path_op {
	OP_UNLINK, OP_RMDIR, OP_RENAME, OP_LINK, OP_SYMLINK, OP_TRUNCATE, OP_MKDIR, OP_CHMOD, OP_CHOWN, OP_MKNOD,
};

enum escape_what {
	ESC_PTRACE, ESC_VM_WRITEV, ESC_UNSHARE, ESC_SETNS, ESC_BPF, ESC_MOUNT, ESC_MODULE, ESC_IO_URING,
	ESC_MEMFD, ESC_PACKET_SOCKET, ESC_RAW_SOCKET, ESC_VSOCK, ESC_SETUID, ESC_TIOCSTI, ESC_CLONE_NS,
	ESC_PIVOT_ROOT, ESC_KEXEC, ESC_PERF, ESC_HANDLE_OPEN, ESC_PIDFD_GETFD,
};

struct proc_key {
	__u64 start_ns; /* group leader's start, CLOCK_BOOTTIME */
	__u32 tgid;
	__u32 pad;
};

struct event_header {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	enum event_type type;
	__u32 size; /* of the whole record */
	struct proc_key proc;
	__u64 cgroup_id;
	__u32 cpu;
	enum event_flag flags;
};

struct fork_event {
	struct event_header h; /* h.proc is the child */
	struct proc_key parent;
};

struct exec_event {
	struct event_header h;
	struct proc_key parent;
	__u64 exe_dev;
	__u64 exe_ino;
	__u64 exe_mtime_ns;
	__u64 argv_bytes; /* true lengths */
	__u64 env_bytes;
	__u32 uid;
	__u32 gid;
	__u32 euid;
	__u32 exe_nlink;
	__u32 exe_mode;
	__u32 path_len; /* tail: path as asked, interpreter, executable, cwd, argv, environment */
	__u32 interp_len;
	__u32 exe_len;
	__u32 cwd_len;
	__u32 argv_len;
	__u32 env_len;
	__u32 pad;
};

struct exec_failed_event {
	struct event_header h;
	__s32 result;
	__u32 path_len;
};

struct exit_event {
	struct event_header h;
	__u32 status; /* as wait(2) encodes it */
	__u32 pad;
};

struct open_event {
	struct event_header h;
	__u64 dentry; /* part of the repeat table's key; never leaves the collector */
	__u64 dev;
	__u64 ino;
	__u32 access; /* the rest of that key */
	__u32 f_flags;
	__u32 f_mode;
	__u32 open_flags; /* argument of the system call, 0 when it was in user memory */
	__u32 i_mode;
	__u32 nlink;
	__s32 result;
	__u32 base_len; /* tail: for a failed open the directory it was relative to, then the path */
	__u32 path_len;
	__u32 pad;
};

struct connect_event {
	struct event_header h;
	__u8 local[16];
	__u8 remote[16];
	__u16 local_port;  /* host byte order */
	__u16 remote_port; /* host byte order */
	__u16 family;
	__u16 sock_type;
	__u32 protocol;
	__s32 result;
	__u64 key_lo; /* repeat table key of a datagram destination, 0 for none */
	__u64 key_hi;
	__u32 access;
	__u32 pad;
};

struct ipc_event {
	struct event_header h;
	struct proc_key peer;
	__u64 peer_cgroup;
	__u32 sock_type;
	__s32 result;
	__u32 path_len; /* tail: socket path, peer's executable */
	__u32 exe_len;
	__u64 key_lo; /* repeat table key of a datagram destination, 0 for none */
	__u64 key_hi;
	__u32 access;
	__u32 pad;
};

struct cgroup_event {
	struct event_header h; /* h.proc is the process moved */
	struct proc_key by;
	__u64 to_id;
	__u32 escaped;
	__u32 path_len;
};

struct pathop_event {
	struct event_header h;
	enum path_op op;
	__s32 result;
	__u32 base_len; /* tail: base directory and path, twice */
	__u32 path_len;
	__u32 base2_len;
	__u32 path2_len;
	__u64 dev; /* of the object named first, 0 when only the name is known */
	__u64 ino;
};

struct escape_event {
	struct event_header h;
	enum escape_what what;
	__s32 result;
	__u64 arg[4]; /* system call arguments, meaning by what */
};

enum refused_how { REFUSED_CONNECT, REFUSED_SEND, REFUSED_SOCKET, REFUSED_PACKET };

struct refused_event {
	struct event_header h; /* h.proc: who asked; for a packet, who made the socket, 0 when that is not known */
	__u8 remote[16];       /* IPv4 as ::ffff:a.b.c.d */
	__u16 remote_port;     /* host byte order */
	__u16 local_port;
	__u16 family;
	__u16 sock_type;
	__u32 protocol;
	enum refused_how how;
};

union event {
	struct event_header header; /* first: this is the member Go sees */
	struct fork_event fork;
	struct exec_event exec;
	struct exec_failed_event exec_failed;
	struct exit_event exit;
	struct open_event open;
	struct connect_event connect;
	struct ipc_event ipc;
	struct cgroup_event cgroup;
	struct pathop_event pathop;
	struct escape_event escape;
	struct refused_event refused;
};

/* Opens are counted per process, object and access. */
struct repeat_key {
	struct proc_key proc;
	__u64 lo; /* dentry, or address */
	__u64 hi; /* inode number, or address */
	__u32 dev;
	__u32 access;
};

struct repeat_count {
	__u64 repeats; /* beyond the first, which is an event of its own */
};

enum membership {
	MEMBER_CGROUP = 1,  /* in the session's cgroup subtree */
	MEMBER_DESCENT = 2, /* descends from a member, outside the cgroup */
	MEMBER_ADOPTED = 3, /* added by user space */
};

struct member {
	__u64 start_ns;
	struct proc_key parent;
	enum membership how;
	__u32 pad;
};


_Static_assert(sizeof(struct proc_key) == 16, "layout");
_Static_assert(sizeof(struct event_header) == 48, "layout");
_Static_assert(sizeof(struct fork_event) == 64, "layout");
_Static_assert(sizeof(struct exec_event) == 152, "layout");
_Static_assert(sizeof(struct exec_failed_event) == 56, "layout");
_Static_assert(sizeof(struct exit_event) == 56, "layout");
_Static_assert(sizeof(struct open_event) == 112, "layout");
_Static_assert(sizeof(struct connect_event) == 120, "layout");
_Static_assert(sizeof(struct ipc_event) == 112, "layout");
_Static_assert(sizeof(struct cgroup_event) == 80, "layout");
_Static_assert(sizeof(struct pathop_event) == 88, "layout");
_Static_assert(sizeof(struct escape_event) == 88, "layout");
_Static_assert(sizeof(struct refused_event) == 80, "layout");
_Static_assert(sizeof(struct repeat_key) == 40, "layout");
#endif
