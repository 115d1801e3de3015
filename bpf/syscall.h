/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* System call numbers, per table, folded into what rye does with them. */
#ifndef RYE_SYSCALL_H
#define RYE_SYSCALL_H

enum call {
	CALL_NONE,
	CALL_OPEN, CALL_OPENAT, CALL_CREAT, CALL_OPENAT2, CALL_OPEN_HANDLE,
	CALL_EXECVE, CALL_EXECVEAT,
	CALL_CONNECT, CALL_SENDTO, CALL_SENDMSG, CALL_BIND, CALL_SOCKET, CALL_URING_ENTER,
	CALL_UNLINK, CALL_UNLINKAT, CALL_RMDIR, CALL_RENAME, CALL_RENAMEAT, CALL_LINK, CALL_LINKAT, CALL_SYMLINK,
	CALL_SYMLINKAT, CALL_TRUNCATE, CALL_MKDIR, CALL_MKDIRAT, CALL_CHMOD, CALL_FCHMODAT, CALL_FCHMOD,
	CALL_CHOWN, CALL_FCHOWNAT, CALL_FCHOWN, CALL_MKNOD, CALL_MKNODAT, CALL_FTRUNCATE, CALL_MMAP,
	CALL_PTRACE, CALL_VM_WRITEV, CALL_UNSHARE, CALL_SETNS, CALL_BPF, CALL_MOUNT, CALL_MODULE, CALL_URING_SETUP,
	CALL_MEMFD, CALL_SETUID, CALL_IOCTL, CALL_CLONE, CALL_PIVOT_ROOT, CALL_KEXEC, CALL_PERF, CALL_PIDFD_GETFD,
};

#define CALL_TABLE 512 /* no table has more entries; a power of two for the verifier */

/* What a number means in either table of system calls. */
union calls {
	struct { __u8 native, compat; };
	__u16 any; /* 0: nothing in both */
};

#if defined(__TARGET_ARCH_x86)
static const union calls calls[CALL_TABLE] = {
	[2].native = CALL_OPEN,
	[9].native = CALL_MMAP,
	[16].native = CALL_IOCTL,
	[41].native = CALL_SOCKET,
	[42].native = CALL_CONNECT,
	[44].native = CALL_SENDTO,
	[46].native = CALL_SENDMSG, [307].native = CALL_SENDMSG,
	[49].native = CALL_BIND,
	[56].native = CALL_CLONE,
	[59].native = CALL_EXECVE,
	[76].native = CALL_TRUNCATE,
	[77].native = CALL_FTRUNCATE,
	[82].native = CALL_RENAME,
	[83].native = CALL_MKDIR,
	[84].native = CALL_RMDIR,
	[85].native = CALL_CREAT,
	[86].native = CALL_LINK,
	[87].native = CALL_UNLINK,
	[88].native = CALL_SYMLINK,
	[90].native = CALL_CHMOD,
	[91].native = CALL_FCHMOD,
	[92].native = CALL_CHOWN, [94].native = CALL_CHOWN,
	[93].native = CALL_FCHOWN,
	[101].native = CALL_PTRACE,
	[105].native = CALL_SETUID, [113].native = CALL_SETUID, [117].native = CALL_SETUID, /* setuid, setreuid, setresuid */
	[133].native = CALL_MKNOD,
	[155].native = CALL_PIVOT_ROOT,
	[165].native = CALL_MOUNT, [428].native = CALL_MOUNT, [429].native = CALL_MOUNT, [432].native = CALL_MOUNT, /* mount, open_tree, move_mount, fsmount */
	[175].native = CALL_MODULE, [313].native = CALL_MODULE,
	[246].native = CALL_KEXEC, [320].native = CALL_KEXEC,
	[257].native = CALL_OPENAT,
	[258].native = CALL_MKDIRAT,
	[259].native = CALL_MKNODAT,
	[260].native = CALL_FCHOWNAT,
	[263].native = CALL_UNLINKAT,
	[264].native = CALL_RENAMEAT, [316].native = CALL_RENAMEAT,
	[265].native = CALL_LINKAT,
	[266].native = CALL_SYMLINKAT,
	[268].native = CALL_FCHMODAT, [452].native = CALL_FCHMODAT,
	[272].native = CALL_UNSHARE,
	[298].native = CALL_PERF,
	[304].native = CALL_OPEN_HANDLE,
	[308].native = CALL_SETNS,
	[311].native = CALL_VM_WRITEV,
	[319].native = CALL_MEMFD,
	[321].native = CALL_BPF,
	[322].native = CALL_EXECVEAT,
	[425].native = CALL_URING_SETUP,
	[426].native = CALL_URING_ENTER,
	[437].native = CALL_OPENAT2,
	[438].native = CALL_PIDFD_GETFD,

	/* int 0x80 */
	[5].compat = CALL_OPEN,
	[8].compat = CALL_CREAT,
	[10].compat = CALL_UNLINK,
	[11].compat = CALL_EXECVE,
	[14].compat = CALL_MKNOD,
	[15].compat = CALL_CHMOD,
	[9].compat = CALL_LINK,
	[83].compat = CALL_SYMLINK,
	[39].compat = CALL_MKDIR,
	[21].compat = CALL_MOUNT,
	[23].compat = CALL_SETUID, [213].compat = CALL_SETUID,
	[26].compat = CALL_PTRACE,
	[38].compat = CALL_RENAME,
	[40].compat = CALL_RMDIR,
	[54].compat = CALL_IOCTL,
	[92].compat = CALL_TRUNCATE,
	[120].compat = CALL_CLONE,
	[295].compat = CALL_OPENAT,
	[192].compat = CALL_MMAP,
	[296].compat = CALL_MKDIRAT,
	[303].compat = CALL_LINKAT,
	[304].compat = CALL_SYMLINKAT,
	[306].compat = CALL_FCHMODAT,
	[301].compat = CALL_UNLINKAT,
	[302].compat = CALL_RENAMEAT, [353].compat = CALL_RENAMEAT,
	[310].compat = CALL_UNSHARE,
	[342].compat = CALL_OPEN_HANDLE,
	[358].compat = CALL_EXECVEAT,
	[359].compat = CALL_SOCKET,
	[361].compat = CALL_BIND,
	[362].compat = CALL_CONNECT,
	[369].compat = CALL_SENDTO,
	[345].compat = CALL_SENDMSG, [370].compat = CALL_SENDMSG,
	[437].compat = CALL_OPENAT2,
};

static __always_inline bool is_compat(struct task_struct *task)
{
	return READ_TASK(task, thread_info.status) & 2; /* TS_COMPAT, set for the length of the call */
}

/* regs are an argument of the hook, with a type: plain loads, which the kernel makes safe, and no helper calls */
#define CALL_NR(regs) ((long)(regs)->orig_ax)

struct args { __u64 a[5]; };
static __always_inline void read_args(struct pt_regs *r, bool compat, struct args *g)
{
	if (compat) {
		g->a[0] = (__u32)r->bx;
		g->a[1] = (__u32)r->cx;
		g->a[2] = (__u32)r->dx;
		g->a[3] = (__u32)r->si;
		g->a[4] = (__u32)r->di;
	} else {
		g->a[0] = r->di;
		g->a[1] = r->si;
		g->a[2] = r->dx;
		g->a[3] = r->r10;
		g->a[4] = r->r8;
	}
}
#elif defined(__TARGET_ARCH_arm64)
/* 32-bit tasks on arm64 use another table: not decoded, and said so by the loader. */
static const union calls calls[CALL_TABLE] = {
	[29].native = CALL_IOCTL,
	[33].native = CALL_MKNODAT,
	[34].native = CALL_MKDIRAT,
	[35].native = CALL_UNLINKAT,
	[36].native = CALL_SYMLINKAT,
	[37].native = CALL_LINKAT,
	[38].native = CALL_RENAMEAT, [276].native = CALL_RENAMEAT,
	[40].native = CALL_MOUNT, [428].native = CALL_MOUNT, [429].native = CALL_MOUNT, [432].native = CALL_MOUNT,
	[41].native = CALL_PIVOT_ROOT,
	[45].native = CALL_TRUNCATE,
	[46].native = CALL_FTRUNCATE,
	[52].native = CALL_FCHMOD,
	[53].native = CALL_FCHMODAT, [452].native = CALL_FCHMODAT,
	[54].native = CALL_FCHOWNAT,
	[55].native = CALL_FCHOWN,
	[56].native = CALL_OPENAT,
	[97].native = CALL_UNSHARE,
	[104].native = CALL_KEXEC, [294].native = CALL_KEXEC,
	[105].native = CALL_MODULE, [273].native = CALL_MODULE,
	[117].native = CALL_PTRACE,
	[145].native = CALL_SETUID, [146].native = CALL_SETUID, [147].native = CALL_SETUID,
	[198].native = CALL_SOCKET,
	[200].native = CALL_BIND,
	[203].native = CALL_CONNECT,
	[206].native = CALL_SENDTO,
	[211].native = CALL_SENDMSG, [269].native = CALL_SENDMSG,
	[220].native = CALL_CLONE,
	[221].native = CALL_EXECVE,
	[222].native = CALL_MMAP,
	[241].native = CALL_PERF,
	[265].native = CALL_OPEN_HANDLE,
	[268].native = CALL_SETNS,
	[271].native = CALL_VM_WRITEV,
	[279].native = CALL_MEMFD,
	[280].native = CALL_BPF,
	[281].native = CALL_EXECVEAT,
	[425].native = CALL_URING_SETUP,
	[426].native = CALL_URING_ENTER,
	[437].native = CALL_OPENAT2,
	[438].native = CALL_PIDFD_GETFD,
};

static __always_inline bool is_compat(struct task_struct *task)
{
	return READ_TASK(task, thread_info.flags) & (1 << 22); /* TIF_32BIT */
}

#define CALL_NR(regs) ((long)(regs)->syscallno)

struct args { __u64 a[5]; };
static __always_inline void read_args(struct pt_regs *r, bool compat, struct args *g)
{
	g->a[0] = r->orig_x0;
	g->a[1] = r->regs[1];
	g->a[2] = r->regs[2];
	g->a[3] = r->regs[3];
	g->a[4] = r->regs[4];
}
#endif

static __always_inline union calls calls_of(long nr)
{
	union calls none = {};

	return (unsigned long)nr < CALL_TABLE ? calls[nr & (CALL_TABLE - 1)] : none;
}

/* call_under_way is the system call that the task is in; regs are that call's. */
static __always_inline enum call call_under_way(struct task_struct *task, struct pt_regs *regs)
{
	union calls c = calls_of(CALL_NR(regs));

	return is_compat(task) ? c.compat : c.native;
}
#endif
