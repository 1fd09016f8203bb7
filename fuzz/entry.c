/* SPDX-License-Identifier: MIT */
/* entry.c - libFuzzer's entry: each input in a block of its own, so that one byte too far is seen. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len + !len);

	if (!copy)
		return 0;
	if (len)
		memcpy(copy, data, len);
	fuzz_one(copy, len);
	free(copy);
	return 0;
}
