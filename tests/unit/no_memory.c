/* SPDX-License-Identifier: MIT */
/*
 * no_memory.c - each allocation of the model fails once: the call says so, leaks nothing, leaves
 * its object usable, and says the same as ever once there is memory again.
 *
 * The linker leads the allocator's calls of the libraries under test here (--wrap).
 */
#include "unit.h"

#include "../../src/core/core.h"
#include "../../src/vfs/tree.h"

static long budget = -1; /* allocations until one fails; -1 = none does */
static bool failed;
static long living;

static bool has_memory(void)
{
	if (budget < 0)
		return true;
	if (budget-- > 0)
		return true;
	failed = true;
	return false;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max);

void *__wrap_malloc(size_t size)
{
	void *p = has_memory() ? __real_malloc(size) : NULL;

	living += p != NULL;
	return p;
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *p = has_memory() ? __real_calloc(count, size) : NULL;

	living += p != NULL;
	return p;
}

void *__wrap_realloc(void *old, size_t size)
{
	void *p = has_memory() ? __real_realloc(old, size) : NULL;

	living += p != NULL && !old;
	return p;
}

void __wrap_free(void *old)
{
	living -= old != NULL;
	__real_free(old);
}

char *__wrap_strndup(const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	char *copy = __wrap_malloc(len + 1);

	if (copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, SIZE_MAX);
}

/* ---- What is tried; 0 or the error ---- */

static int try_plan(void)
{
	static const char *const argv[] = { "a", "b", NULL }, *const env[] = { "A=1", NULL };
	static char text[500];
	const sb_plan_line line = { .size = sizeof line, .mechanism = text, .caveat = text };
	sb_plan *plan = NULL;
	sb_error err;
	int rc = plan_new("linux", &plan, &err);

	/* more than its first pieces hold */
	memset(text, 'm', sizeof text - 1);
	for (int i = 0; rc == 0 && i < 70; i++)
		rc = sb_plan_add(plan, &line, &err);
	for (int i = 0; rc == 0 && i < 300; i++)
		rc = plan_add_path(plan, "/a/b/", SB_FILE_READ, "why", &err);
	if (rc == 0)
		rc = plan_set_command(plan, argv, "/w", env, &err);
	if (rc == 0)
		rc = sb_plan_set_text(plan, "seccomp", "{}", &err);
	if (rc == 0 && (!sb_plan_text(plan, "json") || !sb_plan_text(plan, "text")))
		rc = SB_ERR_NO_MEMORY;
	plan_unref(plan);
	return rc;
}

static int try_report(void)
{
	const sb_check check = { .size = sizeof check, .backend = "linux", .what = "x" };
	sb_report *report = NULL;
	sb_error err;
	int rc = report_new(&report, &err);

	for (int i = 0; rc == 0 && i < 40; i++)
		rc = sb_report_add(report, &check, &err);
	if (rc == 0)
		rc = report_backend(report, "process", true, 0, NULL, &err);
	if (rc == 0 && !sb_report_json(report))
		rc = SB_ERR_NO_MEMORY;
	sb_report_free(report);
	return rc;
}

static int try_result(void)
{
	sb_result *result = NULL;
	sb_error err;
	int rc = result_new(&result, &err);

	if (rc == 0)
		rc = result_finish(result, &err);
	if (rc == 0 && !sb_result_json(result))
		rc = SB_ERR_NO_MEMORY;
	sb_result_free(result);
	return rc;
}

static int try_files(void)
{
	const sb_file_rule rule = {
		.size = sizeof rule, .path = "/w/.envrc", .source = "/x", .access = SB_FILE_READ
	};
	files_set set = { 0 };
	sb_error err;
	int rc = files_add_protected(&set, "/w", &err);

	if (rc == 0)
		rc = files_add(&set, &rule, FILES_CALLER, &err);
	if (rc == 0)
		rc = files_settle(&set, &err);
	files_release(&set);
	return rc;
}

static int try_env(void)
{
	static const char *const host[] = { "A=1", "B=2", NULL }, *const own[] = { "A=3", NULL };
	const sb_env env = { .size = sizeof env, .base = SB_ENV_INHERIT };
	char **list = NULL;
	int rc = env_build(&env, NULL, host, own, &list, NULL);

	strv_free_list(list);
	return rc;
}

static int try_pack(void)
{
	static const char *const run[] = { "x", "a={code}", "{args}", NULL }, *const args[] = {
		"1", "2", NULL
	};
	char **argv = NULL;
	int rc = pack_expand(run, NULL, "/code", args, &argv, NULL);

	strv_free_list(argv);
	return rc;
}

static int try_tree(void)
{
	sb_tree *tree = NULL;
	sb_error err;
	int rc = sb_tree_new(1000, 100, &tree, &err);

	for (int i = 0; rc == 0 && i < 40; i++) {
		size_t count = sb_tree_count(tree);
		uint64_t bytes = sb_tree_bytes(tree);
		char path[] = { 'a', '/', (char)('a' + i % 26), (char)('a' + i / 26), '/', 'x', 0 };

		rc = sb_tree_write(tree, path, "12345", 5, &err);
		if (rc < 0) { /* nothing has changed, and it works once there is memory */
			assert_int_equal(sb_tree_count(tree), count);
			assert_int_equal(sb_tree_bytes(tree), bytes);
			assert_int_equal(sb_tree_write(tree, path, "12345", 5, NULL), 0);
		}
	}
	sb_tree_free(tree);
	return rc;
}

static int try_spec(void)
{
	const sb_file_rule rule = { .size = sizeof rule, .path = "/a", .access = SB_FILE_READ };
	const sb_file_rule *const files[] = { &rule, NULL };
	const sb_spec spec = { .size = sizeof spec, .files = files };

	return sb_spec_validate(&spec, NULL);
}

static void each_allocation_fails_once(void **state)
{
	static const struct {
		int (*run)(void);
		long least; /* allocations that it makes */
	} rows[] = {
		{ try_plan, 300 }, { try_report, 100 }, { try_result, 4 }, { try_files, 24 },
		{ try_env, 4 },	  { try_pack, 6 },     { try_tree, 100 }, { try_spec, 2 },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		long n = 0;

		for (;; n++) {
			int rc;

			budget = n;
			failed = false;
			living = 0;
			rc = rows[i].run();
			budget = -1;
			unit_row(i, living == 0);
			unit_row(i, rc == (failed ? SB_ERR_NO_MEMORY : 0));
			if (!failed)
				break;
		}
		unit_row(i, n >= rows[i].least);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails_once),
	};

	return cmocka_run_group_tests_name("no_memory", tests, NULL, NULL);
}
