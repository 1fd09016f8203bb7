/* SPDX-License-Identifier: MIT */
/*
 * target.c - finds or makes the place where a mount goes.
 *
 * Targets are resolved as the guest will see them (RESOLVE_IN_ROOT): a link in a workspace leads nowhere
 * outside.  Nothing is made but on file systems of our own, so that nothing is left on the host.
 */
#include "sys.h"
#include "target.h"

#include <string.h>
#include <sys/stat.h>

int target_fail(builder *b, int error, const char *what, const char *path)
{
	return launch_fail(b->f, error, "mount", "cannot %s \"%s\" of the sandbox", what, path);
}

int target_own_add(builder *b, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return target_fail(b, errno, "look at", "a file system");
	if (b->own_count == TARGET_MAX_OWN)
		return launch_fail(b->f, 0, "mount", "more than %u file systems of its own", TARGET_MAX_OWN);
	b->own[b->own_count++] = st.st_dev;
	return 0;
}

static bool own_has(const builder *b, int fd)
{
	struct stat st;
	uint32_t i;

	if (fstat(fd, &st) < 0)
		return false;
	for (i = 0; i < b->own_count; i++)
		if (b->own[i] == st.st_dev)
			return true;
	return false;
}

int target_resolve(const builder *b, const char *path)
{
	return sys_open_path(b->root, path[1] ? path + 1 : ".", RESOLVE_IN_ROOT);
}

/* mkdir -p; O_PATH or -1.  The deepest part that exists is looked for first. */
static int make_dirs(builder *b, const char *path)
{
	size_t len = strlen(path), end = len;
	char text[4096];
	int fd;

	memcpy(text, path, len + 1);
	while ((fd = target_resolve(b, end ? text : "/")) < 0) {
		if (errno != ENOENT || !end)
			return target_fail(b, errno, "open", path);
		while (text[--end] != '/')
			;
		text[end] = 0;
	}
	while (end < len) {
		const char *name = text + end + 1;
		int next = -1, error = 0;

		text[end] = '/';
		end += strlen(text + end);
		b->absent = !own_has(b, fd);
		if (b->absent)
			error = EROFS;
		else if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
			error = errno;
		else if ((next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)) < 0)
			error = errno;
		close(fd);
		if (error)
			return target_fail(b, error, "make directory", text);
		fd = next;
	}
	return fd;
}

void target_forget(builder *b)
{
	if (b->parent_fd >= 0)
		close(b->parent_fd);
	b->parent_fd = -1;
	b->here = false;
}

/* A parent there or beneath is not the one that is seen now. */
void target_covered(builder *b, const char *path)
{
	size_t len = strlen(path);

	if (!strncmp(b->parent, path, len) && (!b->parent[len] || b->parent[len] == '/'))
		target_forget(b);
}

int target_parent(builder *b, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t len = (size_t)(slash - path);

	*name = slash + 1;
	if (b->parent_fd >= 0 && strlen(b->parent) == len && !memcmp(b->parent, path, len))
		return b->parent_fd;
	target_forget(b);
	memcpy(b->parent, path, len);
	b->parent[len] = 0;
	b->parent_fd = make_dirs(b, len ? b->parent : "/");
	b->parent_own = b->parent_fd >= 0 && own_has(b, b->parent_fd);
	return b->parent_fd;
}

int target_own_parent(builder *b, const char *path, const char **name)
{
	int parent = target_parent(b, path, name);

	b->absent |= parent >= 0 && !b->parent_own;
	if (parent >= 0 && !b->parent_own)
		return launch_fail(b->f, EROFS, "mount", "\"%s\" lies in a directory of the host, where "
				   "nothing is made", path);
	return parent;
}

int target_enter(builder *b, const char *path, const char **name)
{
	int parent = target_own_parent(b, path, name);

	if (parent < 0)
		return -1;
	if (!b->here && fchdir(parent) < 0)
		return target_fail(b, errno, "enter the directory of", path);
	b->here = true;
	return 0;
}

/* What stands at `path` already, or a fresh directory or empty file there. */
static int target_open(builder *b, const char *path, bool dir)
{
	const char *name;
	int parent, fd;

	if (!path[1])
		return target_fail(b, EBUSY, "mount over", path);
	parent = target_parent(b, path, &name);
	if (parent < 0)
		return -1;
	if (b->parent_own && dir) {
		if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
			return target_fail(b, errno, "make directory", path);
	} else if (b->parent_own) {
		fd = openat(parent, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? target_fail(b, errno, "make file", path) : fd;
	}
	fd = target_resolve(b, path);
	if (fd < 0 && errno == ENOENT && !b->parent_own)
		return target_own_parent(b, path, &name); /* says that nothing is made there */
	return fd < 0 ? target_fail(b, errno, "open", path) : fd;
}

int target_attach(builder *b, int tree, const char *path, bool dir)
{
	int target = target_open(b, path, dir), rc = -1;

	if (target >= 0) {
		rc = sys_move_mount(tree, target);
		if (rc < 0)
			target_fail(b, errno, "mount at", path);
		close(target);
		target_covered(b, path);
	}
	close(tree);
	return rc;
}
