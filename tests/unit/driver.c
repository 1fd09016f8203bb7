/* SPDX-License-Identifier: MIT */
/* driver.c - frames of the driver protocol: what is believed, and what ends a session. */
#include "unit.h"

#include "../../src/core/driver.h"

static driver_reader reader;
static driver_frame got;
static const char *why;

static int setup(void **state)
{
	(void)state;
	driver_init(&reader);
	why = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	driver_release(&reader);
	return 0;
}

/* A frame as text, with the nonce that is expected. */
static size_t make(char *out, char kind, const char *payload, size_t len)
{
	int n = snprintf(out, DRIVER_HEAD + 1, "%c %s %08zx\n", kind, reader.nonce, len);

	memcpy(out + n, payload, len);
	return (size_t)n + len;
}

static int feed(const char *data, size_t len)
{
	size_t used;

	return driver_read(&reader, data, len, &used, &got, &why);
}

static int say(char kind, const char *payload)
{
	static char text[DRIVER_TEXT_MAX + 200];

	return feed(text, make(text, kind, payload, strlen(payload)));
}

static void hello(void)
{
	assert_int_equal(driver_expect_hello(&reader), 0);
	assert_int_equal(say('H', "1 ask nul python 3.11.2"), 1);
}

static void test_hello_names_features(void **state)
{
	(void)state;
	hello();
	assert_int_equal(got.features, DRIVER_CAN_ASK | DRIVER_CAN_NUL);
	driver_expect_hello(&reader);
	assert_int_equal(say('H', "1 nul int lua 5.4"), 1);
	assert_int_equal(got.features, DRIVER_CAN_NUL | DRIVER_CAN_INT);
	driver_expect_hello(&reader);
	assert_int_equal(say('H', "1 task nulls into lua 5.4"), 1);
	assert_int_equal(got.features, 0);
	driver_expect_hello(&reader);
	assert_int_equal(say('H', "2 lua 5.4"), -1);
	assert_string_equal(why, "a driver of another version");
}

static void test_whole_evaluation(void **state)
{
	(void)state;
	hello();
	driver_expect_end(&reader, DRIVER_ASK);
	assert_int_equal(say('Q', "00000001"), 1);
	driver_answered(&reader);
	assert_int_equal(say('Q', "00000002"), 1);
	driver_answered(&reader);
	assert_int_equal(say('V', "42"), 1);
	assert_string_equal(got.payload, "42");
	assert_int_equal(say('D', "7"), 1);
	assert_int_equal(got.status, 7);
	assert_int_equal(reader.state, DRIVER_IDLE);
}

static void test_bytes_one_by_one(void **state)
{
	char text[200];
	size_t used, len, i;

	(void)state;
	hello();
	driver_expect_end(&reader, 0);
	len = make(text, 'V', "forty-two", 9);
	for (i = 0; i + 1 < len; i++)
		assert_int_equal(feed(text + i, 1), 0);
	assert_int_equal(driver_read(&reader, text + i, 1, &used, &got, &why), 1);
	assert_int_equal(used, 1);
	assert_string_equal(got.payload, "forty-two");
}

static void test_two_frames_in_one_piece(void **state)
{
	char text[300];
	size_t len, used, first;

	(void)state;
	hello();
	driver_expect_end(&reader, 0);
	first = make(text, 'X', "E: x", 4);
	len = first + make(text + first, 'D', "1", 1);
	assert_int_equal(driver_read(&reader, text, len, &used, &got, &why), 1);
	assert_int_equal(used, first);
	assert_int_equal(got.kind, 'X');
	assert_int_equal(driver_read(&reader, text + used, len - used, &used, &got, &why), 1);
	assert_int_equal(got.status, 1);
}

static void test_nonce_is_fresh_each_time(void **state)
{
	char old[DRIVER_NONCE + 1], text[200];
	size_t len;

	(void)state;
	hello();
	driver_expect_end(&reader, 0);
	memcpy(old, reader.nonce, sizeof old);
	len = make(text, 'D', "0", 1);
	assert_int_equal(feed(text, len), 1);
	driver_expect_end(&reader, 0);
	assert_string_not_equal(old, reader.nonce);
	assert_int_equal(feed(text, len), -1);
	assert_string_equal(why, "a frame of another evaluation");
	/* and it stays so */
	assert_int_equal(say('D', "0"), -1);
	assert_int_not_equal(driver_expect_end(&reader, 0), 0);
}

static void breaks(uint32_t flags, const char *before, char kind, const char *payload)
{
	driver_release(&reader);
	driver_init(&reader);
	hello();
	driver_expect_end(&reader, flags);
	for (; *before; before++)
		assert_int_equal(say(*before, *before == 'Q' ? "00000001" : "1"), 1);
	assert_int_equal(say(kind, payload), -1);
	assert_non_null(why);
}

static void test_what_cannot_come_breaks(void **state)
{
	(void)state;
	breaks(0, "", 'Q', "00000001");		  /* nobody may ask */
	breaks(DRIVER_ASK, "Q", 'Q', "00000002"); /* one at a time */
	breaks(DRIVER_ASK, "", 'Q', "1");
	breaks(DRIVER_ASK, "", 'Q', "0000000g");
	breaks(0, "V", 'V', "1");
	breaks(0, "V", 'X', "1");
	breaks(0, "X", 'V', "1");
	breaks(0, "", 'U', "");
	breaks(DRIVER_PARTIAL, "V", 'U', "");
	breaks(0, "", 'H', "1 python 3");
	breaks(0, "", 'Z', "");
	breaks(0, "", 'D', "");
	breaks(0, "", 'D', "256");
	breaks(0, "", 'D', "-1");
	breaks(0, "", 'D', "1000"); /* too long */
	breaks(0, "D", 'D', "0");   /* nothing is expected any more */
}

static void test_garbage_breaks(void **state)
{
	char noise[DRIVER_HEAD + 1];

	(void)state;
	hello();
	driver_expect_end(&reader, 0);
	memset(noise, 'x', sizeof noise);
	assert_int_equal(feed(noise, DRIVER_HEAD - 1), 0);
	assert_int_equal(feed(noise, 1), -1);
	assert_string_equal(why, "bytes that are no frame");
}

static void test_lengths_are_bounded(void **state)
{
	char text[200];

	(void)state;
	hello();
	driver_expect_end(&reader, 0);
	make(text, 'V', "", 0);
	memcpy(text + DRIVER_HEAD - 9, "00010001", 8);
	assert_int_equal(feed(text, DRIVER_HEAD), -1);
	assert_string_equal(why, "a frame that is too long");
	assert_true(reader.payload.cap <= 2 * DRIVER_TEXT_MAX);
}

static void test_longest_value(void **state)
{
	static char big[DRIVER_TEXT_MAX + 1];

	(void)state;
	memset(big, 'v', DRIVER_TEXT_MAX);
	hello();
	driver_expect_end(&reader, 0);
	assert_int_equal(say('V', big), 1);
	assert_int_equal(got.len, DRIVER_TEXT_MAX);
	assert_int_equal(got.payload[got.len], 0);
}

static void test_heads(void **state)
{
	char text[DRIVER_HEAD + DRIVER_CODE_HEAD + 1];

	(void)state;
	hello();
	driver_expect_end(&reader, DRIVER_PARTIAL | DRIVER_ASK);
	assert_int_equal(driver_code_head(&reader, 300, 5, text), DRIVER_HEAD + DRIVER_CODE_HEAD);
	assert_int_equal(text[0], 'E');
	assert_memory_equal(text + 2, reader.nonce, DRIVER_NONCE);
	assert_string_equal(text + 35, "0000013b\n030000012c");
	say('Q', "0000002a");
	assert_int_equal(driver_answer_head(&reader, 4, text), DRIVER_HEAD + DRIVER_ANSWER_HEAD);
	assert_string_equal(text + 35, "0000000c\n0000002a");
	assert_int_equal(driver_interrupt_head(&reader, text), DRIVER_HEAD);
	assert_int_equal(text[0], 'I');
	assert_memory_equal(text + 2, reader.nonce, DRIVER_NONCE);
	assert_string_equal(text + 34, " 00000000\n");
	assert_int_equal(driver_start_head(&reader, text), DRIVER_HEAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hello_names_features, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whole_evaluation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_one_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_frames_in_one_piece, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonce_is_fresh_each_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_cannot_come_breaks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_garbage_breaks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lengths_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest_value, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
