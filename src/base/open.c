/* SPDX-License-Identifier: MIT */
/*
 * open.c - paths that others may have had their hands in: opened without a link, or without leaving.
 *
 * openat2() does both at once.  Where it is refused (before Linux 5.6, in containers whose filter does not
 * know it) the same is done by steps: slower, never weaker.
 */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

static bool is_refused(int os_errno)
{
	return os_errno == ENOSYS || os_errno == EPERM;
}

static int call(int dir, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)flags | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* One name: a link is ELOOP, unless the caller wants the link itself. */
static int open_name(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOTDIR && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		errno = ELOOP;
	if (fd < 0 || flags & O_NOFOLLOW || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
		return fd;
	close(fd);
	errno = ELOOP;
	return -1;
}

static int walk(int dir, const char *path, int flags)
{
	int at = *path == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)
			      : openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (path += strspn(path, "/"); at >= 0; path += strspn(path, "/")) {
		size_t len = strcspn(path, "/");
		bool last = path[len + strspn(path + len, "/")] == '\0';
		char name[NAME_MAX + 1];
		int next;

		if (len > NAME_MAX) {
			fd_close(&at);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, len ? path : ".", len ? len : 1);
		name[len ? len : 1] = '\0';
		next = open_name(at, name, last ? flags : O_PATH | O_DIRECTORY);
		fd_close(&at);
		if (last)
			return next;
		at = next;
		path += len;
	}
	return -1;
}

int open_regular(int dir, const char *path)
{
	struct stat st;
	int fd, why = EINVAL;

	/* looked at before: opening a device does things */
	if (fstatat(dir, path, &st, 0) < 0)
		return -1;
	fd = S_ISREG(st.st_mode) ? openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	if (fd < 0 && S_ISREG(st.st_mode))
		why = errno;
	fd_close(&fd);
	errno = why;
	return -1;
}

int open_plain(int dir, const char *path, int flags)
{
	int fd = call(dir, path, flags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd >= 0 || !is_refused(errno))
		return fd;
	if (*path == '\0') {
		errno = ENOENT;
		return -1;
	}
	return walk(dir, path, flags);
}

/* Where a descriptor leads; false without /proc. */
static bool tell(int fd, char real[PATH_MAX])
{
	char link[40];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, real, PATH_MAX - 1);
	real[n > 0 ? n : 0] = '\0';
	return n > 0 && real[0] == '/';
}

/* What can be opened of a path is not below `above`. */
static bool leads_out(int dir, const char *above, const char *path)
{
	char part[PATH_MAX], real[PATH_MAX];
	size_t len = strlen(path);
	bool out = *path == '/' || len >= sizeof part;

	if (out)
		return true;
	memcpy(part, path, len + 1);
	for (char *end = part + len; end; end = strrchr(part, '/')) {
		int look;

		*end = '\0';
		look = openat(dir, part, O_PATH | O_CLOEXEC);
		if (look < 0)
			continue;
		out = !tell(look, real) || !path_is_within(real, above);
		fd_close(&look);
		return out;
	}
	return false;
}

static int look_beneath(int dir, const char *path, int flags)
{
	char above[PATH_MAX], real[PATH_MAX], again[40];
	/* looked at before it is opened for more than its place: opening a device does things */
	int look = openat(dir, path, O_PATH | O_CLOEXEC | (flags & (O_NOFOLLOW | O_DIRECTORY))), fd = -1;
	int why = errno;

	if (!tell(dir, above))
		why = ENOSYS;
	else if (look < 0 ? leads_out(dir, above, path)
			  : *path == '/' || !tell(look, real) || !path_is_within(real, above))
		why = EXDEV;
	else if (look >= 0 && flags & O_PATH)
		return look;
	else if (look >= 0) {
		snprintf(again, sizeof again, "/proc/self/fd/%d", look);
		fd = open(again, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
		why = errno;
	}
	fd_close(&look);
	errno = why;
	return fd;
}

int open_beneath(int dir, const char *path, int flags)
{
	int fd = call(dir, path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	return fd >= 0 || !is_refused(errno) ? fd : look_beneath(dir, path, flags);
}
