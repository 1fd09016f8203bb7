/* SPDX-License-Identifier: MIT */
/*
 * feed.h - what a command said its input is, given to the guest as it takes it: bytes, a borrowed
 * descriptor, or a callback.  For the pump of a run and the thread of open sessions alike.
 *
 * `in` is our end, not blocking; it is closed when the input ends.  A guest that does not read, or
 * has closed its input, is no error.
 */
#ifndef SB_SESSION_FEED_H
#define SB_SESSION_FEED_H

#include "../core/core.h"

enum { FEED_FINE = 0, FEED_STOP };    /* STOP: the callback wants the run to end */
typedef struct feed {
	uint32_t kind;                /* SB_INPUT_* */
	int source;                   /* FD: borrowed */
	sb_input_fn read_input;
	void *user;
	char *buffer;                 /* of FD and CALLBACK */
	const char *next;
	size_t left;
	int type;                     /* how to read the source without waiting */
	bool done;                    /* the input has ended */
	bool keep;                    /* `in` stays open: a terminal, or it is the caller's to close */
} feed;
/* 0 or NO_MEMORY.  Bytes are given at once as far as they go. */
int feed_begin(feed *f, const sb_command *command, int *in);
void feed_end(feed *f, int *in);
void feed_release(feed *f);
/* Waits for the source to be readable; for `in` to be writable. */
bool feed_wants_source(const feed *f);
bool feed_wants_room(const feed *f);
/* `in` is writable; the source is readable.  FEED_*. */
int feed_give(feed *f, int *in);
int feed_take(feed *f, int *in);

/* write(2) that never raises SIGPIPE. */
ssize_t feed_write(int fd, const void *data, size_t len);

#endif /* SB_SESSION_FEED_H */
