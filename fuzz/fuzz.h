/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what a harness is made of.
 *
 * fuzz/NAME.c has one fuzz_one() and one fuzz_seed().  Built with clang's libFuzzer it explores; built
 * with standalone.c and any compiler it is a plain test: its seeds, its corpus, and some thousand
 * mutations of both.
 */
#ifndef SB_FUZZ_H
#define SB_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One input, in memory that ends where it ends; 1 = it is valid.  Each seed must be. */
int fuzz_one(uint8_t *data, size_t len);
/* Writes seed number `at` into out; its length, 0 = no more. */
size_t fuzz_seed(size_t at, uint8_t *out, size_t cap);

/* A property that must hold; libFuzzer keeps the input that broke it. */
#define FUZZ_CHECK(ok)                                                                             \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The harness' own answer to a text that a decoder gave: there is one, and it is one line. */
static inline void fuzz_check_why(const char *why)
{
	FUZZ_CHECK(why && *why && !strchr(why, '\n'));
}

/* fuzz_seed() of a harness whose seeds are texts. */
static inline size_t fuzz_seed_text(const char *const *seeds, size_t count, size_t at, uint8_t *out, size_t cap)
{
	size_t len = at < count ? strlen(seeds[at]) : 0;

	if (len > cap)
		return 0;
	memcpy(out, at < count ? seeds[at] : "", len);
	return len;
}

#endif /* SB_FUZZ_H */
