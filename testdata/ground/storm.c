/* storm exec N TINY: N times vfork and exec of TINY with arguments of its own.
 * storm open N DIR FILES: N opens, round robin over FILES files in DIR.
 * storm burst N: N forks of a child that exits at once.
 * storm threads N: N forks of a child of 8 threads that all leave at the same moment, each by itself or (every
 *   second child) by exit_group.
 * Prints what it did as one line: "execs=N" and so on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what) { perror(what); exit(2); }

#define THREADS 8
static atomic_int ready;

static void leave_together(void)
{
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < THREADS)
		syscall(SYS_sched_yield);
}

static void *leave(void *status) /* the process's is the last thread's, before Linux 6.0 the first one's */
{
	leave_together();
	syscall(SYS_exit, (long)status);
	return NULL;
}

int main(int argc, char **argv)
{
	long n, i;

	if (argc < 3)
		return 2;
	n = atol(argv[2]);
	if (!strcmp(argv[1], "exec")) {
		for (i = 0; i < n; i++) {
			char a[32], b[32];
			char *av[] = {"tiny", a, "", "two words", b, NULL}, *ev[] = {"PATH=/bin", NULL};
			int st;
			pid_t p;

			snprintf(a, sizeof a, "n=%ld", i);
			snprintf(b, sizeof b, "\xff%ld\n", i * 7919);
			if (!(p = vfork())) {
				execve(argv[3], av, ev);
				_exit(127);
			}
			if (waitpid(p, &st, 0) != p || st)
				die("exec");
		}
		printf("execs=%ld\n", n);
	} else if (!strcmp(argv[1], "open")) {
		long files = atol(argv[4]);
		char path[4096];

		for (i = 0; i < n; i++) {
			int fd;

			snprintf(path, sizeof path, "%s/f%ld", argv[3], i % files);
			if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
				die(path);
			close(fd);
		}
		printf("opens=%ld\n", n);
	} else if (!strcmp(argv[1], "burst")) {
		for (i = 0; i < n; i++) {
			pid_t p = fork();

			if (!p)
				_exit(i & 0x7f);
			waitpid(p, NULL, 0);
		}
		printf("forks=%ld\n", n);
	} else if (!strcmp(argv[1], "threads")) {
		for (i = 0; i < n; i++) {
			pid_t p = fork();
			int st;

			if (!p) {
				for (int k = 1; k < THREADS; k++) {
					pthread_t t;

					if (pthread_create(&t, NULL, leave, (void *)(i & 0x3f)))
						_exit(125);
				}
				leave_together();
				syscall(i % 2 ? SYS_exit_group : SYS_exit, i & 0x3f);
			}
			if (waitpid(p, &st, 0) != p || st != (i & 0x3f) << 8)
				die("threads");
		}
		printf("forks=%ld\n", n);
	}
	return 0;
}
