/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Processes: fork, exec, exit, and moves between cgroups. */
#ifndef RYE_PROCESS_H
#define RYE_PROCESS_H

static __always_inline void emit_cgroup(struct task_struct *task, struct cgroup *to, const char *path, bool escaped)
{
	struct scratch *s = grab(EVENT_CGROUP);
	struct cgroup_event *e;
	__u64 at = sizeof(*e);
	long n;

	if (!s)
		return;
	e = (void *)s->rec;
	any_header(&e->h, EVENT_CGROUP, task);
	key_of((void *)bpf_get_current_task(), &e->by);
	e->to_id = BPF_CORE_READ(to, kn, id);
	e->escaped = escaped;
	n = path ? append_kernel_str(s, at, path) : -1;
	if (n < 0) {
		e->h.flags |= FLAG_PATH_UNREADABLE;
		n = 0;
	}
	e->path_len = n;
	emit(s->rec, EVENT_CGROUP, at + n, false);
	release(s);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct fork_event *e;
	struct member m = {};
	__u32 how, tgid = child->tgid;
	bool inside;

	if (child->pid != tgid)
		return 0; /* a thread */
	how = current_membership();
	/* clone3 can place the child in another cgroup; most are in the parent's */
	inside = child->cgroups == parent->cgroups && (how || !strays) ? how == MEMBER_CGROUP : task_in_session(child);
	if (!how && !inside)
		return 0;

	typed_key(parent, &m.parent);
	m.start_ns = child->start_boottime;
	m.how = inside ? MEMBER_CGROUP : how == MEMBER_CGROUP ? MEMBER_DESCENT : how;
	if (m.how != MEMBER_CGROUP)
		strays = 1;
	remember(tgid, &m);

	e = reserve(EVENT_FORK, *e);
	if (e) {
		typed_header(&e->h, EVENT_FORK, child);
		e->parent = m.parent;
		submit(e, EVENT_FORK, sizeof(*e));
	}
	if (session_cgroup && !inside && how == MEMBER_CGROUP)
		emit_cgroup(child, child->cgroups->dfl_cgrp, NULL, true);
	return 0;
}

static __always_inline __u64 mtime_ns(struct inode *i)
{
	if (bpf_core_field_exists(i->i_mtime_sec))
		return i->i_mtime_sec * 1000000000ULL + i->i_mtime_nsec;
	if (bpf_core_field_exists(((struct inode___v66 *)i)->__i_mtime)) {
		struct inode___v66 *v = (void *)i;

		return v->__i_mtime.tv_sec * 1000000000ULL + v->__i_mtime.tv_nsec;
	} else {
		struct inode___v65 *v = (void *)i;

		return v->i_mtime.tv_sec * 1000000000ULL + v->i_mtime.tv_nsec;
	}
}

/* fork_parent returns who forked the process: the member table knows it even after the parent is gone and
 * the kernel's real_parent has become init. */
static __always_inline void fork_parent(struct task_struct *task, __u32 how, struct proc_key *parent)
{
	__u64 start_ns = task->group_leader->start_boottime;
	__u32 tgid = task->tgid;
	struct slot *s = own_slot(tgid);
	struct member *m, fresh = {};

	if (s && s->start_ns == start_ns) {
		*parent = s->parent;
		return;
	}
	m = bpf_map_lookup_elem(&members, &tgid);
	if (m && m->start_ns == start_ns) {
		*parent = m->parent;
		return;
	}
	typed_key(task->group_leader->real_parent, parent);
	fresh.start_ns = start_ns;
	fresh.parent = *parent;
	fresh.how = how;
	remember(tgid, &fresh);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	__u32 how = current_membership();
	struct scratch *s;
	struct exec_event *e;
	struct mm_struct *mm;
	struct file *exe;
	struct inode *inode;
	struct fs_struct *fs;
	const struct cred *cred;
	__u64 at = sizeof(*e), n;
	long len;

	if (!how)
		return 0;
	s = grab(EVENT_EXEC);
	if (!s)
		return 0;
	e = (void *)s->rec;
	typed_header(&e->h, EVENT_EXEC, task);
	fork_parent(task, how, &e->parent);
	mm = task->mm;
	exe = mm->exe_file;
	inode = exe->f_inode;
	e->exe_dev = inode->i_sb->s_dev;
	e->exe_ino = inode->i_ino;
	e->exe_mtime_ns = mtime_ns(inode);
	e->exe_nlink = inode->i_nlink;
	e->exe_mode = inode->i_mode;
	cred = task->cred;
	e->uid = cred->uid.val;
	e->gid = cred->gid.val;
	e->euid = cred->euid.val;
	e->pad = 0;

	len = append_kernel_str(s, at, bprm->filename);
	if (len < 0) {
		e->h.flags |= FLAG_PATH_UNREADABLE;
		len = 0;
	}
	e->path_len = len;
	at += len;
	e->interp_len = 0;
	if (bprm->interp != bprm->filename) { /* a script's interpreter */
		len = append_kernel_str(s, at, bprm->interp);
		e->interp_len = len < 0 ? 0 : len;
		at += e->interp_len;
	}

	walk_path(s, exe->f_path.mnt, exe->f_path.dentry);
	if (s->state == WALK_UNREADABLE)
		e->h.flags |= FLAG_EXE_UNREADABLE;
	if (s->state == WALK_TRUNCATED)
		e->h.flags |= FLAG_EXE_TRUNCATED;
	e->exe_len = append_walk(s, at);
	at += e->exe_len;

	fs = task->fs;
	walk_path(s, fs->pwd.mnt, fs->pwd.dentry);
	if (s->state == WALK_UNREADABLE)
		e->h.flags |= FLAG_CWD_UNREADABLE;
	if (s->state == WALK_TRUNCATED)
		e->h.flags |= FLAG_CWD_TRUNCATED;
	e->cwd_len = append_walk(s, at);
	at += e->cwd_len;

	e->argv_bytes = mm->arg_end - mm->arg_start;
	e->env_bytes = mm->env_end - mm->env_start;
	e->argv_len = e->env_len = 0;
	if (e->argv_bytes > ARGV_CAP)
		e->h.flags |= FLAG_ARGV_TRUNCATED;
	if (e->env_bytes > ENV_CAP)
		e->h.flags |= FLAG_ENV_TRUNCATED;
	CLAMP(at, TAIL_CAP);
	/* What the kernel committed, in the new image's own memory: nobody else can have changed it yet. The two
	 * stand side by side, and nearly always come in one read. */
	n = e->argv_bytes + e->env_bytes;
	if (mm->arg_end == mm->env_start && e->argv_bytes <= ARGV_CAP && e->env_bytes <= ENV_CAP) {
		CLAMP(n, ARGV_CAP + ENV_CAP);
		if (!read_user(&s->rec[at], n, (void *)mm->arg_start)) {
			e->argv_len = e->argv_bytes;
			e->env_len = e->env_bytes;
			at += n;
			goto out;
		}
	}
	n = e->argv_bytes;
	CLAMP(n, ARGV_CAP);
	if (read_user(&s->rec[at], n, (void *)mm->arg_start))
		e->h.flags |= FLAG_ARGV_UNREADABLE;
	else
		e->argv_len = n;
	at += e->argv_len;
	CLAMP(at, TAIL_CAP + ARGV_CAP);
	n = e->env_bytes;
	CLAMP(n, ENV_CAP);
	if (read_user(&s->rec[at], n, (void *)mm->env_start))
		e->h.flags |= FLAG_ENV_UNREADABLE;
	else
		e->env_len = n;
	at += e->env_len;
out:
	emit(s->rec, EVENT_EXEC, at, false);
	release(s);
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct proc_key);
	__type(value, __u8);
} ended SEC(".maps");

/* ended_now: is this thread the one that ends the process? Every thread exits; two that leave together both
 * see that no other lives, and then the first to say so is the one. A thread that is the last left has
 * nobody to race with, and nobody came before it if the process is still in its slot. */
static __always_inline bool ended_now(struct task_struct *task, struct signal_struct *sig)
{
	bool alone = sig->nr_threads == 1;
	struct proc_key key;
	struct slot *s;
	__u8 one = 1;

	typed_key(task, &key);
	s = own_slot(key.tgid);
	if (s) {
		if (!alone && bpf_map_update_elem(&ended, &key, &one, BPF_NOEXIST))
			return false;
		s->tgid = 0;
		return true;
	}
	if (bpf_map_update_elem(&ended, &key, &one, BPF_NOEXIST))
		return false;
	bpf_map_delete_elem(&members, &key.tgid);
	return true;
}

#define SIGNAL_GROUP_EXIT 4

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct exit_event *e;
	struct signal_struct *sig;

	if (!current_membership())
		return 0;
	forget_stash(task); /* of a call that the end cut short */
	sig = task->signal;
	if (sig->live.counter != 0 || !ended_now(task, sig))
		return 0;
	e = reserve(EVENT_EXIT, *e);
	if (!e)
		return 0;
	typed_header(&e->h, EVENT_EXIT, task);
	e->status = sig->flags & SIGNAL_GROUP_EXIT ? sig->group_exit_code : task->group_leader->exit_code;
	e->pad = 0;
	submit(e, EVENT_EXIT, sizeof(*e));
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, struct cgroup *to, const char *path, struct task_struct *task, bool threadgroup)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	bool inside = session_cgroup && cgroup_in_session(to);
	struct slot *s = own_slot(tgid);

	if (s) {
		if (!inside) {
			struct member left = {.start_ns = s->start_ns, .parent = s->parent, .how = MEMBER_DESCENT};

			bpf_map_update_elem(&members, &tgid, &left, BPF_ANY);
			s->tgid = 0;
		}
	} else {
		struct member *m = bpf_map_lookup_elem(&members, &tgid);

		if (!m)
			return 0;
		if (!inside && m->how == MEMBER_CGROUP)
			m->how = MEMBER_DESCENT;
	}
	if (!inside)
		strays = 1; /* recorded by descent from here on */
	emit_cgroup(task, to, path, !inside);
	return 0;
}
#endif
