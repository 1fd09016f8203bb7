/* SPDX-License-Identifier: MIT */
/*
 * session.c - walls that stay up: open, close, and whose turn it is to call its box.
 *
 * Opening goes the way of a run as far as the plan, then creates the box and is done.  Closing kills
 * every process, waits until each is over, takes the walls down, and then only is the session closed:
 * whoever closes as well meanwhile waits for that.
 */
#include "live.h"
#include "repl.h"

#include <unistd.h>

enum { OPEN_MS = 60000, CLOSE_MS = 10000 };

const sb_backend *session_table(const sb_session *s)
{
	return s->e.slot->table;
}

int session_check(const sb_session *s, const char *what, sb_error *err)
{
	if (!s)
		return error_set(err, SB_ERR_INVALID, what, "the %s is NULL", what);
	return sandbox_check(s->sandbox, err);
}

/* ---- memory ------------------------------------------------------------------------------------ */

void session_ref(sb_session *s)
{
	atomic_fetch_add(&s->refs, 1);
}

void session_unref(sb_session *s)
{
	if (atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	sb_sandbox *sandbox = s->sandbox;

	repl_free(s->repl);
	plan_unref(s->plan);
	effective_release(&s->e);
	if (s->base)
		session_unref(s->base);
	arena_release(&s->texts);
	topic_release(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	sandbox_unref(sandbox);
}

/* ---- turns --------------------------------------------------------------------------------------- */

int turn_take(sb_session *s, const sb_call *call, sb_error *err)
{
	while (s->busy) {
		int code = topic_wait(&s->changed, &s->lock, call, err);

		if (code == SB_ERR_AGAIN)
			return error_set(err, SB_ERR_TIMEOUT, "session",
					 "another call on the session \"%.80s\" took all the time",
					 s->e.id);
		if (code < 0)
			return code;
	}
	s->busy = true;
	return 0;
}

bool turn_try(sb_session *s)
{
	if (s->busy) {
		s->io_waits = true;
		return false;
	}
	s->busy = true;
	return true;
}

void turn_give(sb_session *s)
{
	s->busy = false;
	s->used_ns = clock_now_ns();
	topic_wake(&s->changed);
	if (!s->io_waits)
		return;
	s->io_waits = false;
	for (sb_process *p = s->processes; p; p = p->next)
		io_post(p);
}

/* ---- opening --------------------------------------------------------------------------------------- */

int session_note(const sb_session *s, uint32_t what, uint32_t action, int code, const char *text, sb_error *err)
{
	const audit_note n = { .what = what, .action = action, .wall = SB_WALL_COUNT, .code = code,
			       .session = s->e.id, .subject = s->e.pack ? s->e.pack->name : "session",
			       .text = text };

	return audit_write(s->sandbox, &n, err);
}

static bool is_negative(uint64_t ms)
{
	return ms > INT64_MAX && ms != SB_UNLIMITED;
}

int session_read_options(const sb_session_options *opts, sb_session_options *o, sb_error *err)
{
	*o = (sb_session_options){ .size = sizeof *o };
	int code = opts ? record_read(o, sizeof *o, opts, "sb_session_options", err) : 0;

	if (code < 0)
		return code;
	o->size = sizeof *o;
	if (o->flags & ~(uint64_t)SB_SESSION_AUTO_RESTART)
		return error_set(err, SB_ERR_UNSUPPORTED, "session", "unknown flags 0x%llx",
				 (unsigned long long)o->flags);
	if (is_negative(o->idle_ms) || is_negative(o->lifetime_ms))
		return error_set(err, SB_ERR_INVALID, "session", "idle_ms or lifetime_ms is negative");
	if (o->id && *o->id) {
		const sb_command named = { .size = sizeof named, .id = o->id,
					   .argv = (const char *const[]){ "x", NULL } };

		code = spec_check_command(&named, err); /* the same rules for all ids */
	}
	return code;
}

static int read_options(sb_session *s, const sb_session_options *opts, sb_session_options *o,
			sb_error *err)
{
	int code = session_read_options(opts, o, err);

	if (code < 0)
		return code;
	s->idle_ms = o->idle_ms == SB_UNLIMITED ? 0 : o->idle_ms;
	s->lifetime_ms = o->lifetime_ms == SB_UNLIMITED ? 0 : o->lifetime_ms;
	if ((o->flags || o->max_evals) && !o->language)
		return error_set(err, SB_ERR_INVALID, "session",
				 "max_evals and auto-restart are for sessions with a language");
	/* kept: the caller's texts are the caller's */
	o->id = arena_text(&s->texts, o->id);
	o->language = arena_text(&s->texts, o->language);
	return s->texts.failed ? error_no_memory(err, "session") : 0;
}

int session_hold_id(sb_session *s, const char *id, sb_error *err)
{
	effective *e = &s->e;

	if (!id || !*id) {
		int code = random_id("sess_", e->id, sizeof e->id, err);

		return code < 0 ? code : sandbox_hold(s->sandbox, &s->claim, e->id, err);
	}
	snprintf(e->id, sizeof e->id, "%s", id);
	return sandbox_hold(s->sandbox, &s->claim, e->id, err);
}

static int resolve(sb_session *s, const sb_spec *spec, const char *language, sb_error *err)
{
	const sb_spec none = { .size = sizeof none };
	sb_error why = { 0 };
	const sb_spec *copy = copy_spec(&s->texts, spec ? spec : &none, &why);

	if (!copy) {
		if (err)
			*err = why;
		return why.code;
	}
	s->e.command.language = language;
	s->e.session = s->e.id;
	s->e.interactive = language != NULL;
	return effective_read(&s->e, copy, NULL, err);
}

/* A language is there to be evaluated. */
static int take_language(sb_session *s, const sb_session_options *o, sb_error *err)
{
	if (!o->language)
		return 0;
	if (!s->e.way || !s->e.way->session_driver)
		return error_set(err, SB_ERR_UNSUPPORTED, "session",
				 "\"%s\" has no sessions on the backend \"%s\"", s->e.pack->name,
				 session_table(s)->name);
	s->repl = repl_new(err);
	if (!s->repl)
		return SB_ERR_NO_MEMORY;
	s->repl->auto_restart = o->flags & SB_SESSION_AUTO_RESTART;
	s->repl->max_evals = o->max_evals;
	return 0;
}

static int prepare(sb_session *s, const sb_spec *spec, const sb_session_options *opts,
		   const sb_call *call, sb_error *err)
{
	sb_session_options o;
	int code = read_options(s, opts, &o, err);

	if (code >= 0)
		code = session_hold_id(s, o.id, err);
	if (code >= 0)
		code = resolve(s, spec, o.language, err);
	if (code >= 0)
		code = session_note(s, SB_AUDIT_REQUEST, SB_ALLOW, 0, "", err);
	if (code >= 0)
		code = gates_approve(&s->e, call, err);
	if (code >= 0)
		code = gates_allowed(&s->e, err);
	if (code >= 0)
		code = effective_resolve(&s->e, err);
	if (code >= 0 && !(session_table(s)->caps & SB_CAP_SESSIONS))
		code = error_set(err, SB_ERR_UNSUPPORTED, "session",
				 "the backend \"%s\" has no sessions; use another",
				 session_table(s)->name);
	if (code >= 0)
		code = take_language(s, &o, err);
	if (code >= 0)
		code = sandbox_state(s->sandbox, s->e.slot, false, call, &s->state, err);
	if (code >= 0)
		code = effective_plan(&s->e, s->state, &s->plan, err);
	return code < 0 ? code : plan_check(s->plan, &s->e.demand, err);
}

static int create(sb_session *s, const sb_call *call, sb_error *err)
{
	int code = sb_call_check(call, err);

	if (code >= 0)
		code = session_table(s)->create(s->state, &s->e.box, s->plan, call, &s->box, err);
	if (code >= 0)
		code = plan_finish(s->plan, err);
	if (code >= 0 && s->repl)
		code = repl_start(s, call, err);
	if (code >= 0)
		session_opened(s);
	return code;
}

void session_opened(sb_session *s)
{
	s->started_unix_ns = clock_unix_ns();
	s->used_ns = clock_now_ns();
	pthread_mutex_lock(&s->sandbox->lock);
	session_ref(s); /* the list's */
	s->next = s->sandbox->sessions;
	s->sandbox->sessions = s;
	pthread_mutex_unlock(&s->sandbox->lock);
	session_note(s, SB_AUDIT_START, SB_ALLOW, 0, session_table(s)->name, NULL);
	sandbox_log(s->sandbox, SB_LOG_DEBUG, "session", "%s: open on backend %s", s->e.id,
		    session_table(s)->name);
}

sb_session *session_new(sb_sandbox *sandbox)
{
	sb_session *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->refs = s->handles = 1;
	s->sandbox = sandbox;
	sandbox_ref(sandbox);
	effective_init(&s->e, sandbox, SB_DOOR_SESSION);
	pthread_mutex_init(&s->lock, NULL);
	topic_init(&s->changed);
	return s;
}

static void take_walls_down(sb_session *s, sb_box *box)
{
	const sb_backend *table = session_table(s);
	sb_teardown left = { .size = sizeof left };

	if (table->teardown)
		table->teardown(box, &left);
	table->destroy(box);
}

void session_give_up(sb_session *s, int code, const sb_error *why)
{
	session_note(s, SB_AUDIT_DENIAL, SB_DENY, code, why ? why->message : "", NULL);
	if (s->repl)
		repl_end(s);
	if (s->box)
		take_walls_down(s, s->box);
	sandbox_drop(s->sandbox, &s->claim);
	session_unref(s);
}

int sb_session_open(sb_sandbox *sandbox, const sb_spec *spec, const sb_session_options *opts,
		    const sb_wait *wait, sb_session **session, sb_error *err)
{
	live_run live;
	sb_call call;

	if (!session)
		return error_set(err, SB_ERR_INVALID, "session", "no place for the session was given");
	int code = sandbox_enter(sandbox, &live, err);

	if (code < 0)
		return code;
	sb_session *s = session_new(sandbox);

	code = s ? call_init(&call, wait, OPEN_MS, err) : error_no_memory(err, "session");
	if (code >= 0)
		code = prepare(s, spec, opts, &call, err);
	if (code >= 0)
		code = create(s, &call, err);
	if (code >= 0 && (s->idle_ms || s->lifetime_ms)) {
		code = sandbox_watch(sandbox, s, err);
		if (code < 0) { /* it is listed: closed like any */
			sb_session_close(s, NULL, NULL);
			session_unref(s);
			s = NULL;
		}
	}
	if (code >= 0) {
		*session = s;
	} else if (s) {
		session_give_up(s, code, err);
	}
	sandbox_leave(sandbox, &live);
	return code < 0 ? code : 0;
}

int session_rebuild(sb_session *s, const sb_call *call, sb_error *err)
{
	const sb_backend *table = session_table(s);
	sb_box *box, *fresh = NULL;
	int code = 0;

	pthread_mutex_lock(&s->lock);
	for (sb_process *p = s->processes; p; p = p->next)
		process_end(p, LIFE_TERMINATED, 0);
	while (code >= 0 && (s->running || s->starting || s->busy))
		code = topic_wait(&s->changed, &s->lock, call, err);
	if (code < 0) {
		pthread_mutex_unlock(&s->lock);
		return code == SB_ERR_AGAIN ? error_set(err, SB_ERR_TIMEOUT, "session", "what runs in the "
							"session \"%.80s\" has not ended in time", s->e.id)
					    : code;
	}
	s->busy = true;
	box = s->box;
	s->box = NULL;
	pthread_mutex_unlock(&s->lock);
	if (box)
		take_walls_down(s, box);
	code = table->create(s->state, &s->e.box, s->plan, call, &fresh, err);
	pthread_mutex_lock(&s->lock);
	s->box = fresh;
	s->killed = code < 0;
	turn_give(s);
	pthread_mutex_unlock(&s->lock);
	return code;
}

/* ---- closing ----------------------------------------------------------------------------------------- */

void session_begin_close(sb_session *s)
{
	const uint64_t one = 1;

	s->closing = true;
	if (s->repl && write(s->repl->stop_fd, &one, sizeof one) < 0)
		s->repl->dead = SB_ERR_SESSION_CLOSED; /* full: it is readable already */
	for (sb_process *p = s->processes; p; p = p->next)
		process_end(p, LIFE_TERMINATED, 0);
}

static void unlist(sb_session *s)
{
	sb_session **at = &s->sandbox->sessions;

	pthread_mutex_lock(&s->sandbox->lock);
	while (*at && *at != s)
		at = &(*at)->next;
	bool listed = *at == s;

	if (listed)
		*at = s->next;
	pthread_mutex_unlock(&s->sandbox->lock);
	sandbox_drop(s->sandbox, &s->claim);
	if (listed)
		session_unref(s);
}

/* Every process of it is closed now, too: whoever has a handle keeps what wait() says. */
static void drop_processes(sb_session *s)
{
	while (s->processes)
		process_drop(s->processes);
}

static void take_down(sb_session *s)
{
	const sb_backend *table = session_table(s);
	sb_teardown left = { .size = sizeof left };
	sb_box *box = s->box;

	s->box = NULL;
	pthread_mutex_unlock(&s->lock);
	if (box && table->teardown)
		table->teardown(box, &left);
	if (box)
		table->destroy(box);
	session_note(s, SB_AUDIT_EXIT, SB_ALLOW, 0, "closed", NULL);
	if (left.left)
		sandbox_log(s->sandbox, SB_LOG_WARNING, "session",
			    "%s: %llu cgroup directories could not be removed; sb_sweep() tries again",
			    s->e.id, (unsigned long long)left.left);
	pthread_mutex_lock(&s->lock);
}

static bool is_evaluating(const sb_session *s)
{
	return s->repl && s->repl->evaluating;
}

/* The lock is held; nobody evaluates any more, and nobody will. */
static void end_repl(sb_session *s)
{
	s->repl->evaluating = true; /* others that close wait for us */
	pthread_mutex_unlock(&s->lock);
	repl_end(s);
	pthread_mutex_lock(&s->lock);
	s->repl->evaluating = false;
}

static int close_locked(sb_session *s, const sb_call *call, sb_error *err)
{
	int code = 0;

	while (code >= 0 && !s->closed && (s->running || s->starting || s->busy || is_evaluating(s)))
		code = topic_wait(&s->changed, &s->lock, call, err);
	if (code == SB_ERR_AGAIN)
		return error_set(err, SB_ERR_TIMEOUT, "session",
				 "a process of the session \"%.80s\" has not ended yet; close again "
				 "to wait for it", s->e.id);
	if (code < 0 || s->closed)
		return code < 0 ? code : 0;
	if (s->repl && s->repl->guest) {
		end_repl(s);
		return close_locked(s, call, err);
	}
	s->busy = true;
	take_down(s);
	s->closed = true;
	drop_processes(s);
	turn_give(s);
	return 1;
}

int session_end_close(sb_session *s, const sb_call *call, sb_error *err)
{
	pthread_mutex_lock(&s->lock);
	int code = close_locked(s, call, err);

	pthread_mutex_unlock(&s->lock);
	if (code == 1) {
		unlist(s);
		sandbox_unwatch(s);
	}
	return code < 0 ? code : 0;
}

int sb_session_close(sb_session *s, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = session_check(s, "session", err);

	if (code >= 0)
		code = call_init(&call, wait, CLOSE_MS, err);
	if (code < 0)
		return code;
	pthread_mutex_lock(&s->lock);
	session_begin_close(s);
	pthread_mutex_unlock(&s->lock);
	return session_end_close(s, &call, err);
}

void sb_session_free(sb_session *s)
{
	if (!s)
		return;
	if (s->sandbox->pid != getpid())
		return; /* a child's copy: the guests are its parent's */
	if (atomic_fetch_sub(&s->handles, 1) == 1)
		sb_session_close(s, NULL, NULL);
	session_unref(s);
}

/* ---- what it is ------------------------------------------------------------------------------------------ */

const char *sb_session_id(const sb_session *s)
{
	return s->e.id;
}

const char *sb_session_language(const sb_session *s)
{
	return s->e.pack ? s->e.pack->name : "";
}

const sb_plan *sb_session_plan(const sb_session *s)
{
	return s->plan;
}

/* 0 = it waits for code: IDLE. */
static int repl_state(const repl *r)
{
	if (r->evaluating)
		return r->asking ? SB_STATE_INPUT : SB_STATE_BUSY;
	if (r->auto_restart)
		return 0;
	if (!r->dead) /* whoever evaluates next learns how it ended */
		return repl_has_ended(r) ? SB_STATE_KILLED : 0;
	return r->dead == SB_ERR_SESSION_CLOSED ? SB_STATE_CLOSED : SB_STATE_KILLED;
}

/* Nothing runs in it that could tell of the end of its walls: the backend is asked.  With the lock, which is given
 * up meanwhile; to be looked at is no use of a session. */
static void look_at_walls(sb_session *s)
{
	sb_usage unread = { .size = sizeof unread };
	uint64_t used_ns = s->used_ns;

	if (!s->box || s->busy || s->killed || s->repl || s->running || s->starting || !session_table(s)->usage)
		return;
	s->busy = true;
	pthread_mutex_unlock(&s->lock);
	bool gone = session_table(s)->usage(s->box, NULL, &unread) == SB_ERR_CONNECTION_LOST;

	pthread_mutex_lock(&s->lock);
	turn_give(s);
	s->used_ns = used_ns;
	s->killed |= gone;
}

int sb_session_state(const sb_session *session)
{
	sb_session *s = (sb_session *)session;
	int state;

	if (session_check(s, "session", NULL) < 0)
		return SB_STATE_CLOSED;
	pthread_mutex_lock(&s->lock);
	if (!s->closed && !s->closing)
		look_at_walls(s);
	state = s->closed || s->closing		 ? SB_STATE_CLOSED
		: s->repl && repl_state(s->repl) ? repl_state(s->repl)
		: s->killed			 ? SB_STATE_KILLED
		: s->running || s->starting	 ? SB_STATE_BUSY
						 : SB_STATE_IDLE;
	pthread_mutex_unlock(&s->lock);
	return state;
}

void sb_session_usage(const sb_session *session, sb_usage *usage)
{
	sb_session *s = (sb_session *)session;
	sb_call call;
	sb_usage now = { .size = sizeof now };

	if (session_check(s, "session", NULL) < 0)
		return;
	call_init(&call, NULL, CLOSE_MS, NULL);
	pthread_mutex_lock(&s->lock);
	if (s->box && session_table(s)->usage && turn_take(s, &call, NULL) >= 0) {
		sb_box *box = s->box;

		pthread_mutex_unlock(&s->lock);
		if (box)
			session_table(s)->usage(box, NULL, &now);
		pthread_mutex_lock(&s->lock);
		turn_give(s);
	}
	pthread_mutex_unlock(&s->lock);
	now.wall_us = (uint64_t)(clock_unix_ns() - s->started_unix_ns) / 1000;
	record_write(usage, &now, sizeof now, "sb_usage", NULL);
}
