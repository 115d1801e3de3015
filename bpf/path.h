/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Absolute paths from the kernel's own objects. bpf_d_path is not allowed in these programs, so the
 * dentry tree is walked: to the mount's root, then on from the mount point, to the top of the mount tree.
 * The result is the path in the outermost mount namespace that the object hangs in, whatever chroot,
 * symlink or relative name the caller used. */
#ifndef RYE_PATH_H
#define RYE_PATH_H

/* Components and mount crossings. bpf_loop (5.17 and later) checks the step once and allows as many as a
 * path can have; before it the verifier walks every step of the loop, and a path deeper than this is flagged
 * as truncated. */
#define LOOP_STEPS (2 * PATH_CAP)
#define OLD_STEPS 128

const volatile bool has_loop = false;

enum walk_state { WALK_OK, WALK_TRUNCATED, WALK_UNREADABLE };

/* Known when the program is loaded: d_parent, d_name.len and d_name.name are where they have always been. */
#define DENTRY_PACKED \
	(bpf_core_field_offset(struct dentry, d_name.len) == bpf_core_field_offset(struct dentry, d_parent) + 12 && \
	 bpf_core_field_offset(struct dentry, d_name.name) == bpf_core_field_offset(struct dentry, d_parent) + 16)

/* So are mnt_parent, mnt_mountpoint and mnt.mnt_root. */
#define MOUNT_PACKED \
	(bpf_core_field_offset(struct mount, mnt_mountpoint) == bpf_core_field_offset(struct mount, mnt_parent) + 8 && \
	 bpf_core_field_offset(struct mount, mnt.mnt_root) == bpf_core_field_offset(struct mount, mnt_parent) + 16)

static __always_inline void stand_on(struct scratch *s, struct mount *m)
{
	s->mount = m;
	if (MOUNT_PACKED) {
		bpf_probe_read_kernel(&s->parent, 24, (void *)m + bpf_core_field_offset(struct mount, mnt_parent));
	} else {
		s->parent = BPF_CORE_READ(m, mnt_parent);
		s->mountpoint = BPF_CORE_READ(m, mnt_mountpoint);
		s->root = BPF_CORE_READ(m, mnt.mnt_root);
	}
}

/* walk_step goes up by one component or one mount; 1 ends the walk. The position is kept in the map value
 * and read back in every step: the verifier then knows nothing about it but its bound and finds all steps
 * alike. */
static long walk_step(__u32 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	__u64 off = *(volatile __u64 *)&s->off, len;
	struct dentry *dentry = s->dentry, *up;
	const unsigned char *name;

	if (dentry == s->root) {
		if (s->parent == s->mount || !s->parent) {
			s->state = WALK_OK;
			return 1;
		}
		s->dentry = s->mountpoint;
		stand_on(s, s->parent);
		return 0;
	}
	if (DENTRY_PACKED) { /* one read for what stands side by side */
		struct { struct dentry *parent; __u32 hash, len; const unsigned char *name; } d;

		if (bpf_probe_read_kernel(&d, sizeof(d), (void *)dentry + bpf_core_field_offset(struct dentry, d_parent)))
			return 1;
		up = d.parent;
		len = d.len;
		name = d.name;
	} else {
		up = BPF_CORE_READ(dentry, d_parent);
		len = BPF_CORE_READ(dentry, d_name.len);
		name = BPF_CORE_READ(dentry, d_name.name);
	}
	CLAMP(len, 255);
	if (off < len + 1)
		return 1;
	off -= len + 1;
	CLAMP(off, PATH_CAP - 1);
	s->walk[off] = '/';
	CLAMP(len, 255); /* again: 6.12 forgets it when it compares off with len + 1 */
	if (read_kernel(&s->walk[off + 1], len, name)) {
		s->state = WALK_UNREADABLE;
		return 1;
	}
	*(volatile __u64 *)&s->off = off;
	if (up == dentry || !up) { /* not in any tree: memfd, pipe, socket */
		s->state = WALK_OK;
		return 1;
	}
	s->dentry = up;
	return 0;
}

/* walk_loop is a global function: the verifier checks it once, by itself, and not again for every caller
 * and every state that callers may be in. Global functions take no pointers (before 5.12), so the work is
 * handed over in this cpu's scratch buffer. */
__noinline int walk_loop(__u32 unused)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
	int i;

	if (!s)
		return 0;
	if (has_loop) {
		bpf_loop(LOOP_STEPS, walk_step, &s, 0);
	} else {
		for (i = 0; i < OLD_STEPS; i++)
			if (walk_step(i, &s))
				break;
	}
	return 0;
}

/* walk_path builds the path of dentry in s->walk[s->off .. PATH_CAP) and leaves s->state. */
static __always_inline void walk_path(struct scratch *s, struct vfsmount *vfs, struct dentry *dentry)
{
	s->off = PATH_CAP;
	s->state = WALK_UNREADABLE;
	if (!dentry || !vfs)
		return;
	s->dentry = dentry;
	stand_on(s, (void *)vfs - bpf_core_field_offset(struct mount, mnt));
	s->state = WALK_TRUNCATED;
	walk_loop(0);
	if (s->state == WALK_OK && s->off == PATH_CAP) {
		s->off = PATH_CAP - 1;
		s->walk[PATH_CAP - 1] = '/';
	}
}

static __always_inline void walk_file(struct scratch *s, struct file *f)
{
	walk_path(s, BPF_CORE_READ(f, f_path.mnt), BPF_CORE_READ(f, f_path.dentry));
}

/* append_walk copies the path just built to rec[at]; it returns its length. */
static __always_inline __u32 append_walk(struct scratch *s, __u64 at)
{
	__u64 off = *(volatile __u64 *)&s->off, len;

	CLAMP(off, PATH_CAP);
	len = PATH_CAP - off;
	CLAMP(len, PATH_CAP);
	CLAMP(at, TAIL_CAP);
	if (read_kernel(&s->rec[at], len, &s->walk[off]))
		return 0;
	return len;
}

/* append_kernel_str and append_user_str copy a C string without its NUL; they return its length, or -1. */
static __always_inline long append_kernel_str(struct scratch *s, __u64 at, const void *str)
{
	long n;

	CLAMP(at, TAIL_CAP);
	n = bpf_probe_read_kernel_str(&s->rec[at], PATH_CAP, str);
	return n > 0 ? n - 1 : -1;
}

static __always_inline long append_user_str(struct scratch *s, __u64 at, const void *str)
{
	long n;

	CLAMP(at, TAIL_CAP);
	n = bpf_probe_read_user_str(&s->rec[at], PATH_CAP, str);
	return n > 0 ? n - 1 : -1;
}

static __always_inline struct file *fd_file(struct task_struct *task, long fd)
{
	struct file **fds, *f = NULL;
	__u32 max;

	if (has_task_btf) {
		fds = task->files->fdt->fd;
		max = task->files->fdt->max_fds;
	} else {
		fds = BPF_CORE_READ(task, files, fdt, fd);
		max = BPF_CORE_READ(task, files, fdt, max_fds);
	}
	if (fd < 0 || (__u64)fd >= max)
		return NULL;
	bpf_probe_read_kernel(&f, sizeof(f), fds + fd);
	return f;
}

/* append_base writes the directory that a relative path starts from: dirfd's, or the working directory. */
static __always_inline __u32 append_base(struct scratch *s, __u64 at, struct task_struct *task, int dirfd)
{
	if (dirfd == -100) { /* AT_FDCWD */
		struct fs_struct *fs = BPF_CORE_READ(task, fs);

		walk_path(s, BPF_CORE_READ(fs, pwd.mnt), BPF_CORE_READ(fs, pwd.dentry));
	} else {
		struct file *f = fd_file(task, dirfd);

		if (!f)
			return 0;
		walk_file(s, f);
	}
	return append_walk(s, at);
}
#endif
