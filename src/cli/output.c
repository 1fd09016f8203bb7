/* SPDX-License-Identifier: MIT */
/* output.c - what `sandbox` itself says: text, one-line errors, an error as JSON. */
#include "cli.h"
#include "../base/utf8.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_PATIENCE_MS = 300 };

static bool text_reserve(cli_text *text, size_t more)
{
	if (text->failed)
		return false;
	if (text->cap - text->len > more)
		return true;
	size_t cap = text->cap < 512 ? 512 : text->cap;
	while (cap - text->len <= more)
		cap *= 2;
	char *data = realloc(text->data, cap);
	if (data == NULL) {
		text->failed = true;
		return false;
	}
	text->data = data;
	text->cap = cap;
	return true;
}

void text_add_len(cli_text *text, const char *words, size_t len)
{
	if (!text_reserve(text, len))
		return;
	memcpy(text->data + text->len, words, len);
	text->len += len;
	text->data[text->len] = '\0';
}

void text_add(cli_text *text, const char *words)
{
	text_add_len(text, words, strlen(words));
}

void text_add_fmt(cli_text *text, const char *fmt, ...)
{
	va_list args, again;

	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, args);
	if (len < 0)
		text->failed = true;
	else if (text_reserve(text, (size_t)len)) {
		vsnprintf(text->data + text->len, (size_t)len + 1, fmt, again);
		text->len += (size_t)len;
	}
	va_end(again);
	va_end(args);
}

static unsigned code_point(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;

	if (len == 1)
		return p[0];
	if (len == 2)
		return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

void text_add_json(cli_text *text, const char *words)
{
	text_add(text, "\"");
	for (const char *p = words; *p != '\0';) {
		size_t len = utf8_sequence(p, strnlen(p, 4));
		if (len == 0)
			text_add(text, "\xef\xbf\xbd");
		else if (*p == '"' || *p == '\\')
			text_add_fmt(text, "\\%c", *p);
		else if (utf8_is_control(p, len))
			text_add_fmt(text, "\\u%04x", code_point(p, len));
		else
			text_add_len(text, p, len);
		p += len == 0 ? 1 : len;
	}
	text_add(text, "\"");
}

void text_release(cli_text *text)
{
	free(text->data);
	*text = (cli_text){ 0 };
}

int output_write(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n >= 0) {
			p += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) { /* whoever shares it made it non-blocking */
			struct pollfd wait = { .fd = fd, .events = POLLOUT };
			poll(&wait, 1, -1);
		} else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int output_text(int fd, cli_text *text, int ok)
{
	int rc = text->failed ? -ENOMEM : output_write(fd, text->data, text->len);

	text_release(text);
	if (rc == 0)
		return ok;
	if (rc == -EPIPE)
		return CLI_EXIT_PIPE;
	output_line("cannot write the output: %s", units_errno_text(-rc, (char[UNITS_TEXT]){ 0 }));
	return CLI_EXIT_OURS;
}

void text_add_plain(cli_text *text, const char *words)
{
	size_t from = text->len;

	text_add(text, words);
	if (text->len > from)
		text->len = from + utf8_make_plain(text->data + from);
}

void output_line(const char *fmt, ...)
{
	char line[1024] = "sandbox: ";
	size_t start = strlen(line);
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(line + start, sizeof line - start - 1, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	size_t end = start + utf8_make_plain(line + start); /* a file name must not draw there */
	line[end++] = '\n';
	/* it fits into what poll() promises; a reader who is stuck does not hold us */
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	if (poll(&ready, 1, LINE_PATIENCE_MS) != 0) /* where no descriptor is permitted there is no poll() */
		(void)output_write(STDERR_FILENO, line, end);
}

void text_add_error_json(cli_text *text, const sb_error *err)
{
	text_add(text, "{\"schema\":1,\"outcome\":null,\"error\":{\"code\":");
	text_add_json(text, sb_code_name(err->code));
	text_add(text, ",\"kind\":");
	text_add_json(text, sb_kind_name(err->kind));
	text_add(text, ",\"where\":");
	text_add_json(text, err->where);
	text_add(text, ",\"message\":");
	text_add_json(text, err->message);
	text_add_fmt(text, ",\"errno\":%d}}", err->os_errno);
}

bool output_colour(int fd)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return (no == NULL || *no == '\0') && (term == NULL || strcmp(term, "dumb") != 0) &&
	       isatty(fd) == 1;
}

int error_fill(sb_error *err, int code, const char *where, const char *fmt, ...)
{
	va_list args;

	*err = (sb_error){ .code = code, .kind = sb_error_kind(code) };
	snprintf(err->where, sizeof err->where, "%s", where);
	va_start(args, fmt);
	vsnprintf(err->message, sizeof err->message, fmt, args);
	va_end(args);
	utf8_make_plain(err->message);
	return code;
}
