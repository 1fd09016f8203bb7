/* SPDX-License-Identifier: MIT */
/*
 * many.c - an application that makes run after run for as long as it lives: nothing grows.
 *
 * usage: many [DIRECTORY OF sb-launch] [RUNS]
 *
 * Started with GLIBC_TUNABLES=glibc.malloc.tcache_count=0, since the C library counts what lies in the caches
 * of its threads as used.
 *
 * After a beginning in which caches fill, and at the end, it counts its descriptors, threads, children,
 * mounts, namespaces and cgroups, which must be as many, and its memory, which may have grown by 1 %.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <malloc.h>
#include <sandbox/sandbox.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/folder.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define COUNT UNIT_LEN

/* It has some 300 KiB, and a page that a deeper call or another order of blocks is the first to touch is more than
 * 1 % of that.  One for each run would be thousands. */
enum { RUNS = 1000, BEGINNING = 150, FEW_PAGES_KIB = 32 };

static sb_sandbox_options options = { .size = sizeof options };
static long runs = RUNS;
static sb_sandbox *sandbox;
static sb_error err;

/* ---- Runs of every fate ------------------------------------------------------------------------ */

static const sb_limits short_time = { .size = sizeof short_time, .wall_ms = 30 };
static const sb_limits little = { .size = sizeof little, .out_stream_bytes = 100 };
static const sb_limits cpu = { .size = sizeof cpu, .cpu_ms = 5000 };
static const char code[] = "echo x >/out/f; cat /in/g";
static const char *const process_only[] = { "process", NULL };

static const struct fate {
	const char *line;        /* for sh -c; NULL: code that leaves a file */
	const sb_limits *limits;
	const char *const *backends;
	int outcome, code, error;
} fates[] = {
	{ "exit 3", NULL, NULL, SB_OUTCOME_EXITED, 3, 0 },
	{ "kill -9 $$", NULL, NULL, SB_OUTCOME_SIGNALED, -1, 0 },
	{ "sleep 9", &short_time, NULL, SB_OUTCOME_TIMED_OUT, -1, 0 },
	{ "head -c 5000 /dev/zero", &little, NULL, SB_OUTCOME_EXITED, 0, 0 },
	{ "sleep 99 & exit 4", &cpu, NULL, SB_OUTCOME_EXITED, 4, 0 },
	{ NULL, NULL, NULL, SB_OUTCOME_EXITED, 0, 0 },
	{ "exit 5", NULL, process_only, SB_OUTCOME_EXITED, 5, 0 },
	{ "refused", NULL, NULL, 0, 0, SB_ERR_NOT_FOUND },
};

static void one_run(const struct fate *f)
{
	const sb_file in = { .size = sizeof in, .path = "g", .data = "hello", .len = 5 };
	const sb_file *const files[] = { &in, NULL };
	const sb_spec spec = { .size = sizeof spec, .limits = f->limits, .backends = f->backends,
			       .allow_weaker = f->backends ? SB_WALL_BIT(SB_WALL_COUNT) - 1 : 0,
			       .workspace_mode = SB_WORKSPACE_NONE };
	const sb_command command = { .size = sizeof command,
				     .argv = f->line ? LIST("sh", "-c", f->line) : NULL,
				     .language = f->line ? NULL : "bash", .code = f->line ? NULL : code,
				     .code_len = f->line ? 0 : sizeof code - 1, .files = f->line ? NULL : files };
	const sb_command none = { .size = sizeof none, .argv = LIST("/no/such/program") };
	sb_result *result = NULL;
	int rc = sb_run(sandbox, &spec, f->error ? &none : &command, NULL, &result, &err);

	if (f->error ? rc == 0 : rc < 0)
		fail_msg("%s: %d, %s", f->line ? f->line : "code", rc, rc ? err.message : "");
	if (rc == 0 && (sb_result_outcome(result) != f->outcome || sb_result_code(result) != f->code))
		fail_msg("%s: %s, code %d", f->line ? f->line : "code",
			 sb_outcome_name(sb_result_outcome(result)), sb_result_code(result));
	if (rc == 0)
		assert_non_null(sb_result_json(result));
	sb_result_free(result);
}

static void explain(void)
{
	const sb_command command = { .size = sizeof command, .argv = LIST("true") };
	sb_plan *plan = NULL;

	assert_int_equal(sb_explain(sandbox, NULL, &command, &plan, &err), 0);
	sb_plan_free(plan);
}

/* ---- What there is ----------------------------------------------------------------------------- */

static long entries(const char *path)
{
	DIR *dir = opendir(path);
	long count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static long lines_of(const char *path)
{
	FILE *file = fopen(path, "re");
	long count = 0;

	assert_non_null(file);
	for (int c; (c = getc(file)) != EOF;)
		count += c == '\n';
	fclose(file);
	return count;
}

/* Of its own making: pages of programs come and go as they are used. */
static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;

	assert_non_null(file);
	while (kib < 0 && fgets(line, sizeof line, file))
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtol(line + 8, NULL, 10);
	fclose(file);
	assert_true(kib > 0);
	return kib;
}

typedef struct census {
	long descriptors, threads, mounts, children, kib;
	size_t used;
	char namespaces[8][64];
} census;

static census count_all(void)
{
	static const char *const kinds[] = { "cgroup", "ipc", "mnt", "net", "pid", "user", "uts", "time" };
	census c = { .descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task"),
		     .mounts = lines_of("/proc/self/mountinfo"), .kib = resident_kib(),
		     .used = mallinfo2().uordblks };

	c.children = waitpid(-1, NULL, WNOHANG) >= 0;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		char path[64];

		snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
		ssize_t n = readlink(path, c.namespaces[i], sizeof c.namespaces[i] - 1);

		c.namespaces[i][n > 0 ? n : 0] = '\0';
	}
	return c;
}

/* Of a box of ours: "sandbox-PID-...". */
static int cgroups_left(void)
{
	char line[128];

	snprintf(line, sizeof line, "test -z \"$(find /sys/fs/cgroup -type d -name 'sandbox-%d-*' 2>/dev/null)\"", (int)getpid());
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(execl("/bin/sh", "sh", "-c", line, (char *)NULL));
	waitpid(pid, &status, 0);
	return status;
}

static void nothing_grows(void **state)
{
	census before = { .threads = 0 }, after;

	(void)state;
	for (long i = 0; i < BEGINNING + runs; i++) {
		if (i == BEGINNING)
			before = count_all();
		one_run(&fates[(size_t)i % COUNT(fates)]);
		if (i % 10 == 0)
			explain();
	}
	after = count_all();
	assert_int_equal(after.descriptors, before.descriptors);
	assert_int_equal(after.threads, before.threads);
	assert_int_equal(after.mounts, before.mounts);
	assert_int_equal(after.children, 0);
	assert_memory_equal(after.namespaces, before.namespaces, sizeof before.namespaces);
	assert_int_equal(cgroups_left(), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which keep what is freed */
	if (after.used > before.used + before.used / 100)
		fail_msg("%zu bytes are in use, %zu were", after.used, before.used);
	if (after.kib > before.kib + before.kib / 100 + FEW_PAGES_KIB)
		fail_msg("%ld KiB are resident, %ld were", after.kib, before.kib);
#endif
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_grows) };

	options.helper_dir = argc > 1 ? argv[1] : NULL;
	if (argc > 2)
		runs = strtol(argv[2], NULL, 10);
	if (folder_enter(NULL) || runs < 1 || sb_sandbox_new(&options, NULL, &sandbox, &err) < 0)
		return 1;
	int failed = cmocka_run_group_tests_name("many", tests, NULL, folder_leave);

	sb_sandbox_free(sandbox);
	return failed;
}
