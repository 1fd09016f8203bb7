/* SPDX-License-Identifier: MIT */
#include "js.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	size_t cap = 4096, got;
	char *data = NULL;

	if (file == NULL)
		return NULL;
	for (*len = 0;; *len += got) {
		char *more = realloc(data, cap + 1);
		if (more == NULL)
			break;
		data = more;
		got = fread(data + *len, 1, cap - *len, file);
		if (got == 0)
			break;
		if (*len + got == cap)
			cap *= 2;
	}
	bool ok = data != NULL && feof(file) && !ferror(file);
	int saved = errno;
	fclose(file);
	errno = saved;
	if (ok)
		return data;
	free(data);
	return NULL;
}

/* Bytes of the character at `s`, or 0 if they are no UTF-8. */
static size_t character(const unsigned char *s, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;

	if (n == 1)
		return 1;
	if (n == 0 || n > len || s[0] > 0xf4)
		return 0;
	uint32_t code = s[0] & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* What is not UTF-8 reads as U+FFFD, as in browsers and Node.js; a byte order mark is no code. */
char *source_load(const char *path, size_t *len)
{
	size_t raw_len, at = 0, out = 0;
	char *raw = read_all(path, &raw_len);

	if (raw == NULL)
		return NULL;
	char *text = malloc(raw_len * 3 + 1);
	if (text == NULL) {
		free(raw);
		errno = ENOMEM;
		return NULL;
	}
	if (raw_len >= 3 && memcmp(raw, "\xef\xbb\xbf", 3) == 0)
		at = 3;
	while (at < raw_len) {
		size_t n = character((unsigned char *)raw + at, raw_len - at);
		memcpy(text + out, n == 0 ? "\xef\xbf\xbd" : raw + at, n == 0 ? 3 : n);
		out += n == 0 ? 3 : n;
		at += n == 0 ? 1 : n;
	}
	free(raw);
	text[out] = '\0';
	*len = out;
	return text;
}
