/* SPDX-License-Identifier: MIT */
/* json.c - a writer that cannot make invalid text: what fails is the buffer, and it says so. */
#include "base.h"

#define JSON_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void json_init(json *j, buf *out)
{
	memset(j, 0, sizeof *j);
	j->out = out;
}

static void json_value(json *j)
{
	if (j->comma && !j->after_name)
		buf_add_char(j->out, ',');
	j->after_name = false;
	j->comma = true;
}

void json_open(json *j, char bracket)
{
	json_value(j);
	buf_add_char(j->out, bracket);
	j->comma = false;
	j->depth++;
}

void json_close(json *j, char bracket)
{
	buf_add_char(j->out, bracket);
	j->comma = true;
	j->depth--;
}

/* Of one to three bytes: what lies further out is never escaped. */
static unsigned json_code_point(const char *data, size_t n)
{
	const unsigned char *p = (const unsigned char *)data;

	if (n == 1)
		return p[0];
	if (n == 2)
		return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

static void json_quote(json *j, const char *data, size_t len)
{
	size_t i = 0, plain = 0; /* data[plain..i) is still to be copied as it is */

	buf_add_char(j->out, '"');
	while (i < len) {
		unsigned char c = (unsigned char)data[i];
		size_t n = utf8_sequence(data + i, len - i);

		bool copied = n == 1 ? c >= 0x20 && c != 0x7f && c != '"' && c != '\\'
				    : n > 0 && !utf8_is_control(data + i, n);

		if (copied) {
			i += n;
			continue;
		}
		buf_add(j->out, data + plain, i - plain);
		if (n == 0)
			buf_add_str(j->out, JSON_REPLACEMENT);
		else if (c == '"' || c == '\\')
			buf_add_fmt(j->out, "\\%c", c);
		else if (c == '\n')
			buf_add_str(j->out, "\\n");
		else if (c == '\t')
			buf_add_str(j->out, "\\t");
		else if (c == '\r')
			buf_add_str(j->out, "\\r");
		else
			buf_add_fmt(j->out, "\\u%04x", json_code_point(data + i, n));
		i += n ? n : 1;
		plain = i;
	}
	buf_add(j->out, data + plain, len - plain);
	buf_add_char(j->out, '"');
}

void json_name(json *j, const char *name)
{
	json_value(j);
	json_quote(j, name, strlen(name));
	buf_add_char(j->out, ':');
	j->after_name = true;
}

void json_text(json *j, const char *text)
{
	if (!text) {
		json_null(j);
		return;
	}
	json_bytes(j, text, strlen(text));
}

void json_bytes(json *j, const char *data, size_t len)
{
	json_value(j);
	json_quote(j, data, len);
}

void json_base64(json *j, const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	char group[4];

	json_value(j);
	buf_add_char(j->out, '"');
	while (len > 0) {
		size_t n = len < 3 ? len : 3;
		uint32_t bits = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) |
				(n > 2 ? p[2] : 0);

		group[0] = digits[bits >> 18];
		group[1] = digits[bits >> 12 & 63];
		group[2] = n > 1 ? digits[bits >> 6 & 63] : '=';
		group[3] = n > 2 ? digits[bits & 63] : '=';
		buf_add(j->out, group, sizeof group);
		p += n;
		len -= n;
	}
	buf_add_char(j->out, '"');
}

void json_uint(json *j, uint64_t value)
{
	json_value(j);
	buf_add_fmt(j->out, "%llu", (unsigned long long)value);
}

void json_int(json *j, int64_t value)
{
	json_value(j);
	buf_add_fmt(j->out, "%lld", (long long)value);
}

void json_bool(json *j, bool value)
{
	json_value(j);
	buf_add_str(j->out, value ? "true" : "false");
}

void json_null(json *j)
{
	json_value(j);
	buf_add_str(j->out, "null");
}

void json_milli(json *j, uint64_t micros)
{
	json_value(j);
	buf_add_fmt(j->out, "%llu.%03u", (unsigned long long)(micros / 1000),
		    (unsigned)(micros % 1000));
}

void json_member_text(json *j, const char *name, const char *text)
{
	json_name(j, name);
	json_text(j, text);
}

void json_member_uint(json *j, const char *name, uint64_t value)
{
	json_name(j, name);
	json_uint(j, value);
}

void json_member_int(json *j, const char *name, int64_t value)
{
	json_name(j, name);
	json_int(j, value);
}

void json_member_bool(json *j, const char *name, bool value)
{
	json_name(j, name);
	json_bool(j, value);
}

void json_member_milli(json *j, const char *name, uint64_t micros)
{
	json_name(j, name);
	json_milli(j, micros);
}

void json_member_bytes(json *j, const char *name, const void *data, size_t len)
{
	json_name(j, name);
	json_bytes(j, data, len);
	if (!utf8_valid(data, len)) {
		json_value(j);
		buf_add_fmt(j->out, "\"%s_base64\":", name);
		j->after_name = true;
		json_base64(j, data, len);
	}
}
