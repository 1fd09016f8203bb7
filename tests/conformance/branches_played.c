/* SPDX-License-Identifier: MIT */
/* branches_played.c - branches of a session whose driver plays: all that the library itself promises. */
#include "evals.h"
#include "../unit/folder.h"

#define HEAR { FAKE_HEAR, 0, NULL, 0 }
#define TELL(text) { FAKE_TELL, 0, text, 0 }
#define HELLO HEAR, TELL("H @ 00000009\n1 ask nul")
#define DONE TELL("D @ 00000001\n0")
#define SAYS(digit) HEAR, TELL("V @ 00000001\n" digit), DONE
#define WAIT { FAKE_SLEEP, 60000, NULL, 0 }
#define END { FAKE_END, 0, NULL, 0 }
#define FOR_EVER(steps) { FAKE_BACK, steps, NULL, 0 }

static const fake_step counts[] = { HELLO, SAYS("1"), SAYS("2"), SAYS("3"), SAYS("4"), WAIT, END };
static const fake_step ever[] = { HELLO, SAYS("x"), FOR_EVER(3), END };

static void play(const fake_step *steps)
{
	fake_branches = (fake_branching){ 0 };
	script = steps;
	session = open_one();
}

static int try_fork(sb_session *of, const sb_session_options *opts, const sb_wait *wait, sb_session **out)
{
	*out = NULL;
	memset(&err, 0, sizeof err);
	int code = sb_session_fork(of, opts, wait, out, &err);

	assert_int_equal(code, err.code);
	assert_true(code < 0 ? *out == NULL : *out != NULL);
	return code;
}

static sb_session *branch_with(sb_session *of, sb_session_options opts)
{
	sb_session *out;

	opts.size = sizeof opts;
	if (try_fork(of, &opts, NULL, &out) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return out;
}

static sb_session *branch(sb_session *of)
{
	sb_session *out;

	if (try_fork(of, NULL, NULL, &out) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return out;
}

static void tells(sb_session *s, const char *value)
{
	answer a = eval_in(s, (sb_command){ 0 }, "code", NULL);

	ok(a, "");
	assert_string_equal(a.value, value);
}

static void refused(int code, const char *word)
{
	sb_session *out;

	assert_int_equal(try_fork(session, NULL, NULL, &out), code);
	if (!strstr(err.message, word))
		fail_msg("\"%s\" has no \"%s\"", err.message, word);
}

static void goes_on(void **state)
{
	(void)state;
	play(counts);
	sb_session *at_once = branch(session);

	tells(session, "1");
	sb_session *a = branch(session), *b = branch(session), *c = branch(a);

	assert_string_not_equal(sb_session_id(a), sb_session_id(session));
	assert_string_equal(sb_session_language(a), "scripted");
	assert_ptr_equal(sb_session_plan(a), sb_session_plan(session));
	assert_int_equal(sb_session_state(a), SB_STATE_IDLE);
	tells(at_once, "1");
	tells(session, "2");
	tells(a, "2");
	tells(a, "3");
	tells(c, "2");
	sb_session_free(session); /* the original goes before its branches */
	session = NULL;
	tells(b, "2");
	tells(a, "4");
	sb_session *last = branch(b);

	sb_session_free(b);
	tells(last, "3");
	sb_session_free(last);
	sb_session_free(a);
	sb_session_free(c);
	sb_session_free(at_once);
}

/* /out of each is its own; what lay in it goes along. */
static void out_of_each(void **state)
{
	static const fake_step steps[] = {
		HELLO, HEAR, { FAKE_OUT_FILE, 0, "left", 0 }, TELL("D @ 00000003\n255"), HEAR, DONE, WAIT, END,
	};

	(void)state;
	play(steps);
	sb_session *b = branch(session);
	answer a = eval("code");

	assert_int_equal(a.files, 1);
	a = eval_in(b, (sb_command){ 0 }, "code", NULL);
	assert_int_equal(a.files, 1);
	assert_string_equal(a.first, "left");
	assert_int_equal(eval("code").files, 0);
	sb_session_free(b);
}

static void options_refused(void **state)
{
#define WITH(...) { .size = sizeof(sb_session_options), __VA_ARGS__ }
	static const struct {
		sb_session_options opts;
		int code;
	} wrong[] = {
		{ WITH(.language = "python"), SB_ERR_INVALID },
		{ WITH(.id = "no id/at all"), SB_ERR_INVALID_SPEC },
		{ WITH(.idle_ms = (uint64_t)-5), SB_ERR_INVALID },
		{ WITH(.lifetime_ms = (uint64_t)INT64_MAX + 1), SB_ERR_INVALID },
		{ { .size = 0 }, SB_ERR_INVALID },
		{ WITH(.flags = 1 << 20), SB_ERR_UNSUPPORTED },
	};
	sb_session *out = NULL;

	(void)state;
	play(counts);
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(try_fork(session, &wrong[i].opts, NULL, &out), wrong[i].code);
	assert_int_equal(try_fork(session, &wrong[0].opts, NULL, &out), SB_ERR_INVALID);
	assert_string_equal(err.where, "language");
	assert_int_equal(sb_session_fork(session, NULL, NULL, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_session_fork(NULL, NULL, NULL, &out, NULL), SB_ERR_INVALID);
	assert_int_equal(fake_seen.boxes, 1);
	out = branch_with(session, (sb_session_options){ .language = "scripted" });
	sb_session_free(out);
	tells(session, "1");
}

static void ids(void **state)
{
	sb_session_options same = { .size = sizeof same };
	sb_session *out;

	(void)state;
	play(counts);
	sb_session *b = branch_with(session, (sb_session_options){ .id = "twin" });

	assert_string_equal(sb_session_id(b), "twin");
	same.id = "twin";
	assert_int_equal(try_fork(session, &same, NULL, &out), SB_ERR_CONFLICT);
	same.id = sb_session_id(session);
	assert_int_equal(try_fork(b, &same, NULL, &out), SB_ERR_CONFLICT);
	tells(b, "1");
	sb_session_free(b);
	b = branch_with(session, (sb_session_options){ .id = "twin" });
	sb_session_free(b);
}

static void without_language(void **state)
{
	(void)state;
	how.language = NULL;
	play(counts);
	refused(SB_ERR_UNSUPPORTED, "without a language");
}

static void not_idle(void **state)
{
	static const fake_step steps[] = { HELLO,
					   HEAR,
					   { FAKE_INTERRUPT, 0, NULL, 0 },
					   DONE,
					   HEAR,
					   TELL("Q @ 00000008\n00000001"),
					   HEAR,
					   DONE,
					   SAYS("3"),
					   WAIT,
					   END };
	char word[32];
	const char *const sleeper[] = { "sh", FAKE_WORD, fake_argv(STEPS({ FAKE_SLEEP, 60000, NULL, 0 }), word),
					NULL };
	const sb_command process = { .size = sizeof process, .argv = sleeper };
	sb_process *p = NULL;
	other o = { .code = "code" };

	(void)state;
	play(steps);
	start(&o);
	await_state(SB_STATE_BUSY);
	refused(SB_ERR_CONFLICT, "evaluates");
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
	join(&o);
	assert_int_equal(o.got.rc, 0);
	o = (other){ .code = "code", .command = { .input_kind = SB_INPUT_OPEN } };
	start(&o);
	await_state(SB_STATE_INPUT);
	refused(SB_ERR_CONFLICT, "waiting for input");
	assert_int_equal(sb_session_answer(session, "x", 1, NULL, &err), 0);
	join(&o);
	assert_int_equal(o.got.rc, 0);
	assert_int_equal(sb_session_spawn(session, &process, NULL, &p, &err), 0);
	refused(SB_ERR_CONFLICT, "process");
	sb_process_free(p);
	sb_session *b = branch(session);

	tells(b, "3");
	sb_session_free(b);
	tells(session, "3");
}

static void gone(void **state)
{
	static const fake_step ends[] = { HELLO, { FAKE_GO, 0, NULL, 0 }, { FAKE_END, 3, NULL, 0 } };
	static const fake_step limit[] = { HELLO, HEAR, { FAKE_LIMIT, SB_ERR_MEMORY_LIMIT, NULL, 0 }, END };
	sb_session *out;

	(void)state;
	play(limit);
	killed(eval("code"), SB_ERR_MEMORY_LIMIT);
	refused(SB_ERR_SESSION_KILLED, "was killed");
	sb_session_free(session);

	fake_go = 0;
	play(ends);
	fake_go = 1; /* it ends before it comes to rest, and that is seen, now or later */
	assert_int_equal(try_fork(session, NULL, NULL, &out), SB_ERR_SESSION_CLOSED);
	refused(SB_ERR_SESSION_CLOSED, "has ended");
	sb_session_free(session);

	play(counts);
	assert_int_equal(sb_session_close(session, NULL, &err), 0);
	refused(SB_ERR_SESSION_CLOSED, "closed");
	sb_session_free(session);

	how.max_evals = 1;
	play(counts);
	tells(session, "1");
	refused(SB_ERR_SESSION_CLOSED, "evaluations");
}

/* With AUTO_RESTART an evaluation would begin anew: of that there is no branch. */
static void nothing_left(void **state)
{
	static const fake_step limit[] = { HELLO, HEAR, { FAKE_LIMIT, SB_ERR_MEMORY_LIMIT, NULL, 0 }, END };

	(void)state;
	how.flags = SB_SESSION_AUTO_RESTART;
	play(limit);
	sb_session *b = branch(session);

	assert_int_equal(eval("code").error, SB_ERR_MEMORY_LIMIT);
	refused(SB_ERR_SESSION_KILLED, "was killed");
	/* the branch has the flag of the original; what it gets is new */
	assert_int_equal(eval_in(b, (sb_command){ 0 }, "code", NULL).error, SB_ERR_MEMORY_LIMIT);
	assert_int_equal(eval_in(b, (sb_command){ 0 }, "code", NULL).restarted, 1);
	sb_session_free(b);
}

static void reset_is_empty(void **state)
{
	(void)state;
	play(counts);
	tells(session, "1");
	sb_session *b = branch(session);

	tells(b, "2");
	assert_int_equal(sb_session_reset(b, NULL, &err), 0);
	tells(b, "1");
	tells(session, "2");
	sb_session_free(b);
}

/* What the twin does instead of saying hello. */
static void bad_twins(void **state)
{
	static const fake_step ends[] = { { FAKE_ERR, 0, "no room\n", 0 }, { FAKE_END, 1, NULL, 0 } };
	static const fake_step limit[] = { HEAR, { FAKE_LIMIT, SB_ERR_MEMORY_LIMIT, NULL, 0 } };
	static const fake_step rubbish[] = { HEAR, TELL("this is no frame at all, but it is long enough"), WAIT, END };
	static const fake_step hangs_up[] = { { FAKE_HANG_UP, 0, NULL, 0 }, WAIT, END };
	static const struct {
		const fake_step *steps;
		int code;
	} all[] = { { ends, SB_ERR_UNSUPPORTED }, { limit, SB_ERR_MEMORY_LIMIT }, { rubbish, SB_ERR_UNSUPPORTED },
		    { hangs_up, SB_ERR_UNSUPPORTED } };
	sb_session *out;

	(void)state;
	play(counts);
	for (size_t i = 0; i < COUNT(all); i++) {
		fake_branches.steps = all[i].steps;
		if (try_fork(session, NULL, NULL, &out) != all[i].code &&
		    !(all[i].steps == hangs_up && err.code == SB_ERR_TIMEOUT))
			fail_msg("%zu: %d %s", i, err.code, err.message);
		assert_int_equal(fake_seen.boxes, 1);
		assert_int_equal(fake_seen.guests, 1);
	}
	fake_branches.steps = NULL;
	tells(session, "1");
}

static void faults(void **state)
{
	static const int codes[] = { SB_ERR_NO_MEMORY, SB_ERR_IO, SB_ERR_UNSUPPORTED, SB_ERR_MEMORY_LIMIT };
	sb_session *out;

	(void)state;
	play(counts);
	for (size_t i = 0; i < COUNT(codes); i++) {
		const sb_session_options named = { .size = sizeof named, .id = "again" };

		fake_branches.fail_code = codes[i];
		assert_int_equal(try_fork(session, &named, NULL, &out), codes[i]);
		assert_int_equal(fake_seen.boxes, 1);
	}
	fake_branches.fail_code = 0;
	tells(session, "1");
	sb_session_free(branch(session));
}

/* ---- time, cancel, close ----------------------------------------------------------------------------- */

typedef struct forking { /* in another thread */
	pthread_t thread;
	sb_session *of, *made;
	const sb_wait *wait;
	int code;
} forking;

static void *forking_main(void *arg)
{
	forking *f = arg;

	f->code = sb_session_fork(f->of, NULL, f->wait, &f->made, NULL);
	return NULL;
}

static void start_forking(forking *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, forking_main, f), 0);
}

static void await_forking(void)
{
	const struct timespec tick = { 0, 1000000 };
	uint64_t late = now_ms() + HANG_MS;

	while (!fake_seen.forking && now_ms() < late)
		nanosleep(&tick, NULL);
	assert_int_equal(fake_seen.forking, 1);
}

static void deadlines(void **state)
{
	static const fake_step mute[] = { WAIT, END };
	const sb_wait soon = { .size = sizeof soon, .timeout_ms = 50 };
	const sb_wait never = { .size = sizeof never, .timeout_ms = SB_NO_WAIT };
	sb_session *out;

	(void)state;
	play(counts);
	assert_int_equal(try_fork(session, NULL, &never, &out), SB_ERR_TIMEOUT);
	fake_branches.slow = 1;
	assert_int_equal(try_fork(session, NULL, &soon, &out), SB_ERR_TIMEOUT);
	fake_branches.slow = 0;
	fake_branches.steps = mute; /* it does not say hello */
	assert_int_equal(try_fork(session, NULL, &soon, &out), SB_ERR_TIMEOUT);
	assert_int_equal(fake_seen.boxes, 1);
	fake_branches.steps = NULL;
	tells(session, "1");
}

static void cancelled(void **state)
{
	static const fake_step mute[] = { WAIT, END };
	sb_cancel *cancel = NULL;
	sb_session *out;

	(void)state;
	play(counts);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sb_cancel_new(&cancel, &err), 0);
		const sb_wait wait = { .size = sizeof wait, .cancel = cancel };
		forking f = { .of = session, .wait = &wait };

		fake_branches = (fake_branching){ .slow = !i, .steps = i ? mute : NULL };
		start_forking(&f);
		if (!i)
			await_forking();
		else
			await_state(SB_STATE_BUSY);
		sb_cancel_fire(cancel);
		pthread_join(f.thread, NULL);
		assert_int_equal(f.code, SB_ERR_CANCELLED);
		assert_int_equal(try_fork(session, NULL, &wait, &out), SB_ERR_CANCELLED);
		sb_cancel_free(cancel);
		assert_int_equal(fake_seen.boxes, 1);
	}
	fake_branches.slow = 0;
	fake_branches.steps = NULL;
	tells(session, "1");
}

/* While the branch is made the session evaluates nothing, and can be interrupted without harm. */
static void turn_is_held(void **state)
{
	const sb_wait soon = { .size = sizeof soon, .timeout_ms = 300 };
	const sb_wait sooner = { .size = sizeof sooner, .timeout_ms = 50 };
	forking f = { .wait = &soon };
	sb_session *out;

	(void)state;
	play(counts);
	f.of = session;
	fake_branches.slow = 1;
	start_forking(&f);
	await_forking();
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
	answer a = eval_in(session, (sb_command){ 0 }, "code", &sooner);

	assert_true(a.rc == SB_ERR_TIMEOUT || a.rc == 0); /* 0: the fork was over */
	if (a.rc == SB_ERR_TIMEOUT)
		(void)try_fork(session, NULL, &sooner, &out);
	pthread_join(f.thread, NULL);
	assert_int_equal(f.code, SB_ERR_TIMEOUT);
	if (a.rc == SB_ERR_TIMEOUT)
		tells(session, "1");
	else
		tells(session, "2");
	fake_branches.slow = 0;
}

static void closed_meanwhile(void **state)
{
	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		play(counts);
		forking f = { .of = session };

		fake_branches.slow = 1;
		start_forking(&f);
		await_forking();
		assert_int_equal(whole ? sb_sandbox_close(w.sandbox, NULL, &err)
				       : sb_session_close(session, NULL, &err), 0);
		pthread_join(f.thread, NULL);
		assert_int_equal(f.code, SB_ERR_SESSION_CLOSED);
		assert_null(f.made);
		assert_int_equal(fake_seen.boxes, 0);
		sb_session_free(session);
		session = NULL;
	}
}

/* At any moment; what comes of it is a branch or SESSION_CLOSED, and nothing is left. */
static void closed_at_any_moment(void **state)
{
	(void)state;
	for (long us = 0; us < 3000; us += 60) {
		const struct timespec pause = { 0, us * 1000 };

		play(ever);
		forking f = { .of = session };

		start_forking(&f);
		nanosleep(&pause, NULL);
		assert_int_equal(sb_session_close(session, NULL, &err), 0);
		pthread_join(f.thread, NULL);
		if (f.code < 0)
			assert_int_equal(f.code, SB_ERR_SESSION_CLOSED);
		else
			tells(f.made, "x");
		sb_session_free(f.made);
		sb_session_free(session);
		session = NULL;
	}
}

/* ---- what counts is its own ------------------------------------------------------------------------------ */

static void evaluations_of_each(void **state)
{
	(void)state;
	how.max_evals = 2;
	play(ever);
	tells(session, "x");
	sb_session *a = branch(session), *b = branch_with(session, (sb_session_options){ .max_evals = 1 });

	tells(a, "x");
	tells(a, "x");
	assert_int_equal(eval_in(a, (sb_command){ 0 }, "code", NULL).rc, SB_ERR_SESSION_CLOSED);
	tells(b, "x");
	assert_int_equal(eval_in(b, (sb_command){ 0 }, "code", NULL).rc, SB_ERR_SESSION_CLOSED);
	tells(session, "x");
	sb_session_free(a);
	sb_session_free(b);
}

static void await_closed(sb_session *s)
{
	const struct timespec tick = { 0, 2000000 };
	uint64_t late = now_ms() + HANG_MS;

	while (sb_session_state(s) != SB_STATE_CLOSED && now_ms() < late)
		nanosleep(&tick, NULL);
	assert_int_equal(sb_session_state(s), SB_STATE_CLOSED);
}

static void time_of_each(void **state)
{
	(void)state;
	play(ever);
	sb_session *old = branch_with(session, (sb_session_options){ .lifetime_ms = 30 });
	sb_session *idle = branch_with(session, (sb_session_options){ .idle_ms = 30 });
	sb_session *of_old, *stays;

	await_closed(old);
	await_closed(idle);
	sb_session_free(old);
	sb_session_free(idle);
	/* what is not said is the original's */
	how.lifetime_ms = 600;
	sb_session_free(session);
	play(ever);
	of_old = branch(session);
	stays = branch_with(session, (sb_session_options){ .lifetime_ms = SB_UNLIMITED });
	await_closed(session);
	await_closed(of_old);
	tells(stays, "x");
	sb_session_free(of_old);
	sb_session_free(stays);
}

static void listed(void **state)
{
	sb_info info = { .size = sizeof info };
	sb_list *list = NULL;
	bool found = false;

	(void)state;
	play(counts);
	sb_session *b = branch_with(session, (sb_session_options){ .id = "twin" });

	assert_int_equal(sb_sandbox_list(w.sandbox, SB_LIST_SESSIONS, &list, &err), 0);
	assert_int_equal(sb_list_count(list), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sb_list_at(list, i, &info), 0);
		found |= !strcmp(info.id, "twin") && !strcmp(info.language, "scripted") && info.running;
	}
	assert_true(found);
	sb_list_free(list);
	assert_int_equal(sb_sandbox_terminate(w.sandbox, "twin", NULL, &err), 0);
	assert_int_equal(sb_session_state(b), SB_STATE_CLOSED);
	tells(session, "1");
	sb_session_free(b);
}

static void under_a_manager(void **state)
{
	const sb_manager_options most = { .size = sizeof most, .max_sessions = 2 };
	static const sb_other_options *others[2];
	const sb_spec spec = { .size = sizeof spec, .limits = &limits, .other_options = others };
	sb_manager *m = NULL;
	sb_session *s = NULL, *out, *again = NULL;

	(void)state;
	fake.steps = ever;
	others[0] = FAKE_OPTIONS(&fake);
	assert_int_equal(sb_manager_new(w.sandbox, &most, &m, &err), 0);
	assert_int_equal(sb_manager_create(m, &spec, &how, NULL, &s, &err), 0);
	sb_session *b = branch_with(s, (sb_session_options){ .id = "twin" });

	assert_int_equal(sb_manager_count(m), 2);
	assert_int_equal(try_fork(s, NULL, NULL, &out), SB_ERR_TOO_MANY_SESSIONS);
	assert_int_equal(try_fork(b, NULL, NULL, &out), SB_ERR_TOO_MANY_SESSIONS);
	assert_int_equal(fake_seen.boxes, 2);
	assert_int_equal(sb_manager_get(m, "twin", &again, &err), 0);
	assert_ptr_equal(again, b);
	sb_session_free(again);
	assert_int_equal(sb_manager_close(m, "twin", NULL, &err), 0);
	assert_int_equal(sb_session_state(b), SB_STATE_CLOSED);
	sb_session_free(b);
	/* a place of its own: the original's, where it is closed */
	b = branch_with(s, (sb_session_options){ .idle_ms = SB_UNLIMITED });
	assert_int_equal(sb_session_close(s, NULL, &err), 0);
	sb_session_free(s);
	out = branch(b);
	tells(out, "x");
	tells(b, "x");
	sb_session_free(out);
	assert_int_equal(sb_manager_shutdown(m, NULL, &err), 0);
	assert_int_equal(sb_session_state(b), SB_STATE_CLOSED);
	sb_session_free(b);
	sb_manager_free(m);
}

/* A manager that is shut down while a branch of one of its sessions is made. */
static void manager_shut_meanwhile(void **state)
{
	static const sb_other_options *others[2];
	const sb_spec spec = { .size = sizeof spec, .limits = &limits, .other_options = others };

	(void)state;
	for (long us = 0; us < 3000; us += 100) {
		const struct timespec pause = { 0, us * 1000 };
		sb_manager *m = NULL;
		sb_session *s = NULL;

		fake.steps = ever;
		others[0] = FAKE_OPTIONS(&fake);
		assert_int_equal(sb_manager_new(w.sandbox, NULL, &m, &err), 0);
		assert_int_equal(sb_manager_create(m, &spec, &how, NULL, &s, &err), 0);
		forking f = { .of = s };

		start_forking(&f);
		nanosleep(&pause, NULL);
		sb_manager_free(m);
		pthread_join(f.thread, NULL);
		assert_true(f.code == 0 || f.code == SB_ERR_SESSION_CLOSED || f.code == SB_ERR_MANAGER_CLOSED);
		if (f.code == 0)
			assert_int_equal(sb_session_state(f.made), SB_STATE_CLOSED);
		sb_session_free(f.made);
		sb_session_free(s);
		assert_int_equal(fake_seen.boxes, 0);
	}
}

/* ---- gates and audit ---------------------------------------------------------------------------------------- */

static int asked, say;
static int approve(void *user, const sb_request *request, const char *why, sb_approval *approval)
{
	(void)user;
	(void)why;
	(void)approval;
	asked++;
	assert_int_equal(request->door, SB_DOOR_SESSION);
	assert_null(request->command);
	return say;
}

static int match(void *user, const sb_request *request, char *reason, size_t cap)
{
	(void)user;
	(void)reason;
	(void)cap;
	return request->door == SB_DOOR_SESSION;
}

static char told[16][100];
static size_t told_count;
static int on_audit(void *user, const sb_audit *event)
{
	(void)user;
	if (told_count < COUNT(told) && event->session)
		snprintf(told[told_count++], sizeof told[0], "%s %s %s", event->session, sb_audit_name((int)event->what),
			 event->what == SB_AUDIT_REQUEST && event->text ? event->text : "");
	return 0;
}

static void gates(void **state)
{
	const sb_predicate rule = { .size = sizeof rule, .what = SB_PREDICATE_CUSTOM, .match = match };
	sb_session *out;

	(void)state;
	asked = 0;
	say = SB_ALLOW;
	evals_sandbox((sb_sandbox_options){ .predicates = (const sb_predicate *const[]){ &rule, NULL },
					    .approve = approve, .audit = on_audit });
	how.id = "first";
	play(counts);
	assert_int_equal(asked, 1);
	told_count = 0;
	sb_session *b = branch_with(session, (sb_session_options){ .id = "twin" });

	assert_int_equal(asked, 2);
	assert_string_equal(told[0], "twin request a branch of \"first\"");
	assert_string_equal(told[1], "twin approval ");
	assert_string_equal(told[2], "twin start ");
	assert_int_equal(told_count, 3);
	say = SB_DENY;
	assert_int_equal(try_fork(session, NULL, NULL, &out), SB_ERR_POLICY_DENIED);
	assert_int_equal(asked, 3);
	assert_int_equal(fake_seen.boxes, 2);
	tells(session, "1");
	tells(b, "1");
	sb_session_free(b);
}

/* ---- many ---------------------------------------------------------------------------------------------------- */

static void many(void **state)
{
	(void)state;
	play(ever);
	for (int i = 0; i < 200; i++) {
		sb_session *b = branch(session);

		if (i % 10 == 0)
			tells(b, "x");
		sb_session_free(b);
	}
	assert_int_equal(fake_seen.boxes, 1);
	tells(session, "x");
}

static void chain(void **state)
{
	(void)state;
	play(ever);
	for (int i = 0; i < 100; i++) {
		sb_session *next = branch(session);

		sb_session_free(session);
		session = next;
	}
	tells(session, "x");
}

static void *branches_and_evaluates(void *arg)
{
	sb_session *of = arg;
	intptr_t made = 0;

	for (int i = 0; i < 60; i++) {
		const sb_command code = { .size = sizeof code, .code = "code", .code_len = 4 };
		sb_session *b = NULL;
		sb_result *r = NULL;
		int rc = sb_session_fork(of, NULL, NULL, &b, NULL);

		if (rc < 0 && rc != SB_ERR_CONFLICT)
			return NULL;
		made += rc == 0;
		if (rc == 0 && sb_session_eval(b, &code, NULL, &r, NULL) == 0)
			sb_result_free(r);
		r = NULL;
		if (i % 3 == 0 && sb_session_eval(of, &code, NULL, &r, NULL) == 0)
			sb_result_free(r);
		sb_session_free(b);
	}
	return (void *)(made + 1);
}

static void threads_at_once(void **state)
{
	pthread_t threads[3];
	intptr_t made = 0;

	(void)state;
	play(ever);
	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, branches_and_evaluates, session), 0);
	for (size_t i = 0; i < COUNT(threads); i++) {
		void *said;

		pthread_join(threads[i], &said);
		assert_non_null(said); /* no other error than CONFLICT */
		made += (intptr_t)said - 1;
	}
	assert_true(made > 0);
	assert_int_equal(fake_seen.boxes, 1);
	tells(session, "x");
}

/* Branches of one session take turns: none is a CONFLICT for another. */
static void branches_at_once(void **state)
{
	forking f[8];

	(void)state;
	play(ever);
	for (size_t i = 0; i < COUNT(f); i++) {
		f[i] = (forking){ .of = session };
		start_forking(&f[i]);
	}
	for (size_t i = 0; i < COUNT(f); i++) {
		pthread_join(f[i].thread, NULL);
		assert_int_equal(f[i].code, 0);
		tells(f[i].made, "x");
		sb_session_free(f[i].made);
	}
}

EVALS_MAIN(TEST(goes_on), TEST(out_of_each), TEST(options_refused), TEST(ids), TEST(without_language), TEST(not_idle),
	   TEST(gone), TEST(nothing_left), TEST(reset_is_empty), TEST(bad_twins), TEST(faults), TEST(deadlines),
	   TEST(cancelled), TEST(turn_is_held), TEST(closed_meanwhile), TEST(closed_at_any_moment),
	   TEST(evaluations_of_each), TEST(time_of_each), TEST(listed), TEST(under_a_manager),
	   TEST(manager_shut_meanwhile), TEST(gates), TEST(many), TEST(chain), TEST(threads_at_once),
	   TEST(branches_at_once))
