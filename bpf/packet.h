/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The first packets of the session's own sockets: names that it asks for. The programs hang on the session's
 * cgroup, so every packet they see is the session's. What is copied is decided here, what it means is not.
 *
 * Packets have a ring of their own: a flood of them then costs packets, never an exec or a connect. */
#ifndef RYE_PACKET_H
#define RYE_PACKET_H

#define CAPTURE_HEADERS 1
#define CAPTURE_FULL 2

#define HEAD_CAP 128     /* IP and transport header */
#define MESSAGE_CAP 2048 /* a DNS message, a QUIC Initial */
#define PIECE_CAP 65535  /* a piece of a TLS hello; a whole packet, which may be a large segment */

#define HEADS_KEPT 8    /* packets of a socket whose headers are kept, each way */
#define PIECES_KEPT 16  /* packets of a TLS hello or a DNS stream, each way */
#define HELLO_MAX 65536 /* bytes of a TLS hello */

#define TUNNEL_ASKED 2

#define PROTO_TCP 6
#define PROTO_UDP 17

const volatile __u32 capture = 0; /* CAPTURE_ */

/* Read by user space. */
__u64 packets_seen;   /* passed by */
__u64 packets_copied; /* were delivered to the ring */
__u64 packets_lost;   /* were to be copied and could not be */

struct packet_record {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 cookie;  /* of the socket */
	struct proc_key owner; /* who made the socket, 0: not known */
	__u32 len;  /* of the packet */
	__u32 kept; /* bytes of it that follow */
	__u32 out;
	__u32 pad;
};

_Static_assert(sizeof(struct packet_record) == 48, "layout");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
	__type(value, struct packet_record); /* carries the type into BTF; the kernel's value size stays 0 */
} packets SEC(".maps");

struct flow {
	__u32 seen[2];
	__u32 pieces[2];
	__u32 first[2]; /* the first payload was looked at */
	__s32 left[2];  /* bytes of a TLS hello still to come */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* socket cookie */
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* socket cookie */
	__type(value, struct proc_key);
} owners SEC(".maps");

/* Who makes a socket is known here only: packets also leave from interrupts, whoever runs then. */
SEC("cgroup/sock_create")
int note_socket(struct bpf_sock *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct proc_key k;

	key_of(task, &k);
	bpf_map_update_elem(&owners, &cookie, &k, BPF_ANY);
	return 1;
}

struct parts {
	__u32 payload; /* offset */
	__u32 proto;   /* 0: a fragment, or none that is looked into */
	__u32 next;    /* protocol as the IP header has it */
	__u16 ports[2];
};

static __always_inline bool take_apart(struct __sk_buff *skb, struct parts *p)
{
	__u8 ip[40];
	__u8 tcp[14];

	p->proto = 0;
	if (bpf_skb_load_bytes(skb, 0, ip, 20))
		return false;
	if (ip[0] >> 4 == 4) {
		p->payload = (ip[0] & 15) * 4;
		p->next = ip[9];
		if (!((ip[6] & 0x1f) | ip[7])) /* the first fragment, or the only one */
			p->proto = ip[9];
	} else {
		if (bpf_skb_load_bytes(skb, 0, ip, 40))
			return false;
		p->payload = 40;
		p->next = ip[6];
		p->proto = ip[6];
	}
	if (p->proto == PROTO_TCP) {
		if (bpf_skb_load_bytes(skb, p->payload, tcp, 14))
			return false;
		p->payload += (tcp[12] >> 4) * 4;
	} else if (p->proto == PROTO_UDP) {
		if (bpf_skb_load_bytes(skb, p->payload, tcp, 4))
			return false;
		p->payload += 8;
	} else {
		p->proto = 0;
		return true;
	}
	p->ports[0] = tcp[0] << 8 | tcp[1];
	p->ports[1] = tcp[2] << 8 | tcp[3];
	return true;
}

/* hello_bytes says how much of a TLS hello is to come when a stream's first payload begins like one. Behind a
 * request for a tunnel (RFC 9110, 9.3.6) comes another first payload. */
static __always_inline __s32 hello_bytes(struct __sk_buff *skb, struct flow *f, __u32 at, __u32 have, __u32 out)
{
	__u8 b[9];
	__s32 n;

	if (have < 4)
		return have && !bpf_skb_load_bytes(skb, at, b, 1) && b[0] == 0x16 ? HELLO_MAX : 0;
	if (bpf_skb_load_bytes(skb, at, b, 4))
		return 0;
	if (out && f->first[out] == 1 && b[0] == 'C' && b[1] == 'O' && b[2] == 'N' && b[3] == 'N')
		f->first[out] = TUNNEL_ASKED;
	if (b[0] != 0x16 || b[1] != 3)
		return 0;
	if (have < 9 || bpf_skb_load_bytes(skb, at, b, 9))
		return HELLO_MAX; /* cut before its length */
	if (b[5] != 1) /* client_hello */
		return 0;
	n = b[6] << 16 | b[7] << 8 | b[8];
	if (n > HELLO_MAX)
		return 0;
	return n + 9 + 64; /* more records have more headers */
}

/* wanted is how many bytes of a packet to copy, 0 for none. */
static __always_inline __u32 wanted(struct __sk_buff *skb, struct flow *f, __u32 out)
{
	__u32 len = skb->len, have, seen;
	struct parts p = {};

	seen = f->seen[out]++; /* two cpus at once may count one for two: a packet more is copied */
	if (capture == CAPTURE_FULL)
		return len;
	if (!take_apart(skb, &p) || !p.proto)
		return seen < HEADS_KEPT ? HEAD_CAP : 0;
	have = len > p.payload ? len - p.payload : 0;
	if (p.ports[0] == 53 || p.ports[1] == 53) {
		if (p.proto == PROTO_UDP)
			return MESSAGE_CAP;
		if (have && f->pieces[out]++ < PIECES_KEPT)
			return PIECE_CAP;
	} else if (p.proto == PROTO_UDP) {
		__u8 b[5];

		/* RFC 9000, 17.2: a long header, and a version */
		if (have > 20 && seen < 4 && !bpf_skb_load_bytes(skb, p.payload, b, 5) && (b[0] & 0xc0) == 0xc0 && (b[1] | b[2] | b[3] | b[4]))
			return MESSAGE_CAP;
	} else if (have) {
		if (!f->first[out]) {
			f->first[out] = 1;
			f->left[out] = hello_bytes(skb, f, p.payload, have, out);
		} else if (f->first[out] == TUNNEL_ASKED) {
			f->first[out] = TUNNEL_ASKED + 1;
			f->left[out] = hello_bytes(skb, f, p.payload, have, out);
		}
		if (f->left[out] > 0 && f->pieces[out]++ < PIECES_KEPT) {
			f->left[out] -= have;
			return PIECE_CAP;
		}
	}
	if (seen >= HEADS_KEPT)
		return 0;
	return p.payload < HEAD_CAP ? p.payload : HEAD_CAP;
}

#define COPY(skb, n, cap, cookie, out) ({ \
	struct { struct packet_record r; __u8 b[cap]; } *rec = bpf_ringbuf_reserve(&packets, sizeof(*rec), 0); \
	__u64 take = n; \
	CLAMP(take, cap); \
	bool done = false; \
	if (rec) { \
		fill_record(&rec->r, skb, take, cookie, out); \
		if (take >= 20 && !bpf_skb_load_bytes(skb, 0, rec->b, take)) { \
			done = true; \
			bpf_ringbuf_submit(rec, packet_wakeup()); \
		} else { \
			bpf_ringbuf_discard(rec, BPF_RB_NO_WAKEUP); \
		} \
	} \
	done; \
})

static __always_inline __u64 packet_wakeup(void)
{
	return bpf_ringbuf_query(&packets, BPF_RB_AVAIL_DATA) > 1 << 18 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void fill_record(struct packet_record *r, struct __sk_buff *skb, __u32 kept, __u64 cookie, __u32 out)
{
	struct proc_key *k = bpf_map_lookup_elem(&owners, &cookie);

	r->time_ns = bpf_ktime_get_boot_ns();
	r->cookie = cookie;
	r->owner.start_ns = k ? k->start_ns : 0;
	r->owner.tgid = k ? k->tgid : 0;
	r->owner.pad = 0;
	r->len = skb->len;
	r->kept = kept;
	r->out = out;
	r->pad = 0;
}

static __always_inline int see_packet(struct __sk_buff *skb, __u32 out)
{
	__u64 cookie = bpf_get_socket_cookie(skb);
	struct flow *f = bpf_map_lookup_elem(&flows, &cookie);
	struct flow zero = {};
	__u32 n;
	bool done;

	__sync_fetch_and_add(&packets_seen, 1);
	if (!f) {
		bpf_map_update_elem(&flows, &cookie, &zero, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&flows, &cookie);
		if (!f) {
			__sync_fetch_and_add(&packets_lost, 1);
			return 1;
		}
	}
	n = wanted(skb, f, out);
	if (!n)
		return 1;
	if (n > skb->len)
		n = skb->len;
	if (n < 20) /* no IP header */
		return 1;
	if (n <= HEAD_CAP)
		done = COPY(skb, n, HEAD_CAP, cookie, out);
	else if (n <= MESSAGE_CAP)
		done = COPY(skb, n, MESSAGE_CAP, cookie, out);
	else
		done = COPY(skb, n, PIECE_CAP, cookie, out);
	if (done)
		__sync_fetch_and_add(&packets_copied, 1);
	else
		__sync_fetch_and_add(&packets_lost, 1);
	return 1;
}

SEC("cgroup_skb/egress")
int packet_out(struct __sk_buff *skb)
{
	return see_packet(skb, 1);
}

SEC("cgroup_skb/ingress")
int packet_in(struct __sk_buff *skb)
{
	return see_packet(skb, 0);
}
#endif
