/* SPDX-License-Identifier: MIT */
/* whole.c - all the bytes of something, however many calls that takes. */
#include "base.h"

#include <errno.h>
#include <unistd.h>

int fd_move_all(int fd, void *data, uint64_t len, fd_move_fn move, fd_await_fn await, void *user)
{
	char *at = data;

	while (len) {
		ssize_t n = move(fd, at, len);

		if (n > 0) {
			at += n;
			len -= (uint64_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || errno != EAGAIN || !await)
			return n == 0 ? -EPIPE : -errno;
		if (!await(user, fd))
			return -ECANCELED;
	}
	return 0;
}
