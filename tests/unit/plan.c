/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "json_reader.h"

#include "../../src/core/core.h"

#define BIT SB_WALL_BIT

static void add(sb_plan *plan, uint32_t wall, uint32_t level, const char *mechanism,
		const char *caveat)
{
	const sb_plan_line line = { .size = sizeof line,
				    .mechanism = mechanism,
				    .caveat = caveat,
				    .wall = wall,
				    .level = level };

	assert_int_equal(sb_plan_add(plan, &line, NULL), 0);
}

static sb_plan *plan_of(void)
{
	sb_plan *plan = NULL;

	assert_int_equal(plan_new("linux", &plan, NULL), 0);
	add(plan, SB_WALL_FILES, SB_LEVEL_HARD, "mount namespace", "");
	add(plan, SB_WALL_FILES, SB_LEVEL_SAMPLED, "landlock", "an old kernel");
	add(plan, SB_WALL_NETWORK, SB_LEVEL_HARD, "empty network namespace", NULL);
	add(plan, SB_WALL_PIDS, SB_LEVEL_COOPERATIVE, "RLIMIT_NPROC", "counts the user's own");
	add(plan, SB_WALL_MEMORY, SB_LEVEL_SAMPLED, "sampler", "no cgroup");
	return plan;
}

static void a_wall_is_as_strong_as_its_weakest_line(void **state)
{
	sb_plan *plan = plan_of();
	sb_plan_line line = { .size = sizeof line };

	(void)state;
	assert_int_equal(sb_plan_level(plan, SB_WALL_FILES), SB_LEVEL_SAMPLED);
	assert_int_equal(sb_plan_level(plan, SB_WALL_NETWORK), SB_LEVEL_HARD);
	assert_int_equal(sb_plan_level(plan, SB_WALL_CPU), SB_LEVEL_NONE);
	assert_int_equal(sb_plan_level(plan, -1), SB_LEVEL_NONE);
	assert_int_equal(sb_plan_count(plan), 5);
	assert_int_equal(sb_plan_at(plan, 2, &line), 0);
	assert_string_equal(line.mechanism, "empty network namespace");
	assert_string_equal(line.caveat, "");
	assert_string_equal(line.test, "");
	assert_int_equal(sb_plan_at(plan, 5, &line), SB_ERR_INVALID);
	line = (sb_plan_line){ .size = sizeof line, .wall = SB_WALL_COUNT };
	assert_int_equal(sb_plan_add(plan, &line, NULL), SB_ERR_INVALID);
	line = (sb_plan_line){ .size = sizeof line, .level = 4 };
	assert_int_equal(sb_plan_add(plan, &line, NULL), SB_ERR_INVALID);
	assert_int_equal(sb_plan_count(plan), 5);
	assert_string_equal(sb_plan_backend(plan), "linux");
	sb_plan_free(plan);
	sb_plan_free(NULL);
}

static void nothing_is_weaker_in_silence(void **state)
{
	static const struct {
		plan_demand demand;
		const char *wall;
	} rows[] = {
		{ { 0 }, NULL },
		{ { .asked = BIT(SB_WALL_NETWORK) }, NULL },
		{ { .asked = BIT(SB_WALL_MEMORY) }, NULL },
		{ { .asked = BIT(SB_WALL_FILES), .profile = BIT(SB_WALL_MEMORY) }, NULL },
		{ { .asked = BIT(SB_WALL_PIDS) }, NULL }, /* cooperative is enough for pids alone */
		{ { .asked = BIT(SB_WALL_CPU) }, "cpu" },
		{ { .profile = BIT(SB_WALL_CPU) }, "cpu" },
		{ { .profile = BIT(SB_WALL_CPU), .consented = true }, NULL },
		{ { .asked = BIT(SB_WALL_CPU), .consented = true }, "cpu" },
		{ { .asked = BIT(SB_WALL_CPU), .allow_weaker = BIT(SB_WALL_CPU) }, NULL },
		{ { .asked = BIT(SB_WALL_CPU), .allow_weaker = BIT(SB_WALL_DISK) }, "cpu" },
		{ { .asked = BIT(SB_WALL_NETWORK), .require_hard = true }, NULL },
		{ { .asked = BIT(SB_WALL_FILES), .require_hard = true }, "files" },
		{ { .asked = BIT(SB_WALL_PIDS), .require_hard = true }, "pids" },
		{ { .asked = BIT(SB_WALL_MEMORY), .require_hard = true }, "memory" },
		{ { .profile = BIT(SB_WALL_MEMORY), .require_hard = true }, "memory" },
		{ { .asked = BIT(SB_WALL_MEMORY),
		    .require_hard = true,
		    .allow_weaker = BIT(SB_WALL_MEMORY) },
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_plan *plan = plan_of();
		uint64_t must = rows[i].demand.asked |
				(rows[i].demand.consented ? 0 : rows[i].demand.profile);
		sb_error err = { 0 };

		unit_row(i, plan_check(plan, &rows[i].demand, &err) ==
				    (rows[i].wall ? SB_ERR_UNENFORCEABLE : 0));
		unit_row(i, !rows[i].wall || (strcmp(err.where, rows[i].wall) == 0 &&
					      strstr(err.message, "\"linux\"")));
		for (size_t j = 0; j < sb_plan_count(plan); j++) {
			sb_plan_line line = { .size = sizeof line };

			assert_int_equal(sb_plan_at(plan, j, &line), 0);
			unit_row(i, line.required == ((must & BIT(line.wall)) != 0));
		}
		plan_unref(plan);
	}
}

static void a_refusal_tells_why_and_what_to_do(void **state)
{
	const plan_demand demand = { .asked = BIT(SB_WALL_MEMORY), .require_hard = true };
	sb_plan *plan = plan_of();
	sb_error err;

	(void)state;
	assert_int_equal(plan_check(plan, &demand, &err), SB_ERR_UNENFORCEABLE);
	assert_string_equal(
		err.message,
		"backend \"linux\" cannot hold wall \"memory\" as asked: wanted hard, "
		"has sampled: no cgroup; use another backend, or allow \"memory\" to be "
		"weaker");
	plan_unref(plan);
}

static void the_nearest_path_decides(void **state)
{
	static const struct {
		const char *path;
		int access;
		const char *why;
	} rows[] = {
		{ "/", SB_FILE_HIDE, NULL },
		{ "/etc/x", SB_FILE_HIDE, NULL },
		{ "/usr/bin/x", SB_FILE_READ, "system" },
		{ "/usr", SB_FILE_READ, "system" },
		{ "/usrx", SB_FILE_HIDE, NULL },
		{ "/w/a", SB_FILE_WRITE, "ws" },
		{ "/w/.git/config", SB_FILE_PROTECT, "built in" },
		{ "/w//./.git/config/x", SB_FILE_PROTECT, "built in" },
		{ "/w/t", SB_FILE_TMPFS, "second" },
	};
	sb_plan *plan = plan_of();
	const char *why;
	int access;

	(void)state;
	assert_int_equal(plan_add_path(plan, "/w/t", SB_FILE_READ, "first", NULL), 0);
	assert_int_equal(plan_add_path(plan, "/w/.git/config", SB_FILE_PROTECT, "built in", NULL),
			 0);
	assert_int_equal(plan_add_path(plan, "/usr/", SB_FILE_READ, "system", NULL), 0);
	assert_int_equal(plan_add_path(plan, "/w", SB_FILE_WRITE, "ws", NULL), 0);
	assert_int_equal(plan_add_path(plan, "/w/t", SB_FILE_TMPFS, "second", NULL), 0);
	assert_int_equal(plan_add_path(plan, "rel", SB_FILE_READ, "", NULL), SB_ERR_INVALID_PATH);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(plan_add_path(plan, "/many", SB_FILE_READ, "m", NULL), 0);
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		unit_row(i, sb_plan_path(plan, rows[i].path, &access, &why) == 0);
		unit_row(i, access == rows[i].access);
		unit_row(i, !rows[i].why || strcmp(why, rows[i].why) == 0);
	}
	assert_int_equal(sb_plan_path(plan, "w", &access, &why), SB_ERR_INVALID_PATH);
	assert_int_equal(sb_plan_path(plan, "/w/../etc", &access, &why), SB_ERR_INVALID_PATH);
	plan_unref(plan);
}

static void a_plan_in_words(void **state)
{
	static const char *const argv[] = { "python3", "a b.py", "\xff\n", NULL }, *const env[] = {
		"PATH=/bin", "TOKEN=hunter2", NULL
	};
	sb_limits limits = { .size = sizeof limits }, back = { .size = sizeof back };
	sb_plan *plan = plan_of();
	const char *text, *words;
	sb_error err;

	(void)state;
	assert_int_equal(sb_limits_default(SB_PROFILE_RUNNER, &limits, NULL), 0);
	plan_set_limits(plan, &limits);
	sb_plan_limits(plan, &back);
	assert_memory_equal(&limits, &back, sizeof back);
	assert_int_equal(plan_set_command(plan, argv, "/home/u/p", env, NULL), 0);
	words = sb_plan_text(plan, "json");
	assert_true(json_reader_ok(words));
	assert_non_null(strstr(words, "\"would_run\":true"));
	assert_non_null(strstr(words, "\"memory_bytes\":null"));
	assert_non_null(strstr(words, "\"env\":[\"PATH\",\"TOKEN\"]"));
	assert_non_null(strstr(
		words,
		"{\"wall\":\"network\",\"level\":\"hard\",\"mechanism\":\"empty network "
		"namespace\",\"caveat\":\"\",\"required\":false,\"subject\":\"\",\"test\":\"\"}"));
	assert_null(strstr(words, "hunter2"));
	assert_ptr_equal(words, sb_plan_text(plan, "json"));
	text = sb_plan_text(plan, "text");
	assert_non_null(strstr(text, "python3 \"a b.py\""));
	assert_null(strstr(text, "hunter2"));
	assert_true(utf8_valid(text, strlen(text)));
	assert_null(sb_plan_text(plan, "seccomp"));
	assert_int_equal(sb_plan_set_text(plan, "seccomp", "{}", NULL), 0);
	assert_int_equal(sb_plan_set_text(plan, "seccomp", "[]", NULL), 0);
	assert_string_equal(sb_plan_text(plan, "seccomp"), "[]");
	assert_null(sb_plan_failure(plan));
	error_set(&err, SB_ERR_UNENFORCEABLE, "cpu", "cannot \"x\"");
	plan_set_failure(plan, &err);
	words = sb_plan_text(plan, "json");
	assert_true(json_reader_ok(words));
	assert_non_null(strstr(
		words, "\"would_run\":false,\"error\":{\"code\":\"unenforceable\",\"kind\":"
		       "\"not_available\",\"where\":\"cpu\",\"message\":\"cannot \\\"x\\\"\","
		       "\"errno\":0}"));
	assert_int_equal(sb_plan_failure(plan)->code, SB_ERR_UNENFORCEABLE);
	plan_unref(plan_ref(plan));
	plan_unref(plan);
}

static void enforcement_never_names_the_host_network(void **state)
{
	const sb_enforcement held = { .size = sizeof held,
				      .disk_cap = SB_LEVEL_HARD,
				      .net_modes = 1u << SB_NET_HOST | 1u << SB_NET_DENY_ALL };
	sb_enforcement out = { .size = sizeof out };
	sb_plan *plan = plan_of();

	(void)state;
	assert_int_equal(sb_plan_set_enforcement(plan, &held), 0);
	assert_int_equal(sb_plan_set_caps(plan, SB_CAP_TTY), 0);
	sb_plan_enforcement(plan, &out);
	assert_int_equal(out.net_modes, 1u << SB_NET_DENY_ALL);
	assert_int_equal(out.disk_cap, SB_LEVEL_HARD);
	assert_int_equal(sb_plan_caps(plan), SB_CAP_TTY);
	sb_plan_enforcement(NULL, &out);
	assert_int_equal(out.disk_cap, 0);
	plan_unref(plan);
}

static void a_report_has_checks_and_verdicts(void **state)
{
	const sb_check bad = { .size = sizeof bad,
			       .backend = "linux",
			       .what = "cgroup",
			       .found = "none",
			       .remedy = "run \"x\"" },
		       good = { .size = sizeof good,
				.backend = "process",
				.what = "spawn",
				.found = "yes",
				.ok = 7 };
	sb_check check = { .size = sizeof check };
	sb_plan *strong = plan_of(), *weak = NULL;
	sb_report *report = NULL;
	const char *words;

	(void)state;
	assert_int_equal(plan_new("process", &weak, NULL), 0);
	assert_int_equal(report_new(&report, NULL), 0);
	assert_int_equal(sb_report_add(report, &bad, NULL), 0);
	assert_int_equal(sb_report_add(report, &good, NULL), 0);
	assert_int_equal(report_backend(report, "process", true, SB_CAP_FORK, weak, NULL), 0);
	assert_int_equal(sb_report_usable(report, "process"), 1);
	assert_int_equal(sb_report_usable(report, "linux"), 0);
	assert_int_equal(sb_report_usable(report, "nope"), 0);
	assert_int_equal(sb_report_usable(report, NULL), 0); /* it runs, but keeps nothing back */
	words = sb_report_json(report);
	assert_true(json_reader_ok(words));
	assert_non_null(strstr(words, "\"usable\":false,\"backends\":[{\"name\":\"linux\""));
	assert_int_equal(report_backend(report, "linux", true, 0, strong, NULL), 0);
	plan_unref(strong);
	plan_unref(weak);
	assert_int_equal(sb_report_usable(report, NULL), 1);
	assert_ptr_equal(sb_report_plan(report, "linux"), strong);
	assert_null(sb_report_plan(report, "nope"));
	words = sb_report_json(report);
	assert_true(json_reader_ok(words));
	assert_non_null(strstr(words,
			       "\"checks\":[{\"what\":\"cgroup\",\"ok\":false,\"found\":\"none\","
			       "\"remedy\":\"run \\\"x\\\"\"}]"));
	assert_non_null(strstr(words, "\"usable\":true,\"backends\""));
	assert_non_null(strstr(words, "\"name\":\"linux\",\"usable\":true,\"caps\":[],\"walls\""));
	assert_non_null(strstr(words, "\"usable\":true,\"caps\":[\"fork\"],\"walls\""));
	assert_int_equal(sb_report_count(report), 2);
	assert_int_equal(sb_report_at(report, 1, &check), 0);
	assert_string_equal(check.backend, "process");
	assert_int_equal(check.ok, 1);
	assert_string_equal(check.remedy, "");
	assert_int_equal(sb_report_at(report, 2, &check), SB_ERR_INVALID);
	sb_report_free(report);
	sb_report_free(NULL);
}

static int rest_of_it(sb_plan *plan, void *kept, sb_error *err)
{
	const sb_plan_line line = { .size = sizeof line, .mechanism = kept, .caveat = "",
				    .wall = SB_WALL_FILES, .level = SB_LEVEL_HARD };

	return sb_plan_add(plan, &line, err);
}

static int releases;

static void count_release(void *kept)
{
	(void)kept;
	releases++;
}

static void other_release(void *kept)
{
	(void)kept;
}

static void what_comes_later_stands_in_its_place(void **state)
{
	static char kept[] = "a mount below the workspace";
	const plan_demand demand = { .asked = BIT(SB_WALL_FILES) };
	sb_plan *plan = plan_of();
	sb_plan_line line = { .size = sizeof line };

	(void)state;
	releases = 0;
	assert_null(plan_kept(plan, count_release));
	plan_keep(plan, kept, rest_of_it, count_release);
	assert_ptr_equal(plan_kept(plan, count_release), kept);
	assert_null(plan_kept(plan, other_release));
	assert_null(plan_kept(NULL, count_release));
	assert_int_equal(plan_check(plan, &demand, NULL), 0);
	assert_int_equal(plan_finish(plan, NULL), 0);
	assert_int_equal(releases, 1);
	assert_null(plan_kept(plan, count_release));
	assert_int_equal(plan_finish(plan, NULL), 0); /* once */
	assert_int_equal(sb_plan_count(plan), 6);
	assert_int_equal(sb_plan_at(plan, 2, &line), 0);
	assert_string_equal(line.mechanism, kept);
	assert_int_equal(line.required, 1);
	assert_int_equal(sb_plan_at(plan, 3, &line), 0);
	assert_int_equal(line.wall, SB_WALL_NETWORK);
	plan_keep(plan, kept, NULL, count_release);
	plan_unref(plan);
	assert_int_equal(releases, 2);
}

static void a_short_plan_does_not_answer_for_paths(void **state)
{
	static char kept[] = "";
	sb_plan *plan = plan_of();
	const char *why;
	int access;

	(void)state;
	releases = 0;
	plan_keep(plan, kept, NULL, count_release);
	plan_leave_rest(plan); /* there is none */
	assert_int_equal(releases, 1);
	assert_int_equal(sb_plan_path(plan, "/w", &access, &why), 0);
	plan_keep(plan, kept, rest_of_it, count_release);
	plan_leave_rest(plan);
	assert_int_equal(releases, 2);
	assert_int_equal(plan_finish(plan, NULL), 0);
	assert_int_equal(sb_plan_count(plan), 5);
	assert_int_equal(sb_plan_path(plan, "/w", &access, &why), SB_ERR_UNSUPPORTED);
	plan_unref(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wall_is_as_strong_as_its_weakest_line),
		cmocka_unit_test(nothing_is_weaker_in_silence),
		cmocka_unit_test(a_refusal_tells_why_and_what_to_do),
		cmocka_unit_test(the_nearest_path_decides),
		cmocka_unit_test(a_plan_in_words),
		cmocka_unit_test(enforcement_never_names_the_host_network),
		cmocka_unit_test(a_report_has_checks_and_verdicts),
		cmocka_unit_test(what_comes_later_stands_in_its_place),
		cmocka_unit_test(a_short_plan_does_not_answer_for_paths),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
