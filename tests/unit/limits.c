/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

#define MIB ((uint64_t)1 << 20)
#define LIMITS(...) (&(const sb_limits){ .size = sizeof(sb_limits), __VA_ARGS__ })

static void profiles_have_their_values(void **state)
{
	sb_limits l = { .size = sizeof l };

	(void)state;
	assert_int_equal(sb_limits_default(SB_PROFILE_CODE, &l, NULL), 0);
	assert_int_equal(l.memory_bytes, 128 * MIB);
	assert_int_equal(l.wall_ms, 10000);
	assert_int_equal(l.cpu_ms, 10000);
	assert_int_equal(l.out_total_bytes, MIB);
	assert_int_equal(l.fs_bytes, 16 * MIB);
	assert_int_equal(l.collect_bytes, 16 * MIB);
	assert_int_equal(l.fs_nodes, 256);
	assert_int_equal(l.procs, 64);
	assert_int_equal(l.out_mode, SB_OUT_STOP);
	assert_int_equal(sb_limits_default(SB_PROFILE_COMMAND, &l, NULL), 0);
	assert_int_equal(l.memory_bytes, 2048 * MIB);
	assert_int_equal(l.procs, 512);
	assert_int_equal(l.out_stream_bytes, 10 * MIB);
	assert_int_equal(l.out_keep, SB_KEEP_HEAD_TAIL);
	assert_true(l.wall_ms == SB_UNLIMITED && l.out_mode == SB_OUT_TRUNCATE);
	assert_int_equal(sb_limits_default(SB_PROFILE_RUNNER, &l, NULL), 0);
	assert_true(l.memory_bytes == SB_UNLIMITED && l.procs == SB_UNLIMITED);
	assert_int_equal(l.out_stream_bytes, 10 * MIB);
	assert_int_equal(sb_limits_default(SB_PROFILE_CONTAINER, &l, NULL), 0);
	assert_int_equal(l.memory_bytes, 256 * MIB);
	assert_int_equal(l.cpu_millicores, 500);
	assert_int_equal(l.procs, 128);
	assert_int_equal(l.open_files, 1024);
	for (int profile = SB_PROFILE_CODE; profile <= SB_PROFILE_CONTAINER; profile++) {
		assert_int_equal(sb_limits_default(profile, &l, NULL), 0);
		assert_int_equal(sb_limits_validate(&l, NULL), 0);
		assert_true(l.collect_bytes != SB_UNLIMITED);
	}
	assert_int_equal(sb_limits_default(SB_PROFILE_DEFAULT, &l, NULL), SB_ERR_INVALID_LIMITS);
	assert_int_equal(sb_limits_default(99, &l, NULL), SB_ERR_INVALID_LIMITS);
	assert_int_equal(sb_limits_default(-1, &l, NULL), SB_ERR_INVALID_LIMITS);
	l.size = 0;
	assert_int_equal(sb_limits_default(SB_PROFILE_CODE, &l, NULL), SB_ERR_INVALID);
}

static void command_takes_at_most_half_the_memory(void **state)
{
	static const struct {
		uint64_t ram, memory;
	} rows[] = {
		{ 0, 2048 * MIB },
		{ 64 * 1024 * MIB, 2048 * MIB },
		{ 4096 * MIB, 2048 * MIB },
		{ 1024 * MIB, 512 * MIB },
		{ MIB, MIB },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		const limits_sources from = { .profile = SB_PROFILE_COMMAND,
					      .ram_bytes = rows[i].ram };
		sb_limits out;

		unit_row(i, limits_resolve(&from, &out, NULL) == 0 &&
				    out.memory_bytes == rows[i].memory);
	}
}

static void set_members_are_checked(void **state)
{
	static const struct {
		sb_limits in;
		const char *names;
	} rows[] = {
		{ { .memory_bytes = MIB }, NULL },
		{ { .memory_bytes = MIB - 1 }, "memory_bytes" },
		{ { .memory_bytes = 1 }, "memory_bytes" },
		{ { .memory_bytes = SB_UNLIMITED }, NULL },
		{ { .memory_bytes = (uint64_t)-5 }, "memory_bytes" },
		{ { .wall_ms = (uint64_t)-2 }, "wall_ms" },
		{ { .wall_ms = (uint64_t)INT64_MAX }, NULL },
		{ { .wall_ms = (uint64_t)INT64_MAX + 1 }, "wall_ms" },
		{ { .out_stream_bytes = (uint64_t)-5 }, "out_stream_bytes" },
		{ { .grace_ms = (uint64_t)-3 }, "grace_ms" },
		{ { .out_mode = 3 }, "out_mode" },
		{ { .out_keep = 3 }, "out_keep" },
		{ { .out_mode = SB_OUT_TRUNCATE, .out_keep = SB_KEEP_HEAD_TAIL, .procs = 1 },
		  NULL },
		{ { 0 }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_error err = { 0 };
		int rc = limits_check_set(&rows[i].in, &err);

		unit_row(i, rc == (rows[i].names ? SB_ERR_INVALID_LIMITS : 0));
		unit_row(i, !rows[i].names || strstr(err.message, rows[i].names));
	}
}

static void zero_is_refused_where_all_must_be_set(void **state)
{
	sb_limits whole = { .size = sizeof whole };

	(void)state;
	assert_int_equal(sb_limits_default(SB_PROFILE_CODE, &whole, NULL), 0);
	for (size_t at = offsetof(sb_limits, memory_bytes); at < offsetof(sb_limits, grace_ms);
	     at += 8) {
		sb_limits l = whole;

		memset((char *)&l + at, 0, 8);
		unit_row(at, sb_limits_validate(&l, NULL) == SB_ERR_INVALID_LIMITS);
	}
	assert_int_equal(whole.grace_ms, 0);
	whole.out_mode = 0;
	assert_int_equal(sb_limits_validate(&whole, NULL), SB_ERR_INVALID_LIMITS);
}

static void later_sources_win(void **state)
{
	const sb_pack pack = { .size = sizeof pack,
			       .name = "big",
			       .limits = LIMITS(.memory_bytes = 256 * MIB, .procs = 8) };
	limits_sources from = { .profile = SB_PROFILE_CODE, .pack = &pack };
	sb_limits out;

	(void)state;
	assert_int_equal(limits_resolve(&from, &out, NULL), 0);
	assert_int_equal(out.memory_bytes, 256 * MIB); /* raised */
	assert_int_equal(out.procs, 64);	       /* never lowered */
	from.defaults =
		LIMITS(.wall_ms = 3000, .memory_bytes = 64 * MIB, .out_mode = SB_OUT_TRUNCATE);
	from.spec = LIMITS(.memory_bytes = 32 * MIB, .fs_bytes = MIB);
	assert_int_equal(limits_resolve(&from, &out, NULL), 0);
	assert_int_equal(out.wall_ms, 3000);
	assert_int_equal(out.memory_bytes, 32 * MIB);
	assert_int_equal(out.fs_bytes, MIB);
	assert_int_equal(out.collect_bytes, MIB); /* follows */
	assert_int_equal(out.out_mode, SB_OUT_TRUNCATE);
	assert_int_equal(out.cpu_ms, 10000);
	from.operator_limits = LIMITS(.memory_bytes = 48 * MIB, .out_mode = SB_OUT_STOP);
	assert_int_equal(limits_resolve(&from, &out, NULL), 0);
	assert_int_equal(out.memory_bytes, 48 * MIB); /* a stricter caller, too, is overruled */
	assert_int_equal(out.out_mode, SB_OUT_STOP);
	assert_int_equal(out.fs_bytes, MIB);
	from.spec = LIMITS(.memory_bytes = SB_UNLIMITED);
	from.operator_limits = NULL;
	assert_int_equal(limits_resolve(&from, &out, NULL), 0);
	assert_true(out.memory_bytes == SB_UNLIMITED);
}

/* Of two times the lesser; where one is missing the other; the profile's is nobody's wish. */
static void the_lesser_deadline_counts(void **state)
{
	static const struct {
		uint64_t defaults, spec, fixed, wall;
	} rows[] = {
		{ 0, 0, 0, 10000 },
		{ 0, 5000, 0, 5000 },
		{ 0, 0, 30000, 30000 },
		{ 0, 5000, 30000, 5000 },
		{ 0, 60000, 30000, 30000 },
		{ 2000, 0, 30000, 2000 },
		{ 2000, 9000, 30000, 9000 },
		{ 0, SB_UNLIMITED, 30000, 30000 },
		{ 0, 5000, SB_UNLIMITED, 5000 },
		{ 0, 0, SB_UNLIMITED, SB_UNLIMITED },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		const limits_sources from = { .profile = SB_PROFILE_CODE,
					      .defaults = LIMITS(.wall_ms = rows[i].defaults),
					      .spec = LIMITS(.wall_ms = rows[i].spec),
					      .operator_limits = LIMITS(.wall_ms = rows[i].fixed) };
		sb_limits out;

		unit_row(i, limits_resolve(&from, &out, NULL) == 0 && out.wall_ms == rows[i].wall);
	}
}

static void a_cpu_budget_is_a_share_of_the_time(void **state)
{
	static const struct {
		sb_limits spec;
		uint64_t cpu_ms;
		int rc;
	} rows[] = {
		{ { .wall_ms = 10000, .cpu_budget_millicores = 100 }, 1000, 0 },
		{ { .wall_ms = 60000, .cpu_budget_millicores = 2000 }, 120000, 0 },
		{ { .wall_ms = 60000, .cpu_budget_millicores = 2000, .cpu_ms = 500 }, 500, 0 },
		{ { .wall_ms = 10000, .cpu_budget_millicores = 100, .cpu_ms = 9000 }, 1000, 0 },
		{ { .wall_ms = 1, .cpu_budget_millicores = 1 }, 1, 0 },
		{ { .wall_ms = INT64_MAX, .cpu_budget_millicores = 4000 }, INT64_MAX / 1000, 0 },
		{ { .wall_ms = SB_UNLIMITED, .cpu_budget_millicores = 100 },
		  0,
		  SB_ERR_UNSUPPORTED },
		{ { .wall_ms = 10000, .cpu_budget_millicores = SB_UNLIMITED }, 10000, 0 },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_limits spec = rows[i].spec, out = { 0 };
		const limits_sources from = { .profile = SB_PROFILE_CODE, .spec = &spec };

		spec.size = sizeof spec;
		unit_row(i, limits_resolve(&from, &out, NULL) == rows[i].rc);
		unit_row(i, out.cpu_ms == rows[i].cpu_ms);
	}
}

static void bad_sources_change_nothing(void **state)
{
	const sb_pack pack = { .size = sizeof pack, .name = "big", .memory_floor_bytes = 64 * MIB };
	const sb_limits bad = { .size = 0 };
	limits_sources from = { .profile = SB_PROFILE_CODE,
				.spec = LIMITS(.memory_bytes = 32 * MIB),
				.pack = &pack };
	sb_limits out = { .memory_bytes = 77 };
	sb_error err;

	(void)state;
	assert_int_equal(limits_resolve(&from, &out, &err), SB_ERR_INVALID_LIMITS);
	assert_non_null(strstr(err.message, "\"big\" needs at least 64 MiB of memory"));
	from.spec = LIMITS(.memory_bytes = MIB / 2);
	assert_int_equal(limits_resolve(&from, &out, &err), SB_ERR_INVALID_LIMITS);
	from.spec = NULL;
	from.operator_limits = &bad;
	assert_int_equal(limits_resolve(&from, &out, &err), SB_ERR_INVALID);
	assert_non_null(strstr(err.message, "operator"));
	from.operator_limits = LIMITS(.wall_ms = (uint64_t)-2);
	assert_int_equal(limits_resolve(&from, &out, &err), SB_ERR_INVALID_LIMITS);
	from.profile = SB_PROFILE_DEFAULT;
	assert_int_equal(limits_resolve(&from, &out, &err), SB_ERR_INVALID_LIMITS);
	assert_int_equal(out.memory_bytes, 77);
}

static void what_nothing_can_hold_is_refused(void **state)
{
	static const struct {
		sb_limits set;
		sb_enforcement held;
		int rc;
	} rows[] = {
		{ { 0 }, { 0 }, 0 },
		{ { .fs_bytes = 1 }, { .memory_cap = 3, .cpu_cap = 3 }, SB_ERR_UNSUPPORTED },
		{ { .fs_nodes = 9 }, { 0 }, SB_ERR_UNSUPPORTED },
		{ { .fs_bytes = 1 }, { .disk_cap = 3 }, 0 },
		{ { .memory_bytes = MIB }, { .disk_cap = 3 }, SB_ERR_UNSUPPORTED },
		{ { .memory_bytes = MIB }, { .memory_cap = SB_LEVEL_SAMPLED }, 0 },
		{ { .cpu_ms = 5 }, { 0 }, SB_ERR_UNSUPPORTED },
		{ { .cpu_ms = 5 }, { .cpu_cap = SB_LEVEL_SAMPLED }, 0 },
		{ { .cpu_budget_millicores = 5 }, { .cpu_cap = 3 }, SB_ERR_UNSUPPORTED },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		const sb_limits *set = &rows[i].set;
		sb_enforcement held = rows[i].held;
		sb_limits l = { .size = sizeof l };

		held.size = sizeof held;
		assert_int_equal(sb_limits_default(SB_PROFILE_RUNNER, &l, NULL), 0);
		l.fs_bytes = set->fs_bytes ? set->fs_bytes : l.fs_bytes;
		l.fs_nodes = set->fs_nodes ? set->fs_nodes : l.fs_nodes;
		l.memory_bytes = set->memory_bytes ? set->memory_bytes : l.memory_bytes;
		l.cpu_ms = set->cpu_ms ? set->cpu_ms : l.cpu_ms;
		l.cpu_budget_millicores = set->cpu_budget_millicores ? set->cpu_budget_millicores
								     : l.cpu_budget_millicores;
		unit_row(i, sb_exec_policy_validate(&l, &held, NULL) == rows[i].rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_have_their_values),
		cmocka_unit_test(command_takes_at_most_half_the_memory),
		cmocka_unit_test(set_members_are_checked),
		cmocka_unit_test(zero_is_refused_where_all_must_be_set),
		cmocka_unit_test(later_sources_win),
		cmocka_unit_test(the_lesser_deadline_counts),
		cmocka_unit_test(a_cpu_budget_is_a_share_of_the_time),
		cmocka_unit_test(bad_sources_change_nothing),
		cmocka_unit_test(what_nothing_can_hold_is_refused),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
