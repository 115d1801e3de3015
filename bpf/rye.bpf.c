//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rye's programs. Every one asks first whether the task belongs to the session; a stranger pays for that
 * question only. All facts come from kernel objects; where only the caller's own memory has them, the
 * record says so (FLAG_PATH_FROM_USER and others).
 *
 *   event.h    the records          task.h    membership         process.h  fork, exec, exit, cgroups
 *   emit.h     ring and loss        path.h    absolute paths     file.h     opens and names
 *   syscall.h  numbers              net.h     sockets            hook.h     what the upper tiers add
 *   packet.h   first packets        enforce.h refusals
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "event.h"
#include "emit.h"
#include "task.h"
#include "path.h"
#include "syscall.h"
#include "file.h"
#include "process.h"
#include "net.h"
#include "packet.h"
#include "enforce.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define AT_FDCWD_ (-100)
#define CLONE_NEW_ANY 0x7e020000
#define TIOCSTI 0x5412
#define PTRACE_TRACEME 0
#define PTRACE_ATTACH 16
#define PTRACE_SEIZE 0x4206

static __noinline int escape(struct task_struct *task, enum escape_what what, long ret, struct args *g, __u32 hflags)
{
	struct escape_event e;

	start_header(&e.h, EVENT_ESCAPE, task);
	e.h.flags = hflags;
	e.what = what;
	e.result = ret > 0 ? 0 : ret;
	e.arg[0] = g->a[0];
	e.arg[1] = g->a[1];
	e.arg[2] = g->a[2];
	e.arg[3] = g->a[3];
	emit(&e, EVENT_ESCAPE, sizeof(e), false);
	return 0;
}

static __always_inline int exec_failed(struct task_struct *task, long ret, const void *path, __u32 hflags)
{
	struct scratch *s = grab(EVENT_EXEC_FAILED);
	struct exec_failed_event *e;
	__u64 at = sizeof(*e);
	long n;

	if (!s)
		return 0;
	e = (void *)s->rec;
	start_header(&e->h, EVENT_EXEC_FAILED, task);
	e->h.flags = hflags | FLAG_PATH_FROM_USER;
	e->result = ret;
	n = append_user_str(s, at, path);
	if (n < 0) {
		e->h.flags |= FLAG_PATH_UNREADABLE;
		n = 0;
	}
	e->path_len = n;
	emit(s->rec, EVENT_EXEC_FAILED, at + n, false);
	release(s);
	return 0;
}

/* Set by the loader to CALL_OPENAT2 when do_filp_open's return is seen, which calls up to that one come through. */
__u16 opens_hooked;

static __noinline int file_call(struct task_struct *task, enum call call, long ret, struct args *g, __u32 hflags)
{
	switch (call) {
	case CALL_OPEN:
		return on_open(task, ret, AT_FDCWD_, (void *)g->a[0], g->a[1], hflags);
	case CALL_CREAT:
		return on_open(task, ret, AT_FDCWD_, (void *)g->a[0], 01101, hflags); /* O_WRONLY|O_CREAT|O_TRUNC */
	case CALL_OPENAT:
		return on_open(task, ret, g->a[0], (void *)g->a[1], g->a[2], hflags);
	case CALL_OPENAT2:
		return on_open(task, ret, g->a[0], (void *)g->a[1], 0, hflags); /* flags are in user memory */
	case CALL_OPEN_HANDLE:
		return on_open(task, ret, g->a[0], NULL, g->a[2], hflags);
	default:
		return 0;
	}
}

static __noinline int name_call(struct task_struct *task, enum call call, long ret, struct args *g, __u32 hflags)
{
	int dirfd = AT_FDCWD_, dirfd2 = AT_FDCWD_;
	const void *path = (void *)g->a[0], *path2 = NULL;
	enum path_op op;

	switch (call) {
	case CALL_UNLINK: op = OP_UNLINK; break;
	case CALL_RMDIR: op = OP_RMDIR; break;
	case CALL_TRUNCATE: op = OP_TRUNCATE; break;
	case CALL_MKDIR: op = OP_MKDIR; break;
	case CALL_CHMOD: op = OP_CHMOD; break;
	case CALL_UNLINKAT:
		op = g->a[2] & 0x200 ? OP_RMDIR : OP_UNLINK; /* AT_REMOVEDIR */
		dirfd = g->a[0];
		path = (void *)g->a[1];
		break;
	case CALL_CHOWN: op = OP_CHOWN; break;
	case CALL_MKNOD: op = OP_MKNOD; break;
	case CALL_FCHMOD:
	case CALL_FCHOWN:
		op = call == CALL_FCHMOD ? OP_CHMOD : OP_CHOWN;
		dirfd = g->a[0];
		path = NULL;
		break;
	case CALL_MKDIRAT:
	case CALL_FCHMODAT:
	case CALL_FCHOWNAT:
	case CALL_MKNODAT:
		op = call == CALL_MKDIRAT ? OP_MKDIR : call == CALL_MKNODAT ? OP_MKNOD : call == CALL_FCHOWNAT ? OP_CHOWN : OP_CHMOD;
		dirfd = g->a[0];
		path = (void *)g->a[1];
		break;
	case CALL_RENAME: op = OP_RENAME; path2 = (void *)g->a[1]; break;
	case CALL_LINK: op = OP_LINK; path2 = (void *)g->a[1]; break;
	case CALL_SYMLINK: op = OP_SYMLINK; path2 = (void *)g->a[1]; break;
	case CALL_RENAMEAT:
	case CALL_LINKAT:
		op = call == CALL_RENAMEAT ? OP_RENAME : OP_LINK;
		dirfd = g->a[0];
		path = (void *)g->a[1];
		dirfd2 = g->a[2];
		path2 = (void *)g->a[3];
		break;
	case CALL_SYMLINKAT:
		op = OP_SYMLINK;
		dirfd2 = g->a[1];
		path2 = (void *)g->a[2];
		break;
	default:
		return 0;
	}
	return on_pathop(task, ret, op, dirfd, path, dirfd2, path2, hflags);
}

static __noinline int socket_call(struct task_struct *task, long ret, struct args *g, __u32 hflags)
{
	if (g->a[0] == 17)
		return escape(task, ESC_PACKET_SOCKET, ret, g, hflags);
	if (g->a[0] == 40)
		return escape(task, ESC_VSOCK, ret, g, hflags);
	if ((g->a[1] & 0xf) == 3 && (g->a[0] == AF_INET || g->a[0] == AF_INET6))
		return escape(task, ESC_RAW_SOCKET, ret, g, hflags);
	return 0;
}

#include "hook.h"

static __noinline int net_call(struct task_struct *task, enum call call, long ret, struct args *g, __u32 hflags)
{
	switch (call) {
	case CALL_CONNECT:
		return on_send(task, ret, g->a[0], (void *)g->a[1], g->a[2], true, hflags);
	case CALL_SENDTO:
	case CALL_SENDMSG:
		return on_send(task, ret, g->a[0], NULL, 0, false, hflags);
	case CALL_BIND:
		return on_bind(task, ret, g->a[0], hflags);
	case CALL_URING_ENTER:
		return on_uring(task);
	case CALL_SOCKET:
		return socket_call(task, ret, g, hflags);
	default:
		return 0;
	}
}

static __noinline int call_returned(struct pt_regs *regs, long ret, __u32 any)
{
	union calls calls = {.any = any};
	enum call call = calls.native;
	struct task_struct *task;
	__u32 hflags = 0;
	struct args g;
	bool compat;

	if (!current_membership())
		return 0;
	task = current_task();
	compat = is_compat(task);
	if (compat) {
		call = calls.compat;
		hflags = FLAG_COMPAT;
	}
	if (call <= opens_hooked || (ret >= 0 && (call == CALL_EXECVE || call == CALL_EXECVEAT))) /* process.exec has told */
		return 0;
	read_args(regs, compat, &g);

	switch (call) {
	case CALL_OPEN: case CALL_OPENAT: case CALL_CREAT: case CALL_OPENAT2: case CALL_OPEN_HANDLE:
		forget_stash(task); /* where the hook cannot tell that an open truncates */
		return file_call(task, call, ret, &g, hflags);
	case CALL_MMAP:
		return g.a[2] & PROT_EXEC_ && !(g.a[3] & MAP_ANONYMOUS_) ? on_map(task, ret, &g, hflags) : 0;
	case CALL_FTRUNCATE:
		forget_stash(task);
		return 0;
	case CALL_EXECVE:
		return exec_failed(task, ret, (void *)g.a[0], hflags);
	case CALL_EXECVEAT:
		return exec_failed(task, ret, (void *)g.a[1], hflags);
	case CALL_CONNECT: case CALL_SENDTO: case CALL_SENDMSG: case CALL_BIND: case CALL_SOCKET: case CALL_URING_ENTER:
		return net_call(task, call, ret, &g, hflags);
	case CALL_UNLINK: case CALL_UNLINKAT: case CALL_RMDIR: case CALL_RENAME: case CALL_RENAMEAT: case CALL_LINK:
	case CALL_LINKAT: case CALL_SYMLINK: case CALL_SYMLINKAT: case CALL_TRUNCATE: case CALL_MKDIR:
	case CALL_MKDIRAT: case CALL_CHMOD: case CALL_FCHMODAT: case CALL_FCHMOD: case CALL_CHOWN: case CALL_FCHOWNAT:
	case CALL_FCHOWN: case CALL_MKNOD: case CALL_MKNODAT:
		return name_call(task, call, ret, &g, hflags);
	case CALL_PTRACE:
		if (g.a[0] != PTRACE_TRACEME && g.a[0] != PTRACE_ATTACH && g.a[0] != PTRACE_SEIZE)
			return 0;
		return escape(task, ESC_PTRACE, ret, &g, hflags);
	case CALL_IOCTL:
		return (__u32)g.a[1] == TIOCSTI ? escape(task, ESC_TIOCSTI, ret, &g, hflags) : 0;
	case CALL_CLONE:
		return g.a[0] & CLONE_NEW_ANY ? escape(task, ESC_CLONE_NS, ret, &g, hflags) : 0;
	case CALL_VM_WRITEV: return escape(task, ESC_VM_WRITEV, ret, &g, hflags);
	case CALL_UNSHARE: return escape(task, ESC_UNSHARE, ret, &g, hflags);
	case CALL_SETNS: return escape(task, ESC_SETNS, ret, &g, hflags);
	case CALL_BPF: return escape(task, ESC_BPF, ret, &g, hflags);
	case CALL_MOUNT: return escape(task, ESC_MOUNT, ret, &g, hflags);
	case CALL_MODULE: return escape(task, ESC_MODULE, ret, &g, hflags);
	case CALL_URING_SETUP: return escape(task, ESC_IO_URING, ret, &g, hflags);
	case CALL_MEMFD: return escape(task, ESC_MEMFD, ret, &g, hflags);
	case CALL_SETUID: return escape(task, ESC_SETUID, ret, &g, hflags);
	case CALL_PIVOT_ROOT: return escape(task, ESC_PIVOT_ROOT, ret, &g, hflags);
	case CALL_KEXEC: return escape(task, ESC_KEXEC, ret, &g, hflags);
	case CALL_PERF: return escape(task, ESC_PERF, ret, &g, hflags);
	case CALL_PIDFD_GETFD: return escape(task, ESC_PIDFD_GETFD, ret, &g, hflags);
	default:
		return 0;
	}
}

/* One program on the way out of every system call: cheaper than a tracepoint per call (measured), and the
 * only hook of this tier that also sees int 0x80. Calls that are not looked at and, where a hook has them,
 * opens are most of those that strangers make: they leave here, before a register is saved. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	union calls calls = calls_of(CALL_NR(regs));

	if (calls.any <= opens_hooked) /* nothing in either table, or an open in the native one only */
		return 0;
	return call_returned(regs, ret, calls.any);
}
