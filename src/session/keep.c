/* SPDX-License-Identifier: MIT */
/* keep.c - what pool and manager need of real sessions. */
#include "keep.h"
#include "live.h"

static int keep_open(void *user, const sb_spec *spec, const sb_session_options *opts,
		     const sb_wait *wait, sb_session **session, sb_error *err)
{
	return sb_session_open(user, spec, opts, wait, session, err);
}

static bool keep_usable(sb_session *s)
{
	int state = sb_session_state(s);

	return state != SB_STATE_KILLED && state != SB_STATE_CLOSED;
}

static uint64_t keep_idle_since(sb_session *s)
{
	if (sb_session_state(s) != SB_STATE_IDLE)
		return SB_UNLIMITED;
	pthread_mutex_lock(&s->lock);
	uint64_t since = s->busy ? SB_UNLIMITED : s->used_ns;

	pthread_mutex_unlock(&s->lock);
	return since;
}

static void keep_kill(sb_session *s)
{
	pthread_mutex_lock(&s->lock);
	session_begin_close(s);
	pthread_mutex_unlock(&s->lock);
}

static void keep_hold(sb_session *s)
{
	atomic_fetch_add(&s->handles, 1);
	session_ref(s);
}

static unsigned keep_handles(sb_session *s)
{
	return atomic_load(&s->handles);
}

static void keep_keep(sb_session *s, sb_manager *manager)
{
	pthread_mutex_lock(&s->lock);
	s->manager = manager;
	pthread_mutex_unlock(&s->lock);
}

static void keep_none(sb_session *s, sb_manager *manager)
{
	(void)s;
	(void)manager;
}

static uint64_t keep_now(void *user)
{
	(void)user;
	return clock_now_ns();
}

const keep_ops keep_sessions = {
	.open = keep_open, .id = sb_session_id, .language = sb_session_language, .usable = keep_usable,
	.idle_since = keep_idle_since, .kill = keep_kill, .close = sb_session_close, .hold = keep_hold,
	.drop = sb_session_free, .handles = keep_handles, .keep = keep_keep, .list = list_of,
	.now_ns = keep_now,
};

/* Without a handle: it still ends with the last one of its user's. */
const keep_ops keep_watched = {
	.open = keep_open, .id = sb_session_id, .language = sb_session_language, .usable = keep_usable,
	.idle_since = keep_idle_since, .kill = keep_kill, .close = sb_session_close, .hold = session_ref,
	.drop = session_unref, .handles = keep_handles, .keep = keep_none, .list = list_of,
	.now_ns = keep_now,
};

sb_wait keep_rest(const sb_wait *wait, const sb_call *call)
{
	sb_wait rest = { .size = sizeof rest, .timeout_ms = SB_UNLIMITED };
	uint64_t now = clock_now_ns();

	if (wait)
		record_read(&rest, sizeof rest, wait, "sb_wait", NULL);
	rest.size = sizeof rest;
	rest.timeout_ms = SB_UNLIMITED;
	if (call->deadline_ns != SB_UNLIMITED)
		rest.timeout_ms = call->deadline_ns > now ? (call->deadline_ns - now) / 1000000 : 0;
	if (!rest.timeout_ms)
		rest.timeout_ms = SB_NO_WAIT;
	return rest;
}
