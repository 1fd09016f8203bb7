/* SPDX-License-Identifier: MIT */
/*
 * collect.c - what a guest has made, read by the host: once everything inside is dead, or while
 * something may run.
 *
 * Each name is opened by itself beneath its directory, never through a link, never into another file
 * system, and only a regular file is read.  A name may change under our hands, so every step looks at
 * what it opened.
 */
#include "launched.h"
#include "../../vfs/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define DEPTH_MAX 64u     /* what a tree's path may have: deeper is left out */
#define PATH_MOST 4096u
#define READ_CHUNK 65536
#define FILE_MAX (1u << 30)  /* of one file, whatever the tree would take */

typedef struct collector {
	sb_tree *tree;
	const sb_call *call;
	const char *at;           /* for messages: where inside the tree lies */
	bool stubborn;
	char path[PATH_MOST + 1];
	char chunk[READ_CHUNK];
} collector;

static int open_inside(int dir, const char *name, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);

	if (fd < 0 && (errno == ENOSYS || errno == EPERM) && !strchr(name, '/') && strcmp(name, ".."))
		fd = openat(dir, name, (int)flags | O_CLOEXEC | O_NOFOLLOW);
	return fd;
}

int collect_open(int dir, const char *name, uint64_t flags, mode_t mode)
{
	int fd = open_inside(dir, name, flags);

	if (fd < 0 && errno == EACCES && !fchmodat(dir, name, mode, AT_SYMLINK_NOFOLLOW))
		fd = open_inside(dir, name, flags);
	return fd;
}

static int open_entry(const collector *c, int dir, const char *name, uint64_t flags)
{
	if (!c->stubborn)
		return open_inside(dir, name, O_RDONLY | flags);
	return collect_open(dir, name, O_RDONLY | flags, flags & O_DIRECTORY ? 0700 : 0600);
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* ---- Files into a tree -------------------------------------------------------------------------------- */

static int store(collector *c, const buf *data, sb_error *err)
{
	const sb_node node = { .size = sizeof node, .path = c->path, .what = SB_NODE_FILE,
			       .data = data->len ? data->data : "", .len = data->len };

	return tree_put_raw(c->tree, &node, err);
}

/* The file so far as the tree's node: at sizes that double, so that a quota is met early and a sparse
 * giant is never held in memory. */
static int read_file(collector *c, int fd, buf *data, sb_error *err)
{
	size_t next = READ_CHUNK;
	ssize_t n;
	int rc = 0;

	while (!rc && (n = read(fd, c->chunk, sizeof c->chunk)) != 0) {
		if (n < 0)
			return error_errno(err, SB_ERR_IO, errno, "collect", "cannot read \"%s/%s\"",
					   c->at, c->path);
		buf_add(data, c->chunk, (size_t)n);
		if (data->failed == SB_ERR_NO_MEMORY)
			return error_no_memory(err, "collect");
		if (data->failed)
			return error_set(err, SB_ERR_FS_QUOTA, "collect",
					 "\"%s/%s\" has more than %u bytes", c->at, c->path, FILE_MAX);
		rc = sb_call_check(c->call, err);
		if (!rc && data->len >= next) {
			rc = store(c, data, err);
			next = data->len * 2;
		}
	}
	return rc ? rc : store(c, data, err);
}

static int take_file(collector *c, int dir, const char *name, sb_error *err)
{
	/* O_NONBLOCK: were it a fifo after all, opening it must not wait */
	int FD_AUTO fd = open_entry(c, dir, name, O_NONBLOCK);
	struct stat st;
	buf data;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		tree_leave_out(c->tree, SB_LEFT_UNREADABLE);
		return 0;
	}
	buf_init(&data, FILE_MAX);
	rc = read_file(c, fd, &data, err);
	buf_release(&data);
	return rc;
}

static int take_dir(collector *c, int dir, size_t len, unsigned depth, sb_error *err);

/* SB_LEFT_*, or 0 = it is taken. */
static int why_not(int dir, const char *name, size_t path_len, unsigned depth, struct stat *st)
{
	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return SB_LEFT_UNREADABLE;
	if (S_ISLNK(st->st_mode))
		return SB_LEFT_LINK;
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return SB_LEFT_SPECIAL;
	if (path_len > PATH_MOST || depth > DEPTH_MAX)
		return SB_LEFT_TOO_DEEP;
	return 0;
}

static int take_entry(collector *c, int dir, const char *name, size_t len, unsigned depth,
		      sb_error *err)
{
	size_t name_len = strlen(name), at = len + (len ? 1 : 0);
	struct stat st;
	int rc = 0, why = why_not(dir, name, at + name_len, depth, &st);

	if (why) {
		tree_leave_out(c->tree, why);
		return 0;
	}
	if (len)
		c->path[len] = '/';
	memcpy(c->path + at, name, name_len + 1);
	if (S_ISREG(st.st_mode)) {
		rc = take_file(c, dir, name, err);
	} else {
		int sub = open_entry(c, dir, name, O_DIRECTORY);

		tree_pass_dir(c->tree);
		if (sub < 0)
			tree_leave_out(c->tree, SB_LEFT_UNREADABLE);
		else
			rc = take_dir(c, sub, at + name_len, depth + 1, err);
	}
	c->path[len] = 0;
	return rc;
}

/* Consumes the descriptor. */
static int take_dir(collector *c, int fd, size_t len, unsigned depth, sb_error *err)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int rc = 0;

	if (!dir) {
		close(fd);
		return error_no_memory(err, "collect");
	}
	while (!rc && (entry = readdir(dir)))
		if (!is_dot(entry->d_name))
			rc = take_entry(c, dirfd(dir), entry->d_name, len, depth, err);
	closedir(dir);
	return rc;
}

int collect_tree(int dir, const char *at, bool stubborn, const sb_call *call, sb_tree *tree, sb_error *err)
{
	collector *c = malloc(sizeof *c);
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 3), rc;

	if (!c || fd < 0) {
		rc = c ? error_errno(err, SB_ERR_IO, errno, "collect", "cannot open \"%s\" again", at)
		       : error_no_memory(err, "collect");
		free(c);
		fd_close(&fd);
		return rc;
	}
	c->tree = tree;
	c->call = call;
	c->at = at;
	c->stubborn = stubborn;
	c->path[0] = 0;
	rc = take_dir(c, fd, 0, 1, err);
	free(c);
	return rc;
}

int collect_file(int fd, const char *at, const char *name, const sb_call *call, sb_tree *tree, sb_error *err)
{
	collector *c = malloc(sizeof *c);
	size_t len = strlen(name);
	buf data;
	int rc;

	if (!c)
		return error_no_memory(err, "collect");
	c->tree = tree;
	c->call = call;
	c->at = at;
	len = len < sizeof c->path ? len : sizeof c->path - 1;
	memcpy(c->path, name, len);
	c->path[len] = 0;
	buf_init(&data, FILE_MAX);
	rc = read_file(c, fd, &data, err);
	buf_release(&data);
	free(c);
	return rc;
}
