/* SPDX-License-Identifier: MIT */
/* fds.c - the guest's descriptors, and errnos in its numbers. */
#include "call.h"

#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

uint32_t fds_errno(int rc)
{
	/* clang-format off */
	static const uint8_t of[] = {
		[E2BIG] = WASI_E2BIG, [EACCES] = WASI_EACCES, [EAGAIN] = WASI_EAGAIN, [EBADF] = WASI_EBADF,
		[EBUSY] = WASI_EBUSY, [ECONNRESET] = WASI_ECONNRESET, [EDQUOT] = WASI_EDQUOT,
		[EEXIST] = WASI_EEXIST, [EFAULT] = WASI_EFAULT, [EFBIG] = WASI_EFBIG, [EILSEQ] = WASI_EILSEQ,
		[EINTR] = WASI_EINTR, [EINVAL] = WASI_EINVAL, [EIO] = WASI_EIO, [EISDIR] = WASI_EISDIR,
		[ELOOP] = WASI_ELOOP, [EMFILE] = WASI_EMFILE, [EMLINK] = WASI_EMLINK,
		[ENAMETOOLONG] = WASI_ENAMETOOLONG, [ENFILE] = WASI_ENFILE, [ENOENT] = WASI_ENOENT,
		[ENOMEM] = WASI_ENOMEM, [ENOSPC] = WASI_ENOSPC, [ENOTCONN] = WASI_ENOTCONN,
		[ENOTDIR] = WASI_ENOTDIR, [ENOTEMPTY] = WASI_ENOTEMPTY, [ENOTSOCK] = WASI_ENOTSOCK,
		[EOPNOTSUPP] = WASI_ENOTSUP, [EOVERFLOW] = WASI_EOVERFLOW, [EPERM] = WASI_EPERM,
		[EPIPE] = WASI_EPIPE, [EROFS] = WASI_EROFS, [ESPIPE] = WASI_ESPIPE, [ETXTBSY] = WASI_ETXTBSY,
		[EXDEV] = WASI_EXDEV,
	};
	/* clang-format on */
	unsigned int e = rc < 0 ? 0u - (unsigned int)rc : 0;

	if (!e)
		return WASI_OK;
	return e < BASE_ARRAY_LEN(of) && of[e] ? of[e] : WASI_EIO;
}

void wasi_init(wasi *w, uint32_t fd_max)
{
	*w = (wasi){ .fd_max = fd_max };
}

void fds_close(wasi_fd *fd)
{
	if (fd->open && fd->file && !fd->borrowed)
		fd->fs->ops->close(fd->fs, fd->file);
	*fd = (wasi_fd){ .host = -1 };
}

void wasi_release(wasi *w)
{
	for (uint32_t i = 0; i < w->fd_count; i++)
		fds_close(&w->fd[i]);
	fds_close(&w->control);
	free(w->fd);
	w->fd = NULL;
	w->fd_count = w->fd_room = 0;
}

static int64_t clock_of(clockid_t id)
{
	struct timespec t;

	return clock_gettime(id, &t) == 0 ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : 0;
}

void wasi_start_clocks(wasi *w)
{
	w->monotonic_base_ns = clock_of(CLOCK_MONOTONIC);
	w->cpu_base_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	w->thread_base_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
}

wasi_fd *fds_get(const wasi *w, uint64_t number)
{
	uint32_t n = (uint32_t)number;

	if (n == WASI_CONTROL_FD)
		return w->control.open ? (wasi_fd *)&w->control : NULL;
	return n < w->fd_count && w->fd[n].open ? &w->fd[n] : NULL;
}

uint32_t fds_need(const wasi *w, uint64_t number, uint64_t rights, wasi_fd **fd)
{
	*fd = fds_get(w, number);
	if (!*fd)
		return WASI_EBADF;
	return ((*fd)->rights & rights) == rights ? WASI_OK : WASI_ENOTCAPABLE;
}

uint32_t fds_need_dir(const wasi *w, uint64_t number, uint64_t rights, wasi_fd **fd)
{
	*fd = fds_get(w, number);
	if (!*fd)
		return WASI_EBADF;
	if ((*fd)->type != WASI_T_DIR)
		return WASI_ENOTDIR;
	return ((*fd)->rights & rights) == rights ? WASI_OK : WASI_ENOTCAPABLE;
}

int fds_place(wasi *w)
{
	uint32_t i, room = w->fd_room ? w->fd_room * 2 : 16;
	wasi_fd *fd;

	for (i = 0; i < w->fd_count; i++)
		if (!w->fd[i].open)
			return (int)i;
	if (w->fd_count >= w->fd_max)
		return -1;
	if (w->fd_count == w->fd_room) {
		room = room > w->fd_max ? w->fd_max : room;
		fd = realloc(w->fd, room * sizeof *fd);
		if (!fd)
			return -1;
		w->fd = fd;
		w->fd_room = room;
	}
	w->fd[w->fd_count] = (wasi_fd){ .host = -1 };
	return (int)w->fd_count++;
}

int wasi_add_stream(wasi *w, int host, uint8_t type, uint64_t rights)
{
	int n = fds_place(w);

	if (n >= 0)
		w->fd[n] = (wasi_fd){ .host = host, .type = type, .rights = rights, .open = true };
	return n;
}

void wasi_add_control(wasi *w, int host, uint8_t type, uint64_t rights)
{
	w->control = (wasi_fd){ .host = host, .type = type, .rights = rights, .open = true };
}

int wasi_add_preopen(wasi *w, vfs *fs, vfs_file *dir, const char *name, bool readonly)
{
	uint64_t rights = WASI_DIR_RIGHTS, inherits = WASI_DIR_RIGHTS | WASI_FILE_RIGHTS;
	int n = fds_place(w);

	if (n < 0)
		return n;
	if (readonly) {
		rights &= ~WASI_CHANGING;
		inherits &= ~WASI_CHANGING;
	}
	w->fd[n] = (wasi_fd){ .fs = fs, .file = dir, .host = -1, .rights = rights,
			      .inherits = inherits, .type = WASI_T_DIR, .open = true,
			      .preopen = true, .borrowed = true, .name = name };
	return n;
}
