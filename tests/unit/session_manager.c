/* SPDX-License-Identifier: MIT */
/* session_manager.c - the manager over scripted sessions and a clock of the test's. */
#include "keep.h"

#include <pthread.h>
#include <time.h>

static sb_manager *made(sb_manager_options o)
{
	sb_manager *m = NULL;
	sb_error err = { 0 };

	o.size = sizeof o;
	if (manager_make(NULL, &toy_ops, false, &o, &m, &err) < 0)
		fail_msg("%s", err.message);
	return m;
}

static int opened(sb_manager *m, const char *id, sb_session_options o, sb_session **s)
{
	o.size = sizeof o;
	o.id = id;
	*s = NULL;
	return sb_manager_create(m, NULL, &o, NULL, s, NULL);
}

static sb_session *one(sb_manager *m, const char *id)
{
	sb_session *s;

	assert_int_equal(opened(m, id, (sb_session_options){ 0 }, &s), 0);
	return s;
}

static void over(sb_manager *m)
{
	assert_int_equal(sb_manager_shutdown(m, NULL, NULL), 0);
	assert_int_equal(sb_manager_shutdown(m, NULL, NULL), 0);
	assert_int_equal(sb_manager_count(m), 0);
	sb_manager_free(m);
	assert_int_equal(toys.open, 0);
	assert_int_equal(toys.broken, 0);
}

static void cap(void **state)
{
	sb_manager *m = made((sb_manager_options){ 0 });
	sb_session *s[64], *more;

	(void)state;
	for (int i = 0; i < 64; i++)
		s[i] = one(m, NULL);
	assert_int_equal(sb_manager_count(m), 64);
	assert_int_equal(opened(m, NULL, (sb_session_options){ 0 }, &more), SB_ERR_TOO_MANY_SESSIONS);
	/* one that has died takes no place */
	toy_of(s[3])->dead = true;
	more = one(m, NULL);
	toy_drop(more);
	assert_int_equal(sb_manager_close(m, toy_id(s[5]), NULL, NULL), 0);
	assert_int_equal(sb_manager_count(m), 63);
	for (int i = 0; i < 64; i++)
		toy_drop(s[i]);
	over(m);
}

/* A seat counts from the moment it is reserved; whoever sits there has the limits of the one it is a branch of. */
static void seats(void **state)
{
	const sb_session_options opts = { .size = sizeof opts };
	sb_manager *m = made((sb_manager_options){ .max_sessions = 3, .idle_ms = 5000, .lifetime_ms = SB_UNLIMITED });
	manager_seat *seat, *more;
	sb_session *s, *branch, *longer;

	(void)state;
	assert_int_equal(opened(m, "s", (sb_session_options){ .idle_ms = 2000 }, &s), 0);
	assert_ptr_equal(toy_of(s)->keeper, m);
	assert_int_equal(manager_reserve(m, s, "s", &seat, NULL), SB_ERR_CONFLICT);
	assert_int_equal(manager_reserve(m, s, "branch", &seat, NULL), 0);
	assert_int_equal(manager_reserve(m, s, "branch", &more, NULL), SB_ERR_CONFLICT);
	assert_int_equal(manager_reserve(m, s, "longer", &more, NULL), 0);
	assert_int_equal(sb_manager_count(m), 1);
	assert_int_equal(opened(m, NULL, (sb_session_options){ 0 }, &branch), SB_ERR_TOO_MANY_SESSIONS);
	manager_leave(more);
	manager_leave(NULL);
	assert_int_equal(manager_reserve(m, s, "longer", &more, NULL), 0);
	assert_int_equal(toy_open(NULL, NULL, &opts, NULL, &branch, NULL), 0);
	assert_int_equal(toy_open(NULL, NULL, &opts, NULL, &longer, NULL), 0);
	assert_int_equal(manager_take(seat, branch, 0, 0, NULL), 0);
	assert_int_equal(manager_take(more, longer, 9000, 0, NULL), 0);
	assert_ptr_equal(toy_of(branch)->keeper, m);
	assert_int_equal(sb_manager_count(m), 3);
	toys.now_ns += 3000000000u;
	manager_reap(m);
	assert_int_equal(sb_manager_count(m), 1);
	assert_null(toy_of(branch)->keeper);
	assert_ptr_equal(toy_of(longer)->keeper, m);
	assert_int_equal(manager_reserve(m, longer, "late", &seat, NULL), 0);
	toy_drop(s);
	toy_drop(branch);
	toy_drop(longer);
	/* shut down by the time that it is there: closed at once */
	const sb_wait no = { .size = sizeof no, .timeout_ms = SB_NO_WAIT };

	assert_int_equal(sb_manager_shutdown(m, &no, NULL), SB_ERR_TIMEOUT);
	assert_int_equal(toy_open(NULL, NULL, &opts, NULL, &branch, NULL), 0);
	assert_int_equal(manager_take(seat, branch, 0, 0, NULL), SB_ERR_MANAGER_CLOSED);
	over(m);
}

static void ids(void **state)
{
	sb_manager *m = made((sb_manager_options){ 0 });
	sb_session *s = one(m, "a"), *t;

	(void)state;
	assert_int_equal(opened(m, "a", (sb_session_options){ 0 }, &t), SB_ERR_CONFLICT);
	assert_int_equal(toys.made, 1);
	assert_int_equal(sb_manager_get(m, "a", &t, NULL), 0);
	assert_ptr_equal(s, t);
	toy_drop(t);
	assert_int_equal(sb_manager_get(m, "b", &t, NULL), SB_ERR_SESSION_NOT_FOUND);
	assert_int_equal(sb_manager_close(m, "b", NULL, NULL), SB_ERR_SESSION_NOT_FOUND);
	assert_int_equal(sb_manager_close(m, "a", NULL, NULL), 0);
	assert_int_equal(sb_manager_get(m, "a", &t, NULL), SB_ERR_SESSION_NOT_FOUND);
	assert_int_equal(sb_manager_close(m, "a", NULL, NULL), SB_ERR_SESSION_NOT_FOUND);
	assert_false(toy_usable(s)); /* its user's handle says so */
	toy_drop(s);
	s = one(m, "a"); /* free again */
	toy_of(s)->dead = true;
	assert_int_equal(sb_manager_get(m, "a", &t, NULL), SB_ERR_SESSION_NOT_FOUND);
	toy_drop(s);
	over(m);
}

static void idle_and_lifetime(void **state)
{
	sb_manager *m = made((sb_manager_options){ .idle_ms = 1000, .lifetime_ms = 5000, .reap_ms = 1 });
	sb_session *idle = one(m, "idle"), *busy = one(m, "busy"), *own;

	(void)state;
	assert_int_equal(opened(m, "own", (sb_session_options){ .idle_ms = 10, .lifetime_ms = 20 }, &own), 0);
	toy_of(busy)->idle_since = SB_UNLIMITED;
	pass_ms(9);
	assert_true(manager_reap(m) <= toys.now_ns + 2000000);
	assert_int_equal(sb_manager_count(m), 3);
	pass_ms(1);
	manager_reap(m);
	assert_int_equal(sb_manager_count(m), 2);
	assert_true(toy_of(own)->closed);
	pass_ms(989);
	manager_reap(m);
	assert_int_equal(sb_manager_count(m), 2);
	pass_ms(1);
	manager_reap(m);
	assert_true(toy_of(idle)->closed);
	assert_false(toy_of(busy)->closed);
	pass_ms(3999);
	manager_reap(m);
	assert_false(toy_of(busy)->closed);
	pass_ms(1);
	manager_reap(m);
	assert_true(toy_of(busy)->closed);
	assert_int_equal(toys.open, 0);
	assert_true(manager_reap(m) == SB_UNLIMITED); /* nothing is ever due: it sleeps */
	toy_drop(idle);
	toy_drop(busy);
	toy_drop(own);
	over(m);
}

/* Used again in time, it lives on; the next look is when it could be due. */
static void used_again(void **state)
{
	sb_manager *m = made((sb_manager_options){ .idle_ms = 1000, .lifetime_ms = SB_UNLIMITED,
		.reap_ms = 100 });
	sb_session *s = one(m, NULL);

	(void)state;
	toys.now_ns = 2000000000u;
	toy_of(s)->idle_since = 1950000000u;
	assert_true(manager_reap(m) == 3000000000u); /* 2.95 s, up to the next tenth */
	toys.now_ns = 2950000000u;
	manager_reap(m);
	assert_true(toy_of(s)->closed);
	toy_drop(s);
	over(m);
}

static void defaults(void **state)
{
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = 64 << 20, .procs = 7 };
	const sb_limits mine = { .size = sizeof mine, .memory_bytes = 32 << 20 };
	const sb_spec spec = { .size = sizeof spec, .limits = &mine };
	const sb_limits bad = { .size = sizeof bad, .wall_ms = (uint64_t)-7 };
	sb_manager_options o = { .size = sizeof o, .default_limits = &bad };
	sb_manager *m = NULL;
	sb_session *s;

	(void)state;
	assert_int_equal(manager_make(NULL, &toy_ops, false, &o, &m, NULL), SB_ERR_INVALID_LIMITS);
	o = (sb_manager_options){ .size = sizeof o, .idle_ms = (uint64_t)-7 };
	assert_int_equal(manager_make(NULL, &toy_ops, false, &o, &m, NULL), SB_ERR_INVALID);
	o = (sb_manager_options){ .size = sizeof o, .max_sessions = SB_UNLIMITED };
	assert_int_equal(manager_make(NULL, &toy_ops, false, &o, &m, NULL), SB_ERR_INVALID);
	o = (sb_manager_options){ .size = sizeof o, .session_flags = 1u << 20 };
	assert_int_equal(manager_make(NULL, &toy_ops, false, &o, &m, NULL), SB_ERR_UNSUPPORTED);
	m = made((sb_manager_options){ .default_limits = &limits, .session_flags = SB_SESSION_AUTO_RESTART });
	assert_int_equal(opened(m, NULL, (sb_session_options){ .language = "python" }, &s), 0);
	assert_true(toys.flags == SB_SESSION_AUTO_RESTART);
	assert_true(toys.limits.memory_bytes == 64 << 20 && toys.limits.procs == 7);
	toy_drop(s);
	assert_int_equal(sb_manager_create(m, &spec, NULL, NULL, &s, NULL), 0);
	assert_true(toys.limits.memory_bytes == 32 << 20 && toys.limits.procs == 7);
	toy_drop(s);
	assert_int_equal(opened(m, NULL, (sb_session_options){ .idle_ms = (uint64_t)-7 }, &s), SB_ERR_INVALID);
	over(m);
}

static void open_fails(void **state)
{
	sb_manager *m = made((sb_manager_options){ .max_sessions = 1 });
	sb_session *s;

	(void)state;
	toys.fail_code = SB_ERR_BACKEND_UNAVAILABLE;
	assert_int_equal(opened(m, "a", (sb_session_options){ 0 }, &s), SB_ERR_BACKEND_UNAVAILABLE);
	toys.fail_code = 0;
	toy_drop(one(m, "a")); /* neither place nor id was lost */
	over(m);
}

static void stubborn(void **state)
{
	const sb_wait wait = { .size = sizeof wait, .timeout_ms = 50 };
	sb_manager *m = made((sb_manager_options){ .idle_ms = 1, .reap_ms = 1000 });
	sb_session *s = one(m, "a"), *t = one(m, "b"), *u;

	(void)state;
	toy_of(s)->stubborn = true;
	assert_int_equal(sb_manager_close(m, "a", &wait, NULL), SB_ERR_TIMEOUT);
	assert_true(toy_of(s)->killed);
	pass_ms(10);
	assert_true(manager_reap(m) > toys.now_ns); /* not at once again */
	assert_int_equal(sb_manager_shutdown(m, &wait, NULL), SB_ERR_TIMEOUT);
	assert_true(toy_of(t)->killed && toy_of(t)->closed); /* the other one all the same */
	assert_int_equal(opened(m, NULL, (sb_session_options){ 0 }, &u), SB_ERR_MANAGER_CLOSED);
	toy_of(s)->stubborn = false;
	toy_drop(s);
	toy_drop(t);
	over(m);
}

static int alive_when_first_closed;
static sb_session *all[3];
static void first_close(toy *t)
{
	(void)t;
	toys.closing = NULL;
	for (int i = 0; i < 3; i++)
		alive_when_first_closed += !toy_of(all[i])->killed;
}

/* Before anything is waited for, nothing runs any more. */
static void kills_first(void **state)
{
	sb_manager *m = made((sb_manager_options){ 0 });

	(void)state;
	alive_when_first_closed = 0;
	for (int i = 0; i < 3; i++)
		all[i] = one(m, NULL);
	toys.closing = first_close;
	assert_int_equal(sb_manager_shutdown(m, NULL, NULL), 0);
	assert_int_equal(alive_when_first_closed, 0);
	for (int i = 0; i < 3; i++)
		toy_drop(all[i]);
	over(m);
}

static sb_manager *shut;
static void shut_meanwhile(void)
{
	const sb_wait wait = { .size = sizeof wait, .timeout_ms = 20 };

	toys.opening = NULL;
	/* the one that is being opened is not closed yet */
	assert_int_equal(sb_manager_shutdown(shut, &wait, NULL), SB_ERR_TIMEOUT);
}

static void shut_while_opening(void **state)
{
	sb_session *s;

	(void)state;
	shut = made((sb_manager_options){ 0 });
	toys.opening = shut_meanwhile;
	assert_int_equal(opened(shut, NULL, (sb_session_options){ 0 }, &s), SB_ERR_MANAGER_CLOSED);
	assert_null(s);
	assert_int_equal(toys.open, 0);
	over(shut);
}

static int clean(void *user, sb_session *s, const sb_wait *wait)
{
	(void)user;
	(void)s;
	(void)wait;
	toys.resets++;
	return 0;
}

static void from_a_pool(void **state)
{
	const sb_spec spec = { .size = sizeof spec };
	const sb_session_options python = { .size = sizeof python, .language = "python" };
	const sb_pool_options o = { .size = sizeof o, .spec = &spec, .session = &python, .reset = clean };
	sb_pool *pool = NULL;
	sb_session *s;

	(void)state;
	assert_int_equal(pool_make(NULL, &toy_ops, &o, &pool, NULL), 0);
	sb_manager *m = made((sb_manager_options){ .pool = pool });

	assert_int_equal(sb_pool_warm(pool, 1, NULL, NULL), 0);
	assert_int_equal(opened(m, NULL, (sb_session_options){ .language = "python" }, &s), 0);
	assert_int_equal(toys.made, 1);
	assert_int_equal(sb_pool_in_use(pool), 1);
	/* its user has a handle still: it must not become somebody else's */
	char id[32];

	snprintf(id, sizeof id, "%s", toy_id(s));
	assert_int_equal(sb_manager_close(m, id, NULL, NULL), 0);
	assert_int_equal(toys.resets, 0);
	assert_false(toy_usable(s));
	toy_drop(s);
	assert_int_equal(sb_pool_warm(pool, 1, NULL, NULL), 0);
	assert_int_equal(sb_pool_in_use(pool), 0);
	/* nobody has one: back it goes */
	assert_int_equal(opened(m, NULL, (sb_session_options){ 0 }, &s), 0);
	snprintf(id, sizeof id, "%s", toy_id(s));
	toy_drop(s);
	assert_int_equal(sb_manager_close(m, id, NULL, NULL), 0);
	assert_int_equal(toys.resets, 1);
	assert_int_equal(sb_pool_size(pool), 1);
	/* what does not fit is opened */
	assert_int_equal(opened(m, "mine", (sb_session_options){ 0 }, &s), 0);
	assert_string_equal(toy_id(s), "mine");
	toy_drop(s);
	assert_int_equal(opened(m, NULL, (sb_session_options){ .language = "lua" }, &s), 0);
	assert_string_equal(toy_language(s), "lua");
	toy_drop(s);
	assert_int_equal(sb_manager_shutdown(m, NULL, NULL), 0);
	sb_manager_free(m);
	sb_pool_free(pool);
	assert_int_equal(toys.open, 0);
	assert_int_equal(toys.broken, 0);
}

/* ---- with its thread, and the clock on the wall ---------------------------------------------------- */

static uint64_t real_now(void *user)
{
	(void)user;
	return clock_now_ns();
}

static sb_manager *with_thread(sb_manager_options o)
{
	keep_ops ops = toy_ops;
	sb_manager *m = NULL;

	ops.now_ns = real_now;
	o.size = sizeof o;
	assert_int_equal(manager_make(NULL, &ops, true, &o, &m, NULL), 0);
	return m;
}

static void the_reaper(void **state)
{
	sb_manager *m = with_thread((sb_manager_options){ .idle_ms = 20, .reap_ms = 5 });
	struct timespec pause = { .tv_nsec = 2000000 };
	sb_session *s[3];

	(void)state;
	toys.now_ns = clock_now_ns();
	for (int i = 0; i < 3; i++) {
		s[i] = one(m, NULL);
		toys.now_ns = clock_now_ns();
	}
	for (int i = 0; i < 1000 && sb_manager_count(m); i++)
		nanosleep(&pause, NULL);
	assert_int_equal(sb_manager_count(m), 0);
	for (int i = 0; i < 3; i++)
		toy_drop(s[i]);
	over(m);
}

static void *several(void *arg)
{
	for (int i = 0; i < 200; i++) {
		sb_session *s = NULL;
		char id[32];

		if (sb_manager_create(arg, NULL, NULL, NULL, &s, NULL) < 0)
			return arg;
		snprintf(id, sizeof id, "%s", toy_id(s));
		toy_drop(s);
		if (i % 3)
			sb_manager_close(arg, id, NULL, NULL);
	}
	return NULL;
}

static void many(void **state)
{
	sb_manager *m = with_thread((sb_manager_options){ .max_sessions = 1000, .idle_ms = 1, .reap_ms = 1 });
	pthread_t t[4];
	void *bad;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, several, m), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	over(m);
	assert_int_equal(toys.made, toys.closed);
}

/* No session, no thread; and a thousand managers leave nothing. */
static void cycles(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		sb_manager *m = with_thread((sb_manager_options){ 0 });

		if (i % 2)
			toy_drop(one(m, NULL));
		sb_manager_free(m);
	}
	assert_int_equal(toys.open, 0);
	assert_int_equal(toys.broken, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, toys_reset)
	const struct CMUnitTest tests[] = {
		TEST(cap), TEST(seats), TEST(ids), TEST(idle_and_lifetime), TEST(used_again), TEST(defaults),
		TEST(open_fails), TEST(stubborn), TEST(kills_first), TEST(shut_while_opening),
		TEST(from_a_pool), TEST(the_reaper), TEST(many), TEST(cycles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
