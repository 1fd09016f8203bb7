/* SPDX-License-Identifier: MIT */
/* manifest.c - the manifest of a pack: what is taken, and every way in which one can be wrong; SHA-256. */
#include "unit.h"

#include "../../src/core/manifest.h"

#define HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEAD "sandbox-pack 1\nname python\nversion 3.13.5\nengine 48.0.8-crate-1\n"
#define MODULE "module module.cwasm " HASH " 12\n"

static void takes_a_whole_one(void **state)
{
	const char text[] = HEAD MODULE "source module.wasm " HASH " 7\n"
					"file lib.zip " HASH " 3700000 /usr/local/lib/lib.zip\n"
					"note the hash seed stays\n";
	manifest m;
	sb_error err;

	(void)state;
	assert_int_equal(manifest_parse(text, strlen(text), &m, &err), 0);
	assert_string_equal(m.name, "python");
	assert_string_equal(m.version, "3.13.5");
	assert_string_equal(m.engine, "48.0.8-crate-1");
	assert_string_equal(m.note, "the hash seed stays");
	assert_string_equal(m.module.name, "module.cwasm");
	assert_string_equal(m.module.sha256, HASH);
	assert_int_equal(m.module.bytes, 12);
	assert_string_equal(m.source.name, "module.wasm");
	assert_int_equal(m.file_count, 1);
	assert_int_equal(m.files[0].bytes, 3700000);
	assert_string_equal(m.files[0].path, "/usr/local/lib/lib.zip");
}

static const struct {
	const char *text, *why;
} wrong[] = {
	{ "", "has no line \"name\"" },
	{ "sandbox-pack 2\n", "does not begin with" },
	{ HEAD, "has no line \"module\"" },
	{ HEAD MODULE "note x", "ends within a line" },
	{ HEAD MODULE MODULE, "says again" },
	{ HEAD MODULE "name lua\n", "says again" },
	{ HEAD MODULE "colour red\n", "is not known" },
	{ HEAD MODULE "\n", "has no key" },
	{ HEAD MODULE "note \n", "has no value" },
	{ HEAD "module ../m " HASH " 1\n", "no plain file name" },
	{ HEAD "module .m " HASH " 1\n", "no plain file name" },
	{ HEAD "module m E" HASH " 1\n", "no SHA-256" },
	{ HEAD "module m " HASH "\n", "no length" },
	{ HEAD "module m " HASH " -1\n", "no length" },
	{ HEAD "module m " HASH " 1x\n", "no length" },
	{ HEAD "module m " HASH " 99999999999999999999\n", "no length" },
	{ HEAD "module m " HASH " 1 more\n", "more words" },
	{ HEAD MODULE "file f " HASH " 1\n", "no clean absolute path" },
	{ HEAD MODULE "file f " HASH " 1 lib\n", "no clean absolute path" },
	{ HEAD MODULE "file f " HASH " 1 /a/../b\n", "no clean absolute path" },
	{ HEAD MODULE "file f " HASH " 1 /\n", "no clean absolute path" },
	{ HEAD MODULE "file f " HASH " 1 /a\nfile g " HASH " 1 /a\n", "two files for" },
	{ HEAD MODULE "version 1 2\n", "says again" },
	{ "sandbox-pack 1\nversion 1 2\n", "has no value" },
	{ HEAD MODULE "note \xff\n", "no text" },
};

static void refuses_each_fault(void **state)
{
	manifest m;
	sb_error err;

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(wrong); i++) {
		assert_int_equal(manifest_parse(wrong[i].text, strlen(wrong[i].text), &m, &err), SB_ERR_INVALID);
		if (!strstr(err.message, wrong[i].why))
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, err.message, wrong[i].why);
	}
}

static void has_hard_limits(void **state)
{
	char text[MANIFEST_MAX_BYTES + 2] = HEAD MODULE;
	manifest m;
	sb_error err;

	(void)state;
	size_t len = strlen(text);
	for (int i = 0; i <= MANIFEST_MAX_FILES; i++) {
		assert_int_equal(manifest_parse(text, len, &m, &err), 0);
		assert_int_equal(m.file_count, i);
		len += (size_t)snprintf(text + len, sizeof text - len, "file f " HASH " 1 /%d\n", i);
	}
	assert_int_equal(manifest_parse(text, len, &m, &err), SB_ERR_INVALID);
	assert_non_null(strstr(err.message, "one file too many"));
	memset(text, '\n', sizeof text);
	assert_int_equal(manifest_parse(text, MANIFEST_MAX_BYTES + 1, &m, &err), SB_ERR_INVALID);
	assert_int_equal(manifest_parse(HEAD MODULE "\0", sizeof(HEAD MODULE) , &m, &err), SB_ERR_INVALID);
}

/* The examples of FIPS 180-4, and one that crosses blocks in pieces of odd length. */
static void hashes_as_the_standard_says(void **state)
{
	static const char *const rows[][2] = {
		{ "", HASH },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	char hex[SHA256_HEX];
	sha256 h;

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		sha256_init(&h);
		sha256_add(&h, rows[i][0], strlen(rows[i][0]));
		sha256_hex(&h, hex);
		assert_string_equal(hex, rows[i][1]);
	}
	sha256_init(&h);
	for (size_t left = 1000000, n = 1; left > 0; left -= n, n = n % 97 + 1) {
		char piece[128];
		n = n < left ? n : left;
		memset(piece, 'a', sizeof piece);
		sha256_add(&h, piece, n);
	}
	sha256_hex(&h, hex);
	assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_a_whole_one),
		cmocka_unit_test(refuses_each_fault),
		cmocka_unit_test(has_hard_limits),
		cmocka_unit_test(hashes_as_the_standard_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
