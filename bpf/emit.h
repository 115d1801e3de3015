/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* How a record leaves the kernel: one scratch buffer per cpu, one ring buffer, counted loss. */
#ifndef RYE_EMIT_H
#define RYE_EMIT_H

/* Set by the loader before the programs are verified. */
const volatile __u64 session_cgroup = 0; /* cgroup id, 0: no cgroup, membership by descent only */
const volatile __u32 session_level = 0;  /* its depth, the root is 0 */
const volatile bool has_ancestor_helper = false; /* bpf_get_current_ancestor_cgroup_id for tracing: 5.15 and later */
const volatile __u64 wakeup_bytes = 1 << 20; /* wake the reader when this much is waiting */

/* Read by user space. One slot per event type. */
__u64 lost[EVENT_TYPE_MAX];    /* could not be delivered, exactly */
__u64 emitted[EVENT_TYPE_MAX]; /* were delivered to the ring */
__u32 strays;                  /* members outside the cgroup, or no cgroup: only then is the member table asked */

/* The largest record: exec with four paths, argv and environment. These two come last, so no other offset
 * passes TAIL_CAP; the bounds are what the verifier needs to see. */
#define TAIL_CAP (sizeof(struct exec_event) + 4 * PATH_CAP)
#define RECORD_CAP (TAIL_CAP + ARGV_CAP + ENV_CAP)
#define WALK_CAP (PATH_CAP + 256)

/* An upper bound that the compiler can neither move nor drop. Masks written in C are moved by clang past
 * the use, and the verifiers of 5.10 to 6.12 then lose the bound. The general case falls through, so the
 * verifier walks it first and finds the other one (x = max) already covered: without that every use
 * doubles its work. */
#define CLAMP(x, max) asm volatile("if %0 > %1 goto +1\n\tgoto +1\n\t%0 = %1" : "+r"(x) : "i"(max))

/* libbpf declares these with a 32-bit size: the compiler then shifts a clamped 64-bit length left and right
 * by 32, and verifiers before 6.13 lose its bound on the way. The kernel's own parameter is 64 bits wide. */
static long (*const read_kernel)(void *dst, __u64 size, const void *src) = (void *)BPF_FUNC_probe_read_kernel;
static long (*const read_user)(void *dst, __u64 size, const void *src) = (void *)BPF_FUNC_probe_read_user;

struct scratch {
	__u32 busy;
	__u32 state; /* of the last walk: enum walk_state */
	__u64 off;   /* its path is walk[off .. PATH_CAP) */
	/* where it stands; here and not on the stack, which three calls deep is short */
	struct dentry *dentry;
	struct mount *mount;
	struct mount *parent; /* of mount; these three as they stand side by side in the kernel's struct */
	struct dentry *mountpoint;
	struct dentry *root;
	__u8 rec[RECORD_CAP];
	__u8 walk[WALK_CAP]; /* a path is built here from its end */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY); /* a per-cpu array cannot hold values over 32 KiB */
	__uint(max_entries, 1);           /* the loader sets the number of possible cpus */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
	__type(value, union event); /* carries the event types into BTF; the kernel's value size stays 0 */
} events SEC(".maps");

static __always_inline void count_lost(enum event_type t)
{
	__sync_fetch_and_add(&lost[t], 1);
}

/* grab returns this cpu's scratch buffer, or NULL when a program that it interrupted holds it. Only this
 * cpu touches the flag and programs do not migrate, so a plain flag is enough (and 5.10 has no xchg). */
static __always_inline struct scratch *grab(enum event_type t)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);

	if (!s || *(volatile __u32 *)&s->busy) {
		count_lost(t);
		return NULL;
	}
	*(volatile __u32 *)&s->busy = 1;
	return s;
}

static __always_inline void release(struct scratch *s)
{
	*(volatile __u32 *)&s->busy = 0;
}

static __u64 since; /* bytes that went into the ring since its fill level was asked for */

/* A wake-up per event costs several times the event itself, so the reader is woken by fill level and
 * otherwise polls slowly. Rare events that user space must act on at once pass now = true. */
static __always_inline __u64 wakeup(bool now, __u64 size)
{
	if (now)
		return BPF_RB_FORCE_WAKEUP;
	/* Asking costs a call, so it is done once in a while. Another cpu may do so at the same time. */
	since += size;
	if (since < wakeup_bytes / 8)
		return BPF_RB_NO_WAKEUP;
	since = 0;
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* emit_of is emit for a record in a buffer of cap bytes. */
static __always_inline bool emit_of(void *rec, __u64 cap, enum event_type t, __u64 size, bool now)
{
	CLAMP(size, cap);
	if (bpf_ringbuf_output(&events, rec, size, wakeup(now, size))) {
		count_lost(t);
		return false;
	}
	__sync_fetch_and_add(&emitted[t], 1);
	return true;
}

static __always_inline bool emit(void *rec, enum event_type t, __u64 size, bool now)
{
	((struct event_header *)rec)->size = size;
	return emit_of(rec, RECORD_CAP, t, size, now);
}

/* reserve and submit are for records of fixed size, which are written where they stay. reserve counts the loss. */
#define reserve(t, type) ({ void *rec_ = bpf_ringbuf_reserve(&events, sizeof(type), 0); if (!rec_) count_lost(t); rec_; })

static __always_inline void submit(void *rec, enum event_type t, __u64 size)
{
	((struct event_header *)rec)->size = size;
	bpf_ringbuf_submit(rec, wakeup(false, size));
	__sync_fetch_and_add(&emitted[t], 1);
}
#endif
