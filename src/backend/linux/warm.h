/* SPDX-License-Identifier: MIT */
/*
 * warm.h - interpreters that wait in boxes of their own, each for one run (SB_BOX_WARM).
 *
 * A kind (launched/stock.h) is all that is the same for runs that may take each other's place: the whole
 * plan of the box, program, environment, working directory, and what is loaded.  In a worker the interpreter
 * has been started as for a cold run, but with the pack's warm driver for code; it has loaded the pack's
 * preload and waits.  A run takes it over: the code file is put in the driver's place, and the driver is
 * told to go on with it.  Whatever an interpreter draws when it starts (hash seed, addresses) is each run's
 * own.
 */
#ifndef SB_BACKEND_LINUX_WARM_H
#define SB_BACKEND_LINUX_WARM_H

#include "linux.h"
#include "../launched/stock.h"

enum { WARM_NAMES = 32768,      /* bytes of the names of modules */
       WARM_READY_MS = 100,     /* for one that is still loading; then the run starts cold */
       WARM_ANSWER_MS = 2000 }; /* for one that is told to go on */

typedef struct warm_kind {
	stock_kind base;
	sb_state *state;
	arena mem;
	lh_plan *plan;            /* without uid and name; its descriptors are our own */
	linux_uids uids;
	sb_limits limits;
	const char *const *argv, *const *env; /* up to the code file */
	const char *cwd, *code, *driver;      /* code: below the scratch root */
	buf names;                /* the first record for the driver */
} warm_kind;

/* ---- warm_kind.c ------------------------------------------------------------------------------- */
/* The kind of this request, counted as in use; NULL: its runs are cold (no driver, no memory ...). */
warm_kind *warm_kind_of(sb_state *state, const sb_box_request *request, const sb_plan *plan);
void warm_kind_free(stock_kind *kind);
/* Are these the arguments of this kind of run?  How many of them come before the run's own. */
bool warm_kind_fits(const warm_kind *kind, const sb_guest_request *guest, size_t *own);

/* ---- warm.c ------------------------------------------------------------------------------------ */
extern const stock_way warm_way;
/* False: none waits.  Else the box is its box.  Its driver has been read: what stands in its place may change. */
bool warm_take(warm_kind *kind, const sb_limits *limits, const sb_call *call, sb_box **box);
/* The run goes on in the worker.  AGAIN: it is not there any more. */
int warm_go(sb_box *box, const sb_guest_request *request, const sb_call *call, sb_guest **guest,
	    sb_guest_io *io, sb_error *err);

#endif /* SB_BACKEND_LINUX_WARM_H */
