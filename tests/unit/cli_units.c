/* SPDX-License-Identifier: MIT */
/* cli_units.c - sizes, durations and counts of the command line, as tables. */
#include "unit.h"

#include <errno.h>

#include "../../src/cli/cli.h"

#define K ((uint64_t)1 << 10)
#define M ((uint64_t)1 << 20)
#define G ((uint64_t)1 << 30)

typedef struct row {
	const char *text;
	int code;
	uint64_t value;
} row;

static void check(const row *rows, size_t count, int (*read)(const char *, uint64_t *))
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 4711;
		int code = read(rows[i].text, &value);
		if (code != rows[i].code)
			fail_msg("'%s': %d, wanted %d", rows[i].text, code, rows[i].code);
		if (value != (code == UNITS_OK ? rows[i].value : 4711))
			fail_msg("'%s': %llu", rows[i].text, (unsigned long long)value);
	}
}

static void sizes(void **state)
{
	static const row rows[] = {
		{ "64M", UNITS_OK, 64 * M },
		{ "64MB", UNITS_OK, 64 * M },
		{ "64MiB", UNITS_OK, 64 * M },
		{ "64m", UNITS_OK, 64 * M },
		{ "64mb", UNITS_OK, 64 * M },
		{ "1G", UNITS_OK, G },
		{ "2g", UNITS_OK, 2 * G },
		{ "10K", UNITS_OK, 10 * K },
		{ "10kib", UNITS_OK, 10 * K },
		{ "1.5G", UNITS_OK, G + G / 2 },
		{ "0.5M", UNITS_OK, M / 2 },
		{ "65536", UNITS_OK, 65536 },
		{ "1", UNITS_OK, 1 },
		{ "512B", UNITS_OK, 512 },
		{ "1T", UNITS_OK, 1024 * G },
		{ "7E", UNITS_OK, (uint64_t)7 << 60 },
		{ "9223372036854775807", UNITS_OK, INT64_MAX },
		{ "", UNITS_EMPTY, 0 },
		{ "-1", UNITS_NEGATIVE, 0 },	 { "--", UNITS_SYNTAX, 0 },
		{ "-64M", UNITS_NEGATIVE, 0 },
		{ "0", UNITS_ZERO, 0 },
		{ "0M", UNITS_ZERO, 0 },
		{ "0.0000001K", UNITS_ZERO, 0 },
		{ "8E", UNITS_RANGE, 0 },
		{ "9223372036854775808", UNITS_RANGE, 0 },
		{ "99999999999999999999G", UNITS_RANGE, 0 },
		{ "999999999999999999999", UNITS_RANGE, 0 },
		{ "12Q", UNITS_UNIT, 0 },
		{ "64 M", UNITS_UNIT, 0 },
		{ "64MM", UNITS_UNIT, 0 },
		{ "64MiBs", UNITS_UNIT, 0 },
		{ "64Mi", UNITS_UNIT, 0 },
		{ "64i", UNITS_UNIT, 0 },
		{ "64iB", UNITS_UNIT, 0 },
		{ "0x10", UNITS_UNIT, 0 },
		{ "1e6", UNITS_UNIT, 0 },
		{ "1,5G", UNITS_UNIT, 0 },
		{ "64M ", UNITS_UNIT, 0 },
		{ " 64M", UNITS_SYNTAX, 0 },
		{ "+64M", UNITS_SYNTAX, 0 },
		{ "M", UNITS_SYNTAX, 0 },
		{ "1.", UNITS_SYNTAX, 0 },
		{ "1.M", UNITS_SYNTAX, 0 },
		{ ".5M", UNITS_SYNTAX, 0 },
		{ "1.5", UNITS_SYNTAX, 0 },
		{ "1.5B", UNITS_SYNTAX, 0 },
		{ "1.0000000001G", UNITS_SYNTAX, 0 },
		{ "nan", UNITS_SYNTAX, 0 },
		{ "\xc2\xbd", UNITS_SYNTAX, 0 },
	};

	(void)state;
	check(rows, UNIT_LEN(rows), units_size);
}

static void durations(void **state)
{
	static const row rows[] = {
		{ "300ms", UNITS_OK, 300 },
		{ "1.5s", UNITS_OK, 1500 },
		{ "5s", UNITS_OK, 5000 },
		{ "2m", UNITS_OK, 120000 },
		{ "1h", UNITS_OK, 3600000 },
		{ "1d", UNITS_OK, 86400000 },
		{ "1h30m", UNITS_OK, 5400000 },
		{ "1m1.5s", UNITS_OK, 61500 },
		{ "0.0015s", UNITS_OK, 2 },
		{ "100us", UNITS_OK, 1 },
		{ "", UNITS_EMPTY, 0 },
		{ "5", UNITS_NO_UNIT, 0 },
		{ "0", UNITS_NO_UNIT, 0 },
		{ "1.5", UNITS_NO_UNIT, 0 },
		{ "1h30", UNITS_NO_UNIT, 0 },
		{ "-1", UNITS_NEGATIVE, 0 },
		{ "-5s", UNITS_NEGATIVE, 0 },
		{ "0s", UNITS_ZERO, 0 },
		{ "0x", UNITS_UNIT, 0 },
		{ "1e99", UNITS_UNIT, 0 },
		{ "5 parsecs", UNITS_UNIT, 0 },
		{ "5 s", UNITS_UNIT, 0 },
		{ "5S", UNITS_UNIT, 0 },
		{ "5M", UNITS_UNIT, 0 },
		{ "5sec", UNITS_UNIT, 0 },
		{ "1s-1s", UNITS_UNIT, 0 },
		{ "banana", UNITS_SYNTAX, 0 },
		{ "s", UNITS_SYNTAX, 0 },
		{ "+5s", UNITS_SYNTAX, 0 },
		{ "1s1m", UNITS_SYNTAX, 0 },
		{ "1s1s", UNITS_SYNTAX, 0 },
		{ "1.5m30s", UNITS_SYNTAX, 0 },
		{ "1..5s", UNITS_SYNTAX, 0 },
		{ "99999999999999999999", UNITS_NO_UNIT, 0 },
		{ "999999999999999999999", UNITS_RANGE, 0 },
		{ "99999999999999999999s", UNITS_RANGE, 0 },
		{ "9223372036854775807ms", UNITS_OK, INT64_MAX },
		{ "9223372036854775808ms", UNITS_RANGE, 0 },
		{ "99999999999999999999d99999999999999999999h", UNITS_RANGE, 0 },
	};

	(void)state;
	check(rows, UNIT_LEN(rows), units_duration);
}

static void counts(void **state)
{
	static const row rows[] = {
		{ "1", UNITS_OK, 1 },	      { "64", UNITS_OK, 64 },
		{ "", UNITS_EMPTY, 0 },	      { "0", UNITS_ZERO, 0 },
		{ "-3", UNITS_NEGATIVE, 0 },  { "1.5", UNITS_SYNTAX, 0 },
		{ "64k", UNITS_SYNTAX, 0 },   { "many", UNITS_SYNTAX, 0 },
		{ "99999999999999999999", UNITS_RANGE, 0 },
	};

	(void)state;
	check(rows, UNIT_LEN(rows), units_count);
}

static void texts(void **state)
{
	static const struct { uint64_t value; const char *text; } sizes_as[] = {
		{ 1, "1 bytes" },	   { 1023, "1023 bytes" },   { 1024, "1 KiB" },
		{ 64 * M, "64 MiB" },	   { G + G / 2, "1.5 GiB" }, { 10 * K, "10 KiB" },
		{ INT64_MAX, "7.9 EiB" },  { SB_UNLIMITED, "unlimited" },
	}, durations_as[] = {
		{ 1, "1 ms" },	     { 300, "300 ms" },	  { 1500, "1.5 s" }, { 90000, "90 s" },
		{ 120000, "2 min" }, { SB_UNLIMITED, "unlimited" },
	};
	char text[UNITS_TEXT];

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(sizes_as); i++)
		assert_string_equal(units_size_text(sizes_as[i].value, text), sizes_as[i].text);
	for (size_t i = 0; i < UNIT_LEN(durations_as); i++)
		assert_string_equal(units_duration_text(durations_as[i].value, text), durations_as[i].text);
}

static void errors_begin_small(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(units_errno_text(ENOENT, text), "no such file or directory");
	assert_string_equal(units_errno_text(EDOTDOT, text), strerror(EDOTDOT)); /* an abbreviation */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(counts),
		cmocka_unit_test(texts),
		cmocka_unit_test(errors_begin_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
