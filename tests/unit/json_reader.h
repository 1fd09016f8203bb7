/* SPDX-License-Identifier: MIT */
/* json_reader.h - a strict checker and string reader, written apart from the writer under test. */
#ifndef SB_TESTS_JSON_READER_H
#define SB_TESTS_JSON_READER_H

#include <ctype.h>

static const char *json_reader_value(const char *p);

static inline const char *json_reader_blank(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* Adds a code point below 0x10000. */
static inline size_t json_reader_utf8(unsigned code, char *out, size_t n)
{
	char bytes[3] = { (char)code, 0, 0 };
	size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;

	if (len == 2)
		bytes[0] = (char)(0xc0 | code >> 6);
	if (len == 3) {
		bytes[0] = (char)(0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
	}
	if (len > 1)
		bytes[len - 1] = (char)(0x80 | (code & 0x3f));
	if (out)
		memcpy(out + n, bytes, len);
	return n + len;
}

/* Behind the string, or NULL.  out (or NULL) gets the decoded bytes, *len their number. */
static inline const char *json_reader_string(const char *p, char *out, size_t *len)
{
	size_t n = 0;

	if (*p++ != '"')
		return NULL;
	while (*p != '"') {
		unsigned code;

		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p != '\\') {
			if (out)
				out[n] = *p;
			n++;
			p++;
			continue;
		}
		p++;
		if (*p == 'u') {
			char hex[5] = { 0 };

			for (int i = 0; i < 4; i++)
				if (!isxdigit((unsigned char)(hex[i] = p[1 + i])))
					return NULL;
			code = (unsigned)strtoul(hex, NULL, 16);
			if (code >= 0xd800 && code <= 0xdfff) /* the writer has no use for pairs */
				return NULL;
			p += 5;
			n = json_reader_utf8(code, out, n);
			continue;
		} else {
			const char *names = "\"\\/bfnrt", *at = *p ? strchr(names, *p) : NULL;

			if (!at)
				return NULL;
			code = (unsigned char)"\"\\/\b\f\n\r\t"[at - names];
			p++;
		}
		if (out)
			out[n] = (char)code;
		n++;
	}
	if (len)
		*len = n;
	return p + 1;
}

static inline const char *json_reader_number(const char *p)
{
	if (*p == '-')
		p++;
	if (!isdigit((unsigned char)*p) || (*p == '0' && isdigit((unsigned char)p[1])))
		return NULL;
	p += strspn(p, "0123456789");
	if (*p == '.') {
		p++;
		if (!isdigit((unsigned char)*p))
			return NULL;
		p += strspn(p, "0123456789");
	}
	return p;
}

static inline const char *json_reader_members(const char *p, char end)
{
	p = json_reader_blank(p + 1);
	if (*p == end)
		return p + 1;
	for (;;) {
		if (end == '}') {
			p = json_reader_string(json_reader_blank(p), NULL, NULL);
			if (!p || *(p = json_reader_blank(p)) != ':')
				return NULL;
			p++;
		}
		p = json_reader_value(p);
		if (!p)
			return NULL;
		p = json_reader_blank(p);
		if (*p == end)
			return p + 1;
		if (*p++ != ',')
			return NULL;
	}
}

static const char *json_reader_value(const char *p)
{
	p = json_reader_blank(p);
	if (*p == '{')
		return json_reader_members(p, '}');
	if (*p == '[')
		return json_reader_members(p, ']');
	if (*p == '"')
		return json_reader_string(p, NULL, NULL);
	for (size_t i = 0; i < 3; i++) {
		const char *word = (const char *const[]){ "true", "false", "null" }[i];

		if (strncmp(p, word, strlen(word)) == 0)
			return p + strlen(word);
	}
	return json_reader_number(p);
}

/* 1 if the whole text is one JSON value. */
static inline int json_reader_ok(const char *text)
{
	const char *p = json_reader_value(text);

	return p && *json_reader_blank(p) == '\0';
}

#endif /* SB_TESTS_JSON_READER_H */
