/* SPDX-License-Identifier: MIT */
/*
 * attempt.h - the frame of one file of escape attempts.
 *
 * A file fills attempts[] and gets its main() from here.  Each attempt runs in a child of its own
 * and answers with 0 when it got through, with an errno when it was held, or NONE when this
 * machine has nothing to attack.  One line each is printed:
 *
 *	open NAME              it got through
 *	shut NAME ERRNO-TEXT   it was held; "shut NAME signal N" when a signal ended it
 *	none NAME              nothing to attack here
 *
 * and DONE at the end, so that a program that was cut short is never taken for one that was held.
 * It exits with 1 if one was shut.
 * Arguments are the names to run; without any, all.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NONE (-1)

struct attempt {
	const char *name;
	int (*run)(void);
};

/* A variable that the driver sets; an attempt without its target is a fault of the test. */
static inline const char *target(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL || value[0] == '\0') {
		printf("fault: %s is not set\n", name);
		fflush(stdout);
		_exit(99);
	}
	return value;
}

static inline int number(const char *name)
{
	return (int)strtol(target(name), NULL, 10);
}

/* errno of a call that failed, 0 of one that did not. */
static inline int verdict(long result)
{
	return result < 0 ? errno : 0;
}

/* Of a system call that cannot succeed with these arguments: it got through unless the wall spoke. */
static inline int reached(long result)
{
	if (result < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES))
		return errno;
	return 0;
}

/* Opens, then closes: whether that much was let through. */
static inline int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* 1 if it was held. */
static inline int attempt_report(const char *name, int status)
{
	if (WIFSIGNALED(status))
		printf("shut %s signal %d\n", name, WTERMSIG(status));
	else if (WEXITSTATUS(status) == 0)
		printf("open %s\n", name);
	else if (WEXITSTATUS(status) == 255)
		printf("none %s\n", name);
	else
		printf("shut %s %s\n", name, strerror(WEXITSTATUS(status)));
	fflush(stdout);
	return !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 255);
}

static inline int attempt_one(const struct attempt *a)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0) {
		printf("fault: fork: %s\n", strerror(errno));
		exit(99);
	}
	if (pid == 0) {
		const char *patience = getenv("PATIENCE"); /* more of it on a slow machine */

		alarm(patience ? (unsigned)atoi(patience) : 50);
		int got = a->run();
		_exit(got == NONE ? 255 : got > 254 ? EIO : got);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return attempt_report(a->name, status);
}

static inline int attempt_main(const struct attempt *all, int argc, char **argv)
{
	int shut = 0;

	for (const struct attempt *a = all; a->name != NULL; a++) {
		int wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], a->name) == 0;
		if (wanted)
			shut |= attempt_one(a);
	}
	printf("DONE\n");
	return shut;
}

#define ATTEMPTS(...)                                                    \
	static const struct attempt attempts[] = { __VA_ARGS__, { 0 } }; \
	int main(int argc, char **argv)                                  \
	{                                                                \
		return attempt_main(attempts, argc, argv);               \
	}

#endif
