/* SPDX-License-Identifier: MIT */
/*
 * packdir.h - packs of the wasm backend as they lie on disk: found, checked, opened.
 *
 * A pack is the folder wasm/NAME beside our programs.  Nothing of it is used unless its manifest names
 * it and its SHA-256 is the one named there.  Hashing is left out for a file that the stamp beside
 * it knows: the same hash, device, inode, length and times as when it was hashed last.
 */
#ifndef SB_PACKDIR_H
#define SB_PACKDIR_H

#include <limits.h>

#include "../core/manifest.h"

typedef struct packdir {
	int fd;                   /* the folder; -1 = closed */
	char path[PATH_MAX];
	manifest of;
} packdir;

/* `programs`: the folder of sb-wasm.  *dir is closed after an error, which is
 *   NOT_FOUND    there is none: it has to be built
 *   FORBIDDEN    others than its owner could change it, or the owner is neither we, root nor the programs'
 *   INVALID      its manifest is none
 *   UNSUPPORTED  it was made for another engine than the one in wasm/engine */
int packdir_open(packdir *dir, const char *programs, const char *name, sb_error *err);
void packdir_close(packdir *dir);

/* Opens a file that the manifest names, for reading, at its beginning: a descriptor, or an error:
 * CHECKSUM if it is not what was pinned.  `always`: hashed in any case. */
int packdir_file(const packdir *dir, const manifest_file *file, bool always, sb_error *err);
/* Module and data, before they are used: what the stamp knows is not hashed again; where it does not know all
 * of them, all are, and a new one is left. */
int packdir_check(const packdir *dir, sb_error *err);
/* Hashes all files, and leaves a stamp for the next time where the folder can be written. */
int packdir_verify(const packdir *dir, sb_error *err);
/* Of all files that it names. */
uint64_t packdir_bytes(const packdir *dir);

#endif /* SB_PACKDIR_H */
