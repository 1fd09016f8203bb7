/* SPDX-License-Identifier: MIT */
/* utf8.c - see utf8.h.  What is no UTF-8 counts byte by byte, so nothing is ever lost. */
#include "utf8.h"

#include <string.h>
#include <wchar.h>

int utf8_charlen(int first)
{
	first &= 0xff;
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : -1;
}

int utf8_tounicode(const char *text, int *out)
{
	static const int first_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const unsigned char *at = (const unsigned char *)text;
	int len = utf8_charlen(*at), code;

	*out = *at;
	if (len < 2)
		return 1;
	code = *at & first_bits[len];
	for (int i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 1;
		code = code << 6 | (at[i] & 0x3f);
	}
	*out = code;
	return len;
}

int utf8_fromunicode(char *out, unsigned code)
{
	int len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (int i = len - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)(lead[len] | code);
	return len;
}

int utf8_strlen(const char *text, int bytes)
{
	const char *end = text + (bytes < 0 ? strlen(text) : (size_t)bytes);
	int count = 0, code;

	for (; text < end; count++)
		text += utf8_tounicode(text, &code);
	return count;
}

int utf8_index(const char *text, int character)
{
	const char *at = text;
	int code;

	while (character-- > 0)
		at += utf8_tounicode(at, &code);
	return (int)(at - text);
}

int utf8_width(int code)
{
	int width = wcwidth((wchar_t)code);

	return width < 0 ? 1 : width;
}

int utf8_strwidth(const char *text, int characters)
{
	int width = 0, code;

	while (characters-- > 0) {
		text += utf8_tounicode(text, &code);
		width += utf8_width(code);
	}
	return width;
}
