/* SPDX-License-Identifier: MIT */
/*
 * keep.c - pools and managers over the real sessions of a backend.
 *
 * usage: keep BACKEND DIRECTORY-OF-SB-LAUNCH
 */
#include "../lib/descriptors.h"
#include "../unit/folder.h"
#include "../unit/unit.h"

#include <sandbox/sandbox.h>

#include "../fake/fake.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *helper_dir, *order[2];
static sb_sandbox *sandbox;
static sb_error err;
static int descriptors;
static uint32_t workspace = SB_WORKSPACE_NONE;

static void fine(int code)
{
	if (code < 0)
		fail_msg("%s: %s", err.where, err.message);
}

static int begin(void **state)
{
	static const sb_backend *const with_fake[] = { &fake_backend, NULL };
	sb_sandbox_options options = { .size = sizeof options, .order = order, .helper_dir = helper_dir };

	(void)state;
	descriptors = open_descriptors();
	if (!strcmp(order[0], "fake"))
		options.backends = with_fake;
	fine(sb_sandbox_new(&options, NULL, &sandbox, &err));
	return 0;
}

static int end(void **state)
{
	(void)state;
	sb_sandbox_free(sandbox);
	assert_int_equal(open_descriptors(), descriptors);
	errno = 0;
	assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	return 0;
}

/* 0, or what it ended with. */
static int run_true(sb_session *session)
{
	const char *const argv[] = { "/bin/true", NULL };
	const sb_command command = { .size = sizeof command, .argv = argv };
	sb_process *process = NULL;
	sb_exit exit = { .size = sizeof exit };

	fine(sb_session_spawn(session, &command, NULL, &process, &err));
	fine(sb_process_wait(process, NULL, &exit, &err));
	sb_process_free(process);
	return exit.code;
}

static sb_pool *made(sb_pool_reset_fn reset)
{
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = workspace };
	const sb_pool_options options = { .size = sizeof options, .spec = &spec, .reset = reset };
	sb_pool *pool = NULL;

	fine(sb_pool_new(sandbox, &options, &pool, &err));
	return pool;
}

static void take_and_give(void **state)
{
	sb_pool *pool = made(NULL);
	sb_session *a = NULL, *b = NULL;

	(void)state;
	fine(sb_pool_warm(pool, 2, NULL, &err));
	assert_int_equal(sb_pool_size(pool), 2);
	fine(sb_pool_acquire(pool, NULL, &a, &err));
	fine(sb_pool_acquire(pool, NULL, &b, &err));
	assert_string_not_equal(sb_session_id(a), sb_session_id(b));
	assert_int_equal(run_true(a), 0);
	assert_int_equal(run_true(b), 0);
	fine(sb_pool_release(pool, a, NULL, &err));
	fine(sb_pool_release(pool, b, NULL, &err));
	assert_int_equal(sb_pool_size(pool), 0); /* one use each */
	fine(sb_pool_acquire(pool, NULL, &a, &err));
	assert_int_equal(run_true(a), 0);
	sb_pool_free(pool); /* not under its user */
	assert_int_equal(run_true(a), 0);
	fine(sb_pool_release(pool, a, NULL, &err));
}

static int resets;
static int reset(void *user, sb_session *session, const sb_wait *wait)
{
	(void)user;
	resets++;
	return sb_session_reset(session, wait, NULL);
}

static void used_again(void **state)
{
	sb_pool *pool = made(reset);
	sb_session *a = NULL, *b = NULL;

	(void)state;
	resets = 0;
	fine(sb_pool_acquire(pool, NULL, &a, &err));
	assert_int_equal(run_true(a), 0);
	fine(sb_pool_release(pool, a, NULL, &err));
	assert_int_equal(resets, 1);
	fine(sb_pool_acquire(pool, NULL, &b, &err));
	assert_int_equal(run_true(b), 0);
	fine(sb_pool_release(pool, b, NULL, &err));
	sb_pool_free(pool);
}

static void closed_while_ready(void **state)
{
	sb_pool *pool = made(NULL);
	sb_list *list = NULL;
	sb_info info = { .size = sizeof info };
	sb_session *s = NULL;

	(void)state;
	fine(sb_pool_warm(pool, 1, NULL, &err));
	fine(sb_sandbox_list(sandbox, SB_LIST_SESSIONS, &list, &err));
	assert_int_equal(sb_list_count(list), 1);
	fine(sb_list_at(list, 0, &info));
	fine(sb_sandbox_terminate(sandbox, info.id, NULL, &err));
	sb_list_free(list);
	fine(sb_pool_acquire(pool, NULL, &s, &err)); /* another one */
	assert_int_equal(run_true(s), 0);
	fine(sb_pool_release(pool, s, NULL, &err));
	sb_pool_free(pool);
}

static sb_session *held;
static int make_held(void *user, const sb_wait *wait, sb_session **out, sb_error *e)
{
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = workspace };
	int code = sb_session_open(sandbox, &spec, NULL, wait, out, e);

	(void)user;
	held = code < 0 ? NULL : *out;
	return code;
}

/* All that we have started and that has not been waited for. */
static void kill_children(void)
{
	char path[64], text[4096] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof text, f));
	fclose(f);
	for (char *at = text, *end; (end = strchr(at, ' ')); at = end + 1)
		kill((pid_t)strtol(at, NULL, 10), SIGKILL);
}

/* Nothing ran in it that would have told of the end of its walls. */
static void killed_while_ready(void **state)
{
	const sb_pool_options options = { .size = sizeof options, .make = make_held };
	const struct timespec pause = { .tv_nsec = 5000000 };
	sb_pool *pool = NULL;
	sb_session *s = NULL;

	(void)state;
	if (!strcmp(order[0], "fake"))
		return; /* has no process */
	fine(sb_pool_new(sandbox, &options, &pool, &err));
	fine(sb_pool_warm(pool, 1, NULL, &err));
	assert_int_equal(sb_session_state(held), SB_STATE_IDLE);
	kill_children();
	for (int i = 0; i < 4000 && sb_session_state(held) != SB_STATE_KILLED; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(sb_session_state(held), SB_STATE_KILLED);
	fine(sb_pool_acquire(pool, NULL, &s, &err));
	assert_int_equal(run_true(s), 0);
	fine(sb_pool_release(pool, s, NULL, &err));
	sb_pool_free(pool);
}

static sb_manager *manager(sb_manager_options o)
{
	sb_manager *m = NULL;

	o.size = sizeof o;
	fine(sb_manager_new(sandbox, &o, &m, &err));
	return m;
}

static sb_session *created(sb_manager *m, const char *id)
{
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = workspace };
	const sb_session_options options = { .size = sizeof options, .id = id };
	sb_session *s = NULL;

	fine(sb_manager_create(m, &spec, &options, NULL, &s, &err));
	return s;
}

static void live_ones(void **state)
{
	sb_manager *m = manager((sb_manager_options){ .max_sessions = 2 });
	sb_session *a = created(m, "a"), *b = created(m, NULL), *c = NULL;
	const sb_session_options same = { .size = sizeof same, .id = "a" };
	sb_list *list = NULL;

	(void)state;
	assert_int_equal(sb_manager_create(m, NULL, &same, NULL, &c, NULL), SB_ERR_CONFLICT);
	assert_int_equal(sb_manager_create(m, NULL, NULL, NULL, &c, NULL), SB_ERR_TOO_MANY_SESSIONS);
	assert_int_equal(run_true(a), 0);
	fine(sb_manager_list(m, &list, &err));
	assert_int_equal(sb_list_count(list), 2);
	sb_list_free(list);
	fine(sb_manager_get(m, "a", &c, &err));
	assert_ptr_equal(a, c);
	sb_session_free(c);
	sb_session_free(b);
	fine(sb_manager_close(m, "a", NULL, &err));
	assert_int_equal(sb_session_state(a), SB_STATE_CLOSED);
	assert_int_equal(sb_manager_count(m), 1);
	fine(sb_manager_shutdown(m, NULL, &err));
	assert_int_equal(sb_manager_create(m, NULL, NULL, NULL, &c, NULL), SB_ERR_MANAGER_CLOSED);
	sb_session_free(a);
	sb_manager_free(m);
}

/* Busy is not idle; then it is, and is closed under its user, who is told. */
static void reaped(void **state)
{
	sb_manager *m = manager((sb_manager_options){ .idle_ms = 300, .reap_ms = 10 });
	struct timespec pause = { .tv_nsec = 10000000 };
	sb_session *s = created(m, NULL);
	sb_process *p = NULL;
	const char *const argv[] = { "/bin/true", NULL };
	const sb_command command = { .size = sizeof command, .argv = argv };

	(void)state;
	for (int i = 0; i < 3000 && sb_session_state(s) != SB_STATE_CLOSED; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(sb_session_state(s), SB_STATE_CLOSED);
	assert_int_equal(sb_manager_count(m), 0);
	assert_int_equal(sb_session_spawn(s, &command, NULL, &p, &err), SB_ERR_SESSION_CLOSED);
	sb_session_free(s);
	sb_manager_free(m);
}

/* What runs in them does not hold a shutdown up. */
static void shut_while_busy(void **state)
{
	sb_manager *m;
	const char *const argv[] = { "sleep", "600", NULL };
	const sb_command command = { .size = sizeof command, .argv = argv };
	sb_session *s[3];
	sb_process *p[3];
	sb_exit exit = { .size = sizeof exit };

	(void)state;
	if (!strcmp(order[0], "fake"))
		return; /* its guests do what a script says, and have ended */
	m = manager((sb_manager_options){ 0 });
	for (int i = 0; i < 3; i++) {
		s[i] = created(m, NULL);
		fine(sb_session_spawn(s[i], &command, NULL, &p[i], &err));
	}
	fine(sb_manager_shutdown(m, NULL, &err));
	for (int i = 0; i < 3; i++) {
		fine(sb_process_wait(p[i], NULL, &exit, &err));
		assert_int_equal(exit.outcome, SB_OUTCOME_TERMINATED);
		sb_process_free(p[i]);
		sb_session_free(s[i]);
	}
	sb_manager_free(m);
}

static void many_cycles(void **state)
{
	int cycles = 1000;
	sb_manager *m = manager((sb_manager_options){ 0 });

	(void)state;
	for (int i = 0; i < cycles; i++) {
		sb_session *s = created(m, "one");

		sb_session_free(s);
		fine(sb_manager_close(m, "one", NULL, &err));
	}
	assert_int_equal(sb_manager_count(m), 0);
	sb_manager_free(m);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(take_and_give), TEST(used_again), TEST(closed_while_ready), TEST(killed_while_ready), TEST(live_ones),
		TEST(reaped), TEST(shut_while_busy), TEST(many_cycles),
	};

	if (argc != 3)
		return 2;
	order[0] = argv[1];
	helper_dir = argv[2];
	if (!strcmp(argv[1], "process"))
		workspace = SB_WORKSPACE_DEFAULT; /* it can leave nothing out */
	return cmocka_run_group_tests_name(argv[1], tests, folder_enter, folder_leave);
}
