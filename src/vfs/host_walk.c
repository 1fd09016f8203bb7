/* SPDX-License-Identifier: MIT */
/*
 * host_walk.c - from a path to a place beneath a directory of the host's.
 *
 * The kernel never gets a path from us, but one name at a time, from a directory that is open: it follows
 * no link and climbs to no parent.  Links we read ourselves, their text takes the place of their name; ".."
 * goes back to the directory that we came from, and at the start leads out, which is refused.  So it does
 * not matter what anybody renames or swaps meanwhile: whatever we hold was reached from the start downwards.
 *
 * openat2() with RESOLVE_BENEATH would do the same in one call.  But the mode of a file that it makes lies in
 * memory, where no filter of system calls sees it: who has taken over the worker could make a
 * set-user-id file with it.
 */
#include "host_fs.h"

#include "../base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int host_kind(const host_place *p, unsigned int *mode)
{
	struct stat st;

	*mode = 0;
	if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*mode = st.st_mode;
	else if (errno != ENOENT)
		return -errno;
	return 0;
}

/* The text of the link `name` in front of what is left behind it. */
static int walk_expand(host_place *p, const char *link, size_t len, size_t behind)
{
	size_t rest = strlen(p->text + behind);

	if (++p->links > VFS_LINKS_MAX)
		return -ELOOP;
	if (len + rest + 1 > sizeof p->text)
		return -ENAMETOOLONG;
	if (len == 0 || link[0] == '/')
		return len ? -EPERM : -ENOENT;
	memmove(p->text + len, p->text + behind, rest + 1);
	memcpy(p->text, link, len);
	p->from = 0;
	return 0;
}

static int walk_up(host_place *p)
{
	if (p->depth == 0)
		return -EPERM;
	close(p->up[p->depth--]);
	return 0;
}

static int walk_down(host_place *p, int fd)
{
	if (p->depth == HOST_DEPTH_MAX) {
		close(fd);
		return -ENAMETOOLONG;
	}
	p->up[++p->depth] = fd;
	return 0;
}

/* A name with more behind it: a directory, or a link. */
static int walk_through(host_place *p, size_t behind)
{
	int fd = openat(p->up[p->depth], p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[VFS_PATH_MAX];
	struct stat st;
	ssize_t len;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
		p->from = behind + strspn(p->text + behind, "/");
		return walk_down(p, fd);
	}
	len = S_ISLNK(st.st_mode) ? readlinkat(fd, "", link, sizeof link) : -1;
	close(fd);
	if (len < 0)
		return -ENOTDIR;
	return len == sizeof link ? -ENAMETOOLONG : walk_expand(p, link, (size_t)len, behind);
}

/* The last name: *done unless it is a link that is followed. */
static int walk_last(host_place *p, int how, size_t behind, bool *done)
{
	bool follows = how == VFS_WALK_FOLLOW || how == (p->slash ? VFS_WALK_STAY : VFS_WALK_MAKE);
	char link[VFS_PATH_MAX];
	unsigned int mode;
	ssize_t len = follows ? readlinkat(p->up[p->depth], p->name, link, sizeof link) : -1;
	int rc;

	p->dir = p->up[p->depth];
	if (len >= 0)
		return len == sizeof link ? -ENAMETOOLONG : walk_expand(p, link, (size_t)len, behind);
	*done = true;
	if (!p->slash || (how != VFS_WALK_STAY && how != VFS_WALK_FOLLOW))
		return 0;
	rc = host_kind(p, &mode);
	return rc ? rc : mode && !S_ISDIR(mode) ? -ENOTDIR : 0;
}

static int walk_dots(host_place *p, size_t len, bool more)
{
	int rc = len == 2 ? walk_up(p) : 0;

	if (rc || more)
		return rc;
	p->dir = p->up[p->depth];
	p->last = len == 2 ? HOST_LAST_DOTDOT : HOST_LAST_DOT;
	memcpy(p->name, ".", 2);
	return 0;
}

static int walk_step(host_place *p, int how, bool *done)
{
	const char *name = p->text + p->from, *rest;
	size_t len = strcspn(name, "/"), behind = p->from + len;
	bool more;

	if (len > VFS_NAME_MAX)
		return -ENAMETOOLONG;
	rest = name + len;
	more = rest[strspn(rest, "/")] != '\0';
	p->slash = *rest == '/';
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))) {
		*done = !more;
		p->from = behind + strspn(rest, "/");
		return walk_dots(p, len, more);
	}
	memcpy(p->name, name, len);
	p->name[len] = '\0';
	return more ? walk_through(p, behind) : walk_last(p, how, behind, done);
}

int host_walk(int start, const char *path, int how, host_place *p)
{
	size_t len = strnlen(path, VFS_PATH_MAX);
	bool done = false;
	int rc = 0;

	p->up[0] = start;
	p->depth = p->links = 0;
	p->from = 0;
	p->last = HOST_LAST_NAME;
	if (len == VFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (len == 0 || path[0] == '/')
		return len ? -EPERM : -ENOENT;
	memcpy(p->text, path, len + 1);
	while (!rc && !done)
		rc = walk_step(p, how, &done);
	return rc;
}

void host_leave(host_place *p)
{
	while (p->depth)
		close(p->up[p->depth--]);
}
