/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Sockets. Where a packet may go is decided at cgroup/connect and cgroup/sendmsg, on the kernel's copy of
 * the address; the result and the local port are known when the system call returns. The first leaves a
 * note, the second completes it. */
#ifndef RYE_NET_H
#define RYE_NET_H

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_DGRAM 2
#define PF_IO_WORKER 0x10
#define EINPROGRESS 115

struct note { /* a destination, between hook and return */
	__u8 remote[16];
	__u16 remote_port; /* host byte order */
	__u16 family;
	__u16 sock_type;
	__u16 pad;
	__u32 protocol;
	__u32 pad2;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* the task */
	__type(value, struct note);
} notes SEC(".maps");

static __always_inline __u16 swap16(__u16 x)
{
	return __builtin_bswap16(x);
}

static __always_inline struct sock *fd_sock(struct task_struct *task, long fd)
{
	struct file *f = fd_file(task, fd);
	struct socket *sock;
	struct sock *sk;

	if (!f || (BPF_CORE_READ(f, f_inode, i_mode) & 0170000) != 0140000) /* S_IFSOCK */
		return NULL;
	sock = BPF_CORE_READ(f, private_data);
	sk = BPF_CORE_READ(sock, sk);
	return sk;
}

static __always_inline void local_address(struct connect_event *e, struct sock *sk)
{
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6)
		BPF_CORE_READ_INTO(&e->local, sk, __sk_common.skc_v6_rcv_saddr);
	else
		bpf_probe_read_kernel(e->local, 4, __builtin_preserve_access_index(&sk->__sk_common.skc_rcv_saddr));
	e->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
}

/* A datagram destination is reported once per process; more are counted like repeated opens. */
static __always_inline bool datagram_repeat(struct connect_event *e)
{
	struct repeat_key k = {};

	k.proc = e->h.proc;
	__builtin_memcpy(&k.lo, e->remote, 8);
	__builtin_memcpy(&k.hi, e->remote + 8, 8);
	k.dev = e->remote_port;
	k.access = 1 << 30 | e->family << 8 | (e->protocol & 0xff);
	e->key_lo = k.lo;
	e->key_hi = k.hi;
	e->access = k.access;
	return counted(&k);
}

static __always_inline void emit_connect(struct connect_event *e, bool datagram)
{
	struct repeat_key k = {};

	if (!emit(e, EVENT_CONNECT, sizeof(*e), false) || !datagram)
		return;
	k.proc = e->h.proc;
	k.lo = e->key_lo;
	k.hi = e->key_hi;
	k.dev = e->remote_port;
	k.access = e->access;
	emitted_first(&k);
}

static __always_inline void fill_remote(struct connect_event *e, struct note *n)
{
	__builtin_memcpy(e->remote, n->remote, 16);
	e->remote_port = n->remote_port;
	e->family = n->family;
	e->sock_type = n->sock_type;
	e->protocol = n->protocol;
}

/* destination handles one on the way out: most wait, as a note, for the call's result. A datagram has no
 * return to wait for that would say more; an io_uring worker never returns. */
static __noinline int destination(struct task_struct *task, struct note *n, bool datagram)
{
	__u64 key = (__u64)task;

	if (datagram || BPF_CORE_READ(task, flags) & PF_IO_WORKER) {
		struct connect_event e = {};

		any_header(&e.h, EVENT_CONNECT, task);
		e.h.flags = FLAG_NO_RESULT;
		if (BPF_CORE_READ(task, flags) & PF_IO_WORKER)
			e.h.flags |= FLAG_IO_URING;
		fill_remote(&e, n);
		if (datagram && datagram_repeat(&e))
			return 0;
		emit_connect(&e, datagram);
		return 0;
	}
	bpf_map_update_elem(&notes, &key, n, BPF_ANY);
	return 0;
}

/* before_send runs inside the cgroup hooks. */
static __always_inline int before_send(struct bpf_sock_addr *ctx, bool v6, bool datagram)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct note n = {};

	if (v6) {
		__u32 *a = (__u32 *)n.remote;

		a[0] = ctx->user_ip6[0];
		a[1] = ctx->user_ip6[1];
		a[2] = ctx->user_ip6[2];
		a[3] = ctx->user_ip6[3];
	} else {
		*(__u32 *)n.remote = ctx->user_ip4;
	}
	n.remote_port = swap16(ctx->user_port);
	n.family = v6 ? AF_INET6 : AF_INET;
	n.sock_type = ctx->type;
	n.protocol = ctx->protocol;

	destination(task, &n, datagram);
	return 1;
}

SEC("cgroup/connect4")
int before_connect4(struct bpf_sock_addr *ctx)
{
	return before_send(ctx, false, false);
}

SEC("cgroup/connect6")
int before_connect6(struct bpf_sock_addr *ctx)
{
	return before_send(ctx, true, false);
}

SEC("cgroup/sendmsg4")
int before_sendmsg4(struct bpf_sock_addr *ctx)
{
	return before_send(ctx, false, true);
}

SEC("cgroup/sendmsg6")
int before_sendmsg6(struct bpf_sock_addr *ctx)
{
	return before_send(ctx, true, true);
}

/* The task of a struct pid in its role as thread group leader. */
static __always_inline struct task_struct *pid_leader(struct pid *pid)
{
	struct hlist_node *first = BPF_CORE_READ(pid, tasks[1].first); /* PIDTYPE_TGID */

	if (!first)
		return NULL;
	return (void *)first - bpf_core_field_offset(struct task_struct, pid_links[1]);
}

bool unix_hooked; /* set by the loader: hooks report what was joined */

#define UNIX_PACK(type, flags) ((__u64)(type) << 32 | (__u32)(flags))

static __always_inline void unix_name(struct scratch *s, struct ipc_event *e, const void *from, __u64 len, bool user)
{
	e->path_len = 0;
	if (len > 2) {
		len -= 2; /* sun_family */
		CLAMP(len, 108);
		if (user ? !read_user(&s->rec[sizeof(*e)], len, from + 2) : !read_kernel(&s->rec[sizeof(*e)], len, from + 2))
			e->path_len = len;
	}
	if (!e->path_len)
		e->h.flags |= FLAG_PATH_UNREADABLE;
	else if (!s->rec[sizeof(*e)])
		e->h.flags |= FLAG_ABSTRACT;
}

/* unix_record reports a unix socket joined to peer. knows is the socket whose sk_peer_pid is the listener:
 * the listening one itself, or the client's end. receiver: what to count repeats of datagrams by, or 0.
 * A function of its own, for its stack; five arguments are all there are, so type and flags share one. */
static __noinline int unix_record(struct task_struct *task, struct sock *peer, struct sock *knows, __u64 receiver, __u64 packed)
{
	__u32 type = packed >> 32, hflags = packed;
	struct scratch *s;
	struct task_struct *other = NULL;
	struct unix_address *addr;
	struct repeat_key k = {};
	struct ipc_event *e;
	__u64 at = sizeof(*e);
	struct pid *pid;

	if (receiver) {
		current_key(task, &k.proc);
		k.lo = receiver;
		k.access = 1 << 28;
		if (counted(&k))
			return 0;
	}
	s = grab(EVENT_IPC);
	if (!s)
		return 0;
	e = (void *)s->rec;
	__builtin_memset(e, 0, sizeof(*e));
	start_header(&e->h, EVENT_IPC, task);
	e->h.flags = hflags;
	e->sock_type = type;
	e->key_lo = k.lo;
	e->access = k.access;
	addr = BPF_CORE_READ((struct unix_sock *)peer, addr);
	unix_name(s, e, (void *)addr + bpf_core_field_offset(struct unix_address, name), addr ? BPF_CORE_READ(addr, len) : 0, false);
	at += e->path_len;
	pid = BPF_CORE_READ(knows, sk_peer_pid); /* the listener, as of its listen call */
	if (pid)
		other = pid_leader(pid);
	if (other) {
		struct file *exe = BPF_CORE_READ(other, mm, exe_file);

		key_of(other, &e->peer);
		e->peer_cgroup = cgroup_of(other);
		if (exe) {
			walk_file(s, exe);
			if (s->state == WALK_UNREADABLE)
				e->h.flags |= FLAG_EXE_UNREADABLE;
			if (s->state == WALK_TRUNCATED)
				e->h.flags |= FLAG_EXE_TRUNCATED;
			e->exe_len = append_walk(s, at);
			at += e->exe_len;
		} else {
			e->h.flags |= FLAG_EXE_UNREADABLE;
		}
	}
	/* User space decides at once whether the peer acts for the session and must be recorded too. */
	if (emit(s->rec, EVENT_IPC, at, true) && receiver)
		emitted_first(&k);
	release(s);
	return 0;
}

/* unix_failed is a connect that came to nothing: only the caller knows the name. */
static __noinline int unix_failed(struct task_struct *task, struct sock *sk, long ret, const void *uaddr, __u64 packed)
{
	struct scratch *s = grab(EVENT_IPC);
	struct ipc_event *e;

	if (!s)
		return 0;
	e = (void *)s->rec;
	__builtin_memset(e, 0, sizeof(*e));
	start_header(&e->h, EVENT_IPC, task);
	e->h.flags = (__u32)packed | FLAG_PATH_FROM_USER;
	e->sock_type = BPF_CORE_READ(sk, sk_type);
	e->result = ret;
	unix_name(s, e, uaddr, packed >> 32, true);
	emit(s->rec, EVENT_IPC, sizeof(*e) + e->path_len, true);
	release(s);
	return 0;
}

static __always_inline int unix_connected(struct task_struct *task, struct sock *sk, long ret, const void *uaddr, __u64 ulen, __u32 hflags)
{
	struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);

	if (ret || !peer)
		return unix_failed(task, sk, ret, uaddr, ulen << 32 | hflags);
	return unix_hooked ? 0 : unix_record(task, peer, sk, 0, UNIX_PACK(BPF_CORE_READ(sk, sk_type), hflags));
}

static __always_inline void remote_address(struct connect_event *e, struct sock *sk)
{
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6)
		BPF_CORE_READ_INTO(&e->remote, sk, __sk_common.skc_v6_daddr);
	else
		bpf_probe_read_kernel(e->remote, 4, __builtin_preserve_access_index(&sk->__sk_common.skc_daddr));
	e->remote_port = swap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

/* on_send completes connect, sendto and sendmsg. is_connect: the call names a destination even when no
 * hook left a note (outside the cgroup there are none). */
static __always_inline int on_send(struct task_struct *task, long ret, long fd, const void *uaddr, __u64 ulen, bool is_connect, __u32 hflags)
{
	__u64 key = (__u64)task;
	struct note *n = bpf_map_lookup_elem(&notes, &key);
	struct connect_event e = {};
	struct sock *sk;

	if (!n && !is_connect)
		return 0;
	sk = fd_sock(task, fd);
	if (!sk)
		goto done;
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_UNIX)
		return is_connect ? unix_connected(task, sk, ret, uaddr, ulen, hflags) : 0;

	start_header(&e.h, EVENT_CONNECT, task);
	e.h.flags = hflags;
	e.result = ret > 0 ? 0 : ret;
	if (n) {
		fill_remote(&e, n);
	} else {
		e.family = BPF_CORE_READ(sk, __sk_common.skc_family);
		if (e.family != AF_INET && e.family != AF_INET6)
			goto done; /* AF_UNSPEC and other families: see socket() */
		e.sock_type = BPF_CORE_READ(sk, sk_type);
		e.protocol = BPF_CORE_READ(sk, sk_protocol);
		if (ret == 0 || ret == -EINPROGRESS) {
			remote_address(&e, sk);
		} else { /* a failed connect leaves no address on the socket */
			__u16 port = 0;

			e.h.flags |= FLAG_REMOTE_FROM_USER;
			bpf_probe_read_user(&port, 2, uaddr + 2);
			e.remote_port = swap16(port);
			if (e.family == AF_INET6)
				bpf_probe_read_user(e.remote, 16, uaddr + 8);
			else
				bpf_probe_read_user(e.remote, 4, uaddr + 4);
		}
	}
	local_address(&e, sk);
	emit_connect(&e, false);
done:
	if (n)
		bpf_map_delete_elem(&notes, &key);
	return 0;
}

/* A connect submitted through io_uring and done inline: the hook left a note; which socket it was for is
 * not known here. */
static __noinline int on_uring(struct task_struct *task)
{
	__u64 key = (__u64)task;
	struct note *n = bpf_map_lookup_elem(&notes, &key);
	struct connect_event e = {};

	if (!n)
		return 0;
	start_header(&e.h, EVENT_CONNECT, task);
	e.h.flags = FLAG_IO_URING | FLAG_NO_RESULT;
	fill_remote(&e, n);
	emit_connect(&e, false);
	bpf_map_delete_elem(&notes, &key);
	return 0;
}

static __noinline int on_bind(struct task_struct *task, long ret, long fd, __u32 hflags)
{
	struct sock *sk = fd_sock(task, fd);
	struct connect_event e = {};

	if (!sk)
		return 0;
	e.family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (e.family != AF_INET && e.family != AF_INET6)
		return 0;
	start_header(&e.h, EVENT_BIND, task);
	e.h.flags = hflags;
	e.sock_type = BPF_CORE_READ(sk, sk_type);
	e.protocol = BPF_CORE_READ(sk, sk_protocol);
	e.result = ret;
	local_address(&e, sk);
	emit(&e, EVENT_BIND, sizeof(e), false);
	return 0;
}
#endif
