/* SPDX-License-Identifier: MIT */
/*
 * limits.c - every limit has three states: unset (0), a value, SB_UNLIMITED.  Unset always ends in
 * the profile's value, so "unlimited" stands in a resolved record only where a profile or a
 * caller wrote it.
 */
#include "core.h"

#include <stddef.h>

#define LIMITS_MIB ((uint64_t)1 << 20)
#define LIMITS_COMMAND_MEMORY (2048 * LIMITS_MIB)
#define LIMITS_STREAM_BYTES (10 * LIMITS_MIB)
#define LIMITS_LOG_BYTES (10 * LIMITS_MIB)
/* It goes into the caller's memory, so never without end. */
#define LIMITS_COLLECT_BYTES (64 * LIMITS_MIB)
#define NONE SB_UNLIMITED

/* The 64-bit members, in their order. */
typedef struct limits_member {
	const char *name;
	size_t offset;
	uint64_t least;
	bool zero; /* 0 has a meaning of its own in a resolved record */
} limits_member;

/* clang-format off */
#define MEMBER(name, least, zero) { #name, offsetof(sb_limits, name), least, zero }
/* clang-format on */
static const limits_member limits_members[] = {
	MEMBER(memory_bytes, LIMITS_MIB, false),
	MEMBER(wall_ms, 1, false),
	MEMBER(cpu_ms, 1, false),
	MEMBER(cpu_millicores, 1, false),
	MEMBER(cpu_budget_millicores, 1, false),
	MEMBER(out_total_bytes, 1, false),
	MEMBER(out_stream_bytes, 1, false),
	MEMBER(log_bytes, 1, false),
	MEMBER(fs_bytes, 1, false),
	MEMBER(fs_nodes, 1, false),
	MEMBER(collect_bytes, 1, false),
	MEMBER(procs, 1, false),
	MEMBER(user_procs, 1, false),
	MEMBER(open_files, 1, false),
	MEMBER(grace_ms, 1, true),
};
#define LIMITS_MEMBERS BASE_ARRAY_LEN(limits_members)

static const sb_limits limits_profiles[] = {
	[SB_PROFILE_CODE] = { .size = sizeof(sb_limits),
			      .memory_bytes = 128 * LIMITS_MIB,
			      .wall_ms = 10000,
			      .cpu_ms = 10000,
			      .cpu_millicores = NONE,
			      .cpu_budget_millicores = NONE,
			      .out_total_bytes = LIMITS_MIB,
			      .out_stream_bytes = NONE,
			      .log_bytes = LIMITS_LOG_BYTES,
			      .fs_bytes = 16 * LIMITS_MIB,
			      .fs_nodes = 256,
			      .procs = 64,
			      .user_procs = NONE,
			      .open_files = NONE,
			      .out_mode = SB_OUT_STOP,
			      .out_keep = SB_KEEP_HEAD },
	[SB_PROFILE_COMMAND] = { .size = sizeof(sb_limits),
				 .memory_bytes = LIMITS_COMMAND_MEMORY,
				 .wall_ms = NONE,
				 .cpu_ms = NONE,
				 .cpu_millicores = NONE,
				 .cpu_budget_millicores = NONE,
				 .out_total_bytes = NONE,
				 .out_stream_bytes = LIMITS_STREAM_BYTES,
				 .log_bytes = LIMITS_LOG_BYTES,
				 .fs_bytes = NONE,
				 .fs_nodes = NONE,
				 .procs = 512,
				 .user_procs = NONE,
				 .open_files = NONE,
				 .out_mode = SB_OUT_TRUNCATE,
				 .out_keep = SB_KEEP_HEAD_TAIL },
	[SB_PROFILE_RUNNER] = { .size = sizeof(sb_limits),
				.memory_bytes = NONE,
				.wall_ms = NONE,
				.cpu_ms = NONE,
				.cpu_millicores = NONE,
				.cpu_budget_millicores = NONE,
				.out_total_bytes = NONE,
				.out_stream_bytes = LIMITS_STREAM_BYTES,
				.log_bytes = LIMITS_LOG_BYTES,
				.fs_bytes = NONE,
				.fs_nodes = NONE,
				.procs = NONE,
				.user_procs = NONE,
				.open_files = NONE,
				.out_mode = SB_OUT_TRUNCATE,
				.out_keep = SB_KEEP_HEAD },
	[SB_PROFILE_CONTAINER] = { .size = sizeof(sb_limits),
				   .memory_bytes = 256 * LIMITS_MIB,
				   .wall_ms = NONE,
				   .cpu_ms = NONE,
				   .cpu_millicores = 500,
				   .cpu_budget_millicores = NONE,
				   .out_total_bytes = NONE,
				   .out_stream_bytes = LIMITS_STREAM_BYTES,
				   .log_bytes = LIMITS_LOG_BYTES,
				   .fs_bytes = NONE,
				   .fs_nodes = NONE,
				   .procs = 128,
				   .user_procs = 128,
				   .open_files = 1024,
				   .out_mode = SB_OUT_TRUNCATE,
				   .out_keep = SB_KEEP_HEAD },
};

static uint64_t limits_get(const sb_limits *limits, size_t member)
{
	uint64_t value;

	memcpy(&value, (const char *)limits + limits_members[member].offset, sizeof value);
	return value;
}

static void limits_put(sb_limits *limits, size_t member, uint64_t value)
{
	memcpy((char *)limits + limits_members[member].offset, &value, sizeof value);
}

static int limits_refuse(sb_error *err, const char *name, const char *why)
{
	return error_set(err, SB_ERR_INVALID_LIMITS, "limits", "limit \"%s\" %s", name, why);
}

void limits_fill(sb_limits *set, const sb_limits *from)
{
	for (size_t i = 0; i < LIMITS_MEMBERS; i++)
		if (limits_get(set, i) == 0)
			limits_put(set, i, limits_get(from, i));
	if (set->out_mode == SB_OUT_DEFAULT)
		set->out_mode = from->out_mode;
	if (set->out_keep == SB_KEEP_DEFAULT)
		set->out_keep = from->out_keep;
}

int limits_check_set(const sb_limits *limits, sb_error *err)
{
	for (size_t i = 0; i < LIMITS_MEMBERS; i++) {
		const limits_member *m = &limits_members[i];
		uint64_t value = limits_get(limits, i);

		if (value == 0 || value == SB_UNLIMITED)
			continue;
		if (value > INT64_MAX)
			return limits_refuse(err, m->name,
					     "is negative; use a positive number or SB_UNLIMITED");
		if (value < m->least)
			return error_set(err, SB_ERR_INVALID_LIMITS, "limits",
					 "limit \"%s\" is %llu; the least is %llu", m->name,
					 (unsigned long long)value, (unsigned long long)m->least);
	}
	if (limits->out_mode > SB_OUT_TRUNCATE)
		return limits_refuse(err, "out_mode", "is not a known mode");
	if (limits->out_keep > SB_KEEP_HEAD_TAIL)
		return limits_refuse(err, "out_keep", "is not a known way to keep output");
	return 0;
}

/* All of it is there, and fits together. */
static int limits_check_resolved(const sb_limits *limits, sb_error *err)
{
	int rc = limits_check_set(limits, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < LIMITS_MEMBERS; i++)
		if (!limits_members[i].zero && limits_get(limits, i) == 0)
			return limits_refuse(err, limits_members[i].name,
					     "is zero; use a positive number or SB_UNLIMITED");
	if (limits->out_mode == SB_OUT_DEFAULT)
		return limits_refuse(err, "out_mode", "is not set");
	if (limits->out_keep == SB_KEEP_DEFAULT)
		return limits_refuse(err, "out_keep", "is not set");
	if (limits->cpu_budget_millicores != SB_UNLIMITED && limits->wall_ms == SB_UNLIMITED)
		return error_set(
			err, SB_ERR_UNSUPPORTED, "limits",
			"limit \"cpu_budget_millicores\" is a share of \"wall_ms\", which is "
			"unlimited; set a time limit");
	return 0;
}

int sb_limits_validate(const sb_limits *resolved, sb_error *err)
{
	sb_limits limits;
	int rc = record_read(&limits, sizeof limits, resolved, "sb_limits", err);

	return rc < 0 ? rc : limits_check_resolved(&limits, err);
}

static uint64_t limits_collect(uint64_t fs_bytes)
{
	return fs_bytes == SB_UNLIMITED ? LIMITS_COLLECT_BYTES : fs_bytes;
}

static int limits_profile(int profile, uint64_t ram_bytes, sb_limits *out, sb_error *err)
{
	if (profile < SB_PROFILE_CODE || profile > SB_PROFILE_CONTAINER)
		return error_set(
			err, SB_ERR_INVALID_LIMITS, "limits",
			"profile %d has no limits of its own; name code, command, runner or "
			"container",
			profile);
	*out = limits_profiles[profile];
	if (profile == SB_PROFILE_COMMAND && ram_bytes > 0 && ram_bytes / 2 < out->memory_bytes)
		out->memory_bytes = ram_bytes / 2 > LIMITS_MIB ? ram_bytes / 2 : LIMITS_MIB;
	return 0;
}

int sb_limits_default(int profile, sb_limits *limits, sb_error *err)
{
	sb_limits values;
	int rc = limits_profile(profile, 0, &values, err);

	if (rc < 0)
		return rc;
	values.collect_bytes = limits_collect(values.fs_bytes);
	return record_write(limits, &values, sizeof values, "sb_limits", err);
}

/* Set members of `from` win; returns which they were, bit by member. */
static uint32_t limits_lay_over(sb_limits *out, const sb_limits *from)
{
	uint32_t set = 0;

	for (size_t i = 0; i < LIMITS_MEMBERS; i++) {
		uint64_t value = limits_get(from, i);

		if (value != 0) {
			limits_put(out, i, value);
			set |= (uint32_t)1 << i;
		}
	}
	if (from->out_mode != SB_OUT_DEFAULT)
		out->out_mode = from->out_mode;
	if (from->out_keep != SB_KEEP_DEFAULT)
		out->out_keep = from->out_keep;
	return set;
}

/* A language needs more than the profile gives: raised, never lowered. */
static void limits_raise(sb_limits *out, const sb_limits *pack)
{
	for (size_t i = 0; i < LIMITS_MEMBERS; i++)
		if (limits_get(pack, i) > limits_get(out, i))
			limits_put(out, i, limits_get(pack, i));
}

/* A caller's or operator's record: members of its size only, each of them sound. */
static int limits_read(const sb_limits *in, const char *whose, sb_limits *out, sb_error *err)
{
	int rc = record_read(out, sizeof *out, in, "sb_limits", err);

	if (rc == 0)
		rc = limits_check_set(out, err);
	if (rc < 0 && whose[0] != '\0')
		error_prefix(err, "%s ", whose);
	return rc;
}

/* cpu_budget_millicores as CPU time.  A cpu_ms that somebody set stays if it is less; the
 * profile's own gives way. */
static void limits_budget(sb_limits *out, bool cpu_set)
{
	uint64_t wall = out->wall_ms, share = out->cpu_budget_millicores, budget;

	if (share == SB_UNLIMITED || wall == SB_UNLIMITED)
		return;
	budget = wall > INT64_MAX / share ? INT64_MAX / 1000 : wall * share / 1000;
	if (budget == 0)
		budget = 1;
	if (!cpu_set || budget < out->cpu_ms)
		out->cpu_ms = budget;
}

static int limits_check_floor(const sb_pack *pack, const sb_limits *out, sb_error *err)
{
	char least[32], limit[32];

	if (!pack || out->memory_bytes >= pack->memory_floor_bytes)
		return 0;
	return error_set(err, SB_ERR_INVALID_LIMITS, "limits",
			 "\"%s\" needs at least %s of memory, and the limit is %s; raise it (--mem)",
			 pack->name, size_text(pack->memory_floor_bytes, least),
			 size_text(out->memory_bytes, limit));
}

int limits_resolve(const limits_sources *from, sb_limits *out, sb_error *err)
{
	enum { WALL = 1 << 1, CPU = 1 << 2 }; /* places in limits_members */
	sb_limits result, pack, defaults, spec, fixed;
	uint32_t set;
	int rc = limits_profile(from->profile, from->ram_bytes, &result, err);

	if (rc == 0)
		rc = limits_read(from->pack ? from->pack->limits : NULL, "pack:", &pack, err);
	if (rc == 0)
		rc = limits_read(from->defaults, "default limits:", &defaults, err);
	if (rc == 0)
		rc = limits_read(from->spec, "", &spec, err);
	if (rc == 0)
		rc = limits_read(from->operator_limits, "operator's limits:", &fixed, err);
	if (rc < 0)
		return rc;
	limits_raise(&result, &pack);
	set = limits_lay_over(&result, &defaults);
	set |= limits_lay_over(&result, &spec);
	if (fixed.wall_ms != 0 && (set & WALL) && result.wall_ms < fixed.wall_ms)
		fixed.wall_ms = result.wall_ms;
	set |= limits_lay_over(&result, &fixed);
	if (result.collect_bytes == 0)
		result.collect_bytes = limits_collect(result.fs_bytes);
	rc = limits_check_resolved(&result, err);
	if (rc == 0)
		rc = limits_check_floor(from->pack, &result, err);
	if (rc < 0)
		return rc;
	limits_budget(&result, set & CPU);
	*out = result;
	return 0;
}

static int limits_cannot(sb_error *err, const char *name, const char *what, const char *remedy)
{
	return error_set(err, SB_ERR_UNSUPPORTED, name, "limit \"%s\" is set, but %s here; %s",
			 name, what, remedy);
}

int sb_exec_policy_validate(const sb_limits *limits, const sb_enforcement *held, sb_error *err)
{
	sb_limits l;
	sb_enforcement e;
	int rc = record_read(&l, sizeof l, limits, "sb_limits", err);

	if (rc == 0)
		rc = record_read(&e, sizeof e, held, "sb_enforcement", err);
	if (rc == 0)
		rc = limits_check_resolved(&l, err);
	if (rc < 0)
		return rc;
	if (e.disk_cap == SB_LEVEL_NONE &&
	    (l.fs_bytes != SB_UNLIMITED || l.fs_nodes != SB_UNLIMITED))
		return limits_cannot(err, l.fs_bytes != SB_UNLIMITED ? "fs_bytes" : "fs_nodes",
				     "there is no quota", "leave it out or choose another backend");
	if (e.memory_cap == SB_LEVEL_NONE && l.memory_bytes != SB_UNLIMITED)
		return limits_cannot(err, "memory_bytes", "nothing can measure it",
				     "leave it out or choose another backend");
	if (e.cpu_cap == SB_LEVEL_NONE && l.cpu_ms != SB_UNLIMITED)
		return limits_cannot(err, "cpu_ms", "nothing can measure it",
				     "leave it out or choose another backend");
	return 0;
}
