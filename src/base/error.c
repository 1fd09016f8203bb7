/* SPDX-License-Identifier: MIT */
/*
 * error.c - fills the fixed error record.  A message that does not fit has "..." for its middle, cut at
 * characters; bytes that would break the one line or the encoding become '?'.
 */
#include "base.h"

#include <errno.h>

#define ERROR_CUT "..."

/* What does not fit loses its middle, at characters: the end says why, and what to do.  `whole` is all
 * of it. */
static void error_squeeze(char *out, size_t cap, const char *whole, size_t len)
{
	size_t head = (cap - sizeof ERROR_CUT) / 2, tail = cap - sizeof ERROR_CUT - head;

	while (head > 0 && ((unsigned char)whole[head] & 0xc0) == 0x80)
		head--;
	while (tail > 0 && ((unsigned char)whole[len - tail] & 0xc0) == 0x80)
		tail--;
	memcpy(out, whole, head);
	memcpy(out + head, ERROR_CUT, sizeof ERROR_CUT - 1);
	memcpy(out + head + sizeof ERROR_CUT - 1, whole + len - tail, tail + 1);
}

/* Writes at most cap bytes with the NUL.  Without memory it is the end that is lost. */
static void error_format(char *out, size_t cap, const char *fmt, va_list args)
{
	va_list again;
	size_t keep;
	char *whole;
	int wanted;

	va_copy(again, args);
	wanted = vsnprintf(out, cap, fmt, args);
	if (wanted < 0)
		out[0] = '\0';
	if (wanted >= 0 && (size_t)wanted >= cap && cap > 2 * sizeof ERROR_CUT) {
		whole = malloc((size_t)wanted + 1);
		if (whole) {
			vsnprintf(whole, (size_t)wanted + 1, fmt, again);
			error_squeeze(out, cap, whole, (size_t)wanted);
		} else {
			keep = cap - sizeof ERROR_CUT;
			while (keep > 0 && ((unsigned char)out[keep] & 0xc0) == 0x80)
				keep--;
			memcpy(out + keep, ERROR_CUT, sizeof ERROR_CUT);
		}
		free(whole);
	}
	va_end(again);
	utf8_make_plain(out);
}

static void error_start(sb_error *err, int code, int os_errno, const char *where)
{
	memset(err, 0, sizeof *err);
	err->code = code;
	err->kind = -code / 100;
	err->os_errno = os_errno;
	snprintf(err->where, sizeof err->where, "%s", where ? where : "");
	utf8_make_plain(err->where);
}

int error_set(sb_error *err, int code, const char *where, const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (!err)
		return code;
	error_start(err, code, 0, where);
	va_start(args, fmt);
	error_format(err->message, sizeof err->message, fmt, args);
	va_end(args);
	errno = saved;
	return code;
}

/* The C locale's text, whatever the host's locale and thread. */
static void error_errno_text(int os_errno, char *out, size_t cap)
{
#ifdef __GLIBC__
	const char *text = strerrordesc_np(os_errno);
#else
	const char *text = strerror(os_errno);
#endif

	if (os_errno == EMFILE)
		text = "too many open files: raise `ulimit -n`";
	if (os_errno == ENFILE)
		text = "too many open files on this machine: raise fs.file-max";
	if (!text)
		snprintf(out, cap, ": errno %d", os_errno);
	else
		snprintf(out, cap, ": %s", text);
	/* our messages begin in lower case, but for words like "RFS specific error" */
	if (out[2] >= 'A' && out[2] <= 'Z' && out[3] >= 'a' && out[3] <= 'z')
		out[2] = (char)(out[2] - 'A' + 'a');
}

int error_errno(sb_error *err, int code, int os_errno, const char *where, const char *fmt, ...)
{
	int saved = errno;
	char reason[80];
	va_list args;
	size_t len;

	if (!err)
		return code;
	error_start(err, code, os_errno, where);
	error_errno_text(os_errno, reason, sizeof reason);
	len = strlen(reason);
	va_start(args, fmt);
	error_format(err->message, sizeof err->message - len, fmt, args);
	va_end(args);
	memcpy(err->message + strlen(err->message), reason, len + 1);
	errno = saved;
	return code;
}

int error_no_memory(sb_error *err, const char *where)
{
	return error_set(err, SB_ERR_NO_MEMORY, where, "out of memory");
}

/* Cuts to at most len bytes, at a character; returns the length. */
static size_t error_cut(char *text, size_t len)
{
	size_t had = strlen(text);

	if (had <= len)
		return had;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	text[len] = '\0';
	return len;
}

void error_prefix(sb_error *err, const char *fmt, ...)
{
	int saved = errno;
	char old[sizeof err->message], head[sizeof err->message];
	const size_t room = sizeof err->message - 1, least = 300;
	size_t n, len;
	va_list args;

	if (!err)
		return;
	memcpy(old, err->message, sizeof old);
	old[sizeof old - 1] = '\0';
	len = strlen(old);
	va_start(args, fmt);
	error_format(head, sizeof head, fmt, args);
	va_end(args);
	/* the end of a message is what to do: a long prefix loses its own end first */
	n = error_cut(head, room - (len < least ? len : least));
	len = error_cut(old, room - n);
	memcpy(err->message, head, n);
	memcpy(err->message + n, old, len + 1);
	errno = saved;
}

int error_code_of_errno(int os_errno)
{
	switch (os_errno) {
	case ENOENT:
		return SB_ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return SB_ERR_FORBIDDEN;
	case ENOTDIR:
		return SB_ERR_NOT_DIR;
	case EISDIR:
		return SB_ERR_IS_DIR;
	case ENOMEM:
		return SB_ERR_NO_MEMORY;
	default:
		return SB_ERR_IO;
	}
}
