/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

#define RULE(p, a, ...)                                                                            \
	(sb_file_rule)                                                                             \
	{                                                                                          \
		.size = sizeof(sb_file_rule), .path = p, .access = a, __VA_ARGS__                  \
	}

static void rules_are_checked(void **state)
{
	static const struct {
		sb_file_rule rule;
		int rc;
	} rows[] = {
		{ { .path = "/a", .access = SB_FILE_READ }, 0 },
		{ { .path = "/a/./b//", .access = SB_FILE_WRITE, .source = "/c" }, 0 },
		{ { .path = "/a*",
		    .access = SB_FILE_HIDE,
		    .flags = SB_FILE_GLOB | SB_FILE_OPTIONAL },
		  0 },
		{ { .path = "/t", .access = SB_FILE_TMPFS, .max_bytes = 4096 }, 0 },
		{ { .path = "/project[1]/{s}\n", .access = SB_FILE_HIDE }, 0 },
		{ { .path = NULL, .access = SB_FILE_READ }, SB_ERR_INVALID_SPEC },
		{ { .path = "rel/ative", .access = SB_FILE_TMPFS }, SB_ERR_INVALID_PATH },
		{ { .path = "", .access = SB_FILE_READ }, SB_ERR_INVALID_PATH },
		{ { .path = "/a/../b", .access = SB_FILE_READ }, SB_ERR_INVALID_PATH },
		{ { .path = "/a", .access = SB_FILE_READ, .source = "b" }, SB_ERR_INVALID_PATH },
		{ { .path = "/", .access = SB_FILE_WRITE }, SB_ERR_INVALID_SPEC },
		{ { .path = "/./", .access = SB_FILE_HIDE }, SB_ERR_INVALID_SPEC },
		{ { .path = "/a", .access = 0 }, SB_ERR_INVALID_SPEC },
		{ { .path = "/a", .access = 6 }, SB_ERR_INVALID_SPEC },
		{ { .path = "/a", .access = SB_FILE_READ, .flags = 8 }, SB_ERR_UNSUPPORTED },
		{ { .path = "/a", .access = SB_FILE_HIDE, .source = "/b" }, SB_ERR_INVALID_SPEC },
		{ { .path = "/a", .access = SB_FILE_READ, .flags = SB_FILE_GLOB, .source = "/b" },
		  SB_ERR_INVALID_SPEC },
		{ { .path = "/a", .access = SB_FILE_READ, .max_bytes = 1 }, SB_ERR_INVALID_SPEC },
		{ { .path = "/a", .access = SB_FILE_TMPFS, .max_bytes = (uint64_t)-5 },
		  SB_ERR_INVALID_SPEC },
	};
	files_set set = { 0 };
	size_t good = 0;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		unit_row(i, files_add(&set, &rows[i].rule, FILES_CALLER, NULL) == rows[i].rc);
		good += rows[i].rc == 0;
		unit_row(i, set.len == good);
	}
	assert_string_equal(set.at[1].path, "/a/b");
	files_release(&set);
	assert_null(set.at);
}

/* Two rules for one path in both orders: what stays, or the error. */
static void of_two_the_stricter_stays(void **state)
{
	static const struct {
		uint32_t a, a_origin, b, b_origin, stays;
		int rc;
	} rows[] = {
		{ SB_FILE_READ, FILES_CALLER, SB_FILE_WRITE, FILES_CALLER, SB_FILE_READ, 0 },
		{ SB_FILE_HIDE, FILES_CALLER, SB_FILE_WRITE, FILES_CALLER, SB_FILE_HIDE, 0 },
		{ SB_FILE_HIDE, FILES_CALLER, SB_FILE_READ, FILES_OPERATOR, SB_FILE_HIDE, 0 },
		{ SB_FILE_HIDE, FILES_CALLER, SB_FILE_PROTECT, FILES_CALLER, SB_FILE_HIDE, 0 },
		{ SB_FILE_HIDE, FILES_CALLER, SB_FILE_TMPFS, FILES_CALLER, SB_FILE_HIDE, 0 },
		{ SB_FILE_TMPFS, FILES_CALLER, SB_FILE_WRITE, FILES_WORKSPACE, SB_FILE_TMPFS, 0 },
		{ SB_FILE_TMPFS, FILES_CALLER, SB_FILE_READ, FILES_CALLER, 0, SB_ERR_INVALID_SPEC },
		{ SB_FILE_TMPFS, FILES_CALLER, SB_FILE_PROTECT, FILES_CALLER, 0,
		  SB_ERR_INVALID_SPEC },
		/* to protect what is granted is to grant it read-only */
		{ SB_FILE_PROTECT, FILES_CALLER, SB_FILE_WRITE, FILES_WORKSPACE, SB_FILE_READ, 0 },
		{ SB_FILE_PROTECT, FILES_CALLER, SB_FILE_PROTECT, FILES_CALLER, SB_FILE_PROTECT,
		  0 },
		/* what is built in gives way, to a laxer rule as well */
		{ SB_FILE_PROTECT, FILES_BUILTIN, SB_FILE_WRITE, FILES_CALLER, SB_FILE_WRITE, 0 },
		{ SB_FILE_PROTECT, FILES_BUILTIN, SB_FILE_HIDE, FILES_CALLER, SB_FILE_HIDE, 0 },
		{ SB_FILE_PROTECT, FILES_BUILTIN, SB_FILE_TMPFS, FILES_OPERATOR, SB_FILE_TMPFS, 0 },
		{ SB_FILE_READ, FILES_BUILTIN, SB_FILE_WRITE, FILES_WORKSPACE, SB_FILE_READ, 0 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * UNIT_LEN(rows); i++) {
		const sb_file_rule a = RULE("/p", rows[i / 2].a), b = RULE("/p", rows[i / 2].b);
		files_set set = { 0 };
		int rc;

		assert_int_equal(files_add(&set, i % 2 ? &a : &b,
					   i % 2 ? rows[i / 2].a_origin : rows[i / 2].b_origin,
					   NULL),
				 0);
		assert_int_equal(files_add(&set, i % 2 ? &b : &a,
					   i % 2 ? rows[i / 2].b_origin : rows[i / 2].a_origin,
					   NULL),
				 0);
		rc = files_settle(&set, NULL);
		unit_row(i, rc == rows[i / 2].rc);
		unit_row(i, rc < 0 || (set.len == 1 && set.at[0].access == rows[i / 2].stays));
		files_release(&set);
	}
}

static void merged_rules_keep_what_matters(void **state)
{
	const sb_file_rule shown = RULE("/p", SB_FILE_WRITE, .source = "/src"),
			   kept = RULE("/p", SB_FILE_PROTECT, .flags = SB_FILE_OPTIONAL),
			   other = RULE("/p", SB_FILE_READ, .source = "/else"),
			   noexec = RULE("/p", SB_FILE_WRITE, .source = "/src",
					 .flags = SB_FILE_NOEXEC),
			   self = RULE("/q", SB_FILE_READ, .source = "/q"),
			   plain = RULE("/q", SB_FILE_READ),
			   small = RULE("/t", SB_FILE_TMPFS, .max_bytes = 10),
			   large = RULE("/t", SB_FILE_TMPFS, .max_bytes = 20),
			   any = RULE("/t", SB_FILE_TMPFS);
	files_set set = { 0 };

	(void)state;
	assert_int_equal(files_add(&set, &any, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &large, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &small, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &self, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &plain, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &kept, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &shown, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &noexec, FILES_CALLER, NULL), 0);
	assert_int_equal(files_settle(&set, NULL), 0);
	assert_int_equal(set.len, 3);
	assert_string_equal(set.at[0].path, "/p");
	assert_int_equal(set.at[0].access, SB_FILE_READ);
	assert_string_equal(set.at[0].source, "/src");
	assert_int_equal(set.at[0].flags, SB_FILE_NOEXEC);
	assert_string_equal(set.at[1].path, "/q");
	assert_null(set.at[1].source);
	assert_int_equal(set.at[2].max_bytes, 10);
	assert_int_equal(files_settle(&set, NULL), 0); /* again changes nothing */
	assert_int_equal(set.len, 3);
	assert_int_equal(files_add(&set, &other, FILES_CALLER, NULL), 0);
	assert_int_equal(files_settle(&set, NULL), SB_ERR_INVALID_SPEC);
	files_release(&set);
}

static void the_nearest_rule_decides(void **state)
{
	static const struct {
		const char *path;
		const char *rule;
	} rows[] = {
		{ "/w", "/w" },	    { "/w/x", "/w" },  { "/w/a/b/c", "/w/a" },
		{ "/w/a", "/w/a" }, { "/w/ab", "/w" }, { "/w/a-b/c", "/w/a-b" },
		{ "/v", NULL },	    { "/", NULL },
	};
	const sb_file_rule w = RULE("/w", SB_FILE_WRITE), a = RULE("/w/a", SB_FILE_HIDE),
			   ab = RULE("/w/a-b", SB_FILE_READ),
			   glob = RULE("/w/a/b", SB_FILE_HIDE, .flags = SB_FILE_GLOB);
	files_set set = { 0 };

	(void)state;
	assert_int_equal(files_add(&set, &ab, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &glob, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &a, FILES_CALLER, NULL), 0);
	assert_int_equal(files_add(&set, &w, FILES_WORKSPACE, NULL), 0);
	assert_int_equal(files_settle(&set, NULL), 0);
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		const files_rule *rule = files_nearest(&set, rows[i].path);

		unit_row(i, rows[i].rule ? rule && strcmp(rule->path, rows[i].rule) == 0 : !rule);
	}
	files_release(&set);
}

static void a_workspace_is_protected(void **state)
{
	static const char *const must[] = { ".git/hooks", ".git/config", ".gitmodules",
					    ".envrc",	  ".vscode",	 ".idea",
					    ".husky",	  ".bashrc",	 ".bash_profile",
					    ".profile",	  ".zshrc",	 ".zprofile",
					    ".zshenv" };
	const sb_file_rule ws = RULE("/home/u/p", SB_FILE_WRITE),
			   mine = RULE("/home/u/p/.envrc", SB_FILE_WRITE);
	files_set set = { 0 };
	char path[64];

	(void)state;
	assert_int_equal(files_add(&set, &ws, FILES_WORKSPACE, NULL), 0);
	assert_int_equal(files_add_protected(&set, "/home/u/p", NULL), 0);
	assert_int_equal(files_add(&set, &mine, FILES_CALLER, NULL), 0);
	assert_int_equal(files_settle(&set, NULL), 0);
	assert_int_equal(set.len, 1 + strv_count(files_protected_names()));
	for (size_t i = 0; i < UNIT_LEN(must); i++) {
		const files_rule *rule;

		snprintf(path, sizeof path, "/home/u/p/%s/x", must[i]);
		rule = files_nearest(&set, path);
		unit_row(i, rule && rule->access == (i == 3 ? SB_FILE_WRITE : SB_FILE_PROTECT));
		unit_row(i, i == 3 || (rule->flags & SB_FILE_OPTIONAL &&
				       rule->origin == FILES_BUILTIN));
	}
	assert_int_equal(files_nearest(&set, "/home/u/p/.git/objects/x")->access, SB_FILE_WRITE);
	assert_int_equal(files_nearest(&set, "/home/u/p/.vscodex")->access, SB_FILE_WRITE);
	files_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_checked),
		cmocka_unit_test(of_two_the_stricter_stays),
		cmocka_unit_test(merged_rules_keep_what_matters),
		cmocka_unit_test(the_nearest_rule_decides),
		cmocka_unit_test(a_workspace_is_protected),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
