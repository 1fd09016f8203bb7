/* SPDX-License-Identifier: MIT */
/*
 * stream.c - reading and writing: pipes of the host, and files at an offset.
 *
 * The flags of a descriptor of the host are never changed, since whoever gave it shares them: "not
 * blocking" is a look with poll() before, and a write of no more than a pipe takes at once.
 */
#include "call.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

uint32_t stream_iovs(const wasi *w, uint64_t at, uint64_t count, struct iovec *out)
{
	const uint8_t *list;
	uint64_t total = 0;

	count &= UINT32_MAX;
	if (count > WASI_IOVS_MAX)
		return WASI_EINVAL;
	list = call_bytes(w, at, count * 8);
	if (!list)
		return WASI_EFAULT;
	for (uint64_t i = 0; i < count; i++, list += 8) {
		uint32_t len = call_load32(list + 4);

		out[i].iov_base = call_bytes(w, call_load32(list), len);
		out[i].iov_len = len;
		if (!out[i].iov_base)
			return WASI_EFAULT;
		total += len;
	}
	return total > UINT32_MAX ? WASI_EINVAL : WASI_OK;
}

static uint32_t stream_ready(const wasi_fd *fd, short events)
{
	struct pollfd p = { .fd = fd->host, .events = events };

	if (!(fd->flags & WASI_F_NONBLOCK))
		return WASI_OK;
	return poll(&p, 1, 0) > 0 ? WASI_OK : WASI_EAGAIN;
}

static bool stream_again(const wasi *w)
{
	return errno == EINTR && !(w->stopping && w->stopping(w->user));
}

/* Whoever waits for us (wasi.wait) may have something to do meanwhile. */
static uint32_t stream_await(wasi *w, wasi_fd *fd)
{
	struct pollfd p = { .fd = fd->host, .events = POLLIN };
	bool ready = fd->ready;

	fd->ready = false;
	if (ready || !w->wait || fd->type != WASI_T_STREAM || (fd->flags & WASI_F_NONBLOCK))
		return WASI_OK;
	for (;;) {
		int n = w->wait(w->user, &p, 1, NULL);

		if (n)
			return n < 0 ? fds_errno(-errno) : WASI_OK;
	}
}

uint32_t stream_read(wasi *w, wasi_fd *fd, const struct iovec *iov, int count, size_t *done)
{
	uint32_t rc = stream_ready(fd, POLLIN);
	ssize_t n;

	if (!rc)
		rc = stream_await(w, fd);
	if (rc)
		return rc;
	do
		n = readv(fd->host, iov, count);
	while (n < 0 && stream_again(w));
	*done = n < 0 ? 0 : (size_t)n;
	return n < 0 ? fds_errno(-errno) : WASI_OK;
}

uint32_t stream_write(wasi *w, const wasi_fd *fd, const struct iovec *iov, int count, size_t *done)
{
	uint32_t rc = stream_ready(fd, POLLOUT);
	struct iovec few;
	ssize_t n;

	if (rc)
		return rc;
	if (fd->flags & WASI_F_NONBLOCK) {
		while (count > 1 && iov->iov_len == 0) {
			iov++;
			count--;
		}
		few = count ? *iov : (struct iovec){ 0 };
		few.iov_len = few.iov_len > PIPE_BUF ? PIPE_BUF : few.iov_len;
		iov = &few;
		count = 1;
	}
	do
		n = writev(fd->host, iov, count);
	while (n < 0 && stream_again(w));
	*done = n < 0 ? 0 : (size_t)n;
	return n < 0 ? fds_errno(-errno) : WASI_OK;
}

/* ---- Files ------------------------------------------------------------------------------------------ */

static uint32_t file_read(wasi_fd *fd, uint64_t offset, const struct iovec *iov, uint32_t count,
			  size_t *done)
{
	int rc = 0;

	for (uint32_t i = 0; i < count; i++) {
		size_t n = 0;

		rc = fd->fs->ops->read(fd->fs, fd->file, offset + *done, iov[i].iov_base,
				       iov[i].iov_len, &n);
		if (rc)
			break;
		*done += n;
		if (n < iov[i].iov_len)
			break;
	}
	return *done ? WASI_OK : fds_errno(rc);
}

/* *end: where the stream then stands. */
static uint32_t file_write(wasi_fd *fd, uint64_t offset, const struct iovec *iov, uint32_t count,
			   size_t *done, uint64_t *end)
{
	int rc = 0;

	*end = offset;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = offset == VFS_APPEND ? offset : offset + *done;
		size_t n = 0;

		rc = fd->fs->ops->write(fd->fs, fd->file, at, iov[i].iov_base, iov[i].iov_len, &n,
					end);
		if (rc)
			break;
		*done += n;
		if (n < iov[i].iov_len)
			break;
	}
	return *done ? WASI_OK : fds_errno(rc);
}

static uint32_t need_bytes(wasi *w, const uint64_t *a, uint64_t rights, wasi_fd **fd,
			   struct iovec *iov)
{
	uint32_t rc;

	*fd = fds_get(w, a[0]);
	if (!*fd)
		return WASI_EBADF;
	if ((*fd)->type == WASI_T_DIR)
		return rights & WASI_R_WRITE ? WASI_EBADF : WASI_EISDIR;
	rc = ((*fd)->rights & rights) == rights ? WASI_OK : WASI_EBADF;
	return rc ? rc : stream_iovs(w, a[1], a[2], iov);
}

CALL(fd_read)
{
	struct iovec iov[WASI_IOVS_MAX];
	size_t done = 0;
	wasi_fd *fd;
	uint32_t rc = need_bytes(w, a, WASI_R_READ, &fd, iov);

	if (rc)
		return rc;
	if (!call_bytes(w, a[3], 4))
		return WASI_EFAULT;
	if (fd->file) {
		rc = file_read(fd, fd->offset, iov, call_arg32(a, 2), &done);
		fd->offset += done;
	} else {
		rc = stream_read(w, fd, iov, (int)call_arg32(a, 2), &done);
	}
	return rc ? rc : call_set32(w, a[3], (uint32_t)done);
}

CALL(fd_write)
{
	struct iovec iov[WASI_IOVS_MAX];
	size_t done = 0;
	uint64_t end;
	wasi_fd *fd;
	uint32_t rc = need_bytes(w, a, WASI_R_WRITE, &fd, iov);

	if (rc)
		return rc;
	if (!call_bytes(w, a[3], 4))
		return WASI_EFAULT;
	if (fd->file) {
		rc = file_write(fd, fd->flags & WASI_F_APPEND ? VFS_APPEND : fd->offset, iov,
				call_arg32(a, 2), &done, &end);
		if (done)
			fd->offset = end;
	} else {
		rc = stream_write(w, fd, iov, (int)call_arg32(a, 2), &done);
	}
	return rc ? rc : call_set32(w, a[3], (uint32_t)done);
}

/* The same of a place: a[3] is the offset, a[4] where the count goes. */
static uint32_t need_bytes_at(wasi *w, const uint64_t *a, uint64_t rights, wasi_fd **fd,
			      struct iovec *iov)
{
	uint32_t rc = need_bytes(w, a, rights, fd, iov);

	if (!rc && !(*fd)->file)
		rc = WASI_ESPIPE;
	if (!rc && !((*fd)->rights & WASI_R_SEEK))
		rc = WASI_ENOTCAPABLE;
	if (!rc && !call_bytes(w, a[4], 4))
		rc = WASI_EFAULT;
	if (!rc && a[3] > INT64_MAX)
		rc = WASI_EINVAL;
	return rc;
}

CALL(fd_pread)
{
	struct iovec iov[WASI_IOVS_MAX];
	size_t done = 0;
	wasi_fd *fd;
	uint32_t rc = need_bytes_at(w, a, WASI_R_READ, &fd, iov);

	if (!rc)
		rc = file_read(fd, a[3], iov, call_arg32(a, 2), &done);
	return rc ? rc : call_set32(w, a[4], (uint32_t)done);
}

CALL(fd_pwrite)
{
	struct iovec iov[WASI_IOVS_MAX];
	size_t done = 0;
	uint64_t end;
	wasi_fd *fd;
	uint32_t rc = need_bytes_at(w, a, WASI_R_WRITE, &fd, iov);

	/* as pwrite(2) does on Linux: a stream that appends, appends */
	if (!rc)
		rc = file_write(fd, fd->flags & WASI_F_APPEND ? VFS_APPEND : a[3], iov,
				call_arg32(a, 2), &done, &end);
	return rc ? rc : call_set32(w, a[4], (uint32_t)done);
}
