/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "json_reader.h"

#include "../../src/base/base.h"

static void writes_members_and_commas(void **state)
{
	buf b;
	json j;

	(void)state;
	buf_init(&b, 4096);
	json_init(&j, &b);
	json_open(&j, '{');
	json_name(&j, "a");
	json_open(&j, '[');
	json_open(&j, '{');
	json_close(&j, '}');
	json_open(&j, '[');
	json_close(&j, ']');
	json_uint(&j, UINT64_MAX);
	json_int(&j, INT64_MIN);
	json_bool(&j, true);
	json_bool(&j, false);
	json_null(&j);
	json_milli(&j, 14213);
	json_milli(&j, 7);
	json_close(&j, ']');
	json_name(&j, "b\"");
	json_text(&j, NULL);
	json_name(&j, "c");
	json_text(&j, "x\\\"\n\r\t\x01\x7f/");
	json_member_bytes(&j, "d", "\xff\0ok", 4);
	json_member_bytes(&j, "e", "plain", 5);
	json_close(&j, '}');
	assert_string_equal(
		b.data,
		"{\"a\":[{},[],18446744073709551615,-9223372036854775808,true,false,null,"
		"14.213,0.007],\"b\\\"\":null,\"c\":\"x\\\\\\\"\\n\\r\\t\\u0001\\u007f/\","
		"\"d\":\"\xef\xbf\xbd\\u0000ok\",\"d_base64\":\"/wBvaw==\",\"e\":\"plain\"}");
	assert_true(json_reader_ok(b.data));
	assert_int_equal(j.depth, 0);
	buf_release(&b);
}

static void base64_of_every_length(void **state)
{
	static const char *const rows[] = { "",		"Zg==",	    "Zm8=",    "Zm9v",
					    "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
	char wanted[16];
	buf b;
	json j;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		buf_init(&b, 100);
		json_init(&j, &b);
		json_base64(&j, "foobar", i);
		snprintf(wanted, sizeof wanted, "\"%s\"", rows[i]);
		unit_row(i, strcmp(b.data, wanted) == 0);
		buf_release(&b);
	}
}

/* Any bytes give one valid JSON string; valid UTF-8 comes back as it was. */
static void any_bytes_make_valid_json(void **state)
{
	uint64_t seed = 1;
	char in[64], back[64 * 4];
	size_t len, got, valid = 0;
	buf b;
	json j;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		len = unit_random(&seed) % sizeof in;
		for (size_t i = 0; i < len; i++)
			in[i] = (char)(round % 2 ? unit_random(&seed) % 128 : unit_random(&seed));
		buf_init(&b, 4096);
		json_init(&j, &b);
		json_bytes(&j, in, len);
		assert_int_equal(b.failed, 0);
		assert_true(json_reader_ok(b.data));
		assert_true(utf8_valid(b.data, b.len));
		assert_non_null(json_reader_string(b.data, back, &got));
		if (utf8_valid(in, len)) {
			valid++;
			assert_int_equal(got, len);
			assert_memory_equal(in, back, len);
		}
		buf_release(&b);
	}
	assert_true(valid > 5000);
}

/* A cut at each offset of text with characters of every length. */
static void cut_inside_a_character(void **state)
{
	static const char text[] = "a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80"
				   "a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80";
	buf b;
	json j;

	(void)state;
	for (size_t cut = 0; cut < sizeof text; cut++) {
		buf_init(&b, 4096);
		json_init(&j, &b);
		json_open(&j, '{');
		json_member_bytes(&j, "s", text, cut);
		json_close(&j, '}');
		unit_row(cut, json_reader_ok(b.data) && utf8_valid(b.data, b.len));
		unit_row(cut, (strstr(b.data, "s_base64") != NULL) == !utf8_valid(text, cut));
		buf_release(&b);
	}
}

static void a_full_buffer_tells(void **state)
{
	buf b;
	json j;

	(void)state;
	buf_init(&b, 5);
	json_init(&j, &b);
	json_text(&j, "123456");
	assert_int_equal(b.failed, SB_ERR_INVALID);
	assert_null(buf_take(&b, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_members_and_commas),
		cmocka_unit_test(base64_of_every_length),
		cmocka_unit_test(any_bytes_make_valid_json),
		cmocka_unit_test(cut_inside_a_character),
		cmocka_unit_test(a_full_buffer_tells),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
