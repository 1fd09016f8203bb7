/* SPDX-License-Identifier: MIT */
/*
 * keep.h - those who keep sessions: pool and manager.
 *
 * Neither looks into a session.  What they need of it, and the time, comes from a table: the real one,
 * or a test's, whose sessions do as it likes and whose clock it turns.
 */
#ifndef SB_SESSION_KEEP_H
#define SB_SESSION_KEEP_H

#include "session.h"

enum { MANAGER_MOST = 65536 };        /* sessions of one manager */

typedef struct keep_ops {
	int (*open)(void *user, const sb_spec *spec, const sb_session_options *opts,
		    const sb_wait *wait, sb_session **session, sb_error *err);
	const char *(*id)(const sb_session *session);
	const char *(*language)(const sb_session *session);
	bool (*usable)(sb_session *session);           /* neither killed nor closed */
	uint64_t (*idle_since)(sb_session *session);   /* CLOCK_MONOTONIC; SB_UNLIMITED = it is busy */
	void (*kill)(sb_session *session);             /* all that runs in it; does not wait */
	int (*close)(sb_session *session, const sb_wait *wait, sb_error *err);
	void (*hold)(sb_session *session);             /* one handle more */
	void (*drop)(sb_session *session);             /* one less; the last closes */
	unsigned (*handles)(sb_session *session);
	void (*keep)(sb_session *session, sb_manager *manager); /* whose it is; NULL = nobody's */
	int (*list)(sb_session *const *sessions, size_t count, sb_list **list, sb_error *err);
	uint64_t (*now_ns)(void *user);
	void *user;
} keep_ops;

/* What real sessions do; user: the sandbox.  The second without handles: for whoever only watches. */
extern const keep_ops keep_sessions, keep_watched;

/* What is left of a call's time, as the wait of a call within it. */
sb_wait keep_rest(const sb_wait *wait, const sb_call *call);

/* ---- pool.c, manager.c: as the public makers, over any table.  The sandbox may be NULL then. ------ */
int pool_make(sb_sandbox *sandbox, const keep_ops *ops, const sb_pool_options *opts, sb_pool **pool,
	      sb_error *err);
/* thread: sessions are looked at by a thread of its own; else by manager_reap() alone. */
int manager_make(sb_sandbox *sandbox, const keep_ops *ops, bool thread, const sb_manager_options *opts,
		 sb_manager **manager, sb_error *err);
/* A session that is open already, with limits of its own (0 = none). */
int manager_adopt(sb_manager *manager, sb_session *session, uint64_t idle_ms, uint64_t lifetime_ms,
		  sb_error *err);
/* A place for a session that is being opened; it counts at once.  Then either one takes it, which is closed if
 * the manager is by then, or nobody does.  Limits that are 0 are those of `of`, which it keeps; NULL = its own. */
typedef struct manager_seat manager_seat;
int manager_reserve(sb_manager *manager, sb_session *of, const char *id, manager_seat **seat, sb_error *err);
int manager_take(manager_seat *seat, sb_session *session, uint64_t idle_ms, uint64_t lifetime_ms,
		 sb_error *err);
void manager_leave(manager_seat *seat); /* NULL is fine */
/* Something may be due: the thread looks again. */
void manager_look(sb_manager *manager);
/* Closes what is due; when the next look is (SB_UNLIMITED = nothing ever is). */
uint64_t manager_reap(sb_manager *manager);

#endif /* SB_SESSION_KEEP_H */
