/* SPDX-License-Identifier: MIT */
/* host_names.c - what is done by path beneath a directory of the host's. */
#include "host_fs.h"

#include "../base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SWAPPED_MAX 16 /* times that a name may turn into a link between two looks at it */

static int result(long rc)
{
	return rc < 0 ? -errno : 0;
}

/* A place where something is to be changed. */
static int walk_to_change(const vfs *face, const vfs_file *dir, const char *path, int how, host_place *p)
{
	int rc = host_walk(host_fd_of(dir), path, how, p);

	return rc ? rc : host_is_readonly(face) ? -EROFS : 0;
}

/* ---- Opening ---------------------------------------------------------------------------------- */

static int open_flags(uint32_t flags)
{
	int how = O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

	if (flags & VFS_WRITE)
		how |= flags & VFS_READ ? O_RDWR : O_WRONLY;
	else if (!(flags & (VFS_READ | VFS_CREATE | VFS_TRUNC)))
		return O_PATH | O_NOFOLLOW | O_CLOEXEC | (flags & VFS_DIRECTORY ? O_DIRECTORY : 0);
	how |= flags & VFS_CREATE ? O_CREAT : 0;
	how |= flags & VFS_EXCL ? O_EXCL : 0;
	how |= flags & VFS_TRUNC ? O_TRUNC : 0;
	return how | (flags & VFS_DIRECTORY ? O_DIRECTORY : 0);
}

/* What the kernel would do by halves, or not everywhere in the same way. */
static int open_may(const host_place *p, uint32_t flags)
{
	unsigned int mode;
	int rc;

	if (!(flags & VFS_CREATE))
		return 0;
	if (p->last != HOST_LAST_NAME)
		return flags & VFS_EXCL ? -EEXIST : -EISDIR;
	if (p->slash)
		return -EISDIR;
	if (!(flags & VFS_DIRECTORY))
		return 0;
	rc = host_kind(p, &mode);
	if (rc || !mode)
		return rc ? rc : -EINVAL;
	return flags & VFS_EXCL ? -EEXIST : S_ISDIR(mode) ? -EISDIR : -ENOTDIR;
}

/* A file or a directory, and nothing else that has a name: they may block, and are no files to a guest. */
static int open_look(int fd, uint32_t flags)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return flags & VFS_DIRECTORY ? -ENOTDIR : -ELOOP;
	return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? 0 : -EOPNOTSUPP;
}

static int open_there(const host_place *p, uint32_t flags, vfs_file **file)
{
	int fd, rc = open_may(p, flags);

	if (rc)
		return rc;
	fd = openat(p->dir, p->name, open_flags(flags), 0644);
	if (fd < 0)
		return -errno;
	rc = open_look(fd, flags);
	if (rc) {
		close(fd);
		return rc;
	}
	*file = host_file_new(fd);
	return *file ? 0 : -ENOMEM;
}

int host_open(vfs *face, vfs_file *dir, const char *path, uint32_t flags, vfs_file **file)
{
	bool create = flags & VFS_CREATE, follow = (flags & VFS_FOLLOW) && !(create && (flags & VFS_EXCL));
	int how = vfs_walk_of(flags), rc, swapped = 0;
	host_place p;

	if (host_is_readonly(face) && (flags & (VFS_WRITE | VFS_TRUNC)))
		return -EROFS;
	do {
		rc = host_walk(host_fd_of(dir), path, how, &p);
		if (!rc && create && host_is_readonly(face)) {
			unsigned int mode;

			rc = host_kind(&p, &mode);
			if (!rc && !mode)
				rc = -EROFS;
		}
		if (!rc)
			rc = open_there(&p, flags, file);
		host_leave(&p);
	} while (rc == -ELOOP && follow && p.links <= VFS_LINKS_MAX && ++swapped < SWAPPED_MAX);
	return rc;
}

/* ---- Looking ---------------------------------------------------------------------------------- */

int host_stat_at(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_stat *out)
{
	struct stat st;
	host_place p;
	int rc = host_walk(host_fd_of(dir), path, follow ? VFS_WALK_FOLLOW : VFS_WALK_STAY, &p);

	(void)face;
	if (!rc)
		rc = result(fstatat(p.dir, p.name, &st, AT_SYMLINK_NOFOLLOW));
	if (!rc)
		host_stat_of(&st, out);
	host_leave(&p);
	return rc;
}

int host_set_times_at(vfs *face, vfs_file *dir, const char *path, bool follow, int64_t atime_ns,
		      int64_t mtime_ns)
{
	struct timespec times[2];
	host_place p;
	int rc = walk_to_change(face, dir, path, follow ? VFS_WALK_FOLLOW : VFS_WALK_STAY, &p);

	host_times(atime_ns, mtime_ns, times);
	if (!rc)
		rc = result(utimensat(p.dir, p.name, times, AT_SYMLINK_NOFOLLOW));
	host_leave(&p);
	return rc;
}

int host_readlink(vfs *face, vfs_file *dir, const char *path, void *out, size_t cap, size_t *len)
{
	char text[VFS_PATH_MAX];
	host_place p;
	int rc = host_walk(host_fd_of(dir), path, VFS_WALK_STAY, &p);
	ssize_t n = rc ? -1 : readlinkat(p.dir, p.name, text, sizeof text);

	(void)face;
	if (!rc && n < 0)
		rc = -errno;
	host_leave(&p);
	if (rc)
		return rc;
	*len = (size_t)n < cap ? (size_t)n : cap;
	memcpy(out, text, *len);
	return 0;
}

/* ---- Making and removing ---------------------------------------------------------------------- */

/* A new name that is no directory: a slash behind it says that it should be one. */
static int may_make(const host_place *p)
{
	unsigned int mode;
	int rc;

	if (p->last != HOST_LAST_NAME)
		return -EEXIST;
	if (!p->slash)
		return 0;
	rc = host_kind(p, &mode);
	return rc ? rc : mode ? -EEXIST : -ENOENT;
}

int host_mkdir(vfs *face, vfs_file *dir, const char *path)
{
	host_place p;
	int rc = walk_to_change(face, dir, path, VFS_WALK_NAME, &p);

	if (!rc)
		rc = p.last == HOST_LAST_NAME ? result(mkdirat(p.dir, p.name, 0755)) : -EEXIST;
	host_leave(&p);
	return rc;
}

int host_symlink(vfs *face, const char *text, vfs_file *dir, const char *path)
{
	size_t len = strnlen(text, VFS_PATH_MAX);
	host_place p;
	int rc;

	if (len == 0 || len == VFS_PATH_MAX)
		return len ? -ENAMETOOLONG : -ENOENT;
	if (text[0] == '/')
		return -EPERM;
	rc = walk_to_change(face, dir, path, VFS_WALK_NAME, &p);
	if (!rc)
		rc = may_make(&p);
	if (!rc)
		rc = result(symlinkat(text, p.dir, p.name));
	host_leave(&p);
	return rc;
}

int host_rmdir(vfs *face, vfs_file *dir, const char *path)
{
	host_place p;
	int rc = walk_to_change(face, dir, path, VFS_WALK_NAME, &p);

	if (!rc && p.last != HOST_LAST_NAME)
		rc = p.last == HOST_LAST_DOT ? -EINVAL : -ENOTEMPTY;
	if (!rc)
		rc = result(unlinkat(p.dir, p.name, AT_REMOVEDIR));
	host_leave(&p);
	return rc;
}

int host_unlink(vfs *face, vfs_file *dir, const char *path)
{
	unsigned int mode = 0;
	host_place p;
	int rc = walk_to_change(face, dir, path, VFS_WALK_NAME, &p);

	if (!rc && p.last != HOST_LAST_NAME)
		rc = -EISDIR;
	if (!rc && p.slash) {
		rc = host_kind(&p, &mode);
		if (!rc)
			rc = !mode ? -ENOENT : S_ISDIR(mode) ? -EISDIR : -ENOTDIR;
	}
	if (!rc)
		rc = result(unlinkat(p.dir, p.name, 0));
	host_leave(&p);
	return rc;
}

/* ---- Two places --------------------------------------------------------------------------------- */

static int rename_there(const host_place *from, const host_place *to)
{
	unsigned int mode = 0;
	int rc = 0;

	if (from->last != HOST_LAST_NAME || to->last != HOST_LAST_NAME)
		return -EBUSY;
	if (from->slash || to->slash)
		rc = host_kind(from, &mode);
	if (!rc && (from->slash || to->slash))
		rc = !mode ? -ENOENT : S_ISDIR(mode) ? 0 : -ENOTDIR;
	return rc ? rc : result(syscall(SYS_renameat2, from->dir, from->name, to->dir, to->name, 0));
}

int host_rename(vfs *face, vfs_file *dir, const char *path, vfs_file *to_dir, const char *to_path)
{
	host_place from, to;
	int rc = walk_to_change(face, dir, path, VFS_WALK_NAME, &from);

	if (!rc) {
		rc = walk_to_change(face, to_dir, to_path, VFS_WALK_NAME, &to);
		if (!rc)
			rc = rename_there(&from, &to);
		host_leave(&to);
	}
	host_leave(&from);
	return rc;
}

int host_link(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_file *to_dir, const char *to_path)
{
	host_place from, to;
	unsigned int mode = 0;
	int rc = walk_to_change(face, dir, path, follow ? VFS_WALK_FOLLOW : VFS_WALK_STAY, &from);

	if (!rc)
		rc = host_kind(&from, &mode);
	if (!rc && !mode)
		rc = -ENOENT;
	if (!rc) {
		rc = walk_to_change(face, to_dir, to_path, VFS_WALK_NAME, &to);
		if (!rc)
			rc = may_make(&to);
		if (!rc)
			rc = result(linkat(from.dir, from.name, to.dir, to.name, 0));
		host_leave(&to);
	}
	host_leave(&from);
	return rc;
}
