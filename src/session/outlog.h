/* SPDX-License-Identifier: MIT */
/*
 * outlog.h - the output of a process: one ring of bytes over both streams, tagged in runs.
 *
 * A cursor is the number of bytes before it since the beginning.  Bytes that follow each other on one
 * stream are one run, however they were written.  Bytes and runs together stay within the budget: the
 * oldest give way, and a reader that comes for them is told so.  No lock: the owner's is held.
 */
#ifndef SB_SESSION_OUTLOG_H
#define SB_SESSION_OUTLOG_H

#include "../base/base.h"

typedef struct outlog_run {
	uint64_t start;               /* cursor of its first byte, which may be dropped by now */
	uint32_t stream, reserved;
} outlog_run;
typedef struct outlog {
	char *ring;                   /* the byte at cursor c lies at c % alloc */
	size_t alloc;
	uint64_t oldest, end;         /* cursors: what is retained */
	outlog_run *runs;             /* a ring, too */
	size_t run_first, run_count, run_alloc;
	uint64_t budget;
} outlog;

enum { OUTLOG_LEAST = 64 };           /* bytes: a smaller budget could not keep one byte */

void outlog_init(outlog *log, uint64_t budget);
void outlog_release(outlog *log);     /* the bytes; the cursors stay */
/* Never fails: what cannot be kept is a gap. */
void outlog_add(outlog *log, uint32_t stream, const void *data, size_t len);
/* At most cap bytes of one stream from `cursor` on, which is retained; their number, 0 at the end. */
size_t outlog_read(const outlog *log, uint64_t cursor, void *buf, size_t cap, uint32_t *stream);
uint64_t outlog_used(const outlog *log); /* of the budget */

#endif /* SB_SESSION_OUTLOG_H */
