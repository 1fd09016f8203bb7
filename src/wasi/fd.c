/* SPDX-License-Identifier: MIT */
/* fd.c - what is done with a descriptor besides reading, writing and looking. */
#include "call.h"

#include <limits.h>

CALL(fd_advise)
{
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], 0, &fd);

	if (!rc && (fd->type != WASI_T_FILE || !fd->file))
		rc = fd->file ? WASI_EBADF : WASI_ESPIPE;
	if (!rc && (call_arg32(a, 3) > 5 || a[1] > INT64_MAX || a[2] > INT64_MAX))
		rc = WASI_EINVAL;
	return rc; /* in memory there is nothing to be advised about */
}

CALL(fd_close)
{
	wasi_fd *fd = fds_get(w, a[0]);

	if (!fd)
		return WASI_EBADF;
	fds_close(fd);
	return WASI_OK;
}

CALL(fd_sync)
{
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], 0, &fd);

	if (!rc && !fd->file)
		rc = WASI_EINVAL; /* as fsync(2) on a pipe */
	return rc ? rc : fds_errno(fd->fs->ops->sync(fd->fs, fd->file));
}

CALL(fd_datasync)
{
	return call_fd_sync(w, a);
}

CALL(fd_fdstat_get)
{
	wasi_fd *fd = fds_get(w, a[0]);
	uint8_t *p = call_bytes(w, a[1], 24);

	if (!fd)
		return WASI_EBADF;
	if (!p)
		return WASI_EFAULT;
	memset(p, 0, 24);
	p[0] = fd->type;
	call_store16(p + 2, fd->flags);
	call_store64(p + 8, fd->rights);
	call_store64(p + 16, fd->inherits);
	return WASI_OK;
}

CALL(fd_fdstat_set_flags)
{
	uint32_t flags = call_arg32(a, 1), may = WASI_F_APPEND | WASI_F_NONBLOCK;
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], WASI_R_SET_FLAGS, &fd);

	if (rc)
		return rc;
	if (flags > 31)
		return WASI_EINVAL;
	if ((flags ^ fd->flags) & ~may)
		return WASI_ENOTSUP; /* synchronous or not is decided at the opening */
	fd->flags = (uint16_t)flags;
	return WASI_OK;
}

CALL(fd_fdstat_set_rights)
{
	wasi_fd *fd = fds_get(w, a[0]);

	if (!fd)
		return WASI_EBADF;
	if ((a[1] & ~fd->rights) || (a[2] & ~fd->inherits))
		return WASI_ENOTCAPABLE; /* rights are given away, never gained */
	fd->rights = a[1];
	fd->inherits = a[2];
	return WASI_OK;
}

CALL(fd_prestat_get)
{
	wasi_fd *fd = fds_get(w, a[0]);
	uint8_t *p = call_bytes(w, a[1], 8);

	if (!fd || !fd->preopen)
		return WASI_EBADF;
	if (!p)
		return WASI_EFAULT;
	memset(p, 0, 8);
	call_store32(p + 4, (uint32_t)strlen(fd->name));
	return WASI_OK;
}

CALL(fd_prestat_dir_name)
{
	wasi_fd *fd = fds_get(w, a[0]);
	size_t len = fd && fd->preopen ? strlen(fd->name) : 0;
	uint8_t *p = call_bytes(w, a[1], len);

	if (!fd || !fd->preopen)
		return WASI_EBADF;
	if (call_arg32(a, 2) < len)
		return WASI_ENAMETOOLONG;
	if (!p)
		return WASI_EFAULT;
	memcpy(p, fd->name, len);
	return WASI_OK;
}

CALL(fd_renumber)
{
	wasi_fd *from = fds_get(w, a[0]), *to = fds_get(w, a[1]);

	if (!from || !to)
		return WASI_EBADF;
	if (from == to)
		return WASI_OK;
	fds_close(to);
	*to = *from;
	*from = (wasi_fd){ .host = -1 };
	return WASI_OK;
}

/* ---- Offsets ------------------------------------------------------------------------------------ */

enum { SEEK_FROM_START, SEEK_FROM_HERE, SEEK_FROM_END };

static uint32_t seek(wasi *w, const uint64_t *a, int whence)
{
	int64_t delta = (int64_t)a[1], base = 0;
	vfs_stat st;
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], 0, &fd);

	if (!rc && fd->type != WASI_T_FILE)
		rc = fd->file ? WASI_EBADF : WASI_ESPIPE;
	if (!rc && !fd->file)
		rc = WASI_ESPIPE;
	/* to be told where one is needs less than to go somewhere */
	if (!rc && !(fd->rights & WASI_R_SEEK) &&
	    !(whence == SEEK_FROM_HERE && delta == 0 && (fd->rights & WASI_R_TELL)))
		rc = WASI_ENOTCAPABLE;
	if (rc)
		return rc;
	if (whence == SEEK_FROM_HERE)
		base = (int64_t)fd->offset;
	if (whence == SEEK_FROM_END) {
		rc = fds_errno(fd->fs->ops->stat(fd->fs, fd->file, &st));
		base = (int64_t)st.size;
	}
	if (!rc && (whence < 0 || __builtin_add_overflow(base, delta, &base) || base < 0))
		rc = WASI_EINVAL;
	if (!rc)
		rc = call_set64(w, a[3], (uint64_t)base);
	if (!rc)
		fd->offset = (uint64_t)base;
	return rc;
}

CALL(fd_seek)
{
	uint32_t whence = call_arg32(a, 2);

	return seek(w, a, whence <= 2 ? (int)whence : -1);
}

CALL(fd_seek_old)
{
	static const int of[] = { SEEK_FROM_HERE, SEEK_FROM_END, SEEK_FROM_START };
	uint32_t whence = call_arg32(a, 2);

	return seek(w, a, whence <= 2 ? of[whence] : -1);
}

CALL(fd_tell)
{
	wasi_fd *fd;
	uint32_t rc = fds_need(w, a[0], 0, &fd);

	if (!rc && fd->type != WASI_T_FILE)
		rc = fd->file ? WASI_EBADF : WASI_ESPIPE;
	if (!rc && !fd->file)
		rc = WASI_ESPIPE;
	if (!rc && !(fd->rights & WASI_R_TELL))
		rc = WASI_ENOTCAPABLE;
	return rc ? rc : call_set64(w, a[1], fd->offset);
}

/* ---- Listing ------------------------------------------------------------------------------------ */

typedef struct listing {
	uint8_t *out;
	size_t room, used;
} listing;

static bool listing_put(listing *l, const void *data, size_t len)
{
	size_t n = len < l->room - l->used ? len : l->room - l->used;

	memcpy(l->out + l->used, data, n);
	l->used += n;
	return n == len;
}

/* A record that does not fit is cut: a full buffer says that there is more. */
static bool listing_add(void *user, const char *name, size_t len, uint64_t ino, int type,
			uint64_t next)
{
	uint8_t head[24] = { 0 };

	call_store64(head, next);
	call_store64(head + 8, ino);
	call_store32(head + 16, (uint32_t)len);
	head[20] = type == VFS_FILE ? WASI_T_FILE : type == VFS_DIR ? WASI_T_DIR :
		   type == VFS_LINK ? WASI_T_LINK : WASI_T_UNKNOWN;
	return listing_put(user, head, sizeof head) && listing_put(user, name, len);
}

CALL(fd_readdir)
{
	listing l = { .room = call_arg32(a, 2) };
	wasi_fd *fd;
	uint32_t rc = fds_need_dir(w, a[0], WASI_R_READDIR, &fd);

	l.out = call_bytes(w, a[1], l.room);
	if (!rc && (!l.out || !call_bytes(w, a[4], 4)))
		rc = WASI_EFAULT;
	if (!rc)
		rc = fds_errno(fd->fs->ops->list(fd->fs, fd->file, a[3], listing_add, &l));
	return rc ? rc : call_set32(w, a[4], (uint32_t)l.used);
}
