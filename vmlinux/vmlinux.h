/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Kernel types that rye's programs read. See README.md. */
#ifndef RYE_VMLINUX_H
#define RYE_VMLINUX_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef int bool_int;
typedef _Bool bool;
typedef int pid_t;
typedef __u32 dev_t;
typedef unsigned short umode_t;
typedef unsigned int fmode_t;
typedef unsigned long size_t;
#define true 1
#define false 0
#define NULL ((void *)0)

/* UAPI values */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_FUNC_probe_read_user = 112, BPF_FUNC_probe_read_kernel = 113 };

/* bpf_helper_defs.h names these in prototypes */
struct __sk_buff; struct bpf_dynptr; struct bpf_fib_lookup; struct bpf_perf_event_data;
struct bpf_perf_event_value; struct bpf_pidns_info; struct bpf_redir_neigh; struct bpf_sock;
struct bpf_sock_addr; struct bpf_sock_ops; struct bpf_sock_tuple; struct bpf_spin_lock;
struct bpf_sysctl; struct bpf_tcp_sock; struct bpf_timer; struct bpf_tunnel_key; struct bpf_xfrm_state;
struct iphdr; struct ipv6hdr; struct linux_binprm; struct mptcp_sock; struct seq_file;
struct sk_msg_md; struct sk_reuseport_md; struct task_struct; struct tcp_sock; struct tcp6_sock;
struct tcp_request_sock; struct tcp_timewait_sock; struct tcphdr; struct udp6_sock; struct unix_sock;
struct xdp_md; struct btf_ptr; struct socket; struct sockaddr; struct inode; struct path; struct file;
struct cgroup; struct nf_conn; struct bpf_raw_tracepoint_args;

struct bpf_sock_addr { /* UAPI: not relocated */
	__u32 user_family;
	__u32 user_ip4;    /* network byte order */
	__u32 user_ip6[4]; /* network byte order */
	__u32 user_port;   /* network byte order */
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 msg_src_ip4;
	__u32 msg_src_ip6[4];
	__u64 sk;
};

struct __sk_buff { /* UAPI: not relocated */
	__u32 len;
};

struct bpf_sock { /* UAPI: not relocated */
	__u32 bound_dev_if;
	__u32 family;
	__u32 type;
	__u32 protocol;
};

#define __VMLINUX_H__ /* bpf_tracing.h: registers by their kernel names */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip;
};
struct thread_info {
	u32 status;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs { /* what libbpf's PT_REGS macros cast to */
	u64 regs[31];
	u64 sp, pc, pstate;
};
struct pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
	u64 orig_x0;
	s32 syscallno;
};
struct thread_info {
	unsigned long flags;
};
#else
#error "unknown target"
#endif

typedef struct { int counter; } atomic_t;
struct filename { const char *name; };
struct open_flags { int open_flag; };
struct msghdr { void *msg_name; int msg_namelen; };
typedef struct { u32 val; } kuid_t;
typedef struct { u32 val; } kgid_t;
struct hlist_node { struct hlist_node *next; };
struct hlist_head { struct hlist_node *first; };

struct qstr {
	u32 len;
	const unsigned char *name;
};
struct super_block { dev_t s_dev; unsigned long s_magic; };
struct timespec64 { s64 tv_sec; long tv_nsec; };
struct inode {
	umode_t i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	s64 i_mtime_sec; /* 6.11 and later */
	u32 i_mtime_nsec;
};
struct inode___v66 { struct timespec64 __i_mtime; }; /* 6.6 to 6.10 */
struct inode___v65 { struct timespec64 i_mtime; };   /* 6.5 and earlier */
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};
struct vfsmount { struct dentry *mnt_root; };
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path { struct vfsmount *mnt; struct dentry *dentry; };
struct file {
	fmode_t f_mode;
	void *private_data;
	struct inode *f_inode;
	unsigned int f_flags;
	struct path f_path;
};
struct fdtable { unsigned int max_fds; struct file **fd; };
struct files_struct { struct fdtable *fdt; };
struct fs_struct { struct path pwd; };

struct mm_struct {
	unsigned long arg_start, arg_end, env_start, env_end;
	unsigned long saved_auxv[0];
	struct file *exe_file;
};
struct cred { kuid_t uid, euid; kgid_t gid, egid; };
struct kernfs_node { u64 id; };
struct cgroup;
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[0]; /* 6.1 and later */
};
struct cgroup___v60 { u64 ancestor_ids[0]; }; /* 6.0 and earlier */
struct css_set { struct cgroup *dfl_cgrp; };
struct signal_struct {
	atomic_t live;
	int nr_threads;
	int group_exit_code;
	unsigned int flags;
};
struct upid { int nr; };
struct pid { struct hlist_head tasks[4]; struct upid numbers[0]; };
struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	struct mm_struct *mm;
	int exit_code;
	pid_t pid;
	pid_t tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct hlist_node pid_links[4];
	u64 start_boottime;
	const struct cred *cred;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct css_set *cgroups;
};
struct linux_binprm {
	struct file *executable;
	const char *filename;
	const char *interp;
};

struct in6_addr { union { __u8 u6_addr8[16]; } in6_u; };
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};
struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	struct pid *sk_peer_pid;
};
struct socket { short type; struct file *file; struct sock *sk; };
struct sockaddr_un { unsigned short sun_family; char sun_path[108]; };
struct unix_address { int len; struct sockaddr_un name[0]; };
struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct path path;
	struct sock *peer;
};

#pragma clang attribute pop
#endif
