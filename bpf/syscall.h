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

#if defined(__TARGET_ARCH_x86)
static const __u8 native_calls[CALL_TABLE] = {
	[2] = CALL_OPEN,
	[9] = CALL_MMAP,
	[16] = CALL_IOCTL,
	[41] = CALL_SOCKET,
	[42] = CALL_CONNECT,
	[44] = CALL_SENDTO,
	[46] = CALL_SENDMSG, [307] = CALL_SENDMSG,
	[49] = CALL_BIND,
	[56] = CALL_CLONE,
	[59] = CALL_EXECVE,
	[76] = CALL_TRUNCATE,
	[77] = CALL_FTRUNCATE,
	[82] = CALL_RENAME,
	[83] = CALL_MKDIR,
	[84] = CALL_RMDIR,
	[85] = CALL_CREAT,
	[86] = CALL_LINK,
	[87] = CALL_UNLINK,
	[88] = CALL_SYMLINK,
	[90] = CALL_CHMOD,
	[91] = CALL_FCHMOD,
	[92] = CALL_CHOWN, [94] = CALL_CHOWN,
	[93] = CALL_FCHOWN,
	[101] = CALL_PTRACE,
	[105] = CALL_SETUID, [113] = CALL_SETUID, [117] = CALL_SETUID, /* setuid, setreuid, setresuid */
	[133] = CALL_MKNOD,
	[155] = CALL_PIVOT_ROOT,
	[165] = CALL_MOUNT, [428] = CALL_MOUNT, [429] = CALL_MOUNT, [432] = CALL_MOUNT, /* mount, open_tree, move_mount, fsmount */
	[175] = CALL_MODULE, [313] = CALL_MODULE,
	[246] = CALL_KEXEC, [320] = CALL_KEXEC,
	[257] = CALL_OPENAT,
	[258] = CALL_MKDIRAT,
	[259] = CALL_MKNODAT,
	[260] = CALL_FCHOWNAT,
	[263] = CALL_UNLINKAT,
	[264] = CALL_RENAMEAT, [316] = CALL_RENAMEAT,
	[265] = CALL_LINKAT,
	[266] = CALL_SYMLINKAT,
	[268] = CALL_FCHMODAT, [452] = CALL_FCHMODAT,
	[272] = CALL_UNSHARE,
	[298] = CALL_PERF,
	[304] = CALL_OPEN_HANDLE,
	[308] = CALL_SETNS,
	[311] = CALL_VM_WRITEV,
	[319] = CALL_MEMFD,
	[321] = CALL_BPF,
	[322] = CALL_EXECVEAT,
	[425] = CALL_URING_SETUP,
	[426] = CALL_URING_ENTER,
	[437] = CALL_OPENAT2,
	[438] = CALL_PIDFD_GETFD,
};

/* int 0x80 */
static const __u8 compat_calls[CALL_TABLE] = {
	[5] = CALL_OPEN,
	[8] = CALL_CREAT,
	[10] = CALL_UNLINK,
	[11] = CALL_EXECVE,
	[14] = CALL_MKNOD,
	[15] = CALL_CHMOD,
	[9] = CALL_LINK,
	[83] = CALL_SYMLINK,
	[39] = CALL_MKDIR,
	[21] = CALL_MOUNT,
	[23] = CALL_SETUID, [213] = CALL_SETUID,
	[26] = CALL_PTRACE,
	[38] = CALL_RENAME,
	[40] = CALL_RMDIR,
	[54] = CALL_IOCTL,
	[92] = CALL_TRUNCATE,
	[120] = CALL_CLONE,
	[295] = CALL_OPENAT,
	[192] = CALL_MMAP,
	[296] = CALL_MKDIRAT,
	[303] = CALL_LINKAT,
	[304] = CALL_SYMLINKAT,
	[306] = CALL_FCHMODAT,
	[301] = CALL_UNLINKAT,
	[302] = CALL_RENAMEAT, [353] = CALL_RENAMEAT,
	[310] = CALL_UNSHARE,
	[342] = CALL_OPEN_HANDLE,
	[358] = CALL_EXECVEAT,
	[359] = CALL_SOCKET,
	[361] = CALL_BIND,
	[362] = CALL_CONNECT,
	[369] = CALL_SENDTO,
	[345] = CALL_SENDMSG, [370] = CALL_SENDMSG,
	[437] = CALL_OPENAT2,
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
static const __u8 native_calls[CALL_TABLE] = {
	[29] = CALL_IOCTL,
	[33] = CALL_MKNODAT,
	[34] = CALL_MKDIRAT,
	[35] = CALL_UNLINKAT,
	[36] = CALL_SYMLINKAT,
	[37] = CALL_LINKAT,
	[38] = CALL_RENAMEAT, [276] = CALL_RENAMEAT,
	[40] = CALL_MOUNT, [428] = CALL_MOUNT, [429] = CALL_MOUNT, [432] = CALL_MOUNT,
	[41] = CALL_PIVOT_ROOT,
	[45] = CALL_TRUNCATE,
	[46] = CALL_FTRUNCATE,
	[52] = CALL_FCHMOD,
	[53] = CALL_FCHMODAT, [452] = CALL_FCHMODAT,
	[54] = CALL_FCHOWNAT,
	[55] = CALL_FCHOWN,
	[56] = CALL_OPENAT,
	[97] = CALL_UNSHARE,
	[104] = CALL_KEXEC, [294] = CALL_KEXEC,
	[105] = CALL_MODULE, [273] = CALL_MODULE,
	[117] = CALL_PTRACE,
	[145] = CALL_SETUID, [146] = CALL_SETUID, [147] = CALL_SETUID,
	[198] = CALL_SOCKET,
	[200] = CALL_BIND,
	[203] = CALL_CONNECT,
	[206] = CALL_SENDTO,
	[211] = CALL_SENDMSG, [269] = CALL_SENDMSG,
	[220] = CALL_CLONE,
	[221] = CALL_EXECVE,
	[222] = CALL_MMAP,
	[241] = CALL_PERF,
	[265] = CALL_OPEN_HANDLE,
	[268] = CALL_SETNS,
	[271] = CALL_VM_WRITEV,
	[279] = CALL_MEMFD,
	[280] = CALL_BPF,
	[281] = CALL_EXECVEAT,
	[425] = CALL_URING_SETUP,
	[426] = CALL_URING_ENTER,
	[437] = CALL_OPENAT2,
	[438] = CALL_PIDFD_GETFD,
};

/* 32-bit tasks on arm64 use another table: not decoded, and said so by the loader. */
static const __u8 compat_calls[CALL_TABLE] = {};

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

/* What rye does with a system call, by its number in either table; 0 for nothing. */
static __always_inline enum call call_of(const __u8 *table, long nr)
{
	return (unsigned long)nr < CALL_TABLE ? table[nr & (CALL_TABLE - 1)] : CALL_NONE;
}
#endif
