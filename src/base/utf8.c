/* SPDX-License-Identifier: MIT */
/* utf8.c - strict: no overlong forms, no surrogates, nothing above U+10FFFF. */
#include "base.h"

size_t utf8_sequence(const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;
	unsigned char low = 0x80, high = 0xbf; /* of the second byte */
	size_t n;

	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool utf8_valid(const char *data, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t n = utf8_sequence(data + i, len - i);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

bool utf8_is_control(const char *data, size_t n)
{
	const unsigned char *p = (const unsigned char *)data;

	if (n == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	if (n == 2)
		return (p[0] == 0xc2 && p[1] <= 0x9f) || (p[0] == 0xd8 && p[1] == 0x9c);
	if (n != 3)
		return false;
	if (p[0] == 0xe2 && p[1] == 0x80)
		return (p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae);
	return (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf) ||
	       (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);
}

size_t utf8_make_plain(char *text)
{
	char *to = text;

	for (const char *p = text; *p;) {
		size_t n = utf8_sequence(p, strnlen(p, 4));

		if (n == 0 || utf8_is_control(p, n)) {
			*to++ = '?';
			p += n ? n : 1;
			continue;
		}
		while (n-- > 0)
			*to++ = *p++;
	}
	*to = '\0';
	return (size_t)(to - text);
}
