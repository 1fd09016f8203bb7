/* SPDX-License-Identifier: MIT */
/* session_pool.c - the pool over scripted sessions and a clock of the test's. */
#include "keep.h"

#include <pthread.h>

static const sb_spec spec = { .size = sizeof spec };

static sb_pool *made(sb_pool_options o)
{
	sb_pool *pool = NULL;
	sb_error err = { 0 };

	o.size = sizeof o;
	if (!o.spec && !o.make)
		o.spec = &spec;
	if (pool_make(NULL, &toy_ops, &o, &pool, &err) < 0)
		fail_msg("%s", err.message);
	return pool;
}

static sb_session *taken(sb_pool *pool)
{
	sb_session *s = NULL;

	assert_int_equal(sb_pool_acquire(pool, NULL, &s, NULL), 0);
	assert_non_null(s);
	return s;
}

static void given(sb_pool *pool, sb_session *s)
{
	assert_int_equal(sb_pool_release(pool, s, NULL, NULL), 0);
}

static int reset(void *user, sb_session *s, const sb_wait *wait)
{
	(void)user;
	(void)wait;
	toy_of(s);
	toys.resets++;
	return toys.reset_code;
}

static void all_gone(void)
{
	assert_int_equal(toys.open, 0);
	assert_int_equal(toys.closed, toys.made);
	assert_int_equal(toys.broken, 0);
}

static void options(void **state)
{
	const sb_session_options named = { .size = sizeof named, .id = "x" };
	sb_pool_options o = { .size = sizeof o };
	sb_pool *pool = NULL;

	(void)state;
	assert_int_equal(pool_make(NULL, &toy_ops, &o, &pool, NULL), SB_ERR_INVALID);
	assert_int_equal(pool_make(NULL, &toy_ops, NULL, &pool, NULL), SB_ERR_INVALID);
	o.spec = &spec;
	o.session = &named;
	assert_int_equal(pool_make(NULL, &toy_ops, &o, &pool, NULL), SB_ERR_INVALID);
	o.session = NULL;
	o.max_size = SB_UNLIMITED;
	assert_int_equal(pool_make(NULL, &toy_ops, &o, &pool, NULL), SB_ERR_INVALID);
	o.max_size = 0;
	o.max_idle_ms = (uint64_t)-5;
	assert_int_equal(pool_make(NULL, &toy_ops, &o, &pool, NULL), SB_ERR_INVALID);
	o.size = 0;
	assert_int_equal(pool_make(NULL, &toy_ops, &o, &pool, NULL), SB_ERR_INVALID);
	assert_null(pool);
	assert_int_equal(sb_pool_warm(NULL, 1, NULL, NULL), SB_ERR_INVALID);
	assert_int_equal(sb_pool_size(NULL), 0);
	sb_pool_free(NULL);
}

static void warm_to_the_cap(void **state)
{
	sb_pool *pool = made((sb_pool_options){ 0 });

	(void)state;
	assert_int_equal(sb_pool_warm(pool, 2, NULL, NULL), 0);
	assert_int_equal(sb_pool_size(pool), 2);
	assert_int_equal(sb_pool_warm(pool, 99, NULL, NULL), 0);
	assert_int_equal(sb_pool_size(pool), 5);
	assert_int_equal(sb_pool_warm(pool, 99, NULL, NULL), 0);
	assert_int_equal(toys.made, 5);
	sb_pool_free(pool);
	all_gone();
}

static void warm_fails(void **state)
{
	sb_pool *pool = made((sb_pool_options){ 0 });
	sb_session *s = NULL;

	(void)state;
	toys.fail_code = SB_ERR_BACKEND_UNAVAILABLE;
	assert_int_equal(sb_pool_warm(pool, 3, NULL, NULL), SB_ERR_BACKEND_UNAVAILABLE);
	assert_int_equal(sb_pool_acquire(pool, NULL, &s, NULL), SB_ERR_BACKEND_UNAVAILABLE);
	assert_null(s);
	assert_int_equal(sb_pool_size(pool), 0);
	assert_int_equal(sb_pool_in_use(pool), 0);
	toys.fail_code = 0;
	assert_int_equal(sb_pool_warm(pool, 3, NULL, NULL), 0);
	assert_int_equal(sb_pool_size(pool), 3);
	sb_pool_free(pool);
	all_gone();
}

static void newest_first(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .reset = reset });

	(void)state;
	assert_int_equal(sb_pool_warm(pool, 3, NULL, NULL), 0);
	sb_session *a = taken(pool), *b = taken(pool);

	assert_string_equal(toy_id(a), "toy-2");
	assert_string_equal(toy_id(b), "toy-1");
	assert_int_equal(sb_pool_in_use(pool), 2);
	given(pool, a);
	assert_ptr_equal(taken(pool), a);
	assert_int_equal(toys.made, 3);
	assert_int_equal(toys.resets, 1);
	given(pool, a);
	given(pool, b);
	assert_int_equal(sb_pool_size(pool), 3);
	sb_pool_free(pool);
	all_gone();
}

static void full_when_given_back(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .reset = reset });
	sb_session *s[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		s[i] = taken(pool);
	assert_int_equal(sb_pool_in_use(pool), 6);
	for (int i = 0; i < 6; i++)
		given(pool, s[i]);
	assert_int_equal(sb_pool_size(pool), 5);
	assert_int_equal(sb_pool_in_use(pool), 0);
	assert_int_equal(toys.closed, 1);
	/* those that are too old make room first */
	sb_session *again = taken(pool);

	pass_ms(300001);
	given(pool, again);
	assert_int_equal(sb_pool_size(pool), 1);
	assert_int_equal(toys.open, 1);
	sb_pool_free(pool);
	all_gone();
}

static void one_use_each(void **state)
{
	sb_pool *pool = made((sb_pool_options){ 0 });
	sb_session *s = taken(pool);

	(void)state;
	given(pool, s);
	assert_int_equal(sb_pool_size(pool), 0);
	assert_int_equal(toys.open, 0);
	s = taken(pool);
	assert_int_equal(toys.made, 2);
	given(pool, s);
	sb_pool_free(pool);
	all_gone();
}

static void unclean(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .reset = reset });
	sb_session *s = taken(pool);

	(void)state;
	toys.reset_code = SB_ERR_IO;
	given(pool, s);
	assert_int_equal(sb_pool_size(pool), 0);
	toys.reset_code = 0;
	/* dead: not even asked */
	s = taken(pool);
	toy_of(s)->dead = true;
	given(pool, s);
	assert_int_equal(toys.resets, 1);
	assert_int_equal(sb_pool_size(pool), 0);
	/* somebody else could go on using it */
	s = taken(pool);
	toy_hold(s);
	given(pool, s);
	assert_int_equal(sb_pool_size(pool), 0);
	toy_drop(s);
	sb_pool_free(pool);
	all_gone();
}

static void idle_too_long(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .max_idle_ms = 1000 });

	(void)state;
	assert_int_equal(sb_pool_warm(pool, 3, NULL, NULL), 0);
	pass_ms(1000);
	assert_int_equal(sb_pool_size(pool), 3); /* no thread: nobody has looked */
	sb_session *s = taken(pool);

	assert_string_equal(toy_id(s), "toy-2");
	pass_ms(1);
	assert_int_equal(sb_pool_size(pool), 2);
	sb_session *t = taken(pool);

	assert_string_equal(toy_id(t), "toy-3");
	assert_int_equal(sb_pool_size(pool), 0);
	given(pool, s);
	given(pool, t);
	sb_pool_free(pool);
	all_gone();
}

static void dead_when_taken(void **state)
{
	sb_pool *pool = made((sb_pool_options){ 0 });

	(void)state;
	assert_int_equal(sb_pool_warm(pool, 3, NULL, NULL), 0);
	sb_session *s = taken(pool);

	given(pool, s);
	s = taken(pool);
	toy_of(s)->dead = true;
	given(pool, s);
	assert_int_equal(sb_pool_warm(pool, 3, NULL, NULL), 0);
	/* all but the oldest die while they wait */
	sb_session *a = taken(pool), *b = taken(pool);

	toy_of(a)->dead = toy_of(b)->dead = true;
	sb_session *c = taken(pool);

	toy_of(c)->dead = true;
	given(pool, a);
	given(pool, b);
	given(pool, c);
	assert_int_equal(sb_pool_in_use(pool), 0);
	sb_pool_free(pool);
	all_gone();
}

static void kill_ready(void)
{
	toys.opening = NULL;
}

static sb_session *kept;
static int make_kept(void *user, const sb_wait *wait, sb_session **out, sb_error *err)
{
	int code = toy_open(user, NULL, NULL, wait, out, err);

	kept = *out;
	return code;
}

static void dead_while_it_waited(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .make = make_kept });

	(void)state;
	toys.opening = kill_ready;
	assert_int_equal(sb_pool_warm(pool, 1, NULL, NULL), 0);
	toy_of(kept)->dead = true;
	sb_session *s = taken(pool);

	assert_int_equal(toys.made, 2);
	assert_int_equal(sb_pool_in_use(pool), 1);
	given(pool, s);
	sb_pool_free(pool);
	all_gone();
}

static void twice_and_foreign(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .reset = reset }), *other = made((sb_pool_options){ 0 });
	sb_session *s = taken(pool), *foreign = taken(other);

	(void)state;
	assert_int_equal(sb_pool_release(pool, foreign, NULL, NULL), SB_ERR_INVALID);
	assert_int_equal(sb_pool_release(pool, NULL, NULL, NULL), SB_ERR_INVALID);
	assert_int_equal(toy_handles(foreign), 2); /* not consumed */
	given(pool, s);
	assert_int_equal(sb_pool_release(pool, s, NULL, NULL), SB_ERR_INVALID);
	assert_int_equal(sb_pool_size(pool), 1);
	given(other, foreign);
	sb_pool_free(pool);
	sb_pool_free(other);
	all_gone();
}

/* Its user dropped the handle instead of giving it back. */
static void left_behind(void **state)
{
	sb_pool *pool = made((sb_pool_options){ 0 });
	sb_session *s = taken(pool);

	(void)state;
	toy_drop(s);
	assert_int_equal(toys.open, 1);
	assert_int_equal(sb_pool_in_use(pool), 1);
	assert_int_equal(sb_pool_warm(pool, 1, NULL, NULL), 0);
	assert_int_equal(sb_pool_in_use(pool), 0);
	assert_int_equal(toys.open, 1);
	s = taken(pool);
	toy_drop(s);
	sb_pool_free(pool);
	all_gone();
}

static void freed_in_use(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .reset = reset });
	sb_session *a = taken(pool), *b = taken(pool), *c = NULL;

	(void)state;
	assert_int_equal(sb_pool_warm(pool, 2, NULL, NULL), 0);
	sb_pool_free(pool);
	assert_int_equal(toys.open, 2); /* under their users: not touched */
	assert_int_equal(sb_pool_acquire(pool, NULL, &c, NULL), SB_ERR_POOL_CLOSED);
	assert_int_equal(sb_pool_warm(pool, 2, NULL, NULL), SB_ERR_POOL_CLOSED);
	given(pool, a);
	assert_int_equal(toys.open, 1);
	given(pool, b); /* the last takes the pool along */
	assert_int_equal(toys.resets, 0);
	all_gone();
}

static sb_pool *closing;
static void close_meanwhile(void)
{
	toys.opening = NULL;
	sb_pool_free(closing);
}

/* What was made for a pool that is gone by then is closed. */
static void freed_while_making(void **state)
{
	sb_session *s = NULL;

	(void)state;
	closing = made((sb_pool_options){ 0 });
	toys.opening = close_meanwhile;
	assert_int_equal(sb_pool_acquire(closing, NULL, &s, NULL), SB_ERR_POOL_CLOSED);
	assert_null(s);
	all_gone();
	closing = made((sb_pool_options){ 0 });
	toys.opening = close_meanwhile;
	assert_int_equal(sb_pool_warm(closing, 3, NULL, NULL), SB_ERR_POOL_CLOSED);
	all_gone();
}

static void *several(void *arg)
{
	for (int i = 0; i < 500; i++) {
		sb_session *s = NULL;

		if (sb_pool_acquire(arg, NULL, &s, NULL) < 0)
			return arg;
		if (i % 7 == 0)
			toy_of(s)->dead = true;
		if (sb_pool_release(arg, s, NULL, NULL) < 0)
			return arg;
		if (i % 11 == 0 && sb_pool_warm(arg, 3, NULL, NULL) < 0)
			return arg;
	}
	return NULL;
}

static void threads(void **state)
{
	sb_pool *pool = made((sb_pool_options){ .reset = reset });
	pthread_t t[4];
	void *bad;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, several, pool), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(sb_pool_in_use(pool), 0);
	assert_true(sb_pool_size(pool) <= 5);
	assert_int_equal(toys.open, sb_pool_size(pool));
	sb_pool_free(pool);
	all_gone();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, toys_reset)
	const struct CMUnitTest tests[] = {
		TEST(options), TEST(warm_to_the_cap), TEST(warm_fails), TEST(newest_first),
		TEST(full_when_given_back), TEST(one_use_each), TEST(unclean), TEST(idle_too_long),
		TEST(dead_when_taken), TEST(dead_while_it_waited), TEST(twice_and_foreign),
		TEST(left_behind), TEST(freed_in_use), TEST(freed_while_making), TEST(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
