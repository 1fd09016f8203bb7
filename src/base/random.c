/* SPDX-License-Identifier: MIT */
/* random.c - ids that nobody can guess. */
#include "base.h"

#include <errno.h>
#include <sys/random.h>

int random_id(const char *prefix, char *out, size_t cap, sb_error *err)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[16];
	size_t n = strlen(prefix), got = 0;

	if (cap < n + 2 * sizeof bytes + 1)
		return error_set(err, SB_ERR_INVALID, "random", "no room for an id");
	while (got < sizeof bytes) {
		ssize_t more = getrandom(bytes + got, sizeof bytes - got, 0);

		if (more > 0)
			got += (size_t)more;
		else if (errno != EINTR)
			return error_errno(err, SB_ERR_INTERNAL, errno, "random",
					   "cannot get random bytes");
	}
	memcpy(out, prefix, n);
	for (size_t i = 0; i < sizeof bytes; i++) {
		out[n++] = digits[bytes[i] >> 4];
		out[n++] = digits[bytes[i] & 15];
	}
	out[n] = '\0';
	return 0;
}
