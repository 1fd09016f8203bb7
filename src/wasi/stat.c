/* SPDX-License-Identifier: MIT */
/* stat.c - what files are: kinds, sizes, times. */
#include "call.h"

#include "../base/base.h"

static uint8_t stat_type(int type)
{
	return type == VFS_FILE ? WASI_T_FILE :
	       type == VFS_DIR ? WASI_T_DIR :
	       type == VFS_LINK ? WASI_T_LINK : WASI_T_UNKNOWN;
}

uint32_t stat_store(const wasi *w, uint64_t at, const vfs_stat *st, bool old)
{
	uint8_t *p = call_bytes(w, at, old ? 56 : 64);
	uint8_t *rest = p + (old ? 24 : 32);

	if (!p)
		return WASI_EFAULT;
	memset(p, 0, old ? 56 : 64);
	call_store64(p, st->dev);
	call_store64(p + 8, st->ino);
	p[16] = stat_type(st->type);
	if (old)
		call_store32(p + 20, (uint32_t)st->links);
	else
		call_store64(p + 24, st->links);
	call_store64(rest, st->size);
	call_store64(rest + 8, (uint64_t)st->atime_ns);
	call_store64(rest + 16, (uint64_t)st->mtime_ns);
	call_store64(rest + 24, (uint64_t)st->ctime_ns);
	return WASI_OK;
}

static uint32_t get(wasi *w, const uint64_t *a, bool old)
{
	vfs_stat st = { 0 };
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], WASI_R_STAT, &fd);

	if (rc)
		return rc;
	if (fd->file) {
		rc = fds_errno(fd->fs->ops->stat(fd->fs, fd->file, &st));
		return rc ? rc : stat_store(w, a[1], &st, old);
	}
	rc = stat_store(w, a[1], &st, old);
	if (!rc)
		call_bytes(w, a[1], 17)[16] = fd->type;
	return rc;
}

CALL(fd_filestat_get)
{
	return get(w, a, false);
}

CALL(fd_filestat_get_old)
{
	return get(w, a, true);
}

uint32_t stat_times(uint64_t atim, uint64_t mtim, uint32_t flags, int64_t out[2])
{
	const uint64_t given[2] = { atim, mtim };
	int64_t now = clock_unix_ns();

	if (flags > 15)
		return WASI_EINVAL;
	for (int i = 0; i < 2; i++, flags >>= 2) {
		if ((flags & 3) == 3 || ((flags & 1) && given[i] > INT64_MAX))
			return WASI_EINVAL;
		out[i] = flags & 2 ? now : flags & 1 ? (int64_t)given[i] : VFS_TIME_OMIT;
	}
	return WASI_OK;
}

CALL(fd_filestat_set_times)
{
	int64_t times[2];
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], WASI_R_SET_TIMES, &fd);

	if (!rc && !fd->file)
		rc = WASI_EBADF;
	if (!rc)
		rc = stat_times(a[1], a[2], call_arg32(a, 3), times);
	return rc ? rc : fds_errno(fd->fs->ops->set_times(fd->fs, fd->file, times[0], times[1]));
}

CALL(fd_filestat_set_size)
{
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], 0, &fd);

	if (!rc && (fd->type != WASI_T_FILE || !fd->file))
		rc = WASI_EBADF;
	if (!rc && !(fd->rights & WASI_R_SET_SIZE))
		rc = WASI_EBADF; /* as ftruncate(2) on what is not open for writing */
	if (!rc && a[1] > INT64_MAX)
		rc = WASI_EINVAL;
	return rc ? rc : fds_errno(fd->fs->ops->set_size(fd->fs, fd->file, a[1]));
}

CALL(fd_allocate)
{
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], 0, &fd);

	if (!rc && (fd->type != WASI_T_FILE || !fd->file || !(fd->rights & WASI_R_ALLOCATE)))
		rc = WASI_EBADF;
	if (!rc && (a[1] > INT64_MAX || a[2] > INT64_MAX))
		rc = WASI_EINVAL;
	return rc ? rc : fds_errno(fd->fs->ops->allocate(fd->fs, fd->file, a[1], a[2]));
}
