/* SPDX-License-Identifier: MIT */
/*
 * patterns.c - a pattern of paths (SB_FILE_GLOB) as the paths that are there.
 *
 * glob(3) does the work, with two differences.  An element "**" stands for any number of directories, none
 * included, hidden ones too; links are not followed.  And what takes something away (hide, protect) matches
 * names that begin with a dot like any others: a secret that a pattern seems to cover must not stay open.
 */
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <unistd.h>

enum { MAX_MATCHES = 1000, MAX_LOOKS = 100000 };

typedef struct expansion {
	const char *pattern;
	bool dots;
	strv *out;
	strv dirs;      /* found on the way, for "**" */
	size_t looks;   /* entries of directories */
	sb_error *err;
} expansion;

static int failed(const expansion *x, const char *why)
{
	return error_set(x->err, SB_ERR_IO, "files", "cannot expand the pattern \"%s\": %s", x->pattern, why);
}

/* A "*" that matched "." or "..". */
static bool has_dots(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/.")); at++) {
		size_t len = strcspn(at + 1, "/");

		if (len == 1 || (len == 2 && at[2] == '.'))
			return true;
	}
	return false;
}

/* ---- Without "**" ----------------------------------------------------------------------------------- */

static int add_match(expansion *x, const char *path)
{
	if (has_dots(path))
		return 0;
	for (size_t i = 0; i < x->out->len; i++)
		if (!strcmp(x->out->at[i], path))
			return 0;
	if (x->out->len == MAX_MATCHES)
		return error_set(x->err, SB_ERR_INVALID_SPEC, "files",
				 "the pattern \"%s\" matches more than %d paths; name the directory instead",
				 x->pattern, MAX_MATCHES);
	return strv_add(x->out, path) ? error_no_memory(x->err, "files") : 0;
}

static int expand_plain(expansion *x, const char *pattern)
{
	int n, code = 0, flags = 0;
	glob_t found = { 0 };

#ifdef GLOB_PERIOD
	flags |= x->dots ? GLOB_PERIOD : 0;
#endif
	n = glob(pattern, flags, NULL, &found);
	if (n == GLOB_NOSPACE)
		code = error_no_memory(x->err, "files");
	else if (n && n != GLOB_NOMATCH)
		code = failed(x, "a directory cannot be read");
	for (size_t i = 0; !n && code >= 0 && i < found.gl_pathc; i++)
		code = add_match(x, found.gl_pathv[i]);
	globfree(&found);
	return code < 0 ? code : 0;
}

/* ---- "**" ---------------------------------------------------------------------------------------------- */

/* The directories below `path` into x->dirs.  One that the caller may not list holds nothing to be named: what
 * runs has no more rights than the caller. */
static int list_below(expansion *x, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), code = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir) {
		bool silent = errno == EACCES || errno == ENOENT || errno == ENOTDIR || errno == ELOOP;

		code = silent ? 0 : failed(x, strerror(errno));
		fd_close(&fd);
		return code;
	}
	while (!code && (entry = readdir(dir))) {
		struct stat st;
		bool is_dir = entry->d_type == DT_DIR;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (++x->looks > MAX_LOOKS)
			code = error_set(x->err, SB_ERR_INVALID_SPEC, "files",
					 "the pattern \"%s\" looks at more than %d names; name the directory instead",
					 x->pattern, MAX_LOOKS);
		else if (entry->d_type == DT_UNKNOWN)
			is_dir = !fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
		if (!code && is_dir && strv_add_fmt(&x->dirs, "%s/%s", !strcmp(path, "/") ? "" : path, entry->d_name))
			code = error_no_memory(x->err, "files");
	}
	closedir(dir);
	return code;
}

/* dir, taken literally, in front of the rest of a pattern. */
static int expand_in(expansion *x, const char *dir, const char *rest)
{
	buf text;
	int code;

	buf_init(&text, 2 * PATH_MAX);
	for (const char *c = strcmp(dir, "/") ? dir : ""; *c; c++) {
		if (strchr("\\*?[", *c))
			buf_add_char(&text, '\\');
		buf_add_char(&text, *c);
	}
	buf_add_str(&text, rest);
	code = text.failed ? failed(x, "a path is too long") : expand_plain(x, text.data);
	buf_release(&text);
	return code;
}

/* `star` is the slash before the two stars; what stands before it has been expanded: into x->out. */
static int expand_deep(expansion *x, const char *star)
{
	const char *rest = star + 3;
	int code = 0;

	/* at the end: all that is in the directories; a rule holds for what is below its path as well */
	if (!*rest || !strcmp(rest, "/"))
		rest = "/*";
	while (!strncmp(rest, "/**", 3) && (!rest[3] || rest[3] == '/'))
		rest += 3;
	if (strstr(rest, "/**/"))
		return error_set(x->err, SB_ERR_INVALID_SPEC, "files",
				 "the pattern \"%s\" has \"**\" in two places; one can be expanded", x->pattern);
	x->dirs = *x->out;
	*x->out = (strv){ 0 };
	for (size_t i = 0; !code && i < x->dirs.len; i++) {
		code = expand_in(x, x->dirs.at[i], rest);
		code = code ? code : list_below(x, x->dirs.at[i]);
	}
	strv_release(&x->dirs);
	return code;
}

int pattern_expand(const char *pattern, bool dots, strv *out, sb_error *err)
{
	expansion x = { .pattern = pattern, .dots = dots, .out = out, .err = err };
	const char *star = pattern;
	char *before;
	int code;

	while ((star = strstr(star, "/**")) && star[3] && star[3] != '/')
		star += 3;
	if (!star)
		return expand_plain(&x, pattern);
	before = star == pattern ? strdup("/") : strndup(pattern, (size_t)(star - pattern));
	if (!before)
		return error_no_memory(err, "files");
	code = expand_plain(&x, before);
	free(before);
	return code ? code : expand_deep(&x, star);
}
