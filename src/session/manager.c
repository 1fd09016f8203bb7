/* SPDX-License-Identifier: MIT */
/*
 * manager.c - many live sessions, with a cap, and limits of idleness and age.
 *
 * An entry is open or closing; one that is just being opened holds its place and its id by a claim.  The
 * lock is over the two lists; nothing is opened, killed or closed while it is held.  The manager has a
 * handle of each session beside those that it gave out.
 *
 * The reaper is a thread that sleeps until the next session can be due (rounded up to the interval, so
 * that many are one look), and for ever while none can.  Whoever adds a session wakes it.  What is due it
 * kills and closes; nobody waits for it but a shutdown, and that only as long as it may.
 */
#include "keep.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum { MANAGER_SESSIONS = 64, MANAGER_IDLE_MS = 300000, MANAGER_LIFETIME_MS = 3600000, MANAGER_REAP_MS = 10000,
       MANAGER_CLOSE_MS = 10000, MANAGER_OPEN_MS = 60000 };

typedef struct entry {
	struct entry *next, *next_taken; /* next_taken: of those that a shutdown closes */
	sb_session *session;
	uint64_t idle_ns, lifetime_ns; /* SB_UNLIMITED = no end */
	uint64_t opened_ns;
	bool pooled;                  /* to be given back */
	bool closing;                 /* somebody is at it, and nobody else touches it */
} entry;

typedef struct claim {
	struct claim *next;
	const char *id;               /* NULL = a random one */
} claim;

struct sb_manager {
	pid_t pid;
	keep_ops ops;
	sb_sandbox *sandbox;          /* one reference, or NULL */
	uint64_t max, idle_ns, lifetime_ns, reap_ns;
	sb_limits limits;             /* zeros = none */
	sb_pool *pool;
	uint64_t session_flags;
	pthread_mutex_t lock;         /* over what follows */
	pthread_cond_t changed;
	entry *entries;
	claim *claims;
	size_t count, opening, opened; /* opened: so far */
	bool closed, threaded;
	bool started, running;        /* the reaper; running: until its last look */
	pthread_t thread;
};

static int manager_closed(sb_error *err)
{
	return error_set(err, SB_ERR_MANAGER_CLOSED, "manager", "the manager is shut down");
}

static int manager_check(const sb_manager *m, sb_error *err)
{
	if (!m)
		return error_set(err, SB_ERR_INVALID, "manager", "the manager is NULL");
	if (m->pid != getpid())
		return error_set(err, SB_ERR_CLOSED, "manager",
				 "the manager belongs to the parent process");
	return 0;
}

static int still_open(sb_error *err)
{
	return error_set(err, SB_ERR_TIMEOUT, "manager",
			 "some sessions are not closed yet; close again to wait for them");
}

/* ---- entries: the lock is held ------------------------------------------------------------------- */

static entry **find_entry(sb_manager *m, const char *id)
{
	entry **at = &m->entries;

	while (*at && strcmp(m->ops.id((*at)->session), id))
		at = &(*at)->next;
	return at;
}

static entry **place_of(sb_manager *m, const entry *e)
{
	entry **at = &m->entries;

	while (*at && *at != e)
		at = &(*at)->next;
	return at;
}

static bool id_taken(sb_manager *m, const char *id)
{
	const claim *c;

	for (c = m->claims; c; c = c->next)
		if (c->id && !strcmp(c->id, id))
			return true;
	return *find_entry(m, id);
}

static void unclaim(sb_manager *m, claim *own)
{
	claim **at = &m->claims;

	while (*at != own)
		at = &(*at)->next;
	*at = own->next;
	m->opening--;
}

/* ---- closing ---------------------------------------------------------------------------------------- */

/* Off the list, while it is somebody's still to be finished; or on it again. */
static void set_aside(sb_manager *m, entry *e, bool aside)
{
	pthread_mutex_lock(&m->lock);
	if (aside) {
		*place_of(m, e) = e->next;
	} else {
		e->next = m->entries;
		m->entries = e;
	}
	m->count += aside ? (size_t)-1 : 1;
	m->opening += aside ? 1 : (size_t)-1;
	pthread_mutex_unlock(&m->lock);
}

/* To the pool, with our handle, if nobody has one any more but it and we: whoever had one could go on using
 * what is somebody else's by then.  Off the list before: from then on it is not ours to look at. */
static bool give_back(sb_manager *m, entry *e, const sb_wait *wait)
{
	if (!e->pooled || !m->ops.usable(e->session) || m->ops.handles(e->session) != 2)
		return false;
	set_aside(m, e, true);
	m->ops.keep(e->session, NULL);
	if (sb_pool_release(m->pool, e->session, wait, NULL) < 0) {
		m->ops.keep(e->session, m);
		set_aside(m, e, false);
		return false;
	}
	pthread_mutex_lock(&m->lock);
	m->opening--;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	free(e);
	return true;
}

/* An entry that we marked as closing.  What does not end in time stays, for another try. */
static int close_entry(sb_manager *m, entry *e, const sb_wait *wait, sb_error *err)
{
	int code;

	if (give_back(m, e, wait))
		return 0;
	void (*drop)(sb_session *session) = m->ops.drop; /* without an entry the manager may be gone */

	e->pooled = false; /* the pool will find that it was left behind */
	m->ops.kill(e->session);
	code = m->ops.close(e->session, wait, err);
	pthread_mutex_lock(&m->lock);
	e->closing = false;
	if (code >= 0) {
		*place_of(m, e) = e->next;
		m->count--;
		m->ops.keep(e->session, NULL);
	}
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	if (code >= 0) {
		drop(e->session);
		free(e);
	}
	return code;
}

/* ---- the reaper --------------------------------------------------------------------------------------- */

static uint64_t later(uint64_t ns, uint64_t by)
{
	return ns > SB_UNLIMITED - by ? SB_UNLIMITED : ns + by;
}

/* When it is due at the earliest. */
static uint64_t due(const sb_manager *m, const entry *e)
{
	uint64_t since = m->ops.idle_since(e->session), idle, old;

	if (!m->ops.usable(e->session))
		return 0;
	/* a busy one can be idle no sooner than a whole time from now */
	if (since == SB_UNLIMITED)
		since = m->ops.now_ns(m->ops.user);
	idle = e->idle_ns == SB_UNLIMITED ? SB_UNLIMITED : later(since, e->idle_ns);
	old = e->lifetime_ns == SB_UNLIMITED ? SB_UNLIMITED : later(e->opened_ns, e->lifetime_ns);
	return idle < old ? idle : old;
}

/* One that is due now, marked; else NULL, and when the next one is. */
static entry *take_due(sb_manager *m, uint64_t now, uint64_t *next)
{
	entry *e;

	*next = SB_UNLIMITED;
	for (e = m->entries; e; e = e->next) {
		uint64_t at = e->closing ? SB_UNLIMITED : due(m, e);

		if (at <= now) {
			e->closing = true;
			return e;
		}
		*next = at < *next ? at : *next;
	}
	return NULL;
}

uint64_t manager_reap(sb_manager *m)
{
	const sb_wait wait = { .size = sizeof wait, .timeout_ms = MANAGER_CLOSE_MS };
	uint64_t now, next = SB_UNLIMITED;
	entry *e;

	do {
		pthread_mutex_lock(&m->lock);
		now = m->ops.now_ns(m->ops.user);
		e = m->closed ? NULL : take_due(m, now, &next);
		pthread_mutex_unlock(&m->lock);
		if (!e || close_entry(m, e, &wait, NULL) >= 0)
			continue;
		/* it did not end in that time: not at once again */
		return later(now, m->reap_ns);
	} while (e);
	return next == SB_UNLIMITED ? next : later(next, (m->reap_ns - next % m->reap_ns) % m->reap_ns);
}

/* Until then, or until something has changed. */
static int sleep_until(sb_manager *m, uint64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };

	return ns == SB_UNLIMITED ? pthread_cond_wait(&m->changed, &m->lock)
				  : pthread_cond_timedwait(&m->changed, &m->lock, &until);
}

static void *reaper(void *user)
{
	sb_manager *m = user;

	pthread_mutex_lock(&m->lock);
	while (!m->closed) {
		size_t seen = m->opened;

		pthread_mutex_unlock(&m->lock);
		uint64_t next = manager_reap(m);

		pthread_mutex_lock(&m->lock);
		/* one that came meanwhile was not looked at */
		if (!m->closed && m->opened == seen)
			sleep_until(m, next);
	}
	m->running = false;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

void manager_look(sb_manager *m)
{
	pthread_mutex_lock(&m->lock);
	m->opened++;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* The lock is held.  Signals are for the application's own threads. */
static int start_reaper(sb_manager *m, sb_error *err)
{
	sigset_t all, old;
	int rc;

	if (!m->threaded || m->running)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&m->thread, NULL, reaper, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return error_errno(err, SB_ERR_INTERNAL, rc, "manager", "cannot start a thread");
	m->running = m->started = true;
	return 0;
}

/* ---- making --------------------------------------------------------------------------------------------- */

static uint64_t span(uint64_t ms, uint64_t otherwise_ms)
{
	return clock_deadline_ns(0, ms ? ms : otherwise_ms);
}

static bool negative(uint64_t ms)
{
	return ms > INT64_MAX && ms != SB_UNLIMITED;
}

static int fill_options(sb_manager *m, const sb_manager_options *opts, sb_error *err)
{
	sb_manager_options o = { .size = sizeof o };
	int code = opts ? record_read(&o, sizeof o, opts, "sb_manager_options", err) : 0;

	if (code >= 0 && o.default_limits)
		code = record_read(&m->limits, sizeof m->limits, o.default_limits, "sb_limits", err);
	if (code >= 0 && o.default_limits)
		code = limits_check_set(&m->limits, err);
	if (code < 0)
		return code;
	if (negative(o.idle_ms) || negative(o.lifetime_ms) || negative(o.reap_ms))
		return error_set(err, SB_ERR_INVALID, "manager", "a time is negative");
	if (o.max_sessions > MANAGER_MOST)
		return error_set(err, SB_ERR_INVALID, "manager",
				 "a manager holds at most %d sessions, not %llu", MANAGER_MOST,
				 (unsigned long long)o.max_sessions);
	if (o.session_flags & ~(uint64_t)SB_SESSION_AUTO_RESTART)
		return error_set(err, SB_ERR_UNSUPPORTED, "manager", "unknown session flags 0x%llx",
				 (unsigned long long)o.session_flags);
	m->max = o.max_sessions ? o.max_sessions : MANAGER_SESSIONS;
	m->idle_ns = span(o.idle_ms, MANAGER_IDLE_MS);
	m->lifetime_ns = span(o.lifetime_ms, MANAGER_LIFETIME_MS);
	/* no interval means no delay */
	m->reap_ns = o.reap_ms == SB_UNLIMITED ? 1 : span(o.reap_ms, MANAGER_REAP_MS);
	m->pool = o.pool;
	m->session_flags = o.session_flags;
	return 0;
}

static void manager_destroy(sb_manager *m)
{
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	if (m->sandbox)
		sandbox_unref(m->sandbox);
	free(m);
}

int manager_make(sb_sandbox *sandbox, const keep_ops *ops, bool thread, const sb_manager_options *opts,
		 sb_manager **out, sb_error *err)
{
	pthread_condattr_t attr;
	sb_manager *m;
	int code;

	if (!out)
		return error_set(err, SB_ERR_INVALID, "manager", "no place for the manager was given");
	m = calloc(1, sizeof *m);
	if (!m)
		return error_no_memory(err, "manager");
	m->pid = getpid();
	m->ops = *ops;
	m->threaded = thread;
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &attr);
	pthread_condattr_destroy(&attr);
	m->sandbox = sandbox;
	if (sandbox)
		sandbox_ref(sandbox);
	code = fill_options(m, opts, err);
	if (code < 0) {
		manager_destroy(m);
		return code;
	}
	*out = m;
	return 0;
}

int sb_manager_new(sb_sandbox *sandbox, const sb_manager_options *opts, sb_manager **manager,
		   sb_error *err)
{
	keep_ops ops = keep_sessions;
	int code = sandbox_check(sandbox, err);

	ops.user = sandbox;
	return code < 0 ? code : manager_make(sandbox, &ops, true, opts, manager, err);
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

/* The lock is held.  Those that have died meanwhile take no place. */
static size_t alive(sb_manager *m)
{
	size_t n = m->opening;
	const entry *e;

	for (e = m->entries; e; e = e->next)
		n += !e->closing && m->ops.usable(e->session);
	return n;
}

static int take_claim(sb_manager *m, claim *own, sb_error *err)
{
	int code = 0;

	pthread_mutex_lock(&m->lock);
	if (m->closed)
		code = manager_closed(err);
	else if (own->id && id_taken(m, own->id))
		code = error_set(err, SB_ERR_CONFLICT, "manager",
				 "the id \"%.80s\" is in use; choose another", own->id);
	else if (alive(m) >= m->max)
		code = error_set(err, SB_ERR_TOO_MANY_SESSIONS, "manager",
				 "%llu sessions are open already, which is the most; close one",
				 (unsigned long long)m->max);
	if (code >= 0)
		code = start_reaper(m, err);
	if (code >= 0) {
		own->next = m->claims;
		m->claims = own;
		m->opening++;
	}
	pthread_mutex_unlock(&m->lock);
	return code;
}

/* A ready session is one of the pool's own kind: it fits who asks for nothing of his own. */
static int from_pool(sb_manager *m, const sb_spec *spec, const sb_session_options *o, const sb_wait *wait,
		     sb_session **session)
{
	if (!m->pool || spec || o->id || o->max_evals || o->flags || m->session_flags || m->limits.size)
		return SB_ERR_NOT_FOUND;
	if (sb_pool_acquire(m->pool, wait, session, NULL) < 0)
		return SB_ERR_NOT_FOUND;
	if (!o->language || !strcmp(m->ops.language(*session), o->language))
		return 0;
	sb_pool_release(m->pool, *session, wait, NULL);
	return SB_ERR_NOT_FOUND;
}

static int open_session(sb_manager *m, const sb_spec *spec, const sb_session_options *o,
			const sb_wait *wait, sb_session **session, sb_error *err)
{
	sb_spec with = { .size = sizeof with };
	sb_limits limits = { .size = sizeof limits };
	sb_session_options opts = *o;
	int code = spec ? record_read(&with, sizeof with, spec, "sb_spec", err) : 0;

	if (code >= 0 && with.limits)
		code = record_read(&limits, sizeof limits, with.limits, "sb_limits", err);
	if (code < 0)
		return code;
	with.size = sizeof with;
	limits.size = sizeof limits;
	if (m->limits.size) {
		limits_fill(&limits, &m->limits);
		with.limits = &limits;
	}
	if (o->language) /* it is about evaluations */
		opts.flags |= m->session_flags;
	opts.idle_ms = opts.lifetime_ms = 0; /* ours to hold */
	return m->ops.open(m->ops.user, &with, &opts, wait, session, err);
}

/* The claim becomes an entry, unless all is over. */
static int settle(sb_manager *m, claim *own, entry *e, sb_error *err)
{
	bool closed;

	pthread_mutex_lock(&m->lock);
	unclaim(m, own);
	closed = m->closed;
	e->closing = closed;
	e->next = m->entries;
	m->entries = e;
	m->count++;
	m->opened++;
	if (!closed) {
		m->ops.hold(e->session);
		m->ops.keep(e->session, m);
	}
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	if (!closed)
		return 0;
	close_entry(m, e, NULL, NULL);
	return manager_closed(err);
}

/* ---- a place for what is being opened: by us, or by others ------------------------------------------------ */

struct manager_seat {
	sb_manager *manager;
	claim own;
	entry *entry;
};

int manager_reserve(sb_manager *m, sb_session *of, const char *id, manager_seat **out, sb_error *err)
{
	manager_seat *seat = calloc(1, sizeof *seat);
	entry *e = calloc(1, sizeof *e);

	int code = seat && e ? 0 : error_no_memory(err, "manager");

	if (code >= 0) {
		*seat = (manager_seat){ .manager = m, .own = { .id = id }, .entry = e };
		code = take_claim(m, &seat->own, err);
	}
	if (code < 0) {
		free(seat);
		free(e);
		return code;
	}
	pthread_mutex_lock(&m->lock);
	const entry *like = of ? *find_entry(m, m->ops.id(of)) : NULL;

	e->idle_ns = like ? like->idle_ns : m->idle_ns;
	e->lifetime_ns = like ? like->lifetime_ns : m->lifetime_ns;
	pthread_mutex_unlock(&m->lock);
	*out = seat;
	return 0;
}

int manager_take(manager_seat *seat, sb_session *session, uint64_t idle_ms, uint64_t lifetime_ms,
		 sb_error *err)
{
	sb_manager *m = seat->manager;
	entry *e = seat->entry;

	e->session = session;
	e->opened_ns = m->ops.now_ns(m->ops.user);
	if (idle_ms)
		e->idle_ns = clock_deadline_ns(0, idle_ms);
	if (lifetime_ms)
		e->lifetime_ns = clock_deadline_ns(0, lifetime_ms);
	int code = settle(m, &seat->own, e, err);

	free(seat);
	return code;
}

void manager_leave(manager_seat *seat)
{
	if (!seat)
		return;
	sb_manager *m = seat->manager;

	pthread_mutex_lock(&m->lock);
	unclaim(m, &seat->own);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	free(seat->entry);
	free(seat);
}

int manager_adopt(sb_manager *m, sb_session *session, uint64_t idle_ms, uint64_t lifetime_ms,
		  sb_error *err)
{
	manager_seat *seat;
	int code = manager_reserve(m, NULL, m->ops.id(session), &seat, err);

	if (code < 0)
		return code;
	m->ops.hold(session); /* until it is settled whether the entry keeps one */
	code = manager_take(seat, session, idle_ms ? idle_ms : SB_UNLIMITED,
			    lifetime_ms ? lifetime_ms : SB_UNLIMITED, err);
	if (code >= 0)
		m->ops.drop(session);
	return code;
}

static int create(sb_manager *m, const sb_spec *spec, const sb_session_options *o, const sb_wait *wait,
		  sb_session **session, sb_error *err)
{
	manager_seat *seat;
	sb_session *made;
	int code = manager_reserve(m, NULL, o->id && *o->id ? o->id : NULL, &seat, err);

	if (code < 0)
		return code;
	seat->entry->pooled = from_pool(m, spec, o, wait, &made) >= 0;
	if (!seat->entry->pooled)
		code = open_session(m, spec, o, wait, &made, err);
	if (code < 0) {
		manager_leave(seat);
		return code;
	}
	code = manager_take(seat, made, o->idle_ms, o->lifetime_ms, err);
	if (code >= 0)
		*session = made;
	return code;
}

int sb_manager_create(sb_manager *m, const sb_spec *spec, const sb_session_options *opts,
		      const sb_wait *wait, sb_session **session, sb_error *err)
{
	sb_session_options o = { .size = sizeof o };
	int code = manager_check(m, err);

	if (code >= 0 && !session)
		code = error_set(err, SB_ERR_INVALID, "manager", "no place for the session was given");
	if (code >= 0 && opts)
		code = record_read(&o, sizeof o, opts, "sb_session_options", err);
	if (code >= 0 && (negative(o.idle_ms) || negative(o.lifetime_ms)))
		code = error_set(err, SB_ERR_INVALID, "manager", "a time is negative");
	o.size = sizeof o;
	return code < 0 ? code : create(m, spec, &o, wait, session, err);
}

/* ---- looking ------------------------------------------------------------------------------------------------ */

static int not_found(const char *id, sb_error *err)
{
	return error_set(err, SB_ERR_SESSION_NOT_FOUND, "manager", "there is no session \"%.80s\"", id);
}

int sb_manager_get(sb_manager *m, const char *id, sb_session **session, sb_error *err)
{
	int code = manager_check(m, err);

	if (code < 0)
		return code;
	if (!id || !session)
		return error_set(err, SB_ERR_INVALID, "manager", "an argument is NULL");
	pthread_mutex_lock(&m->lock);
	entry *e = *find_entry(m, id);
	bool there = e && !e->closing && m->ops.usable(e->session);

	if (there) {
		m->ops.hold(e->session);
		*session = e->session;
	}
	pthread_mutex_unlock(&m->lock);
	return there ? 0 : not_found(id, err);
}

/* False: the time is over.  The lock is held. */
static bool wait_change(sb_manager *m, uint64_t deadline_ns)
{
	return sleep_until(m, deadline_ns) != ETIMEDOUT || clock_now_ns() < deadline_ns;
}

/* Marked, and the caller's to close.  NULL: there is none (NOT_FOUND), or somebody else has closed it
 * meanwhile (0), or is still at it (TIMEOUT). */
static entry *take_for_close(sb_manager *m, const char *id, const sb_call *call, int *code, sb_error *err)
{
	bool waited = false;
	entry *e;

	*code = 0;
	pthread_mutex_lock(&m->lock);
	while ((e = *find_entry(m, id)) && e->closing && *code >= 0) {
		waited = true;
		if (!wait_change(m, call->deadline_ns))
			*code = still_open(err);
	}
	if (e && *code >= 0)
		e->closing = true;
	pthread_mutex_unlock(&m->lock);
	if (!e && !waited)
		*code = not_found(id, err);
	return *code >= 0 ? e : NULL;
}

int sb_manager_close(sb_manager *m, const char *id, const sb_wait *wait, sb_error *err)
{
	int code = manager_check(m, err);
	sb_call call;

	if (code < 0)
		return code;
	if (!id)
		return error_set(err, SB_ERR_INVALID, "manager", "the id is NULL");
	code = call_init(&call, wait, MANAGER_CLOSE_MS, err);
	if (code < 0)
		return code;
	entry *e = take_for_close(m, id, &call, &code, err);
	sb_wait rest = keep_rest(wait, &call);

	return e ? close_entry(m, e, &rest, err) : code;
}

size_t sb_manager_count(const sb_manager *manager)
{
	sb_manager *m = (sb_manager *)manager;
	size_t n;

	if (manager_check(m, NULL) < 0)
		return 0;
	pthread_mutex_lock(&m->lock);
	n = alive(m) - m->opening;
	pthread_mutex_unlock(&m->lock);
	return n;
}

int sb_manager_list(sb_manager *m, sb_list **list, sb_error *err)
{
	int code = manager_check(m, err);
	sb_session **own;
	size_t n = 0;

	if (code < 0)
		return code;
	if (!list)
		return error_set(err, SB_ERR_INVALID, "manager", "no place for the list was given");
	pthread_mutex_lock(&m->lock);
	own = calloc(m->count + 1, sizeof(sb_session *));
	for (entry *e = m->entries; own && e; e = e->next)
		if (!e->closing && m->ops.usable(e->session)) {
			m->ops.hold(e->session);
			own[n++] = e->session;
		}
	pthread_mutex_unlock(&m->lock);
	code = own ? m->ops.list(own, n, list, err) : error_no_memory(err, "manager");
	while (n)
		m->ops.drop(own[--n]);
	free(own);
	return code;
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

/* Every session that nobody else is closing, marked as ours, by next_taken.  Needs no memory. */
static entry *take_all(sb_manager *m)
{
	entry *list = NULL;

	pthread_mutex_lock(&m->lock);
	for (entry *e = m->entries; e; e = e->next)
		if (!e->closing) {
			e->closing = true;
			e->pooled = false;
			e->next_taken = list;
			list = e;
		}
	pthread_mutex_unlock(&m->lock);
	return list;
}

/* All are killed first, so that none goes on while another is being closed. */
static int close_all(sb_manager *m, const sb_wait *wait, const sb_call *call, sb_error *err)
{
	entry *list = take_all(m), *next;
	int code = 0;

	for (entry *e = list; e; e = e->next_taken)
		m->ops.kill(e->session);
	for (entry *e = list; e; e = next) {
		sb_wait rest = keep_rest(wait, call);

		next = e->next_taken;
		int one = close_entry(m, e, &rest, code < 0 ? NULL : err);

		code = code < 0 ? code : one;
	}
	return code;
}

/* Until the reaper and every other caller are out. */
static int wait_empty(sb_manager *m, const sb_call *call, sb_error *err)
{
	bool empty, join, late = false;

	pthread_mutex_lock(&m->lock);
	while (!(empty = !m->entries && !m->opening && !m->running) && !late)
		late = !wait_change(m, call->deadline_ns);
	join = empty && m->started;
	m->started = m->started && !join;
	pthread_mutex_unlock(&m->lock);
	if (join)
		pthread_join(m->thread, NULL);
	return empty ? 0 : still_open(err);
}

int sb_manager_shutdown(sb_manager *m, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = manager_check(m, err);

	if (code >= 0)
		code = call_init(&call, wait, MANAGER_CLOSE_MS, err);
	if (code < 0)
		return code;
	pthread_mutex_lock(&m->lock);
	m->closed = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	code = close_all(m, wait, &call, err);
	return code < 0 ? code : wait_empty(m, &call, err);
}

void sb_manager_free(sb_manager *m)
{
	/* what does not end keeps its manager: better lost than torn */
	if (m && m->pid == getpid() && sb_manager_shutdown(m, NULL, NULL) >= 0)
		manager_destroy(m);
}
