/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Files: opens, taken from the descriptor table, and operations on names. */
#ifndef RYE_FILE_H
#define RYE_FILE_H

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__type(key, struct repeat_key);
	__type(value, struct repeat_count);
} repeats SEC(".maps");

#define FMODE_CREATED 0x100000
#define O_ACCMODE_ 3
#define O_TRUNC_ 01000
#define O_PATH_ 010000000

/* counted reports whether this is a repeat of something already emitted; it is then counted and done.
 * Otherwise the caller emits, and says emitted_first once the record is in the ring. A first record that was
 * lost leaves no entry, so the next open tries again, and so does one that found the table full: opens =
 * records + repeats + lost, always. */
static __always_inline bool counted(struct repeat_key *k)
{
	struct repeat_count *c = bpf_map_lookup_elem(&repeats, k);

	if (!c)
		return false;
	__sync_fetch_and_add(&c->repeats, 1);
	return true;
}

static __always_inline void emitted_first(struct repeat_key *k)
{
	struct repeat_count none = {};

	bpf_map_update_elem(&repeats, k, &none, BPF_NOEXIST);
}

static __always_inline int open_failed(struct task_struct *task, long ret, int dirfd, const void *path, bool user, __u32 oflags, __u32 hflags)
{
	struct scratch *s;
	struct open_event *e;
	__u64 at = sizeof(*e);
	long n;

	switch (ret) {
	case -2: case -20: /* ENOENT, ENOTDIR: searching a path */
	case -4: case -512: case -513: case -514: case -516: /* interrupted, to be restarted */
		return 0;
	}
	s = grab(EVENT_OPEN);
	if (!s)
		return 0;
	e = (void *)s->rec;
	__builtin_memset(e, 0, sizeof(*e));
	start_header(&e->h, EVENT_OPEN, task);
	e->h.flags = hflags | FLAG_PATH_FROM_USER;
	e->open_flags = oflags;
	e->result = ret;
	e->base_len = append_base(s, at, task, dirfd);
	at += e->base_len;
	n = user ? append_user_str(s, at, path) : append_kernel_str(s, at, path);
	if (n < 0) {
		e->h.flags |= FLAG_PATH_UNREADABLE;
		n = 0;
	}
	e->path_len = n;
	emit(s->rec, EVENT_OPEN, at + n, false);
	release(s);
	return 0;
}

/* What an open needs of struct file and struct inode, read in one piece each. */
#define FILE_BYTES 224
#define INODE_BYTES 128
#define IN_PIECE(type, member, cap) (bpf_core_field_offset(type, member) + 8 <= (cap))
#define FROM_PIECE(buf, type, member) (*(typeof(((type *)0)->member) *)((buf) + bpf_core_field_offset(type, member)))

struct opened_file {
	struct inode *inode;
	struct vfsmount *mnt;
	struct dentry *dentry;
	__u64 ino;
	__u32 dev, f_flags, f_mode, i_mode, nlink;
};

static __always_inline void look(struct scratch *s, struct file *f, struct opened_file *o)
{
	__u8 *piece = s->walk;
	struct super_block *sb;

	if (IN_PIECE(struct file, f_inode, FILE_BYTES) && IN_PIECE(struct file, f_path.dentry, FILE_BYTES) && IN_PIECE(struct file, f_path.mnt, FILE_BYTES) &&
	    IN_PIECE(struct file, f_flags, FILE_BYTES) && IN_PIECE(struct file, f_mode, FILE_BYTES)) {
		bpf_probe_read_kernel(piece, FILE_BYTES, f);
		o->inode = FROM_PIECE(piece, struct file, f_inode);
		o->mnt = FROM_PIECE(piece, struct file, f_path.mnt);
		o->dentry = FROM_PIECE(piece, struct file, f_path.dentry);
		o->f_flags = FROM_PIECE(piece, struct file, f_flags);
		o->f_mode = FROM_PIECE(piece, struct file, f_mode);
	} else {
		o->inode = BPF_CORE_READ(f, f_inode);
		o->mnt = BPF_CORE_READ(f, f_path.mnt);
		o->dentry = BPF_CORE_READ(f, f_path.dentry);
		o->f_flags = BPF_CORE_READ(f, f_flags);
		o->f_mode = BPF_CORE_READ(f, f_mode);
	}
	if (IN_PIECE(struct inode, i_mode, INODE_BYTES) && IN_PIECE(struct inode, i_sb, INODE_BYTES) && IN_PIECE(struct inode, i_ino, INODE_BYTES) &&
	    IN_PIECE(struct inode, i_nlink, INODE_BYTES)) {
		bpf_probe_read_kernel(piece, INODE_BYTES, o->inode);
		o->i_mode = FROM_PIECE(piece, struct inode, i_mode);
		o->ino = FROM_PIECE(piece, struct inode, i_ino);
		o->nlink = FROM_PIECE(piece, struct inode, i_nlink);
		sb = FROM_PIECE(piece, struct inode, i_sb);
	} else {
		o->i_mode = BPF_CORE_READ(o->inode, i_mode);
		o->ino = BPF_CORE_READ(o->inode, i_ino);
		o->nlink = BPF_CORE_READ(o->inode, i_nlink);
		sb = BPF_CORE_READ(o->inode, i_sb);
	}
	o->dev = BPF_CORE_READ(sb, s_dev);
}

static __always_inline int opened(struct task_struct *task, struct file *f, __u32 oflags, __u32 hflags)
{
	struct scratch *s = grab(EVENT_OPEN);
	struct opened_file o;
	struct repeat_key k;
	struct open_event *e;
	__u64 at = sizeof(*e);

	if (!s)
		return 0;
	look(s, f, &o);
	current_key(task, &k.proc);
	k.lo = (__u64)o.dentry;
	k.hi = o.ino;
	k.dev = o.dev;
	k.access = (hflags & (FLAG_RECEIVED | FLAG_MAPPED)) << 8 | (o.f_flags & (O_ACCMODE_ | O_PATH_)) | (oflags & O_TRUNC_) | (o.f_mode & FMODE_CREATED ? 1 << 31 : 0);
	if (counted(&k))
		goto out;

	e = (void *)s->rec;
	begin_header(&e->h, EVENT_OPEN);
	e->h.proc = k.proc;
	e->h.cgroup_id = bpf_get_current_cgroup_id();
	e->h.flags = hflags;
	e->dentry = k.lo;
	e->dev = k.dev;
	e->ino = k.hi;
	e->access = k.access;
	e->f_flags = o.f_flags;
	e->f_mode = o.f_mode;
	e->open_flags = oflags;
	e->i_mode = o.i_mode;
	e->nlink = o.nlink;
	e->result = 0;
	e->base_len = 0;
	e->pad = 0;
	walk_path(s, o.mnt, o.dentry);
	if (s->state == WALK_UNREADABLE)
		e->h.flags |= FLAG_PATH_UNREADABLE;
	if (s->state == WALK_TRUNCATED)
		e->h.flags |= FLAG_PATH_TRUNCATED;
	e->path_len = append_walk(s, at);
	at += e->path_len;
	if (emit(s->rec, EVENT_OPEN, at, false))
		emitted_first(&k);
out:
	release(s);
	return 0;
}

static __always_inline int on_open(struct task_struct *task, long ret, int dirfd, const void *path, __u32 oflags, __u32 hflags)
{
	struct file *f;

	if (ret < 0)
		return open_failed(task, ret, dirfd, path, true, oflags, hflags);
	f = fd_file(task, ret);
	if (!f) { /* another thread closed it before the call returned */
		count_lost(EVENT_OPEN);
		return 0;
	}
	return opened(task, f, oflags, hflags);
}

/* Where a hook has seen which names a call is about, they wait here for its result: a map value is copied
 * whole, so those of usual length have a table of their own. */
#define STASH_CAP (sizeof(struct pathop_event) + 2 * PATH_CAP)
#define SHORT_STASH_CAP (sizeof(struct pathop_event) + 400)

struct stash { __u8 rec[STASH_CAP]; };
struct short_stash { __u8 rec[SHORT_STASH_CAP]; };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64); /* calls under way at the same time */
	__type(key, __u64);      /* the task */
	__type(value, struct stash);
} stashes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct short_stash);
} short_stashes SEC(".maps");

bool names_hooked;    /* set by the loader: name hooks are attached */
static __u64 stashed; /* entries in the two tables: with none there is nothing to look for */

/* forget_stash: hooks also run where no name operation returns (a failed bind, and so on). */
static __always_inline void forget_stash(struct task_struct *task)
{
	__u64 key = (__u64)task;

	if (names_hooked && *(volatile __u64 *)&stashed &&
	    (!bpf_map_delete_elem(&short_stashes, &key) || !bpf_map_delete_elem(&stashes, &key)))
		__sync_fetch_and_add(&stashed, -1);
}

/* stash keeps the record in s. When the table is full, the call's own strings are used, and marked. */
static __always_inline void stash(struct task_struct *task, struct scratch *s, __u64 size)
{
	__u64 key = (__u64)task;
	long err;

	forget_stash(task);
	((struct event_header *)s->rec)->size = size;
	if (size <= SHORT_STASH_CAP)
		err = bpf_map_update_elem(&short_stashes, &key, s->rec, BPF_ANY);
	else
		err = bpf_map_update_elem(&stashes, &key, s->rec, BPF_ANY);
	if (!err)
		__sync_fetch_and_add(&stashed, 1);
}

static __always_inline bool finish(struct pathop_event *e, __u64 cap, enum path_op op, long ret, __u32 hflags)
{
	if (e->op != op)
		return false;
	e->h.flags = (e->h.flags & ~FLAG_NO_RESULT) | hflags;
	e->result = ret;
	emit_of(e, cap, EVENT_PATHOP, e->h.size, false);
	return true;
}

/* finish_stash adds the result to what the hook saw. */
static __noinline int finish_stash(struct task_struct *task, enum path_op op, long ret, __u32 hflags)
{
	__u64 key = (__u64)task;
	struct pathop_event *e = bpf_map_lookup_elem(&short_stashes, &key);
	bool done;

	if (e) {
		done = finish(e, SHORT_STASH_CAP, op, ret, hflags);
	} else {
		e = bpf_map_lookup_elem(&stashes, &key);
		if (!e)
			return 0;
		done = finish(e, STASH_CAP, op, ret, hflags);
	}
	forget_stash(task);
	return done;
}

/* Names that were unlinked, renamed and so on. Where no hook told which objects are meant, the strings are
 * the caller's own, read when the call returned: flagged as such. */
static __always_inline int on_pathop(struct task_struct *task, long ret, enum path_op op, int dirfd, const void *path,
				     int dirfd2, const void *path2, __u32 hflags)
{
	struct scratch *s;
	struct pathop_event *e;
	__u64 at = sizeof(*e);
	long n;

	if (names_hooked && stashed && finish_stash(task, op, ret, hflags))
		return 0;
	if (ret == -2 || ret == -20 || ret == -17) /* ENOENT, ENOTDIR, EEXIST: nothing happened */
		return 0;
	s = grab(EVENT_PATHOP);
	if (!s)
		return 0;
	e = (void *)s->rec;
	__builtin_memset(e, 0, sizeof(*e));
	start_header(&e->h, EVENT_PATHOP, task);
	e->h.flags = hflags | FLAG_PATH_FROM_USER;
	e->op = op;
	e->result = ret;
	e->base_len = op == OP_SYMLINK ? 0 : append_base(s, at, task, dirfd);
	at += e->base_len;
	if (path) {
		n = append_user_str(s, at, path);
		if (n < 0) {
			e->h.flags |= FLAG_PATH_UNREADABLE;
			n = 0;
		}
		e->path_len = n;
		at += n;
	} else {
		e->h.flags &= ~FLAG_PATH_FROM_USER; /* the descriptor's file is the object */
	}
	if (path2) {
		e->base2_len = append_base(s, at, task, dirfd2);
		at += e->base2_len;
		n = append_user_str(s, at, path2);
		if (n < 0) {
			e->h.flags |= FLAG_PATH2_UNREADABLE;
			n = 0;
		}
		e->path2_len = n;
		at += n;
	}
	emit(s->rec, EVENT_PATHOP, at, false);
	release(s);
	return 0;
}

#define PROT_EXEC_ 4
#define MAP_ANONYMOUS_ 0x20
#define AT_BASE_ 7
#define AUXV_PAIRS 24

/* loads_programs: was this program started without an interpreter? Then it is a program loader (ld.so run
 * as a command) or static, and files that it maps as code are programs that no exec shows. */
static __always_inline bool loads_programs(struct task_struct *task)
{
	struct scratch *s = grab(EVENT_OPEN);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	bool is = true;
	int i;

	if (!s)
		return true;
	if (read_kernel(s->rec, AUXV_PAIRS * 16, (void *)mm + bpf_core_field_offset(struct mm_struct, saved_auxv)))
		goto out;
	for (i = 0; i < AUXV_PAIRS; i++) {
		__u64 *pair = (__u64 *)&s->rec[i * 16];

		if (pair[0] == 0)
			break;
		if (pair[0] == AT_BASE_) {
			is = pair[1] == 0;
			break;
		}
	}
out:
	release(s);
	return is;
}

static __noinline int on_map(struct task_struct *task, long ret, struct args *g, __u32 hflags)
{
	struct file *f;

	if (ret < 0 && ret > -4096)
		return 0;
	f = fd_file(task, (int)g->a[4]);
	if (!f)
		return 0;
	if (BPF_CORE_READ(f, f_inode, i_nlink) != 0 && !loads_programs(task))
		return 0;
	return opened(task, f, 0, hflags | FLAG_MAPPED);
}
#endif
