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

#if defined(__TARGET_ARCH_x86)
static __always_inline enum call native_call(long nr)
{
	switch (nr) {
	case 2: return CALL_OPEN;
	case 9: return CALL_MMAP;
	case 16: return CALL_IOCTL;
	case 41: return CALL_SOCKET;
	case 42: return CALL_CONNECT;
	case 44: return CALL_SENDTO;
	case 46: case 307: return CALL_SENDMSG;
	case 49: return CALL_BIND;
	case 56: return CALL_CLONE;
	case 59: return CALL_EXECVE;
	case 76: return CALL_TRUNCATE;
	case 77: return CALL_FTRUNCATE;
	case 82: return CALL_RENAME;
	case 83: return CALL_MKDIR;
	case 84: return CALL_RMDIR;
	case 85: return CALL_CREAT;
	case 86: return CALL_LINK;
	case 87: return CALL_UNLINK;
	case 88: return CALL_SYMLINK;
	case 90: return CALL_CHMOD;
	case 91: return CALL_FCHMOD;
	case 92: case 94: return CALL_CHOWN;
	case 93: return CALL_FCHOWN;
	case 101: return CALL_PTRACE;
	case 105: case 113: case 117: return CALL_SETUID; /* setuid, setreuid, setresuid */
	case 133: return CALL_MKNOD;
	case 155: return CALL_PIVOT_ROOT;
	case 165: case 428: case 429: case 432: return CALL_MOUNT; /* mount, open_tree, move_mount, fsmount */
	case 175: case 313: return CALL_MODULE;
	case 246: case 320: return CALL_KEXEC;
	case 257: return CALL_OPENAT;
	case 258: return CALL_MKDIRAT;
	case 259: return CALL_MKNODAT;
	case 260: return CALL_FCHOWNAT;
	case 263: return CALL_UNLINKAT;
	case 264: case 316: return CALL_RENAMEAT;
	case 265: return CALL_LINKAT;
	case 266: return CALL_SYMLINKAT;
	case 268: case 452: return CALL_FCHMODAT;
	case 272: return CALL_UNSHARE;
	case 298: return CALL_PERF;
	case 304: return CALL_OPEN_HANDLE;
	case 308: return CALL_SETNS;
	case 311: return CALL_VM_WRITEV;
	case 319: return CALL_MEMFD;
	case 321: return CALL_BPF;
	case 322: return CALL_EXECVEAT;
	case 425: return CALL_URING_SETUP;
	case 426: return CALL_URING_ENTER;
	case 437: return CALL_OPENAT2;
	case 438: return CALL_PIDFD_GETFD;
	}
	return CALL_NONE;
}

/* int 0x80 */
static __always_inline enum call compat_call(long nr)
{
	switch (nr) {
	case 5: return CALL_OPEN;
	case 8: return CALL_CREAT;
	case 10: return CALL_UNLINK;
	case 11: return CALL_EXECVE;
	case 14: return CALL_MKNOD;
	case 15: return CALL_CHMOD;
	case 9: return CALL_LINK;
	case 83: return CALL_SYMLINK;
	case 39: return CALL_MKDIR;
	case 21: return CALL_MOUNT;
	case 23: case 213: return CALL_SETUID;
	case 26: return CALL_PTRACE;
	case 38: return CALL_RENAME;
	case 40: return CALL_RMDIR;
	case 54: return CALL_IOCTL;
	case 92: return CALL_TRUNCATE;
	case 120: return CALL_CLONE;
	case 295: return CALL_OPENAT;
	case 192: return CALL_MMAP;
	case 296: return CALL_MKDIRAT;
	case 303: return CALL_LINKAT;
	case 304: return CALL_SYMLINKAT;
	case 306: return CALL_FCHMODAT;
	case 301: return CALL_UNLINKAT;
	case 302: case 353: return CALL_RENAMEAT;
	case 310: return CALL_UNSHARE;
	case 342: return CALL_OPEN_HANDLE;
	case 358: return CALL_EXECVEAT;
	case 359: return CALL_SOCKET;
	case 361: return CALL_BIND;
	case 362: return CALL_CONNECT;
	case 369: return CALL_SENDTO;
	case 345: case 370: return CALL_SENDMSG;
	case 437: return CALL_OPENAT2;
	}
	return CALL_NONE;
}

static __always_inline bool is_compat(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread_info.status) & 2; /* TS_COMPAT, set for the length of the call */
}

#define CALL_NR(regs) ((long)BPF_CORE_READ(regs, orig_ax))

struct args { __u64 a[5]; };
static __always_inline void read_args(struct pt_regs *r, bool compat, struct args *g)
{
	if (compat) {
		g->a[0] = (__u32)BPF_CORE_READ(r, bx);
		g->a[1] = (__u32)BPF_CORE_READ(r, cx);
		g->a[2] = (__u32)BPF_CORE_READ(r, dx);
		g->a[3] = (__u32)BPF_CORE_READ(r, si);
		g->a[4] = (__u32)BPF_CORE_READ(r, di);
	} else {
		g->a[0] = BPF_CORE_READ(r, di);
		g->a[1] = BPF_CORE_READ(r, si);
		g->a[2] = BPF_CORE_READ(r, dx);
		g->a[3] = BPF_CORE_READ(r, r10);
		g->a[4] = BPF_CORE_READ(r, r8);
	}
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline enum call native_call(long nr)
{
	switch (nr) {
	case 29: return CALL_IOCTL;
	case 33: return CALL_MKNODAT;
	case 34: return CALL_MKDIRAT;
	case 35: return CALL_UNLINKAT;
	case 36: return CALL_SYMLINKAT;
	case 37: return CALL_LINKAT;
	case 38: case 276: return CALL_RENAMEAT;
	case 40: case 428: case 429: case 432: return CALL_MOUNT;
	case 41: return CALL_PIVOT_ROOT;
	case 45: return CALL_TRUNCATE;
	case 46: return CALL_FTRUNCATE;
	case 52: return CALL_FCHMOD;
	case 53: case 452: return CALL_FCHMODAT;
	case 54: return CALL_FCHOWNAT;
	case 55: return CALL_FCHOWN;
	case 56: return CALL_OPENAT;
	case 97: return CALL_UNSHARE;
	case 104: case 294: return CALL_KEXEC;
	case 105: case 273: return CALL_MODULE;
	case 117: return CALL_PTRACE;
	case 145: case 146: case 147: return CALL_SETUID;
	case 198: return CALL_SOCKET;
	case 200: return CALL_BIND;
	case 203: return CALL_CONNECT;
	case 206: return CALL_SENDTO;
	case 211: case 269: return CALL_SENDMSG;
	case 220: return CALL_CLONE;
	case 221: return CALL_EXECVE;
	case 222: return CALL_MMAP;
	case 241: return CALL_PERF;
	case 265: return CALL_OPEN_HANDLE;
	case 268: return CALL_SETNS;
	case 271: return CALL_VM_WRITEV;
	case 279: return CALL_MEMFD;
	case 280: return CALL_BPF;
	case 281: return CALL_EXECVEAT;
	case 425: return CALL_URING_SETUP;
	case 426: return CALL_URING_ENTER;
	case 437: return CALL_OPENAT2;
	case 438: return CALL_PIDFD_GETFD;
	}
	return CALL_NONE;
}

/* 32-bit tasks on arm64 use another table: not decoded, and said so by the loader. */
static __always_inline enum call compat_call(long nr)
{
	return CALL_NONE;
}

static __always_inline bool is_compat(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread_info.flags) & (1 << 22); /* TIF_32BIT */
}

#define CALL_NR(regs) ((long)BPF_CORE_READ(regs, syscallno))

struct args { __u64 a[5]; };
static __always_inline void read_args(struct pt_regs *r, bool compat, struct args *g)
{
	g->a[0] = BPF_CORE_READ(r, orig_x0);
	g->a[1] = BPF_CORE_READ(r, regs[1]);
	g->a[2] = BPF_CORE_READ(r, regs[2]);
	g->a[3] = BPF_CORE_READ(r, regs[3]);
	g->a[4] = BPF_CORE_READ(r, regs[4]);
}
#endif
#endif
