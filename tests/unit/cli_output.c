/* SPDX-License-Identifier: MIT */
/* cli_output.c - what the command itself says never moves a terminal, and is always valid JSON. */
#include "unit.h"

#include "../../src/cli/cli.h"
#include "../../src/base/utf8.h"
#include "json_reader.h"
#include <sandbox/sandbox.h>

static const char *const hostile[] = {
	"plain", "caf\xc3\xa9", "a\nb\r\tc", "\x1b[2J\x1b]0;x\x07", "\x9b" "31m", "\xc2\x9b" "31m",
	"\xe2\x80\xae", "\xff\xfe", "\xe2\x80", "\xf0\x9f\x98", "\"quoted\\", "\x7f", "",
};

/* Byte by byte: no control character, and no half of one. */
static void assert_plain(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p != 0; p++) {
		assert_true(*p >= 0x20 && *p != 0x7f);
		assert_false(p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f);
		/* a byte of 0x80 and above stands behind another: never alone, as 8-bit controls do */
		if ((*p & 0xc0) == 0x80)
			assert_true(p > (const unsigned char *)text && (p[-1] & 0x80) != 0);
	}
}

static void lines_are_plain(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_LEN(hostile); i++) {
		cli_text text = { 0 };
		sb_error err;
		char copy[64];

		snprintf(copy, sizeof copy, "%s", hostile[i]);
		unit_row(i, utf8_make_plain(copy) == strlen(copy));
		assert_plain(copy);
		text_add(&text, "kept\n");
		text_add_plain(&text, hostile[i]);
		text_add(&text, ".");
		unit_row(i, text.len == strlen(text.data) && strncmp(text.data, "kept\n", 5) == 0);
		assert_plain(text.data + 5);
		text_release(&text);
		error_fill(&err, SB_ERR_INVALID, "x", "\"%s\" is bad", hostile[i]);
		assert_plain(err.message);
	}
	/* a good text is left alone */
	char good[] = "\xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x98\x80 \xe2\x80\xa2 x\xe2\x81\xb0";
	char same[sizeof good];
	memcpy(same, good, sizeof good);
	utf8_make_plain(good);
	assert_string_equal(good, same);
}

static void json_is_valid_and_plain(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_LEN(hostile); i++) {
		cli_text text = { 0 };

		text_add_json(&text, hostile[i]);
		unit_row(i, json_reader_ok(text.data));
		assert_plain(text.data);
		text_release(&text);
	}
}

/* Whatever is cut off a long message, what is left is a line of whole characters. */
static void long_messages_are_cut_whole(void **state)
{
	char big[2048];

	(void)state;
	for (size_t shift = 0; shift < 3; shift++) {
		sb_error err;
		size_t len = shift;

		memset(big, 'a', shift);
		while (len + 3 < sizeof big) {
			memcpy(big + len, "\xe6\xbc\xa2", 3);
			len += 3;
		}
		big[len] = 0;
		error_fill(&err, SB_ERR_INVALID, "x", "%s", big);
		assert_true(strlen(err.message) > 400);
		assert_plain(err.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_plain),
		cmocka_unit_test(json_is_valid_and_plain),
		cmocka_unit_test(long_messages_are_cut_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
