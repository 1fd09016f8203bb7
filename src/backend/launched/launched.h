/* SPDX-License-Identifier: MIT */
/*
 * launched.h - boxes and guests behind an sb-launch: what the backends `linux` and `process` share.
 *
 * A backend fills an lh_plan, starts it, and wraps it in a box here.  Nothing waits: PLAN, PUT and
 * SPAWN are on their way at once, and what went wrong is told by the first reap().  Answers are
 * read whenever a member is called, and kept with the guest they are about.
 */
#ifndef SB_BACKEND_LAUNCHED_H
#define SB_BACKEND_LAUNCHED_H

#include "../../launch/host.h"
#include "../../base/base.h"

#include <pthread.h>
#include <sandbox/backend.h>

struct sb_guest {
	sb_box *box;
	sb_guest *next;
	uint32_t id;
	bool started, ended, refused; /* SPAWNED, EXITED, FAILED came */
	int64_t pid;                  /* in the host's namespace; 0 = not known */
	uint64_t born;                /* when the kernel says that it began; 0 = not asked yet */
	lp_exited end;
	lp_usage before;              /* of the box when it started: what others met is not its own */
	bool renewed;                 /* it evaluates code after code, its budget of CPU time is for each */
	int terminal;                 /* the master, for its size; -1 = none */
	sb_error failure;             /* of its start */
	char program[64];             /* for messages */
};

struct sb_box {
	lh_box *launch;               /* NULL = not started yet, or closed */
	sb_guest *guests;
	uint32_t next_id;
	bool ready, gone, lost;
	uint32_t leftovers;           /* cgroups that GONE says are left */
	uint64_t held;                /* LP_* of READY */
	int scratch;                  /* root of the scratch tmpfs, -1 = none */
	uint32_t limit;               /* LP_LIMIT_* that a watcher told of, since something runs */
	bool detached;                /* something may run that belongs to no guest any more */
	sb_error failure;             /* code 0 = none: the box did not come up, or broke */
	lp_usage usage;
	bool usage_known;
	uint64_t fs_bytes, fs_nodes;  /* of in, work, out once collected */
	bool fs_known;
	sb_limits limits;
	int64_t chown_uid, chown_gid; /* of the guest's pipe ends; -1 = leave them */
	int uid_lock;                 /* the descriptor that reserves the guest's uid, or -1 */
	int code_fd;                  /* backend process: the source, or -1 */
	int workspace_fd;             /* backend process: a copy, or -1 */
	char *workspace;
	bool in_place;                /* in the host's own root: there is no /work, and nothing to put into */
	void *warm;                   /* stock_worker: stock.h */
	void *wasm;                   /* of backend wasm: wasm.h */
	strv cgroups;                 /* directories that sb-launch makes, and removes at its end */
};

/* ---- box.c ------------------------------------------------------------------------------- */
/* The directory in a fresh /work that the guest begins in, to be made; NULL = it begins elsewhere. */
const char *launched_dir_in_work(const sb_box_request *request);
/* Without namespaces there is no /work that one could be made in: UNSUPPORTED. */
int launched_lacks_work(const sb_box_request *request, sb_error *err);
sb_box *launched_box_new(const sb_limits *limits); /* NULL = no memory */
/* One answer; 0 = there was one, AGAIN = there is none yet. */
int launched_box_hear(sb_box *box, const sb_call *call, bool wait, sb_error *err);
/* Reads every answer that is there; never waits. */
void launched_box_listen(sb_box *box);
/* What could not be sent, because the other end is gone: a FAILED that came first is the better
 * answer.  Returns it, or rc with err as it is. */
int launched_send_failed(sb_box *box, int rc, sb_error *err);
/* Waits until READY or a failure.  0, or the failure. */
int launched_box_wait_ready(sb_box *box, const sb_call *call, sb_error *err);
void launched_box_teardown(sb_box *box, sb_teardown *report); /* of the table */
void launched_box_destroy(sb_box *box); /* of the table; NULL is fine */

/* ---- begun.c ----------------------------------------------------------------------------- */
/* Of one sandbox object; any thread. */
enum { LAUNCHED_BEGUN_MOST = 8 };
typedef struct launched_begins {
	pthread_mutex_t lock;
	struct { const char *id; lh_box *box; } at[LAUNCHED_BEGUN_MOST]; /* box NULL = free */
} launched_begins;
void launched_begins_init(launched_begins *all);
void launched_begins_release(launched_begins *all);
/* Of the table: an sb-launch that makes its namespaces (LP_*NS) while its request is planned; none: it goes.
 * Whatever fails here is told by create(), which then starts one itself. */
void launched_begin(launched_begins *all, const char *helper, const char *id, uint64_t namespaces);
/* The one of this request, the caller's from now on; NULL = none. */
lh_box *launched_begun(launched_begins *all, const char *id);
/* An sb-launch for the box: what was begun for this very request (NULL: for none), or a new one. */
int launched_start(launched_begins *all, const char *helper, const char *id, const lh_plan *plan, sb_box *box,
		   sb_error *err);

/* ---- guest.c ----------------------------------------------------------------------------- */
/* The pipes of a guest, or its terminal, and its SPAWN; `spawn` brings what only the backend knows
 * (flags, code).  Unless no other comes (SB_GUEST_LAST) it waits until the program runs or does not. */
int launched_spawn(sb_box *box, const sb_guest_request *request, lh_spawn *spawn, const sb_call *call,
		   sb_guest **guest, sb_guest_io *io, sb_error *err);
/* Files, as lh_put().  Once something may run in the box it waits until they are there. */
int launched_put(sb_box *box, const lh_file *files, size_t count, const sb_call *call, sb_error *err);
/* put(), get() and remove() of the table, anywhere that the guest may write, by absolute paths: done with the
 * guest's rights.  Each waits for the answer. */
int launched_put_tree(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call, sb_error *err);
int launched_remove(sb_box *box, const char *path, const sb_call *call, sb_error *err);
int launched_get(sb_box *box, const char *path, const sb_call *call, sb_tree *tree, sb_error *err);
void launched_renew(sb_guest *guest);        /* of the table, as the next */
int64_t launched_pid(const sb_guest *guest);
int launched_resize(sb_guest *guest, uint16_t rows, uint16_t cols, const sb_call *call, sb_error *err);
int launched_signal(sb_guest *guest, int signal, const sb_call *call, sb_error *err);
int launched_reap(sb_guest *guest, sb_guest_exit *end, sb_error *err);
int launched_usage(sb_box *box, sb_guest *guest, sb_usage *usage);
void launched_release(sb_guest *guest);
int launched_signal_number(int signal); /* SB_SIGNAL_* as the system's; -1 = unknown */

/* ---- used.c ------------------------------------------------------------------------------ */
/* CPU time of a process that runs, and of those that it has waited for.  Nothing where it cannot be known. */
void launched_used(sb_guest *guest, sb_usage *usage);

/* ---- collect.c ---------------------------------------------------------------------------- */
/* A guest may have taken its own rights away; with `mode` what it owned is opened again. */
int collect_open(int dir, const char *name, uint64_t flags, mode_t mode);
/* A directory's regular files into a tree; `at`: what messages call it. stubborn: as collect_open(). */
int collect_tree(int dir, const char *at, bool stubborn, const sb_call *call, sb_tree *tree, sb_error *err);
/* One file as a tree of one. */
int collect_file(int fd, const char *at, const char *name, const sb_call *call, sb_tree *tree,
		 sb_error *err);

/* ---- ending.c: pure ---------------------------------------------------------------------- */
/* What an EXITED means under these limits.  `limit`: LP_LIMIT_* that the box was told of. */
void launched_ending(const lp_exited *exited, uint32_t limit, const sb_limits *limits,
		     sb_guest_exit *end);
void launched_fill_usage(const lp_usage *from, sb_usage *usage);

#endif /* SB_BACKEND_LAUNCHED_H */
