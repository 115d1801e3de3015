/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the upper tiers add. The tracepoint tier sees calls return; these programs stand where the kernel
 * itself decides, so they see what no system call shows (io_uring, descriptors handed over) and take names
 * from the kernel's objects and not from memory that another thread may be changing.
 *
 * Three tiers attach the same bodies: lsm to BPF LSM, fentry and kprobe to the functions that call the
 * security modules. Opens are taken at the return of do_filp_open, where trampolines exist: the file is not
 * in any descriptor table yet, nobody can swap it, and the result is known.
 */
#ifndef RYE_HOOK_H
#define RYE_HOOK_H

#define FMODE_EXEC_ 0x20
#define MAX_ERRNO 4095
#define NR_URING_ENTER 426

const volatile bool has_task_regs = false; /* bpf_task_pt_regs: 5.15 and later */
bool socket_hooks; /* set by the loader: the cgroup's socket hooks are attached */

/* in_uring: is this done for an io_uring, so that no system call will return for it? Workers and polling
 * threads carry a flag; a request done inline shows by the system call the task is in. */
static __always_inline bool in_uring(struct task_struct *task)
{
	if (READ_TASK(task, flags) & PF_IO_WORKER)
		return true;
	if (has_task_regs) {
		struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

		return CALL_NR(regs) == NR_URING_ENTER;
	}
	return false;
}

/* Opens, with the result. */
static __noinline int file_opened(int dfd, struct filename *name, const struct open_flags *op, struct file *file)
{
	struct task_struct *task;
	long ret = 0;
	__u32 hflags, oflags = op->open_flag;

	if (oflags & FMODE_EXEC_) /* an exec's own open: process.exec tells */
		return 0;
	task = current_task();
	hflags = is_compat(task) ? FLAG_COMPAT : 0;
	if (READ_TASK(task, flags) & PF_IO_WORKER)
		hflags = FLAG_IO_URING;
	if (oflags & O_TRUNC_)
		forget_stash(task); /* the truncation is this open's */
	read_kernel(&ret, sizeof(ret), &file); /* an error or a pointer: as a number, which the verifier lets us compare */
	if (ret < 0 && ret >= -MAX_ERRNO)
		return open_failed(task, ret, dfd, BPF_CORE_READ(name, name), false, oflags, hflags);
	return opened(task, (void *)ret, oflags, hflags);
}

/* The arguments are fetched after the question who it is: strangers open files all the time. */
SEC("fexit/do_filp_open")
int after_open(__u64 *ctx)
{
	if (!current_membership())
		return 0;
	return file_opened((int)ctx[0], (void *)ctx[1], (void *)ctx[2], (void *)ctx[3]);
}

/* Without trampolines the arguments are gone at the return; system calls show their own opens, so only the
 * others are taken here. */
SEC("kretprobe/do_filp_open")
int BPF_KRETPROBE(after_open_kprobe, struct file *ret)
{
	struct task_struct *task;

	if (!current_membership())
		return 0;
	task = current_task();
	if (!in_uring(task) || (unsigned long)ret >= (unsigned long)-MAX_ERRNO)
		return 0;
	return opened(task, ret, 0, FLAG_IO_URING);
}

/* Names. The hook knows what is meant, the end of the system call how it went: the first leaves a stash. */
static __noinline int name_hook(enum path_op op, struct vfsmount *mnt, struct dentry *dentry, const void *second, struct dentry *dentry2)
{
	struct task_struct *task = current_task();
	struct scratch *s = grab(EVENT_PATHOP);
	__u64 at = sizeof(struct pathop_event);
	struct pathop_event *e;
	struct inode *inode;
	bool uring;
	long n;

	if (!s)
		return 0;
	e = (void *)s->rec;
	__builtin_memset(e, 0, sizeof(*e));
	start_header(&e->h, EVENT_PATHOP, task);
	e->h.flags = FLAG_NO_RESULT;
	e->op = op;
	inode = BPF_CORE_READ(dentry, d_inode);
	if (inode) {
		e->ino = BPF_CORE_READ(inode, i_ino);
		e->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	}
	if (op == OP_SYMLINK) { /* first what the link says, then its own name */
		n = append_kernel_str(s, at, second);
		e->path_len = n < 0 ? 0 : n;
		at += e->path_len;
		walk_path(s, mnt, dentry);
		e->path2_len = append_walk(s, at);
		at += e->path2_len;
	} else {
		walk_path(s, mnt, dentry);
		if (s->state == WALK_UNREADABLE)
			e->h.flags |= FLAG_PATH_UNREADABLE;
		e->path_len = append_walk(s, at);
		at += e->path_len;
	}
	if (s->state == WALK_TRUNCATED)
		e->h.flags |= FLAG_PATH_TRUNCATED;
	if (dentry2) {
		walk_path(s, (struct vfsmount *)second, dentry2);
		if (s->state == WALK_UNREADABLE)
			e->h.flags |= FLAG_PATH2_UNREADABLE;
		if (s->state == WALK_TRUNCATED)
			e->h.flags |= FLAG_PATH_TRUNCATED;
		e->path2_len = append_walk(s, at);
		at += e->path2_len;
	}
	uring = READ_TASK(task, flags) & PF_IO_WORKER; /* requests on names are never done inline */
	if (uring) {
		e->h.flags |= FLAG_IO_URING;
		emit(s->rec, EVENT_PATHOP, at, false);
	} else {
		stash(task, s, at);
	}
	release(s);
	return 0;
}

static __always_inline int name_at(enum path_op op, const struct path *dir, struct dentry *dentry)
{
	if (!current_membership())
		return 0;
	name_hook(op, BPF_CORE_READ(dir, mnt), dentry, NULL, NULL);
	return 0;
}

static __always_inline int name_of(enum path_op op, const struct path *path)
{
	if (!current_membership())
		return 0;
	name_hook(op, BPF_CORE_READ(path, mnt), BPF_CORE_READ(path, dentry), NULL, NULL);
	return 0;
}

/* An open may truncate and tells so itself; so may a call by descriptor, whose open was told. */
static __always_inline int truncated(const struct path *path)
{
	struct task_struct *task;

	if (!current_membership())
		return 0;
	if (has_task_regs) {
		task = bpf_get_current_task_btf();
		if (!(task->flags & PF_IO_WORKER) && call_under_way(task, (void *)bpf_task_pt_regs(task)) != CALL_TRUNCATE)
			return 0;
	}
	name_hook(OP_TRUNCATE, BPF_CORE_READ(path, mnt), BPF_CORE_READ(path, dentry), NULL, NULL);
	return 0;
}

static __always_inline int link_made(struct dentry *old, const struct path *dir, struct dentry *dentry)
{
	struct vfsmount *mnt;

	if (!current_membership())
		return 0;
	mnt = BPF_CORE_READ(dir, mnt); /* a hard link cannot cross mounts */
	name_hook(OP_LINK, mnt, old, mnt, dentry);
	return 0;
}

static __always_inline int symlink_made(const struct path *dir, struct dentry *dentry, const char *says)
{
	if (!current_membership())
		return 0;
	name_hook(OP_SYMLINK, BPF_CORE_READ(dir, mnt), dentry, says, NULL);
	return 0;
}

static __always_inline int renamed(const struct path *from, struct dentry *old, const struct path *to, struct dentry *new)
{
	if (!current_membership())
		return 0;
	name_hook(OP_RENAME, BPF_CORE_READ(from, mnt), old, BPF_CORE_READ(to, mnt), new);
	return 0;
}

/* Sockets. */

/* socket_address leaves the same note as the cgroup hooks do, where those are not attached. */
static __noinline int socket_address(struct socket *sock, const __u8 *addr, int len, bool datagram)
{
	struct note n = {};
	__u16 family = 0, port = 0;
	struct sock *sk;

	if (!addr || len < 16)
		return 0;
	bpf_probe_read_kernel(&family, 2, addr);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	bpf_probe_read_kernel(&port, 2, addr + 2);
	if (family == AF_INET6)
		bpf_probe_read_kernel(n.remote, 16, addr + 8);
	else
		bpf_probe_read_kernel(n.remote, 4, addr + 4);
	sk = BPF_CORE_READ(sock, sk);
	n.remote_port = swap16(port);
	n.family = family;
	n.sock_type = BPF_CORE_READ(sock, type);
	n.protocol = BPF_CORE_READ(sk, sk_protocol);
	return destination((void *)bpf_get_current_task(), &n, datagram);
}

static __always_inline int connecting(struct socket *sock, struct sockaddr *addr, int len)
{
	if (socket_hooks || !current_membership())
		return 0;
	socket_address(sock, (void *)addr, len, false);
	return 0;
}

static __always_inline int sending(struct socket *sock, struct msghdr *msg)
{
	void *name;

	if (socket_hooks || !current_membership())
		return 0;
	name = BPF_CORE_READ(msg, msg_name);
	if (name)
		socket_address(sock, name, BPF_CORE_READ(msg, msg_namelen), BPF_CORE_READ(sock, type) == SOCK_DGRAM);
	return 0;
}

/* A socket made by the system call is reported when that returns. */
static __always_inline int socket_made(int family, int type, int protocol, int kern)
{
	struct task_struct *task;
	struct args g = {};
	__u32 flags = FLAG_IO_URING | FLAG_NO_RESULT;

	if (kern || !current_membership())
		return 0;
	task = current_task();
	if (!in_uring(task))
		return 0;
	g.a[0] = family;
	g.a[1] = type;
	g.a[2] = protocol;
	socket_call(task, 0, &g, flags);
	return 0;
}

/* The last question before a unix stream is joined: whoever passes it is connected. */
static __always_inline int unix_joined(struct sock *sock, struct sock *other)
{
	struct task_struct *task;

	if (!current_membership())
		return 0;
	task = current_task();
	unix_record(task, other, other, 0, UNIX_PACK(BPF_CORE_READ(sock, sk_type), in_uring(task) ? FLAG_IO_URING : 0));
	return 0;
}

/* Asked for every datagram; the first to each receiver is an event. */
static __always_inline int unix_datagram(struct socket *sock, struct socket *other)
{
	struct sock *peer;

	if (!current_membership())
		return 0;
	peer = BPF_CORE_READ(other, sk);
	unix_record(current_task(), peer, peer, (__u64)peer, UNIX_PACK(SOCK_DGRAM, 0));
	return 0;
}

/* A descriptor that another process hands over (SCM_RIGHTS, pidfd_getfd). */
static __noinline int file_received(struct file *f)
{
	struct task_struct *task = current_task();
	struct connect_event e = {};
	struct socket *sock;
	struct sock *sk;
	struct note n = {};

	if ((BPF_CORE_READ(f, f_inode, i_mode) & 0170000) != 0140000) /* S_IFSOCK */
		return opened(task, f, 0, FLAG_RECEIVED);
	sock = BPF_CORE_READ(f, private_data);
	sk = BPF_CORE_READ(sock, sk);
	n.family = BPF_CORE_READ(sk, __sk_common.skc_family);
	n.sock_type = BPF_CORE_READ(sk, sk_type);
	if (n.family == AF_UNIX) {
		struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);

		return peer ? unix_record(task, peer, sk, 0, UNIX_PACK(n.sock_type, FLAG_RECEIVED)) : 0;
	}
	if (n.family != AF_INET && n.family != AF_INET6)
		return 0;
	start_header(&e.h, EVENT_CONNECT, task);
	e.h.flags = FLAG_RECEIVED;
	n.protocol = BPF_CORE_READ(sk, sk_protocol);
	fill_remote(&e, &n);
	remote_address(&e, sk);
	local_address(&e, sk);
	emit_connect(&e, false);
	return 0;
}

static __always_inline int receiving(struct file *f)
{
	if (!current_membership())
		return 0;
	file_received(f);
	return 0;
}

/* One body, three ways to attach it. */
#define HOOK(name, call, ...)                                                                  \
	SEC("lsm/" #name) int BPF_PROG(lsm_##name, __VA_ARGS__) { return call; }               \
	SEC("fentry/security_" #name) int BPF_PROG(fentry_##name, __VA_ARGS__) { return call; } \
	SEC("kprobe/security_" #name) int BPF_KPROBE(kprobe_##name, __VA_ARGS__) { return call; }

HOOK(path_unlink, name_at(OP_UNLINK, dir, dentry), const struct path *dir, struct dentry *dentry)
HOOK(path_rmdir, name_at(OP_RMDIR, dir, dentry), const struct path *dir, struct dentry *dentry)
HOOK(path_mkdir, name_at(OP_MKDIR, dir, dentry), const struct path *dir, struct dentry *dentry)
HOOK(path_symlink, symlink_made(dir, dentry, says), const struct path *dir, struct dentry *dentry, const char *says)
HOOK(path_link, link_made(old, dir, dentry), struct dentry *old, const struct path *dir, struct dentry *dentry)
HOOK(path_rename, renamed(from, old, to, new), const struct path *from, struct dentry *old, const struct path *to, struct dentry *new)
HOOK(path_truncate, truncated(path), const struct path *path)
HOOK(path_chmod, name_of(OP_CHMOD, path), const struct path *path)
HOOK(path_chown, name_of(OP_CHOWN, path), const struct path *path)
HOOK(socket_create, socket_made(family, type, protocol, kern), int family, int type, int protocol, int kern)
HOOK(socket_connect, connecting(sock, addr, len), struct socket *sock, struct sockaddr *addr, int len)
HOOK(socket_sendmsg, sending(sock, msg), struct socket *sock, struct msghdr *msg)
HOOK(unix_stream_connect, unix_joined(sock, other), struct sock *sock, struct sock *other)
HOOK(unix_may_send, unix_datagram(sock, other), struct socket *sock, struct socket *other)
HOOK(file_receive, receiving(f), struct file *f)
#endif
