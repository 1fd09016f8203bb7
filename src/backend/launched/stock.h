/* SPDX-License-Identifier: MIT */
/*
 * stock.h - workers that wait in boxes of their own, each for one run (SB_BOX_WARM).
 *
 * A kind is all that is the same for runs that may take each other's place; what that is, and how a
 * worker of it is started and told to go on, is the backend's.  A worker is a box of a kind with every
 * wall up, in which what a run needs has been started and loaded, and waits.  A run of the kind takes a
 * worker over, and the box, with everything in it, ends with that run; another worker is started
 * meanwhile.  So nothing of a run is ever seen by another one.
 *
 * Workers are started by a thread of the stock's, once a run has ended or the last worker is taken: so they
 * are in nobody's way, and cost no call its time.
 *
 * A worker that has ended, or does not answer, is no failure of a run: it starts in a cold box.
 */
#ifndef SB_BACKEND_STOCK_H
#define SB_BACKEND_STOCK_H

#include "launched.h"

enum { STOCK_KINDS = 4,         /* remembered at once; the one that was not used for longest goes */
       STOCK_LEAST = 2, STOCK_MOST = 4, /* waiting workers of one kind: as many as are in use, and one */
       STOCK_LATER = 8,         /* boxes of ended runs that the thread has yet to take down */
       STOCK_AGE_MS = 600000 }; /* waited so long: closed, when the next run comes */

typedef struct stock_kind stock_kind;
typedef struct stock_worker stock_worker;

typedef struct stock_way {        /* the backend's */
	stock_worker *(*start)(stock_kind *kind); /* on the stock's thread; NULL = not just now */
	void (*destroy)(sb_box *box);     /* box->warm is NULL by then */
	void (*free_kind)(stock_kind *kind);
	/* With the lock held; may be NULL.  What this one has loaded is not what runs of its kind are any more: the
	 * thread closes it. */
	bool (*stale)(const stock_worker *w);
} stock_way;

typedef struct stock {
	pthread_mutex_t lock;     /* over all kinds and waiting workers; never held while waiting */
	const stock_way *way;
	stock_kind *kinds[STOCK_KINDS];
	sb_box *later[STOCK_LATER];
	pthread_t thread;         /* starts workers */
	pthread_cond_t wanted;
	bool started, stop, look; /* the thread; it is to end; to look what is missing */
} stock;

struct stock_worker {         /* box->warm: of a box that is a worker, or may be followed by one */
	sb_box *box;
	stock_kind *kind;
	stock_worker *next;       /* older */
	sb_guest *guest;          /* NULL = none waits in this box */
	sb_guest_io io;
	int wire;                 /* to the worker */
	bool ready;               /* it has loaded all, and waits */
	uint64_t since_ns;
};

struct stock_kind {           /* first in a backend's own */
	stock *stock;
	unsigned refs;            /* the stock's, and one of each worker */
	unsigned waiting, in_use, starting;
	bool failed;              /* one could not be started just now */
	uint64_t used_ns;
	stock_worker *workers;    /* waiting, newest first */
};

/* *at, made if it is NULL; under `lock`.  NULL = no memory. */
stock *stock_of(stock **at, pthread_mutex_t *lock, const stock_way *way);
void stock_forget(stock **at);    /* closes all; NULL is fine */

/* The kind that fits, or a new one of make(), counted as in use; both are called with the lock held. */
stock_kind *stock_kind_of(stock *stock, bool (*fits)(const stock_kind *kind, void *user),
			  stock_kind *(*make)(void *user), void *user);
void stock_kind_drop(stock_kind *kind);   /* not in use any more; NULL is fine */

/* For way->start: a worker of this box, which it leaves when it is freed.  NULL = no memory. */
stock_worker *stock_worker_new(sb_box *box, stock_kind *kind);
void stock_worker_free(stock_worker *w);  /* not the box */
/* The one that has waited for longest, of those that fit (NULL: any; called with the lock held); NULL = none.  It is
 * the caller's. */
stock_worker *stock_pop(stock_kind *kind, bool (*fits)(const stock_worker *w, void *user), void *user);
void stock_push(stock_kind *kind, stock_worker *w); /* back again, or closed where there are enough */
void stock_close(stock_worker *list);
/* The use of the kind that the caller held is the worker's from now on. */
void stock_taken(stock_kind *kind);
bool stock_alive(stock_worker *w);

/* A cold box of this kind (NULL: of none). */
void stock_seat(sb_box *box, stock_kind *kind);
bool stock_waits(const sb_box *box);
int stock_ended(sb_error *err);   /* AGAIN */
/* The guest of a waiting worker is a run's. */
void stock_give(stock_worker *w, const sb_guest_request *request, sb_guest **guest, sb_guest_io *io);
/* A run is under way: the next one may need another worker than the last that was taken. */
void stock_refill(sb_box *box);
void stock_leave(sb_box *box);    /* the box is about to go */
/* The same for one in which nothing runs any more; true: the thread destroys it. */
bool stock_leave_later(sb_box *box);

#endif /* SB_BACKEND_STOCK_H */
