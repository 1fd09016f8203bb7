/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

typedef const char *(*name_fn)(int);
typedef int (*parse_fn)(const char *, int *);

static const struct {
	name_fn name;
	parse_fn parse;
	size_t count; /* words that must be there, over numbers -2000..5000 */
} nouns[] = {
	{ sb_code_name, sb_code_parse, 41 },	    { sb_kind_name, sb_kind_parse, 12 },
	{ sb_wall_name, sb_wall_parse, 12 },	    { sb_level_name, sb_level_parse, 4 },
	{ sb_profile_name, sb_profile_parse, 5 },   { sb_outcome_name, sb_outcome_parse, 9 },
	{ sb_stream_name, sb_stream_parse, 4 },	    { sb_signal_name, sb_signal_parse, 9 },
	{ sb_net_mode_name, sb_net_mode_parse, 5 }, { sb_action_name, sb_action_parse, 3 },
	{ sb_env_base_name, sb_env_base_parse, 4 }, { sb_access_name, sb_access_parse, 5 },
	{ sb_left_name, sb_left_parse, 4 },
	{ sb_audit_name, sb_audit_parse, 9 },	    { sb_cap_name, sb_cap_parse, 13 },
};

static void every_word_is_read_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_LEN(nouns); i++) {
		size_t count = 0;
		int value = 7;

		for (int number = -2000; number <= 5000; number++) {
			const char *word = nouns[i].name(number);

			if (strcmp(word, "?") == 0)
				continue;
			count++;
			unit_row(i, strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_") ==
					    strlen(word));
			unit_row(i, nouns[i].parse(word, &value) == 0 && value == number);
		}
		unit_row(i, count == nouns[i].count);
		value = 7;
		unit_row(i, nouns[i].parse("no such word", &value) == SB_ERR_NOT_FOUND);
		unit_row(i, nouns[i].parse("?", &value) == SB_ERR_NOT_FOUND);
		unit_row(i, nouns[i].parse(NULL, &value) == SB_ERR_NOT_FOUND && value == 7);
	}
}

/* Words that documents and JSON promise. */
static void promised_words(void **state)
{
	static const struct {
		name_fn name;
		int value;
		const char *word;
	} rows[] = {
		{ sb_outcome_name, SB_OUTCOME_EXITED, "exited" },
		{ sb_outcome_name, SB_OUTCOME_SIGNALED, "signaled" },
		{ sb_outcome_name, SB_OUTCOME_TIMED_OUT, "timed_out" },
		{ sb_outcome_name, SB_OUTCOME_BUDGET_EXCEEDED, "budget_exceeded" },
		{ sb_outcome_name, SB_OUTCOME_VIOLATION, "violation" },
		{ sb_code_name, SB_ERR_TIMEOUT, "timeout" },
		{ sb_code_name, SB_ERR_MEMORY_LIMIT, "memory_limit" },
		{ sb_code_name, SB_ERR_CPU_LIMIT, "cpu_limit" },
		{ sb_code_name, SB_ERR_OUTPUT_LIMIT, "output_limit" },
		{ sb_code_name, SB_ERR_FS_QUOTA, "fs_quota" },
		{ sb_code_name, SB_ERR_TOO_MANY_FILES, "too_many_files" },
		{ sb_code_name, SB_ERR_PIDS_LIMIT, "pids_limit" },
		{ sb_code_name, SB_ERR_CANCELLED, "cancelled" },
		{ sb_code_name, SB_ERR_UNENFORCEABLE, "unenforceable" },
		{ sb_net_mode_name, SB_NET_DENY_ALL, "deny_all" },
		{ sb_net_mode_name, SB_NET_ALLOW_LIST, "allow_list" },
		{ sb_level_name, SB_LEVEL_HARD, "hard" },
		{ sb_wall_name, SB_WALL_ENV, "env" },
		{ sb_wall_name, SB_WALL_COUNT, "?" },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, strcmp(rows[i].name(rows[i].value), rows[i].word) == 0);
}

static void policies_have_names(void **state)
{
	static const char *const only[] = { "WasmOnly", "wasmonly", "wasm-only", "WASM_ONLY" };
	const char *const *names = NULL;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(only); i++)
		unit_row(i, sb_policy_parse(only[i], &names) == 0 && !strcmp(names[0], "wasm") && !names[1]);
	assert_int_equal(sb_policy_parse("PreferWasm", &names), 0);
	assert_string_equal(names[0], "wasm");
	assert_string_equal(names[1], "linux");
	assert_string_equal(names[2], "container");
	assert_null(names[3]);
	assert_int_equal(sb_policy_parse("wasm", &names), SB_ERR_NOT_FOUND);
	assert_null(names);
	assert_int_equal(sb_policy_parse("WasmOnlyX", &names), SB_ERR_NOT_FOUND);
	assert_int_equal(sb_policy_parse("", &names), SB_ERR_NOT_FOUND);
	assert_int_equal(sb_policy_parse(NULL, &names), SB_ERR_NOT_FOUND);
}

static void backends_have_aliases(void **state)
{
	static const struct {
		const char *text, *name;
	} rows[] = {
		{ "process", "process" },  { "proc", "process" },      { "PROC", "process" },
		{ "linux", "linux" },	   { "Linux", "linux" },       { "container", "container" },
		{ "docker", "container" }, { "DOCKER", "container" },  { "wasm", "wasm" },
		{ "wasi", "wasm" },	   { "k8s", "k8s" },	       { "kubernetes", "k8s" },
		{ "job", "k8s" },	   { "seatbelt", "seatbelt" }, { "noop", "noop" },
	};
	static const char *const unknown[] = { "foo", "Foo", "", "docke", "dockers", "linux " };
	const char *name = NULL;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, sb_backend_parse(rows[i].text, &name) == 0 &&
				    strcmp(name, rows[i].name) == 0);
	for (size_t i = 0; i < UNIT_LEN(unknown); i++)
		unit_row(i, sb_backend_parse(unknown[i], &name) == SB_ERR_NOT_FOUND &&
				    name == unknown[i]);
	assert_int_equal(sb_backend_parse(NULL, &name), SB_ERR_NOT_FOUND);
	assert_null(name);
}

static void each_code_has_its_kind(void **state)
{
	static const struct {
		int code, kind;
	} rows[] = {
		{ 0, SB_KIND_NONE },
		{ SB_ERR_INVALID, SB_KIND_VALIDATION },
		{ SB_ERR_CHECKSUM, SB_KIND_VALIDATION },
		{ SB_ERR_UNKNOWN_LANGUAGE, SB_KIND_NOT_FOUND },
		{ SB_ERR_SESSION_NOT_FOUND, SB_KIND_NOT_FOUND },
		{ SB_ERR_PATH_TRAVERSAL, SB_KIND_FORBIDDEN },
		{ SB_ERR_CONFLICT, SB_KIND_CONFLICT },
		{ SB_ERR_TIMEOUT, SB_KIND_TIMEOUT },
		{ SB_ERR_CANCELLED, SB_KIND_ABORTED },
		{ SB_ERR_UNSUPPORTED, SB_KIND_NOT_AVAILABLE },
		{ SB_ERR_BACKEND_UNAVAILABLE, SB_KIND_NOT_AVAILABLE },
		{ SB_ERR_UNENFORCEABLE, SB_KIND_NOT_AVAILABLE },
		{ SB_ERR_MEMORY_LIMIT, SB_KIND_BUDGET_EXCEEDED },
		{ SB_ERR_OUTPUT_LIMIT, SB_KIND_BUDGET_EXCEEDED },
		{ SB_ERR_FS_QUOTA, SB_KIND_BUDGET_EXCEEDED },
		{ SB_ERR_NETWORK_DENIED, SB_KIND_POLICY_DENIED },
		{ SB_ERR_SESSION_KILLED, SB_KIND_CLOSED },
		{ SB_ERR_CONNECTION_LOST, SB_KIND_INTERNAL },
		{ 1, SB_KIND_INTERNAL },
		{ -1, SB_KIND_INTERNAL },
		{ -1200, SB_KIND_INTERNAL },
		{ INT32_MIN, SB_KIND_INTERNAL },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, sb_error_kind(rows[i].code) == rows[i].kind);
}

static void an_error_is_its_code_cause_and_parents(void **state)
{
	static const struct {
		int code, cause, is;
		int yes;
	} rows[] = {
		{ SB_ERR_FS_QUOTA, 0, SB_ERR_FS_QUOTA, 1 },
		{ SB_ERR_TOO_MANY_FILES, 0, SB_ERR_TOO_MANY_FILES, 1 },
		{ SB_ERR_TOO_MANY_FILES, 0, SB_ERR_FS_QUOTA, 1 },
		{ SB_ERR_FS_QUOTA, 0, SB_ERR_TOO_MANY_FILES, 0 },
		{ SB_ERR_PATH_TRAVERSAL, 0, SB_ERR_FORBIDDEN, 1 },
		{ SB_ERR_FORBIDDEN, 0, SB_ERR_PATH_TRAVERSAL, 0 },
		{ SB_ERR_SESSION_KILLED, SB_ERR_TIMEOUT, SB_ERR_TIMEOUT, 1 },
		{ SB_ERR_SESSION_KILLED, SB_ERR_TIMEOUT, SB_ERR_CLOSED, 1 },
		{ SB_ERR_SESSION_KILLED, SB_ERR_TOO_MANY_FILES, SB_ERR_FS_QUOTA, 1 },
		{ SB_ERR_INVALID_LIMITS, 0, SB_ERR_INVALID, 1 },
		{ SB_ERR_IO, 0, SB_ERR_INTERNAL, 0 },
		{ SB_ERR_TIMEOUT, 0, SB_ERR_AGAIN, 0 },
		{ SB_ERR_IO, 0, 0, 0 },
		{ 0, 0, 0, 1 },
		{ 0, 0, SB_ERR_IO, 0 },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		const sb_error err = { .code = rows[i].code, .cause = rows[i].cause };

		unit_row(i, sb_error_is(&err, rows[i].is) == rows[i].yes);
	}
	assert_int_equal(sb_error_is(NULL, SB_ERR_IO), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_is_read_back),
		cmocka_unit_test(promised_words),
		cmocka_unit_test(backends_have_aliases),
		cmocka_unit_test(policies_have_names),
		cmocka_unit_test(each_code_has_its_kind),
		cmocka_unit_test(an_error_is_its_code_cause_and_parents),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
