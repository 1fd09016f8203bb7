/* SPDX-License-Identifier: MIT */
/* size.c - a size as people write it, without loss. */
#include "base.h"

const char *size_text(uint64_t bytes, char out[32])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	while (bytes && bytes % 1024 == 0 && unit + 1 < BASE_ARRAY_LEN(units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, 32, "%llu %s", (unsigned long long)bytes, units[unit]);
	return out;
}
