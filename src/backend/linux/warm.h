/* SPDX-License-Identifier: MIT */
/*
 * warm.h - interpreters that wait in boxes of their own, each for one run (SB_BOX_WARM).
 *
 * A kind is all that is the same for runs that may take each other's place: the whole plan of the box,
 * program, environment, working directory, and what is loaded.  A worker is a box of a kind with every
 * wall up, in which the interpreter has been started as for a cold run, but with the pack's warm driver
 * for code; it has loaded the pack's preload and waits.  A run of the kind takes a worker over: the code
 * file is put in the driver's place, and the driver is told to go on with it.  The box, and everything
 * in it, ends with that run; another worker is started meanwhile.  So nothing of a run is ever seen by
 * another one, and whatever an interpreter draws when it starts (hash seed, addresses) is each run's own.
 *
 * Workers are started by a thread of the stock's, once a run has ended or the last worker is taken: so they
 * are in nobody's way, and cost no call its time.
 *
 * A worker that has ended, or does not answer, is no failure of a run: it starts in a cold box.
 */
#ifndef SB_BACKEND_LINUX_WARM_H
#define SB_BACKEND_LINUX_WARM_H

#include "linux.h"

enum { WARM_KINDS = 4,          /* remembered at once; the one that was not used for longest goes */
       WARM_LEAST = 2, WARM_MOST = 4, /* waiting workers of one kind: as many as are in use, and one */
       WARM_FDS = 9,            /* descriptors that each takes here */
       WARM_NAMES = 32768,      /* bytes of the names of modules */
       WARM_AGE_MS = 600000,    /* waited so long: closed, when the next run comes */
       WARM_READY_MS = 100,     /* for one that is still loading; then the run starts cold */
       WARM_ANSWER_MS = 2000 }; /* for one that is told to go on */

typedef struct warm_kind warm_kind;
typedef struct warm_worker warm_worker;

typedef struct warm_stock {
	pthread_mutex_t lock;     /* over all kinds and waiting workers; never held while waiting */
	warm_kind *kinds[WARM_KINDS];
	pthread_t thread;         /* starts workers */
	pthread_cond_t wanted;
	bool started, stop, look; /* the thread; it is to end; to look what is missing */
} warm_stock;

struct warm_worker {          /* box->warm: of a box that is a worker, or may be followed by one */
	sb_box *box;
	warm_kind *kind;
	warm_worker *next;        /* older */
	sb_guest *guest;          /* NULL = none waits in this box */
	sb_guest_io io;
	int wire;                 /* to the driver */
	bool ready;               /* it has loaded all, and waits */
	uint64_t since_ns;
};

struct warm_kind {
	sb_state *state;
	warm_stock *stock;
	arena mem;
	lh_plan *plan;            /* without uid and name; its descriptors are our own */
	linux_uids uids;
	sb_limits limits;
	const char *const *argv, *const *env; /* up to the code file */
	const char *cwd, *code, *driver;      /* code: below the scratch root */
	buf names;                /* the first record for the driver */
	unsigned refs;            /* the stock's, and one of each worker */
	unsigned waiting, in_use, starting;
	bool failed;              /* one could not be started just now */
	uint64_t used_ns;
	warm_worker *workers;     /* waiting, newest first */
};

/* ---- warm_kind.c ------------------------------------------------------------------------------- */
/* The kind of this request, counted as in use; NULL: its runs are cold (no driver, no memory ...). */
warm_kind *warm_kind_of(sb_state *state, const sb_box_request *request, const sb_plan *plan);
void warm_kind_drop(warm_kind *kind);  /* not in use any more; NULL is fine */
void warm_kind_unref(warm_kind *kind); /* with the lock held; frees the last */
/* Takes kinds and workers that are too old, or all, out of the stock; they are for warm_close(). */
warm_worker *warm_kind_sort_out(warm_stock *stock, uint64_t now_ns, bool all);
/* Are these the arguments of this kind of run?  How many of them come before the run's own. */
bool warm_kind_fits(const warm_kind *kind, const sb_guest_request *guest, size_t *own);

/* ---- warm.c ------------------------------------------------------------------------------------ */
/* False: none waits.  Else the box is its box.  Its driver has been read: what stands in its place may change. */
bool warm_take(warm_kind *kind, const sb_limits *limits, const sb_call *call, sb_box **box);
/* A cold box of this kind (NULL: of none). */
void warm_seat(sb_box *box, warm_kind *kind);
bool warm_waits(const sb_box *box);
int warm_ended(sb_error *err);  /* AGAIN */
/* The run goes on in the worker.  AGAIN: it is not there any more. */
int warm_go(sb_box *box, const sb_guest_request *request, const sb_call *call, sb_guest **guest,
	    sb_guest_io *io, sb_error *err);
/* A run is under way: the next one may need another worker than the last that was taken. */
void warm_refill(sb_box *box);
void warm_leave(sb_box *box);   /* the box is about to go */
void warm_close(warm_worker *list);
void warm_forget(sb_state *state);

#endif /* SB_BACKEND_LINUX_WARM_H */
