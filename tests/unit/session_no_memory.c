/* SPDX-License-Identifier: MIT */
/*
 * session_no_memory.c - each allocation on the way of a run fails once: the call says so, or does
 * without it; nothing leaks, nothing is left running, and the next call works.  So it is without random bytes.
 *
 * The linker leads the allocator's calls here (--wrap); those of other threads are let through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "../../src/session/session.h"
#include "../fake/fake.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static _Thread_local long budget = -1; /* allocations until one fails; -1 = none does */
static _Thread_local bool failed;

static bool has_memory(void)
{
	if (budget < 0 || budget-- > 0)
		return true;
	failed = true;
	return false;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
	return has_memory() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return has_memory() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
	return has_memory() ? __real_realloc(old, size) : NULL;
}

char *__wrap_strdup(const char *text)
{
	return has_memory() ? __real_strdup(text) : NULL;
}

/* ---- what is tried ----------------------------------------------------------------------------- */

static const sb_backend *const backends[] = { &fake_backend, NULL };
static const sb_pack_way way = { .size = sizeof way, .backend = "fake",
				 .run = (const char *const[]){ "sh", "{code}", "{args}", NULL },
				 .code_file = "x.sh", .session_driver = "driver" };
static const sb_pack_way *const ways[] = { &way, NULL };
static const char *const aliases[] = { "uno", NULL };
static const sb_pack pack = { .size = sizeof pack, .name = "one", .aliases = aliases, .ways = ways };
static const sb_pack *const packs[] = { &pack, NULL };
static const fake_step steps[] = { { FAKE_OUT, 4000, "0123456789", 0 },
				   { FAKE_ERR, 0, "err", 0 },
				   { FAKE_OUT_FILE, 0, "d/f", 0 },
				   { FAKE_END, 3, NULL, 0 } };
static const fake_script script = { .size = sizeof script, .backend = "fake", .steps = steps };

static int yes(void *user, const sb_request *request, const char *why, sb_approval *approval)
{
	(void)user;
	(void)request;
	(void)why;
	(void)approval;
	return SB_ALLOW;
}

static int make(sb_sandbox **sandbox, sb_error *err)
{
	const sb_env env = { .size = sizeof env, .inject = LIST("A=1") };
	const sb_spec fixed = { .size = sizeof fixed, .env = &env };
	const sb_predicate ask = { .size = sizeof ask, .what = SB_PREDICATE_NETWORK };
	const sb_predicate *const predicates[] = { &ask, NULL };
	const sb_sandbox_options o = { .size = sizeof o, .backends = backends, .order = LIST("fake"),
				       .packs = packs, .operator_spec = &fixed,
				       .predicates = predicates, .approve = yes };

	return sb_sandbox_new(&o, NULL, sandbox, err);
}

static int run(sb_sandbox *sandbox, bool code, sb_error *err)
{
	const sb_file file = { .size = sizeof file, .path = "a/b", .data = "x", .len = 1 };
	const sb_file *const files[] = { &file, NULL };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_spec spec = { .size = sizeof spec, .other_options = options,
			       .workspace_mode = SB_WORKSPACE_NONE };
	const sb_command c = { .size = sizeof c, .argv = code ? NULL : LIST("true", "x"),
			       .language = code ? "uno" : NULL, .code = code ? "x" : NULL,
			       .code_len = code, .files = code ? files : NULL, .env = LIST("B=2") };
	sb_result *result = NULL;
	int rc = sb_run(sandbox, &spec, &c, NULL, &result, err);

	if (rc == 0) {
		assert_int_equal(sb_result_code(result), 3);
		sb_result_free(result);
	} else {
		assert_null(result);
	}
	return rc;
}

/* A session, and a branch of it; where that fails the session is as good as before. */
static int branch(sb_sandbox *sandbox, sb_error *err)
{
	static const fake_step hello[] = { { FAKE_HEAR, 0, NULL, 0 }, { FAKE_TELL, 0, "H @ 00000005\n1 nul", 0 },
					   { FAKE_HEAR, 0, NULL, 0 }, { FAKE_END, 0, NULL, 0 } };
	static const fake_script driver = { .size = sizeof driver, .backend = "fake", .steps = hello };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&driver), NULL };
	const sb_spec spec = { .size = sizeof spec, .other_options = options };
	const sb_session_options one = { .size = sizeof one, .language = "uno" };
	const sb_session_options two = { .size = sizeof two, .lifetime_ms = 3600000 };
	sb_session *session = NULL, *made = NULL;
	int rc = sb_session_open(sandbox, &spec, &one, NULL, &session, err);

	if (rc < 0)
		return rc;
	rc = sb_session_fork(session, &two, NULL, &made, err);
	assert_true(rc < 0 ? made == NULL : made != NULL);
	assert_int_equal(sb_session_state(session), SB_STATE_IDLE);
	sb_session_free(made);
	assert_int_equal(fake_seen.boxes, 1);
	sb_session_free(session);
	return rc;
}

static int explain(sb_sandbox *sandbox, sb_error *err)
{
	sb_plan *plan = NULL;
	int rc = sb_explain(sandbox, NULL, NULL, &plan, err);

	sb_plan_free(plan);
	return rc;
}

static int doctor(sb_sandbox *sandbox, sb_error *err)
{
	sb_report *report = NULL;
	int rc = sb_doctor(sandbox, NULL, &report, err);

	sb_report_free(report);
	return rc;
}

static int one(int which, sb_error *err)
{
	sb_sandbox *sandbox = NULL;
	int rc = make(&sandbox, err);

	if (rc < 0)
		return rc;
	rc = which == 0 ? run(sandbox, false, err)
	     : which == 1 ? run(sandbox, true, err)
	     : which == 2 ? explain(sandbox, err)
	     : which == 3 ? branch(sandbox, err)
			  : doctor(sandbox, err);
	sb_sandbox_free(sandbox);
	return rc;
}

/* ---- every allocation, one at a time ------------------------------------------------------------ */

static void each_fails_once(void **state)
{
	(void)state;
	for (int which = 0; which < 5; which++) {
		long n = 0;

		do {
			sb_error err = { 0 };

			fake_reset();
			failed = false;
			budget = n++;
			int rc = one(which, &err);

			budget = -1;
			if (rc < 0 && (rc != SB_ERR_NO_MEMORY || err.code != SB_ERR_NO_MEMORY))
				fail_msg("call %d, allocation %ld: %d \"%s\"", which, n, rc, err.message);
			if (fake_seen.boxes + fake_seen.guests + fake_seen.states)
				fail_msg("call %d, allocation %ld: %d \"%s\": %d %d %d left", which, n, rc, err.message,
					 (int)fake_seen.boxes, (int)fake_seen.guests, (int)fake_seen.states);
			assert_int_equal(fake_seen.broken, 0);
		} while (failed);
		assert_true(n > 20);
	}
}

/* ---- random bytes -------------------------------------------------------------------------------- */

static int random_error;      /* of getrandom(); 0 = there are some */
ssize_t __real_getrandom(void *to, size_t len, unsigned int flags);
ssize_t __wrap_getrandom(void *to, size_t len, unsigned int flags);

ssize_t __wrap_getrandom(void *to, size_t len, unsigned int flags)
{
	if (!random_error)
		return __real_getrandom(to, len < 5 ? len : 5, flags); /* in pieces */
	errno = random_error;
	return -1;
}

/* An id that could be guessed is none: nothing starts without random bytes. */
static void without_random_bytes_nothing_starts(void **state)
{
	sb_sandbox *sandbox = NULL;
	sb_session *session = NULL;
	sb_error err = { 0 };

	(void)state;
	fake_reset();
	assert_int_equal(make(&sandbox, &err), 0);
	random_error = ENOSYS;
	assert_int_equal(sb_session_open(sandbox, NULL, NULL, NULL, &session, &err), SB_ERR_INTERNAL);
	assert_null(session);
	assert_int_equal(run(sandbox, false, &err), SB_ERR_INTERNAL);
	assert_int_equal(fake_seen.boxes + fake_seen.guests, 0);
	random_error = 0;
	assert_int_equal(run(sandbox, false, &err), 0);
	sb_sandbox_free(sandbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_fails_once),
		cmocka_unit_test(without_random_bytes_nothing_starts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
