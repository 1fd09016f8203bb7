/* SPDX-License-Identifier: MIT */
/*
 * run.c - one command behind fresh walls, waited for.
 *
 *   read, approve, allowed, resolve, plan, check | create, put, spawn | pump | reap, collect, destroy
 *
 * Left of the first bar nothing has started; left of the second every failure is an error and the
 * box is taken down; from the spawn on there is a result, unless the backend says that the guest
 * never started.
 */
#include "session.h"

#include <unistd.h>

enum { PREPARE_MS = 60000, FINISH_MS = 10000 };

typedef struct running {
	effective e;
	const sb_backend *table;
	const sb_call *call;
	sb_plan *plan;
	sb_state *state;
	const sb_backend *begun;      /* its begin() was called, with begun_state */
	sb_state *begun_state;
	sb_box *box;
	sb_guest *guest;
	pump pump;
	uint64_t start_ns;
	sb_result *result;
} running;

static const char *subject(const effective *e)
{
	return e->command.argv ? e->command.argv[0] : e->command.language;
}

/* What a reader of the log wants to know of a run, step by step. */
BASE_PRINTF(2, 3) static void step(const running *r, const char *fmt, ...)
{
	const sb_sandbox *sandbox = r->e.sandbox;
	char text[400];
	va_list args;

	if (!sandbox->log || sandbox->log_level < SB_LOG_DEBUG)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	sandbox_log(sandbox, SB_LOG_DEBUG, "run", "%s: %s", r->e.id, text);
}

static int note(const running *r, uint32_t what, uint32_t action, int code, const char *text,
		sb_error *err)
{
	const audit_note n = { .what = what, .action = action, .wall = SB_WALL_COUNT, .code = code,
			       .process = r->e.id, .subject = subject(&r->e), .text = text };

	return audit_write(r->e.sandbox, &n, err);
}

/* ---- before anything starts --------------------------------------------------------------------- */

/* The backend that most likely takes it may begin: a guess, told again when it is known better. */
static void run_begin(running *r)
{
	effective *e = &r->e;
	sb_state *state;

	if (e->command.language)
		e->pack = pack_find(e->sandbox->packs, e->command.language);
	if ((e->command.language && !e->pack) || effective_route(e, NULL) < 0 || !e->slot->table->begin)
		return;
	/* a program of the host that runs code has a limit of CPU time, and so a supervisor of its own */
	if (e->way && e->way->find)
		return;
	if (sandbox_state(e->sandbox, e->slot, false, r->call, &state, NULL) < 0)
		return;
	r->begun = e->slot->table;
	r->begun_state = state;
	r->begun->begin(state, e->id, &e->network);
}

static int run_prepare(running *r, live_run *live, const sb_spec *spec, const sb_command *command,
		       sb_error *err)
{
	effective *e = &r->e;
	int code = effective_read(e, spec, command, err);

	if (code >= 0)
		code = sandbox_claim(e->sandbox, live, e->id, err);
	if (code >= 0)
		code = note(r, SB_AUDIT_REQUEST, SB_ALLOW, 0, e->module ? e->module : "", err);
	if (code >= 0)
		code = gates_approve(e, r->call, err);
	if (code >= 0)
		code = gates_allowed(e, err);
	if (code >= 0)
		run_begin(r);
	if (code >= 0)
		code = effective_resolve(e, err);
	if (code < 0)
		return code;
	r->table = e->slot->table;
	step(r, "backend %s, profile %s, %s \"%s\", workspace %s", r->table->name,
	     sb_profile_name(e->profile), e->pack ? "language" : "command", subject(e),
	     e->place.workspace ? e->place.workspace : "none");
	code = sandbox_state(e->sandbox, e->slot, false, r->call, &r->state, err);
	if (code >= 0)
		code = effective_plan(e, r->state, &r->plan, err);
	if (code >= 0)
		code = plan_check(r->plan, &e->demand, err);
	if (code >= 0)
		step(r, "planned: %zu lines, all that was asked for is held", sb_plan_count(r->plan));
	return code < 0 ? code : sb_call_check(r->call, err);
}

/* ---- start ---------------------------------------------------------------------------------------------- */

static int send_signal(void *user, int signal)
{
	running *r = user;
	const sb_call call = { .size = sizeof call, .cancel_fd = -1,
			       .deadline_ns = clock_deadline_ns(clock_now_ns(), FINISH_MS) };

	return r->table->signal(r->guest, signal, &call, NULL);
}

static uint32_t input_flag(const sb_command *c)
{
	return c->input_kind == SB_INPUT_DEFAULT || c->input_kind == SB_INPUT_NONE ||
			       (c->input_kind == SB_INPUT_BYTES && !c->input_len)
		       ? 0
		       : SB_GUEST_INPUT;
}

static int run_start(running *r, sb_error *err)
{
	effective *e = &r->e;
	sb_call call = *r->call;
	uint64_t bound = clock_deadline_ns(clock_now_ns(), PREPARE_MS);

	if (bound < call.deadline_ns)
		call.deadline_ns = bound;
	int code = r->table->create(r->state, &e->box, r->plan, &call, &r->box, err);

	if (code >= 0 && e->pack)
		code = carry_code(r->table, r->box, e->code_path, e->command.code,
				  e->command.code_len, &call, err);
	if (code >= 0 && e->pack)
		code = carry_files(r->table, r->box, &e->command, &e->limits, &call, err);
	if (code < 0)
		return code;
	r->pump.io = (sb_guest_io){ .size = sizeof r->pump.io, .in = -1, .out = -1, .err = -1,
				    .exited = -1, .control = -1 };
	e->guest.flags = input_flag(&e->command) | SB_GUEST_LAST;
	r->start_ns = clock_now_ns();
	code = r->table->spawn(r->box, &e->guest, &call, &r->guest, &r->pump.io, err);
	if (code < 0)
		return code;
	step(r, "walls and command are under way");
	note(r, SB_AUDIT_START, SB_ALLOW, 0, r->table->name, NULL);
	if (!(e->command.flags & SB_COMMAND_SHORT_PLAN))
		return plan_finish(r->plan, err);
	plan_leave_rest(r->plan);
	return 0;
}

/* A worker that had ended meanwhile has seen nothing of the run, which starts anew. */
static int run_start_cold(running *r, sb_error *err)
{
	step(r, "the warm worker had ended: a cold start");
	r->table->destroy(r->box);
	r->box = NULL;
	r->e.box.flags &= ~(uint32_t)SB_BOX_WARM;
	return run_start(r, err);
}

static void run_pump(running *r)
{
	pump *p = &r->pump;

	p->command = &r->e.command;
	p->call = r->call;
	p->stop_fd = r->e.sandbox->stop_fd;
	p->deadline_ns = clock_deadline_ns(r->start_ns, r->e.limits.wall_ms);
	p->grace_ms = r->e.limits.grace_ms;
	p->signal = send_signal;
	p->user = r;
	capture_init(&p->out, &r->e.limits);
	if (r->e.box.flags & SB_BOX_WARM && !p->command->on_output && p->out.mode == SB_OUT_TRUNCATE)
		p->patience = PUMP_PATIENCE;
	pump_run(p);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

/* /out of a code run, and what is left in the box; a file system that is too full is a result. */
static int take_files(running *r, sb_error *err)
{
	const sb_limits *l = &r->e.limits;
	const sb_call call = { .size = sizeof call, .cancel_fd = -1,
			       .deadline_ns = clock_deadline_ns(clock_now_ns(), FINISH_MS) };
	sb_result *out = r->result;
	sb_error why = { 0 };
	sb_tree *tree = NULL;

	if (!r->e.pack || !r->table->collect)
		return 0;
	int code = sb_tree_new(l->collect_bytes ? l->collect_bytes : l->fs_bytes, l->fs_nodes, &tree,
			       err);

	if (code < 0)
		return code;
	code = r->table->collect(r->box, &call, tree, &why);
	sb_tree_free(out->files);
	out->files = tree;
	if (code < 0 && !out->failure.code) {
		out->failure = why;
		if (code == SB_ERR_FS_QUOTA || code == SB_ERR_TOO_MANY_FILES) {
			out->outcome = SB_OUTCOME_BUDGET_EXCEEDED;
			out->code = -1;
			out->signal_number = 0;
		} else {
			out->incomplete = 1;
		}
	}
	if (r->table->usage)
		r->table->usage(r->box, NULL, &out->usage);
	step(r, "collected: %zu files and directories, %llu bytes of /out", sb_tree_count(tree),
	     (unsigned long long)sb_tree_bytes(tree));
	return 0;
}

/* 0 = there is a result. */
static int run_reap(running *r, uint64_t end_ns, sb_error *err)
{
	sb_result *out = r->result;
	sb_guest_exit end = { .size = sizeof end, .usage = &out->usage };
	bool ended = r->pump.ended;
	sb_error why = { 0 };
	int code = ended ? r->table->reap(r->guest, &end, &why) : 0;

	/* one that never started has no result, but for the time that its start took */
	if (code < 0 && r->pump.why != PUMP_TIME) {
		sb_error ours = { 0 };

		if (r->pump.why != PUMP_EXITED) {
			ending_fill(out, &r->e.limits, &r->pump, NULL);
			ours = out->failure;
		}
		if (err)
			*err = ours.code ? ours : why;
		return ours.code ? ours.code : code;
	}
	if (r->pump.why == PUMP_NO_MEMORY)
		return error_no_memory(err, "output");
	ending_fill(out, &r->e.limits, &r->pump, ended && code >= 0 ? &end : NULL);
	out->usage.wall_us = (end_ns - r->start_ns) / 1000;
	out->teardown.killed = end.killed;
	step(r, "%s, seen after %llu us", sb_outcome_name(out->outcome),
	     (unsigned long long)out->usage.wall_us);
	return 0;
}

static char *copy_text(const char *text, int *code, sb_error *err)
{
	char *out = text ? strdup(text) : NULL;

	if (text && !out)
		*code = error_no_memory(err, "result");
	return out;
}

static int run_finish(running *r, sb_error *err)
{
	sb_result *out = r->result;
	int code = 0;

	out->backend = copy_text(r->table->name, &code, err);
	out->language = copy_text(r->e.pack ? r->e.pack->name : NULL, &code, err);
	out->plan = plan_ref(r->plan);
	out->appeared = r->e.place.appeared;
	r->e.place.appeared = NULL;
	if (code >= 0)
		code = result_finish(out, err);
	if (code < 0)
		return code;
	if (out->failure.code)
		note(r, SB_AUDIT_LIMIT, SB_DENY, out->failure.code, out->failure.message, NULL);
	note(r, SB_AUDIT_EXIT, SB_ALLOW, out->failure.code, sb_outcome_name(out->outcome), NULL);
	return 0;
}

/* Also where there is no result: nothing may be left behind unsaid. */
static void run_teardown(running *r, uint64_t end_ns)
{
	sb_teardown *t = &r->result->teardown;

	if (r->box && r->table->teardown)
		r->table->teardown(r->box, t);
	if (r->box)
		r->table->destroy(r->box);
	r->box = NULL;
	t->took_us = (clock_now_ns() - end_ns) / 1000;
	step(r, "torn down in %llu us: %llu processes killed that had outlived it, %llu things left",
	     (unsigned long long)t->took_us, (unsigned long long)t->killed,
	     (unsigned long long)t->left);
	if (t->left)
		sandbox_log(r->e.sandbox, SB_LOG_WARNING, "run",
			    "%s: %llu cgroup directories could not be removed; sb_sweep() tries again",
			    r->e.id, (unsigned long long)t->left);
}

static int run_guest(running *r, sb_error *err)
{
	int code = result_new(&r->result, err);

	if (code < 0)
		return code;
	r->result->usage.size = sizeof r->result->usage;
	r->result->teardown.size = sizeof r->result->teardown;
	code = run_start(r, err);
	if (code == SB_ERR_AGAIN && r->e.box.flags & SB_BOX_WARM)
		code = run_start_cold(r, err);
	uint64_t end_ns = clock_now_ns();

	if (code >= 0) {
		run_pump(r);
		end_ns = clock_now_ns();
		code = run_reap(r, end_ns, err);
	}
	if (r->guest)
		r->table->release(r->guest);
	r->guest = NULL;
	if (code >= 0)
		code = carry_output(&r->pump.out, r->result, err);
	if (code >= 0)
		code = take_files(r, err);
	/* With its end nothing of the guest's is alive: we look while the kernel takes the walls down. */
	bool looked = code >= 0 && r->pump.ended;
	if (looked)
		code = place_look_again(&r->e.place, err);
	run_teardown(r, end_ns);
	if (code >= 0 && !looked)
		code = place_look_again(&r->e.place, err);
	return code < 0 ? code : run_finish(r, err);
}

/* ---- the door ----------------------------------------------------------------------------------------------- */

static int run_in(running *r, live_run *live, const sb_spec *spec, const sb_command *command,
		  sb_result **result, sb_error *err)
{
	int code = run_prepare(r, live, spec, command, err);

	if (code < 0) {
		if (r->begun)
			r->begun->begin(r->begun_state, r->e.id, NULL);
		note(r, SB_AUDIT_DENIAL, SB_DENY, code, err ? err->message : "", NULL);
		return code;
	}
	code = run_guest(r, err);
	if (r->begun)
		r->begun->begin(r->begun_state, r->e.id, NULL);
	if (code >= 0) {
		*result = r->result;
		r->result = NULL;
	} else {
		note(r, SB_AUDIT_EXIT, SB_DENY, code, err ? err->message : "", NULL);
	}
	return code < 0 ? code : 0;
}

int sb_run(sb_sandbox *sandbox, const sb_spec *spec, const sb_command *command, const sb_wait *wait,
	   sb_result **result, sb_error *err)
{
	const sb_spec none = { .size = sizeof none };
	live_run live;
	sb_call call;
	running r;

	if (!result || !command)
		return error_set(err, SB_ERR_INVALID, "run", "%s",
				 result ? "there is no command" : "no place for the result was given");
	int code = sandbox_enter(sandbox, &live, err);

	if (code < 0)
		return code;
	effective_init(&r.e, sandbox, SB_DOOR_RUN);
	memset((char *)&r + sizeof r.e, 0, sizeof r - sizeof r.e);
	r.pump.io = (sb_guest_io){ .in = -1, .out = -1, .err = -1, .exited = -1, .control = -1 };
	r.call = &call;
	code = call_init(&call, wait, SB_UNLIMITED, err);
	if (code >= 0)
		code = run_in(&r, &live, spec ? spec : &none, command, result, err);
	pump_release(&r.pump);
	sb_result_free(r.result);
	plan_unref(r.plan);
	effective_release(&r.e);
	sandbox_leave(sandbox, &live);
	return code;
}
