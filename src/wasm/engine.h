/* SPDX-License-Identifier: MIT */
/*
 * engine.h - the WebAssembly engine behind a thin face: nobody else includes its headers.
 *
 * One set of fixed, tested settings for the worker and for the compiler (a module runs only under the
 * settings that it was compiled with, and the engine aborts on settings that contradict each other):
 * exceptions, SIMD and bulk memory on; threads, memory64 and garbage-collected types off; no fuel and no
 * epochs, since the process itself is ended when time is over.
 *
 * Two builds of it: from the engine's own crate (the worker then holds no compiler), or on a ready-made
 * shared library.  engine_route() says which.
 */
#ifndef SB_WASM_ENGINE_H
#define SB_WASM_ENGINE_H

#include "../wasi/wasi.h"
#include "branch.h"

#define ENGINE_VERSION "48.0.8"
#define ENGINE_SETTINGS "1"          /* counts up with each change of the settings */
#define ENGINE_STACK_BYTES (8u << 20) /* that a guest's calls may take: JOB_STACK_MOST */
#define ENGINE_WHY 400               /* bytes of a message */

typedef struct engine engine;
const char *engine_route(void);      /* "crate" or "wheel" */
const char *engine_key(void);        /* version, route, settings: modules of another key do not load */
/* from_memory: modules come by engine_load(), not from files.  NULL = no memory. */
engine *engine_new(bool from_memory, uint64_t stack_bytes); /* which is at most ENGINE_STACK_BYTES */

/* Trusted as a program is.  0, or -1 with why. */
int engine_load_file(engine *e, const char *path, char why[ENGINE_WHY]);
int engine_load(engine *e, const void *data, size_t len, char why[ENGINE_WHY]);
/* Of a module as it came from anywhere; *out for free().  -1 in a build without the compiler, too. */
int engine_compile(engine *e, const void *wasm, size_t len, void **out, size_t *out_len,
		   char why[ENGINE_WHY]);

enum { ENGINE_EXITED = 0,  /* returned, or proc_exit(): wasi.exit_code */
       ENGINE_TRAPPED,     /* why says what */
       ENGINE_REFUSED,     /* nothing of the guest ran: why */
       ENGINE_NO_MEMORY,   /* its least is above the limit; nothing of it ran */
       ENGINE_STOPPED,     /* stop() said so, at the end of a call */
       ENGINE_RESTS };     /* no call of the guest's is under way: engine_turn() when it has something to do */

typedef struct engine_run {
	wasi *w;
	uint64_t memory_bytes;           /* of all linear memories; SB_UNLIMITED = 4 GiB */
	bool (*stop)(void *user);        /* asked at the end of each call; may be NULL */
	/* Called where a call of the interface ends the guest, with ENGINE_EXITED or STOPPED; need not come
	 * back (to take the guest's calls off the stack takes longer than many a run).  May be NULL. */
	void (*leave)(void *user, int kind);
	void *user;
	/* set by the run, fit to be read from a signal handler: */
	volatile bool in_host;           /* a call of the interface is under way */
	uint8_t *base;                   /* of the guest's memory; NULL before it exists */
	volatile uint64_t peak_bytes;    /* of it */
	char why[ENGINE_WHY];
	bool stack_overflow;
} engine_run;
/* Instantiates what was loaded, ahead of its start: -1, or the ENGINE_* that engine_start() would end with.
 * Code of a module's own may run here, if it has a start function: before the walls are closed only for what is
 * trusted. */
int engine_ready(engine *e, engine_run *run);
/* Of an instance that is ready and waits: calls its "guest.rehearse", if it has one, so that its run finds memory
 * and code already there.  Only for a pack's module.  False: it failed, and is fit for no run. */
bool engine_rehearse(engine *e, engine_run *run);
/* Instantiates what was loaded, unless that was done, and calls its _start. */
int engine_start(engine *e, engine_run *run);
/* Of a guest that rests: calls its "guest.turn".  Once that has come back, it rests again. */
int engine_turn(engine *e, engine_run *run);
uint64_t engine_memory_bytes(engine *e); /* of the guest's memory now */

/* ---- Of a branch of a guest that rests: branch.h ---- */
typedef struct engine_fresh engine_fresh;
/* The memory as the module brings it, in an instance of its own of which nothing runs; NULL = it cannot be had. */
engine_fresh *engine_fresh_new(engine *e, const uint8_t **data, uint64_t *bytes);
void engine_fresh_free(engine_fresh *fresh);
/* The exported globals that can change, in the module's order: how many; -1 = more than `most`, or of a type that is no
 * number. */
int engine_globals(engine *e, branch_global *out, uint32_t most);
/* 0 or -1, as engine_globals() of the same module told them. */
int engine_globals_set(engine *e, const branch_global *from, uint32_t count);
/* Instantiates what was loaded in the place of its start: its memory is there, and rests.  -1, or an ENGINE_*. */
int engine_rest(engine *e, engine_run *run);
bool engine_can_rest(engine *e); /* it has what a branch needs of a module */
/* Its memory to that size, within the limit: 0 or -ENOMEM. */
int engine_grow(engine *e, uint64_t bytes);
/* Calls "guest.renew" of a copy: ENGINE_RESTS, or how it ended. */
int engine_renew(engine *e, engine_run *run);

#endif /* SB_WASM_ENGINE_H */
