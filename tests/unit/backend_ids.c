/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <unistd.h>

#include "../../src/backend/linux/facts.h"

static void the_range_comes_of_the_map(void **state)
{
	static const struct { const char *map; bool found; uint32_t first, count; } rows[] = {
		{ "         0          0 4294967295\n", true, LINUX_UID_FIRST, LINUX_UID_COUNT },
		/* rootless and nested: the top below nobody */
		{ "0 1000 1\n1 100000 65536\n", true, 64510, 1024 },
		{ "0 100000 65536\n", true, 64510, 1024 },
		{ "0 100000 1500\n", true, 1000, 500 },
		{ "0 0 1\n2000 5000 10\n", true, 2000, 10 },
		/* nobody alone is better than nothing, and only then */
		{ "0 0 1\n65534 65534 1\n", true, 65534, 1 },
		{ "0 0 1\n", false, 0, 0 },
		{ "0 0 1000\n", false, 0, 0 },
		{ "", false, 0, 0 },
		{ "rubbish\n", false, 0, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		uint32_t first = 0, count = 0;

		unit_row(i, ids_range_of_map(rows[i].map, &first, &count) == rows[i].found);
		unit_row(i, first == rows[i].first && count == rows[i].count);
		unit_row(i, !rows[i].found || first >= LINUX_UID_LEAST);
	}
}

static void live_boxes_never_share_a_uid(void **state)
{
	/* a range that nothing else on this machine uses */
	const uint32_t first = 1900000000u + (uint32_t)getpid() * 8;
	uint32_t uid[4];
	int lock[4], extra, i, j;
	sb_error err;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(ids_reserve(first, 4, SB_UNLIMITED, &uid[i], &lock[i], &err), 0);
		assert_in_range(uid[i], first, first + 3);
		for (j = 0; j < i; j++)
			assert_int_not_equal(uid[i], uid[j]);
	}
	/* all taken: refused at the deadline, with what to do */
	assert_int_equal(ids_reserve(first, 4, 0, &uid[0], &extra, &err), SB_ERR_BACKEND_UNAVAILABLE);
	assert_non_null(strstr(err.message, "uid_count"));
	close(lock[2]);
	assert_int_equal(ids_reserve(first, 4, 0, &uid[3], &extra, &err), 0);
	assert_int_equal(uid[3], uid[2]);
	close(extra);
	for (i = 0; i < 4; i++)
		if (i != 2)
			close(lock[i]);
}

static void names_come_of_the_password_file(void **state)
{
	static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
		"mary:x:1001:1001::/home/mary:/bin/sh\nodd name:x:1002:1:::\n:x:1003:1:::\n"
		"short:x\n-rf:x:1004:1:::\nlast:x:1005:1::/:";
	static const struct { uid_t uid; const char *name; } rows[] = {
		{ 0, "root" }, { 1001, "mary" }, { 1002, "user" }, { 1003, "user" }, { 1004, "user" },
		{ 1005, "last" }, { 77, "user" }, { 100, "user" },
	};
	char name[33];
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		ids_user_name(passwd, rows[i].uid, name, sizeof name);
		unit_row(i, !strcmp(name, rows[i].name));
	}
	ids_user_name("", 5, name, sizeof name);
	assert_string_equal(name, "user");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_range_comes_of_the_map),
		cmocka_unit_test(live_boxes_never_share_a_uid),
		cmocka_unit_test(names_come_of_the_password_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
