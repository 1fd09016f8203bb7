/* SPDX-License-Identifier: MIT */
/*
 * merge.c - the operator's spec over the caller's: what is set there wins, what is unset does not.
 *
 * Three members are not simply one or the other.  The environment's injected values are joined, the
 * caller's last.  `require` and `flags` add up.  Of the caller's file rules beside the operator's
 * those that take something away stay; those that would show more do not.  What was overruled is
 * told to the audit, even where the caller had asked for less.
 */
#include "session.h"

uint64_t merge_asked(const sb_limits *l, const sb_network *network,
		     const sb_file_rule *const *files, const sb_env *env, uint32_t workspace_mode)
{
	uint64_t asked = 0;

	if (l) {
		if (limits_is_set(l->memory_bytes))
			asked |= SB_WALL_BIT(SB_WALL_MEMORY);
		if (limits_is_set(l->wall_ms))
			asked |= SB_WALL_BIT(SB_WALL_TIME);
		if (limits_is_set(l->cpu_ms) || limits_is_set(l->cpu_millicores) ||
		    limits_is_set(l->cpu_budget_millicores))
			asked |= SB_WALL_BIT(SB_WALL_CPU);
		if (limits_is_set(l->out_total_bytes) || limits_is_set(l->out_stream_bytes))
			asked |= SB_WALL_BIT(SB_WALL_OUTPUT);
		if (limits_is_set(l->fs_bytes) || limits_is_set(l->fs_nodes))
			asked |= SB_WALL_BIT(SB_WALL_DISK);
		if (limits_is_set(l->procs) || limits_is_set(l->user_procs))
			asked |= SB_WALL_BIT(SB_WALL_PIDS);
	}
	if (network && network->mode != SB_NET_DEFAULT && network->mode != SB_NET_HOST)
		asked |= SB_WALL_BIT(SB_WALL_NETWORK);
	if ((files && files[0]) || workspace_mode == SB_WORKSPACE_NONE ||
	    workspace_mode == SB_WORKSPACE_READ)
		asked |= SB_WALL_BIT(SB_WALL_FILES);
	if (env && (env->base == SB_ENV_NONE || env->base == SB_ENV_LIST))
		asked |= SB_WALL_BIT(SB_WALL_ENV);
	return asked;
}

static void overruled(effective *e, const char *member)
{
	const audit_note note = { .what = SB_AUDIT_OVERRULED, .action = SB_ALLOW,
				  .wall = SB_WALL_COUNT, .process = e->id, .subject = member,
				  .rule = "operator_spec",
				  .text = "the operator's value is used, not the caller's" };

	audit_write(e->sandbox, &note, NULL);
}

/* Joined, the caller's behind: the last of a name wins. */
static int join_inject(effective *e, const char *const *fixed, const char *const *caller,
		       sb_error *err)
{
	size_t a = strv_count(fixed), b = strv_count(caller);
	const char **list = arena_alloc(&e->mem, (a + b + 1) * sizeof *list);

	if (!list)
		return error_no_memory(err, "spec");
	for (size_t i = 0; i < a; i++)
		list[i] = fixed[i];
	for (size_t i = 0; i < b; i++)
		list[a + i] = caller[i];
	e->env.inject = list;
	return 0;
}

static int merge_env(effective *e, const sb_env *fixed, sb_error *err)
{
	const char *const *caller = e->env.inject;

	if (!fixed)
		return 0;
	if (fixed->base != SB_ENV_DEFAULT || fixed->allow) {
		if (e->env.base != SB_ENV_DEFAULT || e->env.allow)
			overruled(e, "env");
		e->env.base = fixed->base == SB_ENV_DEFAULT ? SB_ENV_LIST : fixed->base;
		e->env.allow = fixed->allow;
	}
	return fixed->inject ? join_inject(e, fixed->inject, caller, err) : 0;
}

/* What the caller's rules may still do beside the operator's. */
static int merge_files(effective *e, const sb_spec *fixed, sb_error *err)
{
	size_t count = 0, n = 0;

	if (!fixed->files)
		return 0;
	e->operator_files = fixed->files;
	while (e->caller_files && e->caller_files[count])
		count++;
	const sb_file_rule **kept = arena_alloc(&e->mem, (count + 1) * sizeof *kept);

	if (!kept)
		return error_no_memory(err, "spec");
	for (size_t i = 0; i < count; i++) {
		sb_file_rule rule;
		int code = record_read(&rule, sizeof rule, e->caller_files[i], "sb_file_rule", err);

		if (code < 0)
			return code;
		if (rule.access == SB_FILE_HIDE || rule.access == SB_FILE_PROTECT)
			kept[n++] = e->caller_files[i];
	}
	if (n < count)
		overruled(e, "files");
	e->caller_files = kept;
	return 0;
}

#define TAKE(member)                                           \
	do {                                                   \
		if (fixed->member) {                           \
			if (e->spec.member)                    \
				overruled(e, #member);         \
			e->spec.member = fixed->member;        \
		}                                              \
	} while (0)

static void merge_members(effective *e, const sb_spec *fixed)
{
	TAKE(backends);
	TAKE(workspace_mode);
	TAKE(process_options);
	TAKE(linux_options);
	TAKE(container_options);
	TAKE(kube_options);
	TAKE(wasm_options);
	e->module_fixed = fixed->wasm_options != NULL;
	TAKE(seatbelt_options);
	TAKE(other_options);
	TAKE(profile);
	if (fixed->workspace) {
		if (e->spec.workspace)
			overruled(e, "workspace");
		e->spec.workspace = fixed->workspace;
		e->workspace_fixed = true;
	}
	if (fixed->network && fixed->network->mode != SB_NET_DEFAULT) {
		if (e->network.mode != SB_NET_DEFAULT)
			overruled(e, "network");
		e->network = *fixed->network;
	}
	/* what the operator asked for is not the caller's to give up */
	e->spec.allow_weaker = fixed->allow_weaker ? fixed->allow_weaker
						   : e->spec.allow_weaker & ~e->asked_by_operator;
	e->spec.require |= fixed->require;
	e->spec.flags |= fixed->flags;
}

int merge_operator(effective *e, sb_error *err)
{
	const sb_spec *fixed = e->sandbox->operator_spec;
	const sb_command *command = e->sandbox->operator_command;

	if (command && e->has_command) {
		if (!e->command.cwd)
			e->command.cwd = command->cwd;
		if (e->command.input_kind == SB_INPUT_DEFAULT) {
			e->command.input_kind = command->input_kind;
			e->command.input = command->input;
			e->command.input_len = command->input_len;
			e->command.input_fd = command->input_fd;
			if (command->input_kind == SB_INPUT_CALLBACK)
				e->command.read_input = command->read_input;
		}
	}
	if (!fixed)
		return 0;
	e->asked_by_operator = fixed->require | merge_asked(fixed->limits, fixed->network,
							    fixed->files, fixed->env,
							    fixed->workspace_mode);
	merge_members(e, fixed);
	int code = merge_env(e, fixed->env, err);

	return code < 0 ? code : merge_files(e, fixed, err);
}
