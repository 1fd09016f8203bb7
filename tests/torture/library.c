/* SPDX-License-Identifier: MIT */
/*
 * library.c - an application that holds the library wrong, or in a bad place: records of every size,
 * no memory of what it set, calls from a forked child, from many threads, while it closes, with
 * descriptors missing.  Through the public headers alone, with real guests.
 *
 * usage: library [DIRECTORY OF sb-launch]
 *
 * Each test ends with the descriptors, children, signals and mask that it began with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sandbox/sandbox.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/descriptors.h"
#include "../unit/folder.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define COUNT UNIT_LEN

static sb_sandbox_options options = { .size = sizeof options };
static sb_sandbox *sandbox;
static _Thread_local sb_error err;

static const sb_spec no_workspace = { .size = sizeof no_workspace,
				      .workspace_mode = SB_WORKSPACE_NONE };

/* ---- The state of the host ---------------------------------------------------------------- */

static int files_before;
static void (*handlers_before[32])(int); /* whoever starts this may ignore some */

static int set_up(void **state)
{
	(void)state;
	files_before = open_descriptors();
	for (int i = 1; i < 32; i++) {
		struct sigaction old;

		if (sigaction(i, NULL, &old) == 0)
			handlers_before[i] = old.sa_handler;
	}
	return sb_sandbox_new(&options, NULL, &sandbox, &err) < 0;
}

static int tear_down(void **state)
{
	struct sigaction old;
	sigset_t mask;

	(void)state;
	sb_sandbox_free(sandbox);
	sandbox = NULL;
	assert_int_equal(open_descriptors(), files_before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	for (int i = 1; i < 32; i++) {
		assert_int_equal(sigismember(&mask, i), 0);
		assert_int_equal(sigaction(i, NULL, &old), 0);
		if (i != SIGSEGV && i != SIGBUS && i != SIGFPE && i != SIGILL && i != SIGSYS)
			assert_true(old.sa_handler == handlers_before[i]);
	}
	return 0;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static int run_line(const char *line, const sb_wait *wait, sb_result **result, sb_error *why)
{
	const char *const argv[] = { "sh", "-c", line, NULL };
	const sb_command command = { .size = sizeof command, .argv = argv };

	return sb_run(sandbox, &no_workspace, &command, wait, result, why);
}

/* Runs it; the exit code, or a failure of the test. */
static int code_of(const char *line)
{
	sb_result *result = NULL;

	if (run_line(line, NULL, &result, &err) < 0)
		fail_msg("%s: %s: %s", line, err.where, err.message);
	int code = sb_result_code(result);
	sb_result_free(result);
	return code;
}

/* ---- Records ------------------------------------------------------------------------------- */

typedef struct big {
	union {
		sb_spec spec;
		sb_command command;
		sb_limits limits;
		sb_env env;
		sb_network network;
		sb_linux_options linux_options;
		sb_wait wait;
		sb_sandbox_options sandbox;
		size_t size;
	} is;
	char tail[64]; /* of a later version */
} big;

enum { SPEC = 0, COMMAND, LIMITS, ENV, NETWORK, LINUX, WAIT, SANDBOX, RECORDS };

static const size_t sizes[RECORDS] = { sizeof(sb_spec),	   sizeof(sb_command), sizeof(sb_limits),
				       sizeof(sb_env),	   sizeof(sb_network), sizeof(sb_linux_options),
				       sizeof(sb_wait),	   sizeof(sb_sandbox_options) };

/* A run with this record of that size in it; the others as they should be. */
static int run_with(int which, big *record)
{
	static const char *const argv[] = { "true", NULL };
	const sb_command plain = { .size = sizeof plain, .argv = argv };
	sb_spec spec = no_workspace;
	sb_sandbox *own = NULL;
	sb_result *result = NULL;
	int rc;

	if (which == SPEC && record->is.size >= offsetof(sb_spec, workspace_mode) + 4)
		record->is.spec.workspace_mode = SB_WORKSPACE_NONE;
	if (which == COMMAND && record->is.size >= offsetof(sb_command, argv) + sizeof(char *))
		record->is.command.argv = argv;
	if (which == SANDBOX) {
		if (record->is.size >= offsetof(sb_sandbox_options, helper_dir) + sizeof(char *))
			record->is.sandbox.helper_dir = options.helper_dir;
		rc = sb_sandbox_new(&record->is.sandbox, NULL, &own, &err);
		sb_sandbox_free(own);
		return rc;
	}
	spec.limits = which == LIMITS ? &record->is.limits : NULL;
	spec.env = which == ENV ? &record->is.env : NULL;
	spec.network = which == NETWORK ? &record->is.network : NULL;
	spec.linux_options = which == LINUX ? &record->is.linux_options : NULL;
	rc = sb_run(sandbox, which == SPEC ? &record->is.spec : &spec,
		    which == COMMAND ? &record->is.command : &plain,
		    which == WAIT ? &record->is.wait : NULL, &result, &err);
	sb_result_free(result);
	return rc;
}

static void records_of_every_size(void **state)
{
	(void)state;
	for (int which = 0; which < RECORDS; which++) {
		big r;

		memset(&r, 0, sizeof r); /* size 0 */
		assert_int_equal(run_with(which, &r), SB_ERR_INVALID);
		memset(&r, 0, sizeof r); /* of a later version, with nothing new set */
		r.is.size = sizes[which] + 40;
		if (run_with(which, &r) != 0)
			fail_msg("record %d, long: %s", which, err.message);
		((char *)&r)[sizes[which] + 39] = 1; /* with something new */
		assert_int_equal(run_with(which, &r), SB_ERR_UNSUPPORTED);
		memset(&r, 0, sizeof r);
		r.is.size = (size_t)-1; /* never set: refused, and not looked for its end */
		assert_int_equal(run_with(which, &r), SB_ERR_INVALID);
		r.is.size = 1;
		assert_int_equal(run_with(which, &r), SB_ERR_INVALID);
	}
}

/* An older caller's records end anywhere: what is not there is the default. */
static void shorter_records(void **state)
{
	(void)state;
	for (int which = 0; which < RECORDS; which++)
		for (size_t size = sizeof(size_t); size < sizes[which]; size += 8) {
			big r;
			int rc;

			memset(&r, 0, sizeof r);
			r.is.size = size;
			rc = run_with(which, &r);
			if (which == COMMAND && size < offsetof(sb_command, argv) + sizeof(char *))
				assert_true(rc < 0);
			else if (which == SPEC && size < offsetof(sb_spec, workspace_mode) + 4)
				assert_true(rc <= 0); /* the current folder, whatever that is */
			else if (rc != 0)
				fail_msg("record %d of %zu bytes: %s", which, size, err.message);
		}
}

static void unknown_flags_and_modes(void **state)
{
	const uint64_t flag = (uint64_t)1 << 40;
	sb_spec specs[5];
	sb_result *result = NULL;
	const sb_command command = { .size = sizeof command, .argv = LIST("true") };

	(void)state;
	for (size_t i = 0; i < COUNT(specs); i++)
		specs[i] = no_workspace;
	specs[0].flags = flag;
	specs[1].profile = 99;
	specs[2].workspace_mode = 99;
	specs[3].require = flag;
	specs[4].allow_weaker = flag;
	for (size_t i = 0; i < COUNT(specs); i++)
		if (sb_run(sandbox, &specs[i], &command, NULL, &result, &err) >= 0)
			fail_msg("row %zu was taken", i);
	sb_command odd = command;
	odd.input_kind = 99;
	assert_true(sb_run(sandbox, &no_workspace, &odd, NULL, &result, &err) < 0);
	odd = command;
	odd.flags = (uint32_t)1 << 30;
	assert_true(sb_run(sandbox, &no_workspace, &odd, NULL, &result, &err) < 0);
	assert_null(result);
}

/* What may be NULL, and what frees take. */
static void nothing_at_all(void **state)
{
	const sb_command none = { .size = sizeof none };
	const sb_command empty = { .size = sizeof empty, .argv = LIST(NULL) };
	sb_result *result = NULL;
	sb_plan *plan = NULL;

	(void)state;
	sb_result_free(NULL);
	sb_plan_free(NULL);
	sb_report_free(NULL);
	sb_tree_free(NULL);
	sb_cancel_free(NULL);
	sb_sandbox_free(NULL);
	assert_true(sb_run(sandbox, &no_workspace, &none, NULL, &result, NULL) < 0);
	assert_true(sb_run(sandbox, &no_workspace, &empty, NULL, &result, NULL) < 0);
	assert_true(sb_run(sandbox, &no_workspace, NULL, NULL, &result, &err) < 0);
	assert_null(result);
	assert_int_equal(run_line("exit 3", NULL, &result, NULL), 0);
	assert_int_equal(sb_result_code(result), 3);
	assert_true(sb_result_output(result, 77, NULL) != NULL);
	sb_result_free(result);
	assert_int_equal(sb_explain(sandbox, NULL, NULL, &plan, &err), 0);
	sb_plan_free(plan);
}

/* ---- Limits -------------------------------------------------------------------------------- */

static void limits_at_their_ends(void **state)
{
	static const size_t members[] = {
		offsetof(sb_limits, memory_bytes),	offsetof(sb_limits, wall_ms),
		offsetof(sb_limits, cpu_ms),		offsetof(sb_limits, cpu_millicores),
		offsetof(sb_limits, out_total_bytes),	offsetof(sb_limits, out_stream_bytes),
		offsetof(sb_limits, fs_bytes),		offsetof(sb_limits, fs_nodes),
		offsetof(sb_limits, collect_bytes),	offsetof(sb_limits, procs),
		offsetof(sb_limits, user_procs),	offsetof(sb_limits, open_files),
		offsetof(sb_limits, grace_ms),
	};
	static const uint64_t negative[] = { (uint64_t)-2, (uint64_t)INT64_MAX + 1, (uint64_t)-5 };
	const sb_command command = { .size = sizeof command, .language = "bash", .code = "exit 4",
				     .code_len = 6 };
	sb_limits all = { .size = sizeof all };
	sb_result *result = NULL;

	(void)state;
	for (size_t i = 0; i < COUNT(members); i++) {
		sb_limits limits = { .size = sizeof limits };
		sb_spec spec = { .size = sizeof spec, .limits = &limits };
		uint64_t *at = (uint64_t *)(void *)((char *)&limits + members[i]);

		*at = SB_UNLIMITED;
		*(uint64_t *)(void *)((char *)&all + members[i]) = SB_UNLIMITED;
		if (sb_run(sandbox, &spec, &command, NULL, &result, &err) < 0)
			fail_msg("member %zu unlimited: %s", i, err.message);
		assert_int_equal(sb_result_code(result), 4);
		sb_result_free(result);
		for (size_t n = 0; n < COUNT(negative); n++) {
			*at = negative[n];
			if (sb_run(sandbox, &spec, &command, NULL, &result, &err) >= 0)
				fail_msg("member %zu took %llx", i, (unsigned long long)*at);
		}
		*at = INT64_MAX; /* absurd, and no overflow: taken, or refused with words */
		if (sb_run(sandbox, &spec, &command, NULL, &result, &err) == 0) {
			assert_int_equal(sb_result_code(result), 4);
			sb_result_free(result);
		} else {
			assert_true(err.message[0] != '\0');
		}
	}
	const sb_spec spec = { .size = sizeof spec, .limits = &all };
	if (sb_run(sandbox, &spec, &command, NULL, &result, &err) < 0)
		fail_msg("all unlimited: %s", err.message);
	assert_int_equal(sb_result_code(result), 4);
	assert_non_null(sb_result_json(result));
	sb_result_free(result);
}

static void waits_at_their_ends(void **state)
{
	static const uint64_t waits[] = { 0, SB_UNLIMITED, INT64_MAX };
	sb_result *result = NULL;

	(void)state;
	for (size_t i = 0; i < COUNT(waits); i++) {
		const sb_wait wait = { .size = sizeof wait, .timeout_ms = waits[i] };

		if (run_line("exit 5", &wait, &result, &err) < 0)
			fail_msg("wait %zu: %s", i, err.message);
		assert_int_equal(sb_result_code(result), 5);
		sb_result_free(result);
	}
	const sb_wait negative = { .size = sizeof negative, .timeout_ms = (uint64_t)-3 };
	assert_true(run_line("exit 5", &negative, &result, &err) < 0);
	/* out of time at once: no guest, or one that was ended */
	const sb_wait now = { .size = sizeof now, .timeout_ms = 1 };
	result = NULL;
	if (run_line("sleep 20", &now, &result, &err) == 0)
		assert_int_equal(sb_result_outcome(result), SB_OUTCOME_TIMED_OUT);
	else
		assert_int_equal(err.code, SB_ERR_TIMEOUT);
	sb_result_free(result);
}

/* ---- Cancelling ---------------------------------------------------------------------------- */

static atomic_bool begun;

static int has_begun(void *user, int stream, const void *data, size_t len)
{
	(void)user;
	(void)stream;
	(void)data;
	(void)len;
	begun = true;
	return 0;
}

static void *fire_later(void *arg)
{
	struct timespec moment = { .tv_nsec = 1000000 };

	while (!begun)
		nanosleep(&moment, NULL);
	sb_cancel_fire(arg);
	return NULL;
}

static void cancel_before_during_and_after(void **state)
{
	sb_wait wait = { .size = sizeof wait };
	sb_result *result = NULL;
	pthread_t thread;

	(void)state;
	assert_int_equal(sb_cancel_new(&wait.cancel, &err), 0);
	sb_cancel_fire(wait.cancel);
	assert_int_equal(run_line("sleep 20", &wait, &result, &err), SB_ERR_CANCELLED);
	assert_null(result);
	sb_cancel_free(wait.cancel);

	assert_int_equal(sb_cancel_new(&wait.cancel, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, fire_later, wait.cancel), 0);
	const sb_command talks = { .size = sizeof talks, .argv = LIST("sh", "-c", "echo begun; sleep 600"),
				   .on_output = has_begun };

	begun = false;
	assert_int_equal(sb_run(sandbox, &no_workspace, &talks, &wait, &result, &err), 0);
	pthread_join(thread, NULL);
	assert_int_equal(sb_result_outcome(result), SB_OUTCOME_CANCELLED);
	assert_int_equal(sb_result_code(result), -1);
	sb_result_free(result);
	for (int i = 0; i < 1000; i++)
		sb_cancel_fire(wait.cancel);
	sb_cancel_free(wait.cancel);

	assert_int_equal(sb_cancel_new(&wait.cancel, &err), 0);
	assert_int_equal(run_line("exit 6", &wait, &result, &err), 0);
	sb_cancel_fire(wait.cancel);
	assert_int_equal(sb_result_code(result), 6);
	sb_result_free(result);
	sb_cancel_free(wait.cancel);
}

static int64_t bad_input(void *user, void *buf, size_t cap)
{
	(void)buf;
	(void)cap;
	return *(const int64_t *)user;
}

static int no_more(void *user, int stream, const void *data, size_t len)
{
	(void)stream;
	(void)data;
	(void)len;
	++*(int *)user;
	return 1;
}

static void callbacks_that_refuse(void **state)
{
	static int64_t answers[] = { -1, -1000, INT64_MIN, INT64_MAX, 0 };
	sb_result *result = NULL;
	int calls = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		const sb_command command = { .size = sizeof command, .argv = LIST("cat"),
					     .input_kind = SB_INPUT_CALLBACK, .read_input = bad_input,
					     .user = &answers[i] };
		int rc = sb_run(sandbox, &no_workspace, &command, NULL, &result, &err);

		if (answers[i] == 0)
			assert_int_equal(rc, 0);
		else if (rc == 0)
			assert_int_equal(sb_result_outcome(result), SB_OUTCOME_CANCELLED);
		sb_result_free(result);
		result = NULL;
	}
	const sb_command talks = { .size = sizeof talks, .argv = LIST("yes"), .on_output = no_more,
				   .user = &calls };
	assert_int_equal(sb_run(sandbox, &no_workspace, &talks, NULL, &result, &err), 0);
	assert_int_equal(sb_result_outcome(result), SB_OUTCOME_CANCELLED);
	assert_int_equal(calls, 1); /* it is not asked again */
	sb_result_free(result);
}

/* ---- Input that is none -------------------------------------------------------------------- */

static void descriptors_that_are_none(void **state)
{
	int fds[2], dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int kinds[] = { -1, 12345, dir, -1 };

	(void)state;
	assert_int_equal(pipe(fds), 0);
	kinds[3] = fds[1]; /* the end that cannot be read */
	for (size_t i = 0; i < COUNT(kinds); i++) {
		const sb_command command = { .size = sizeof command, .argv = LIST("cat"),
					     .input_kind = SB_INPUT_FD, .input_fd = kinds[i] };
		sb_result *result = NULL;

		if (sb_run(sandbox, &no_workspace, &command, NULL, &result, &err) == 0)
			assert_int_equal(sb_result_code(result), 0); /* an input at its end */
		else
			assert_true(err.message[0] != '\0');
		sb_result_free(result);
	}
	close(fds[0]);
	close(fds[1]);
	close(dir);
}

/* ---- Hosts --------------------------------------------------------------------------------- */

/* In a forked child each call gives CLOSED, and frees leave the parent's alone. */
static void a_forked_child(void **state)
{
	sb_result *result = NULL, *other = NULL;
	sb_cancel *cancel;
	int status;

	(void)state;
	assert_int_equal(run_line("echo mine", NULL, &result, &err), 0);
	assert_int_equal(sb_cancel_new(&cancel, &err), 0);
	pid_t pid = fork();
	if (pid == 0) {
		sb_plan *plan = NULL;
		sb_report *report = NULL;
		int bad = run_line("true", NULL, &other, &err) != SB_ERR_CLOSED;

		bad |= (sb_explain(sandbox, NULL, NULL, &plan, &err) != SB_ERR_CLOSED) << 1;
		bad |= (sb_doctor(sandbox, NULL, &report, &err) != SB_ERR_CLOSED) << 2;
		sb_result_free(result);
		sb_cancel_free(cancel);
		sb_sandbox_free(sandbox);
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(code_of("exit 7"), 7);
	sb_result_free(result);
	sb_cancel_free(cancel);
}

/* A host whose standard descriptors are closed, whose children are ignored, or with few files:
 * each in a process of its own, which tells by its exit code. */
static int odd_host(int kind)
{
	const struct rlimit few = { 9, 9 };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sb_result *result = NULL;
	sb_sandbox *own;

	if (kind < 8)
		for (int fd = 0; fd < 3; fd++)
			if (kind & 1 << fd)
				close(fd);
	if (kind == 8)
		sigaction(SIGCHLD, &ignore, NULL);
	if (kind == 9 && setrlimit(RLIMIT_NOFILE, &few) < 0)
		return 100;
	if (sb_sandbox_new(&options, NULL, &own, &err) < 0)
		return kind == 9 && err.message[0] ? 0 : 101;
	const sb_command command = { .size = sizeof command,
				     .argv = LIST("sh", "-c", "echo out; echo err >&2; exit 8") };
	int rc = sb_run(own, &no_workspace, &command, NULL, &result, &err);
	if (kind == 9)
		return rc < 0 && strstr(err.message, "ulimit -n") ? 0 : 102;
	size_t out = 0, errs = 0;
	if (rc < 0 || sb_result_code(result) != 8)
		return 103;
	if (memcmp(sb_result_output(result, SB_STDOUT, &out), "out\n", 4) != 0 || out != 4)
		return 104;
	if (memcmp(sb_result_output(result, SB_STDERR, &errs), "err\n", 4) != 0 || errs != 4)
		return 105;
	sb_result_free(result);
	sb_sandbox_free(own);
	return 0;
}

static void odd_hosts(void **state)
{
	(void)state;
	for (int kind = 0; kind < 10; kind++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(odd_host(kind));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			fail_msg("host %d: status %x", kind, (unsigned)status);
	}
}

/* ---- Threads ------------------------------------------------------------------------------- */

enum { THREADS = 64, ROUNDS = 2 };

static void *thread_runs(void *arg)
{
	int *bad = arg, wanted = *bad;

	*bad = 0;
	for (int i = 0; i < ROUNDS; i++) {
		sb_result *result = NULL;
		char line[64], want[32];
		size_t len;

		snprintf(line, sizeof line, "echo thread %d; exit %d", wanted, wanted);
		snprintf(want, sizeof want, "thread %d\n", wanted);
		if (run_line(line, NULL, &result, &err) < 0) {
			fprintf(stderr, "thread %d: %s\n", wanted, err.message);
			*bad = 1;
			continue;
		}
		const char *out = sb_result_output(result, SB_STDOUT, &len);
		*bad |= sb_result_code(result) != wanted || strcmp(out, want) != 0;
		sb_result_free(result);
	}
	return NULL;
}

static void sixty_four_threads(void **state)
{
	pthread_t threads[THREADS];
	int bad[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		bad[i] = i + 1;
		assert_int_equal(pthread_create(&threads[i], NULL, thread_runs, &bad[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(bad[i], 0);
	}
}

static atomic_int ended;

static void *thread_sleeps(void *arg)
{
	sb_result *result = NULL;
	int rc = run_line("sleep 30", NULL, &result, &err);

	/* ended with what was there, or not begun */
	*(int *)arg = rc == 0 ? sb_result_outcome(result) != SB_OUTCOME_CANCELLED
			      : rc != SB_ERR_CLOSED && rc != SB_ERR_CANCELLED;
	if (*(int *)arg)
		fprintf(stderr, "rc %d: %s\n", rc, err.message);
	sb_result_free(result);
	atomic_fetch_add(&ended, 1);
	return NULL;
}

/* Closing ends what runs; a call after it is refused, and closing again is nothing. */
static void closing_while_it_runs(void **state)
{
	struct timespec moment = { .tv_nsec = 300 * 1000000 };
	pthread_t threads[6];
	int bad[6];
	sb_result *result = NULL;

	(void)state;
	atomic_store(&ended, 0);
	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_sleeps, &bad[i]), 0);
	nanosleep(&moment, NULL);
	assert_int_equal(sb_sandbox_close(sandbox, NULL, &err), 0);
	assert_int_equal(run_line("true", NULL, &result, &err), SB_ERR_CLOSED);
	for (size_t i = 0; i < COUNT(threads); i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(bad[i], 0);
	}
	assert_int_equal(atomic_load(&ended), COUNT(threads));
	assert_int_equal(sb_sandbox_close(sandbox, NULL, &err), 0);
}

/* A part keeps its whole alive: in any order. */
static void freed_in_any_order(void **state)
{
	(void)state;
	for (int order = 0; order < 6; order++) {
		sb_sandbox *own = NULL;
		sb_result *result = NULL;
		sb_plan *plan = NULL;
		sb_report *report = NULL;
		const sb_command command = { .size = sizeof command, .argv = LIST("true") };

		assert_int_equal(sb_sandbox_new(&options, NULL, &own, &err), 0);
		assert_int_equal(sb_run(own, &no_workspace, &command, NULL, &result, &err), 0);
		assert_int_equal(sb_explain(own, &no_workspace, &command, &plan, &err), 0);
		if (order == 0)
			assert_int_equal(sb_doctor(own, NULL, &report, &err), 0);
		for (int i = 0; i < 3; i++) {
			int which = (order + i * (order < 3 ? 1 : 2)) % 3;

			if (which == 0)
				sb_sandbox_free(own);
			if (which == 1) {
				assert_true(sb_plan_count(sb_result_plan(result)) > 5);
				assert_non_null(strstr(sb_result_json(result), "\"exited\""));
				sb_result_free(result);
			}
			if (which == 2) {
				assert_non_null(strstr(sb_plan_text(plan, "json"), "would_run"));
				sb_plan_free(plan);
			}
		}
		if (report)
			assert_non_null(strstr(sb_report_json(report), "\"usable\""));
		sb_report_free(report);
	}
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(records_of_every_size), TEST(shorter_records), TEST(unknown_flags_and_modes),
		TEST(nothing_at_all), TEST(limits_at_their_ends), TEST(waits_at_their_ends),
		TEST(cancel_before_during_and_after), TEST(callbacks_that_refuse),
		TEST(descriptors_that_are_none), TEST(a_forked_child), TEST(odd_hosts),
		TEST(sixty_four_threads), TEST(closing_while_it_runs), TEST(freed_in_any_order),
	};

	if (argc > 1)
		options.helper_dir = argv[1];
	return cmocka_run_group_tests(tests, folder_enter, folder_leave);
}
