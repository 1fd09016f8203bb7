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

/* A directory with these rights, and the path behind it. */
static uint32_t need(const wasi *w, uint64_t number, uint64_t rights, uint64_t at, uint64_t len,
		     wasi_fd **fd, char path[VFS_PATH_MAX])
{
	uint32_t rc = fds_need_dir(w, number, rights, fd);

	return rc ? rc : take(w, at, len, path);
}

CALL(path_create_directory)
{
	char path[VFS_PATH_MAX];
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_CREATE_DIR, a[1], a[2], &fd, path);

	return rc ? rc : fds_errno(fd->fs->ops->mkdir(fd->fs, fd->file, path));
}

CALL(path_remove_directory)
{
	char path[VFS_PATH_MAX];
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_REMOVE_DIR, a[1], a[2], &fd, path);

	return rc ? rc : fds_errno(fd->fs->ops->rmdir(fd->fs, fd->file, path));
}

CALL(path_unlink_file)
{
	char path[VFS_PATH_MAX];
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_UNLINK, a[1], a[2], &fd, path);

	return rc ? rc : fds_errno(fd->fs->ops->unlink(fd->fs, fd->file, path));
}

static uint32_t get(wasi *w, const uint64_t *a, bool old)
{
	char path[VFS_PATH_MAX];
	vfs_stat st;
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_PATH_STAT, a[2], a[3], &fd, path);

	if (!rc)
		rc = fds_errno(fd->fs->ops->stat_at(fd->fs, fd->file, path, a[1] & FOLLOW, &st));
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
	char path[VFS_PATH_MAX];
	int64_t times[2];
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_PATH_SET_TIMES, a[2], a[3], &fd, path);

	if (!rc)
		rc = stat_times(a[4], a[5], call_arg32(a, 6), times);
	return rc ? rc : fds_errno(fd->fs->ops->set_times_at(fd->fs, fd->file, path, a[1] & FOLLOW,
							     times[0], times[1]));
}

/* Both ends in one file system. */
static uint32_t need_two(const wasi_fd *from, const wasi_fd *to)
{
	return from->fs == to->fs ? WASI_OK : WASI_EXDEV;
}

CALL(path_link)
{
	char path[VFS_PATH_MAX], to_path[VFS_PATH_MAX];
	wasi_fd *fd, *to;
	uint32_t rc = need(w, a[0], WASI_R_LINK_SOURCE, a[2], a[3], &fd, path);

	if (!rc)
		rc = need(w, a[4], WASI_R_LINK_TARGET, a[5], a[6], &to, to_path);
	if (!rc)
		rc = need_two(fd, to);
	return rc ? rc : fds_errno(fd->fs->ops->link(fd->fs, fd->file, path, a[1] & FOLLOW, to->file,
						     to_path));
}

CALL(path_rename)
{
	char path[VFS_PATH_MAX], to_path[VFS_PATH_MAX];
	wasi_fd *fd, *to;
	uint32_t rc = need(w, a[0], WASI_R_RENAME_SOURCE, a[1], a[2], &fd, path);

	if (!rc)
		rc = need(w, a[3], WASI_R_RENAME_TARGET, a[4], a[5], &to, to_path);
	if (!rc)
		rc = need_two(fd, to);
	return rc ? rc : fds_errno(fd->fs->ops->rename(fd->fs, fd->file, path, to->file, to_path));
}

CALL(path_symlink)
{
	char text[VFS_PATH_MAX], path[VFS_PATH_MAX];
	wasi_fd *fd;
	uint32_t rc = take(w, a[0], a[1], text);

	if (!rc)
		rc = need(w, a[2], WASI_R_SYMLINK, a[3], a[4], &fd, path);
	return rc ? rc : fds_errno(fd->fs->ops->symlink(fd->fs, text, fd->file, path));
}

CALL(path_readlink)
{
	char path[VFS_PATH_MAX];
	size_t len = 0;
	uint8_t *out;
	wasi_fd *fd;
	uint32_t rc = need(w, a[0], WASI_R_READLINK, a[1], a[2], &fd, path);

	out = call_bytes(w, a[3], call_arg32(a, 4));
	if (!rc && !out)
		rc = WASI_EFAULT;
	if (!rc)
		rc = fds_errno(fd->fs->ops->readlink(fd->fs, fd->file, path, out, call_arg32(a, 4),
						     &len));
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
static uint32_t open_settle(wasi *w, const wasi_fd *dir, const uint64_t *a, vfs_file *file,
			    int number)
{
	vfs_stat st;
	uint32_t rc = fds_errno(dir->fs->ops->stat(dir->fs, file, &st));
	uint64_t kind = st.type == VFS_DIR ? WASI_DIR_RIGHTS : WASI_FILE_RIGHTS;
	wasi_fd *fd = &w->fd[number];

	if (rc)
		return rc;
	*fd = (wasi_fd){ .fs = dir->fs, .file = file, .host = -1,
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
	char path[VFS_PATH_MAX];
	vfs_file *file;
	wasi_fd *dir;
	int number;
	uint32_t rc = need(w, a[0], WASI_R_OPEN, a[2], a[3], &dir, path);

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
	rc = fds_errno(dir->fs->ops->open(dir->fs, dir->file, path,
					  open_flags(dir, a, a[5] & dir->inherits), &file));
	if (rc)
		return rc;
	rc = open_settle(w, dir, a, file, number);
	if (rc) {
		dir->fs->ops->close(dir->fs, file);
		return rc;
	}
	return call_set32(w, a[8], (uint32_t)number);
}
