/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/base/base.h"

static void paths_have_one_spelling(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "a", "a" },
		{ "/a\\b/./c/", "a/b/c" },
		{ "", "." },
		{ "/", "." },
		{ ".", "." },
		{ "./.", "." },
		{ "\\", "." },
		{ "//a//b", "a/b" },
		{ "a\\\\b", "a/b" },
		{ "...", "..." },
		{ "..a", "..a" },
		{ "ab:c", "ab:c" },
		{ "x/C:", "x/C:" },
		{ "1:", "1:" },
		{ "~", "~" },
		{ "\xc3\xa9/\xf0\x9f\x98\x80", "\xc3\xa9/\xf0\x9f\x98\x80" },
		{ "a b", "a b" },
		{ "..", NULL },
		{ "../x", NULL },
		{ "a/../b", NULL },
		{ "a/..", NULL },
		{ "a\\..\\b", NULL },
		{ "/..", NULL },
		{ "a\nb", NULL },
		{ "a\x1f", NULL },
		{ "a\x7f", NULL },
		{ "\t", NULL },
		{ "a\xff", NULL },
		{ "\xc3", NULL },
		{ "\xed\xa0\x80", NULL },
		{ "C:", NULL },
		{ "c:/x", NULL },
		{ "C:x", NULL },
		{ "a:b", NULL },
		{ "//./C:", NULL },
		{ "./z:\\x", NULL },
		{ "\\\\server\\share", NULL },
		{ "\\\\?\\C:\\x", NULL },
		{ NULL, NULL },
	};
	char out[5000];

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		size_t len = 777;
		sb_error err = { 0 };
		int rc;

		memset(out, 'x', sizeof out);
		rc = sb_path_clean(rows[i].in, out, sizeof out, &len, &err);
		unit_row(i, rc == (rows[i].out ? 0 : SB_ERR_INVALID_PATH));
		unit_row(i, rows[i].out ? strcmp(out, rows[i].out) == 0 && len == strlen(out)
					: len == 777 && err.message[0]);
	}
}

static void lengths_have_limits(void **state)
{
	char in[9000], out[5000];
	size_t len;

	(void)state;
	memset(in, 'a', sizeof in);
	in[255] = '\0';
	assert_int_equal(sb_path_clean(in, out, sizeof out, &len, NULL), 0);
	in[255] = 'a';
	in[256] = '\0';
	assert_int_equal(sb_path_clean(in, out, sizeof out, &len, NULL), SB_ERR_INVALID_PATH);
	for (size_t i = 0; i < 64; i++)
		memcpy(in + 2 * i, "a/", 3);
	assert_int_equal(sb_path_clean(in, out, sizeof out, &len, NULL), 0);
	assert_int_equal(len, 127);
	memcpy(in + 128, "a", 2);
	assert_int_equal(sb_path_clean(in, out, sizeof out, &len, NULL), SB_ERR_INVALID_PATH);
	memset(in, 'a', sizeof in);
	for (size_t i = 255; i < sizeof in; i += 256)
		in[i] = '/';
	in[4096] = '\0'; /* sixteen elements and a slash, which does not count */
	assert_int_equal(sb_path_clean(in, out, sizeof out, &len, NULL), 0);
	assert_int_equal(len, 4095);
	in[4096] = 'a';
	in[4097] = '\0';
	assert_int_equal(sb_path_clean(in, out, sizeof out, &len, NULL), SB_ERR_INVALID_PATH);
	memset(in, '/', sizeof in); /* what is not there has no length */
	memcpy(in + sizeof in - 2, "a", 2);
	assert_int_equal(sb_path_clean(in, out, sizeof out, &len, NULL), 0);
	assert_string_equal(out, "a");
}

static void room_is_kept(void **state)
{
	char out[16];
	size_t len;

	(void)state;
	for (size_t cap = 0; cap < 10; cap++) {
		memset(out, '#', sizeof out);
		unit_row(cap, sb_path_clean("ab/cd", out, cap, &len, NULL) ==
				      (cap < 6 ? SB_ERR_INVALID : 0));
		for (size_t i = cap; i < sizeof out; i++)
			unit_row(cap, out[i] == '#');
		memset(out, '#', sizeof out);
		unit_row(cap, sb_path_clean("/", out, cap, &len, NULL) ==
				      (cap < 2 ? SB_ERR_INVALID : 0));
		unit_row(cap, out[cap] == '#');
	}
}

/* What comes out is clean: the same again, within the limits, and leads nowhere else. */
static void cleaning_is_idempotent(void **state)
{
	static const char *const parts[] = { "a",    "bc", "/",	  "\\",	      ".",
					     "..",   "C:", ":",	  "\xc3\xa9", "\xff",
					     "\x01", "//", "...", " ",	      "?" };
	uint64_t seed = 11;
	size_t good = 0;
	char in[256], out[4097], again[4097];

	(void)state;
	for (int round = 0; round < 100000; round++) {
		size_t len = 0, n = unit_random(&seed) % 12;

		in[0] = '\0';
		for (size_t i = 0; i < n; i++)
			snprintf(in + strlen(in), sizeof in - strlen(in), "%s",
				 parts[unit_random(&seed) % UNIT_LEN(parts)]);
		if (sb_path_clean(in, out, sizeof out, &len, NULL) < 0)
			continue;
		good++;
		assert_int_equal(len, strlen(out));
		assert_true(out[0] != '/' && out[len - 1] != '/');
		assert_null(strstr(out, "//"));
		assert_null(strchr(out, '\\'));
		assert_true(strcmp(out, "..") != 0 && strncmp(out, "../", 3) != 0 &&
			    !strstr(out, "/../"));
		assert_int_equal(sb_path_clean(out, again, sizeof again, NULL, NULL), 0);
		assert_string_equal(out, again);
	}
	assert_true(good > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_have_one_spelling),
		cmocka_unit_test(lengths_have_limits),
		cmocka_unit_test(room_is_kept),
		cmocka_unit_test(cleaning_is_idempotent),
	};

	return cmocka_run_group_tests_name("clean", tests, NULL, NULL);
}
