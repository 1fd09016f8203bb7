/* SPDX-License-Identifier: MIT */
/* path.c - what is done by path, from a directory that the guest has open. */
#include "call.h"

#include "../base/base.h"

enum { FOLLOW = 1 };
enum { O_MAKE = 1, O_DIRECTORY_ONLY = 2, O_EXCLUSIVE = 4, O_CUT = 8 };

/* The guest's text as a path of ours, NUL-ended. */
static uint32_t take(const wasi *w, uint64_t at, uint64_t len, char path[VFS_PATH_MAX])
{
	const uint8_t *text;

	len &= UINT32_MAX;
	text = call_bytes(w, at, len);
	if (!text)
		return WASI_EFAULT;
	if (len >= VFS_PATH_MAX)
		return WASI_ENAMETOOLONG;
	if (memchr(text, 0, len))
		return WASI_EINVAL;
	if (!utf8_valid((const char *)text, len))
		return WASI_EILSEQ;
	memcpy(path, text, len);
	path[len] = '\0';
	return len ? WASI_OK : WASI_ENOENT;
}

/* A path in the file system that it is meant for, which need not be that of the directory it was given with. */
typedef vfs_crossing place;

static uint32_t settle(const wasi_fd *fd, int how, place *at)
{
	char path[VFS_PATH_MAX];
	int rc;

	at->fs = fd->fs;
	at->dir = fd->file;
	if (!fd->fs->ops->cross)
		return WASI_OK;
	memcpy(path, at->path, strlen(at->path) + 1);
	rc = fd->fs->ops->cross(fd->fs, fd->file, path, how, at);
	if (rc == 0)
		memcpy(at->path, path, strlen(path) + 1);
	return rc < 0 ? fds_errno(rc) : WASI_OK;
}

/* A directory with these rights, and the path behind it.  how: VFS_WALK_* of what is to be done there. */
static uint32_t need(const wasi *w, uint64_t number, uint64_t rights, uint64_t text, uint64_t len, int how,
		     wasi_fd **fd, place *at)
{
	uint32_t rc = fds_need_dir(w, number, rights, fd);

	if (!rc)
		rc = take(w, text, len, at->path);
	return rc ? rc : settle(*fd, how, at);
}

static int walk_how(uint64_t flags)
{
	return flags & FOLLOW ? VFS_WALK_FOLLOW : VFS_WALK_STAY;
}

CALL(path_create_directory)
{
	wasi_fd *fd;
	place at;
	uint32_t rc = need(w, a[0], WASI_R_CREATE_DIR, a[1], a[2], VFS_WALK_NAME, &fd, &at);

	return rc ? rc : fds_errno(at.fs->ops->mkdir(at.fs, at.dir, at.path));
}

CALL(path_remove_directory)
{
	wasi_fd *fd;
	place at;
	uint32_t rc = need(w, a[0], WASI_R_REMOVE_DIR, a[1], a[2], VFS_WALK_NAME, &fd, &at);

	return rc ? rc : fds_errno(at.fs->ops->rmdir(at.fs, at.dir, at.path));
}

CALL(path_unlink_file)
{
	wasi_fd *fd;
	place at;
	uint32_t rc = need(w, a[0], WASI_R_UNLINK, a[1], a[2], VFS_WALK_NAME, &fd, &at);

	return rc ? rc : fds_errno(at.fs->ops->unlink(at.fs, at.dir, at.path));
}

static uint32_t get(wasi *w, const uint64_t *a, bool old)
{
	vfs_stat st;
	wasi_fd *fd;
	place at;
	uint32_t rc = need(w, a[0], WASI_R_PATH_STAT, a[2], a[3], walk_how(a[1]), &fd, &at);

	if (!rc)
		rc = fds_errno(at.fs->ops->stat_at(at.fs, at.dir, at.path, a[1] & FOLLOW, &st));
	return rc ? rc : stat_store(w, a[4], &st, old);
}

CALL(path_filestat_get)
{
	return get(w, a, false);
}

CALL(path_filestat_get_old)
{
	return get(w, a, true);
}

CALL(path_filestat_set_times)
{
	int64_t times[2];
	wasi_fd *fd;
	place at;
	uint32_t rc = need(w, a[0], WASI_R_PATH_SET_TIMES, a[2], a[3], walk_how(a[1]), &fd, &at);

	if (!rc)
		rc = stat_times(a[4], a[5], call_arg32(a, 6), times);
	return rc ? rc : fds_errno(at.fs->ops->set_times_at(at.fs, at.dir, at.path, a[1] & FOLLOW, times[0],
							    times[1]));
}

/* Both ends in one file system. */
static uint32_t need_two(const place *from, const place *to)
{
	return from->fs == to->fs ? WASI_OK : WASI_EXDEV;
}

CALL(path_link)
{
	place from, to;
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_LINK_SOURCE, a[2], a[3], walk_how(a[1]), &fd, &from);

	if (!rc)
		rc = need(w, a[4], WASI_R_LINK_TARGET, a[5], a[6], VFS_WALK_NAME, &fd, &to);
	if (!rc)
		rc = need_two(&from, &to);
	return rc ? rc : fds_errno(from.fs->ops->link(from.fs, from.dir, from.path, a[1] & FOLLOW, to.dir, to.path));
}

CALL(path_rename)
{
	place from, to;
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_RENAME_SOURCE, a[1], a[2], VFS_WALK_NAME, &fd, &from);

	if (!rc)
		rc = need(w, a[3], WASI_R_RENAME_TARGET, a[4], a[5], VFS_WALK_NAME, &fd, &to);
	if (!rc)
		rc = need_two(&from, &to);
	return rc ? rc : fds_errno(from.fs->ops->rename(from.fs, from.dir, from.path, to.dir, to.path));
}

CALL(path_symlink)
{
	char text[VFS_PATH_MAX];
	wasi_fd *fd;
	place at;
	uint32_t rc = take(w, a[0], a[1], text);

	if (!rc)
		rc = need(w, a[2], WASI_R_SYMLINK, a[3], a[4], VFS_WALK_NAME, &fd, &at);
	return rc ? rc : fds_errno(at.fs->ops->symlink(at.fs, text, at.dir, at.path));
}

CALL(path_readlink)
{
	size_t len = 0;
	uint8_t *out;
	wasi_fd *fd;
	place at;
	uint32_t rc = need(w, a[0], WASI_R_READLINK, a[1], a[2], VFS_WALK_STAY, &fd, &at);

	out = call_bytes(w, a[3], call_arg32(a, 4));
	if (!rc && !out)
		rc = WASI_EFAULT;
	if (!rc)
		rc = fds_errno(at.fs->ops->readlink(at.fs, at.dir, at.path, out, call_arg32(a, 4), &len));
	return rc ? rc : call_set32(w, a[5], (uint32_t)len);
}

/* ---- Opening ------------------------------------------------------------------------------------ */

#define READS ((uint64_t)(WASI_R_READ | WASI_R_READDIR))
#define WRITES ((uint64_t)(WASI_R_WRITE | WASI_R_ALLOCATE | WASI_R_SET_SIZE))

static uint32_t open_flags(const wasi_fd *dir, const uint64_t *a, uint64_t rights)
{
	uint32_t oflags = call_arg32(a, 4), flags = a[1] & FOLLOW ? VFS_FOLLOW : 0;

	(void)dir;
	flags |= rights & READS ? VFS_READ : 0;
	flags |= rights & WRITES ? VFS_WRITE : 0;
	flags |= oflags & O_MAKE ? VFS_CREATE : 0;
	flags |= oflags & O_DIRECTORY_ONLY ? VFS_DIRECTORY : 0;
	flags |= oflags & O_EXCLUSIVE ? VFS_EXCL : 0;
	flags |= oflags & O_CUT ? VFS_TRUNC : 0;
	return flags;
}

static uint32_t open_may(const wasi_fd *dir, const uint64_t *a)
{
	uint32_t oflags = call_arg32(a, 4);

	if (oflags > 15 || call_arg32(a, 7) > 31)
		return WASI_EINVAL;
	if ((oflags & O_MAKE) && !(dir->rights & WASI_R_CREATE_FILE))
		return dir->inherits & WASI_R_WRITE ? WASI_ENOTCAPABLE : WASI_EROFS;
	if ((oflags & O_CUT) && !(dir->rights & WASI_R_PATH_SET_SIZE))
		return dir->inherits & WASI_R_WRITE ? WASI_ENOTCAPABLE : WASI_EROFS;
	return WASI_OK;
}

/* What it is decides which of the wanted rights mean anything. */
static uint32_t open_settle(wasi *w, const wasi_fd *dir, const uint64_t *a, vfs *fs, vfs_file *file,
			    int number)
{
	vfs_stat st;
	uint32_t rc = fds_errno(fs->ops->stat(fs, file, &st));
	uint64_t kind = st.type == VFS_DIR ? WASI_DIR_RIGHTS : WASI_FILE_RIGHTS;
	wasi_fd *fd = &w->fd[number];

	if (rc)
		return rc;
	*fd = (wasi_fd){ .fs = fs, .file = file, .host = -1,
			 .rights = a[5] & dir->inherits & kind,
			 .inherits = a[6] & dir->inherits,
			 .flags = (uint16_t)call_arg32(a, 7),
			 .type = st.type == VFS_DIR ? WASI_T_DIR : WASI_T_FILE, .open = true };
	if (st.type != VFS_DIR)
		fd->inherits &= WASI_FILE_RIGHTS;
	return WASI_OK;
}

CALL(path_open)
{
	vfs_file *file;
	wasi_fd *dir;
	int number;
	uint32_t flags, rc = fds_need_dir(w, a[0], WASI_R_OPEN, &dir);
	place at;

	if (!rc)
		rc = take(w, a[2], a[3], at.path);
	if (!rc)
		rc = open_may(dir, a);
	if (!rc && !call_bytes(w, a[8], 4))
		rc = WASI_EFAULT;
	if (rc)
		return rc;
	number = fds_place(w);
	if (number < 0)
		return WASI_EMFILE;
	dir = fds_get(w, a[0]); /* the table may have moved */
	if ((a[5] & WRITES & ~dir->inherits) && (a[5] & WRITES))
		return WASI_EROFS;
	flags = open_flags(dir, a, a[5] & dir->inherits);
	rc = settle(dir, vfs_walk_of(flags), &at);
	if (!rc)
		rc = fds_errno(at.fs->ops->open(at.fs, at.dir, at.path, flags, &file));
	if (rc)
		return rc;
	rc = open_settle(w, dir, a, at.fs, file, number);
	if (rc) {
		at.fs->ops->close(at.fs, file);
		return rc;
	}
	return call_set32(w, a[8], (uint32_t)number);
}
