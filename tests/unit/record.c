/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

/* Every size of a caller's record, with and without a foreign tail. */
static void reads_every_size(void **state)
{
	unsigned char in[2 * sizeof(sb_limits)], fresh[sizeof(sb_limits)];
	sb_limits out;

	(void)state;
	for (size_t size = 0; size <= sizeof in; size++) {
		sb_error err = { 0 };
		int rc;

		memset(in, 0xa5, sizeof in);
		memset(in + sizeof out, 0, sizeof in - sizeof out);
		memcpy(in, &size, sizeof size);
		memset(&out, 0x11, sizeof out);
		rc = record_read(&out, sizeof out, in, "sb_limits", &err);
		if (size < sizeof size) {
			unit_row(size, rc == SB_ERR_INVALID && strstr(err.message, "sb_limits"));
			continue;
		}
		unit_row(size, rc == 0 && out.size == sizeof out);
		memset(fresh, 0, sizeof fresh);
		memcpy(fresh, in, size < sizeof out ? size : sizeof out);
		unit_row(size, memcmp((char *)&out + sizeof size, fresh + sizeof size,
				      sizeof out - sizeof size) == 0);
		if (size <= sizeof out)
			continue;
		in[size - 1] = 1;
		unit_row(size, record_read(&out, sizeof out, in, "sb_limits", &err) ==
				       SB_ERR_UNSUPPORTED);
		unit_row(size, err.kind == SB_KIND_NOT_AVAILABLE);
	}
	assert_int_equal(record_read(&out, sizeof out, NULL, "x", NULL), 0);
	assert_int_equal(out.size, sizeof out);
	assert_int_equal(out.memory_bytes, 0);
}

static void writes_no_more_than_the_caller_has(void **state)
{
	unsigned char out[2 * sizeof(sb_usage)];
	sb_usage in;

	(void)state;
	memset(&in, 0x77, sizeof in);
	for (size_t size = 0; size <= sizeof out; size++) {
		size_t end = size < sizeof in ? size : sizeof in, kept;
		int rc;

		memset(out, 0, sizeof out);
		memcpy(out, &size, sizeof size);
		rc = record_write(out, &in, sizeof in, "sb_usage", NULL);
		memcpy(&kept, out, sizeof kept);
		unit_row(size, kept == size);
		if (size < sizeof size) {
			unit_row(size, rc == SB_ERR_INVALID);
			continue;
		}
		unit_row(size, rc == 0);
		for (size_t i = sizeof size; i < sizeof out; i++)
			unit_row(size, out[i] == (i < end ? 0x77 : 0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_size),
		cmocka_unit_test(writes_no_more_than_the_caller_has),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
