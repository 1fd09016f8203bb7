/* SPDX-License-Identifier: MIT */
/*
 * explain.c - what would hold, without a run; and what works on this machine.
 *
 * A plan is asked of a backend that has tried the real operations, where a run asks one that knows
 * cheap facts only: a run that they mislead is refused when it starts, an explanation is not wrong.
 */
#include "session.h"

enum { DOCTOR_MS = 10000, EXPLAIN_MS = 30000 };

/* ---- the walls that are the session's own ------------------------------------------------------ */

static bool has_line(const sb_plan *plan, uint32_t wall)
{
	sb_plan_line line = { .size = sizeof line };

	for (size_t i = 0; sb_plan_at(plan, i, &line) == 0; i++)
		if (line.wall == wall)
			return true;
	return false;
}

static int add_line(sb_plan *plan, uint32_t wall, uint32_t level, const char *mechanism,
		    const char *caveat, const char *subject, sb_error *err)
{
	const sb_plan_line line = { .size = sizeof line, .mechanism = mechanism, .caveat = caveat,
				    .subject = subject, .test = "", .wall = wall, .level = level };

	return has_line(plan, wall) ? 0 : sb_plan_add(plan, &line, err);
}

static int add_output(const effective *e, sb_plan *plan, sb_error *err)
{
	const sb_limits *l = &e->limits;
	char text[96];

	if (l->out_total_bytes == SB_UNLIMITED && l->out_stream_bytes == SB_UNLIMITED)
		return add_line(plan, SB_WALL_OUTPUT, SB_LEVEL_NONE, "no limit was set", "", "", err);
	if (l->out_total_bytes != SB_UNLIMITED)
		snprintf(text, sizeof text, "%llu bytes together",
			 (unsigned long long)l->out_total_bytes);
	else
		snprintf(text, sizeof text, "%llu bytes a stream",
			 (unsigned long long)l->out_stream_bytes);
	return add_line(plan, SB_WALL_OUTPUT, SB_LEVEL_HARD,
			l->out_mode == SB_OUT_TRUNCATE ? "what is above the cap is counted and dropped"
						       : "the command is ended at the cap",
			"", text, err);
}

static int add_time(const effective *e, sb_plan *plan, sb_error *err)
{
	char text[48];

	if (e->limits.wall_ms == SB_UNLIMITED)
		return add_line(plan, SB_WALL_TIME, SB_LEVEL_NONE, "no limit was set", "", "", err);
	clock_text(e->limits.wall_ms, text);
	return add_line(plan, SB_WALL_TIME, SB_LEVEL_HARD, "the caller's clock, then everything is killed",
			"", text, err);
}

static int add_env(const effective *e, sb_plan *plan, sb_error *err)
{
	char text[48];

	snprintf(text, sizeof text, "%zu variables",
		 strv_count((const char *const *)e->env_list));
	if (e->env.base == SB_ENV_INHERIT)
		return add_line(plan, SB_WALL_ENV, SB_LEVEL_NONE, "the caller's environment", "", text,
				err);
	return add_line(plan, SB_WALL_ENV, SB_LEVEL_HARD, "built from nothing, name by name", "", text,
			err);
}

/* Sessions of a language with a driver evaluate, on whatever backend. */
static uint64_t caps_of_way(const sb_pack_way *way, uint64_t caps)
{
	return way && way->session_driver && caps & SB_CAP_SESSIONS ? caps | SB_CAP_EVAL : caps;
}

int effective_plan(effective *e, sb_state *state, sb_plan **out, sb_error *err)
{
	sb_plan *plan = NULL;
	int code = plan_new(e->slot->table->name, &plan, err);

	if (code < 0)
		return code;
	plan_set_limits(plan, &e->limits);
	code = plan_set_command(plan, (const char *const *)e->argv, e->place.workspace,
				(const char *const *)e->env_list, err);
	if (code >= 0)
		code = e->slot->table->plan(state, &e->box, plan, err);
	if (code >= 0)
		code = add_time(e, plan, err);
	if (code >= 0)
		code = add_output(e, plan, err);
	if (code >= 0)
		code = add_env(e, plan, err);
	if (code < 0) {
		plan_unref(plan);
		return code;
	}
	sb_plan_set_caps(plan, caps_of_way(e->way, sb_plan_caps(plan)));
	*out = plan;
	return 0;
}

/* ---- explain ------------------------------------------------------------------------------------- */

/* What a valid request meets here is told in its plan; an invalid one has none. */
static bool belongs_in_plan(int code)
{
	int kind = sb_error_kind(code);

	return kind == SB_KIND_NOT_AVAILABLE || kind == SB_KIND_POLICY_DENIED;
}

static int failed_plan(const effective *e, const sb_error *why, sb_plan **out, sb_error *err)
{
	arena mem = { 0 };
	const char *const *order = policy_spell_out(&mem, e->spec.backends ? e->spec.backends : e->sandbox->order);
	const char *name = e->slot ? e->slot->table->name : order ? order[0] : NULL;
	int code = plan_new(name ? name : "", out, err);

	arena_release(&mem);

	if (code < 0)
		return code;
	if (e->limits.size)
		plan_set_limits(*out, &e->limits);
	plan_set_failure(*out, why);
	return plan_set_command(*out, (const char *const *)e->argv, e->place.workspace,
				(const char *const *)e->env_list, err);
}

static int explain_plan(effective *e, const sb_call *call, sb_plan **plan, sb_error *why)
{
	sb_state *state;
	int code = effective_resolve(e, why);

	if (code >= 0)
		code = sandbox_state(e->sandbox, e->slot, true, call, &state, why);
	if (code >= 0)
		code = effective_plan(e, state, plan, why);
	if (code < 0)
		return belongs_in_plan(code) ? failed_plan(e, why, plan, why) : code;
	if (plan_check(*plan, &e->demand, why) < 0)
		plan_set_failure(*plan, why);
	return plan_finish(*plan, why);
}

static int explain_in(effective *e, const sb_spec *spec, const sb_command *command,
		      const sb_call *call, sb_plan **out, sb_error *err)
{
	sb_error why = { 0 }, denied = { 0 };
	sb_plan *plan = NULL;
	int code = effective_read(e, spec, command, &why);

	if (code >= 0) {
		gates_allowed(e, &denied);
		code = explain_plan(e, call, &plan, &why);
	}
	if (code < 0) {
		plan_unref(plan);
		if (err)
			*err = why;
		return code;
	}
	if (denied.code) /* the gate comes first */
		plan_set_failure(plan, &denied);
	*out = plan;
	return 0;
}

int sb_explain(sb_sandbox *sandbox, const sb_spec *spec, const sb_command *command, sb_plan **plan,
	       sb_error *err)
{
	const sb_spec none = { .size = sizeof none };
	live_run run;
	effective e;
	sb_call call;

	if (!plan)
		return error_set(err, SB_ERR_INVALID, "explain", "no place for the plan was given");
	int code = sandbox_enter(sandbox, &run, err);

	if (code < 0)
		return code;
	effective_init(&e, sandbox, SB_DOOR_RUN);
	code = call_init(&call, NULL, EXPLAIN_MS, err);
	if (code >= 0)
		code = explain_in(&e, spec ? spec : &none, command, &call, plan, err);
	effective_release(&e);
	sandbox_leave(sandbox, &run);
	return code;
}

/* ---- doctor --------------------------------------------------------------------------------------- */

/* The plan of a run with no options but the backend's name; NULL = none comes of it. */
static sb_plan *default_plan(sb_sandbox *sandbox, const backend_slot *slot, sb_state *state)
{
	const char *const names[] = { slot->table->name, NULL };
	const sb_spec spec = { .size = sizeof spec, .backends = names,
			       .workspace_mode = SB_WORKSPACE_NONE };
	sb_plan *plan = NULL;
	effective e;

	effective_init(&e, sandbox, SB_DOOR_RUN);
	if (effective_read(&e, &spec, NULL, NULL) >= 0 && effective_resolve(&e, NULL) >= 0 &&
	    e.slot == slot)
		effective_plan(&e, state, &plan, NULL);
	effective_release(&e);
	return plan;
}

/* A plan for no command in particular has no language, so it does not know what only those have. */
static uint64_t caps_here(const sb_sandbox *sandbox, const sb_backend *table, const sb_plan *plan)
{
	const uint64_t of_languages = SB_CAP_SESSIONS | SB_CAP_EVAL | SB_CAP_FORK;

	if (!plan)
		return 0;
	uint64_t caps = sb_plan_caps(plan) | (table->caps & of_languages);

	for (size_t i = 0; sandbox->packs[i]; i++)
		caps = caps_of_way(pack_way(sandbox->packs[i], table->name), caps);
	return caps;
}

static int examine(sb_sandbox *sandbox, backend_slot *slot, const sb_call *call, sb_report *report,
		   sb_error *err)
{
	sb_call mine = *call;
	sb_state *state = NULL;
	sb_plan *plan = NULL;
	sb_error why;

	mine.helper_dir = sandbox->helper_dir;
	int usable = slot->table->probe(slot->table, &mine, report, &state, &why);

	if (usable == SB_ERR_CANCELLED || usable == SB_ERR_NO_MEMORY) {
		if (err)
			*err = why;
		return usable;
	}
	if (usable >= 0)
		plan = default_plan(sandbox, slot, state);
	int code = report_backend(report, slot->table->name, usable >= 0, caps_here(sandbox, slot->table, plan),
				  plan, err);

	plan_unref(plan);
	if (usable >= 0 && state)
		slot->table->forget(state);
	return code;
}

int sb_doctor(sb_sandbox *sandbox, const sb_wait *wait, sb_report **report, sb_error *err)
{
	sb_report *made = NULL;
	live_run run;
	sb_call call;

	if (!report)
		return error_set(err, SB_ERR_INVALID, "doctor", "no place for the report was given");
	int code = sandbox_enter(sandbox, &run, err);

	if (code < 0)
		return code;
	code = call_init(&call, wait, DOCTOR_MS, err);
	if (code >= 0)
		code = report_new(&made, err);
	for (size_t i = 0; code >= 0 && i < sandbox->slot_count; i++)
		code = examine(sandbox, &sandbox->slots[i], &call, made, err);
	sandbox_leave(sandbox, &run);
	if (code < 0) {
		sb_report_free(made);
		return code;
	}
	*report = made;
	return 0;
}

/* ---- sweep ---------------------------------------------------------------------------------------- */

int sb_sweep(sb_sandbox *sandbox, const sb_wait *wait, uint64_t *removed, sb_error *err)
{
	uint64_t sum = 0;
	live_run run;
	sb_call call;
	int code = sandbox_enter(sandbox, &run, err);

	if (code < 0)
		return code;
	code = call_init(&call, wait, DOCTOR_MS, err);
	for (size_t i = 0; code >= 0 && i < sandbox->slot_count; i++) {
		backend_slot *slot = &sandbox->slots[i];
		sb_state *state;
		uint64_t some = 0;

		/* a backend that is not usable here left nothing here */
		if (!slot->table->sweep ||
		    sandbox_state(sandbox, slot, false, &call, &state, NULL) < 0)
			continue;
		code = slot->table->sweep(state, &call, &some, err);
		sum += some;
	}
	sandbox_leave(sandbox, &run);
	if (removed && code >= 0)
		*removed = sum;
	return code < 0 ? code : 0;
}
