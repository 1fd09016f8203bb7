/* SPDX-License-Identifier: MIT */
/* cancel.c - a flag that can be waited for: an eventfd, so that firing is one write(2). */
#include "session.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sb_cancel {
	int fd;
};

int sb_cancel_new(sb_cancel **cancel, sb_error *err)
{
	if (!cancel)
		return error_set(err, SB_ERR_INVALID, "cancel", "no place for the new cancel was given");
	sb_cancel *made = malloc(sizeof *made);

	if (!made)
		return error_no_memory(err, "cancel");
	made->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (made->fd < 0) {
		int code = error_errno(err, SB_ERR_IO, errno, "cancel", "cannot make an eventfd");

		free(made);
		return code;
	}
	*cancel = made;
	return 0;
}

void sb_cancel_fire(sb_cancel *cancel)
{
	uint64_t one = 1;
	int saved = errno;

	/* EAGAIN means that it has fired 2^64 - 2 times: it stays fired */
	if (cancel && write(cancel->fd, &one, sizeof one) < 0)
		errno = saved;
	errno = saved;
}

void sb_cancel_free(sb_cancel *cancel)
{
	if (!cancel)
		return;
	close(cancel->fd);
	free(cancel);
}

int cancel_fd(const sb_cancel *cancel)
{
	return cancel ? cancel->fd : -1;
}
