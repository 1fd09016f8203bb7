/* SPDX-License-Identifier: MIT */
/*
 * state.h - what a guest at rest holds, as one stream of bytes: for a branch of it (docs/internals/branch-stream.md).
 *
 * Whoever writes it may be in the guest's hands.  Whoever reads it believes no number of it before it was looked
 * at against what is there: sizes against what is left of the stream, bytes and names against the reader's own
 * quotas, places against tables that were read before.
 */
#ifndef SB_VFS_STATE_H
#define SB_VFS_STATE_H

#include "vfs.h"

/* Where it goes.  put NULL: it is only counted. */
typedef struct state_sink {
	bool (*put)(void *user, const void *data, uint64_t len);
	void *user;
	uint64_t bytes;
	bool failed;             /* sticky */
} state_sink;
/* Where it comes from: `get` gives all of `len` bytes or false. */
typedef struct state_source {
	bool (*get)(void *user, void *data, uint64_t len);
	void *user;
	uint64_t left;           /* what the stream still has: no more is ever read */
} state_source;

void state_put(state_sink *to, const void *data, uint64_t len);
/* 0, -EPROTO: there is less left, or -EIO: it ended before. */
int state_get(state_source *from, void *data, uint64_t len);
/* Can `count` things of `least` bytes each still come? */
bool state_has(const state_source *from, uint64_t count, uint64_t least);

/* ---- mem_state.c ------------------------------------------------------------------------------- */
/* The nodes of a tree, numbered: the root is 0, and a directory's number is below those of the directories in it. */
typedef struct mem_index mem_index;
/* With `count` open files and directories, which need not have a name any more.  NULL = no memory.  Nothing may
 * change in the tree as long as it is used. */
mem_index *mem_index_new(mem_fs *fs, vfs_file *const *open, size_t count);
uint32_t mem_index_of(const vfs_file *file); /* of one that was numbered last */
void mem_save(const mem_index *index, state_sink *to);
void mem_index_free(mem_index *index);       /* of mem_index_new() */

/* What came by a stream takes the place of all that `fs` holds, but for what was laid as given (MEM_GIVEN, and what is
 * mounted): that stays its own, at the place that the stream says.  0 or -errno: -ENOSPC a quota, -ENOMEM, -ENOENT
 * something given is not given here, -EPROTO, -EIO.  After an error nothing is left in it. */
int mem_load(mem_fs *fs, state_source *from, mem_index **index);
/* Opens the node of that number; NULL = there is none that can be open. */
vfs_file *mem_index_open(const mem_index *index, uint32_t number);
/* Of mem_load(): what has neither a name nor is open goes with it. */
void mem_index_settle(mem_fs *fs, mem_index *index);

#endif /* SB_VFS_STATE_H */
