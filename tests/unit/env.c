/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* Built and joined with blanks, or the name of the error. */
static char *build(uint64_t base, const char *const *allow, const char *const *inject,
		   const char *const *fixed, const char *const *host, const char *const *command)
{
	const sb_env env = { .size = sizeof env, .allow = allow, .inject = inject, .base = base };
	static char text[512];
	char **list = NULL;
	int rc = env_build(&env, fixed, host, command, &list, NULL);

	snprintf(text, sizeof text, "%s", rc < 0 ? sb_code_name(rc) : "");
	for (char **p = list; p && *p; p++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
			 p == list ? "" : " ", *p);
	strv_free_list(list);
	return text;
}

static void the_base_decides_what_comes_in(void **state)
{
	const char *const *host =
		LIST("PATH=/bin", "SECRET=s", "HOME=/root", "EMPTY=", "odd", "=C:");
	const char *const *fixed = LIST("PATH=/usr/bin", "LANG=C");

	(void)state;
	assert_string_equal(build(SB_ENV_INHERIT, NULL, NULL, NULL, host, NULL),
			    "EMPTY= HOME=/root PATH=/bin SECRET=s");
	assert_string_equal(build(SB_ENV_NONE, NULL, NULL, NULL, host, NULL), "");
	assert_string_equal(build(SB_ENV_LIST, LIST(), NULL, NULL, host, NULL), "");
	assert_string_equal(build(SB_ENV_LIST, LIST("NOPE"), NULL, NULL, host, NULL), "");
	assert_string_equal(build(SB_ENV_LIST, NULL, NULL, NULL, host, NULL), "");
	assert_string_equal(
		build(SB_ENV_LIST, LIST("PAT", "PATHS", "HOME"), NULL, NULL, host, NULL),
		"HOME=/root");
	assert_string_equal(build(SB_ENV_LIST, LIST("PATH"), NULL, fixed, host, NULL),
			    "LANG=C PATH=/bin");
	assert_string_equal(build(SB_ENV_NONE, NULL, NULL, fixed, host, NULL),
			    "LANG=C PATH=/usr/bin");
	assert_string_equal(build(SB_ENV_NONE, NULL, NULL, NULL, NULL, NULL), "");
}

static void the_later_wins(void **state)
{
	const char *const *host = LIST("PATH=host", "A=host", "A=again");

	(void)state;
	assert_string_equal(
		build(SB_ENV_INHERIT, NULL, LIST("PATH=inject", "B=1"), NULL, host, NULL),
		"A=again B=1 PATH=inject");
	assert_string_equal(build(SB_ENV_INHERIT, NULL, LIST("PATH=inject", "B=1"), LIST("PATH=f"),
				  host, LIST("PATH=command", "PATH=last", "AB=2")),
			    "A=again AB=2 B=1 PATH=last");
	assert_string_equal(build(SB_ENV_NONE, NULL, LIST("A=1 2=3"), NULL, host, LIST("B=")),
			    "A=1 2=3 B=");
	assert_string_equal(
		build(SB_ENV_NONE, NULL, LIST("__proto__=x", "constructor=y"), NULL, NULL, NULL),
		"__proto__=x constructor=y");
}

static void bad_entries_are_refused_and_never_shown(void **state)
{
	static const struct {
		const char *entry;
		bool name_only;
		int rc;
	} rows[] = {
		{ "A=b", false, 0 },
		{ "A=", false, 0 },
		{ "A=b=c", false, 0 },
		{ "A", true, 0 },
		{ "=x", false, SB_ERR_INVALID_SPEC },
		{ "", false, SB_ERR_INVALID_SPEC },
		{ "A", false, SB_ERR_INVALID_SPEC },
		{ "A=b", true, SB_ERR_INVALID_SPEC },
		{ "", true, SB_ERR_INVALID_SPEC },
		{ "=", true, SB_ERR_INVALID_SPEC },
	};
	sb_error err;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, env_check(rows[i].entry, rows[i].name_only, NULL) == rows[i].rc);
	env_check("=hunter2", false, &err);
	assert_null(strstr(err.message, "hunter2"));
	env_check("TOKEN=hunter2", true, &err);
	assert_null(strstr(err.message, "hunter2"));
	assert_non_null(strstr(err.message, "TOKEN"));
	assert_string_equal(build(SB_ENV_NONE, NULL, LIST("=x"), NULL, NULL, NULL), "invalid_spec");
	assert_string_equal(build(SB_ENV_NONE, NULL, NULL, NULL, NULL, LIST("x")), "invalid_spec");
	assert_string_equal(build(SB_ENV_DEFAULT, NULL, NULL, NULL, NULL, NULL), "invalid_spec");
	assert_string_equal(build(9, NULL, NULL, NULL, NULL, NULL), "invalid_spec");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_base_decides_what_comes_in),
		cmocka_unit_test(the_later_wins),
		cmocka_unit_test(bad_entries_are_refused_and_never_shown),
	};

	return cmocka_run_group_tests_name("env", tests, NULL, NULL);
}
