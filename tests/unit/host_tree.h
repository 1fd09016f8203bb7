/* SPDX-License-Identifier: MIT */
/* host_tree.h - a folder of files for one test, made from a list and removed at the end. */
#ifndef SB_TESTS_HOST_TREE_H
#define SB_TESTS_HOST_TREE_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

typedef struct host_tree {
	char dir[64];
} host_tree;

static inline void host_tree_open(host_tree *tree)
{
	char *real;

	snprintf(tree->dir, sizeof tree->dir, "/tmp/unit.XXXXXX");
	assert_non_null(mkdtemp(tree->dir));
	real = realpath(tree->dir, NULL);
	assert_non_null(real);
	snprintf(tree->dir, sizeof tree->dir, "%s", real);
	free(real);
}

/* The path of a name in it; in turn one of eight buffers. */
static inline const char *host_path(const host_tree *tree, const char *name)
{
	static char path[8][1024];
	static unsigned turn;

	turn = (turn + 1) % 8;
	snprintf(path[turn], sizeof path[0], "%s%s%s", tree->dir, *name ? "/" : "", name);
	return path[turn];
}

/* mkdir -p of everything above, then the directory itself if the name ends in "/". */
static inline void host_make(const host_tree *tree, const char *name)
{
	char path[1024], *at;

	snprintf(path, sizeof path, "%s/%s", tree->dir, name);
	for (at = path + strlen(tree->dir) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0755);
		*at = '/';
	}
}

static inline void host_write_mode(const host_tree *tree, const char *name, const char *text,
				   mode_t mode)
{
	int fd;

	host_make(tree, name);
	fd = open(host_path(tree, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static inline void host_write(const host_tree *tree, const char *name, const char *text)
{
	host_write_mode(tree, name, text, 0644);
}

static inline void host_link(const host_tree *tree, const char *text, const char *name)
{
	host_make(tree, name);
	assert_int_equal(symlink(text, host_path(tree, name)), 0);
}

static inline void host_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char below[1024];

	if (!dir && !chmod(path, 0700))
		dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		struct stat st;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if ((size_t)snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= sizeof below)
			continue;
		if (!lstat(below, &st) && S_ISDIR(st.st_mode))
			host_remove(below);
		else
			unlink(below);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static inline void host_tree_close(host_tree *tree)
{
	host_remove(tree->dir);
}

#endif /* SB_TESTS_HOST_TREE_H */
