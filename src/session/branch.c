/* SPDX-License-Identifier: MIT */
/*
 * branch.c - sb_session_fork(): a session that goes on where another one stands.
 *
 * What can be refused is refused before anybody is asked; then the branch passes the gates of a session that
 * is opened, and the evaluations of the original are held while its backend makes the twin.  Spec, plan and
 * policy are the original's (effective_share()); all that counts is the branch's own.
 */
#include "keep.h"
#include "live.h"
#include "repl.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { FORK_MS = 60000 };

typedef struct branching {
	sb_session *of, *made;
	sb_session_options opts;
	const sb_call *call;
	manager_seat *seat; /* NULL = no manager keeps the original */
} branching;

/* ---- what is refused --------------------------------------------------------------------------------- */

static bool can_fork(const sb_backend *table)
{
	return table->fork && table->caps & SB_CAP_FORK;
}

/* Of those that this sandbox has. */
static const char *who_forks(const sb_sandbox *sandbox)
{
	for (size_t i = 0; i < sandbox->slot_count; i++)
		if (can_fork(sandbox->slots[i].table))
			return sandbox->slots[i].table->name;
	return NULL;
}

static int check_session(const sb_session *of, sb_error *err)
{
	int code = session_check(of, "session", err);

	if (code < 0)
		return code;
	if (!can_fork(session_table(of))) {
		const char *who = who_forks(of->sandbox);

		return error_set(err, SB_ERR_UNSUPPORTED, "fork",
				 "the backend \"%s\" makes no branches of sessions%s%s%s", session_table(of)->name,
				 who ? "; open the session on \"" : "", who ? who : "", who ? "\"" : "");
	}
	if (!of->repl)
		return error_set(err, SB_ERR_UNSUPPORTED, "fork",
				 "the session \"%.80s\" was opened without a language; only one that evaluates "
				 "has branches", of->e.id);
	return 0;
}

static int read_options(branching *b, const sb_session_options *opts, sb_error *err)
{
	int code = session_read_options(opts, &b->opts, err);
	const char *language = b->opts.language;

	if (code >= 0 && language && !eval_is_language(b->of, language))
		return error_set(err, SB_ERR_INVALID, "language",
				 "the session \"%.80s\" is one of \"%s\", and so are its branches; leave \"%.40s\" out",
				 b->of->e.id, b->of->e.pack->name, language);
	return code;
}

/* ---- whether it rests --------------------------------------------------------------------------------- */

static int not_idle(const sb_session *of, const char *why, sb_error *err)
{
	return error_set(err, SB_ERR_CONFLICT, "fork", "the session \"%.80s\" %s", of->e.id, why);
}

/* The lock is held. */
static int check_idle(const sb_session *of, sb_error *err)
{
	const repl *r = of->repl;
	int code = eval_alive(of, err);

	if (code < 0)
		return code;
	if (r->evaluating && !r->branching)
		return not_idle(of, r->asking ? "is waiting for input; answer or interrupt it first"
					      : "evaluates; branch it once that is done", err);
	if (of->running || of->starting)
		return not_idle(of, "has a process that runs; branch it once that has ended", err);
	if (r->dead || of->killed)
		return eval_gone(of, r->dead ? r->dead : SB_ERR_SESSION_KILLED, err);
	return 0;
}

/* Only to look, before somebody is asked. */
static int look(sb_session *of, sb_error *err)
{
	pthread_mutex_lock(&of->lock);
	int code = check_idle(of, err);

	pthread_mutex_unlock(&of->lock);
	return code;
}

/* No evaluation begins from now on.  Of several branches one after the other is made. */
static int hold(branching *b, sb_error *err)
{
	sb_session *of = b->of;
	int code;

	pthread_mutex_lock(&of->lock);
	while ((code = check_idle(of, err)) >= 0 && of->repl->evaluating) {
		code = topic_wait(&of->changed, &of->lock, b->call, err);
		if (code == SB_ERR_AGAIN)
			code = error_set(err, SB_ERR_TIMEOUT, "fork",
					 "another branch of the session \"%.80s\" took all the time", of->e.id);
		if (code < 0)
			break;
	}
	if (code >= 0)
		of->repl->evaluating = of->repl->branching = true;
	pthread_mutex_unlock(&of->lock);
	return code < 0 ? code : 0;
}

/* ---- making it ------------------------------------------------------------------------------------------ */

static sb_session *branch_new(sb_session *of)
{
	sb_session *s = session_new(of->sandbox);

	if (!s)
		return NULL;
	effective_share(&s->e, &of->e, "");
	s->base = of->base ? of->base : of;
	session_ref(s->base);
	s->state = of->state;
	s->plan = plan_ref(of->plan);
	return s;
}

/* What is not given is the original's; all of it counts anew. */
static int settle_options(branching *b, sb_error *err)
{
	const sb_session_options *o = &b->opts;
	sb_session *s = b->made, *of = b->of;
	uint64_t idle = o->idle_ms ? o->idle_ms : of->idle_ms;
	uint64_t lifetime = o->lifetime_ms ? o->lifetime_ms : of->lifetime_ms;

	s->repl = repl_new(err);
	if (!s->repl)
		return SB_ERR_NO_MEMORY;
	s->repl->auto_restart = of->repl->auto_restart || o->flags & SB_SESSION_AUTO_RESTART;
	s->repl->max_evals = o->max_evals ? o->max_evals : of->repl->max_evals;
	s->idle_ms = idle == SB_UNLIMITED ? 0 : idle;
	s->lifetime_ms = lifetime == SB_UNLIMITED ? 0 : lifetime;
	return 0;
}

/* As for a session that is opened. */
static int pass_gates(branching *b, sb_error *err)
{
	char text[128];
	sb_session *s = b->made;

	snprintf(text, sizeof text, "a branch of \"%.80s\"", b->of->e.id);
	int code = session_note(s, SB_AUDIT_REQUEST, SB_ALLOW, 0, text, err);

	if (code >= 0)
		code = gates_approve(&s->e, b->call, err);
	return code < 0 ? code : gates_allowed(&s->e, err);
}

/* Readable once the caller cancels or the original is being closed. */
static int stop_of(const branching *b, sb_error *err)
{
	const int fds[] = { b->of->repl->stop_fd, b->call->cancel_fd };
	int both = epoll_create1(EPOLL_CLOEXEC);
	bool fine = both >= 0;

	for (size_t i = 0; fine && i < BASE_ARRAY_LEN(fds); i++) {
		struct epoll_event event = { .events = EPOLLIN };

		fine = fds[i] < 0 || epoll_ctl(both, EPOLL_CTL_ADD, fds[i], &event) == 0;
	}
	if (fine)
		return both;
	int code = error_errno(err, SB_ERR_IO, errno, "fork", "cannot make a descriptor");

	fd_close(&both);
	return code;
}

/* It has been told to close meanwhile: that ends the branch, whatever has come of it. */
static int check_closing(sb_session *of, int code, sb_error *err)
{
	pthread_mutex_lock(&of->lock);
	bool closing = of->closing;

	pthread_mutex_unlock(&of->lock);
	if (!closing)
		return code;
	return error_set(err, SB_ERR_SESSION_CLOSED, "fork", "the session \"%.80s\" was closed while it was branched",
			 of->e.id);
}

static int take_seat(branching *b, sb_error *err)
{
	sb_session *of = b->of;

	/* it stays: it cannot let go of the original while that is held */
	pthread_mutex_lock(&of->lock);
	sb_manager *manager = of->manager;

	pthread_mutex_unlock(&of->lock);
	return manager ? manager_reserve(manager, of, b->made->e.id, &b->seat, err) : 0;
}

/* With the original's evaluations held. */
static int make(branching *b, sb_error *err)
{
	sb_session *of = b->of;
	sb_call call = *b->call;
	int code;

	eval_look(of);
	if (of->repl->dead)
		return eval_gone(of, of->repl->dead, err);
	code = take_seat(b, err);
	if (code >= 0)
		code = sb_call_check(&call, err);
	if (code < 0)
		return code;
	call.cancel_fd = stop_of(b, err);
	if (call.cancel_fd < 0)
		return call.cancel_fd;
	code = repl_branch(b->made, of, &call, err);
	fd_close(&call.cancel_fd);
	return check_closing(of, code, err);
}

static int branch(branching *b, sb_error *err)
{
	int code = look(b->of, err);

	if (code >= 0)
		code = session_hold_id(b->made, b->opts.id, err);
	if (code >= 0)
		code = settle_options(b, err);
	if (code >= 0)
		code = pass_gates(b, err);
	if (code >= 0)
		code = hold(b, err);
	if (code < 0)
		return code;
	code = make(b, err);
	eval_done(b->of);
	return code;
}

/* It is listed, and whoever keeps the original keeps it.  Negative: it has been closed, and is gone. */
static int keep(branching *b, sb_error *err)
{
	sb_session *s = b->made;
	int code = 0;

	if (b->seat)
		s->idle_ms = s->lifetime_ms = 0; /* the manager's to hold */
	session_opened(s);
	if (b->seat)
		return manager_take(b->seat, s, b->opts.idle_ms, b->opts.lifetime_ms, err);
	if (s->idle_ms || s->lifetime_ms)
		code = sandbox_watch(s->sandbox, s, err);
	if (code < 0)
		sb_session_free(s);
	return code;
}

static int fork_in(branching *b, sb_session **out, sb_error *err)
{
	sb_error why = { 0 };
	int code;

	b->made = branch_new(b->of);
	code = b->made ? branch(b, &why) : error_no_memory(&why, "fork");
	if (code >= 0) {
		code = keep(b, &why);
	} else {
		manager_leave(b->seat);
		if (b->made)
			session_give_up(b->made, code, &why);
	}
	if (code >= 0)
		*out = b->made;
	else if (err)
		*err = why;
	return code;
}

int sb_session_fork(sb_session *of, const sb_session_options *opts, const sb_wait *wait, sb_session **out,
		    sb_error *err)
{
	live_run live;
	sb_call call;
	branching b = { .of = of, .call = &call };

	if (!out)
		return error_set(err, SB_ERR_INVALID, "fork", "no place for the branch was given");
	int code = check_session(of, err);

	if (code >= 0)
		code = call_init(&call, wait, FORK_MS, err);
	if (code >= 0)
		code = read_options(&b, opts, err);
	if (code >= 0)
		code = sandbox_enter(of->sandbox, &live, err);
	if (code < 0)
		return code;
	session_ref(of);
	code = fork_in(&b, out, err);
	sandbox_leave(of->sandbox, &live);
	session_unref(of);
	return code < 0 ? code : 0;
}
