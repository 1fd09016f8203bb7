/* SPDX-License-Identifier: MIT */
/*
 * ready.c - one thing of the library's, once for each line of input: the seconds that it took.
 *
 * usage: ready warm|cold|pool DIRECTORY-OF-SB-LAUNCH
 *
 * What is got ready for the next time is not counted: it is done between two lines.
 */
#include <sandbox/sandbox.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sb_sandbox *sandbox;
static sb_pool *pool;
static sb_error err;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(int code)
{
	if (code >= 0)
		return;
	fprintf(stderr, "ready: %s: %s\n", err.where, err.message);
	exit(1);
}

static double python(void)
{
	static const char code[] = "print(1)";
	const sb_command command = { .size = sizeof command, .language = "python", .code = code,
		.code_len = sizeof code - 1 };
	sb_result *result = NULL;
	double began = now(), took;
	size_t len;

	check(sb_run(sandbox, NULL, &command, NULL, &result, &err));
	took = now() - began;
	if (strcmp(sb_result_output(result, SB_STDOUT, &len), "1\n"))
		exit(1);
	sb_result_free(result);
	return took;
}

static double from_pool(void)
{
	const char *const argv[] = { "/bin/true", NULL };
	const sb_command command = { .size = sizeof command, .argv = argv };
	sb_session *session = NULL;
	sb_process *process = NULL;
	sb_exit end = { .size = sizeof end };
	double began = now(), took;

	check(sb_pool_acquire(pool, NULL, &session, &err));
	check(sb_session_spawn(session, &command, NULL, &process, &err));
	check(sb_process_wait(process, NULL, &end, &err));
	took = now() - began;
	if (end.code)
		exit(1);
	sb_process_free(process);
	check(sb_pool_release(pool, session, NULL, &err));
	return took;
}

static void make_pool(void)
{
	const sb_limits limits = { .size = sizeof limits, .wall_ms = 5000, .memory_bytes = 256 << 20,
		.procs = 64 };
	const sb_spec spec = { .size = sizeof spec, .limits = &limits,
		.workspace_mode = SB_WORKSPACE_NONE };
	const sb_pool_options options = { .size = sizeof options, .spec = &spec };

	check(sb_pool_new(sandbox, &options, &pool, &err));
}

int main(int argc, char **argv)
{
	static const char *const order[] = { "linux", NULL };
	sb_sandbox_options options = { .size = sizeof options, .order = order };
	char line[64];

	if (argc != 3)
		return 2;
	options.helper_dir = argv[2];
	options.flags = strcmp(argv[1], "warm") ? 0 : SB_SANDBOX_WARM;
	check(sb_sandbox_new(&options, NULL, &sandbox, &err));
	if (!strcmp(argv[1], "pool"))
		make_pool();
	while (fgets(line, sizeof line, stdin)) {
		printf("%.9f\n", pool ? from_pool() : python());
		fflush(stdout);
		if (pool)
			check(sb_pool_warm(pool, 2, NULL, &err));
	}
	sb_pool_free(pool);
	sb_sandbox_free(sandbox);
	return 0;
}
