/* Deterministic work for benchmarks, static and single-threaded.
 *   workload exec N TINY     vfork and exec of TINY, 8 arguments
 *   workload open N DIR      open and close, round robin over 2,000 files in DIR (made first with mktree)
 *   workload mixed N DIR     N times exec of itself, which opens, reads and closes 40 files: like a build
 *   workload mktree 0 DIR
 * Prints "ops=N ns=WALL". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define FILES 2000
static char names[FILES][512];
static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void die(const char *m) { perror(m); exit(2); }
static void run(const char *path, char **av)
{
	char *ev[] = {"PATH=/usr/bin:/bin", "HOME=/root", NULL};
	int st;
	pid_t p = vfork();

	if (!p) { execve(path, av, ev); _exit(127); }
	if (waitpid(p, &st, 0) < 0 || st) die("exec");
}
int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0, i;
	long long t0;

	if (argc < 4) return 2;
	if (strcmp(argv[1], "exec"))
		for (i = 0; i < FILES; i++) snprintf(names[i], 512, "%s/src-%02ld/pkg/file_%04ld.go", argv[3], i % 40, i);
	if (!strcmp(argv[1], "mktree")) {
		char d[512];
		for (i = 0; i < 40; i++) { snprintf(d, 512, "%s/src-%02ld", argv[3], i); mkdir(d, 0755); strcat(d, "/pkg"); mkdir(d, 0755); }
		for (i = 0; i < FILES; i++) { int f = open(names[i], O_WRONLY | O_CREAT, 0644); if (f < 0) die(names[i]); if (write(f, names[i], strlen(names[i])) < 0) die("write"); close(f); }
		return 0;
	}
	if (!strcmp(argv[1], "leaf")) {
		char buf[4096];
		volatile long spin;
		for (i = 0; i < 40; i++) { int f = open(names[(n * 40 + i) % FILES], O_RDONLY | O_CLOEXEC); if (f < 0) die("leaf"); if (read(f, buf, 4096) < 0) die("read"); close(f); }
		for (spin = 0; spin < 400000; spin++) ; /* some user time, as a compiler has */
		_exit(0);
	}
	t0 = now();
	for (i = 0; i < n; i++) {
		if (!strcmp(argv[1], "exec")) {
			char *av[] = {"tiny", "--arg1=alpha", "-c", "for i in a b c", "--output", "/tmp/out/file.o", "-Wall", "src/main.c", NULL};
			run(argv[3], av);
		} else if (!strcmp(argv[1], "open")) {
			int f = open(names[i % FILES], O_RDONLY | O_CLOEXEC);
			if (f < 0) die("open");
			close(f);
		} else {
			char k[20];
			char *av[] = {argv[0], "leaf", k, argv[3], NULL};
			snprintf(k, sizeof k, "%ld", i);
			run(argv[0], av);
		}
	}
	printf("ops=%ld ns=%lld\n", n, now() - t0);
	return 0;
}
