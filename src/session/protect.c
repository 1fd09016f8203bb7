/* SPDX-License-Identifier: MIT */
/*
 * protect.c - the protected names of a workspace, also where git keeps them elsewhere.
 *
 * ".git" may be a file that names the real folder, as in a worktree or a submodule, and that folder one
 * more that the rest is shared from.  Such a file is protected itself: whoever may write it chooses
 * which hooks and which configuration git obeys.
 */
#include "session.h"
#include "../launch/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum { MAX_POINTER = 4096 };

static const char *const in_git[] = { "hooks", "config", "config.worktree", "commondir", NULL };

static int add_one(place *p, const char *base, const char *name, sb_error *err)
{
	sb_file_rule rule = { .size = sizeof rule, .access = SB_FILE_PROTECT, .flags = SB_FILE_OPTIONAL };
	char *path;
	int code;

	if (path_join(base, name, &path) < 0)
		return error_no_memory(err, "files");
	rule.path = path;
	code = files_add(&p->files, &rule, FILES_BUILTIN, err);
	free(path);
	return code;
}

/* The one line of a small file that others wrote, behind `prefix`; false if it is none. */
static bool read_pointer(const char *path, const char *prefix, char *out, size_t cap)
{
	int fd = open_plain(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	size_t skip = strlen(prefix);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, out, cap - 1);
	close(fd);
	if (n <= (ssize_t)skip || memcmp(out, prefix, skip) != 0)
		return false;
	out[n] = '\0';
	memmove(out, out + skip, (size_t)n + 1 - skip);
	out[strcspn(out, "\r\n")] = '\0';
	return *out != '\0';
}

/* The folder that such a line names, if guests may reach it: malloc, or NULL. */
static char *pointed(const place *p, const char *base, const char *line)
{
	char *path = NULL, *real = NULL;

	if (asprintf(&path, "%s%s%s", *line == '/' ? "" : base, *line == '/' ? "" : "/", line) >= 0)
		real = realpath(path, NULL);
	free(path);
	if (real && path_is_within(real, p->workspace) && strcmp(real, p->workspace))
		return real;
	free(real);
	return NULL;
}

static int add_folder(place *p, const char *folder, sb_error *err)
{
	int code = 0;

	for (size_t i = 0; code >= 0 && in_git[i]; i++)
		code = add_one(p, folder, in_git[i], err);
	return code;
}

static int add_pointed(place *p, const char *file, sb_error *err)
{
	char line[MAX_POINTER], shared[MAX_POINTER];
	char *folder = NULL, *common = NULL, *path = NULL;
	int code = 0;

	if (read_pointer(file, "gitdir: ", line, sizeof line))
		folder = pointed(p, p->workspace, line);
	if (folder)
		code = add_folder(p, folder, err);
	if (folder && code >= 0 && path_join(folder, "commondir", &path) == 0 &&
	    read_pointer(path, "", shared, sizeof shared))
		common = pointed(p, folder, shared);
	if (common && code >= 0)
		code = add_folder(p, common, err);
	free(path);
	free(common);
	free(folder);
	return code;
}

int protect_add(place *p, sb_error *err)
{
	int code = files_add_protected(&p->files, p->workspace, err);
	char *git = NULL;
	struct stat st;

	if (code >= 0 && path_join(p->workspace, ".git", &git) < 0)
		code = error_no_memory(err, "files");
	if (code >= 0) {
		bool there = lstat(git, &st) == 0;

		/* a folder is git's own to write in */
		if (!there || !S_ISDIR(st.st_mode))
			code = add_one(p, p->workspace, ".git", err);
		if (code >= 0 && there && S_ISREG(st.st_mode))
			code = add_pointed(p, git, err);
	}
	free(git);
	return code;
}

/* ---- our own programs -------------------------------------------------------------------------- */

static bool writable_inside(const place *p, const char *path)
{
	if (p->workspace && path_is_within(path, p->workspace))
		return true;
	for (size_t i = 0; i < p->files.len; i++) {
		const files_rule *rule = &p->files.at[i];

		if (rule->access == SB_FILE_WRITE && !rule->source && path_is_within(path, rule->path))
			return true;
	}
	return false;
}

static bool anything_writable(const place *p)
{
	for (size_t i = 0; i < p->files.len; i++)
		if (p->files.at[i].access == SB_FILE_WRITE)
			return true;
	return p->workspace != NULL;
}

static int add_own(place *p, const char *path, sb_error *err)
{
	const sb_file_rule rule = { .size = sizeof rule, .path = path, .access = SB_FILE_PROTECT,
				    .flags = SB_FILE_OPTIONAL };
	struct stat st;

	if (!writable_inside(p, path) || lstat(path, &st) < 0)
		return 0;
	return files_add(&p->files, &rule, FILES_BUILTIN, err);
}

static bool one_folder(const char *a, const char *b)
{
	size_t len = (size_t)(path_base(a) - a);

	return len == (size_t)(path_base(b) - b) && !memcmp(a, b, len);
}

/* The kernel knows it with every link resolved; what has been removed is not there ("PATH (deleted)"). */
static char *own_path(const char *found)
{
	char real[PATH_MAX];
	ssize_t n = strcmp(found, LH_SELF_PATH) ? -1 : readlink(found, real, sizeof real);

	if (n <= 0 || (size_t)n == sizeof real || *real != '/')
		return realpath(found, NULL);
	return strndup(real, (size_t)n);
}

/* The programs that lie beside one of ours: whoever could write them would be started by us next time. */
static int add_beside(place *p, const char *path, sb_error *err)
{
	static const char *const ours[] = { "sandbox", "sb-launch", "sb-wasm", "sb-wasmc" };
	char *folder = strndup(path, (size_t)(path_base(path) - path)), *beside;
	int code = folder ? add_own(p, path, err) : error_no_memory(err, "files");

	for (size_t i = 0; code >= 0 && i < BASE_ARRAY_LEN(ours); i++) {
		if (!strcmp(ours[i], path_base(path)))
			continue;
		if (path_join(folder, ours[i], &beside) < 0) {
			code = error_no_memory(err, "files");
			break;
		}
		code = add_own(p, beside, err);
		free(beside);
	}
	free(folder);
	return code;
}

int protect_own(place *p, const char *helper_dir, sb_error *err)
{
	int (*const find[])(const char *, char **, sb_error *) = { lh_find, lh_find_own };
	char *before = NULL; /* but for the command they are one program */
	char *done = NULL;   /* beside it all have been added */
	int code = 0;

	if (!anything_writable(p))
		return 0;
	for (size_t i = 0; code >= 0 && i < BASE_ARRAY_LEN(find); i++) {
		char *found = NULL, *real = NULL;

		if (find[i](helper_dir, &found, NULL) == 0 && (!before || strcmp(found, before)))
			real = own_path(found);
		if (real)
			code = done && one_folder(done, real) ? add_own(p, real, err) : add_beside(p, real, err);
		free(done);
		done = real;
		free(before);
		before = found;
	}
	free(done);
	free(before);
	return code;
}
