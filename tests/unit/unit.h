/* SPDX-License-Identifier: MIT */
/* unit.h - cmocka and what every unit test uses.  Include it first. */
#ifndef SB_TESTS_UNIT_H
#define SB_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above */
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* A row of a table failed: says which, then fails at this line. */
#define unit_row(row, ok) \
	do { \
		if (!(ok)) \
			fail_msg("row %zu: %s", (size_t)(row), #ok); \
	} while (0)

/* Small, seeded by the test: the same numbers on every machine. */
static inline uint32_t unit_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

#endif /* SB_TESTS_UNIT_H */
