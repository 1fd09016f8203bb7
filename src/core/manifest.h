/* SPDX-License-Identifier: MIT */
/*
 * manifest.h - what a pack of the wasm backend says of itself (docs/internals/wasm-pack.md), as text.
 *
 * Pure: text in, a record out.  src/backend/packdir.h finds packs on disk and checks what they name.
 */
#ifndef SB_MANIFEST_H
#define SB_MANIFEST_H

#include "../base/base.h"
#include "../base/sha256.h"

enum { MANIFEST_MAX_BYTES = 4096, MANIFEST_MAX_FILES = 16, MANIFEST_WORD = 64, MANIFEST_PATH = 256 };

typedef struct manifest_file {
	char name[MANIFEST_WORD];   /* in the pack's folder; "" = there is none */
	char sha256[SHA256_HEX];
	uint64_t bytes;
	char path[MANIFEST_PATH];   /* of a file line: where the guest sees it */
} manifest_file;

typedef struct manifest {
	char name[MANIFEST_WORD], version[MANIFEST_WORD], engine[MANIFEST_WORD], note[MANIFEST_PATH];
	manifest_file module, source;
	manifest_file files[MANIFEST_MAX_FILES];
	size_t file_count;
} manifest;

/* INVALID with one line that names the line of the text and what is wrong with it. */
int manifest_parse(const char *text, size_t len, manifest *out, sb_error *err);

#endif /* SB_MANIFEST_H */
