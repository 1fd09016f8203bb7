/* SPDX-License-Identifier: MIT */
/* evals_world.c - a sandbox with a session that evaluates, and short ways to ask it. */
#include "evals.h"
#include "../lib/descriptors.h"


sb_error err;
world w;
sb_session_options how;
sb_limits limits;
const fake_step *script;
fake_script fake = { .size = sizeof fake, .backend = "fake" };
sb_session *session;

static const sb_pack_way fake_way = { .size = sizeof fake_way,
				      .backend = "fake",
				      .run = LIST("interpreter", "{code}"),
				      .code_file = "main",
				      .session_driver = "driver",
				      .caps = SB_CAP_EVAL };
static const sb_pack_way mute_way = { .size = sizeof mute_way,
				      .backend = "fake",
				      .run = LIST("interpreter", "{code}"),
				      .code_file = "main" };
static const sb_pack fake_pack = { .size = sizeof fake_pack,
				   .name = "scripted",
				   .version = "1",
				   .ways = (const sb_pack_way *const[]){ &fake_way, NULL } };
static const sb_pack mute_pack = { .size = sizeof mute_pack,
				   .name = "mute",
				   .version = "1",
				   .ways = (const sb_pack_way *const[]){ &mute_way, NULL } };

void evals_sandbox(sb_sandbox_options o)
{
	static const char *order[2];
	static const sb_backend *const fakes[] = { &fake_backend, NULL };
	static const sb_pack *const packs[] = { &fake_pack, &mute_pack, NULL };

	order[0] = w.backend;
	o.size = sizeof o;
	o.backends = w.is_fake ? fakes : NULL;
	o.packs = w.is_fake ? packs : NULL;
	o.helper_dir = w.helper_dir;
	o.order = order;
	sb_sandbox_free(w.sandbox);
	w.sandbox = NULL;
	if (sb_sandbox_new(&o, NULL, &w.sandbox, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
}

int evals_begin(void **state)
{
	(void)state;
	w.descriptors = open_descriptors();
	how = (sb_session_options){ .size = sizeof how,
				    .language = w.is_fake ? "scripted" : "python" };
	limits = (sb_limits){ .size = sizeof limits, .wall_ms = 60000 };
	script = NULL;
	session = NULL;
	evals_sandbox((sb_sandbox_options){ 0 });
	return 0;
}

int evals_end(void **state)
{
	(void)state;
	sb_session_free(session);
	sb_sandbox_free(w.sandbox);
	w.sandbox = NULL;
	if (open_descriptors() != w.descriptors)
		fail_msg("%d descriptors were left open", open_descriptors() - w.descriptors);
	errno = 0;
	assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	assert_int_equal(fake_seen.broken, 0);
	assert_int_equal(fake_seen.boxes + fake_seen.guests, 0);
	return 0;
}

int try_open(sb_session **out)
{
	static const sb_other_options *others[2];
	sb_spec spec = { .size = sizeof spec, .limits = &limits, .other_options = others };

	fake.steps = script;
	others[0] = w.is_fake ? FAKE_OPTIONS(&fake) : NULL;
	memset(&err, 0, sizeof err);
	return sb_session_open(w.sandbox, &spec, &how, NULL, out, &err);
}

sb_session *open_one(void)
{
	sb_session *out = NULL;

	if (try_open(&out) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return out;
}

static void copy(char *to, size_t cap, const char *from, size_t len)
{
	len = len < cap - 1 ? len : cap - 1;
	memcpy(to, from, len);
	to[len] = 0;
}

void read_result(answer *a, sb_result *r)
{
	const sb_error *failure = sb_result_failure(r);
	sb_node node = { .size = sizeof node };
	size_t len;
	const char *text = sb_result_output(r, SB_STDOUT, &len);

	copy(a->out, sizeof a->out, text, len);
	a->out_len = len;
	text = sb_result_output(r, SB_STDERR, &len);
	copy(a->err, sizeof a->err, text, len);
	copy(a->value, sizeof a->value, sb_result_value(r), strlen(sb_result_value(r)));
	copy(a->exception, sizeof a->exception, sb_result_exception(r),
	     strlen(sb_result_exception(r)));
	a->outcome = sb_result_outcome(r);
	a->code = sb_result_code(r);
	a->restarted = sb_result_restarted(r);
	a->unfinished = sb_result_unfinished(r);
	a->truncated = sb_result_truncated(r);
	a->error = sb_result_error(r);
	a->cause = failure ? failure->cause : 0;
	copy(a->message, sizeof a->message, failure ? failure->message : "",
	     failure ? strlen(failure->message) : 0);
	a->files = sb_tree_count(sb_result_files(r));
	if (a->files && sb_tree_at(sb_result_files(r), 0, &node) == 0)
		copy(a->first, sizeof a->first, node.path, strlen(node.path));
	sb_usage usage = { .size = sizeof usage };

	sb_result_usage(r, &usage);
	a->cpu_us = usage.user_us + usage.system_us;
	a->wall_us = usage.wall_us;
	assert_non_null(sb_result_plan(r));
	assert_non_null(sb_result_json(r));
	assert_string_equal(sb_result_backend(r), w.backend);
	sb_result_free(r);
}

answer eval_in(sb_session *in, sb_command command, const char *code, const sb_wait *wait)
{
	sb_result *result = NULL;
	answer a = { 0 };

	command.size = sizeof command;
	if (!command.code) {
		command.code = code;
		command.code_len = strlen(code);
	}
	memset(&err, 0, sizeof err);
	a.rc = sb_session_eval(in, &command, wait, &result, &err);
	if (a.rc == 0)
		read_result(&a, result);
	else
		assert_null(result);
	return a;
}

answer eval(const char *code)
{
	return eval_in(session, (sb_command){ 0 }, code, NULL);
}

void ok(answer a, const char *out)
{
	if (a.rc < 0)
		fail_msg("%s: %s", err.where, err.message);
	assert_string_equal(a.message, "");
	assert_string_equal(a.out, out);
	assert_int_equal(a.outcome, SB_OUTCOME_EXITED);
	assert_int_equal(a.code, 0);
}

void killed(answer a, int cause)
{
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.error, SB_ERR_SESSION_KILLED);
	assert_int_equal(a.cause, cause);
	assert_int_equal(sb_session_state(session), SB_STATE_KILLED);
	assert_int_equal(eval("1").rc, SB_ERR_SESSION_KILLED);
}

bool on_wasm(void)
{
	return !strcmp(w.backend, "wasm");
}

static void *other_main(void *arg)
{
	other *o = arg;

	o->got = (answer){ 0 };
	sb_result *result = NULL;
	sb_error mine;

	o->command.size = sizeof o->command;
	o->command.code = o->code;
	o->command.code_len = strlen(o->code);
	o->got.rc = sb_session_eval(o->session, &o->command, NULL, &result, &mine);
	if (o->got.rc == 0)
		read_result(&o->got, result);
	return NULL;
}

void start(other *o)
{
	if (!o->session)
		o->session = session;
	assert_int_equal(pthread_create(&o->thread, NULL, other_main, o), 0);
}

void join(other *o)
{
	assert_int_equal(pthread_join(o->thread, NULL), 0);
}

void await_state(int state)
{
	const struct timespec tick = { 0, 2000000 };
	uint64_t late = now_ms() + 30000;

	while (sb_session_state(session) != state && now_ms() < late)
		nanosleep(&tick, NULL);
	assert_int_equal(sb_session_state(session), state);
}

/* What was just started is interrupted: once, whatever it has come to. */
void interrupt_after(unsigned us)
{
	const struct timespec tick = { 0, us * 1000l };

	await_state(SB_STATE_BUSY);
	nanosleep(&tick, NULL);
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool is_built(const char *pack)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/wasm/%s/manifest", w.helper_dir ? w.helper_dir : ".", pack);
	return access(path, R_OK) == 0;
}

int evals_given(int argc, char **argv)
{
	if (argc < 2)
		return fprintf(stderr, "usage: %s BACKEND [DIRECTORY [TEST]]\n", argv[0]), 2;
	w.backend = argv[1];
	w.is_fake = !strcmp(w.backend, "fake");
	w.helper_dir = argc > 2 ? argv[2] : NULL;
	if (argc > 3)
		cmocka_set_test_filter(argv[3]);
	if (on_wasm() && !is_built(argc > 3 ? "lua" : "python"))
		return fputs("the languages on board are not built: make wasm\n", stderr), 77;
	return 0;
}
