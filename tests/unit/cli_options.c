/* SPDX-License-Identifier: MIT */
/* cli_options.c - words of a command line against what they must set, or be refused for. */
#include "unit.h"

#include "../../src/cli/options.h"

enum { MAX_WORDS = 16 };

/* Splits at "|": a word may hold blanks.  The caller's array is NULL-ended. */
static void split(char *line, char **words)
{
	size_t n = 0;

	for (char *at = line; at != NULL && *line != '\0';) {
		char *bar = strchr(at, '|');
		if (bar != NULL)
			*bar++ = '\0';
		words[n++] = at;
		assert_true(n < MAX_WORDS);
		at = bar;
	}
	words[n] = NULL;
}

static int parse(int command, const char *line, cli_options *options, sb_error *err)
{
	static char text[512];
	static char *words[MAX_WORDS];

	assert_true(strlen(line) < sizeof text);
	memcpy(text, line, strlen(line) + 1);
	split(text, words);
	return options_parse(command, words, options, err);
}

/* Refused, in one line that names what the row says. */
static void refusals(void **state)
{
	static const struct { const char *line, *says; } rows[] = {
		{ "--no-such-option|--|true", "--no-such-option" },
		{ "--timeot|5s", "did you mean --timeout" },
		{ "-x", "unknown option \"-x\"" },
		{ "--xy", "unknown option \"--xy\": see" },
		{ "--network|none", "did you mean --net?" },
		{ "--time|5s", "did you mean --timeout?" },
		{ "--memory|5M", "did you mean --mem?" },
		{ "--timeout|5|--|true", "--timeout \"5\" has no unit" },
		{ "--timeout||--|true", "--timeout \"\" is empty" },
		{ "--timeout=|--|true", "--timeout \"\" is empty" },
		{ "--timeout|-1|--|true", "--timeout \"-1\" is negative" },
		{ "--timeout|5 parsecs", "--timeout \"5 parsecs\" has an unknown unit" },
		{ "--timeout|banana", "300ms, 1.5s" },
		{ "--timeout", "--timeout needs a value" },
		{ "--mem|512K", "--mem \"512K\" is below the least, which is 1 MiB" },
		{ "--mem|512", "--mem \"512\" is in bytes, and the least is 1 MiB: did you mean 512M?" },
		{ "--mem|12Q", "64M, 64MiB" },
		{ "--mem|99999999999999999999G", "out of range" },
		{ "--pids|0", "--pids \"0\" is zero" },
		{ "--pids|many", "a whole number" },
		{ "--output-mode|drop", "--output-mode \"drop\" is not known: choose stop|truncate" },
		{ "--output-keep|tail", "head|head-tail" },
		{ "--net|allow_list", "--net \"allow_list\" is not available" },
		{ "--net|banana", "--net \"banana\" is not known: choose none|deny_all|host" },
		{ "--workspace-mode|copy", "ro|rw" },
		{ "--require|moat", "--require \"moat\" is no wall" },
		{ "--allow-weaker|memory,moat", "memory, " },
		{ "--allow-weaker|", "no wall" },
		{ "--backend|no-such-backend|--|true", "--backend \"no-such-backend\" is not known" },
		{ "--backend|linux,", "--backend \"\" is not known" },
		{ "--json=yes", "--json takes no value, but has \"yes\"" },
		{ "--seccomp", "option \"--seccomp\" belongs to `sandbox explain`" },
		{ "--tim|5s", "did you mean --timeout" },
		{ "--allow|memory", "did you mean --allow-weaker" },
		{ "---", "unknown option \"---\"" },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		cli_options options;
		sb_error err = { 0 };
		int rc = parse(CLI_RUN, rows[i].line, &options, &err);
		if (rc >= 0 || rc != err.code || strstr(err.message, rows[i].says) == NULL ||
		    strchr(err.message, '\n') != NULL)
			fail_msg("%s: %d \"%s\", wanted \"%s\"", rows[i].line, rc, err.message,
				 rows[i].says);
		options_release(&options);
	}
}

/* Where the options end and what is left. */
static void ends(void **state)
{
	static const struct { const char *line; size_t rest; const char *first; bool dashes; } rows[] = {
		{ "", 0, NULL, false },
		{ "a.py|x|--json", 3, "a.py", false },
		{ "--json|a.py|--|x", 3, "a.py", false },
		{ "--json|--|true|--json", 2, "true", true },
		{ "--|--json", 1, "--json", true },
		{ "--", 0, NULL, true },
		{ "--lang|python|-", 1, "-", false },
		{ "--lang|python|-e|1|--timeout|5s", 2, "--timeout", false },
		{ "--lang|python|-e|1|--|x", 1, "x", false },
		{ "--lang=python|--eval=1|x", 1, "x", false },
		{ "-e|1|--lang|python", 0, NULL, false },
		{ "-e|1|--lang|python|--timeout|5s|x|--json", 2, "x", false },
		{ "--env|--|a.py", 1, "a.py", false },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		cli_options options;
		sb_error err = { 0 };
		unit_row(i, parse(CLI_RUN, rows[i].line, &options, &err) == 0);
		unit_row(i, options.rest_count == rows[i].rest && options.dashes == rows[i].dashes);
		unit_row(i, options.rest[options.rest_count] == NULL);
		if (rows[i].first != NULL)
			assert_string_equal(options.rest[0], rows[i].first);
		options_release(&options);
	}
}

static void values(void **state)
{
	cli_options o;
	sb_error err = { 0 };

	(void)state;
	assert_int_equal(parse(CLI_RUN, "--timeout|1s|--timeout=2s|--mem|64M|--pids|20|--cpu|500ms|"
			       "--disk|8M|--output|10K|--quiet", &o, &err), 0);
	assert_int_equal(o.timeout_ms, 2000); /* the last wins */
	assert_int_equal(o.memory_bytes, 64 << 20);
	assert_int_equal(o.procs, 20);
	assert_int_equal(o.cpu_ms, 500);
	assert_int_equal(o.disk_bytes, 8 << 20);
	assert_int_equal(o.output_bytes, 10240);
	assert_true(o.quiet && !o.json && !o.debug);
	options_release(&o);

	assert_int_equal(parse(CLI_RUN, "--output-mode|stop|--output-mode|truncate|--output-keep|head-tail|"
			       "--net|host|--net|none|--workspace-mode|ro|--timeout|unlimited", &o, &err), 0);
	assert_int_equal(o.out_mode, SB_OUT_TRUNCATE);
	assert_int_equal(o.out_keep, SB_KEEP_HEAD_TAIL);
	assert_int_equal(o.net, SB_NET_DENY_ALL);
	assert_int_equal(o.workspace_mode, SB_WORKSPACE_READ);
	assert_true(o.timeout_ms == SB_UNLIMITED);
	options_release(&o);
}

static void lists(void **state)
{
	cli_options o;
	sb_error err = { 0 };

	(void)state;
	assert_int_equal(parse(CLI_RUN, "--env|A=1 2=3|--env=B|--file|a=/b|--ro|/a|--hide|/b|--rw|/c|"
			       "--tmpfs=/d", &o, &err), 0);
	assert_int_equal(o.env.len, 2);
	assert_string_equal(o.env.at[0], "A=1 2=3");
	assert_string_equal(o.env.at[1], "B");
	assert_null(o.env.at[2]);
	assert_int_equal(o.files.len, 1);
	static const uint32_t access[] = { SB_FILE_READ, SB_FILE_HIDE, SB_FILE_WRITE, SB_FILE_TMPFS };
	assert_int_equal(o.rule_count, UNIT_LEN(access));
	for (size_t i = 0; i < UNIT_LEN(access); i++)
		unit_row(i, o.rules[i].access == access[i] && o.rules[i].path[1] == (char)('a' + i));
	options_release(&o);

	assert_int_equal(parse(CLI_RUN, "--backend|linux|--backend|process,linux|--require|network|"
			       "--require|pids,memory|--allow-weaker|disk", &o, &err), 0);
	assert_int_equal(o.backends.len, 2); /* the last wins */
	assert_string_equal(o.backends.at[0], "process");
	assert_string_equal(o.backends.at[1], "linux");
	assert_null(o.backends.at[2]);
	assert_true(o.require == (SB_WALL_BIT(SB_WALL_NETWORK) | SB_WALL_BIT(SB_WALL_PIDS) |
				  SB_WALL_BIT(SB_WALL_MEMORY)));
	assert_true(o.allow_weaker == SB_WALL_BIT(SB_WALL_DISK));
	options_release(&o);
}

static void commands_differ(void **state)
{
	cli_options o;
	sb_error err = { 0 };

	(void)state;
	assert_int_equal(parse(CLI_EXPLAIN, "--seccomp|--path|/x|--json", &o, &err), 0);
	assert_true(o.seccomp && o.json);
	options_release(&o);
	assert_true(parse(CLI_EXPLAIN, "--quiet", &o, &err) < 0);
	options_release(&o);
	assert_true(parse(CLI_DOCTOR, "--timeout|5s", &o, &err) < 0);
	options_release(&o);
	assert_int_equal(parse(CLI_RUN, "-h|--no-such", &o, &err), 0);
	assert_true(o.help);
	options_release(&o);
}

/* A table with holes would show here: every row has help, and a value if and only if it takes one. */
static void table(void **state)
{
	(void)state;
	for (size_t i = 0; i < option_count; i++) {
		const cli_option *o = &option_table[i];
		unit_row(i, o->help != NULL && o->help[0] != '\0' && o->commands != 0);
		unit_row(i, (o->value == NULL) == (o->kind == OPTION_FLAG));
		unit_row(i, (o->words != NULL) == (o->kind == OPTION_WORD || o->kind == OPTION_BACKENDS));
		for (size_t j = 0; j < i; j++)
			unit_row(i, strcmp(o->name, option_table[j].name) != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals), cmocka_unit_test(ends),
		cmocka_unit_test(values),   cmocka_unit_test(lists),
		cmocka_unit_test(commands_differ), cmocka_unit_test(table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
