/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define OF(type, ...) (&(const type){ .size = sizeof(type), __VA_ARGS__ })
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LINUX .backend = "linux", .find = LIST("x"), .run = LIST("x", "{code}", "{args}")

static int with_way(sb_pack_way way)
{
	const sb_pack_way *const ways[] = { &way, NULL };
	const sb_pack pack = { .size = sizeof pack, .name = "p", .ways = ways };

	way.size = sizeof way;
	return sb_pack_validate(&pack, NULL);
}

static void ways_are_checked(void **state)
{
	const sb_artifact *bad_mount[] = { OF(sb_artifact, .name = "m", .url = "u", .sha256 = HASH,
					      .path = "/lib"),
					   NULL },
			  *good_mount[] = { OF(sb_artifact, .name = "m", .url = "u", .sha256 = HASH,
					       .path = "lib"),
					    NULL },
			  *up_mount[] = { OF(sb_artifact, .name = "m", .url = "u", .sha256 = HASH,
					     .path = "../lib"),
					  NULL };
	const struct {
		sb_pack_way way;
		int rc;
	} rows[] = {
		{ { LINUX }, 0 },
		{ { LINUX, .code_file = "__main__.py" }, 0 },
		{ { LINUX, .code_file = "a/b" }, -1 },
		{ { LINUX, .code_file = ".." }, -1 },
		{ { LINUX, .code_file = "" }, -1 },
		{ { .backend = "linux", .run = LIST("x") }, -1 },
		{ { .backend = "linux", .find = LIST("x") }, -1 },
		{ { .backend = "linux", .find = LIST("x"), .run = LIST() }, -1 },
		{ { .backend = "linux", .find = LIST("x"), .run = LIST("x", "a{args}") }, -1 },
		{ { .backend = NULL }, -1 },
		{ { .backend = "Mine" }, -1 },
		{ { .backend = "mine" }, 0 },
		{ { .backend = "container", .run = LIST("x"), .image = "a@sha256:" HASH }, 0 },
		{ { .backend = "container", .image = "a@sha256:" HASH }, -1 },
		{ { .backend = "container", .run = LIST("x"), .image = "alpine:3.19" }, -1 },
		{ { .backend = "container", .run = LIST("x"), .image = "a@sha256:0123" }, -1 },
		{ { .backend = "container", .run = LIST("x"), .image = "@sha256:" HASH }, -1 },
		{ { .backend = "container", .run = LIST("x") }, -1 },
		{ { .backend = "k8s", .run = LIST("x"), .image = "alpine" }, -1 },
		{ { .backend = "wasm" }, -1 },
		{ { .backend = "wasm",
		    .module = OF(sb_artifact, .name = "m", .url = "u", .sha256 = HASH) },
		  0 },
		{ { .backend = "wasm",
		    .module =
			    OF(sb_artifact, .name = "m", .data = "d", .bytes = 1, .sha256 = HASH) },
		  0 },
		{ { .backend = "wasm",
		    .module = OF(sb_artifact, .name = "m", .data = "d", .sha256 = HASH) },
		  -1 },
		{ { .backend = "wasm", .module = OF(sb_artifact, .name = "m", .url = "u") }, -1 },
		{ { .backend = "wasm", .module = OF(sb_artifact, .name = "m", .url = "pack:lua") }, 0 },
		{ { .backend = "wasm", .module = OF(sb_artifact, .name = "m", .url = "pack:../x") }, -1 },
		{ { .backend = "wasm", .run = LIST("main.wasm", "{args}") }, 0 },
		{ { .backend = "wasm", .module = OF(sb_artifact, .name = "m", .sha256 = HASH) },
		  -1 },
		{ { .backend = "wasm",
		    .module = OF(sb_artifact, .name = "m", .url = "u",
				 .sha256 = "0123456789ABCDEF0123456789abcdef0123456789abcdef"
					   "0123456789abcdef") },
		  -1 },
		{ { LINUX, .mounts = good_mount }, 0 },
		{ { LINUX, .mounts = bad_mount }, -1 },
		{ { LINUX, .mounts = up_mount }, -1 },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, with_way(rows[i].way) == (rows[i].rc ? SB_ERR_INVALID_PACK : 0));
	assert_int_equal(with_way((sb_pack_way){ LINUX, .caps = (uint64_t)1 << 40 }),
			 SB_ERR_UNSUPPORTED);
}

static void packs_are_checked(void **state)
{
	const sb_pack_way *const ways[] = { OF(sb_pack_way, LINUX), NULL },
				 *const none[] = { NULL },
				 *const twice[] = { ways[0], ways[0], NULL };
	const struct {
		sb_pack pack;
		int rc;
	} rows[] = {
		{ { .name = "p", .ways = ways }, 0 },
		{ { .name = "c++",
		    .ways = ways,
		    .aliases = LIST("cpp", "c_x-1.2"),
		    .extensions = LIST(".cc") },
		  0 },
		{ { .name = "a2345678901234567890123456789012", .ways = ways }, 0 },
		{ { .name = "a23456789012345678901234567890123", .ways = ways }, -1 },
		{ { .name = NULL, .ways = ways }, -1 },
		{ { .name = "", .ways = ways }, -1 },
		{ { .name = "Py", .ways = ways }, -1 },
		{ { .name = "2py", .ways = ways }, -1 },
		{ { .name = "p y", .ways = ways }, -1 },
		{ { .name = "p\n", .ways = ways }, -1 },
		{ { .name = "p", .ways = ways, .aliases = LIST("P") }, -1 },
		{ { .name = "p", .ways = ways, .extensions = LIST("py") }, -1 },
		{ { .name = "p", .ways = ways, .extensions = LIST(".") }, -1 },
		{ { .name = "p", .ways = ways, .extensions = LIST(".a/b") }, -1 },
		{ { .name = "p" }, -1 },
		{ { .name = "p", .ways = none }, -1 },
		{ { .name = "p", .ways = twice }, -1 },
		{ { .name = "p", .ways = ways, .limits = OF(sb_limits, .memory_bytes = 5) }, -1 },
		{ { .name = "p",
		    .ways = ways,
		    .compile_limits = OF(sb_limits, .wall_ms = (uint64_t)-7) },
		  -1 },
		{ { .name = "p", .ways = ways, .memory_floor_bytes = (uint64_t)-7 }, -1 },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_pack pack = rows[i].pack;

		pack.size = sizeof pack;
		unit_row(i,
			 sb_pack_validate(&pack, NULL) == (rows[i].rc ? SB_ERR_INVALID_PACK : 0));
		pack.size = 0;
		unit_row(i, sb_pack_validate(&pack, NULL) == SB_ERR_INVALID);
		pack.size = 16; /* cut short: it would be read beyond its end later */
		unit_row(i, sb_pack_validate(&pack, NULL) == SB_ERR_INVALID_PACK);
	}
	assert_int_equal(sb_pack_validate(NULL, NULL), SB_ERR_INVALID_PACK);
}

static void names_are_taken_once(void **state)
{
	const sb_pack_way *const ways[] = { OF(sb_pack_way, LINUX), NULL };
	const sb_pack a = { .size = sizeof a,
			    .name = "python",
			    .aliases = LIST("py"),
			    .extensions = LIST(".py"),
			    .ways = ways };
	const struct {
		sb_pack b;
		const char *names;
	} rows[] = {
		{ { .name = "ruby", .aliases = LIST("rb"), .extensions = LIST(".rb") }, NULL },
		{ { .name = "python" }, "python" },
		{ { .name = "py" }, "py" },
		{ { .name = "b", .aliases = LIST("py") }, "py" },
		{ { .name = "b", .aliases = LIST("python") }, "python" },
		{ { .name = "b", .aliases = LIST("b") }, "b" },
		{ { .name = "b", .aliases = LIST("c", "c") }, "c" },
		{ { .name = "b", .extensions = LIST(".py") }, ".py" },
	};
	const sb_pack *const same[] = { &a, &a, NULL }, *const empty[] = { NULL };

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_pack b = rows[i].b;
		const sb_pack *const both[] = { &a, &b, NULL };
		sb_error err;

		b.size = sizeof b;
		b.ways = ways;
		unit_row(i, pack_validate_all(both, &err) ==
				    (rows[i].names ? SB_ERR_INVALID_PACK : 0));
		unit_row(i, !rows[i].names || strstr(err.message, rows[i].names));
	}
	assert_int_equal(pack_validate_all(same, NULL), SB_ERR_INVALID_PACK);
	assert_int_equal(pack_validate_all(empty, NULL), 0);
}

static void languages_are_found(void **state)
{
	static const struct {
		const char *text, *name;
	} by_name[] = {
		{ "python", "python" }, { " PY ", "python" }, { "Python3\n", "python" }, { "js", "js" },
		{ "JavaScript", "js" }, { "node", "js" }, { "nodejs", "js" }, { "sh", "bash" },
		{ "shell", "bash" }, { "bash", "bash" }, { "lua", "lua" }, { "lua54", "lua" },
		{ "ruby", "ruby" }, { "perl", "perl" }, { "cobol", NULL }, { "", NULL }, { "  ", NULL },
		{ "p y", NULL }, { "pyt", NULL }, { NULL, NULL },
	}, by_file[] = {
		{ "a.py", "python" }, { "/x.d/a.b.PY", "python" }, { "a.js", "js" }, { "a.mjs", "js" },
		{ "a.cjs", "js" }, { "a.sh", "bash" }, { "a.bash", "bash" }, { "a.lua", "lua" },
		{ "a.rb", "ruby" }, { "a.pl", "perl" }, { "/etc/passwd", NULL }, { ".py", NULL },
		{ "/x.py/a", NULL }, { "a.", NULL }, { "a.pyc", NULL }, { "", NULL },
	}, by_line[] = {
		{ "#!/usr/bin/env python3\nx", "python" }, { "#!/usr/bin/python", "python" },
		{ "#!/usr/bin/python3.11 -u\n", "python" }, { "#! /bin/sh -e\n", "bash" },
		{ "#!/bin/bash\r\n", "bash" }, { "#!/usr/bin/env -S A=b node --x\n", "js" },
		{ "#!/usr/bin/env nodejs\n", "js" }, { "#!/opt/perl5.36.0\n", "perl" },
		{ "#!lua5.4\n", "lua" }, { "#!/usr/bin/lua5.1\n", "lua" }, { "#!/usr/bin/ruby3.1", "ruby" },
		{ "#!/bin/cat\n", NULL }, { "#!/usr/bin/env\n", NULL }, { "#!/usr/bin/env -S\n", NULL },
		{ "#!\n/bin/sh\n", NULL }, { "#!", NULL }, { "", NULL }, { "x#!/bin/sh\n", NULL },
		{ "#!3.11\n", NULL }, { "#!/bin/\n", NULL }, { "#!/usr/bin/awk -f", NULL },
	};
	const sb_pack *const *packs = sb_packs_builtin();

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(by_name); i++) {
		const sb_pack *pack = pack_find(packs, by_name[i].text);

		unit_row(i, by_name[i].name ? pack && strcmp(pack->name, by_name[i].name) == 0
					    : !pack);
	}
	for (size_t i = 0; i < UNIT_LEN(by_file); i++) {
		const sb_pack *pack = pack_find_extension(packs, by_file[i].text);

		unit_row(i, by_file[i].name ? pack && strcmp(pack->name, by_file[i].name) == 0
					    : !pack);
	}
	for (size_t i = 0; i < UNIT_LEN(by_line); i++) {
		size_t len = strlen(by_line[i].text);
		char *exact = memcpy(malloc(len + 1), by_line[i].text, len); /* no NUL behind it */
		const sb_pack *pack = pack_find_shebang(packs, exact, len);

		unit_row(i, by_line[i].name ? pack && strcmp(pack->name, by_line[i].name) == 0
					    : !pack);
		free(exact);
	}
}

static void any_first_line_gets_an_answer(void **state)
{
	static const char *const parts[] = { "#!",  "/", "env", "python3", " ",	 "\t", "-S",
					     "A=b", ".", "7",	"\n",	   "sh", "",   "\r" };
	uint64_t seed = 3;
	size_t found = 0;

	(void)state;
	for (int round = 0; round < 50000; round++) {
		size_t len = 2;
		char *text = strdup("#!");

		for (size_t i = 0, n = unit_random(&seed) % 8; i < n; i++) {
			const char *part = parts[unit_random(&seed) % UNIT_LEN(parts)];

			text = realloc(text, len + strlen(part) + 1);
			memcpy(text + len, part, strlen(part));
			len += strlen(part);
		}
		text = realloc(text, len ? len : 1);
		found += pack_find_shebang(sb_packs_builtin(), text, len) != NULL;
		free(text);
	}
	assert_true(found > 500);
}

static void the_builtin_ones_are_sound(void **state)
{
	const sb_pack *const *packs = sb_packs_builtin();
	sb_error err = { 0 };
	size_t n = 0;

	(void)state;
	if (pack_validate_all(packs, &err) < 0)
		fail_msg("%s", err.message);
	for (; packs[n]; n++) {
		const sb_pack_way *host = pack_way(packs[n], "linux");
		const sb_pack_way *wasm = pack_way(packs[n], "wasm");
		const sb_pack_way *way = host ? host : wasm;
		limits_sources from = { .profile = SB_PROFILE_CODE, .pack = packs[n] };
		sb_limits out;

		unit_row(n, way && way->code_file && strchr(way->code_file, '.'));
		unit_row(n, pack_way(packs[n], "process") == host &&
				    pack_way(packs[n], "seatbelt") == host);
		/* what runs by either is the same file, so that its name tells nothing */
		unit_row(n, !host || !wasm || strcmp(host->code_file, wasm->code_file) == 0);
		unit_row(n,
			 limits_resolve(&from, &out, NULL) == 0 && out.memory_bytes >= 128 << 20);
		unit_row(n, n == 0 || strcmp(packs[n - 1]->name, packs[n]->name) < 0);
		unit_row(n, pack_find_extension(packs, way->code_file) == packs[n]);
	}
	assert_int_equal(n, 8);
}

static char *expand(const char *const *run, const char *program, const char *const *args)
{
	static char text[256];
	char **argv = NULL;
	int rc = pack_expand(run, program, "/run/code/m.py", args, &argv, NULL);

	snprintf(text, sizeof text, "%s", rc < 0 ? sb_code_name(rc) : "");
	for (char **p = argv; p && *p; p++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "[%s]", *p);
	strv_free_list(argv);
	return text;
}

static void commands_are_filled_in(void **state)
{
	const char *const *run = LIST("python3", "-B", "{code}", "{args}");

	(void)state;
	assert_string_equal(expand(run, "/usr/bin/python3", LIST("a", "", "{code}", "{args}")),
			    "[/usr/bin/python3][-B][/run/code/m.py][a][][{code}][{args}]");
	assert_string_equal(expand(run, NULL, NULL), "[python3][-B][/run/code/m.py]");
	assert_string_equal(expand(run, NULL, LIST()), "[python3][-B][/run/code/m.py]");
	assert_string_equal(expand(LIST("x", "f={code}:{code}!"), NULL, NULL),
			    "[x][f=/run/code/m.py:/run/code/m.py!]");
	assert_string_equal(expand(LIST("x", "{code}"), NULL, LIST("a")), "invalid_spec");
	assert_string_equal(expand(LIST("x", "{args}", "{code}"), NULL, LIST("a", "b")),
			    "[x][a][b][/run/code/m.py]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_are_checked),
		cmocka_unit_test(packs_are_checked),
		cmocka_unit_test(names_are_taken_once),
		cmocka_unit_test(languages_are_found),
		cmocka_unit_test(any_first_line_gets_an_answer),
		cmocka_unit_test(the_builtin_ones_are_sound),
		cmocka_unit_test(commands_are_filled_in),
	};

	return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
