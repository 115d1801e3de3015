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
static int need(long r) { if (r < 0) { fprintf(stderr, "%s: %s\n", name, strerror(errno)); exit(errno == EPERM || errno == ENOSYS || errno == EAFNOSUPPORT || errno == EINVAL || errno == EOPNOTSUPP || errno == ENODEV || errno == EACCES || errno == ENOMEM || errno == EPROTONOSUPPORT ? CANNOT : 1); } return r; }
static const char *in(const char *file) { snprintf(path, sizeof path, "%s/%s", dir, file); return path; }
static void make(const char *p) { int f = open(p, O_CREAT | O_WRONLY, 0644); need(f); close(f); }
static char *const env[] = {"PATH=/bin", NULL};

/* A child that execs tiny in some way; the parent reports. */
#define CHILD(how) do { pid_t p_ = fork(); int st_; if (!p_) { char *const av[] = {"tiny", (char *)name, NULL}; (void)av; how; _exit(CANNOT); } waitpid(p_, &st_, 0); if (WEXITSTATUS(st_) == CANNOT) exit(CANNOT); } while (0)

#if defined(__x86_64__)
static long int80(long n, long a, long b, long c)
{
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
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
		for (i = 0; i < 2000; i++) { pid_t p = vfork(); if (!p) { char *const av[] = {"tiny", argbuf, NULL}; execve(tiny, av, env); _exit(1); } waitpid(p, NULL, 0); }
		stop = 1; pthread_join(t, NULL); (void)wrong; say("exec-race", tiny, 2000); return 0; }
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
	return CANNOT;
}

int main(int argc, char **argv)
{
	if (argc != 3) return 2;
	name = argv[1];
	snprintf(dir, sizeof dir, "%s", argv[2]);
	snprintf(tiny, sizeof tiny, "%s/tiny", dir);
	return technique();
}
