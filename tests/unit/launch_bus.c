/* SPDX-License-Identifier: MIT */
/* launch_bus.c - D-Bus messages: what is written can be read, and what is broken is refused at every byte. */
#include "unit.h"

#include "../../src/launch/bus.h"

/* An answer to call number 2, whose last field is cut. */
static const uint8_t answer[] = {
	'l', 2, 1, 1, 41, 0, 0, 0, 7, 0, 0, 0, 38, 0, 0, 0, /* 38 bytes of fields, 41 of body */
	5, 1, 'u', 0, 2, 0, 0, 0,                           /* answers number 2 */
	8, 1, 'g', 0, 1, 'o', 0, 0,                         /* a path */
	7, 1, 's', 0, 4, 0, 0, 0, ':', '1', '.', '1', 0, 0, 0, 0,
	6, 1, 's', 0, 1, 0,
};

static size_t put_text(uint8_t *to, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);

	memcpy(to, &len, 4);
	memcpy(to + 4, text, len + 1);
	return (4 + len + 1 + 3) / 4 * 4;
}

/* JobRemoved: uoss; its length. */
static size_t make_signal(uint8_t *m, const char *unit, const char *result)
{
	static const uint8_t fields[] = { 3, 1, 's', 0, 10, 0, 0, 0, 'J', 'o', 'b', 'R', 'e', 'm', 'o', 'v', 'e', 'd',
		0, 0, 0, 0, 0, 0, 8, 1, 'g', 0, 4, 'u', 'o', 's', 's', 0 };
	const uint32_t numbers[] = { 0, 5, sizeof fields };
	size_t at = 16 + (sizeof fields + 7) / 8 * 8, body = at;
	uint32_t len;

	memset(m, 0, 512);
	memcpy(m, "l\4\1\1", 4);
	memcpy(m + 4, numbers, sizeof numbers);
	memcpy(m + 16, fields, sizeof fields);
	m[at] = 9;
	at += 4;
	at += put_text(m + at, "/job/9");
	at += put_text(m + at, unit);
	at += put_text(m + at, result);
	len = (uint32_t)(at - body);
	memcpy(m + 4, &len, 4);
	return at;
}

static void calls_are_whole_messages(void **state)
{
	bus_message m;
	bus_out out;

	(void)state;
	bus_hello(&out, 1);
	assert_false(out.full);
	assert_int_equal(bus_length(out.data), out.len);
	assert_true(bus_read(out.data, out.len, &m));
	assert_int_equal(m.type, BUS_CALL);
	assert_string_equal(m.member, "Hello");
	for (int oom = 0; oom < 2; oom++) {
		bus_start_scope(&out, 2, "sandbox-1-2-3.scope", oom);
		assert_false(out.full);
		assert_int_equal(bus_length(out.data), out.len);
		assert_true(bus_read(out.data, out.len, &m));
		assert_string_equal(m.member, "StartTransientUnit");
		assert_int_equal(m.texts, 2);
		assert_string_equal(m.text[0], "sandbox-1-2-3.scope");
		assert_string_equal(m.text[1], "fail");
		assert_int_equal(oom, memmem(out.data, out.len, "OOMPolicy", 9) != NULL);
	}
}

static void a_name_that_does_not_fit_is_told(void **state)
{
	char unit[2000];
	bus_out out;

	(void)state;
	memset(unit, 'x', sizeof unit);
	unit[sizeof unit - 1] = 0;
	bus_start_scope(&out, 2, unit, true);
	assert_true(out.full);
	assert_in_range(out.len, 0, sizeof out.data);
}

static void signals_are_read(void **state)
{
	uint8_t m[512];
	bus_message got;
	size_t len = make_signal(m, "sandbox-1.scope", "failed");

	(void)state;
	assert_int_equal(bus_length(m), len);
	assert_true(bus_read(m, len, &got));
	assert_int_equal(got.type, BUS_SIGNAL);
	assert_string_equal(got.member, "JobRemoved");
	assert_int_equal(got.texts, 4);
	assert_string_equal(got.text[1], "/job/9");
	assert_string_equal(got.text[2], "sandbox-1.scope");
	assert_string_equal(got.text[3], "failed");
}

static void long_texts_are_cut(void **state)
{
	char unit[300];
	uint8_t m[1024];
	bus_message got;

	(void)state;
	memset(unit, 'u', sizeof unit);
	unit[sizeof unit - 1] = 0;
	memset(m, 0, sizeof m);
	assert_true(bus_read(m, make_signal(m, unit, "done"), &got));
	assert_int_equal(strlen(got.text[2]), sizeof got.text[2] - 1);
	assert_string_equal(got.text[3], "done");
}

static void broken_messages_are_refused(void **state)
{
	uint8_t m[512], bad[512];
	bus_message got;
	size_t len = make_signal(m, "a.scope", "done"), i;

	(void)state;
	for (i = 0; i < len; i++)
		assert_false(bus_read(m, i, &got));
	assert_false(bus_read(answer, sizeof answer, &got));
	/* whatever is in a byte, it ends, within its bounds */
	for (i = 0; i < len * 256; i++) {
		memcpy(bad, m, len);
		bad[i / 256] = (uint8_t)i;
		bus_read(bad, len, &got);
		assert_in_range(got.texts, 0, 4);
	}
	memcpy(bad, m, len);
	bad[0] = 'B'; /* the other order of bytes */
	assert_int_equal(bus_length(bad), 0);
	memcpy(bad, m, len);
	bad[7] = 1; /* 16 MiB */
	assert_int_equal(bus_length(bad), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_whole_messages),
		cmocka_unit_test(a_name_that_does_not_fit_is_told),
		cmocka_unit_test(signals_are_read),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(broken_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
