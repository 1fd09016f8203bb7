/* SPDX-License-Identifier: MIT */
/*
 * live.h - what stays open: sessions, their processes, and the one thread that serves them.
 *
 * Locks.  A session has one, over itself, its processes, their logs and watches; it is never held
 * while anything waits, calls a backend or a callback.  sandbox->lock (over the lists of sessions
 * and ids) and that of the I/O thread may be taken with it held; nothing is locked under those.
 *
 * Calls on a box come one at a time: whoever makes one has the session's turn (turn_take, turn_give).
 * Callers of the library wait for it as long as their call may last.  The I/O thread never waits: it
 * comes back when the turn is given.
 *
 * Memory.  A session lives as long as a handle, a process, the sandbox's list or the I/O thread needs
 * it; a process as long as a handle, its session's list, a watch or the I/O thread; the sandbox as
 * long as a session.  So all of it can be freed in any order.
 *
 * A process:  (spawn) running -> ended (reaped: the exit is known) -> drained (its log has ended) ->
 * over (released by the backend, no descriptor left) -> closed (off the list, the log dropped).  All
 * steps but the first and the last are the I/O thread's, which alone closes what it reads from.
 */
#ifndef SB_SESSION_LIVE_H
#define SB_SESSION_LIVE_H

#include "feed.h"
#include "outlog.h"
#include "session.h"

/* ---- topic.c: something changes, under a lock ----------------------------------------------- */
typedef struct topic_waiter topic_waiter;
typedef struct topic {
	pthread_cond_t cond;
	topic_waiter *waiters;        /* those that may be cancelled as well */
} topic;
void topic_init(topic *t);
void topic_release(topic *t);
/* The lock is held. */
void topic_wake(topic *t);
/* Gives the lock back while it waits.  0 = something may have changed; AGAIN, CANCELLED, IO: err is
 * set, but for AGAIN, whose words are the caller's. */
int topic_wait(topic *t, pthread_mutex_t *lock, const sb_call *call, sb_error *err);

/* ---- io.c: the one thread --------------------------------------------------------------------- */
enum { IO_OUT = 0, IO_ERR, IO_IN, IO_EXITED, IO_SOURCE, IO_COUNT };
typedef struct io_source {            /* what epoll gives back */
	sb_process *process;
	int which;                    /* IO_* */
} io_source;
typedef struct io_thread {
	pthread_t thread;
	pthread_mutex_t lock;         /* over posted, stopping */
	sb_process *posted;           /* to be looked at, by next_posted; each with a reference */
	bool stopping;
	int epoll, wake;
	/* its own */
	sb_process *timed;            /* those with a clock, by next_timed */
	sb_process *over;             /* to be let go once no event can name them, by next_over */
	char *piece;                  /* to read into */
} io_thread;
/* The thread of this sandbox, running. */
int io_start(sb_sandbox *sandbox, sb_error *err);
void io_stop(sb_sandbox *sandbox);    /* once nothing is left to serve */
/* From now on the process is the thread's to serve, until it is over. */
int io_adopt(sb_process *process, sb_error *err);
/* Look at it: something is wanted.  Any thread; the session's lock may be held. */
void io_post(sb_process *process);
/* With the session's lock: tell of room in its input; of bytes from its source. */
void io_watch_input(sb_process *process, bool room);
void io_watch_source(sb_process *process, bool wanted);
/* Read its outputs no more, for now; again. */
void io_hold(sb_process *process, bool hold);
/* Nothing more of this descriptor. */
void io_quiet(sb_process *process, int which);
void io_drop(sb_process *process, int which); /* and closed */

/* ---- life.c: the I/O thread's part of a process; no lock is held ----------------------------- */
void life_ready(sb_process *p, int which, uint32_t events, char *piece); /* IO_*, EPOLL* */
void life_look(sb_process *p, char *piece); /* clocks, and what was wanted */
uint64_t life_next_clock(sb_process *p);
enum { LIFE_PIECE = 65536,
       HOLD_LEAST = 512 * 1024 }; /* of a log: twice what is in two pipes and under way */

/* ---- process.c ----------------------------------------------------------------------------------------- */
enum { LIFE_RUNS = 0, LIFE_TIME, LIFE_OUTPUT, LIFE_TERMINATED, LIFE_STUCK }; /* what ended it, first */
struct sb_output {
	sb_process *process;
};
struct sb_process {
	atomic_uint refs;
	sb_session *session;          /* one reference */
	sb_process *next;             /* of the session */
	sb_process *next_posted, *next_timed, *next_over;
	live_id claim;
	char id[136];
	char **argv;
	int64_t started_unix_ns;
	uint64_t start_ns;
	bool tty;
	bool hold, held;              /* unread output holds it up; does so now */
	sb_guest *guest;
	int64_t pid;
	/* descriptors; out is in on a terminal */
	int fd[IO_COUNT];
	int control;                  /* to a driver inside, -1 = none: nobody's but the owner's */
	io_source source[IO_COUNT];
	bool posted;                  /* under the I/O thread's lock */
	bool timed, let_go;           /* the I/O thread's own */
	bool input_armed, source_armed; /* epoll tells of room; of bytes */
	bool source_plain;            /* a file: always ready */
	feed feed;
	bool fed;                     /* the input is the I/O thread's to give */
	char *input;                  /* a copy of bytes that are given so */
	size_t line_len;              /* of a terminal's input since the last end of line */
	/* the end */
	int why;                      /* LIFE_* */
	bool want_term, want_kill;    /* signals for the I/O thread to send */
	bool want_close;              /* the input that it gives is to end */
	bool killed, exit_seen;
	int signaled;                 /* the system's number of a signal of ours that may end it */
	uint64_t deadline_ns, kill_at_ns, give_up_ns, drain_at_ns;
	bool ended, drained, over, closed;
	sb_exit exit;
	sb_usage usage;
	uint64_t bytes[2];            /* seen of stdout (or terminal) and stderr */
	/* output */
	sb_output output;
	outlog log;
	uint64_t given;               /* the furthest that sb_output_read() gave */
	int ready_fd;                 /* eventfd, -1 until asked for */
	bool ready_set;
	sb_watch *watches;
	topic changed;
};
/* NULL = no memory.  flags: SB_COMMAND_*. */
sb_process *process_new(sb_session *s, const char *id, uint32_t flags);
void process_ref(sb_process *p);
void process_unref(sb_process *p);
/* The lock is held. */
void process_end(sb_process *p, int why, uint64_t grace_ms); /* TERM and grace, or KILL */
int process_settled(sb_process *p, const sb_call *call, sb_error *err); /* waits for over */
void process_drop(sb_process *p);     /* off the list, the log dropped */

/* ---- output.c, watch.c: the lock is held --------------------------------------------------------- */
void output_add(sb_process *p, int which, const void *data, size_t len);
void output_tell(sb_process *p);      /* something has changed: readers, watches, descriptors */
void watch_tell(sb_process *p);
void watch_drop_all(sb_process *p);

/* ---- session.c ----------------------------------------------------------------------------------- */
struct repl;
struct sb_session {
	atomic_uint refs, handles;
	struct repl *repl;            /* NULL = no language, no evaluations */
	sb_sandbox *sandbox;          /* one reference */
	sb_session *base;             /* of a branch: whose `e` it shares; one reference.  Itself no branch */
	sb_manager *manager;          /* that keeps it, NULL = none, or its sandbox's own */
	sb_session *next;             /* of the sandbox */
	bool told;                    /* under the sandbox's lock: that it closes */
	live_id claim;
	effective e;                  /* fixed once open */
	arena texts;                  /* of the spec, which is the caller's */
	sb_state *state;
	sb_plan *plan;
	int64_t started_unix_ns;
	pthread_mutex_t lock;
	topic changed;
	sb_box *box;                  /* NULL = the walls are down */
	sb_process *processes;
	unsigned starting;            /* spawns under way */
	unsigned running;             /* processes that are not over */
	uint64_t used_ns;             /* when something last began or ended in it */
	uint64_t idle_ms, lifetime_ms; /* what its sandbox's own manager holds; 0 = nothing */
	bool busy;                    /* somebody has the turn */
	bool io_waits;                /* the I/O thread wanted it meanwhile */
	bool closing, closed;
	bool killed;                  /* the walls are gone, and nobody here took them down */
};
sb_session *session_new(sb_sandbox *sandbox); /* NULL = no memory */
void session_ref(sb_session *s);
void session_unref(sb_session *s);
/* Steps of opening.  The record read, and what can be said of it alone. */
int session_read_options(const sb_session_options *opts, sb_session_options *o, sb_error *err);
/* An id for it, random where none is given, until it is closed. */
int session_hold_id(sb_session *s, const char *id, sb_error *err);
int session_note(const sb_session *s, uint32_t what, uint32_t action, int code, const char *text, sb_error *err);
/* It is open: on the sandbox's list, and told of. */
void session_opened(sb_session *s);
/* It never was: what there is of it goes.  `why`: the error, for the audit. */
void session_give_up(sb_session *s, int code, const sb_error *why);
const sb_backend *session_table(const sb_session *s);
/* Kills all in it, takes the walls down and puts them up again.  Failed: it is killed. */
int session_rebuild(sb_session *s, const sb_call *call, sb_error *err);
/* The lock is held. */
int turn_take(sb_session *s, const sb_call *call, sb_error *err);
bool turn_try(sb_session *s);
void turn_give(sb_session *s);
/* CLOSED where we are the child of a fork.  Of a NULL: INVALID, `what` names it. */
int session_check(const sb_session *s, const char *what, sb_error *err);
/* Kills all in it; closes it within the call's time. */
void session_begin_close(sb_session *s);
int session_end_close(sb_session *s, const sb_call *call, sb_error *err);

/* sandbox.c: by a manager of the sandbox's own, from now on; no more, it is closed. */
int sandbox_watch(sb_sandbox *sandbox, sb_session *s, sb_error *err);
void sandbox_unwatch(sb_session *s);

/* ---- spawn.c --------------------------------------------------------------------------------------- */
typedef struct spawn_extra {
	uint32_t flags;               /* SB_GUEST_CONTROL */
} spawn_extra;
/* As sb_session_spawn(), with a control descriptor where `extra` says so. */
int spawn_process(sb_session *s, const sb_command *command, const spawn_extra *extra,
		  const sb_call *call, sb_process **process, sb_error *err);

/* ---- list.c ----------------------------------------------------------------------------------------- */
/* All sessions of it, each with a reference; NULL-ended, for free(). */
sb_session **list_sessions(sb_sandbox *sandbox);
/* A list of these sessions. */
int list_of(sb_session *const *sessions, size_t count, sb_list **list, sb_error *err);

#endif /* SB_SESSION_LIVE_H */
