/* SPDX-License-Identifier: MIT */
/*
 * collect.c - what is in the scratch tmpfs, and anywhere else that the guest may write: read, counted,
 * removed.  /out is the host's to read and empty; for all else pid 1 finds the way, with the guest's
 * rights.
 */
#include "linux.h"
#include "../../vfs/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_DEPTH_MAX 256u

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* ---- Emptying ------------------------------------------------------------------------------------------ */

/* All that is in it, as far as it can be; a guest that goes on writing may be faster.  Consumes. */
static void empty_dir(int fd, unsigned depth, const sb_call *call)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	while (!sb_call_check(call, NULL) && (entry = readdir(dir))) {
		if (is_dot(entry->d_name) || !unlinkat(dirfd(dir), entry->d_name, 0))
			continue;
		if (depth < SIZE_DEPTH_MAX && (errno == EISDIR || errno == EPERM || errno == EACCES)) {
			int sub = collect_open(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY, 0700);

			if (sub >= 0)
				empty_dir(sub, depth + 1, call);
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
		}
	}
	closedir(dir);
}

int linux_remove(sb_box *box, const char *path, const sb_call *call, sb_error *err)
{
	int out;

	launched_box_listen(box);
	if (box->in_place)
		return linux_no_files(err);
	if (strcmp(path, "/out"))
		return launched_remove(box, path, call, err);
	if (box->scratch < 0)
		return error_set(err, SB_ERR_UNSUPPORTED, "remove", "this sandbox has no /out");
	out = collect_open(box->scratch, "out", O_RDONLY | O_DIRECTORY, 0700);
	if (out < 0)
		return error_errno(err, SB_ERR_IO, errno, "remove", "cannot open \"/out\"");
	empty_dir(out, 1, call);
	return 0;
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static int add_sizes(int fd, unsigned depth, uint64_t *bytes, uint64_t *nodes)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		close(fd);
		return -1;
	}
	while ((entry = readdir(dir))) {
		if (is_dot(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		++*nodes;
		if (S_ISREG(st.st_mode))
			*bytes += (uint64_t)st.st_size;
		if (S_ISDIR(st.st_mode) && depth < SIZE_DEPTH_MAX) {
			int sub = collect_open(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY, 0700);

			if (sub >= 0)
				add_sizes(sub, depth + 1, bytes, nodes);
		}
	}
	closedir(dir);
	return 0;
}

int collect_sizes(int dir, uint64_t *bytes, uint64_t *nodes)
{
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return -1;
	++*nodes;
	return add_sizes(fd, 1, bytes, nodes);
}

static void count_scratch(sb_box *box)
{
	static const char *const parts[] = { "in", "work", "out" };
	uint64_t bytes = 0, nodes = 0;
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(parts); i++) {
		int FD_AUTO fd = collect_open(box->scratch, parts[i], O_RDONLY | O_DIRECTORY, 0700);

		if (fd < 0 || collect_sizes(fd, &bytes, &nodes) < 0)
			return;
	}
	box->fs_bytes = bytes;
	box->fs_nodes = nodes;
	box->fs_known = true;
}

static int take_out(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err)
{
	int FD_AUTO out = collect_open(box->scratch, "out", O_RDONLY | O_DIRECTORY, 0700);

	if (out < 0)
		return error_errno(err, SB_ERR_IO, errno, "collect", "cannot open \"/out\"");
	return collect_tree(out, "/out", true, call, tree, err);
}

int linux_collect(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err)
{
	launched_box_listen(box);
	if (box->scratch < 0)
		return error_set(err, SB_ERR_UNSUPPORTED, "collect", "this sandbox has no /out");
	count_scratch(box);
	return take_out(box, call, tree, err);
}

int linux_get(sb_box *box, const char *path, const sb_call *call, sb_tree *tree, sb_error *err)
{
	launched_box_listen(box);
	if (box->in_place)
		return linux_no_files(err);
	if (strcmp(path, "/out"))
		return launched_get(box, path, call, tree, err);
	if (box->scratch < 0)
		return error_set(err, SB_ERR_UNSUPPORTED, "get", "this sandbox has no /out");
	return take_out(box, call, tree, err);
}
