/* SPDX-License-Identifier: MIT */
/*
 * repl.h - the interpreter of a session: a guest that stays, and a driver inside that is told code
 * over the control descriptor (docs/internals/driver-protocol.md).
 *
 *   none -> alive -> dead (it ended, a limit, a cancel or a breach of the protocol) -> alive
 * (reset)
 *
 * One evaluation at a time: whoever evaluates has `evaluating`, and alone touches reader, guest and
 * descriptors while it is set; all else is under the session's lock.
 */
#ifndef SB_SESSION_REPL_H
#define SB_SESSION_REPL_H

#include "../core/driver.h"
#include "session.h"

typedef struct repl {
	bool auto_restart;
	uint64_t max_evals, evals;
	int dead; /* 0, or what later calls get: SESSION_KILLED, SESSION_CLOSED */
	bool evaluating;
	bool interrupted; /* the evaluation shall be, and has not been told yet */
	bool branching; /* whoever has `evaluating` runs no code: a branch is being made */
	bool asking;  /* the code waits for an answer */
	char *answer; /* NULL = none has come; with a NUL behind */
	size_t answer_len;
	int wake_fd; /* eventfd: an answer or an interrupt has come */
	int stop_fd; /* eventfd: the session is being closed */
	bool lost;   /* since the last evaluation: everything is new */
	/* of the one who evaluates */
	driver_reader reader;
	uint32_t features; /* DRIVER_CAN_* */
	sb_guest *guest;
	sb_guest_io io;
	uint64_t processors; /* of this machine */
	uint64_t renewed_ns; /* when its budget of CPU time was; 0 = not yet */
} repl;

/* What one exchange (a start, an evaluation) came to. */
typedef struct repl_talk {
	sb_session *session;
	const sb_command *command; /* on_output, read_input, input_kind */
	const sb_call *call;
	const void *parts[4]; /* to be sent, one behind the other; the first is an interrupt's frame */
	size_t lens[4];
	bool evaluates;	 /* it is no start */
	bool told;	 /* the driver, of the first interrupt */
	bool strike;	 /* a signal is due once all parts are sent */
	pump pump;
	uint64_t start_ns;
	/* what came back */
	char *value, *exception;
	int status;
	bool unfinished;
	const char *broken; /* why the protocol is broken, NULL = it is not */
	bool no_memory;
	char answer_head[DRIVER_HEAD + DRIVER_CODE_HEAD + 1];
	char interrupt_head[DRIVER_HEAD + DRIVER_CODE_HEAD + 1];
	char piece[DRIVER_ANSWER_MAX];
} repl_talk;

repl *repl_new(sb_error *err);
void repl_free(repl *r); /* NULL is fine; the guest is gone by then */

/* No lock is held; the caller has `evaluating`, or nobody else knows the session yet. */
/* The interpreter, up to its hello.  It has a box by then. */
int repl_start(sb_session *s, const sb_call *call, sb_error *err);
/* The same of a branch, in a box of its own: its interpreter goes on where that of `of` rests, whose
 * `evaluating` is the caller's. */
int repl_branch(sb_session *s, sb_session *of, const sb_call *call, sb_error *err);
/* Kills and reaps what runs, closes its descriptors. */
void repl_end(sb_session *s);
/* The same of one that has ended by itself: did it leave, or was it taken away? */
bool repl_was_killed(sb_session *s);
/* An evaluation begins: its budget of CPU time counts from here on.  `used`: by the interpreter until now. */
void repl_renew(sb_session *s, sb_usage *used);
/* What the interpreter has used until now. */
void repl_usage(sb_session *s, sb_usage *used);
/* Sends the parts, and hears out the guest to the end of this exchange.  pump.why tells. */
void repl_exchange(repl_talk *talk);
repl_talk *repl_talk_new(void); /* NULL = no memory */
void repl_talk_free(repl_talk *talk); /* NULL is fine */
/* After an exchange that ended the guest: how.  The guest is released then.  0, or what kept it
 * from ever running. */
int repl_reap(repl_talk *talk, sb_guest_exit *end, sb_error *err);
/* It has ended by itself meanwhile. */
bool repl_has_ended(const repl *r);

/* ---- eval.c ---- */
/* The lock is held: it is open, and has evaluations left and an interpreter. */
int eval_alive(const sb_session *s, sb_error *err);
int eval_gone(const sb_session *s, int code, sb_error *err); /* the error of one whose interpreter has ended so */
bool eval_is_language(const sb_session *s, const char *name); /* the session's, by name or alias */
/* With `evaluating`: its interpreter may have ended by itself meanwhile, which then is remembered. */
void eval_look(sb_session *s);
void eval_done(sb_session *s); /* gives `evaluating` back */

#endif /* SB_SESSION_REPL_H */
