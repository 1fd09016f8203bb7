/* SPDX-License-Identifier: MIT */
/*
 * eval.c - code in the interpreter of a session: sb_session_eval() and its friends.
 *
 * One evaluation: command checked, gates passed, its turn awaited; a dead interpreter made anew
 * where that is wished; files in; an exchange with the driver; how it ended; files out.
 */
#include "repl.h"
#include "live.h"
#include "../vfs/tree.h"

#include <errno.h>
#include <unistd.h>

enum { FINISH_MS = 10000, RESET_MS = 60000 };

typedef struct evaluation {
	sb_session *s;
	effective e; /* for the gates */
	const sb_call *call;
	char *read; /* input that a callback gave, whole */
	size_t read_len;
	bool restarted;
	sb_usage before; /* used by the interpreter until it began */
	repl_talk *talk;
	sb_result *result;
} evaluation;

/* ---- the command -------------------------------------------------------------------------------
 */

bool eval_is_language(const sb_session *s, const char *name)
{
	return pack_find((const sb_pack *const[]){ s->e.pack, NULL }, name) != NULL;
}

static int check_command(const sb_session *s, const sb_command *c, sb_error *err)
{
	if (c->argv)
		return error_set(err, SB_ERR_INVALID, "eval",
				 "an evaluation takes code, not an argv; "
				 "start programs with sb_session_spawn()");
	if (c->language && !eval_is_language(s, c->language))
		return error_set(err, SB_ERR_INVALID, "eval",
				 "the session \"%.80s\" is one of \"%s\", not of "
				 "\"%.40s\"",
				 s->e.id, s->e.pack->name, c->language);
	if (!c->code && c->code_len)
		return error_set(err, SB_ERR_INVALID, "eval", "there is no code");
	if (c->flags & ~(uint32_t)SB_COMMAND_PARTIAL || c->args || c->cwd || c->env)
		return error_set(err, SB_ERR_UNSUPPORTED, "eval",
				 "terminal, arguments, directory and "
				 "variables are the session's; set them in the code");
	if (c->input_kind == SB_INPUT_FD)
		return error_set(err, SB_ERR_UNSUPPORTED, "input",
				 "an evaluation's input is bytes, a "
				 "callback, or open for sb_session_answer(); give one of them");
	if (c->code_len > DRIVER_CODE_MAX ||
	    (c->input_kind == SB_INPUT_BYTES && c->input_len > DRIVER_CODE_MAX - c->code_len))
		return error_set(err, SB_ERR_INVALID, "eval",
				 "code and input have more than 64 MiB; put "
				 "what is large into files");
	return 0;
}

static int read_command(evaluation *v, const sb_command *command, sb_error *err)
{
	effective *e = &v->e;
	const effective *open = &v->s->e;
	sb_command checked;
	int code = record_read(&e->command, sizeof e->command, command, "sb_command", err);

	if (code >= 0)
		code = check_command(v->s, &e->command, err);
	if (code < 0)
		return code;
	e->command.language = open->pack->name;
	checked = e->command;
	if (checked.input_kind == SB_INPUT_OPEN)
		checked.input_kind = SB_INPUT_NONE;
	code = spec_check_command(&checked, err);
	e->has_command = true;
	e->spec = open->spec;
	e->caller_limits = open->limits;
	e->env = open->env;
	e->network = open->network;
	e->session = open->id;
	e->interactive = 1;
	snprintf(e->id, sizeof e->id, "%s", open->id);
	return code;
}

/* What only the driver of this language knows. */
static int check_features(evaluation *v, sb_error *err)
{
	uint32_t can = v->s->repl->features;
	const sb_command *c = &v->e.command;

	if (!(can & DRIVER_CAN_NUL) && c->code_len && memchr(c->code, 0, c->code_len))
		return error_set(err, SB_ERR_INVALID, "eval",
				 "the code has a zero byte, which \"%s\" "
				 "cannot take",
				 v->s->e.pack->name);
	if (!(can & DRIVER_CAN_ASK) && c->input_kind == SB_INPUT_OPEN)
		return error_set(err, SB_ERR_UNSUPPORTED, "input",
				 "code of \"%s\" cannot wait for an answer; "
				 "give its input as bytes",
				 v->s->e.pack->name);
	return 0;
}

/* To its end, for a language that cannot ask. */
static int read_callback(evaluation *v, sb_error *err)
{
	sb_command *c = &v->e.command;
	size_t piece = 65536;
	buf all;
	int64_t n;

	if (c->input_kind != SB_INPUT_CALLBACK || v->s->repl->features & DRIVER_CAN_ASK)
		return 0;
	char *at = malloc(piece);

	if (!at)
		return error_no_memory(err, "input");
	buf_init(&all, DRIVER_CODE_MAX - c->code_len);
	while ((n = c->read_input(c->user, at, piece)) > 0 && n <= (int64_t)piece && !all.failed)
		buf_add(&all, at, (size_t)n);
	free(at);
	v->read_len = all.len;
	v->read = buf_take(&all, NULL);
	if (n < 0 || n > (int64_t)piece)
		return error_set(err, SB_ERR_CANCELLED, "input",
				 "the callback of the input said stop");
	if (!v->read)
		return error_set(err, SB_ERR_INVALID, "input",
				 "code and input have more than 64 MiB");
	c->input_kind = SB_INPUT_BYTES;
	c->input = v->read;
	c->input_len = v->read_len;
	return 0;
}

/* ---- turns --------------------------------------------------------------------------------------
 */

int eval_gone(const sb_session *s, int code, sb_error *err)
{
	return error_set(err, code, "session",
			 code == SB_ERR_SESSION_KILLED
				 ? "the session \"%.80s\" was killed; reset it, or open another"
				 : "the session \"%.80s\" has ended; open another",
			 s->e.id);
}

/* The lock is held. */
int eval_alive(const sb_session *s, sb_error *err)
{
	const repl *r = s->repl;

	if (s->closing || s->closed)
		return error_set(err, SB_ERR_SESSION_CLOSED, "session",
				 "the session \"%.80s\" is closed", s->e.id);
	if (r->max_evals && r->evals >= r->max_evals)
		return error_set(
			err, SB_ERR_SESSION_CLOSED, "session",
			"the session \"%.80s\" has made its %llu evaluations; open another",
			s->e.id, (unsigned long long)r->max_evals);
	if (r->dead && !r->auto_restart)
		return eval_gone(s, r->dead, err);
	return 0;
}

static int eval_turn(sb_session *s, const sb_call *call, bool any, sb_error *err)
{
	repl *r = s->repl;
	int code = 0;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		code = any ? 0 : eval_alive(s, err);
		if (code >= 0 && any && (s->closing || s->closed))
			code = error_set(err, SB_ERR_SESSION_CLOSED, "session",
					 "the session \"%.80s\" is closed", s->e.id);
		if (code >= 0 && r->evaluating && r->asking && !any)
			code = error_set(err, SB_ERR_CONFLICT, "eval",
					 "the session \"%.80s\" is waiting for "
					 "input; answer or interrupt it first",
					 s->e.id);
		if (code < 0 || !r->evaluating)
			break;
		code = topic_wait(&s->changed, &s->lock, call, err);
		if (code == SB_ERR_AGAIN)
			code = error_set(err, SB_ERR_TIMEOUT, "eval",
					 "another evaluation of the session "
					 "\"%.80s\" took all the time",
					 s->e.id);
		if (code < 0)
			break;
	}
	if (code >= 0) {
		r->evaluating = true;
		r->interrupted = false;
	}
	pthread_mutex_unlock(&s->lock);
	return code < 0 ? code : 0;
}

void eval_done(sb_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->repl->evaluating = s->repl->branching = false;
	s->used_ns = clock_now_ns();
	topic_wake(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* ---- everything anew
 * ------------------------------------------------------------------------------- */

/* With the turn of evaluations: nothing of before is left, then walls and interpreter are new. */
static int renew(sb_session *s, const sb_call *call, sb_error *err)
{
	repl *r = s->repl;
	int code;

	repl_end(s);
	code = session_rebuild(s, call, err);
	if (code >= 0)
		code = repl_start(s, call, err);
	pthread_mutex_lock(&s->lock);
	r->dead = code < 0 ? SB_ERR_SESSION_KILLED : 0;
	if (code >= 0)
		s->killed = false;
	pthread_mutex_unlock(&s->lock);
	return code;
}

void eval_look(sb_session *s)
{
	repl *r = s->repl;

	if (r->dead || !repl_has_ended(r))
		return;
	bool killed = repl_was_killed(s);

	pthread_mutex_lock(&s->lock);
	r->dead = killed ? SB_ERR_SESSION_KILLED : SB_ERR_SESSION_CLOSED;
	r->lost = true;
	pthread_mutex_unlock(&s->lock);
}

/* It may have ended since, by itself or with its walls. */
static int revive(evaluation *v, sb_error *err)
{
	sb_session *s = v->s;
	repl *r = s->repl;

	eval_look(s);
	if (r->dead && !r->auto_restart)
		return eval_gone(s, r->dead, err);
	if (r->dead) {
		int code = renew(s, v->call, err);

		if (code < 0)
			return code;
	}
	v->restarted = r->lost;
	r->lost = false;
	return 0;
}

/* ---- how it ended
 * --------------------------------------------------------------------------------- */

/* The session is over, whatever else runs in it; `code`: what later calls get. */
static void bury(evaluation *v, int code)
{
	sb_session *s = v->s;
	repl *r = s->repl;

	pthread_mutex_lock(&s->lock);
	r->dead = code;
	r->lost = true;
	if (code == SB_ERR_SESSION_KILLED)
		for (sb_process *p = s->processes; p; p = p->next)
			process_end(p, LIFE_TERMINATED, 0);
	pthread_mutex_unlock(&s->lock);
}

/* The reason stays, as the cause. */
static void session_failure(evaluation *v, int code)
{
	sb_error *f = &v->result->failure;
	sb_error why = *f;

	if (v->s->repl->auto_restart)
		return;
	error_set(f, code, why.code ? why.where : "session", "%s%sthe session has ended",
		  why.message, why.code ? ": " : "");
	f->cause = why.code == code ? 0 : why.code;
}

static void ended_by_breach(evaluation *v)
{
	sb_result *out = v->result;

	out->outcome = SB_OUTCOME_VIOLATION;
	error_set(&out->failure, SB_ERR_FORBIDDEN, "driver",
		  "killed for what came over the control "
		  "descriptor: %s",
		  v->talk->broken ? v->talk->broken : "no frame");
	bury(v, SB_ERR_SESSION_KILLED);
	session_failure(v, SB_ERR_SESSION_KILLED);
}

/* No limit, no wall: its own signal, or one from within or from outside. */
static void told_by_signal(sb_result *out)
{
	if (out->outcome == SB_OUTCOME_SIGNALED)
		error_set(&out->failure, SB_ERR_SESSION_KILLED, "session",
			  "the interpreter was ended by signal %d", out->signal_number);
	else
		error_set(&out->failure, SB_ERR_SESSION_KILLED, "session",
			  "the interpreter was ended from outside");
}

static void ended_with_guest(evaluation *v, const sb_guest_exit *end)
{
	repl_talk *t = v->talk;
	sb_result *out = v->result;
	bool cut_off = t->broken && t->pump.why == PUMP_TIME;

	if (t->pump.why == PUMP_BROKEN || cut_off) {
		ended_by_breach(v);
		return;
	}
	ending_fill(out, &v->s->e.limits, &t->pump, end);
	bool killed = out->failure.code || out->outcome != SB_OUTCOME_EXITED;
	int code = killed ? SB_ERR_SESSION_KILLED : SB_ERR_SESSION_CLOSED;

	if (!killed)
		error_set(&out->failure, SB_ERR_PROCESS_CLOSED, "session",
			  "the interpreter ended with exit code %d", out->code);
	else if (!out->failure.code)
		told_by_signal(out);
	bury(v, code);
	session_failure(v, code);
	if (!killed && out->failure.code == code)
		out->failure.cause = SB_ERR_PROCESS_CLOSED;
}

/* What the interpreter has used since this evaluation began.  The two parts are not known to the same moment: their
 * sum is the firm one. */
static void count_usage(evaluation *v, sb_usage *all)
{
	const sb_usage *before = &v->before;
	uint64_t was = before->user_us + before->system_us, is = all->user_us + all->system_us;
	uint64_t sum = is > was ? is - was : 0;
	uint64_t kernel = all->system_us > before->system_us ? all->system_us - before->system_us : 0;

	all->system_us = kernel < sum ? kernel : sum;
	all->user_us = sum - all->system_us;
}

static int ended(evaluation *v, sb_error *err)
{
	repl_talk *t = v->talk;
	sb_result *out = v->result;
	sb_guest_exit end = { .size = sizeof end, .usage = &out->usage };

	out->usage.wall_us = (clock_now_ns() - t->start_ns) / 1000;
	if (t->pump.why == PUMP_DONE) {
		out->outcome = SB_OUTCOME_EXITED;
		out->code = t->unfinished ? 0 : t->status;
		out->unfinished = t->unfinished;
		sb_usage now = { .size = sizeof now };

		repl_usage(v->s, &now);
		out->usage.user_us = now.user_us;
		out->usage.system_us = now.system_us;
	} else {
		uint64_t wall = out->usage.wall_us;
		bool known = t->pump.ended && repl_reap(t, &end, NULL) >= 0;

		repl_end(v->s);
		out->usage.wall_us = wall;
		out->teardown.killed = end.killed;
		ended_with_guest(v, known ? &end : NULL);
	}
	count_usage(v, &out->usage);
	if (t->pump.why == PUMP_NO_MEMORY || t->no_memory)
		return error_no_memory(err, "output");
	out->value = t->value;
	out->exception = t->exception;
	t->value = t->exception = NULL;
	return carry_output(&t->pump.out, out, err);
}

/* /out into the result, and empty again. */
static int take_out(evaluation *v, sb_error *err)
{
	sb_session *s = v->s;
	const sb_backend *table = session_table(s);
	const sb_limits *l = &s->e.limits;
	const sb_call call = { .size = sizeof call,
			       .cancel_fd = -1,
			       .deadline_ns = clock_deadline_ns(clock_now_ns(), FINISH_MS) };
	sb_result *out = v->result;
	sb_error why = { 0 };
	sb_tree *tree = NULL;

	if (!table->collect || !table->get || out->unfinished) /* it has no /out */
		return 0;
	int code = sb_tree_new(l->collect_bytes ? l->collect_bytes : l->fs_bytes, l->fs_nodes,
			       &tree, err);

	if (code < 0)
		return code;
	pthread_mutex_lock(&s->lock);
	code = turn_take(s, &call, &why);
	if (code >= 0) {
		sb_box *box = s->box;

		pthread_mutex_unlock(&s->lock);
		code = box ? table->get(box, "/out", &call, tree, &why) : 0;
		if (box && code >= 0 && tree_found_any(tree) && table->remove)
			code = table->remove(box, "/out", &call, &why);
		pthread_mutex_lock(&s->lock);
		turn_give(s);
	}
	pthread_mutex_unlock(&s->lock);
	sb_tree_free(out->files);
	out->files = tree;
	if (code >= 0 || code == SB_ERR_UNSUPPORTED || out->failure.code)
		return 0;
	out->failure = why;
	if (code == SB_ERR_FS_QUOTA || code == SB_ERR_TOO_MANY_FILES)
		out->outcome = SB_OUTCOME_BUDGET_EXCEEDED;
	else
		out->incomplete = 1;
	return 0;
}

/* ---- one evaluation
 * ---------------------------------------------------------------------------------- */

static int put_files(evaluation *v, sb_error *err)
{
	sb_session *s = v->s;
	const sb_command *c = &v->e.command;
	int code;

	if (!(c->files && c->files[0]) && !c->tree)
		return 0;
	pthread_mutex_lock(&s->lock);
	code = turn_take(s, v->call, err);
	if (code >= 0) {
		pthread_mutex_unlock(&s->lock);
		code = carry_files(session_table(s), s->box, c, &s->e.limits, v->call, err);
		pthread_mutex_lock(&s->lock);
		turn_give(s);
	}
	pthread_mutex_unlock(&s->lock);
	return code;
}

static int exchange(evaluation *v, sb_error *err)
{
	repl *r = v->s->repl;
	repl_talk *t = v->talk;
	const sb_command *c = &v->e.command;
	char head[DRIVER_HEAD + DRIVER_CODE_HEAD + 1];
	bool ask = c->input_kind == SB_INPUT_OPEN || c->input_kind == SB_INPUT_CALLBACK;
	sb_command shown = *c;

	shown.input_kind = SB_INPUT_NONE; /* the pump has none to give */
	t->session = v->s;
	t->command = c;
	t->call = v->call;
	t->pump.command = &shown;
	if (driver_expect_end(&r->reader, (c->flags & SB_COMMAND_PARTIAL ? DRIVER_PARTIAL : 0) |
						  (ask ? DRIVER_ASK : 0)) < 0)
		return error_set(err, SB_ERR_INTERNAL, "eval", "cannot get random bytes");
	size_t input_len = c->input_kind == SB_INPUT_BYTES ? c->input_len : 0;

	t->evaluates = true;
	t->parts[1] = head;
	t->lens[1] = driver_code_head(&r->reader, c->code_len, input_len, head);
	t->parts[2] = c->code;
	t->lens[2] = c->code_len;
	t->parts[3] = c->input;
	t->lens[3] = input_len;
	repl_renew(v->s, &v->before);
	repl_exchange(t);
	t->pump.command = NULL;
	return 0;
}

static void note(const evaluation *v, uint32_t what, uint32_t action, int code, const char *text)
{
	const audit_note n = { .what = what,
			       .action = action,
			       .wall = SB_WALL_COUNT,
			       .code = code,
			       .session = v->s->e.id,
			       .subject = v->s->e.pack->name,
			       .text = text };

	audit_write(v->s->sandbox, &n, NULL);
}

static int finish(evaluation *v, sb_error *err)
{
	sb_result *out = v->result;

	out->backend = strdup(session_table(v->s)->name);
	out->language = strdup(v->s->e.pack->name);
	out->plan = plan_ref(v->s->plan);
	out->restarted = v->restarted;
	int code = out->backend && out->language ? result_finish(out, err)
						 : error_no_memory(err, "result");

	if (code < 0)
		return code;
	if (out->failure.code)
		note(v, SB_AUDIT_LIMIT, SB_DENY, out->failure.code, out->failure.message);
	note(v, SB_AUDIT_EXIT, SB_ALLOW, out->failure.code, sb_outcome_name(out->outcome));
	return 0;
}

/* With the turn of evaluations. */
static int evaluate(evaluation *v, sb_error *err)
{
	int code = revive(v, err);

	if (code >= 0)
		code = check_features(v, err);
	if (code >= 0)
		code = read_callback(v, err);
	if (code >= 0)
		code = put_files(v, err);
	if (code >= 0)
		code = sb_call_check(v->call, err);
	if (code >= 0)
		code = result_new(&v->result, err);
	if (code < 0)
		return code;
	v->result->usage.size = v->before.size = sizeof v->before;
	v->result->teardown.size = sizeof v->result->teardown;
	code = exchange(v, err);
	if (code < 0)
		return code;
	code = ended(v, err);
	if (code >= 0)
		code = take_out(v, err);
	if (!v->result->unfinished)
		v->s->repl->evals++;
	return code < 0 ? code : finish(v, err);
}

static int request_note(const evaluation *v, sb_error *err)
{
	const audit_note n = { .what = SB_AUDIT_REQUEST,
			       .action = SB_ALLOW,
			       .wall = SB_WALL_COUNT,
			       .session = v->s->e.id,
			       .subject = v->s->e.pack->name };

	return audit_write(v->s->sandbox, &n, err);
}

static int eval_in(evaluation *v, const sb_command *command, sb_result **result, sb_error *err)
{
	int code = read_command(v, command, err);

	if (code >= 0)
		code = request_note(v, err);
	if (code >= 0)
		code = gates_approve(&v->e, v->call, err);
	if (code >= 0)
		code = eval_turn(v->s, v->call, false, err);
	if (code < 0) {
		note(v, SB_AUDIT_DENIAL, SB_DENY, code, err ? err->message : "");
		return code;
	}
	code = evaluate(v, err);
	eval_done(v->s);
	if (code < 0)
		return code;
	*result = v->result;
	v->result = NULL;
	return 0;
}

static int check_session(const sb_session *s, sb_error *err)
{
	int code = session_check(s, "session", err);

	if (code >= 0 && !s->repl)
		code = error_set(err, SB_ERR_UNSUPPORTED, "eval",
				 "the session \"%.80s\" was opened without a "
				 "language; open one with it",
				 s->e.id);
	return code;
}

int sb_session_eval(sb_session *s, const sb_command *command, const sb_wait *wait,
		    sb_result **result, sb_error *err)
{
	live_run live;
	sb_call call;

	if (!command || !result)
		return error_set(err, SB_ERR_INVALID, "eval", "%s",
				 result ? "there is no command"
					: "no place for the result was given");
	int code = check_session(s, err);

	if (code >= 0)
		code = call_init(&call, wait, SB_UNLIMITED, err);
	if (code >= 0)
		code = sandbox_enter(s->sandbox, &live, err);
	if (code < 0)
		return code;
	evaluation v = { .s = s, .call = &call, .talk = repl_talk_new() };

	session_ref(s);
	effective_init(&v.e, s->sandbox, SB_DOOR_EVAL);
	code = v.talk ? eval_in(&v, command, result, err) : error_no_memory(err, "eval");
	effective_release(&v.e);
	repl_talk_free(v.talk);
	free(v.read);
	sb_result_free(v.result);
	sandbox_leave(s->sandbox, &live);
	session_unref(s);
	return code;
}

/* ---- its friends
 * -------------------------------------------------------------------------------------- */

/* A line, with its end; nothing stays nothing. */
static char *answer_text(const void *data, size_t *len)
{
	char *text = malloc(*len + 2);

	if (!text)
		return NULL;
	if (*len)
		memcpy(text, data, *len);
	if (*len && text[*len - 1] != '\n')
		text[(*len)++] = '\n';
	text[*len] = 0;
	return text;
}

int sb_session_answer(sb_session *s, const void *data, size_t len, const sb_wait *wait,
		      sb_error *err)
{
	uint64_t one = 1;
	sb_call call;
	int code = check_session(s, err);

	if (code >= 0)
		code = call_init(&call, wait, FINISH_MS, err);
	if (code >= 0 && ((len && !data) || len >= DRIVER_ANSWER_MAX))
		code = error_set(err, SB_ERR_INVALID, "answer", "an answer has at most 1 MiB");
	if (code < 0)
		return code;
	char *text = answer_text(data, &len);

	if (!text)
		return error_no_memory(err, "answer");
	pthread_mutex_lock(&s->lock);
	if (!s->repl->asking) {
		code = error_set(err, SB_ERR_CONFLICT, "answer",
				 "no code of the session \"%.80s\" waits for "
				 "input",
				 s->e.id);
	} else {
		free(s->repl->answer);
		s->repl->answer = text;
		s->repl->answer_len = len;
		s->repl->asking = false;
		text = NULL;
		if (write(s->repl->wake_fd, &one, sizeof one) < 0)
			code = error_set(err, SB_ERR_IO, "answer", "cannot tell of the answer");
	}
	pthread_mutex_unlock(&s->lock);
	free(text);
	return code;
}

/* Whoever evaluates passes it on; one that comes before the code has been sent is remembered till then. */
int sb_session_interrupt(sb_session *s, const sb_wait *wait, sb_error *err)
{
	uint64_t one = 1;
	sb_call call;
	int code = check_session(s, err);

	if (code >= 0)
		code = call_init(&call, wait, FINISH_MS, err);
	if (code < 0)
		return code;
	pthread_mutex_lock(&s->lock);
	s->repl->interrupted = s->repl->evaluating && !s->repl->branching;
	if (s->repl->interrupted && write(s->repl->wake_fd, &one, sizeof one) < 0 && errno != EAGAIN)
		code = error_set(err, SB_ERR_IO, "interrupt", "cannot tell of the interrupt");
	pthread_mutex_unlock(&s->lock);
	return code < 0 ? code : 0;
}

int sb_session_reset(sb_session *s, const sb_wait *wait, sb_error *err)
{
	live_run live;
	sb_call call;
	int code = check_session(s, err);

	if (code >= 0)
		code = call_init(&call, wait, RESET_MS, err);
	if (code >= 0)
		code = sandbox_enter(s->sandbox, &live, err);
	if (code < 0)
		return code;
	session_ref(s);
	code = eval_turn(s, &call, true, err);
	if (code >= 0) {
		code = renew(s, &call, err);
		s->repl->lost = false;
		eval_done(s);
	}
	sandbox_leave(s->sandbox, &live);
	session_unref(s);
	return code < 0 ? code : 0;
}
