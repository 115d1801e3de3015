/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the session may reach: allowed ports on loopback (the proxy's is one), and name servers. Everything
 * else is refused, and each refusal is a record.
 *
 * The programs of the session's cgroup are attached without a link: they stay when rye dies, until the cgroup
 * goes, so what is left of a session whose proxy is dead reaches nothing. They see sockets made in the cgroup.
 * Those of the root of the hierarchy see the others, in the hands of a member: handed over, or of a process
 * that left the cgroup or was adopted. They go with rye. */
#ifndef RYE_ENFORCE_H
#define RYE_ENFORCE_H

#define DNS_NONE 0
#define DNS_SYSTEM 1
#define DNS_ALL 2
#define SOCK_RAW 3

const volatile __u32 dns_allowed = DNS_NONE;

struct address {
	__u8 b[16]; /* IPv4 as ::ffff:a.b.c.d */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); /* port on loopback */
	__type(value, __u32);
} allowed_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct address);
	__type(value, __u32);
} name_servers SEC(".maps");

static __always_inline void mapped(struct address *a, __u32 ip4)
{
	__u32 *w = (__u32 *)a->b;

	w[0] = 0;
	w[1] = 0;
	w[2] = 0xffff0000; /* little-endian targets only: bytes 00 00 ff ff */
	w[3] = ip4;
}

static __always_inline bool is_loopback(const struct address *a)
{
	const __u32 *w = (const __u32 *)a->b;

	if (w[0] || w[1])
		return false;
	if (w[2] == 0xffff0000)
		return a->b[12] == 127 || !w[3]; /* 0.0.0.0 is this machine too */
	return !w[2] && (!w[3] || w[3] == 0x01000000);
}

static __always_inline bool may_reach(const struct address *a, __u32 port)
{
	if (port == 53 && dns_allowed == DNS_ALL)
		return true;
	if (port == 53 && dns_allowed == DNS_SYSTEM && bpf_map_lookup_elem(&name_servers, a))
		return true;
	return is_loopback(a) && bpf_map_lookup_elem(&allowed_ports, &port);
}

static __always_inline struct repeat_key refusal_key(struct refused_event *e)
{
	struct repeat_key k = {};

	k.proc = e->h.proc;
	__builtin_memcpy(&k.lo, e->remote, 8);
	__builtin_memcpy(&k.hi, e->remote + 8, 8);
	k.dev = e->remote_port;
	k.access = 1 << 29 | e->how << 16 | (e->protocol & 0xff);
	return k;
}

/* told reports whether this refusal is one of a kind that is counted: packets come in floods. */
static __always_inline bool told(struct refused_event *e)
{
	struct repeat_key k = refusal_key(e);

	return counted(&k);
}

static __always_inline void refused(struct refused_event *e)
{
	struct repeat_key k = refusal_key(e);

	if (emit(e, EVENT_REFUSED, sizeof(*e), false))
		emitted_first(&k);
}

static __always_inline int judge_address(struct bpf_sock_addr *ctx, bool v6, enum refused_how how)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct refused_event e = {};
	struct address a = {};
	__u32 port = swap16(ctx->user_port);

	if (v6) {
		__u32 *w = (__u32 *)a.b;

		w[0] = ctx->user_ip6[0];
		w[1] = ctx->user_ip6[1];
		w[2] = ctx->user_ip6[2];
		w[3] = ctx->user_ip6[3];
	} else {
		mapped(&a, ctx->user_ip4);
	}
	if (!port && ctx->type == SOCK_DGRAM) /* a resolver asks which address it would use; nothing can be sent there */
		return 1;
	if (may_reach(&a, port))
		return 1;
	any_header(&e.h, EVENT_REFUSED, task);
	__builtin_memcpy(e.remote, a.b, 16);
	e.remote_port = port;
	e.family = v6 ? AF_INET6 : AF_INET;
	e.sock_type = ctx->type;
	e.protocol = ctx->protocol;
	e.how = how;
	if (!told(&e))
		refused(&e);
	return 0;
}

/* not_ours: a socket from elsewhere in the hands of a member. Those made in the session's cgroup have their
 * own programs. */
static __always_inline bool not_ours(struct bpf_sock_addr *ctx)
{
	__u64 cookie;

	if (!current_membership())
		return false;
	cookie = bpf_get_socket_cookie(ctx);
	return !bpf_map_lookup_elem(&owners, &cookie);
}

SEC("cgroup/connect4")
int enforce_connect4(struct bpf_sock_addr *ctx)
{
	return judge_address(ctx, false, REFUSED_CONNECT);
}

SEC("cgroup/connect6")
int enforce_connect6(struct bpf_sock_addr *ctx)
{
	return judge_address(ctx, true, REFUSED_CONNECT);
}

SEC("cgroup/sendmsg4")
int enforce_sendmsg4(struct bpf_sock_addr *ctx)
{
	return judge_address(ctx, false, REFUSED_SEND);
}

SEC("cgroup/sendmsg6")
int enforce_sendmsg6(struct bpf_sock_addr *ctx)
{
	return judge_address(ctx, true, REFUSED_SEND);
}

SEC("cgroup/connect4")
int stray_connect4(struct bpf_sock_addr *ctx)
{
	return not_ours(ctx) ? judge_address(ctx, false, REFUSED_CONNECT) : 1;
}

SEC("cgroup/connect6")
int stray_connect6(struct bpf_sock_addr *ctx)
{
	return not_ours(ctx) ? judge_address(ctx, true, REFUSED_CONNECT) : 1;
}

SEC("cgroup/sendmsg4")
int stray_sendmsg4(struct bpf_sock_addr *ctx)
{
	return not_ours(ctx) ? judge_address(ctx, false, REFUSED_SEND) : 1;
}

SEC("cgroup/sendmsg6")
int stray_sendmsg6(struct bpf_sock_addr *ctx)
{
	return not_ours(ctx) ? judge_address(ctx, true, REFUSED_SEND) : 1;
}

/* A raw socket writes its own addresses. */
static __always_inline int judge_socket(struct bpf_sock *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct refused_event e = {};

	if (ctx->type != SOCK_RAW)
		return 1;
	any_header(&e.h, EVENT_REFUSED, task);
	e.family = ctx->family;
	e.sock_type = ctx->type;
	e.protocol = ctx->protocol;
	e.how = REFUSED_SOCKET;
	refused(&e);
	return 0;
}

SEC("cgroup/sock_create")
int enforce_socket(struct bpf_sock *ctx)
{
	return judge_socket(ctx);
}

SEC("cgroup/sock_create")
int stray_socket(struct bpf_sock *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!current_membership() || task_in_session(task))
		return 1;
	return judge_socket(ctx);
}

/* What leaves by whichever protocol and without a connect: the last gate. Who made the socket is known, who
 * sends is not: this also runs in interrupts. Loopback was decided on by the connect; a server's answers to it
 * pass. */
SEC("cgroup_skb/egress")
int enforce_packet(struct __sk_buff *skb)
{
	struct refused_event e = {};
	struct address to = {};
	struct proc_key *k;
	struct parts p = {};
	__u64 cookie;
	__u8 first;
	__u32 ip4;

	if (bpf_skb_load_bytes(skb, 0, &first, 1))
		return 0;
	if (first >> 4 == 4) {
		if (bpf_skb_load_bytes(skb, 16, &ip4, 4))
			return 0;
		mapped(&to, ip4);
	} else if (bpf_skb_load_bytes(skb, 24, to.b, 16)) {
		return 0;
	}
	if (is_loopback(&to))
		return 1;
	if (!take_apart(skb, &p))
		return 0;
	if (p.proto && may_reach(&to, p.ports[1]))
		return 1;
	cookie = bpf_get_socket_cookie(skb);
	k = bpf_map_lookup_elem(&owners, &cookie);
	e.h.time_ns = bpf_ktime_get_boot_ns();
	e.h.type = EVENT_REFUSED;
	e.h.cpu = bpf_get_smp_processor_id();
	if (k)
		e.h.proc = *k;
	__builtin_memcpy(e.remote, to.b, 16);
	e.remote_port = p.ports[1];
	e.local_port = p.ports[0];
	e.family = first >> 4 == 4 ? AF_INET : AF_INET6;
	e.protocol = p.next;
	e.how = REFUSED_PACKET;
	if (!told(&e))
		refused(&e);
	return 0;
}
#endif
