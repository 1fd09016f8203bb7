/* SPDX-License-Identifier: MIT */
/* buf.c - growing bytes with a hard maximum, and vectors of strings. */
#include "base.h"

#define BUF_FIRST 64

void buf_init(buf *b, size_t max)
{
	memset(b, 0, sizeof *b);
	b->max = max < SIZE_MAX / 4 ? max : SIZE_MAX / 4;
}

/* Room for `more` bytes and a NUL; sets the sticky error if there is none. */
static bool buf_reserve(buf *b, size_t more)
{
	size_t need, cap;
	char *data;

	if (b->failed)
		return false;
	if (more > b->max - b->len) {
		b->failed = SB_ERR_INVALID;
		return false;
	}
	need = b->len + more + 1;
	if (need <= b->cap)
		return true;
	cap = b->cap ? b->cap * 2 : BUF_FIRST;
	if (cap < need)
		cap = need;
	if (cap > b->max + 1)
		cap = b->max + 1;
	data = realloc(b->data, cap);
	if (!data) {
		b->failed = SB_ERR_NO_MEMORY;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void buf_add(buf *b, const void *data, size_t len)
{
	if (len == 0 || !buf_reserve(b, len))
		return;
	memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_add_str(buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_add_char(buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_add_fmt(buf *b, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0) {
		if (!b->failed)
			b->failed = SB_ERR_INVALID;
		return;
	}
	if (len == 0 || !buf_reserve(b, (size_t)len))
		return;
	va_start(args, fmt);
	vsnprintf(b->data + b->len, (size_t)len + 1, fmt, args);
	va_end(args);
	b->len += (size_t)len;
}

char *buf_take(buf *b, size_t *len)
{
	size_t max = b->max, taken = b->len;
	char *data = b->data;

	if (!b->failed && !data)
		data = calloc(1, 1);
	if (b->failed) {
		free(data);
		data = NULL;
		taken = 0;
	}
	buf_init(b, max);
	if (len)
		*len = taken;
	return data;
}

void buf_release(buf *b)
{
	free(b->data);
	buf_init(b, b->max);
}

void *buf_grow(void *at, size_t len, size_t *cap, size_t item)
{
	size_t more = *cap ? *cap * 2 : 32;

	if (len < *cap)
		return at;
	at = more < SIZE_MAX / item / 2 ? realloc(at, more * item) : NULL;
	if (at)
		*cap = more;
	return at;
}

static int strv_own(strv *v, char *text)
{
	size_t cap;
	char **at;

	if (!text)
		return SB_ERR_NO_MEMORY;
	if (v->len + 2 > v->cap) {
		cap = v->cap ? v->cap * 2 : 8;
		at = cap < SIZE_MAX / sizeof *at / 2 ? realloc(v->at, cap * sizeof *at) : NULL;
		if (!at) {
			free(text);
			return SB_ERR_NO_MEMORY;
		}
		v->at = at;
		v->cap = cap;
	}
	v->at[v->len++] = text;
	v->at[v->len] = NULL;
	return 0;
}

int strv_add(strv *v, const char *text)
{
	return strv_own(v, strdup(text));
}

int strv_add_len(strv *v, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? malloc(len + 1) : NULL;

	if (copy) {
		if (len)
			memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return strv_own(v, copy);
}

int strv_add_fmt(strv *v, const char *fmt, ...)
{
	char small[256], *text = NULL;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(small, sizeof small, fmt, args);
	va_end(args);
	if (len >= 0 && (size_t)len < sizeof small)
		return strv_add_len(v, small, (size_t)len);
	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	return strv_own(v, len < 0 ? NULL : text);
}

int strv_add_all(strv *v, const char *const *list)
{
	int rc = 0;

	for (; list && *list && rc == 0; list++)
		rc = strv_add(v, *list);
	return rc;
}

char **strv_take(strv *v)
{
	char **at = v->at ? v->at : calloc(1, sizeof *at);

	memset(v, 0, sizeof *v);
	return at;
}

void strv_release(strv *v)
{
	strv_free_list(v->at);
	memset(v, 0, sizeof *v);
}

void strv_free_list(char **list)
{
	if (!list)
		return;
	for (char **p = list; *p; p++)
		free(*p);
	free(list);
}

size_t strv_count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

bool strv_has(const char *const *list, const char *text)
{
	for (; list && *list; list++)
		if (strcmp(*list, text) == 0)
			return true;
	return false;
}
