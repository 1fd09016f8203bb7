/* SPDX-License-Identifier: MIT */
/*
 * js.h - the driver of JavaScript and TypeScript inside the guest.
 *
 *   engine.c   QuickJS and what only its own file can reach
 *   libc.c     its modules std and os, and the wait for timers and descriptors
 *   main.c     the snapshot, one run, modules, uncaught errors
 *   session.c  an evaluation session
 *   source.c   a code file as text: byte order mark, invalid UTF-8
 *   ts.c       TypeScript to JavaScript by the compiler in a realm of its own; no_ts.c stands in for it in js
 */
#ifndef GUEST_JS_H
#define GUEST_JS_H

#include "quickjs-libc.h"
#include "quickjs.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before the snapshot: nothing of this machine's clock and randomness stays in the context.  `tables`:
 * it has maps already, whose hash seed has to stay. */
void engine_freeze(JSContext *ctx, bool tables);
/* After it. */
void engine_renew(JSContext *ctx, const uint64_t seeds[2], bool tables);
/* In a copy of the guest: random numbers alone. */
void engine_reseed(JSContext *ctx, uint64_t seed);
/* In a worker that waits: each name and each kind of object of a program's is written into two tables, wherever its hash has it. */
void engine_touch(JSRuntime *rt);
/* A module's name as seen from `base`; js_free() it. */
char *engine_join(JSContext *ctx, const char *base, const char *name);

/* Waits for the next timer, descriptor or interrupt and calls its function; false: nothing to wait for, or it threw. */
bool libc_wait(JSContext *ctx);

/* ---- main.c, session.c ---- */
/* This promise's rejection is told elsewhere. */
void js_forgive(JSValueConst promise);
/* Those that have no handler by now, on stderr. */
void js_report_rejections(void);
/* `inspect`: of the prelude. */
_Noreturn void js_session(JSContext *ctx, JSValueConst inspect);

/* The file as UTF-8 ended by a NUL that `len` does not count; NULL and errno.  free() it. */
char *source_load(const char *path, size_t *len);

/* ---- TypeScript ---- */
void ts_snapshot(JSRuntime *rt);
void ts_renew(const uint64_t seeds[2]);
/* Translates a sample and keeps nothing of it. */
void ts_rehearse(void);
/* True if this module takes TypeScript, and `path` is to be taken as such. */
bool ts_wanted(const char *path);
/* JavaScript in place of *text (free()d), or false once the errors stand on stderr. */
bool ts_translate(const char *path, char **text, size_t *len);
/* The same of a piece of a session, whose text is not kept; *why: the errors, malloc'd, of FAILED.  UNFINISHED
 * only if `partial`: more text would help. */
enum { TS_MADE = 0, TS_FAILED, TS_UNFINISHED };
int ts_take(const char *name, char **text, size_t *len, bool partial, char **why);
/* "main.ts:3:5" in a stack trace, of lines that ts_translate() made, as they were; malloc'd, or NULL. */
char *ts_stack(const char *stack);

#endif /* GUEST_JS_H */
