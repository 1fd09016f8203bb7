/* SPDX-License-Identifier: MIT */
/*
 * ready.c - one thing of the library's, once for each line of input: the seconds that it took.
 *
 * usage: ready DIRECTORY-OF-SB-LAUNCH pool
 *        ready DIRECTORY-OF-SB-LAUNCH warm|cold BACKEND LANGUAGE
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

/* fd_write(1, "1\n"), exported as _start with a memory of one page. */
static const char module[] =
	"\0asm\1\0\0\0\1\14\2\140\4\177\177\177\177\1\177\140\0\0"
	"\2\43\1\26wasi_snapshot_preview1\10fd_write\0\0\3\2\1\1\5\3\1\0\1"
	"\7\23\2\6memory\2\0\6_start\0\1\12\17\1\15\0\101\1\101\0\101\1\101\14\20\0\32\13"
	"\13\20\1\0\101\0\13\12\10\0\0\0\2\0\0\0001\n";

static const struct { const char *language, *code; size_t len; } programs[] = {
	{ "python", "print(1)", 8 }, { "lua", "print(1)", 8 }, { "js", "console.log(1)", 14 },
	{ "ts", "enum E { One = 1 }\ninterface I { a: E }\nfunction id<T>(x: T): T { return x }\n"
		"const v: I = { a: E.One }\nconsole.log(id(v.a as number))", 0 },
	{ "wasm", module, sizeof module - 1 },
};
static size_t program;

static double code(void)
{
	const size_t len_of = programs[program].len ? programs[program].len : strlen(programs[program].code);
	const sb_command command = { .size = sizeof command, .language = programs[program].language,
		.code = programs[program].code, .code_len = len_of };
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
	const char *order[] = { "linux", NULL };
	sb_sandbox_options options = { .size = sizeof options, .order = order };
	char line[64];

	if (argc != 3 && argc != 5)
		return 2;
	options.helper_dir = argv[1];
	options.flags = strcmp(argv[2], "warm") ? 0 : SB_SANDBOX_WARM;
	if (argc == 5) {
		order[0] = argv[3];
		while (program < sizeof programs / sizeof *programs && strcmp(programs[program].language, argv[4]))
			program++;
	}
	if (program == sizeof programs / sizeof *programs)
		return 2;
	check(sb_sandbox_new(&options, NULL, &sandbox, &err));
	if (!strcmp(argv[2], "pool"))
		make_pool();
	while (fgets(line, sizeof line, stdin)) {
		printf("%.9f\n", pool ? from_pool() : code());
		fflush(stdout);
		if (pool)
			check(sb_pool_warm(pool, 2, NULL, &err));
	}
	sb_pool_free(pool);
	sb_sandbox_free(sandbox);
	return 0;
}
