/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "json_reader.h"

#include "../../src/core/core.h"

static void set_output(sb_result *result, int stream, const char *data, size_t len)
{
	free(result->output[stream]);
	result->output[stream] = malloc(len + 1);
	memcpy(result->output[stream], data, len);
	result->output[stream][len] = '\0';
	result->output_len[stream] = len;
}

static sb_result *result_of(int outcome, int code, int signal_number)
{
	sb_result *result = NULL;

	assert_int_equal(result_new(&result, NULL), 0);
	result->outcome = outcome;
	result->code = code;
	result->signal_number = signal_number;
	return result;
}

static void an_untouched_result_is_whole(void **state)
{
	sb_result *result = NULL;
	size_t len = 9, at = 9;
	sb_usage usage = { .size = sizeof usage, .wall_us = 5 };

	(void)state;
	assert_int_equal(result_new(&result, NULL), 0);
	assert_int_equal(result_finish(result, NULL), 0);
	for (int stream = -1; stream < 6; stream++) {
		unit_row(stream,
			 strcmp(sb_result_output(result, stream, &len), "") == 0 && len == 0);
		unit_row(stream, sb_result_dropped(result, stream, &at) == 0 && at == 0);
	}
	assert_int_equal(sb_result_code(result), -1);
	assert_int_equal(sb_result_error(result), 0);
	assert_null(sb_result_failure(result));
	assert_non_null(sb_result_files(result));
	assert_null(sb_result_appeared(result)[0]);
	assert_null(sb_result_plan(result));
	assert_string_equal(sb_result_backend(result), "");
	assert_string_equal(sb_result_value(result), "");
	sb_result_usage(result, &usage);
	assert_int_equal(usage.wall_us, 0);
	assert_true(json_reader_ok(sb_result_json(result)));
	assert_ptr_equal(sb_result_json(result), sb_result_json(result));
	sb_result_free(result);
	sb_result_free(NULL);
}

/* Code and signal are told only where the outcome has them. */
static void the_end_is_told_once(void **state)
{
	static const struct {
		int outcome, code, signal_number;
		const char *json;
	} rows[] = {
		{ SB_OUTCOME_EXITED, 0, 0,
		  "\"outcome\":\"exited\",\"exit_code\":0,\"signal\":null" },
		{ SB_OUTCOME_EXITED, 137, 9,
		  "\"outcome\":\"exited\",\"exit_code\":137,\"signal\":null" },
		{ SB_OUTCOME_SIGNALED, 0, 9,
		  "\"outcome\":\"signaled\",\"exit_code\":null,\"signal\":9" },
		{ SB_OUTCOME_TIMED_OUT, 0, 9,
		  "\"outcome\":\"timed_out\",\"exit_code\":null,\"signal\":null" },
		{ SB_OUTCOME_LOST, 1, 0,
		  "\"outcome\":\"lost\",\"exit_code\":null,\"signal\":null" },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_result *r = result_of(rows[i].outcome, rows[i].code, rows[i].signal_number);

		assert_int_equal(result_finish(r, NULL), 0);
		unit_row(i, sb_result_code(r) == (i < 2 ? rows[i].code : -1));
		unit_row(i, sb_result_signal(r) == (i == 2 ? 9 : 0));
		unit_row(i, strstr(sb_result_json(r), rows[i].json) != NULL);
		unit_row(i, json_reader_ok(sb_result_json(r)));
		sb_result_free(r);
	}
}

static void json_has_all_of_it(void **state)
{
	sb_result *r = result_of(SB_OUTCOME_BUDGET_EXCEEDED, 0, 0);
	const sb_plan_line line = { .size = sizeof line,
				    .mechanism = "cgroup",
				    .wall = SB_WALL_MEMORY,
				    .level = SB_LEVEL_HARD };
	const char *words;
	strv list = { 0 };

	(void)state;
	set_output(r, SB_STDOUT, "42\n", 3);
	set_output(r, SB_STDERR, "\xff\0ok", 4);
	r->dropped[SB_STDERR] = 7;
	r->gap_at[SB_STDERR] = 2;
	r->truncated = 5;
	error_set(&r->failure, SB_ERR_MEMORY_LIMIT, "cgroup", "out of \"it\"");
	sb_tree_free(r->files);
	assert_int_equal(sb_tree_new(SB_UNLIMITED, SB_UNLIMITED, &r->files, NULL), 0);
	assert_int_equal(sb_tree_write(r->files, "a/b.txt", "hi", 2, NULL), 0);
	assert_int_equal(strv_add(&list, "/w/.envrc"), 0);
	r->appeared = strv_take(&list);
	r->backend = strdup("linux");
	r->language = strdup("python");
	r->usage.wall_us = 14213;
	r->usage.oom_kills = 1;
	assert_int_equal(plan_new("linux", &r->plan, NULL), 0);
	assert_int_equal(sb_plan_add(r->plan, &line, NULL), 0);
	assert_int_equal(result_finish(r, NULL), 0);
	words = sb_result_json(r);
	assert_true(json_reader_ok(words));
	assert_string_equal(
		words,
		"{\"schema\":1,\"outcome\":\"budget_exceeded\",\"exit_code\":null,\"signal\":null,"
		"\"error\":{\"code\":\"memory_limit\",\"kind\":\"budget_exceeded\",\"where\":"
		"\"cgroup\","
		"\"message\":\"out of \\\"it\\\"\",\"errno\":0},\"stdout\":\"42\\n\","
		"\"stderr\":\"\xef\xbf\xbd\\u0000ok\",\"stderr_base64\":\"/"
		"wBvaw==\",\"truncated\":true,"
		"\"incomplete\":false,\"dropped\":{\"stdout\":0,\"stderr\":7},\"backend\":"
		"\"linux\","
		"\"language\":\"python\",\"value\":null,\"exception\":null,\"restarted\":false,"
		"\"files\":[{\"path\":\"a/b.txt\",\"bytes\":2}],"
		"\"files_left_out\":{\"link\":0,\"special\":0,\"too_deep\":0,\"unreadable\":0},"
		"\"usage\":{\"wall_ms\":14.213,\"user_ms\":0.000,\"system_ms\":0.000,\"peak_memory_"
		"bytes\":0,"
		"\"memory_refused\":0,\"oom_kills\":1,\"pids_refused\":0,\"disk_refused\":0,\"fs_"
		"bytes\":0,"
		"\"fs_nodes\":0,\"net_requests\":0,\"net_sent_bytes\":0,\"net_received_bytes\":0},"
		"\"teardown\":{\"killed\":0,\"left\":0,\"took_ms\":0.000},"
		"\"plan\":[{\"wall\":\"memory\",\"level\":\"hard\",\"mechanism\":\"cgroup\","
		"\"caveat\":\"\","
		"\"required\":false}],\"appeared\":[\"/w/.envrc\"],\"net_log\":[],\"denials\":[]}");
	assert_int_equal(sb_result_failure(r)->kind, SB_KIND_BUDGET_EXCEEDED);
	assert_int_equal(sb_result_truncated(r), 1);
	sb_result_free(r);
}

/* Any bytes on a stream: valid JSON, and the exact bytes in it one way or the other. */
static void any_output_makes_valid_json(void **state)
{
	static const char text[] = "a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80";
	uint64_t seed = 9;
	char bytes[40];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		sb_result *r = result_of(SB_OUTCOME_EXITED, 0, 0);
		size_t len = unit_random(&seed) % sizeof bytes;
		bool valid;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)unit_random(&seed);
		if (round < (int)sizeof text) /* and a cut at each offset of a text */
			memcpy(bytes, text, len = (size_t)round);
		valid = utf8_valid(bytes, len);
		set_output(r, SB_STDOUT, bytes, len);
		assert_int_equal(result_finish(r, NULL), 0);
		assert_true(json_reader_ok(sb_result_json(r)));
		assert_true((strstr(sb_result_json(r), "stdout_base64") == NULL) == valid);
		sb_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_untouched_result_is_whole),
		cmocka_unit_test(the_end_is_told_once),
		cmocka_unit_test(json_has_all_of_it),
		cmocka_unit_test(any_output_makes_valid_json),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
