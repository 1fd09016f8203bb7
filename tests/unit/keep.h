/* SPDX-License-Identifier: MIT */
/*
 * keep.h - sessions that do as the test likes, and a clock that it turns, for pool and manager.
 *
 * A toy counts its handles as a session does; dropped by the last, it is closed.  What is done to one
 * that is gone, or twice where once is promised, is counted in toys.broken.
 */
#ifndef SB_TESTS_UNIT_KEEP_H
#define SB_TESTS_UNIT_KEEP_H

#include "unit.h"

#include "../../src/session/keep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct toy {
	char id[32];
	const char *language;
	atomic_uint handles;
	sb_manager *_Atomic keeper;
	atomic_bool dead, killed, closed, stubborn;
	_Atomic uint64_t idle_since; /* SB_UNLIMITED = busy */
} toy;

static struct {
	atomic_int made, open, closed, broken, kills, resets;
	_Atomic uint64_t now_ns;
	atomic_int fail_code;     /* of the next ones that are opened */
	atomic_int reset_code;
	void (*opening)(void);    /* called while one is being opened */
	void (*closing)(toy *t);
	uint64_t flags;           /* of the last one */
	sb_limits limits;
} toys;
static pthread_mutex_t last_one = PTHREAD_MUTEX_INITIALIZER; /* threads open them at once */

static toy *toy_of(const sb_session *s)
{
	toy *t = (toy *)(uintptr_t)s;

	if (!t)
		abort();
	toys.broken += !t->handles;
	return t;
}

static int toy_open(void *user, const sb_spec *spec, const sb_session_options *opts, const sb_wait *wait,
		    sb_session **session, sb_error *err)
{
	toy *t = calloc(1, sizeof *t);

	(void)user;
	(void)wait;
	if (toys.opening)
		toys.opening();
	if (toys.fail_code) {
		free(t);
		return error_set(err, toys.fail_code, "toy", "told to fail");
	}
	snprintf(t->id, sizeof t->id, "%s", opts && opts->id ? opts->id : "");
	if (!t->id[0])
		snprintf(t->id, sizeof t->id, "toy-%d", toys.made);
	t->language = opts && opts->language ? opts->language : "";
	pthread_mutex_lock(&last_one);
	toys.flags = opts ? opts->flags : 0;
	toys.limits = spec && spec->limits ? *spec->limits : (sb_limits){ 0 };
	pthread_mutex_unlock(&last_one);
	t->handles = 1;
	t->idle_since = toys.now_ns;
	toys.made++;
	toys.open++;
	*session = (sb_session *)(void *)t;
	return 0;
}

static const char *toy_id(const sb_session *s)
{
	return toy_of(s)->id;
}

static const char *toy_language(const sb_session *s)
{
	return toy_of(s)->language;
}

static bool toy_usable(sb_session *s)
{
	const toy *t = toy_of(s);

	return !t->dead && !t->closed && !t->killed;
}

static uint64_t toy_idle_since(sb_session *s)
{
	return toy_of(s)->idle_since;
}

static void toy_kill(sb_session *s)
{
	toys.kills++;
	toy_of(s)->killed = true;
}

static int close_toy(toy *t, sb_error *err)
{

	if (!t->killed)
		toys.broken++; /* killed first: whoever closes may wait for what runs in it */
	if (toys.closing)
		toys.closing(t);
	if (t->stubborn)
		return error_set(err, SB_ERR_TIMEOUT, "toy", "does not end");
	if (!atomic_exchange(&t->closed, true)) {
		toys.open--;
		toys.closed++;
	}
	return 0;
}

static int toy_close(sb_session *s, const sb_wait *wait, sb_error *err)
{
	(void)wait;
	return close_toy(toy_of(s), err);
}

static void toy_hold(sb_session *s)
{
	toy_of(s)->handles++;
}

static void toy_drop(sb_session *s)
{
	toy *t = toy_of(s);

	if (--t->handles)
		return;
	t->stubborn = false;
	t->killed = true;
	close_toy(t, NULL);
	free(t);
}

static unsigned toy_handles(sb_session *s)
{
	return toy_of(s)->handles;
}

static void toy_keep(sb_session *s, sb_manager *manager)
{
	toy_of(s)->keeper = manager;
}

static uint64_t toy_now(void *user)
{
	(void)user;
	return toys.now_ns;
}

static const keep_ops toy_ops = { .open = toy_open, .id = toy_id, .language = toy_language,
	.usable = toy_usable, .idle_since = toy_idle_since, .kill = toy_kill, .close = toy_close,
	.hold = toy_hold, .drop = toy_drop, .handles = toy_handles, .keep = toy_keep,
	.now_ns = toy_now };

static int toys_reset(void **state)
{
	(void)state;
	memset(&toys, 0, sizeof toys);
	toys.now_ns = 1000000000u;
	return 0;
}

static void pass_ms(uint64_t ms)
{
	toys.now_ns += ms * 1000000;
}

#endif /* SB_TESTS_UNIT_KEEP_H */
