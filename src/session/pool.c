/* SPDX-License-Identifier: MIT */
/*
 * pool.c - sessions that stand ready, to take and to give back.
 *
 *   making -> ready -> used -> returning -> ready, or closed
 *
 * The lock is over the list and the counts; nothing is made, reset, looked at or closed while it is held.
 * The pool has a handle of each session beside the user's.  A session whose user dropped the handle
 * instead of giving it back is found at the next call and closed.  There is no thread: what was ready
 * for too long goes when somebody takes or gives back.
 *
 * A pool that was freed while sessions are in use stays until the last of them is given back.
 */
#include "keep.h"

#include <unistd.h>

enum { POOL_SIZE = 5, POOL_MOST = 65536, POOL_IDLE_MS = 300000, POOL_WAIT_MS = 60000 };
enum { ITEM_READY = 0, ITEM_USED, ITEM_RETURNING };

typedef struct pool_item {
	struct pool_item *next;       /* the one that became what it is last comes first */
	sb_session *session;
	int state;
	uint64_t since_ns;            /* READY */
} pool_item;

struct sb_pool {
	pid_t pid;
	keep_ops ops;
	sb_sandbox *sandbox;          /* one reference, or NULL */
	arena mem;                    /* copies of the options */
	const sb_spec *spec;
	sb_session_options session;
	sb_pool_make_fn make;
	sb_pool_reset_fn reset;
	void *user;
	uint64_t max_size, max_idle_ns; /* SB_UNLIMITED */
	pthread_mutex_t lock;         /* over what follows */
	pool_item *items;
	size_t ready, in_use, making;
	size_t inside;                /* calls */
	bool closed;
};

static int pool_closed(sb_error *err)
{
	return error_set(err, SB_ERR_POOL_CLOSED, "pool", "the pool is closed");
}

/* ---- memory ------------------------------------------------------------------------------------ */

static void pool_destroy(sb_pool *pool)
{
	pthread_mutex_destroy(&pool->lock);
	arena_release(&pool->mem);
	if (pool->sandbox)
		sandbox_unref(pool->sandbox);
	free(pool);
}

static int pool_enter(sb_pool *pool, sb_error *err)
{
	if (!pool)
		return error_set(err, SB_ERR_INVALID, "pool", "the pool is NULL");
	if (pool->pid != getpid())
		return error_set(err, SB_ERR_CLOSED, "pool", "the pool belongs to the parent process");
	pthread_mutex_lock(&pool->lock);
	pool->inside++;
	pthread_mutex_unlock(&pool->lock);
	return 0;
}

static void pool_leave(sb_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	bool last = !--pool->inside && pool->closed && !pool->items && !pool->making;

	pthread_mutex_unlock(&pool->lock);
	if (last)
		pool_destroy(pool);
}

/* ---- the list: the lock is held ------------------------------------------------------------------ */

static void unlink_item(sb_pool *pool, pool_item **at, pool_item **out)
{
	pool_item *item = *at;

	*at = item->next;
	pool->ready -= item->state == ITEM_READY;
	pool->in_use -= item->state != ITEM_READY;
	item->next = *out;
	*out = item;
}

static void put_first(sb_pool *pool, pool_item *item, int state)
{
	item->state = state;
	item->next = pool->items;
	pool->items = item;
	pool->ready += state == ITEM_READY;
	pool->in_use += state != ITEM_READY;
}

/* Ready for too long, or left behind by whoever had taken it. */
static void sort_out(sb_pool *pool, uint64_t now_ns, pool_item **out)
{
	pool_item **at = &pool->items;

	while (*at) {
		const pool_item *item = *at;
		uint64_t idle = now_ns > item->since_ns ? now_ns - item->since_ns : 0;
		bool old = item->state == ITEM_READY && idle > pool->max_idle_ns;
		bool left = item->state == ITEM_USED && pool->ops.handles(item->session) < 2;

		if (old || left)
			unlink_item(pool, at, out);
		else
			at = &(*at)->next;
	}
}

static void close_items(const sb_pool *pool, pool_item *list)
{
	while (list) {
		pool_item *item = list;

		list = item->next;
		pool->ops.kill(item->session);
		pool->ops.close(item->session, NULL, NULL);
		pool->ops.drop(item->session);
		free(item);
	}
}

/* ---- making ---------------------------------------------------------------------------------------- */

static int make_session(const sb_pool *pool, const sb_wait *wait, sb_session **session, sb_error *err)
{
	int code;

	*session = NULL;
	code = pool->make ? pool->make(pool->user, wait, session, err)
			  : pool->ops.open(pool->ops.user, pool->spec, &pool->session, wait, session, err);
	if (code >= 0 && !*session)
		return error_set(err, SB_ERR_INTERNAL, "pool", "the maker of sessions gave none");
	return code < 0 ? code : 0;
}

static int make_item(const sb_pool *pool, const sb_wait *wait, pool_item **out, sb_error *err)
{
	pool_item *item = calloc(1, sizeof *item);
	int code = item ? make_session(pool, wait, &item->session, err) : error_no_memory(err, "pool");

	if (code < 0) {
		free(item);
		return code;
	}
	*out = item;
	return 0;
}

/* One more of `state`; counted in making until now.  What there is no room for is closed. */
static int add_made(sb_pool *pool, pool_item *item, int state, sb_error *err)
{
	pool_item *out = NULL;

	item->next = NULL;
	item->since_ns = pool->ops.now_ns(pool->ops.user);
	if (state == ITEM_USED)
		pool->ops.hold(item->session);
	pthread_mutex_lock(&pool->lock);
	pool->making--;
	bool closed = pool->closed;

	if (closed)
		out = item;
	else
		put_first(pool, item, state);
	pthread_mutex_unlock(&pool->lock);
	if (closed && state == ITEM_USED)
		pool->ops.drop(item->session);
	close_items(pool, out);
	return closed ? pool_closed(err) : 0;
}

static int fill_options(sb_pool *pool, const sb_pool_options *opts, sb_error *err)
{
	sb_pool_options o;
	sb_error why = { 0 };
	int code = record_read(&o, sizeof o, opts, "sb_pool_options", err);

	pool->session = (sb_session_options){ .size = sizeof pool->session };
	if (code >= 0 && o.session)
		code = record_read(&pool->session, sizeof pool->session, o.session,
				   "sb_session_options", err);
	if (code < 0)
		return code;
	if (!o.spec && !o.make)
		return error_set(err, SB_ERR_INVALID, "pool",
				 "nothing says what the sessions are; give a spec, or a function that "
				 "makes them");
	if (pool->session.id && !o.make)
		return error_set(err, SB_ERR_INVALID, "pool",
				 "the sessions of a pool cannot all have the id \"%.60s\"; leave it out",
				 pool->session.id);
	if (o.max_size > POOL_MOST)
		return error_set(err, SB_ERR_INVALID, "pool",
				 "a pool holds at most %d ready sessions, not %llu", POOL_MOST,
				 (unsigned long long)o.max_size);
	if (o.max_idle_ms > INT64_MAX && o.max_idle_ms != SB_UNLIMITED)
		return error_set(err, SB_ERR_INVALID, "pool", "max_idle_ms is negative");
	pool->session.language = arena_text(&pool->mem, pool->session.language);
	if (o.spec && !o.make && !(pool->spec = copy_spec(&pool->mem, o.spec, &why))) {
		if (err)
			*err = why;
		return why.code;
	}
	pool->make = o.make;
	pool->reset = o.reset;
	pool->user = o.user;
	pool->max_size = o.max_size ? o.max_size : POOL_SIZE;
	pool->max_idle_ns = clock_deadline_ns(0, o.max_idle_ms ? o.max_idle_ms : POOL_IDLE_MS);
	return pool->mem.failed ? error_no_memory(err, "pool") : 0;
}

int pool_make(sb_sandbox *sandbox, const keep_ops *ops, const sb_pool_options *opts, sb_pool **out,
	      sb_error *err)
{
	sb_pool *pool;
	int code;

	if (!out || !opts)
		return error_set(err, SB_ERR_INVALID, "pool", "%s",
				 out ? "a pool needs options" : "no place for the pool was given");
	pool = calloc(1, sizeof *pool);
	if (!pool)
		return error_no_memory(err, "pool");
	pool->pid = getpid();
	pool->ops = *ops;
	pthread_mutex_init(&pool->lock, NULL);
	pool->sandbox = sandbox;
	if (sandbox)
		sandbox_ref(sandbox);
	code = fill_options(pool, opts, err);
	if (code < 0) {
		pool_destroy(pool);
		return code;
	}
	*out = pool;
	return 0;
}

/* ---- the calls --------------------------------------------------------------------------------------- */

/* Makes until there are `count`, or as many as there may be; one that cannot be made ends it. */
static int warm_up(sb_pool *pool, uint64_t count, const sb_wait *wait, const sb_call *call, sb_error *err)
{
	pool_item *out = NULL, *item;
	int code = 0;

	while (code >= 0) {
		pthread_mutex_lock(&pool->lock);
		sort_out(pool, pool->ops.now_ns(pool->ops.user), &out);
		bool closed = pool->closed, enough = pool->ready + pool->making >= count;

		pool->making += !closed && !enough;
		pthread_mutex_unlock(&pool->lock);
		close_items(pool, out);
		out = NULL;
		if (closed || enough)
			return closed ? pool_closed(err) : 0;
		sb_wait rest = keep_rest(wait, call);

		code = sb_call_check(call, err);
		if (code >= 0)
			code = make_item(pool, &rest, &item, err);
		if (code >= 0) {
			code = add_made(pool, item, ITEM_READY, err);
			continue;
		}
		pthread_mutex_lock(&pool->lock);
		pool->making--;
		pthread_mutex_unlock(&pool->lock);
	}
	return code;
}

int sb_pool_warm(sb_pool *pool, size_t count, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = pool_enter(pool, err);

	if (code < 0)
		return code;
	code = call_init(&call, wait, POOL_WAIT_MS, err);
	if (code >= 0)
		code = warm_up(pool, count < pool->max_size ? count : pool->max_size, wait, &call, err);
	pool_leave(pool);
	return code;
}

/* The newest that is still there becomes USED; NULL = none, and one may be made. */
static int take_ready(sb_pool *pool, pool_item **found, sb_error *err)
{
	pool_item *out = NULL, **at;

	*found = NULL;
	for (;;) {
		pool_item *item = NULL;

		pthread_mutex_lock(&pool->lock);
		bool closed = pool->closed;

		sort_out(pool, pool->ops.now_ns(pool->ops.user), &out);
		for (at = &pool->items; !closed && *at && (*at)->state != ITEM_READY;)
			at = &(*at)->next;
		if (!closed && *at) {
			unlink_item(pool, at, &item);
			item->next = NULL;
			pool->ops.hold(item->session);
			put_first(pool, item, ITEM_USED);
		}
		pool->making += !closed && !item;
		pthread_mutex_unlock(&pool->lock);
		close_items(pool, out);
		out = NULL;
		if (closed)
			return pool_closed(err);
		if (!item || pool->ops.usable(item->session)) {
			*found = item;
			return 0;
		}
		/* it died while it waited: without its user's handle it is closed in the next round */
		pool->ops.drop(item->session);
	}
}

int sb_pool_acquire(sb_pool *pool, const sb_wait *wait, sb_session **session, sb_error *err)
{
	pool_item *item = NULL;
	int code = pool_enter(pool, err);

	if (code < 0)
		return code;
	code = session ? take_ready(pool, &item, err)
		       : error_set(err, SB_ERR_INVALID, "pool", "no place for the session was given");
	if (code >= 0 && !item) {
		code = make_item(pool, wait, &item, err);
		if (code >= 0) {
			code = add_made(pool, item, ITEM_USED, err);
		} else {
			pthread_mutex_lock(&pool->lock);
			pool->making--;
			pthread_mutex_unlock(&pool->lock);
		}
	}
	if (code >= 0)
		*session = item->session;
	pool_leave(pool);
	return code;
}

/* The one that was taken, from now on nobody else's; NULL = it was not, or is given back already. */
static pool_item *find_used(sb_pool *pool, const sb_session *session)
{
	pool_item *item;

	pthread_mutex_lock(&pool->lock);
	for (item = pool->items; item; item = item->next)
		if (item->session == session && item->state == ITEM_USED)
			break;
	if (item)
		item->state = ITEM_RETURNING;
	pthread_mutex_unlock(&pool->lock);
	return item;
}

/* Whoever kept another handle could go on using what is somebody else's next. */
static bool clean(sb_pool *pool, sb_session *session, const sb_wait *wait)
{
	pthread_mutex_lock(&pool->lock);
	bool closed = pool->closed;

	pthread_mutex_unlock(&pool->lock);
	return !closed && pool->reset && pool->ops.usable(session) &&
	       pool->reset(pool->user, session, wait) == 0 && pool->ops.usable(session) &&
	       pool->ops.handles(session) == 2;
}

static void give_back(sb_pool *pool, pool_item *item, bool is_clean)
{
	pool_item *out = NULL, **at;
	uint64_t now = pool->ops.now_ns(pool->ops.user);

	pool->ops.drop(item->session); /* the user's; ours is left */
	pthread_mutex_lock(&pool->lock);
	sort_out(pool, now, &out);
	for (at = &pool->items; *at != item;)
		at = &(*at)->next;
	unlink_item(pool, at, &out);
	if (is_clean && !pool->closed && pool->ready + pool->making < pool->max_size) {
		out = item->next;
		item->since_ns = now;
		put_first(pool, item, ITEM_READY);
	}
	pthread_mutex_unlock(&pool->lock);
	close_items(pool, out);
}

int sb_pool_release(sb_pool *pool, sb_session *session, const sb_wait *wait, sb_error *err)
{
	pool_item *item;
	int code = pool_enter(pool, err);

	if (code < 0)
		return code;
	item = find_used(pool, session);
	if (item)
		give_back(pool, item, clean(pool, session, wait));
	else
		code = error_set(err, SB_ERR_INVALID, "pool",
				 "the session was not taken from this pool, or is given back already");
	pool_leave(pool);
	return code;
}

static size_t count(const sb_pool *pool, bool used)
{
	sb_pool *own = (sb_pool *)pool;
	size_t n;

	if (!pool || pool->pid != getpid())
		return 0;
	pthread_mutex_lock(&own->lock);
	n = used ? own->in_use : own->ready;
	pthread_mutex_unlock(&own->lock);
	return n;
}

size_t sb_pool_size(const sb_pool *pool)
{
	return count(pool, false);
}

size_t sb_pool_in_use(const sb_pool *pool)
{
	return count(pool, true);
}

void sb_pool_free(sb_pool *pool)
{
	pool_item *out = NULL, **at;

	if (!pool || pool_enter(pool, NULL) < 0)
		return; /* a child's copy: the guests are its parent's */
	pthread_mutex_lock(&pool->lock);
	pool->closed = true;
	sort_out(pool, 0, &out);
	for (at = &pool->items; *at;)
		if ((*at)->state == ITEM_READY)
			unlink_item(pool, at, &out);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&pool->lock);
	close_items(pool, out);
	pool_leave(pool);
}

int sb_pool_new(sb_sandbox *sandbox, const sb_pool_options *opts, sb_pool **pool, sb_error *err)
{
	keep_ops ops = keep_sessions;
	int code = sandbox_check(sandbox, err);

	ops.user = sandbox;
	return code < 0 ? code : pool_make(sandbox, &ops, opts, pool, err);
}
