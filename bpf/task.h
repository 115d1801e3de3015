/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Who is in the session. A task belongs by its cgroup or because an ancestor did. */
#ifndef RYE_TASK_H
#define RYE_TASK_H

/* Every process of the session is in one of two tables from its fork (or first exec) to its last thread's
 * exit. Nearly all live in the session's cgroup, which tells that they belong; of them only the parent is
 * kept, in a slot found by the low bits of the process id: a tenth of a hash table's cost. The hash table
 * has those outside the cgroup, and those whose slot is somebody else's. Process ids are given out in
 * turn, so two processes that are made at the same moment never meet in a slot. */
#define SLOTS 65536

struct slot {
	__u64 start_ns;
	struct proc_key parent;
	__u32 tgid; /* 0: free */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* tgid */
	__type(value, struct member);
} members SEC(".maps");

static __always_inline struct slot *slot_of(__u32 tgid)
{
	__u32 i = tgid & (SLOTS - 1);

	return bpf_map_lookup_elem(&slots, &i);
}

/* own_slot is the slot of a process that has one. */
static __always_inline struct slot *own_slot(__u32 tgid)
{
	struct slot *s = slot_of(tgid);

	return s && s->tgid == tgid ? s : NULL;
}

static __always_inline void remember(__u32 tgid, struct member *m)
{
	struct slot *s = m->how == MEMBER_CGROUP ? slot_of(tgid) : NULL;

	if (s && (s->tgid == 0 || s->tgid == tgid)) {
		s->start_ns = m->start_ns;
		s->parent = m->parent;
		s->tgid = tgid;
	} else {
		bpf_map_update_elem(&members, &tgid, m, BPF_ANY);
	}
}

const volatile bool has_task_btf = false; /* bpf_get_current_task_btf: 5.11 and later */

/* Where a pointer comes with its type (a hook's argument, or this one), members are read with plain loads,
 * which the kernel makes safe. That costs a tenth of a helper call. Elsewhere BPF_CORE_READ does it. */
static __always_inline struct task_struct *current_task(void)
{
	if (has_task_btf)
		return bpf_get_current_task_btf();
	return (void *)bpf_get_current_task();
}

/* READ_TASK reads a member of what current_task returned. */
#define READ_TASK(task, member) (has_task_btf ? (task)->member : BPF_CORE_READ(task, member))

/* key_of is for any pointer, typed_key for one with a type, current_key for current_task's. */
static __always_inline void key_of(struct task_struct *task, struct proc_key *k)
{
	k->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	k->tgid = BPF_CORE_READ(task, tgid);
	k->pad = 0;
}

static __always_inline void typed_key(struct task_struct *task, struct proc_key *k)
{
	k->start_ns = task->group_leader->start_boottime;
	k->tgid = task->tgid;
	k->pad = 0;
}

static __always_inline void current_key(struct task_struct *task, struct proc_key *k)
{
	if (has_task_btf)
		typed_key(task, k);
	else
		key_of(task, k);
}

static __always_inline __u64 cgroup_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

/* cgroup_in_session: is cg the session's cgroup or below it? */
static __always_inline bool cgroup_in_session(struct cgroup *cg)
{
	__u32 level = session_level;

	if (BPF_CORE_READ(cg, level) < (int)level)
		return false;
	if (bpf_core_field_exists(cg->ancestors)) {
		struct cgroup *a = NULL;

		bpf_core_read(&a, sizeof(a), &cg->ancestors[level]);
		return BPF_CORE_READ(a, kn, id) == session_cgroup;
	} else {
		struct cgroup___v60 *old = (void *)cg;
		__u64 id = 0;

		bpf_core_read(&id, sizeof(id), &old->ancestor_ids[level]);
		return id == session_cgroup;
	}
}

static __always_inline bool task_in_session(struct task_struct *task)
{
	return session_cgroup && cgroup_in_session(BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

/* current_membership is the first thing every program asks: processes outside the session pay for this
 * and nothing more. */
static __always_inline __u32 current_membership(void)
{
	struct member *m;
	__u32 tgid;

	if (has_ancestor_helper) {
		if (bpf_get_current_ancestor_cgroup_id(session_level) == session_cgroup)
			return MEMBER_CGROUP;
	} else if (task_in_session((void *)bpf_get_current_task())) {
		return MEMBER_CGROUP;
	}
	if (!strays) /* always set when there is no cgroup */
		return 0;
	tgid = bpf_get_current_pid_tgid() >> 32;
	m = bpf_map_lookup_elem(&members, &tgid);
	return m ? m->how : 0;
}

static __always_inline void begin_header(struct event_header *h, enum event_type t)
{
	h->time_ns = bpf_ktime_get_boot_ns();
	h->type = t;
	h->size = 0;
	h->cpu = bpf_get_smp_processor_id();
	h->flags = 0;
}

/* start_header is for current_task's result, typed_header for a hook's argument, any_header for the rest. */
static __always_inline void start_header(struct event_header *h, enum event_type t, struct task_struct *task)
{
	begin_header(h, t);
	current_key(task, &h->proc);
	h->cgroup_id = bpf_get_current_cgroup_id();
}

static __always_inline void typed_header(struct event_header *h, enum event_type t, struct task_struct *task)
{
	begin_header(h, t);
	typed_key(task, &h->proc);
	h->cgroup_id = task->cgroups->dfl_cgrp->kn->id;
}

static __always_inline void any_header(struct event_header *h, enum event_type t, struct task_struct *task)
{
	begin_header(h, t);
	key_of(task, &h->proc);
	h->cgroup_id = cgroup_of(task);
}
#endif
