/* SPDX-License-Identifier: MIT */
/*
 * clean.c - one spelling for each path in a tree.  ".." is refused, never resolved: what a path
 * means must not depend on what lies in the tree.
 */
#include "../base/base.h"

#define CLEAN_PATH_MAX 4096
#define CLEAN_ELEMENT_MAX 255
#define CLEAN_DEPTH_MAX 64

static int clean_refuse(sb_error *err, const char *path, const char *why)
{
	return error_set(err, SB_ERR_INVALID_PATH, "path", "path \"%s\" %s", path, why);
}

static bool clean_is_separator(char c)
{
	return c == '/' || c == '\\';
}

/* "C:" would be a drive, and "C:x" a place in it, on another system that unpacks the tree. */
static bool clean_is_drive(const char *element, size_t len)
{
	char c = len >= 2 && element[1] == ':' ? element[0] : '\0';

	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *clean_check_bytes(const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f)
			return "contains a control character";
	if (!utf8_valid(path, len))
		return "is not UTF-8";
	if (path[0] == '\\' && path[1] == '\\')
		return "names a network share";
	return NULL;
}

static const char *clean_check_element(const char *element, size_t n, size_t len, size_t depth)
{
	if (n == 2 && element[0] == '.' && element[1] == '.')
		return "contains \"..\"; write it without";
	if (n > CLEAN_ELEMENT_MAX)
		return "has an element of more than 255 bytes";
	if (depth == 0 && clean_is_drive(element, n))
		return "begins with a drive letter";
	if (depth == CLEAN_DEPTH_MAX)
		return "has more than 64 elements";
	if (len + (depth > 0) + n > CLEAN_PATH_MAX)
		return "is longer than 4096 bytes";
	return NULL;
}

int sb_path_clean(const char *path, char *out, size_t cap, size_t *len, sb_error *err)
{
	size_t depth = 0, end = 0;
	const char *why;

	if (!path)
		return error_set(err, SB_ERR_INVALID_PATH, "path", "a path is missing");
	why = clean_check_bytes(path, strlen(path));
	for (const char *p = path; *p && !why;) {
		size_t n = 0;

		if (clean_is_separator(*p)) {
			p++;
			continue;
		}
		while (p[n] && !clean_is_separator(p[n]))
			n++;
		if (n != 1 || p[0] != '.') {
			why = clean_check_element(p, n, end, depth);
			if (why)
				break;
			if (depth++ > 0 && end++ < cap)
				out[end - 1] = '/';
			if (end + n < cap)
				memcpy(out + end, p, n);
			end += n;
		}
		p += n;
	}
	if (why)
		return clean_refuse(err, path, why);
	if (depth == 0 && cap > 1)
		out[0] = '.';
	end = depth ? end : 1;
	if (end >= cap)
		return error_set(err, SB_ERR_INVALID, "path", "no room for path \"%s\"", path);
	out[end] = '\0';
	if (len)
		*len = end;
	return 0;
}
