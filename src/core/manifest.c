/* SPDX-License-Identifier: MIT */
#include "manifest.h"

#include <ctype.h>

#define FIRST_LINE "sandbox-pack 1"

typedef struct line {
	const char *at, *end;
	size_t number;
} line;

static int bad(const line *l, const char *why, sb_error *err)
{
	return error_set(err, SB_ERR_INVALID, "pack", "line %zu of the manifest %s", l->number, why);
}

/* The next word, up to a blank; false if it is empty or longer than `cap` has room for. */
static bool take_word(line *l, char *out, size_t cap)
{
	const char *end = memchr(l->at, ' ', (size_t)(l->end - l->at));
	size_t len = (size_t)((end ? end : l->end) - l->at);

	if (len == 0 || len >= cap)
		return false;
	memcpy(out, l->at, len);
	out[len] = '\0';
	l->at += len + (end ? 1 : 0);
	return true;
}

static bool take_number(line *l, uint64_t *out)
{
	char word[24], *end;

	if (!take_word(l, word, sizeof word) || !isdigit((unsigned char)word[0]) || strlen(word) > 18)
		return false;
	*out = strtoull(word, &end, 10);
	return *end == '\0';
}

static bool is_hash(const char *text)
{
	return strspn(text, "0123456789abcdef") == 64 && text[64] == '\0';
}

static bool is_name(const char *text)
{
	return text[0] != '.' && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789._-+") == strlen(text);
}

static int take_file(line *l, manifest_file *file, bool with_path, sb_error *err)
{
	if (file->name[0])
		return bad(l, "says again what an earlier line said", err);
	if (!take_word(l, file->name, sizeof file->name) || !is_name(file->name))
		return bad(l, "has no plain file name", err);
	if (!take_word(l, file->sha256, sizeof file->sha256) || !is_hash(file->sha256))
		return bad(l, "has no SHA-256 of 64 lower-case hex digits", err);
	if (!take_number(l, &file->bytes))
		return bad(l, "has no length in bytes", err);
	if (with_path && (!take_word(l, file->path, sizeof file->path) ||
			  !path_is_clean_absolute(file->path) || strcmp(file->path, "/") == 0))
		return bad(l, "has no clean absolute path for the guest", err);
	return l->at == l->end ? 0 : bad(l, "has more words than it may", err);
}

static int take_text(line *l, char *out, size_t cap, bool words, sb_error *err)
{
	size_t len = (size_t)(l->end - l->at);

	if (out[0])
		return bad(l, "says again what an earlier line said", err);
	if (len == 0 || len >= cap || (!words && memchr(l->at, ' ', len)))
		return bad(l, "has no value, or one that is too long", err);
	memcpy(out, l->at, len);
	out[len] = '\0';
	return 0;
}

static int take_line(line *l, manifest *m, sb_error *err)
{
	char key[16];

	if (!take_word(l, key, sizeof key))
		return bad(l, "has no key", err);
	if (strcmp(key, "name") == 0)
		return take_text(l, m->name, sizeof m->name, false, err);
	if (strcmp(key, "version") == 0)
		return take_text(l, m->version, sizeof m->version, false, err);
	if (strcmp(key, "engine") == 0)
		return take_text(l, m->engine, sizeof m->engine, false, err);
	if (strcmp(key, "note") == 0)
		return take_text(l, m->note, sizeof m->note, true, err);
	if (strcmp(key, "module") == 0)
		return take_file(l, &m->module, false, err);
	if (strcmp(key, "source") == 0)
		return take_file(l, &m->source, false, err);
	if (strcmp(key, "file") != 0)
		return bad(l, "has a key that is not known", err);
	if (m->file_count == MANIFEST_MAX_FILES)
		return bad(l, "names one file too many", err);
	int code = take_file(l, &m->files[m->file_count], true, err);
	m->file_count += code == 0;
	return code;
}

static int check_whole(const manifest *m, sb_error *err)
{
	const char *missing = !m->name[0]	 ? "name"
			      : !m->version[0]	 ? "version"
			      : !m->engine[0]	 ? "engine"
			      : !m->module.name[0] ? "module"
						   : NULL;

	if (missing)
		return error_set(err, SB_ERR_INVALID, "pack", "the manifest has no line \"%s\"", missing);
	for (size_t i = 0; i < m->file_count; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(m->files[i].path, m->files[j].path) == 0)
				return error_set(err, SB_ERR_INVALID, "pack",
						 "the manifest has two files for \"%s\"", m->files[i].path);
	return 0;
}

int manifest_parse(const char *text, size_t len, manifest *out, sb_error *err)
{
	line l = { .at = text };
	int code = 0;

	memset(out, 0, sizeof *out);
	if (len > MANIFEST_MAX_BYTES || memchr(text, '\0', len) || !utf8_valid(text, len))
		return error_set(err, SB_ERR_INVALID, "pack",
				 "the manifest is no text of at most %d bytes", MANIFEST_MAX_BYTES);
	for (const char *at = text; code == 0 && at < text + len; at = l.end + 1) {
		const char *end = memchr(at, '\n', (size_t)(text + len - at));

		if (!end)
			return error_set(err, SB_ERR_INVALID, "pack", "the manifest ends within a line");
		l = (line){ at, end, l.number + 1 };
		if (l.number > 1)
			code = take_line(&l, out, err);
		else if (end - at != strlen(FIRST_LINE) || memcmp(at, FIRST_LINE, strlen(FIRST_LINE)))
			return error_set(err, SB_ERR_INVALID, "pack",
					 "the manifest does not begin with \"%s\"", FIRST_LINE);
	}
	return code < 0 ? code : check_whole(out, err);
}
