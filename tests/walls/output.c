/* SPDX-License-Identifier: MIT */
/*
 * Floods: 40 MiB on stdout, on stderr, on both, and by a child that stays behind, where 1 MiB is
 * permitted and the run is to end at it.  Answers come by exit alone: stdout is what is attacked.
 *
 * wall output
 * options --output 1M --output-mode stop --timeout 20s
 * each
 * backends linux process
 * quiet
 * attempt flood_stdout: open without output | code output_limit
 * attempt flood_stderr: open without output | code output_limit
 * attempt flood_both: open without output | code output_limit
 * attempt flood_from_child: open without output | code output_limit
 */
#include "attempt.h"

enum { WANTED = 40 };

static int flood(int fd, int other)
{
	static char chunk[1 << 20];

	memset(chunk, 'x', sizeof chunk);
	for (int i = 0; i < WANTED; i++) {
		for (size_t at = 0; at < sizeof chunk;) {
			ssize_t n = write(i % 2 ? fd : other, chunk + at, sizeof chunk - at);

			if (n < 0)
				return errno;
			at += (size_t)n;
		}
	}
	return 0;
}

static int flood_stdout(void)
{
	return flood(1, 1);
}

static int flood_stderr(void)
{
	return flood(2, 2);
}

static int flood_both(void)
{
	return flood(1, 2);
}

static int flood_from_child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		_exit(flood(1, 1));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPIPE;
}

/* Exit 0 = all of it was taken.  No line of ours would arrive behind the flood. */
int main(int argc, char **argv)
{
	const struct attempt all[] = { { "flood_stdout", flood_stdout },
				       { "flood_stderr", flood_stderr },
				       { "flood_both", flood_both },
				       { "flood_from_child", flood_from_child } };

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; argc == 2 && i < sizeof all / sizeof all[0]; i++)
		if (strcmp(all[i].name, argv[1]) == 0)
			return all[i].run() == 0 ? 0 : 1;
	return 2;
}
