/* SPDX-License-Identifier: MIT */
/* The output log: a ring under a budget, by cursors. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/session/outlog.h"

static void runs_are_merged(void **state)
{
	outlog log;
	uint32_t stream = 0;
	char out[16];

	(void)state;
	outlog_init(&log, 1000);
	for (int i = 0; i < 500; i++)
		outlog_add(&log, 1, "x", 1);
	assert_int_equal(outlog_used(&log), 500 + sizeof(outlog_run)); /* one run, not 500 */
	outlog_add(&log, 2, "errors", 6);
	assert_int_equal(outlog_used(&log), 506 + 2 * sizeof(outlog_run));
	assert_int_equal(outlog_read(&log, 498, out, sizeof out, &stream), 2); /* one stream at a time */
	assert_int_equal(stream, 1);
	assert_int_equal(outlog_read(&log, 500, out, sizeof out, &stream), 6);
	assert_int_equal(stream, 2);
	assert_memory_equal(out, "errors", 6);
	assert_int_equal(outlog_read(&log, 506, out, sizeof out, &stream), 0);
	outlog_release(&log);
}

/* Against a plain copy of all that was ever added: what is retained is right, to the byte, in any budget. */
static void like_a_plain_copy(void **state)
{
	enum { ALL = 60000 };
	static char bytes[ALL], streams[ALL], out[ALL];
	uint32_t random = 5;

	(void)state;
	for (int round = 0; round < 60; round++) {
		uint64_t budget = 64 + (uint64_t)round * round * 7;
		outlog log;
		size_t end = 0;

		outlog_init(&log, budget);
		for (;;) {
			random = random * 1664525u + 1013904223u;
			size_t len = (random >> 8) % (round % 3 == 0 ? 4 : 700);
			uint32_t stream = 1 + (random >> 30) % 2;

			if (end + len > ALL)
				break;
			for (size_t i = 0; i < len; i++) {
				bytes[end + i] = (char)(random >> (i % 24));
				streams[end + i] = (char)stream;
			}
			outlog_add(&log, stream, bytes + end, len);
			end += len;
			assert_int_equal(log.end, end);
			assert_true(outlog_used(&log) <= budget);
		}
		assert_true(log.oldest < log.end); /* something always stays */
		for (uint64_t at = log.oldest; at < log.end;) {
			uint32_t stream = 0;
			size_t n = outlog_read(&log, at, out, 1 + random % 900, &stream);

			assert_true(n > 0);
			assert_memory_equal(out, bytes + at, n);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(streams[at + i], stream);
			at += n;
		}
		assert_int_equal(outlog_read(&log, log.end, out, 10, &(uint32_t){ 0 }), 0);
		if (log.oldest)
			assert_int_equal(outlog_read(&log, log.oldest - 1, out, 10, &(uint32_t){ 0 }), 0);
		outlog_release(&log);
	}
}

/* One piece above the budget: its end stays. */
static void larger_than_all(void **state)
{
	static char much[5000];
	uint32_t stream = 0;
	char out[100];
	outlog log;

	(void)state;
	for (size_t i = 0; i < sizeof much; i++)
		much[i] = (char)i;
	outlog_init(&log, 100);
	outlog_add(&log, 1, "before", 6);
	outlog_add(&log, 1, much, sizeof much);
	assert_int_equal(log.end, 5006);
	assert_int_equal(log.end - log.oldest, 100 - sizeof(outlog_run));
	assert_int_equal(outlog_read(&log, log.oldest, out, sizeof out, &stream), 100 - sizeof(outlog_run));
	assert_memory_equal(out, much + sizeof much - (100 - sizeof(outlog_run)), 100 - sizeof(outlog_run));
	outlog_release(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_merged),
		cmocka_unit_test(like_a_plain_copy),
		cmocka_unit_test(larger_than_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
