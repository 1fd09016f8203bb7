/* SPDX-License-Identifier: MIT */
/* pack.c - a language as data: is it sound, which one is meant, what does it run. */
#include "core.h"

#include <strings.h>

#define PACK_NAME_MAX 32
#define PACK_LINE_MAX 256 /* of "#!...": the kernel's limit */

static int pack_refuse(sb_error *err, const char *pack, const char *why)
{
	return error_set(err, SB_ERR_INVALID_PACK, "pack", "pack \"%s\" %s", pack, why);
}

/* ---- Validation ---- */

/* ^[a-z][a-z0-9_+.-]{0,31}$ */
static bool pack_is_name(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > PACK_NAME_MAX || name[0] < 'a' || name[0] > 'z')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_+.-") == n;
}

static bool pack_is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* Packs are kept and walked: a record cut short would be read beyond its end. */
static int pack_check_size(size_t size, size_t least, const char *pack, sb_error *err)
{
	return size >= least ? 0 : pack_refuse(err, pack, "has a record of the wrong size");
}

/* "pack:NAME": a folder that was built beside our programs, whose manifest has the hashes. */
static bool pack_is_folder(const char *url)
{
	return strncmp(url, "pack:", 5) == 0 && pack_is_name(url + 5);
}

static int pack_check_artifact(const char *pack, const sb_artifact *in, bool mount, sb_error *err)
{
	char clean[4097];
	sb_artifact a;
	int rc = record_read(&a, sizeof a, in, "sb_artifact", err);

	if (rc == 0)
		rc = pack_check_size(in->size, sizeof a, pack, err);
	if (rc < 0)
		return rc;
	if (!a.name || !*a.name)
		return pack_refuse(err, pack, "has an artifact without a name");
	if (!a.url && !a.data)
		return pack_refuse(err, pack, "has an artifact with neither data nor a URL");
	if (a.data && a.bytes == 0)
		return pack_refuse(err, pack, "has an artifact whose data has no length");
	if (a.url && !mount && pack_is_folder(a.url))
		return 0;
	if (!a.sha256 || !pack_is_hash(a.sha256))
		return pack_refuse(err, pack,
				   "has an artifact whose sha256 is not 64 lower-case hex digits");
	if (!mount)
		return 0;
	if (!a.path || a.path[0] == '/' ||
	    sb_path_clean(a.path, clean, sizeof clean, NULL, NULL) < 0 || strcmp(clean, ".") == 0)
		return pack_refuse(err, pack, "has a mount whose path is not relative and clean");
	return 0;
}

static int pack_check_image(const char *pack, const sb_pack_way *way, sb_error *err)
{
	const char *at = way->image ? strstr(way->image, "@sha256:") : NULL;

	if (!at || at == way->image || !pack_is_hash(at + strlen("@sha256:")))
		return pack_refuse(err, pack,
				   "has an image that is not pinned; write NAME@sha256:HASH");
	return 0;
}

static bool pack_has_argument(const char *const *run)
{
	for (; *run; run++)
		if (strstr(*run, "{args}") && strcmp(*run, "{args}") != 0)
			return false;
	return true;
}

static int pack_check_way(const char *pack, const sb_pack_way *in, sb_error *err)
{
	const uint64_t known = (uint64_t)SB_CAP_COMPILES * 2 - 1;
	sb_pack_way way;
	int rc = record_read(&way, sizeof way, in, "sb_pack_way", err);
	bool has_run;

	if (rc == 0)
		rc = pack_check_size(in->size, sizeof way, pack, err);
	if (rc < 0)
		return rc;
	has_run = way.run && way.run[0];
	if (!way.backend || !pack_is_name(way.backend))
		return pack_refuse(err, pack, "has a way without a backend's name");
	if (way.caps & ~known)
		return error_set(err, SB_ERR_UNSUPPORTED, "pack",
				 "pack \"%s\" has a capability that this library does not know",
				 pack);
	if (strcmp(way.backend, "linux") == 0 && (!way.find || !way.find[0] || !has_run))
		return pack_refuse(err, pack,
				   "does not say for linux which program to find and run");
	if (strcmp(way.backend, "container") == 0 || strcmp(way.backend, "k8s") == 0)
		rc = has_run ? pack_check_image(pack, &way, err)
			     : pack_refuse(err, pack, "has an image without a command to run");
	else if (way.image)
		rc = pack_check_image(pack, &way, err);
	/* without a module the code is one: its argv must be said */
	if (rc == 0 && strcmp(way.backend, "wasm") == 0 && !way.module && !has_run)
		rc = pack_refuse(err, pack, "has no module for wasm");
	if (rc == 0 && has_run && !pack_has_argument(way.run))
		rc = pack_refuse(err, pack,
				 "has \"{args}\" inside a word; make it a word of its own");
	if (rc == 0 && way.code_file &&
	    (!*way.code_file || strchr(way.code_file, '/') ||
	     way.code_file[strspn(way.code_file, ".")] == '\0'))
		rc = pack_refuse(err, pack, "has a code file that is not a plain file name");
	if (rc == 0 && way.module)
		rc = pack_check_artifact(pack, way.module, false, err);
	for (size_t i = 0; rc == 0 && way.mounts && way.mounts[i]; i++)
		rc = pack_check_artifact(pack, way.mounts[i], true, err);
	return rc;
}

static int pack_check_limits(const char *pack, const sb_limits *in, sb_error *err)
{
	sb_limits limits;
	int rc = record_read(&limits, sizeof limits, in, "sb_limits", NULL);

	if (rc == 0)
		rc = limits_check_set(&limits, NULL);
	return rc < 0 ? pack_refuse(err, pack, "has limits out of range") : 0;
}

static int pack_check_names(const sb_pack *pack, sb_error *err)
{
	for (const char *const *alias = pack->aliases; alias && *alias; alias++)
		if (!pack_is_name(*alias))
			return error_set(
				err, SB_ERR_INVALID_PACK, "pack",
				"pack \"%s\" has the alias \"%s\"; use a lower-case letter, then "
				"a-z 0-9 _ + . -, 32 in all",
				pack->name, *alias);
	for (const char *const *ext = pack->extensions; ext && *ext; ext++)
		if ((*ext)[0] != '.' || !pack_is_name(*ext + 1) || strchr(*ext + 1, '.'))
			return error_set(
				err, SB_ERR_INVALID_PACK, "pack",
				"pack \"%s\" has the extension \"%s\"; write it like \".py\"",
				pack->name, *ext);
	return 0;
}

int sb_pack_validate(const sb_pack *in, sb_error *err)
{
	sb_pack pack;
	int rc;

	if (!in)
		return error_set(err, SB_ERR_INVALID_PACK, "pack", "there is no pack");
	rc = record_read(&pack, sizeof pack, in, "sb_pack", err);
	if (rc < 0)
		return rc;
	if (!pack.name || !pack_is_name(pack.name))
		return error_set(
			err, SB_ERR_INVALID_PACK, "pack",
			"a pack has the name \"%s\"; use a lower-case letter, then a-z 0-9 _ + . "
			"-, 32 in all",
			pack.name ? pack.name : "");
	rc = pack_check_size(in->size, sizeof pack, pack.name, err);
	if (rc == 0)
		rc = pack_check_names(&pack, err);
	if (rc == 0 && (!pack.ways || !pack.ways[0]))
		rc = pack_refuse(err, pack.name, "has no way to run");
	for (size_t i = 0; rc == 0 && pack.ways && pack.ways[i]; i++) {
		rc = pack_check_way(pack.name, pack.ways[i], err);
		for (size_t j = 0; rc == 0 && j < i; j++)
			if (strcmp(pack.ways[i]->backend, pack.ways[j]->backend) == 0)
				rc = pack_refuse(err, pack.name, "has two ways for one backend");
	}
	if (rc == 0)
		rc = pack_check_limits(pack.name, pack.limits, err);
	if (rc == 0)
		rc = pack_check_limits(pack.name, pack.compile_limits, err);
	if (rc == 0 && pack.memory_floor_bytes > INT64_MAX)
		rc = pack_refuse(err, pack.name, "has a negative memory floor");
	return rc;
}

/* ---- Which one is meant ---- */

static bool pack_listed(const char *const *list, const char *text, size_t len)
{
	for (; list && *list; list++)
		if (strncasecmp(*list, text, len) == 0 && (*list)[len] == '\0')
			return true;
	return false;
}

static bool pack_is_called(const sb_pack *pack, const char *text, size_t len)
{
	return (strncasecmp(pack->name, text, len) == 0 && pack->name[len] == '\0') ||
	       pack_listed(pack->aliases, text, len);
}

static const sb_pack *pack_called(const sb_pack *const *packs, const char *text, size_t len)
{
	for (; len > 0 && packs && *packs; packs++)
		if (pack_is_called(*packs, text, len))
			return *packs;
	return NULL;
}

const sb_pack *pack_find(const sb_pack *const *packs, const char *language)
{
	static const char blanks[] = " \t\r\n\v\f";
	size_t len;

	if (!language)
		return NULL;
	language += strspn(language, blanks);
	len = strlen(language);
	while (len > 0 && strchr(blanks, language[len - 1]))
		len--;
	return pack_called(packs, language, len);
}

const sb_pack *pack_find_extension(const sb_pack *const *packs, const char *file_name)
{
	const char *base = path_base(file_name), *dot = strrchr(base, '.');

	if (!dot || dot == base)
		return NULL;
	for (; packs && *packs; packs++)
		if (pack_listed((*packs)->extensions, dot, strlen(dot)))
			return *packs;
	return NULL;
}

/* By language name or by a program that the pack would look for. */
static const sb_pack *pack_of_program(const sb_pack *const *packs, const char *program, size_t len)
{
	const sb_pack *pack = pack_called(packs, program, len);

	for (; !pack && packs && *packs; packs++) {
		const sb_pack_way *way = pack_way(*packs, "linux");

		if (way && pack_listed(way->find, program, len))
			pack = *packs;
	}
	return pack;
}

static const char *pack_skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static const char *pack_word_end(const char *p, const char *end)
{
	while (p < end && *p != ' ' && *p != '\t' && *p != '\r')
		p++;
	return p;
}

/* The last element of a path that is not a C string. */
static const char *pack_word_base(const char *word, const char *end)
{
	const char *base = word;

	for (; word < end; word++)
		if (*word == '/')
			base = word + 1;
	return base;
}

/* "#!/usr/bin/env -S A=b python3 -u": env's options and assignments stand before the program. */
static const char *pack_behind_env(const char *p, const char *end)
{
	for (;;) {
		const char *stop;

		p = pack_skip_blanks(p, end);
		stop = pack_word_end(p, end);
		if (p == stop || (*p != '-' && !memchr(p, '=', (size_t)(stop - p))))
			return p;
		p = stop;
	}
}

const sb_pack *pack_find_shebang(const sb_pack *const *packs, const void *code, size_t len)
{
	const char *text = code, *end, *word, *stop, *base;
	const sb_pack *pack;

	if (len < 3 || memcmp(text, "#!", 2) != 0)
		return NULL;
	len = len < PACK_LINE_MAX ? len : PACK_LINE_MAX;
	end = memchr(text, '\n', len);
	end = end ? end : text + len;
	word = pack_skip_blanks(text + 2, end);
	stop = pack_word_end(word, end);
	base = pack_word_base(word, stop);
	if (stop - base == 3 && memcmp(base, "env", 3) == 0) {
		word = pack_behind_env(stop, end);
		stop = pack_word_end(word, end);
		base = pack_word_base(word, stop);
	}
	pack = pack_of_program(packs, base, (size_t)(stop - base));
	/* "python3.11", "perl5.36.0": the version does not change the language */
	while (!pack && stop > base && ((stop[-1] >= '0' && stop[-1] <= '9') || stop[-1] == '.')) {
		stop--;
		pack = pack_of_program(packs, base, (size_t)(stop - base));
	}
	return pack;
}

const sb_pack_way *pack_way(const sb_pack *pack, const char *backend)
{
	if (strcmp(backend, "process") == 0 || strcmp(backend, "seatbelt") == 0)
		backend = "linux"; /* they find the same programs on the host */
	for (const sb_pack_way *const *way = pack->ways; way && *way; way++)
		if (strcmp((*way)->backend, backend) == 0)
			return *way;
	return NULL;
}

/* ---- All of them together ---- */

static int pack_check_twice(const sb_pack *const *packs, const sb_pack *pack, const char *name,
			    sb_error *err)
{
	for (; *packs != pack; packs++)
		if (pack_is_called(*packs, name, strlen(name)))
			return error_set(err, SB_ERR_INVALID_PACK, "pack",
					 "packs \"%s\" and \"%s\" are both called \"%s\"",
					 (*packs)->name, pack->name, name);
	return 0;
}

static int pack_check_own_names(const sb_pack *pack, sb_error *err)
{
	for (const char *const *alias = pack->aliases; alias && *alias; alias++)
		if (strcmp(*alias, pack->name) == 0 || strv_has(alias + 1, *alias))
			return error_set(err, SB_ERR_INVALID_PACK, "pack",
					 "pack \"%s\" has the name \"%s\" twice", pack->name,
					 *alias);
	return 0;
}

int pack_validate_all(const sb_pack *const *packs, sb_error *err)
{
	for (const sb_pack *const *p = packs; p && *p; p++) {
		int rc = sb_pack_validate(*p, err);

		if (rc == 0)
			rc = pack_check_own_names(*p, err);
		for (const sb_pack *const *q = packs; rc == 0 && q != p; q++)
			if (*q == *p)
				rc = pack_refuse(err, (*p)->name, "is in the list twice");
		if (rc == 0)
			rc = pack_check_twice(packs, *p, (*p)->name, err);
		for (const char *const *a = (*p)->aliases; rc == 0 && a && *a; a++)
			rc = pack_check_twice(packs, *p, *a, err);
		for (const char *const *e = (*p)->extensions; rc == 0 && e && *e; e++)
			for (const sb_pack *const *q = packs; rc == 0 && q != p; q++)
				if (pack_listed((*q)->extensions, *e, strlen(*e)))
					rc = error_set(
						err, SB_ERR_INVALID_PACK, "pack",
						"packs \"%s\" and \"%s\" both have the extension "
						"\"%s\"",
						(*q)->name, (*p)->name, *e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- Commands ---- */

static int pack_add_word(strv *out, const char *word, const char *code_path)
{
	const char *mark = "{code}", *at = strstr(word, mark);
	buf text;
	char *done;
	int rc;

	if (!at)
		return strv_add(out, word);
	buf_init(&text, SIZE_MAX);
	for (; at; at = strstr(word, mark)) {
		buf_add(&text, word, (size_t)(at - word));
		buf_add_str(&text, code_path);
		word = at + strlen(mark);
	}
	buf_add_str(&text, word);
	done = buf_take(&text, NULL);
	rc = done ? strv_add(out, done) : SB_ERR_NO_MEMORY;
	free(done);
	return rc;
}

int pack_expand(const char *const *run, const char *program, const char *code_path,
		const char *const *args, char ***argv, sb_error *err)
{
	bool placed = !args || !args[0];
	strv out = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && run[i]; i++) {
		if (i == 0 && program) {
			rc = strv_add(&out, program);
		} else if (strcmp(run[i], "{args}") == 0) {
			rc = strv_add_all(&out, args);
			placed = true;
		} else {
			rc = pack_add_word(&out, run[i], code_path);
		}
	}
	if (rc == 0 && !placed) {
		strv_release(&out);
		return error_set(err, SB_ERR_INVALID_SPEC, "pack",
				 "this language takes no arguments");
	}
	if (rc == 0 && !(*argv = strv_take(&out)))
		rc = SB_ERR_NO_MEMORY;
	if (rc < 0) {
		strv_release(&out);
		return error_no_memory(err, "pack");
	}
	return 0;
}
