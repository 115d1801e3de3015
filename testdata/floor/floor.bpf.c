/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a witness must cost at the least, for the instruction benchmark (internal/icount); not part of rye.
 *   null_*  is the task in the cgroup? then count
 *   path_*  and send a record without a wake-up: who, when, where, with what result, and the argument block
 *           or the name as the caller gave it */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NAME_CAP 512

const volatile __u64 session_cgroup = 0;
const volatile int session_level = 0;

struct record {
	__u32 type, pid, tgid, ret;
	__u64 time, cgroup;
	char comm[16];
	__u64 len, pad;
	__u8 name[NAME_CAP];
};

enum { EXEC, OPEN, LOST };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} scratch SEC(".maps");

static __always_inline bool mine(void)
{
	return bpf_get_current_ancestor_cgroup_id(session_level) == session_cgroup;
}

static __always_inline int count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &what);

	if (n)
		(*n)++;
	return 0;
}

static __always_inline int send(__u32 what, long ret, const void *from, __u64 len)
{
	__u32 zero = 0;
	struct record *r = bpf_map_lookup_elem(&scratch, &zero);
	__u64 id = bpf_get_current_pid_tgid();
	long n;

	count(what);
	if (!r)
		return 0;
	r->type = what;
	r->pid = id;
	r->tgid = id >> 32;
	r->ret = ret;
	r->time = bpf_ktime_get_boot_ns();
	r->cgroup = session_cgroup;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	r->pad = 0;
	if (what == EXEC) {
		n = len & (NAME_CAP - 1);
		if (bpf_probe_read_user(r->name, n, from))
			n = 0;
	} else {
		n = bpf_probe_read_user_str(r->name, NAME_CAP, from);
		if (n < 0)
			n = 0;
	}
	r->len = n;
	n &= NAME_CAP - 1;
	if (bpf_ringbuf_output(&events, r, 64 + n, BPF_RB_NO_WAKEUP))
		count(LOST);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(null_exec, struct task_struct *task)
{
	return mine() ? count(EXEC) : 0;
}

SEC("tracepoint/syscalls/sys_exit_openat")
int null_open(void *ctx)
{
	return mine() ? count(OPEN) : 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(path_exec, struct task_struct *task)
{
	__u64 from;

	if (!mine())
		return 0;
	from = BPF_CORE_READ(task, mm, arg_start);
	return send(EXEC, 0, (void *)from, BPF_CORE_READ(task, mm, arg_end) - from);
}

struct exit_ctx { __u64 common; long nr, ret; };

SEC("tracepoint/syscalls/sys_exit_openat")
int path_open(struct exit_ctx *ctx)
{
	struct pt_regs *regs;

	if (!mine())
		return 0;
	regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return send(OPEN, ctx->ret, (void *)BPF_CORE_READ(regs, si), 0);
}
