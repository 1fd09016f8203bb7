/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256 (FIPS 180-4), for files that are pinned by it. */
#ifndef SB_SHA256_H
#define SB_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_HEX = 65 };
typedef struct sha256 {
	uint32_t state[8];
	uint64_t len;
	uint8_t block[64];
} sha256;
void sha256_init(sha256 *h);
void sha256_add(sha256 *h, const void *data, size_t len);
void sha256_hex(sha256 *h, char out[SHA256_HEX]); /* ends it */
void sha256_data(const void *data, size_t len, char out[SHA256_HEX]);
/* Of the rest of an open file; 0 or -errno.  *bytes (may be NULL): how many they were. */
int sha256_file(int fd, char out[SHA256_HEX], uint64_t *bytes);

#endif /* SB_SHA256_H */
