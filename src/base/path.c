/* SPDX-License-Identifier: MIT */
/* path.c - paths as text.  Nothing here looks at a file system. */
#include "base.h"

#include <limits.h>

static int path_refuse(sb_error *err, const char *path, const char *why)
{
	return error_set(err, SB_ERR_INVALID_PATH, "path", "path \"%s\" %s", path, why);
}

int path_clean_absolute(const char *path, char **out, sb_error *err)
{
	size_t len = 0;
	char *clean;

	if (!path || path[0] != '/')
		return path_refuse(err, path ? path : "", "is not absolute; begin it with \"/\"");
	if (strlen(path) >= PATH_MAX)
		return path_refuse(err, path, "is longer than 4095 bytes");
	clean = malloc(strlen(path) + 2);
	if (!clean)
		return error_no_memory(err, "path");
	for (const char *p = path; *p;) {
		size_t n;

		p += strspn(p, "/");
		n = strcspn(p, "/");
		if (n > NAME_MAX || (n == 2 && p[0] == '.' && p[1] == '.')) {
			free(clean);
			return path_refuse(err, path, n > NAME_MAX ? "has an element of more than 255 bytes"
								   : "contains \"..\"; write it without");
		}
		if (n > 0 && !(n == 1 && p[0] == '.')) {
			clean[len++] = '/';
			memcpy(clean + len, p, n);
			len += n;
		}
		p += n;
	}
	if (len == 0)
		clean[len++] = '/';
	clean[len] = '\0';
	*out = clean;
	return 0;
}

bool path_is_clean_absolute(const char *path)
{
	if (!path || path[0] != '/' || strlen(path) >= PATH_MAX)
		return false;
	if (path[1] == '\0')
		return true;
	for (const char *p = path; *p;) {
		size_t n = strcspn(++p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
	}
	return true;
}

bool path_is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int path_join(const char *dir, const char *name, char **out)
{
	size_t n = strlen(dir), m = strlen(name);
	bool slash = m > 0 && (n == 0 || dir[n - 1] != '/');
	char *joined = malloc(n + slash + m + 1);

	if (!joined)
		return SB_ERR_NO_MEMORY;
	memcpy(joined, dir, n);
	if (slash)
		joined[n++] = '/';
	memcpy(joined + n, name, m + 1);
	*out = joined;
	return 0;
}
