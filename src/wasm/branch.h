/* SPDX-License-Identifier: MIT */
/*
 * branch.h - all that a guest at rest is, as a stream from its worker to that of a branch (vfs/state.h): memory,
 * globals, files, descriptors.  No engine: whoever calls brings what is of one.
 */
#ifndef SB_WASM_BRANCH_H
#define SB_WASM_BRANCH_H

#include "../wasi/state.h"

#define BRANCH_GLOBALS_MAX 64u
#define BRANCH_PAGE 4096u

typedef struct branch_global {
	uint32_t kind, reserved; /* kind: the engine's word for its type */
	uint64_t bits;
} branch_global;

typedef struct branch_parts {
	uint64_t build;          /* what this program calls itself: only one of the same build reads what it wrote */
	mem_fs *fs;
	wasi *w;
	uint8_t *memory;
	uint64_t memory_bytes;
	/* As the module brings it, where that is known: only what differs is in the stream.  Of a branch its memory is
	 * just that, and NULL. */
	const uint8_t *fresh;
	uint64_t fresh_bytes;
	branch_global global[BRANCH_GLOBALS_MAX]; /* of a branch: the kinds, the bits are read */
	uint32_t globals;
	int (*grow)(void *user, uint64_t bytes); /* of a branch: the memory to that size; 0 or -ENOMEM */
	void *user;
	char **argv, **env;      /* of a branch: read, for strv_free_list() */
} branch_parts;

typedef struct branch_saving branch_saving;
/* 0, or -EXDEV: what is open cannot be carried (wasi_state_files()), -ENOMEM.  Until branch_saved() nothing of the
 * guest may run. */
int branch_save_begin(const branch_parts *parts, branch_saving **saving);
void branch_save(const branch_saving *saving, state_sink *to); /* as many bytes each time */
void branch_saved(branch_saving *saving);

/* 0 or -errno as of mem_load() and wasi_load(); -EPROTO, too, if anything is left behind it.  After an error nothing
 * of `fs` and `w` is of any use. */
int branch_load(branch_parts *parts, state_source *from);

#endif /* SB_WASM_BRANCH_H */
