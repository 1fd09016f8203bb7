/* SPDX-License-Identifier: MIT */
/*
 * More processor time than the budget: 3 s of it under a budget of 500 ms, in one process, in
 * children that ended, and by many at once.
 *
 * wall cpu
 * options --cpu 500ms --timeout 30s
 * each
 * backends linux process
 * attempt spin: open without cpu | code cpu_limit
 * attempt short_children: open without cpu | code cpu_limit
 * attempt side_by_side: open without cpu | code cpu_limit
 * attempt unwaited: open without cpu | code cpu_limit | needs cpu-cgroup
 */
#include "attempt.h"
#include <sys/resource.h>
#include <time.h>

static void burn(double seconds)
{
	struct timespec now;
	double start, at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	start = at = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	while (at - start < seconds) {
		for (volatile int i = 0; i < 100000; i++)
			continue;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
		at = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	}
}

static int spin(void)
{
	burn(3);
	return 0;
}

static int short_children(void)
{
	for (int i = 0; i < 15; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			burn(0.2);
			_exit(0);
		}
		if (pid < 0)
			return errno;
		waitpid(pid, NULL, 0);
	}
	return 0;
}

static int side_by_side(void)
{
	for (int i = 0; i < 6; i++) {
		if (fork() == 0) {
			setsid();
			burn(0.5);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		continue;
	return 0;
}

/* Children that nobody waits for leave no trace in their parent's account. */
static int unwaited(void)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 15; i++) {
		if (fork() == 0) {
			burn(0.2);
			_exit(0);
		}
		usleep(200 * 1000);
	}
	while (wait(NULL) > 0)
		continue;
	return 0;
}

ATTEMPTS({ "spin", spin }, { "short_children", short_children },
	 { "side_by_side", side_by_side }, { "unwaited", unwaited })
