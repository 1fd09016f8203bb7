/* SPDX-License-Identifier: MIT */
/* state.h - descriptors, bell, clock and words of a guest at rest, as a part of the stream of vfs/state.h. */
#ifndef SB_WASI_STATE_H
#define SB_WASI_STATE_H

#include "wasi.h"
#include "../vfs/state.h"

#define WASI_WORDS_MAX 65536u /* arguments, and variables, that a stream may bring */

/* The files and directories of `fs` that are open: *files is for free().  -EXDEV: one of another file system is, which
 * no stream can carry; -ENOMEM. */
int wasi_state_files(const wasi *w, const vfs *fs, vfs_file ***files, size_t *count);
/* Of what was numbered by a mem_index with those files. */
void wasi_save(const wasi *w, state_sink *to);
/* In the place of the table that was laid, whose streams and root it means: they are what they are here, with no more
 * rights than were laid.  The clocks that count a process' own time begin anew.  The words are for
 * strv_free_list().  0 or -errno, as of mem_load(); -EMFILE: more files than may be open here. */
int wasi_load(wasi *w, vfs *fs, const mem_index *index, state_source *from, char ***argv, char ***env);

#endif /* SB_WASI_STATE_H */
