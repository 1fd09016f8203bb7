/* SPDX-License-Identifier: MIT */
/* Who is asked, about what, and what counts as a yes; which commands pass; what the audit hears. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "../../src/session/session.h"
#include "../fake/fake.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

typedef struct asked {
	int calls, answer;
	char why[300];
	sb_approval *approval;
	pthread_t thread;
	bool mutate;
	uint32_t door;               /* 0: RUN */
} asked;

static int approve(void *user, const sb_request *request, const char *why, sb_approval *approval)
{
	asked *a = user;

	a->calls++;
	snprintf(a->why, sizeof a->why, "%s", why);
	assert_int_equal(request->size, sizeof *request);
	assert_int_equal(request->door, a->door ? a->door : (uint32_t)SB_DOOR_RUN);
	assert_non_null(request->command);
	if (a->mutate) {
		char **argv = (char **)(intptr_t)request->command->argv;

		argv[0][0] = 'X';
		argv[1] = NULL;
		((sb_network *)(intptr_t)request->spec->network)->mode = SB_NET_HOST;
	}
	__atomic_store_n(&a->approval, approval, __ATOMIC_RELEASE);
	return a->answer;
}

static sb_sandbox *make(sb_sandbox_options *o, asked *a)
{
	const sb_backend *const backends[] = { &fake_backend, NULL };
	const char *const order[] = { "fake", NULL };
	sb_sandbox *sandbox = NULL;
	sb_error err = { 0 };

	fake_reset();
	o->size = sizeof *o;
	o->backends = backends;
	o->order = order;
	if (a) {
		o->approve = approve;
		o->approve_user = a;
	}
	if (sb_sandbox_new(o, NULL, &sandbox, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return sandbox;
}

static int run_command(sb_sandbox *sandbox, const sb_spec *spec, const sb_command *c, sb_error *err)
{
	sb_result *result = NULL;
	int code = sb_run(sandbox, spec, c, NULL, &result, err);

	sb_result_free(result);
	return code;
}

static int run(sb_sandbox *sandbox, const char *const *argv, const char *cwd, sb_error *err)
{
	const sb_command c = { .size = sizeof c, .argv = argv, .cwd = cwd };
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = SB_WORKSPACE_NONE };

	return run_command(sandbox, &spec, &c, err);
}

static int run_under(sb_sandbox *sandbox, const sb_spec *spec, const char *const *argv, sb_error *err)
{
	const sb_command c = { .size = sizeof c, .argv = argv };

	return run_command(sandbox, spec, &c, err);
}

/* One predicate, one command; returns how often the approver was asked (it says yes). */
static int times(sb_predicate p, const char *const *argv, const char *cwd)
{
	asked a = { .answer = SB_ALLOW };
	const sb_predicate *const list[] = { &p, NULL };
	sb_sandbox_options o = { .predicates = list };
	sb_error err;

	p.size = sizeof p;
	sb_sandbox *sandbox = make(&o, &a);

	run(sandbox, argv, cwd, &err);
	sb_sandbox_free(sandbox);
	return a.calls;
}

/* ---- predicates ------------------------------------------------------------------------------ */

static void command_globs(void **state)
{
	const sb_predicate rm = { .what = SB_PREDICATE_COMMAND, .args = LIST("rm", "dd*") };

	(void)state;
	assert_int_equal(times(rm, LIST("rm", "x"), NULL), 1);
	assert_int_equal(times(rm, LIST("/bin/rm"), NULL), 1);
	assert_int_equal(times(rm, LIST("dd_rescue"), NULL), 1);
	assert_int_equal(times(rm, LIST("sh", "-c", "rm x"), NULL), 0);
	assert_int_equal(times(rm, LIST("rmdir"), NULL), 0);
}

static void network_and_terminal(void **state)
{
	const sb_predicate net = { .what = SB_PREDICATE_NETWORK };
	const sb_predicate tty = { .what = SB_PREDICATE_INTERACTIVE };

	(void)state;
	assert_int_equal(times(net, LIST("true"), NULL), 1); /* deny_all is a policy */
	assert_int_equal(times(tty, LIST("true"), NULL), 0);
}

static void cwd_outside(void **state)
{
	char dir[] = "/tmp/gates.XXXXXX", inside[64], link[64], behind[80], dots[80];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(inside, sizeof inside, "%s/not/there", dir);
	snprintf(link, sizeof link, "%s/link", dir);
	snprintf(behind, sizeof behind, "%s/link/x", dir);
	snprintf(dots, sizeof dots, "%s/nope/../../etc", dir);
	assert_int_equal(symlink("/etc", link), 0);
	const sb_predicate out = { .what = SB_PREDICATE_CWD_OUTSIDE, .args = LIST(dir) };

	assert_int_equal(times(out, LIST("true"), NULL), 0);
	assert_int_equal(times(out, LIST("true"), "relative"), 0);
	assert_int_equal(times(out, LIST("true"), dir), 0);
	assert_int_equal(times(out, LIST("true"), inside), 0);
	assert_int_equal(times(out, LIST("true"), "/etc"), 1);
	assert_int_equal(times(out, LIST("true"), link), 1);
	assert_int_equal(times(out, LIST("true"), behind), 1);
	assert_int_equal(times(out, LIST("true"), dots), 1);
	unlink(link);
	rmdir(dir);
}

static int custom(void *user, const sb_request *request, char *reason, size_t cap)
{
	(void)request;
	snprintf(reason, cap, "because");
	return *(int *)user;
}

static void custom_and_none(void **state)
{
	int yes = 1, no = 0, broken = -1;
	asked a = { .answer = SB_ALLOW };
	const sb_predicate none = { .size = sizeof none, .what = SB_PREDICATE_NONE };
	const sb_predicate unset = { .size = sizeof unset, .what = SB_PREDICATE_CUSTOM };
	sb_predicate p = { .what = SB_PREDICATE_CUSTOM, .match = custom, .user = &yes };
	sb_error err;

	(void)state;
	assert_int_equal(times(p, LIST("true"), NULL), 1);
	p.user = &broken;
	assert_int_equal(times(p, LIST("true"), NULL), 1);
	p.user = &no;
	assert_int_equal(times(p, LIST("true"), NULL), 0);
	for (int i = 0; i < 2; i++) {
		const sb_predicate *const list[] = { i ? &unset : &none, NULL };
		sb_sandbox_options o = { .predicates = list };
		sb_sandbox *sandbox = make(&o, &a);

		assert_int_equal(run(sandbox, LIST("true"), NULL, &err), SB_ERR_POLICY_DENIED);
		sb_sandbox_free(sandbox);
	}
	assert_int_equal(a.calls, 0);
}

static void shell_segments(void **state)
{
	static const struct {
		const char *line;
		int allowed;
	} rows[] = {
		{ "git status", 1 },
		{ "git status && go test ./...; git log --oneline | git x", 1 },
		{ "git   'a b'  \"c d\"", 1 },
		{ "  git log\n git diff  ", 1 },
		{ "g\"i\"t log", 1 },
		{ "git log & git diff", 1 },
		{ "git log #now", 0 },
		{ "git log a#b", 1 },
		{ "rm x", 0 },
		{ "git log; rm x", 0 },
		{ "git log && rm x", 0 },
		{ "git log | rm x", 0 },
		{ "git log\nrm x", 0 },
		{ "git $(rm x)", 0 },
		{ "git `rm x`", 0 },
		{ "git \"$(rm x)\"", 0 },
		{ "git \"`rm x`\"", 0 },
		{ "git '$(rm x)'", 1 },
		{ "git log > /etc/passwd", 0 },
		{ "git log <(rm x)", 0 },
		{ "(git log)", 0 },
		{ "{ git log; }", 0 },
		{ "{git,log}", 0 },
		{ "! git log", 0 },
		{ "LD_PRELOAD=x git log", 0 },
		{ "git a=b", 1 },
		{ "/tmp/evil/go x", 0 },
		{ "git 'unclosed", 0 },
		{ "git \"unclosed", 0 },
		{ "git \\; log", 1 },
		{ "git \\", 0 },
		{ "git log\\\nrm", 0 },
		{ "", 0 },
		{ "  ;; ", 0 },
		{ "gitx log", 0 },
		{ "'' git log", 0 },
		{ "go", 0 },
		{ "make", 1 },
	};
	const char *const *globs = LIST("git *", "go *", "make");

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++)
		if (shell_allowed(rows[i].line, globs) != rows[i].allowed)
			fail_msg("\"%s\": wanted %d", rows[i].line, rows[i].allowed);
	assert_int_equal(shell_allowed("git log", NULL), 0);
}

static void shell_calls(void **state)
{
	const sb_predicate p = { .what = SB_PREDICATE_SHELL_SEGMENTS, .args = LIST("git *") };

	(void)state;
	assert_int_equal(times(p, LIST("sh", "-c", "git log"), NULL), 0);
	assert_int_equal(times(p, LIST("/bin/bash", "-lc", "git log"), NULL), 0);
	assert_int_equal(times(p, LIST("sh", "-c", "rm x"), NULL), 1);
	assert_int_equal(times(p, LIST("bash", "--rcfile", "git x", "-c", "evil"), NULL), 1);
	assert_int_equal(times(p, LIST("bash", "-cx", "git x"), NULL), 1);
	assert_int_equal(times(p, LIST("sh", "script.sh"), NULL), 1);
	assert_int_equal(times(p, LIST("sh"), NULL), 1);
	assert_int_equal(times(p, LIST("python3", "-c", "x"), NULL), 0);
}

/* ---- answers ---------------------------------------------------------------------------------- */

static int with_answer(asked *a, uint64_t approve_ms, sb_error *err)
{
	const sb_predicate first = { .size = sizeof first, .what = SB_PREDICATE_COMMAND,
				     .args = LIST("tru*") };
	const sb_predicate second = { .size = sizeof second, .what = SB_PREDICATE_NETWORK };
	const sb_predicate *const list[] = { &first, &second, NULL };
	sb_sandbox_options o = { .predicates = list, .approve_ms = approve_ms };
	sb_sandbox *sandbox = make(&o, a);
	int code = run(sandbox, LIST("true", "arg"), NULL, err);

	sb_sandbox_free(sandbox);
	return code;
}

static void only_yes_is_yes(void **state)
{
	static const int answers[] = { SB_DENY, -1, SB_ERR_IO, 7 };
	sb_error err = { 0 };
	asked a = { .answer = SB_ALLOW };

	(void)state;
	assert_int_equal(with_answer(&a, 0, &err), 0);
	assert_int_equal(a.calls, 1); /* the first that matches asks, once */
	assert_non_null(strstr(a.why, "tru*"));
	for (size_t i = 0; i < BASE_ARRAY_LEN(answers); i++) {
		a = (asked){ .answer = answers[i] };
		assert_int_equal(with_answer(&a, 0, &err), SB_ERR_POLICY_DENIED);
		assert_int_equal(a.calls, 1);
		assert_non_null(strstr(err.message, "tru*"));
		assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 0);
		assert_int_equal(fake_seen.called[FAKE_AT_PLAN], 0);
	}
	assert_int_equal(with_answer(NULL, 0, &err), SB_ERR_POLICY_DENIED);
}

/* A process that was started is read from, written to and ended without another question. */
static void a_start_is_asked_about_once(void **state)
{
	const sb_predicate commands = { .size = sizeof commands, .what = SB_PREDICATE_COMMAND,
					.args = LIST("tru*") };
	const sb_predicate *const list[] = { &commands, NULL };
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = SB_WORKSPACE_NONE };
	const sb_command command = { .size = sizeof command, .argv = LIST("true"), .input_kind = SB_INPUT_OPEN };
	sb_sandbox_options o = { .predicates = list };
	asked a = { .answer = SB_ALLOW, .door = SB_DOOR_SPAWN };
	sb_sandbox *sandbox = make(&o, &a);
	sb_session *session = NULL;
	sb_error err = { 0 };

	(void)state;
	assert_int_equal(sb_session_open(sandbox, &spec, NULL, NULL, &session, &err), 0);
	assert_int_equal(a.calls, 0);
	for (int started = 1; started <= 2; started++) {
		sb_process *p = NULL;
		sb_exit exit = { .size = sizeof exit };
		size_t written;

		assert_int_equal(sb_session_spawn(session, &command, NULL, &p, &err), 0);
		assert_int_equal(a.calls, started);
		sb_process_write(p, "x", 1, NULL, &written, &err);
		sb_process_resize(p, 10, 10, NULL, &err);
		sb_process_close_input(p, NULL, &err);
		assert_int_equal(sb_process_terminate(p, NULL, &err), 0);
		assert_int_equal(sb_process_wait(p, NULL, &exit, &err), 0);
		assert_int_equal(sb_process_close(p, NULL, &err), 0);
		sb_process_free(p);
		assert_int_equal(a.calls, started);
	}
	sb_session_free(session);
	sb_sandbox_free(sandbox);
}

static char seen_argv[2][32];

static void look(const sb_box_request *box, const sb_guest_request *guest)
{
	if (box)
		assert_int_equal(box->network->mode, SB_NET_DENY_ALL);
	for (int i = 0; guest && i < 2; i++)
		snprintf(seen_argv[i], sizeof seen_argv[i], "%s", guest->argv[i] ? guest->argv[i] : "");
}

static void callbacks_change_nothing(void **state)
{
	const sb_predicate p = { .size = sizeof p, .what = SB_PREDICATE_COMMAND, .args = LIST("*") };
	const sb_predicate *const list[] = { &p, NULL };
	sb_sandbox_options o = { .predicates = list };
	asked a = { .answer = SB_ALLOW, .mutate = true };
	sb_sandbox *sandbox = make(&o, &a);
	const fake_script script = { .size = sizeof script, .backend = "fake", .seen = look };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = SB_WORKSPACE_NONE,
			       .other_options = options };
	const sb_command c = { .size = sizeof c, .argv = LIST("/bin/true", "arg") };
	sb_result *result = NULL;

	(void)state;
	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &result, NULL), 0);
	assert_string_equal(seen_argv[0], "/bin/true");
	assert_string_equal(seen_argv[1], "arg");
	assert_string_equal(c.argv[0], "/bin/true");
	sb_result_free(result);
	sb_sandbox_free(sandbox);
}

static void *answer_later(void *arg)
{
	asked *a = arg;

	while (!__atomic_load_n(&a->approval, __ATOMIC_ACQUIRE))
		usleep(1000);
	sb_approval_answer(a->approval, SB_ALLOW);
	return NULL;
}

static void answers_from_elsewhere(void **state)
{
	asked a = { .answer = SB_LATER };
	sb_error err = { 0 };
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, answer_later, &a);
	assert_int_equal(with_answer(&a, 0, &err), 0);
	pthread_join(thread, NULL);
	/* none within the time is a no; the answer that comes later finds its object still there */
	a = (asked){ .answer = SB_LATER };
	assert_int_equal(with_answer(&a, 30, &err), SB_ERR_POLICY_DENIED);
	sb_approval_answer(a.approval, SB_ALLOW);
}

/* ---- allowed commands --------------------------------------------------------------------------- */

static void allowed(void **state)
{
	const char *const none[] = { NULL };
	static const struct {
		const char *name;
		int ok;
	} rows[] = { { "echo", 1 }, { "/usr/bin/echo", 0 }, { "echo2", 0 }, { "ls", 1 } };
	sb_sandbox_options o = { .allowed_commands = LIST("echo", "ls") };
	sb_sandbox *sandbox = make(&o, NULL);
	sb_error err;

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		int before = fake_seen.called[FAKE_AT_CREATE];
		int code = run(sandbox, LIST(rows[i].name), NULL, &err);

		assert_int_equal(code, rows[i].ok ? 0 : SB_ERR_POLICY_DENIED);
		assert_int_equal(fake_seen.called[FAKE_AT_CREATE] - before, rows[i].ok);
	}
	const sb_command py = { .size = sizeof py, .language = "python", .code = "", .code_len = 0 };
	sb_result *result = NULL;

	assert_int_equal(sb_run(sandbox, NULL, &py, NULL, &result, &err), SB_ERR_POLICY_DENIED);
	sb_sandbox_free(sandbox);
	/* what a module is called is the caller's choice: the file is looked at, too */
	const sb_wasm_options other = { .size = sizeof other, .module = "/tmp/other.wasm" },
			      known = { .size = sizeof known, .module = "/opt/known.wasm" };
	const sb_spec with_other = { .size = sizeof with_other, .wasm_options = &other },
		      with_known = { .size = sizeof with_known, .wasm_options = &known };

	o = (sb_sandbox_options){ .allowed_commands = LIST("echo", "/opt/known.wasm") };
	sandbox = make(&o, NULL);
	assert_int_equal(run_under(sandbox, &with_other, LIST("echo"), &err), SB_ERR_POLICY_DENIED);
	assert_non_null(strstr(err.message, "/tmp/other.wasm"));
	assert_int_not_equal(run_under(sandbox, &with_known, LIST("echo"), &err), SB_ERR_POLICY_DENIED);
	assert_int_equal(run_under(sandbox, &with_known, LIST("ls"), &err), SB_ERR_POLICY_DENIED);
	sb_sandbox_free(sandbox);
	o.operator_spec = &with_other; /* the operator's own */
	sandbox = make(&o, NULL);
	assert_int_not_equal(run(sandbox, LIST("echo"), NULL, &err), SB_ERR_POLICY_DENIED);
	sb_sandbox_free(sandbox);
	o = (sb_sandbox_options){ .allowed_commands = none };
	sandbox = make(&o, NULL);
	assert_int_equal(run(sandbox, LIST("echo"), NULL, &err), SB_ERR_POLICY_DENIED);
	/* explaining asks nobody, and tells it in the plan */
	const sb_command c = { .size = sizeof c, .argv = LIST("echo") };
	sb_plan *plan = NULL;

	assert_int_equal(sb_explain(sandbox, NULL, &c, &plan, &err), 0);
	assert_int_equal(sb_plan_failure(plan)->code, SB_ERR_POLICY_DENIED);
	sb_plan_free(plan);
	sb_sandbox_free(sandbox);
}

/* ---- audit -------------------------------------------------------------------------------------- */

typedef struct heard {
	uint32_t what[32];
	int count, refuse_from;
	char last[4096];
} heard;

static int hear(void *user, const sb_audit *audit)
{
	heard *h = user;

	assert_true(h->count < 32);
	h->what[h->count++] = audit->what;
	snprintf(h->last, sizeof h->last, "%s", audit->json);
	assert_int_equal(audit->json[0], '{');
	assert_null(strchr(audit->json, '\n'));
	return h->refuse_from && h->count >= h->refuse_from;
}

static void audited(void **state)
{
	heard h = { .count = 0 };
	char line[8192];
	int fds[2];
	sb_error err;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	sb_sandbox_options o = { .audit = hear, .audit_user = &h, .audit_fd = fds[1] };
	sb_sandbox *sandbox = make(&o, NULL);

	assert_int_equal(run(sandbox, LIST("echo"), NULL, &err), 0);
	assert_int_equal(h.count, 3);
	assert_int_equal(h.what[0], SB_AUDIT_REQUEST);
	assert_int_equal(h.what[1], SB_AUDIT_START);
	assert_int_equal(h.what[2], SB_AUDIT_EXIT);
	ssize_t n = read(fds[0], line, sizeof line);

	assert_true(n > 0 && line[n - 1] == '\n');
	assert_non_null(memmem(line, (size_t)n, "\"schema\":1", 10));
	sb_sandbox_free(sandbox);
	/* a record that is not kept: nothing runs */
	h = (heard){ .refuse_from = 1 };
	o = (sb_sandbox_options){ .audit = hear, .audit_user = &h,
				  .flags = SB_SANDBOX_AUDIT_REQUIRED };
	sandbox = make(&o, NULL);
	assert_int_equal(run(sandbox, LIST("echo"), NULL, &err), SB_ERR_POLICY_DENIED);
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 0);
	sb_sandbox_free(sandbox);
	close(fds[0]);
	/* nor is a reader waited for that has gone */
	h = (heard){ .count = 0 };
	o = (sb_sandbox_options){ .audit_fd = fds[1] };
	sandbox = make(&o, NULL);
	assert_int_equal(run(sandbox, LIST("echo"), NULL, &err), 0);
	sb_sandbox_free(sandbox);
	close(fds[1]);
}

static void full_pipe_is_not_waited_for(void **state)
{
	static char junk[1 << 20];
	int fds[2], flags;
	sb_error err;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(fds[1], junk, sizeof junk) > 0)
		;
	flags = fcntl(fds[1], F_GETFL);
	assert_int_equal(fcntl(fds[1], F_SETFL, flags & ~O_NONBLOCK), 0);
	sb_sandbox_options o = { .audit_fd = fds[1] };
	sb_sandbox *sandbox = make(&o, NULL);

	assert_int_equal(run(sandbox, LIST("echo"), NULL, &err), 0);
	sb_sandbox_free(sandbox);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_globs),   cmocka_unit_test(network_and_terminal),
		cmocka_unit_test(cwd_outside),	   cmocka_unit_test(custom_and_none),
		cmocka_unit_test(shell_segments),  cmocka_unit_test(shell_calls),
		cmocka_unit_test(only_yes_is_yes), cmocka_unit_test(callbacks_change_nothing),
		cmocka_unit_test(answers_from_elsewhere), cmocka_unit_test(a_start_is_asked_about_once),
		cmocka_unit_test(allowed),	   cmocka_unit_test(audited),
		cmocka_unit_test(full_pipe_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
