/* SPDX-License-Identifier: MIT */
/*
 * outdir.c - --out: writes the files of a result.
 *
 * The folder is opened before anything runs; every path is then walked from that descriptor, one
 * name at a time, never through a link.  A file that is there is replaced, not written into: it may
 * be a hard link to something else.
 */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One element of a path, ready for the next; -1 and errno, ELOOP for a link. */
static int step(int dir, const char *path, size_t len, bool last, bool *made)
{
	char element[NAME_MAX + 1];
	struct stat st;

	if (len > NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(element, path, len);
	element[len] = '\0';
	if (last && mkdirat(dir, element, 0777) == 0)
		*made = true;
	int next = openat(dir, element, (last ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 && errno == ENOTDIR)
		errno = fstatat(dir, element, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? ELOOP
												   : ENOTDIR;
	return next;
}

/* Down from the current folder, which commands get as their workspace: a link there may be a guest's. */
static int open_below_here(const char *path, bool *made)
{
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	path += strspn(path, "/");
	if (*path == '\0' && fd >= 0) {
		close(fd);
		return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	while (fd >= 0 && *path != '\0') {
		size_t len = strcspn(path, "/");
		const char *rest = path + len + strspn(path + len, "/");
		int next = step(fd, path, len, *rest == '\0', made);
		int why = errno;

		close(fd);
		errno = why;
		fd = next;
		path = rest;
	}
	return fd;
}

/* What is left of an absolute path that leads below the current folder; NULL = it does not. */
static const char *below_here(const char *path)
{
	char here[PATH_MAX];
	size_t len;

	if (path[0] != '/')
		return path;
	if (getcwd(here, sizeof here) == NULL)
		return NULL;
	len = strlen(here);
	if (len == 1 || strncmp(path, here, len) != 0)
		return NULL;
	return path[len] == '/' || path[len] == '\0' ? path + len : NULL;
}

int outdir_open(cli_outdir *dir, const char *path, sb_error *err)
{
	const char *below = path != NULL ? below_here(path) : NULL;

	*dir = (cli_outdir){ .fd = -1, .path = path };
	if (path == NULL)
		return 0;
	if (path[0] == '\0')
		return error_fill(err, SB_ERR_INVALID, "out", "--out needs the name of a folder");
	if (below != NULL) {
		dir->fd = open_below_here(below, &dir->made);
	} else {
		dir->made = mkdir(path, 0777) == 0;
		dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (dir->fd >= 0)
		return 0;
	if (dir->made) { /* with no right to look into it: a umask */
		int why = errno;
		rmdir(path);
		errno = why;
	}
	if (errno == ELOOP && below != NULL)
		return error_fill(err, SB_ERR_FORBIDDEN, "out",
				  "--out \"%.160s\" leads through a link below the current folder, where "
				  "commands may write: name what it points to",
				  path);
	if (errno == ENOTDIR)
		return error_fill(err, SB_ERR_NOT_DIR, "out",
				  "--out \"%.160s\" is no folder: name one, or one "
				  "that is not there yet",
				  path);
	error_fill(err, errno == ENOENT ? SB_ERR_NOT_FOUND : SB_ERR_IO, "out",
		   "--out \"%.160s\" cannot be opened or made: %s", path,
		   units_errno_text(errno, (char[UNITS_TEXT]){ 0 }));
	err->os_errno = errno;
	return err->code;
}

/* The folder of `path` beneath dir, made where it is missing; *name is the last element. */
static int open_parent(int dir, const char *path, const char **name)
{
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 3);

	for (const char *slash; fd >= 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1) {
		char element[NAME_MAX + 1];
		size_t len = (size_t)(slash - path);
		if (len == 0 || len > NAME_MAX) {
			close(fd);
			errno = EINVAL;
			return -1;
		}
		memcpy(element, path, len);
		element[len] = '\0';
		if (mkdirat(fd, element, 0777) < 0 && errno != EEXIST) {
			close(fd);
			return -1;
		}
		int next = openat(fd, element, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	*name = path;
	return fd;
}

static int write_node(int dir, const sb_node *node)
{
	enum { NEW = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
	const char *name;
	int parent = open_parent(dir, node->path, &name);
	int fd, why = 0;

	if (parent < 0)
		return -errno;
	fd = openat(parent, name, NEW, node->mode & 0777);
	if (fd < 0 && errno == EEXIST && unlinkat(parent, name, 0) == 0)
		fd = openat(parent, name, NEW, node->mode & 0777);
	if (fd < 0)
		why = -errno;
	else
		why = output_write(fd, node->data, node->len);
	if (fd >= 0 && close(fd) < 0 && why == 0)
		why = -errno;
	if (fd >= 0 && why != 0)
		unlinkat(parent, name, 0); /* half of a file is not to be taken for it */
	close(parent);
	return why;
}

int outdir_write(const cli_outdir *dir, const sb_tree *files, sb_error *err)
{
	size_t count = dir->fd < 0 || files == NULL ? 0 : sb_tree_count(files), failed = 0;
	char more[64] = "", first[161] = "";
	int why = 0;

	for (size_t i = 0; i < count; i++) { /* one that cannot be written is no reason to lose others */
		sb_node node = { .size = sizeof node };
		if (sb_tree_at(files, i, &node) < 0 || node.what != SB_NODE_FILE)
			continue;
		int rc = write_node(dir->fd, &node);
		if (rc == 0 || failed++ > 0)
			continue;
		why = -rc;
		snprintf(first, sizeof first, "%s", node.path);
	}
	if (failed == 0)
		return 0;
	if (failed > 1)
		snprintf(more, sizeof more, ", and %zu more", failed - 1);
	error_fill(err, SB_ERR_IO, "out", "cannot write \"%s\"%s in --out \"%.160s\": %s", first, more,
		   dir->path, units_errno_text(why, (char[UNITS_TEXT]){ 0 }));
	err->os_errno = why;
	return SB_ERR_IO;
}

void outdir_close(cli_outdir *dir, bool undo)
{
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = -1;
	if (undo && dir->made)
		rmdir(dir->path);
}
