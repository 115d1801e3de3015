/*
 * evade TECHNIQUE DIR: does one thing in one way and reports what it did, as JSON on standard output:
 *   {"did":"open","path":"…","result":0}
 * The test compares that with what rye recorded. Exit status 77: this kernel or machine cannot do it.
 * DIR is a scratch folder with a copy of the program `tiny` in it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char dir[4096], path[8192], tiny[8192];
static const char *name;
#define CANNOT 77

static void say(const char *did, const char *what, long result)
{
	const unsigned char *c;

	printf("{\"did\":\"%s\",\"path\":\"", did);
	for (c = (const unsigned char *)what; *c; c++)
		if (*c < 0x20 || *c == '"' || *c == '\\' || *c >= 0x80) printf("\\u%04x", *c); else putchar(*c); /* bytes as Latin-1 */
	printf("\",\"result\":%ld}\n", result);
	fflush(stdout);
}
/* say2: two things done, result of each a count */
static void say2(const char *did, const char *a, long na, const char *b, long nb)
{
	printf("{\"did\":\"%s\",\"path\":\"%s\",\"result\":%ld,\"path2\":\"%s\",\"result2\":%ld}\n", did, a, na, b, nb);
	fflush(stdout);
}
static int need(long r) { if (r < 0) { fprintf(stderr, "%s: %s\n", name, strerror(errno)); exit(errno == EPERM || errno == ENOSYS || errno == EAFNOSUPPORT || errno == EINVAL || errno == EOPNOTSUPP || errno == ENODEV || errno == EACCES || errno == ENOMEM || errno == EPROTONOSUPPORT ? CANNOT : 1); } return r; }
static const char *in(const char *file) { snprintf(path, sizeof path, "%s/%s", dir, file); return path; }
static void make(const char *p) { int f = open(p, O_CREAT | O_WRONLY, 0644); need(f); close(f); }
static char *const env[] = {"PATH=/bin", NULL};

/* A child that execs tiny in some way; the parent reports. */
#define CHILD(how) do { pid_t p_ = fork(); int st_; if (!p_) { char *const av[] = {"tiny", (char *)name, NULL}; (void)av; how; _exit(CANNOT); } waitpid(p_, &st_, 0); if (WEXITSTATUS(st_) == CANNOT) exit(CANNOT); } while (0)

#if defined(__x86_64__)
static void no_int80(int sig) { (void)sig; _exit(CANNOT); } /* a hypervisor or kernel without the gate */
static long int80(long n, long a, long b, long c)
{
	long r;
	signal(SIGSEGV, no_int80);
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
	signal(SIGSEGV, SIG_DFL);
	return (int)r;
}
static char *low(const char *s) /* a copy below 4 GiB */
{
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (p == MAP_FAILED) exit(CANNOT);
	return strcpy(p, s);
}
#endif

static int tcp_listener(struct sockaddr_in *a)
{
	socklen_t l = sizeof *a;
	int s = need(socket(AF_INET, SOCK_STREAM, 0)), on = 5;
	memset(a, 0, sizeof *a);
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(bind(s, (void *)a, l));
	setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN, &on, sizeof on);
	need(listen(s, 8));
	getsockname(s, (void *)a, &l);
	return s;
}
static const char *addr4(struct sockaddr_in *a) { static char b[64]; snprintf(b, 64, "127.0.0.1:%d", ntohs(a->sin_port)); return b; }

struct ring { int fd; unsigned *tail, *mask, *array, *chead, *cmask; struct io_uring_sqe *sq; struct io_uring_cqe *cq; };
static void ring_open(struct ring *r)
{
	struct io_uring_params p = {0};
	char *s, *c;
	r->fd = need(syscall(__NR_io_uring_setup, 8, &p));
	s = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	c = mmap(0, p.cq_off.cqes + p.cq_entries * 16, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->sq = mmap(0, p.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	r->tail = (unsigned *)(s + p.sq_off.tail); r->mask = (unsigned *)(s + p.sq_off.ring_mask); r->array = (unsigned *)(s + p.sq_off.array);
	r->chead = (unsigned *)(c + p.cq_off.head); r->cmask = (unsigned *)(c + p.cq_off.ring_mask); r->cq = (struct io_uring_cqe *)(c + p.cq_off.cqes);
}
static int ring_go(struct ring *r, struct io_uring_sqe *e)
{
	unsigned t = *r->tail, i = t & *r->mask;
	int res;
	r->sq[i] = *e; r->array[i] = i;
	__atomic_store_n(r->tail, t + 1, __ATOMIC_RELEASE);
	need(syscall(__NR_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
	res = r->cq[*r->chead & *r->cmask].res;
	__atomic_store_n(r->chead, *r->chead + 1, __ATOMIC_RELEASE);
	return res;
}

static void *exec_in_thread(void *x) { char *const av[] = {"tiny", (char *)name, NULL}; execve(tiny, av, env); return x; }
static volatile int stop;
static char argbuf[64];
static void *flip(void *x) { while (!stop) { argbuf[0] ^= 1; } return x; }

/* Races: a thread changes what the call is given while it runs. The program finds out what the kernel took. */
static int tries(void) { const char *t = getenv("EVADE_TRIES"); return t ? atoi(t) : 2000; }
static volatile char *flipped;
static unsigned char flip_mask = 'a' ^ 'b';
static void *flip_byte(void *x) { while (!stop) { *flipped ^= flip_mask; for (volatile int i = 0; i < 50; i++); } return x; }
static pthread_t racer;
static void race(volatile char *byte) { flipped = byte; need(-pthread_create(&racer, NULL, flip_byte, NULL)); }
static void race_over(void) { stop = 1; pthread_join(racer, NULL); }
static int decoy, target;
static void *swap_fd(void *x) { while (!stop) { if (fcntl(target, F_GETFD) >= 0) dup2(decoy, target); } return x; }

static void copy(const char *from, const char *to)
{
	static char buf[1 << 16];
	int s = need(open(from, O_RDONLY)), d = need(open(to, O_CREAT | O_WRONLY | O_TRUNC, 0755));
	ssize_t n;
	while ((n = read(s, buf, sizeof buf)) > 0) if (write(d, buf, n) != n) exit(1);
	close(s); close(d);
}
static ino_t ino_of(const char *p) { struct stat st; need(stat(p, &st)); return st.st_ino; }

/* The directory of this process's cgroup. */
static const char *cgroup_dir(void)
{
	static char mnt[4096], cg[4096], line[8192];
	FILE *f = fopen("/proc/self/mountinfo", "r");
	while (f && fgets(line, sizeof line, f)) if (strstr(line, " - cgroup2 ")) { char root[4096]; sscanf(line, "%*s %*s %*s %4095s %4095s", root, mnt); }
	f = fopen("/proc/self/cgroup", "r");
	while (f && fgets(line, sizeof line, f)) if (!strncmp(line, "0::", 3)) { line[strcspn(line, "\n")] = 0; snprintf(cg, sizeof cg, "%.2000s%.2000s", mnt, line + 3); }
	return mnt[0] && cg[0] ? cg : NULL;
}
static void join_cgroup(const char *c) { char p[8300]; int f; snprintf(p, sizeof p, "%s/cgroup.procs", c); f = need(open(p, O_WRONLY)); need(write(f, "0", 1)); close(f); }

static int more(void);
static int technique(void)
{
#define IS(s) (!strcmp(name, s))
	if (IS("exec-execve")) { CHILD(execve(tiny, av, env)); say("exec", tiny, 0); return 0; }
	if (IS("exec-execveat")) { int f = need(open(tiny, O_PATH | O_CLOEXEC)); CHILD(syscall(__NR_execveat, f, "", av, env, AT_EMPTY_PATH)); say("exec", tiny, 0); return 0; }
	if (IS("exec-proc-fd")) { int f = need(open(tiny, O_RDONLY)); snprintf(path, sizeof path, "/proc/self/fd/%d", f); CHILD(execve(path, av, env)); say("exec", tiny, 0); return 0; }
	if (IS("exec-symlink")) { need(symlink(tiny, in("link"))); CHILD(execve(path, av, env)); say("exec", tiny, 0); return 0; }
	if (IS("exec-memfd")) { char buf[65536]; int s = need(open(tiny, O_RDONLY)), m = need(memfd_create("hidden", MFD_CLOEXEC)); ssize_t n = read(s, buf, sizeof buf); if (write(m, buf, n) != n) return 1; CHILD(syscall(__NR_execveat, m, "", av, env, AT_EMPTY_PATH)); say("exec", "/memfd:hidden", 0); return 0; }
	if (IS("exec-unlinked")) { char buf[65536]; int s = need(open(tiny, O_RDONLY)), d = need(open(in("gone"), O_CREAT | O_WRONLY, 0755)); ssize_t n = read(s, buf, sizeof buf); if (write(d, buf, n) != n) return 1; close(d); d = need(open(path, O_PATH | O_CLOEXEC)); unlink(path); CHILD(syscall(__NR_execveat, d, "", av, env, AT_EMPTY_PATH)); say("exec", path, 0); return 0; }
	if (IS("exec-script")) { int d = need(open(in("script"), O_CREAT | O_WRONLY, 0755)); if (dprintf(d, "#!%s\n", tiny) < 0) return 1; close(d); CHILD(execve(path, av, env)); say("exec", tiny, 0); return 0; }
	if (IS("exec-vfork")) { pid_t p = vfork(); if (!p) { char *const av[] = {"tiny", (char *)name, NULL}; execve(tiny, av, env); _exit(1); } waitpid(p, NULL, 0); say("exec", tiny, 0); return 0; }
	if (IS("exec-thread")) { CHILD(pthread_t t; pthread_create(&t, NULL, exec_in_thread, NULL); pause()); say("exec", tiny, 0); return 0; }
	if (IS("exec-double-fork")) { pid_t p = fork(); if (!p) { if (fork()) _exit(0); setsid(); usleep(20000); char *const av[] = {"tiny", (char *)name, NULL}; execve(tiny, av, env); _exit(1); } waitpid(p, NULL, 0); usleep(100000); say("exec", tiny, 0); return 0; }
	if (IS("exec-argv-race")) { /* another thread rewrites argv[1] while the call runs; what was committed is told by the program itself */
		int i, wrong = 0; pthread_t t; pthread_create(&t, NULL, flip, NULL); strcpy(argbuf, "0race");
		for (i = 0; i < tries(); i++) { pid_t p = vfork(); if (!p) { char *const av[] = {"tiny", argbuf, NULL}; execve(tiny, av, env); _exit(1); } waitpid(p, NULL, 0); }
		stop = 1; pthread_join(t, NULL); (void)wrong; say("exec-race", tiny, tries()); return 0; }
	if (IS("exec-failed")) { pid_t p = fork(); if (!p) { char *const av[] = {"none", NULL}; execve("/nowhere/none", av, env); _exit(0); } waitpid(p, NULL, 0); say("exec-failed", "/nowhere/none", -2); return 0; }
	if (IS("open-open")) { make(in("f1")); need(syscall(
#ifdef __NR_open
		__NR_open, path, O_RDONLY
#else
		__NR_openat, AT_FDCWD, path, O_RDONLY
#endif
		)); say("open", path, 0); return 0; }
	if (IS("open-openat2")) { struct { unsigned long long flags, mode, resolve; } how = {O_RDONLY, 0, 0}; make(in("f2")); need(syscall(437, AT_FDCWD, path, &how, sizeof how)); say("open", path, 0); return 0; }
	if (IS("open-creat")) { need(creat(in("f3"), 0600)); say("open", path, 0); return 0; }
	if (IS("open-relative")) { make(in("f4")); need(chdir(dir)); need(open("f4", O_RDONLY)); say("open", path, 0); return 0; }
	if (IS("open-by-handle")) { struct { struct file_handle h; char b[128]; } h; int mid, m; h.h.handle_bytes = 128; make(in("f5")); need(name_to_handle_at(AT_FDCWD, path, &h.h, &mid, 0)); m = need(open(dir, O_RDONLY | O_DIRECTORY)); need(open_by_handle_at(m, &h.h, O_RDWR)); say("open", path, 0); return 0; }
	if (IS("open-untouched-page")) { int s = need(open(in("names"), O_CREAT | O_RDWR, 0644)); char t[8192]; char *m; make(in("f6")); strcpy(t, path); if (pwrite(s, t, 4096, 0) < 0) return 1; m = mmap(0, 4096, PROT_READ, MAP_PRIVATE, s, 0); need(open(m, O_RDONLY)); say("open", t, 0); return 0; }
	if (IS("open-path")) { make(in("f7")); need(open(path, O_PATH)); say("open", path, 0); return 0; }
	if (IS("open-reopen-proc")) { int f; char p2[64]; make(in("f8")); f = need(open(path, O_PATH)); snprintf(p2, 64, "/proc/self/fd/%d", f); need(open(p2, O_RDWR)); say("open", path, 0); return 0; }
	if (IS("open-symlink")) { make(in("f9")); char l[8300]; snprintf(l, sizeof l, "%s/l9", dir); need(symlink(path, l)); need(open(l, O_RDONLY)); say("open", path, 0); return 0; }
	if (IS("open-hardlink")) { char l[8300]; make(in("f10")); snprintf(l, sizeof l, "%s/h10", dir); need(link(path, l)); need(open(l, O_RDONLY)); say("open", l, 0); return 0; }
	if (IS("open-newline-name")) { make(in("a\nb\xff\xfe")); say("open", path, 0); return 0; }
	if (IS("open-deep")) { int i; need(chdir(dir)); for (i = 0; i < 900; i++) { if (mkdir("d", 0755)) return 1; if (chdir("d")) return 1; } make("deep"); snprintf(path, sizeof path, "%s", dir); for (i = 0; i < 900; i++) strcat(path, "/d"); strcat(path, "/deep"); say("open", path, 0); return 0; }
	if (IS("open-chroot")) { make(in("f11")); need(chroot(dir)); need(open("/f11", O_RDONLY)); say("open", path, 0); return 0; }
	if (IS("open-bind-mount")) { char m[8300]; make(in("f12")); snprintf(m, sizeof m, "%s/m12", dir); need(mkdir(m, 0755)); need(unshare(CLONE_NEWNS)); need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)); need(mount(dir, m, NULL, MS_BIND, NULL)); strcat(m, "/f12"); need(open(m, O_RDONLY)); say("open", m, 0); return 0; }
	if (IS("open-deleted-cwd")) { char d[8300]; snprintf(d, sizeof d, "%s/cwd", dir); need(mkdir(d, 0755)); need(chdir(d)); make(in("f13")); need(rmdir(d)); need(open(path, O_RDONLY)); say("open", path, 0); return 0; }
	if (IS("open-io-uring")) { struct ring r; struct io_uring_sqe e = {.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD}; make(in("f14")); ring_open(&r); strcat(path, ".ring"); e.addr = (unsigned long)path; e.open_flags = O_CREAT | O_WRONLY; e.len = 0644; need(ring_go(&r, &e)); say("open", path, 0); return 0; }
	if (IS("open-failed")) { int r = open(dir, O_WRONLY); say("open-failed", dir, r < 0 ? -errno : 0); return 0; }
	if (IS("open-mmap-shared")) { int f; char *m; f = need(open(in("f15"), O_CREAT | O_RDWR, 0644)); need(ftruncate(f, 4096)); m = mmap(0, 4096, PROT_WRITE, MAP_SHARED, f, 0); m[0] = 1; say("open", path, 0); return 0; }
	if (IS("name-truncate")) { make(in("t1")); need(truncate(path, 0)); say("truncate", path, 0); return 0; }
	if (IS("name-rename")) { char n[8300]; make(in("r1")); snprintf(n, sizeof n, "%s/r2", dir); need(rename(path, n)); say("rename", n, 0); return 0; }
	if (IS("name-unlink")) { make(in("u1")); need(unlink(path)); say("unlink", path, 0); return 0; }
	if (IS("name-link")) { char n[8300]; make(in("k1")); snprintf(n, sizeof n, "%s/k2", dir); need(link(path, n)); say("link", n, 0); return 0; }
	if (IS("connect-tcp4")) { struct sockaddr_in a; tcp_listener(&a); need(connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a)); say("connect", addr4(&a), 0); return 0; }
	if (IS("connect-refused")) { struct sockaddr_in a; close(tcp_listener(&a)); int r = connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a); say("connect", addr4(&a), r ? -errno : 0); return 0; }
	if (IS("connect-nonblock")) { struct sockaddr_in a; tcp_listener(&a); int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), r = connect(s, (void *)&a, sizeof a); say("connect", addr4(&a), r ? -errno : 0); return 0; }
	if (IS("connect-tcp6")) { struct sockaddr_in6 b = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}; socklen_t l = sizeof b; int s = need(socket(AF_INET6, SOCK_STREAM, 0)); char t[64]; need(bind(s, (void *)&b, l)); need(listen(s, 1)); getsockname(s, (void *)&b, &l); need(connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&b, sizeof b)); snprintf(t, 64, "[::1]:%d", ntohs(b.sin6_port)); say("connect", t, 0); return 0; }
	if (IS("connect-fastopen")) { struct sockaddr_in a; tcp_listener(&a); need(sendto(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a)); say("connect", addr4(&a), 0); return 0; }
	if (IS("send-udp")) { struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9)}; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK); need(sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&a, sizeof a)); say("connect", "127.0.0.1:9", 0); return 0; }
	if (IS("connect-udp")) { struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9)}; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK); need(connect(socket(AF_INET, SOCK_DGRAM, 0), (void *)&a, sizeof a)); say("connect", "127.0.0.1:9", 0); return 0; }
	if (IS("connect-io-uring")) { struct sockaddr_in a; struct ring r; struct io_uring_sqe e = {.opcode = IORING_OP_CONNECT}; tcp_listener(&a); ring_open(&r); e.fd = need(socket(AF_INET, SOCK_STREAM, 0)); e.addr = (unsigned long)&a; e.off = sizeof a; ring_go(&r, &e); say("connect", addr4(&a), 0); return 0; }
	if (IS("connect-new-netns")) { need(unshare(CLONE_NEWNET)); struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9)}; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK); int r = connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a); say("connect", "127.0.0.1:9", r ? -errno : 0); return 0; }
	if (IS("connect-unix")) { struct sockaddr_un u = {.sun_family = AF_UNIX}; int s = need(socket(AF_UNIX, SOCK_STREAM, 0)); snprintf(u.sun_path, 107, "%.80s/sock", dir); need(bind(s, (void *)&u, sizeof u)); need(listen(s, 1)); need(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&u, sizeof u)); say("ipc", u.sun_path, 0); return 0; }
	if (IS("connect-unix-abstract")) { struct sockaddr_un u = {.sun_family = AF_UNIX}; int s = need(socket(AF_UNIX, SOCK_STREAM, 0)); strcpy(u.sun_path + 1, "rye-evade"); need(bind(s, (void *)&u, 12)); need(listen(s, 1)); need(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&u, 12)); say("ipc", "@rye-evade", 0); return 0; }
	if (IS("send-unix-dgram")) { struct sockaddr_un u = {.sun_family = AF_UNIX}; int s = need(socket(AF_UNIX, SOCK_DGRAM, 0)); snprintf(u.sun_path, 107, "%.80s/dsock", dir); need(bind(s, (void *)&u, sizeof u)); need(sendto(socket(AF_UNIX, SOCK_DGRAM, 0), "x", 1, 0, (void *)&u, sizeof u)); say("ipc", u.sun_path, 0); return 0; }
	if (IS("socket-raw")) { need(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)); say("escape", "raw_socket", 0); return 0; }
	if (IS("socket-packet")) { need(socket(AF_PACKET, SOCK_RAW, 0)); say("escape", "packet_socket", 0); return 0; }
	if (IS("socket-vsock")) { int r = socket(40, SOCK_STREAM, 0); say("escape", "vsock", r < 0 ? -errno : 0); return 0; }
	if (IS("inject-ptrace")) { pid_t p = fork(); if (!p) { pause(); _exit(0); } need(ptrace(PTRACE_ATTACH, p, 0, 0)); kill(p, SIGKILL); say("escape", "ptrace", 0); return 0; }
	if (IS("inject-vm-writev")) { static char x; struct iovec l = {&x, 1}; pid_t p = fork(); if (!p) { pause(); _exit(0); } need(process_vm_writev(p, &l, 1, &l, 1, 0)); kill(p, SIGKILL); say("escape", "process_vm_writev", 0); return 0; }
	if (IS("inject-proc-mem")) { pid_t p = fork(); if (!p) { pause(); _exit(0); } snprintf(path, sizeof path, "/proc/%d/mem", p); need(open(path, O_RDWR)); kill(p, SIGKILL); say("open", path, 0); return 0; }
	if (IS("ns-unshare")) { need(unshare(CLONE_NEWUTS)); say("escape", "unshare", 0); return 0; }
	if (IS("ns-setns")) { int f = need(open("/proc/self/ns/uts", O_RDONLY)); need(setns(f, 0)); say("escape", "setns", 0); return 0; }
	if (IS("call-bpf")) { char a[128] = {0}; long r = syscall(__NR_bpf, 5, a, sizeof a); say("escape", "bpf", r < 0 ? -errno : 0); return 0; }
	if (IS("call-mount")) { need(unshare(CLONE_NEWNS)); need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)); say("escape", "mount", 0); return 0; }
	if (IS("call-memfd")) { need(memfd_create("x", 0)); say("escape", "memfd", 0); return 0; }
	if (IS("call-tiocsti")) { int m = need(posix_openpt(O_RDWR | O_NOCTTY)); char c = 'x'; long r; unlockpt(m); r = ioctl(m, TIOCSTI, &c); say("escape", "tiocsti", r < 0 ? -errno : 0); return 0; }
	if (IS("call-module")) { long r = syscall(__NR_finit_module, -1, "", 0); say("escape", "module", r < 0 ? -errno : 0); return 0; }
	if (IS("call-io-uring")) { struct ring r; ring_open(&r); say("escape", "io_uring", 0); return 0; }
#if defined(__x86_64__)
	if (IS("exec-int80")) { char *t = low(tiny); unsigned *v = (unsigned *)low(""); v[0] = (unsigned)(long)t; v[1] = 0; pid_t p = fork(); if (!p) { _exit(int80(11, (long)t, (long)v, (long)(v + 1)) < 0 ? CANNOT : 0); } int st; waitpid(p, &st, 0); if (WEXITSTATUS(st) == CANNOT) return CANNOT; say("exec", tiny, 0); return 0; }
	if (IS("open-int80")) { char *t; make(in("f80")); t = low(path); if (int80(5, (long)t, O_RDWR, 0) < 0) return CANNOT; say("open", path, 0); return 0; }
	if (IS("connect-int80")) { struct sockaddr_in a; tcp_listener(&a); char *t = low(""); memcpy(t, &a, sizeof a); int s = socket(AF_INET, SOCK_STREAM, 0); if (int80(362, s, (long)t, sizeof a) < 0) return CANNOT; say("connect", addr4(&a), 0); return 0; }
#endif
	return more();
}

static int vm_exec(void *x) { char *const av[] = {"tiny", (char *)name, NULL}; execve(tiny, av, env); return CANNOT; }
static int nothing(void *x) { return 0; }
static char stack_[1 << 16];

static int more(void)
{
	int i, n = tries();

	if (IS("exec-clone-vm")) { pid_t p = need(clone(vm_exec, stack_ + sizeof stack_, CLONE_VM | CLONE_FILES | SIGCHLD, NULL)); waitpid(p, NULL, 0); say("exec", tiny, 0); return 0; }
	if (IS("exec-chroot")) { CHILD(if (chroot(dir)) _exit(CANNOT); execve("/tiny", av, env)); say("exec", tiny, 0); return 0; }
	if (IS("exec-proc-root")) { snprintf(path, sizeof path, "/proc/self/root%.4000s", tiny); CHILD(execve(path, av, env)); say("exec", tiny, 0); return 0; }
	if (IS("exec-container")) { /* own mount and pid namespaces, own root */
		char r[8300]; snprintf(r, sizeof r, "%s/root", dir); need(mkdir(r, 0755)); need(unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC));
		need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)); need(mount("none", r, "tmpfs", 0, NULL)); snprintf(path, sizeof path, "%s/tiny", r); copy(tiny, path);
		CHILD(if (chdir(r)) _exit(CANNOT); if (syscall(__NR_pivot_root, ".", ".") ? mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") /* an initramfs cannot be pivoted away */ : umount2(".", MNT_DETACH)) _exit(CANNOT); execve("/tiny", av, env)); say("exec", "/tiny", 0); return 0; }
	if (IS("exec-path-race")) {
		char a[8300], b[8300]; long na = 0, nb = 0; snprintf(a, sizeof a, "%s/pa", dir); snprintf(b, sizeof b, "%s/pb", dir); copy("/proc/self/exe", a); copy("/proc/self/exe", b);
		strcpy(path, a); race(path + strlen(path) - 1);
		for (i = 0; i < n; i++) { int st; pid_t p = vfork(); if (!p) { char *const av[] = {"which", NULL}; execve(path, av, env); _exit(99); } waitpid(p, &st, 0); if (WEXITSTATUS(st) == 10) na++; else if (WEXITSTATUS(st) == 11) nb++; }
		race_over(); say2("exec-path-race", a, na, b, nb); return 0; }
	if (IS("exec-pid-reuse")) { /* clone3 with set_tid: the pid of one that is gone */
		unsigned long long args[11] = {0}; pid_t p = fork(), q; int pidv; if (!p) vm_exec(NULL); waitpid(p, NULL, 0); pidv = p; args[4] = SIGCHLD; args[8] = (unsigned long)&pidv; args[9] = 1;
		q = syscall(435, args, 80); if (q < 0) return CANNOT; if (!q) { vm_exec(NULL); _exit(1); } waitpid(q, NULL, 0); say("pid-reuse", tiny, q == p); return 0; }
	if (IS("exec-child-cgroup") || IS("exec-sibling-cgroup")) {
		const char *c = cgroup_dir(); char d[8300]; if (!c) return CANNOT; if (IS("exec-child-cgroup")) snprintf(d, sizeof d, "%s/inner", c); else snprintf(d, sizeof d, "%s-beside", c);
		need(mkdir(d, 0755)); CHILD(join_cgroup(d); execve(tiny, av, env)); usleep(50000); rmdir(d); say("exec", tiny, 0); return 0; }
	if (IS("map-program")) { int f = need(open(tiny, O_RDONLY)); if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0) == MAP_FAILED) return CANNOT; say("map", tiny, 0); return 0; }
	if (IS("open-path-race")) {
		char a[8300], b[8300]; long na = 0, nb = 0; ino_t ia; snprintf(a, sizeof a, "%s/ra", dir); snprintf(b, sizeof b, "%s/rb", dir); make(a); make(b); ia = ino_of(a); strcpy(path, a); race(path + strlen(path) - 1);
		for (i = 0; i < n; i++) { struct stat st; int f = open(path, O_RDONLY); if (f < 0) continue; fstat(f, &st); close(f); if (st.st_ino == ia) na++; else nb++; }
		race_over(); say2("open-race", a, na, b, nb); return 0; }
	if (IS("open-descriptor-race")) { /* another thread puts a decoy under the number that open is about to return */
		char b[8300]; pthread_t t; snprintf(b, sizeof b, "%s/decoy", dir); make(in("real")); make(b); decoy = need(open(b, O_RDWR)); target = decoy + 1; need(-pthread_create(&t, NULL, swap_fd, NULL));
		for (i = 0; i < n; i++) { int f = open(path, O_RDONLY); if (f >= 0) close(f); } stop = 1; pthread_join(t, NULL); say2("open-race", path, n, b, 0); return 0; }
	if (IS("open-long-path")) { /* 4095 bytes, the longest there can be */
		char part[201], rest[4200]; size_t len = strlen(dir); memset(part, 'p', 200); part[200] = 0; strcpy(path, dir); need(chdir(dir));
		while (len + 201 + 2 <= 4095 - 200) { need(mkdir(part, 0755)); need(chdir(part)); strcat(path, "/"); strcat(path, part); len += 201; }
		memset(rest, 'r', sizeof rest); rest[4095 - len - 1] = 0; if (strlen(rest) > 255) { rest[200] = 0; need(mkdir(rest, 0755)); need(chdir(rest)); strcat(path, "/"); strcat(path, rest); len += 201; memset(rest, 'r', sizeof rest); rest[4095 - len - 1] = 0; }
		make(rest); strcat(path, "/"); strcat(path, rest); if (strlen(path) != 4095) return 1; need(open(path, O_RDONLY)); say("open", path, 0); return 0; }
	if (IS("open-overlayfs")) {
		char o[8400], m[8300]; static const char *const sub[] = {"low", "up", "work", "all"}; for (i = 0; i < 4; i++) { snprintf(m, sizeof m, "%s/%s", dir, sub[i]); need(mkdir(m, 0755)); }
		snprintf(o, sizeof o, "%s/low/f", dir); make(o); need(unshare(CLONE_NEWNS)); need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)); snprintf(o, sizeof o, "lowerdir=%.2000s/low,upperdir=%.2000s/up,workdir=%.2000s/work", dir, dir, dir); need(mount("o", m, "overlay", 0, o));
		strcat(m, "/f"); need(open(m, O_RDWR)); say("open", m, 0); return 0; }
	if (IS("open-proc-root")) { char p2[8300]; make(in("f16")); snprintf(p2, sizeof p2, "/proc/self/root%.4000s", path); need(open(p2, O_RDONLY)); say("open", path, 0); return 0; }
	if (IS("open-tmpfile")) { char l[64]; int f = need(open(dir, O_TMPFILE | O_RDWR, 0600)); in("linked"); snprintf(l, 64, "/proc/self/fd/%d", f); need(linkat(AT_FDCWD, l, AT_FDCWD, path, AT_SYMLINK_FOLLOW)); say("link", path, 0); return 0; }
	if (IS("open-io-uring-sqpoll")) { /* the polling thread does it; no system call at all */
		struct io_uring_params p = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 1000}; struct ring r; char *a, *c; unsigned t; r.fd = need(syscall(__NR_io_uring_setup, 8, &p));
		a = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_SQ_RING); c = mmap(0, p.cq_off.cqes + p.cq_entries * 16, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_CQ_RING); r.sq = mmap(0, p.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_SQES);
		struct io_uring_sqe e = {.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD}; in("f17"); e.addr = (unsigned long)path; e.open_flags = O_CREAT | O_WRONLY; e.len = 0644; t = *(unsigned *)(a + p.sq_off.tail); r.sq[t & *(unsigned *)(a + p.sq_off.ring_mask)] = e; ((unsigned *)(a + p.sq_off.array))[t & *(unsigned *)(a + p.sq_off.ring_mask)] = t & *(unsigned *)(a + p.sq_off.ring_mask);
		__atomic_store_n((unsigned *)(a + p.sq_off.tail), t + 1, __ATOMIC_RELEASE);
		for (i = 0; i < 3000 && __atomic_load_n((unsigned *)(c + p.cq_off.tail), __ATOMIC_ACQUIRE) == 0; i++) { if (*(volatile unsigned *)(a + p.sq_off.flags) & IORING_SQ_NEED_WAKEUP) syscall(__NR_io_uring_enter, r.fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0); usleep(1000); }
		if (access(path, F_OK)) return CANNOT; say("open", path, 0); return 0; }
	if (IS("receive-file")) { /* SCM_RIGHTS: the child never opens it */
		int sp[2], f; make(in("f18")); f = need(open(path, O_RDWR)); need(socketpair(AF_UNIX, SOCK_STREAM, 0, sp)); union { struct cmsghdr h; char b[CMSG_SPACE(sizeof(int))]; } u; char x = 'x'; struct iovec v = {&x, 1}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = u.b, .msg_controllen = sizeof u.b};
		pid_t p = fork(); if (!p) { close(f); need(recvmsg(sp[1], &m, 0)); _exit(0); } u.h.cmsg_level = SOL_SOCKET; u.h.cmsg_type = SCM_RIGHTS; u.h.cmsg_len = CMSG_LEN(sizeof(int)); memcpy(CMSG_DATA(&u.h), &f, sizeof f); need(sendmsg(sp[0], &m, 0)); waitpid(p, NULL, 0); say("receive", path, 0); return 0; }
	if (IS("receive-socket")) { struct sockaddr_in a; int l = tcp_listener(&a), c = need(socket(AF_INET, SOCK_STREAM, 0)), sp[2]; need(connect(c, (void *)&a, sizeof a)); (void)l; need(socketpair(AF_UNIX, SOCK_STREAM, 0, sp)); union { struct cmsghdr h; char b[CMSG_SPACE(sizeof(int))]; } u; char x = 'x'; struct iovec v = {&x, 1}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = u.b, .msg_controllen = sizeof u.b};
		pid_t p = fork(); if (!p) { close(c); need(recvmsg(sp[1], &m, 0)); _exit(0); } u.h.cmsg_level = SOL_SOCKET; u.h.cmsg_type = SCM_RIGHTS; u.h.cmsg_len = CMSG_LEN(sizeof(int)); memcpy(CMSG_DATA(&u.h), &c, sizeof c); need(sendmsg(sp[0], &m, 0)); waitpid(p, NULL, 0); say("receive-socket", addr4(&a), 0); return 0; }
	if (IS("name-unlink-race")) {
		char a[8300], b[8300]; long na = 0, nb = 0; snprintf(a, sizeof a, "%s/ua", dir); snprintf(b, sizeof b, "%s/ub", dir); strcpy(path, a); race(path + strlen(path) - 1); make(a); make(b);
		for (i = 0; i < n; i++) { if (unlink(path)) continue; if (access(a, F_OK)) { na++; make(a); } else { nb++; make(b); } }
		race_over(); say2("unlink-race", a, na, b, nb); return 0; }
	if (IS("name-unlink-io-uring")) { struct ring r; struct io_uring_sqe e = {.opcode = 36, .fd = AT_FDCWD}; make(in("u2")); ring_open(&r); e.addr = (unsigned long)path; if (ring_go(&r, &e) < 0) return CANNOT; say("unlink", path, 0); return 0; }
	if (IS("name-rename-io-uring")) { struct ring r; struct io_uring_sqe e = {.opcode = 35, .fd = AT_FDCWD}; char to[8300]; snprintf(to, sizeof to, "%s/r4", dir); make(in("r3")); ring_open(&r); e.addr = (unsigned long)path; e.len = AT_FDCWD; e.off = (unsigned long)to; if (ring_go(&r, &e) < 0) return CANNOT; say("rename", to, 0); return 0; }
	if (IS("name-exchange")) { char to[8300]; snprintf(to, sizeof to, "%s/x2", dir); make(in("x1")); make(to); need(syscall(316, AT_FDCWD, path, AT_FDCWD, to, 2)); say("rename", to, 0); return 0; }
	if (IS("name-mkdir")) { need(mkdir(in("made"), 0755)); say("mkdir", path, 0); return 0; }
	if (IS("name-rmdir")) { need(mkdir(in("gone"), 0755)); need(rmdir(path)); say("unlink", path, 0); return 0; }
	if (IS("name-symlink")) { need(symlink("/etc/passwd", in("sym"))); say("symlink", path, 0); return 0; }
	if (IS("name-chmod")) { make(in("c1")); need(chmod(path, 04755)); say("chmod", path, 0); return 0; }
	if (IS("name-fchmod")) { int f = need(open(in("c2"), O_CREAT | O_RDWR, 0644)); need(fchmod(f, 04755)); say("chmod", path, 0); return 0; }
	if (IS("name-chown")) { make(in("c3")); need(chown(path, 0, 0)); say("chown", path, 0); return 0; }
	if (IS("name-mknod")) { need(mknod(in("n1"), S_IFIFO | 0644, 0)); say("mknod", path, 0); return 0; }
	if (IS("connect-address-race")) { /* two ports, the address changes while the call runs; getpeername tells */
		struct sockaddr_in a = {.sin_family = AF_INET}, g; socklen_t l; long na = 0, nb = 0; char ta[64], tb[64]; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK); a.sin_port = htons(4242 * 2); flip_mask = 1; strcpy(ta, addr4(&a)); a.sin_port ^= 1 << 8; strcpy(tb, addr4(&a)); a.sin_port ^= 1 << 8; race((volatile char *)&a.sin_port + 1);
		for (i = 0; i < n; i++) { int s = socket(AF_INET, SOCK_DGRAM, 0); l = sizeof g; if (!connect(s, (void *)&a, sizeof a) && !getpeername(s, (void *)&g, &l)) { if (!strcmp(addr4(&g), ta)) na++; else nb++; } close(s); }
		race_over(); say2("connect-race", ta, na, tb, nb); return 0; }
	if (IS("send-mmsg")) { struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(11)}; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK); char x = 'x'; struct iovec v = {&x, 1}; struct mmsghdr m = {.msg_hdr = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}}; need(sendmmsg(socket(AF_INET, SOCK_DGRAM, 0), &m, 1, 0)); say("connect", "127.0.0.1:11", 0); return 0; }
	if (IS("send-udp-io-uring")) { struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(12)}; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK); char x = 'x'; struct iovec v = {&x, 1}; struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}; struct ring r; struct io_uring_sqe e = {.opcode = IORING_OP_SENDMSG, .len = 1}; ring_open(&r); e.fd = need(socket(AF_INET, SOCK_DGRAM, 0)); e.addr = (unsigned long)&m; if (ring_go(&r, &e) < 0) return CANNOT; say("connect", "127.0.0.1:12", 0); return 0; }
	if (IS("connect-unix-io-uring")) { struct sockaddr_un u = {.sun_family = AF_UNIX}; struct ring r; struct io_uring_sqe e = {.opcode = IORING_OP_CONNECT}; int s = need(socket(AF_UNIX, SOCK_STREAM, 0)); snprintf(u.sun_path, 107, "%.80s/us", dir); need(bind(s, (void *)&u, sizeof u)); need(listen(s, 1)); ring_open(&r); e.fd = need(socket(AF_UNIX, SOCK_STREAM, 0)); e.addr = (unsigned long)&u; e.off = sizeof u; if (ring_go(&r, &e) < 0) return CANNOT; say("ipc", u.sun_path, 0); return 0; }
	if (IS("socket-raw-io-uring")) { struct ring r; struct io_uring_sqe e = {.opcode = 45, .fd = AF_INET, .off = SOCK_RAW, .len = IPPROTO_ICMP}; ring_open(&r); if (ring_go(&r, &e) < 0) return CANNOT; say("escape", "raw_socket", 0); return 0; }
	if (IS("ns-clone")) { pid_t p = need(clone(nothing, stack_ + sizeof stack_, CLONE_NEWUTS | SIGCHLD, NULL)); waitpid(p, NULL, 0); say("escape", "clone_ns", p); return 0; }
	if (IS("call-setuid")) { need(syscall(__NR_setresuid, 0, 0, 0)); say("escape", "setuid", 0); return 0; }
	if (IS("call-pidfd-getfd")) { int p = need(syscall(434, getpid(), 0)); need(syscall(438, p, 0, 0)); say("escape", "pidfd_getfd", 0); return 0; }
	return CANNOT;
}

int main(int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], "which")) { /* of exec-path-race: by which name was I started? */
		ssize_t l = readlink("/proc/self/exe", path, sizeof path - 1);
		return l > 0 && path[l - 1] == 'a' ? 10 : 11;
	}
	if (argc != 3) return 2;
	name = argv[1];
	snprintf(dir, sizeof dir, "%s", argv[2]);
	snprintf(tiny, sizeof tiny, "%s/tiny", dir);
	return technique();
}
