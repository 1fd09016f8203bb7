/* SPDX-License-Identifier: MIT */
/*
 * More processes than the limit: 60 under a limit of 20, by fork, by thread, and by a tree whose
 * parents end at once.  All end by themselves within seconds.
 *
 * wall pids
 * options --pids 20 --timeout 20s
 * each
 * attempt forks: open without pids
 * attempt threads: open without pids
 * attempt orphans: open without pids
 * attempt vforks: open without pids
 */
#include "attempt.h"
#include <pthread.h>

enum { WANTED = 60 };

static int forks(void)
{
	int made = 0;

	for (; made < WANTED; made++) {
		pid_t pid = fork();

		if (pid == 0) {
			sleep(2);
			_exit(0);
		}
		if (pid < 0)
			break;
	}
	return made == WANTED ? 0 : errno;
}

static void *nap(void *unused)
{
	sleep(2);
	return unused;
}

static int threads(void)
{
	for (int made = 0; made < WANTED; made++) {
		pthread_t thread;
		int got = pthread_create(&thread, NULL, nap, NULL);

		if (got != 0)
			return got;
	}
	return 0;
}

/* Each child leaves a grandchild behind and ends: counted by parentage there are none. */
static int orphans(void)
{
	for (int made = 0; made < WANTED; made++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			pid_t below = fork();

			if (below == 0) {
				setsid();
				sleep(3);
				_exit(0);
			}
			_exit(below < 0 ? errno : 0);
		}
		if (pid < 0)
			return errno;
		waitpid(pid, &status, 0);
		if (status != 0)
			return WEXITSTATUS(status);
	}
	return 0;
}

static int vforks(void)
{
	volatile int made = 0;

	for (; made < WANTED; made++) {
		char *const argv[] = { (char *)"sleep", (char *)"2", NULL };
		pid_t pid = vfork();

		if (pid == 0) {
			execv("/bin/sleep", argv);
			_exit(127);
		}
		if (pid < 0)
			break;
	}
	return made == WANTED ? 0 : errno;
}

ATTEMPTS({ "forks", forks }, { "threads", threads }, { "orphans", orphans }, { "vforks", vforks })
