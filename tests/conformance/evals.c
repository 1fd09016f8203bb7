/* SPDX-License-Identifier: MIT */
/*
 * evals.c - one suite over every backend that can evaluate: what an interpreter that stays
 * promises.
 *
 * usage: evals BACKEND [DIRECTORY OF sb-launch [TEST]]
 *
 * A real backend runs Python (drivers of other languages have tests of their own without walls, and
 * a few here); the scripted one plays a driver, good and bad.  Each test ends with as many
 * descriptors and children as it began with.
 */
#include "sessions.h"
#include "../unit/folder.h"

#include <dirent.h>
#include <sys/resource.h>

sb_error err;
world w;

typedef struct answer { /* of one evaluation, copied */
	int rc, outcome, code, error, cause, restarted, unfinished, truncated;
	char value[200], exception[200], where[48], message[448];
	char out[2000], err[2000];
	size_t out_len;
	size_t files;
	char first[64];
} answer;

static sb_session_options how; /* of the next session */
static sb_limits limits;
static const fake_step *script;
static fake_script fake = { .size = sizeof fake, .backend = "fake" };
static sb_session *session;

/* ---- a world ------------------------------------------------------------------------------------
 */

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

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int begin(void **state)
{
	static const char *order[2];
	static const sb_backend *const fakes[] = { &fake_backend, NULL };
	static const sb_pack *const packs[] = { &fake_pack, &mute_pack, NULL };
	sb_sandbox_options o = { .size = sizeof o,
				 .backends = w.is_fake ? fakes : NULL,
				 .packs = w.is_fake ? packs : NULL,
				 .helper_dir = w.helper_dir,
				 .order = order };

	(void)state;
	w.descriptors = descriptors();
	order[0] = w.backend;
	how = (sb_session_options){ .size = sizeof how,
				    .language = w.is_fake ? "scripted" : "python" };
	limits = (sb_limits){ .size = sizeof limits, .wall_ms = 60000 };
	script = NULL;
	session = NULL;
	if (sb_sandbox_new(&o, NULL, &w.sandbox, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sb_session_free(session);
	sb_sandbox_free(w.sandbox);
	if (descriptors() != w.descriptors)
		fail_msg("%d descriptors were left open", descriptors() - w.descriptors);
	errno = 0;
	assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	assert_int_equal(fake_seen.broken, 0);
	assert_int_equal(fake_seen.boxes + fake_seen.guests, 0);
	return 0;
}

static int try_open(sb_session **out)
{
	static const sb_other_options *others[2];
	sb_spec spec = { .size = sizeof spec, .limits = &limits, .other_options = others };

	fake.steps = script;
	others[0] = w.is_fake ? FAKE_OPTIONS(&fake) : NULL;
	memset(&err, 0, sizeof err);
	return sb_session_open(w.sandbox, &spec, &how, NULL, out, &err);
}

static sb_session *open_one(void)
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

static void read_result(answer *a, sb_result *r)
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
	assert_non_null(sb_result_plan(r));
	assert_non_null(sb_result_json(r));
	assert_string_equal(sb_result_backend(r), w.backend);
	sb_result_free(r);
}

static answer eval_in(sb_session *in, sb_command command, const char *code, const sb_wait *wait)
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

static answer eval(const char *code)
{
	return eval_in(session, (sb_command){ 0 }, code, NULL);
}

static void ok(answer a, const char *out)
{
	if (a.rc < 0)
		fail_msg("%s: %s", err.where, err.message);
	assert_string_equal(a.message, "");
	assert_string_equal(a.out, out);
	assert_int_equal(a.outcome, SB_OUTCOME_EXITED);
	assert_int_equal(a.code, 0);
}

static void killed(answer a, int cause)
{
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.error, SB_ERR_SESSION_KILLED);
	assert_int_equal(a.cause, cause);
	assert_int_equal(sb_session_state(session), SB_STATE_KILLED);
	assert_int_equal(eval("1").rc, SB_ERR_SESSION_KILLED);
}

static bool on_wasm(void)
{
	return !strcmp(w.backend, "wasm");
}

/* What takes another process, a thread or a signal of the code's own. */
#define NEEDS_PROCESSES()                                                                          \
	do {                                                                                       \
		if (on_wasm())                                                                     \
			skip();                                                                    \
		NEEDS_REAL();                                                                      \
	} while (0)
#define NEEDS_REAL()                                                                               \
	do {                                                                                       \
		(void)state;                                                                       \
		if (w.is_fake)                                                                     \
			skip();                                                                    \
		session = open_one();                                                              \
	} while (0)
/* ---- another thread
 * -------------------------------------------------------------------------------- */

typedef struct other {
	pthread_t thread;
	sb_session *session;
	sb_command command;
	const char *code;
	answer got;
} other;

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

static void start(other *o)
{
	if (!o->session)
		o->session = session;
	assert_int_equal(pthread_create(&o->thread, NULL, other_main, o), 0);
}

static void join(other *o)
{
	assert_int_equal(pthread_join(o->thread, NULL), 0);
}

static void await_state(int state)
{
	const struct timespec tick = { 0, 2000000 };
	uint64_t late = now_ms() + 30000;

	while (sb_session_state(session) != state && now_ms() < late)
		nanosleep(&tick, NULL);
	assert_int_equal(sb_session_state(session), state);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- a real interpreter
 * -------------------------------------------------------------------------------- */

static void state_persists(void **state)
{
	NEEDS_REAL();
	assert_int_equal(sb_session_state(session), SB_STATE_IDLE);
	ok(eval("x = 21\ndef f(a):\n    return a * 2\n"), "");
	answer a = eval("import sys\nprint('to err', file=sys.stderr)\nf(x)");

	ok(a, "42\n");
	assert_string_equal(a.value, "42");
	assert_string_equal(a.err, "to err\n");
}

static void exception_survives(void **state)
{
	NEEDS_REAL();
	answer a = eval("print('before')\n1/0");

	assert_int_equal(a.rc, 0);
	assert_int_equal(a.outcome, SB_OUTCOME_EXITED);
	assert_int_equal(a.code, 1);
	assert_int_equal(a.error, 0);
	assert_string_equal(a.out, "before\n");
	assert_string_equal(a.exception, "ZeroDivisionError: division by zero");
	assert_non_null(
		strstr(a.err, "Traceback (most recent call last):\n  File \"<stdin>\", line 2"));
	ok(eval("print('ok')"), "ok\n");
}

static void time_kills(void **state)
{
	limits.wall_ms = 2000;
	NEEDS_REAL();
	answer a = eval("print('partial', flush=True)\nwhile True: pass");

	assert_int_equal(a.outcome, SB_OUTCOME_TIMED_OUT);
	assert_string_equal(a.out, "partial\n");
	killed(a, SB_ERR_TIMEOUT);
}

/* From the question on they are ignored: the first one comes when it is answered. */
static void ignored_interrupts(void **state)
{
	other o = { .code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
			    "a = input()\nwhile True: pass",
		    .command = { .input_kind = SB_INPUT_OPEN } };

	limits.wall_ms = 3000;
	NEEDS_REAL();
	start(&o);
	await_state(SB_STATE_INPUT);
	assert_int_equal(sb_session_answer(session, "x\n", 2, NULL, &err), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
	join(&o);
	assert_int_equal(o.got.outcome, SB_OUTCOME_TIMED_OUT);
	killed(o.got, SB_ERR_TIMEOUT);
}

static void restart(void **state)
{
	limits.wall_ms = 2000;
	how.flags = SB_SESSION_AUTO_RESTART;
	NEEDS_REAL();
	ok(eval(strcmp(w.backend, "linux") ? "x = 1" : "x = 1\nopen('kept', 'w').close()"), "");
	answer a = eval("while True: pass");

	assert_int_equal(a.outcome, SB_OUTCOME_TIMED_OUT);
	assert_int_equal(a.error, SB_ERR_TIMEOUT);
	assert_int_equal(sb_session_state(session), SB_STATE_IDLE);
	a = eval("try: x\nexcept NameError: print('gone')\n");
	ok(a, "gone\n");
	assert_int_equal(a.restarted, 1);
	a = eval("import os\nprint(os.path.exists('/work/kept'))");
	ok(a, "False\n");
	assert_int_equal(a.restarted, 0);
	/* an interpreter that leaves is replaced as well */
	a = eval("os._exit(0)");
	assert_int_equal(a.error, SB_ERR_PROCESS_CLOSED);
	a = eval("1");
	ok(a, "1\n");
	assert_int_equal(a.restarted, 1);
}

static void interpreter_exits(void **state)
{
	NEEDS_REAL();
	answer a = eval("print('last', flush=True)\nimport os\nos._exit(3)");

	assert_int_equal(a.outcome, SB_OUTCOME_EXITED);
	assert_int_equal(a.code, 3);
	assert_string_equal(a.out, "last\n");
	assert_int_equal(a.error, SB_ERR_SESSION_CLOSED);
	assert_int_equal(a.cause, SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_session_state(session), SB_STATE_CLOSED);
	assert_int_equal(eval("1").rc, SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_reset(session, NULL, &err), 0);
	ok(eval("2"), "2\n");
}

static void interpreter_dies_while_idle(void **state)
{
	NEEDS_PROCESSES();
	ok(eval("import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), "
		"os._exit(4))).start()"),
	   "");
	const struct timespec while_it_dies = { 0, 50000000 };
	uint64_t late = now_ms() + 30000;
	int rc;

	do {
		nanosleep(&while_it_dies, NULL);
		rc = eval("1").rc;
	} while (rc == 0 && now_ms() < late);
	assert_int_equal(rc, SB_ERR_SESSION_CLOSED);
}

static void killed_by_signal(void **state)
{
	NEEDS_PROCESSES();
	answer a = eval("import os\nos.kill(os.getpid(), 9)");

	assert_int_equal(a.outcome, SB_OUTCOME_SIGNALED);
	assert_int_equal(a.error, SB_ERR_SESSION_KILLED);
}

static void another_program(void **state)
{
	NEEDS_PROCESSES();
	answer a = eval("import os\nos.execvp('sleep', ['sleep', '1000'])");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	killed(a, SB_ERR_FORBIDDEN);
}

static void junk_on_all_descriptors(void **state)
{
	NEEDS_PROCESSES();
	ok(eval("import os\nfor f in range(3, 64):\n    try: _ = os.write(f, b'{}\\n' * 99)\n"
		"    except OSError: pass\n"),
	   "");
	ok(eval("print('ok')"), "ok\n");
	ok(eval("os.close(0)\nos.closerange(3, 64)"), "");
	ok(eval("print('ok')"), "ok\n");
	answer a = eval("for f in range(64, 1024):\n    try: os.write(f, b'D' * 99)\n    except "
			"OSError: pass\n");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	assert_non_null(strstr(a.message, "no frame"));
	killed(a, SB_ERR_FORBIDDEN);
}

static void markers_are_output(void **state)
{
	static const char mark[] = "D 00000000000000000000000000000000 00000001\n0";
	char code[200], want[200];

	NEEDS_REAL();
	snprintf(code, sizeof code, "import sys\nsys.stdout.write('''%s''')\nNone", mark);
	snprintf(want, sizeof want, "%s", mark);
	ok(eval(code), want);
	ok(eval("sys.stdin.read()"), "''\n");
	ok(eval("sys.stdout = None"), "");
	ok(eval("print('nowhere')"), "");
	ok(eval("sys.stdout = sys.__stdout__"), "");
	if (!on_wasm())
		ok(eval("_pid = os.fork() if (os := __import__('os')) else 0\nif _pid: _s = "
		"os.waitpid(_pid, 0)"),
	   "");
	ok(eval("print('one')"), "one\n");
}

static void late_output_is_kept(void **state)
{
	NEEDS_PROCESSES();
	ok(eval("import os, time\nif os.fork() == 0:\n    time.sleep(.1)\n    os.write(1, "
		"b'late\\n')\n    os._exit(0)\n"),
	   "");
	ok(eval("_ = os.wait()"), "late\n");
}

/* What was just started is interrupted till it ends. */
static void interrupt_until_over(void)
{
	await_state(SB_STATE_BUSY);
	while (sb_session_state(session) == SB_STATE_BUSY) {
		const struct timespec tick = { 0, 20000000 };

		assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
		nanosleep(&tick, NULL);
	}
}

static void interrupt_keeps_it(void **state)
{
	other o = { .code = "print('go', flush=True)\nwhile True: pass" };

	NEEDS_REAL();
	ok(eval("x = 5"), "");
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0); /* nothing runs */
	for (int i = 0; i < 3; i++) {
		start(&o);
		interrupt_until_over();
		join(&o);
		assert_int_equal(o.got.rc, 0);
		assert_string_equal(o.got.exception, "KeyboardInterrupt");
		assert_int_equal(o.got.error, 0);
	}
	ok(eval("print(x)"), "5\n");
}

static void input_by_answer(void **state)
{
	other o = { .code = "a = input('? ')\nb = input()\n(a, b)",
		    .command = { .input_kind = SB_INPUT_OPEN } };

	NEEDS_REAL();
	assert_int_equal(sb_session_answer(session, "x", 1, NULL, &err), SB_ERR_CONFLICT);
	start(&o);
	await_state(SB_STATE_INPUT);
	/* a second one is refused, and does not wait for ever */
	assert_int_equal(eval("1").rc, SB_ERR_CONFLICT);
	assert_non_null(strstr(err.message, "waiting for input"));
	assert_int_equal(sb_session_answer(session, "one", 3, NULL, &err), 0);
	/* refused until the second question is there */
	while (sb_session_answer(session, "two\n", 4, NULL, NULL) < 0)
		;
	join(&o);
	ok(o.got, "? ('one', 'two')\n");
	assert_string_equal(o.got.value, "('one', 'two')");
	/* the end of the input */
	o.code = "try: input()\nexcept EOFError: print('end')\n";
	start(&o);
	await_state(SB_STATE_INPUT);
	assert_int_equal(sb_session_answer(session, NULL, 0, NULL, &err), 0);
	join(&o);
	ok(o.got, "end\n");
}

static void interrupt_of_a_question(void **state)
{
	other o = { .code = "input('? ')", .command = { .input_kind = SB_INPUT_OPEN } };

	NEEDS_REAL();
	ok(eval("x = 1"), "");
	start(&o);
	await_state(SB_STATE_INPUT);
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
	join(&o);
	assert_string_equal(o.got.exception, "KeyboardInterrupt");
	ok(eval("print(x)"), "1\n");
}

static int64_t give_lines(void *user, void *buf, size_t cap)
{
	int *count = user;

	assert_true(cap > 10);
	return ++*count > 2 ? 0 : snprintf(buf, cap, "line %d\n", *count);
}

static void input_by_bytes_and_callback(void **state)
{
	int count = 0;

	NEEDS_REAL();
	ok(eval_in(session,
		   (sb_command){ .input_kind = SB_INPUT_BYTES, .input = "a\nb", .input_len = 3 },
		   "import sys\nsys.stdin.read()", NULL),
	   "'a\\nb'\n");
	ok(eval("sys.stdin.read()"), "''\n");
	ok(eval_in(session,
		   (sb_command){ .input_kind = SB_INPUT_CALLBACK,
				 .read_input = give_lines,
				 .user = &count },
		   "[input(), sys.stdin.read()]", NULL),
	   "['line 1', 'line 2\\n']\n");
	if (on_wasm())
		return; /* all of them can ask, or take bytes */
	how.language = "bash";
	sb_session_free(session);
	session = open_one();
	count = 0;
	ok(eval_in(session,
		   (sb_command){ .input_kind = SB_INPUT_CALLBACK,
				 .read_input = give_lines,
				 .user = &count },
		   "cat", NULL),
	   "line 1\nline 2\n");
	assert_int_equal(
		eval_in(session, (sb_command){ .input_kind = SB_INPUT_OPEN }, "cat", NULL).rc,
		SB_ERR_UNSUPPORTED);
}

static void unfinished_code(void **state)
{
	const sb_command partial = { .flags = SB_COMMAND_PARTIAL };

	NEEDS_REAL();
	answer a = eval_in(session, partial, "def f():\n    print('ran')", NULL);

	assert_int_equal(a.unfinished, 1);
	assert_string_equal(a.out, "");
	ok(eval_in(session, partial, "def f():\n    print('ran')\n", NULL), "");
	ok(eval_in(session, partial, "f()", NULL), "ran\n");
	a = eval("if True:");
	assert_int_equal(a.code, 1);
	assert_non_null(strstr(a.exception, "IndentationError"));
	ok(eval("class A:\n\n    x = 1\n\n    def f(self):\n\n        return self.x\n\nA().f()"),
	   "1\n");
}

static void large_source(void **state)
{
	size_t len = 10 << 20;

	limits.memory_bytes = (uint64_t)512 << 20;
	NEEDS_REAL();
	char *source = malloc(len + 8);

	assert_non_null(source);
	memset(source, '#', len);
	memcpy(source + len, "\n6 * 7", 7);
	ok(eval(source), "42\n");
	assert_int_equal(eval_in(session,
				 (sb_command){ .code = source, .code_len = (size_t)65 << 20 }, "",
				 NULL)
				 .rc,
			 SB_ERR_INVALID);
	ok(eval("1"), "1\n");
	free(source);
}

static void output_caps(void **state)
{
	limits.out_total_bytes = 1000;
	limits.out_mode = SB_OUT_TRUNCATE;
	NEEDS_REAL();
	answer a = eval("print('m' * 5000)");

	assert_int_equal(a.rc, 0);
	assert_int_equal(a.truncated, 1);
	assert_int_equal(a.out_len, 1000);
	ok(eval("print('next')"), "next\n");
	limits.out_mode = SB_OUT_STOP;
	sb_session_free(session);
	session = open_one();
	a = eval("print('m' * 5000)");
	assert_int_equal(a.outcome, SB_OUTCOME_BUDGET_EXCEEDED);
	assert_int_equal(a.out_len, 1000);
	killed(a, SB_ERR_OUTPUT_LIMIT);
}

static void memory_limit(void **state)
{
	limits.memory_bytes = (uint64_t)64 << 20;
	NEEDS_REAL();
	answer a = eval("x = 'm' * (200 << 20)");

	/* the kernel kills, or the allocation is refused and told */
	if (a.error) {
		assert_int_equal(a.error, SB_ERR_SESSION_KILLED);
		assert_int_equal(a.cause, SB_ERR_MEMORY_LIMIT);
	} else {
		assert_string_equal(a.exception, "MemoryError");
	}
}

static void files_of_each(void **state)
{
	const sb_file in = { .size = sizeof in, .path = "given.txt", .data = "given", .len = 5 };

	if (strcmp(w.backend, "linux") && !on_wasm()) {
		skip(); /* no /out */
		return;
	}
	NEEDS_REAL();
	answer a =
		eval("open('/out/one', 'w').write('1')\nopen('/work/stays', 'w').write('2')\nNone");

	assert_int_equal(a.files, 1);
	assert_string_equal(a.first, "one");
	a = eval(on_wasm() ? "import os\nos.makedirs('/out/sub/deep')\nopen('/out/sub/deep/two', "
			     "'w').write('2')\nos.symlink('../x', '/out/link')\nNone"
			   : "import os\nos.makedirs('/out/sub/deep')\nopen('/out/sub/deep/two', "
			     "'w').write('2')\n"
			     "os.symlink('/etc/passwd', '/out/link')\nos.chmod('/out/sub', 0)\nNone");
	assert_int_equal(a.files, 3);
	ok(eval("os.listdir('/out')"), "[]\n");
	ok(eval("print(open('/work/stays').read())"), "2\n");
	ok(eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &in, NULL } },
		   "print(open('/in/given.txt').read())", NULL),
	   "given\n");
	/* over what is there, and what is beside it stays */
	const sb_file again = { .size = sizeof again, .path = "given.txt", .data = "new", .len = 3 };
	const sb_file beside = { .size = sizeof beside, .path = "sub/other.txt", .data = "x", .len = 1 };

	ok(eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &again, NULL } },
		   "print(open('/in/given.txt').read())", NULL),
	   "new\n");
	ok(eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &beside, NULL } },
		   "print(open('/in/given.txt').read(), open('/in/sub/other.txt').read())", NULL),
	   "new x\n");
	a = eval("open('/in/given.txt', 'w')");
	assert_non_null(strstr(a.exception, "Error"));
}

/* Its number is known to the code, which may lie, and ends nothing but itself. */
static void junk_on_the_control_stream(void **state)
{
	if (!on_wasm()) {
		skip();
		return;
	}
	NEEDS_REAL();
	answer a = eval("import os\nos.write(4, b'D' * 99)");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	killed(a, SB_ERR_FORBIDDEN);
}

/* ---- files from outside ------------------------------------------------------------------------- */

static char place[64]; /* where the guest may write, and nobody else's files are */

/* Whatever has no files refuses them, and says so. */
static bool has_files(void)
{
	static char dir[] = "/tmp/evals-files.XXXXXX", work[] = "/work";

	if (w.is_fake || on_wasm()) /* but with an evaluation */
		return false;
	session = open_one();
	if (!strcmp(w.backend, "process")) {
		strcpy(dir + strlen(dir) - 6, "XXXXXX");
		assert_non_null(mkdtemp(dir));
		strcpy(place, dir);
	} else {
		strcpy(place, work);
	}
	return true;
}

static const char *at_place(const char *name)
{
	static char paths[4][300];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", place, name);
	return path;
}

static int put(const char *path, const char *text)
{
	return sb_session_put(session, path, text, strlen(text), NULL, &err);
}

static void has_file(const char *path, const char *name, const char *text)
{
	sb_node node = { .size = sizeof node };
	sb_tree *tree = NULL;

	if (sb_session_get(session, path, NULL, &tree, &err) < 0)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(sb_tree_find(tree, name, &node, &err), 0);
	assert_int_equal(node.len, strlen(text));
	assert_memory_equal(node.data, text, node.len);
	sb_tree_free(tree);
}

static void python_in_place(const char *code, const char *out)
{
	char whole[1200];

	snprintf(whole, sizeof whole, "import os\nos.chdir('%s')\n%s", place, code);
	ok(eval(whole), out);
}

static void files_in_and_out(void **state)
{
	sb_tree *tree = NULL;

	(void)state;
	if (!has_files())
		skip();
	assert_int_equal(put(at_place("deep/er/one"), "first"), 0);
	python_in_place("print(open('deep/er/one').read())", "first\n");
	assert_int_equal(put(at_place("deep/er/one"), "second"), 0); /* replaced */
	assert_int_equal(put(at_place("empty"), ""), 0);
	python_in_place("print(open('deep/er/one').read(), os.path.getsize('empty'), "
			"oct(os.stat('empty').st_mode), os.stat('empty').st_uid == os.getuid())\n"
			"open('deep/two', 'w').write('2'); os.symlink('/etc/passwd', 'deep/link'); "
			"os.mkfifo('deep/pipe')",
			"second 0 0o100644 True\n");
	has_file(at_place("deep/er/one"), "one", "second");
	has_file(at_place("deep"), "er/one", "second");
	has_file(at_place("deep"), "two", "2");
	assert_int_equal(sb_session_get(session, at_place("deep"), NULL, &tree, &err), 0);
	assert_int_equal(sb_tree_find(tree, "link", &(sb_node){ .size = sizeof(sb_node) }, NULL),
			 SB_ERR_NOT_FOUND);
	sb_tree_free(tree);
	assert_int_equal(sb_session_remove(session, at_place("deep/er/one"), NULL, &err), 0);
	python_in_place("print(os.listdir('deep/er'))", "[]\n");
	python_in_place("for i in range(50): os.makedirs(f'deep/{i}/x/y'); open(f'deep/{i}/f', 'w').close()", "");
	assert_int_equal(sb_session_remove(session, at_place("deep"), NULL, &err), 0);
	assert_int_equal(sb_session_remove(session, at_place("deep"), NULL, &err), SB_ERR_NOT_FOUND);
	assert_int_equal(sb_session_get(session, at_place("deep"), NULL, &tree, &err), SB_ERR_NOT_FOUND);
	assert_int_equal(put(at_place("binary"), "\377\1"), 0);
	has_file(at_place("binary"), "binary", "\377\1");
	python_in_place("print(sorted(os.listdir()))", "['binary', 'empty']\n");
	assert_int_equal(sb_session_remove(session, place, NULL, &err), 0);
}

static void files_refused(void **state)
{
	sb_tree *tree = NULL;

	(void)state;
	if (!has_files())
		skip();
	assert_int_equal(put("relative", "x"), SB_ERR_INVALID_PATH);
	assert_int_equal(put(at_place("../x"), "x"), SB_ERR_INVALID_PATH);
	assert_int_equal(put("/", "x"), SB_ERR_IS_DIR);
	assert_int_equal(put(NULL, "x"), SB_ERR_INVALID_PATH);
	assert_int_equal(sb_session_put(session, at_place("x"), NULL, 1, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_session_get(session, place, NULL, NULL, &err), SB_ERR_INVALID);
	python_in_place("os.mkdir('dir'); open('file', 'w').write('file'); os.symlink('/etc', 'out'); "
			"os.symlink('file', 'to'); os.mkfifo('pipe'); None", "");
	assert_int_equal(put(at_place("dir"), "x"), SB_ERR_IS_DIR);
	assert_int_equal(put(at_place("file/x"), "x"), SB_ERR_NOT_DIR);
	/* no link is followed, neither within the path nor at its end */
	assert_int_equal(put(at_place("out/passwd"), "x"), SB_ERR_PATH_TRAVERSAL);
	assert_non_null(strstr(err.message, "link"));
	assert_int_equal(sb_session_get(session, at_place("out/passwd"), NULL, &tree, &err),
			 SB_ERR_PATH_TRAVERSAL);
	assert_int_equal(sb_session_get(session, at_place("to"), NULL, &tree, &err), SB_ERR_PATH_TRAVERSAL);
	assert_int_equal(sb_session_remove(session, at_place("out/passwd"), NULL, &err),
			 SB_ERR_PATH_TRAVERSAL);
	assert_int_equal(sb_session_get(session, at_place("pipe"), NULL, &tree, &err), SB_ERR_INVALID_PATH);
	assert_null(tree);
	assert_int_equal(put(at_place("to"), "x"), 0); /* the link gives way, its target stays */
	python_in_place("print(open('file').read(), os.path.islink('to'))", "file False\n");
	assert_int_equal(sb_session_remove(session, at_place("out"), NULL, &err), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	if (!strcmp(w.backend, "linux")) { /* elsewhere nothing is held back */
		assert_int_equal(put("/usr/x", "x"), SB_ERR_FORBIDDEN);
		assert_int_equal(put("/in/x", "x"), SB_ERR_FORBIDDEN);
		assert_int_equal(sb_session_get(session, "/etc/passwd", NULL, &tree, &err), SB_ERR_FORBIDDEN);
		assert_int_equal(put("/tmp/x", "x"), 0);
		if (put("/home/sandbox/x", "x") < 0)
			fail_msg("%s", err.message);
		assert_int_equal(sb_session_remove(session, "/tmp", NULL, &err), 0); /* emptied */
		ok(eval("print(os.listdir('/tmp'), os.listdir('/home/sandbox'))"), "[] ['x']\n");
	}
	sb_session_remove(session, place, NULL, &err);
	sb_session_close(session, NULL, NULL);
	assert_int_equal(put(at_place("x"), "x"), SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_get(session, place, NULL, &tree, &err), SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_remove(session, place, NULL, &err), SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_remove(NULL, place, NULL, &err), SB_ERR_INVALID);
}

/* What does not fit is told, and leaves what was there. */
static void files_under_the_quota(void **state)
{
	sb_tree *tree = NULL;
	size_t len = 3 << 20;
	char *much;

	if (strcmp(w.backend, "linux"))
		skip(); /* no quota */
	limits.fs_bytes = 2 << 20;
	NEEDS_REAL();
	much = calloc(1, len);
	assert_non_null(much);
	assert_int_equal(put("/work/file", "small"), 0);
	assert_int_equal(sb_session_put(session, "/work/file", much, len, NULL, &err), SB_ERR_FS_QUOTA);
	has_file("/work/file", "file", "small");
	ok(eval("import os\nprint(os.listdir('/work'))"), "['file']\n");
	/* a sparse giant is not read to its end; where a limit of file sizes stands in for another, none is */
	if (eval("os.truncate('/work/file', 1 << 40)").code == 0) {
		assert_int_equal(sb_session_get(session, "/work/file", NULL, &tree, &err), SB_ERR_FS_QUOTA);
		assert_null(tree);
	}
	free(much);
}

/* Links and folders that change places all the time lead nowhere else. */
static void files_against_a_busy_guest(void **state)
{
	other o = { .code = "import os, time\nend = time.time() + 1.5\nos.makedirs('/work/a', exist_ok=True)\n"
			    "while time.time() < end:\n"
			    "    try:\n        os.rename('/work/a', '/work/b'); os.symlink('/etc', '/work/a')\n"
			    "        os.unlink('/work/a'); os.rename('/work/b', '/work/a')\n"
			    "    except OSError: pass\n" };
	sb_node node = { .size = sizeof node };

	if (strcmp(w.backend, "linux"))
		skip();
	NEEDS_REAL();
	start(&o);
	await_state(SB_STATE_BUSY);
	for (int i = 0; i < 300; i++) {
		sb_tree *tree = NULL;
		int code = put("/work/a/hosts", "mine");

		/* whatever stood there at that instant */
		if (code < 0 && code != SB_ERR_PATH_TRAVERSAL && code != SB_ERR_NOT_FOUND &&
		    code != SB_ERR_NOT_DIR && code != SB_ERR_FORBIDDEN && code != SB_ERR_IO)
			fail_msg("%s", err.message);
		if (sb_session_get(session, "/work/a/hosts", NULL, &tree, &err) < 0)
			continue;
		assert_int_equal(sb_tree_find(tree, "hosts", &node, NULL), 0);
		assert_int_equal(node.len, 4);
		sb_tree_free(tree);
	}
	join(&o);
	assert_int_equal(o.got.rc, 0);
}

/* ---- limits of each ------------------------------------------------------------------------------ */

#define BURN "import time\nend = time.process_time() + %s\nwhile time.process_time() < end: pass\n"

/* Twice as much together as one of them may use. */
static void cpu_time_of_each(void **state)
{
	char code[200];

	if (on_wasm())
		skip(); /* there it is one budget of the whole session */
	limits.cpu_ms = 1000;
	NEEDS_REAL();
	snprintf(code, sizeof code, BURN, ".55");
	for (int i = 0; i < 4; i++)
		ok(eval(code), "");
	snprintf(code, sizeof code, BURN, "50");
	answer a = eval(code);

	assert_int_equal(a.outcome, SB_OUTCOME_BUDGET_EXCEEDED);
	killed(a, SB_ERR_CPU_LIMIT);
}

/* It is closed by itself, whoever has a handle; while it works it is not idle. */
static void idle_and_old(void **state)
{
	how.idle_ms = 400;
	NEEDS_REAL();
	ok(eval("import time\ntime.sleep(.8)\nprint('there')"), "there\n");
	await_state(SB_STATE_CLOSED);
	assert_int_equal(eval("1").rc, SB_ERR_SESSION_CLOSED);
	sb_session_free(session);
	how.idle_ms = 0;
	how.lifetime_ms = 500;
	session = open_one();
	answer a = eval("import time\ntime.sleep(60)");

	assert_true(a.rc == SB_ERR_SESSION_CLOSED || a.outcome == SB_OUTCOME_CANCELLED);
	await_state(SB_STATE_CLOSED);
	sb_session_free(session);
	how.lifetime_ms = (uint64_t)-5;
	session = NULL;
	assert_int_equal(try_open(&session), SB_ERR_INVALID);
	how.lifetime_ms = 3600000; /* closed before that: nothing holds it */
	session = open_one();
	ok(eval("1"), "1\n");
}

static void one_after_the_other(void **state)
{
	other o[4];
	sb_wait short_wait = { .size = sizeof short_wait, .timeout_ms = 50 };

	NEEDS_REAL();
	ok(eval("import time\nseen = []"), "");
	for (size_t i = 0; i < COUNT(o); i++) {
		o[i] = (other){ .code = "seen.append('in'); time.sleep(.05); seen.append('out')" };
		start(&o[i]);
	}
	for (size_t i = 0; i < COUNT(o); i++)
		join(&o[i]);
	ok(eval("seen == ['in', 'out'] * 4"), "True\n");
	/* who does not want to wait so long is told, and nothing else happens */
	o[0] = (other){ .code = "time.sleep(1)" };
	start(&o[0]);
	await_state(SB_STATE_BUSY);
	assert_int_equal(eval_in(session, (sb_command){ 0 }, "1", &short_wait).rc, SB_ERR_TIMEOUT);
	join(&o[0]);
	ok(o[0].got, "");
}

/* A hundred sessions need some more than many a login has. */
static void more_descriptors(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void sessions_share_nothing(void **state)
{
	enum { MANY = 100 };
	sb_session *all[MANY];
	other o[MANY];
	char code[MANY][80], want[40];

	how.language = on_wasm() ? "lua" : "bash";
	NEEDS_REAL();
	more_descriptors();
	for (int i = 0; i < MANY; i++) {
		all[i] = open_one();
		snprintf(code[i], sizeof code[i],
			 on_wasm() ? "x = (x or '') .. '%d' io.open('/tmp/%d', 'w'):close()"
				   : "x=${x-}%d; echo $x >/tmp/evals.$$.%d; sleep 0.0%d",
			 i, i, i % 10);
		o[i] = (other){ .session = all[i], .code = code[i] };
		start(&o[i]);
	}
	for (int i = 0; i < MANY; i++)
		join(&o[i]);
	for (int i = 0; i < MANY; i++) {
		snprintf(want, sizeof want, "%d\n", i);
		ok(eval_in(all[i], (sb_command){ 0 },
			   on_wasm() ? "x" : "echo $x; rm -f /tmp/evals.$$.*", NULL),
		   want);
		sb_session_free(all[i]);
	}
}

static int stop_at_once(void *user, int stream, const void *data, size_t len)
{
	(void)stream;
	(void)data;
	*(size_t *)user += len;
	return 1;
}

static void callback_and_cancel(void **state)
{
	sb_cancel *cancel;
	size_t heard = 0;

	NEEDS_REAL();
	answer a = eval_in(session, (sb_command){ .on_output = stop_at_once, .user = &heard },
			   "print('x', flush=True)\nwhile True: pass", NULL);

	assert_int_equal(a.outcome, SB_OUTCOME_CANCELLED);
	assert_true(heard > 0);
	killed(a, SB_ERR_CANCELLED);
	assert_int_equal(sb_session_reset(session, NULL, &err), 0);
	assert_int_equal(sb_cancel_new(&cancel, &err), 0);
	sb_cancel_fire(cancel);
	const sb_wait wait = { .size = sizeof wait, .cancel = cancel };

	/* before it starts: nothing has happened */
	assert_int_equal(eval_in(session, (sb_command){ 0 }, "1", &wait).rc, SB_ERR_CANCELLED);
	ok(eval("2"), "2\n");
	sb_cancel_free(cancel);
	const sb_wait soon = { .size = sizeof soon, .timeout_ms = 200 };

	a = eval_in(session, (sb_command){ 0 }, "import time\ntime.sleep(60)", &soon);
	assert_int_equal(a.outcome, SB_OUTCOME_TIMED_OUT);
	killed(a, SB_ERR_TIMEOUT);
}

static void *close_it(void *arg)
{
	(void)arg;
	assert_int_equal(sb_session_close(session, NULL, NULL), 0);
	return NULL;
}

static void closed_while_it_runs(void **state)
{
	other o = { .code = "print('go', flush=True)\nimport time\ntime.sleep(60)" };
	pthread_t two[2];

	NEEDS_REAL();
	start(&o);
	await_state(SB_STATE_BUSY);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&two[i], NULL, close_it, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(two[i], NULL);
	join(&o);
	assert_int_equal(o.got.rc, 0);
	assert_int_equal(o.got.outcome, SB_OUTCOME_CANCELLED);
	assert_int_equal(eval("1").rc, SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_reset(session, NULL, &err), SB_ERR_SESSION_CLOSED);
}

static void reset_clears(void **state)
{
	NEEDS_REAL();
	ok(eval("x = 1"), "");
	assert_int_equal(sb_session_reset(session, NULL, &err), 0);
	answer a = eval("x");

	assert_string_equal(a.exception, "NameError: name 'x' is not defined");
	assert_int_equal(a.restarted, 0);
}

static void evaluations_are_counted(void **state)
{
	how.max_evals = 2;
	NEEDS_REAL();
	ok(eval("1"), "1\n");
	ok(eval("2"), "2\n");
	assert_int_equal(eval("3").rc, SB_ERR_SESSION_CLOSED);
}

static void refused_commands(void **state)
{
	sb_session *none = NULL;

	NEEDS_REAL();
	assert_int_equal(eval_in(session, (sb_command){ .argv = LIST("true") }, "1", NULL).rc,
			 SB_ERR_INVALID);
	assert_int_equal(eval_in(session, (sb_command){ .language = "js" }, "1", NULL).rc,
			 SB_ERR_INVALID);
	assert_int_equal(eval_in(session, (sb_command){ .flags = SB_COMMAND_TTY }, "1", NULL).rc,
			 SB_ERR_UNSUPPORTED);
	assert_int_equal(eval_in(session, (sb_command){ .input_kind = SB_INPUT_FD }, "1", NULL).rc,
			 SB_ERR_UNSUPPORTED);
	assert_int_equal(sb_session_eval(session, NULL, NULL, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_session_interrupt(NULL, NULL, &err), SB_ERR_INVALID);
	ok(eval_in(session, (sb_command){ .language = "PY " }, "1", NULL), "1\n");
	answer a = eval_in(session, (sb_command){ .code = "'a\0b'", .code_len = 5 }, "", NULL);

	assert_int_equal(a.rc, SB_ERR_INVALID);
	how.language = "ruby";
	assert_int_equal(try_open(&none), on_wasm() ? SB_ERR_BACKEND_UNAVAILABLE : SB_ERR_UNSUPPORTED);
	how.language = "klingon";
	assert_int_equal(try_open(&none), SB_ERR_UNKNOWN_LANGUAGE);
	how.language = NULL;
	if (on_wasm()) { /* there are no programs */
		assert_int_equal(try_open(&none), SB_ERR_UNSUPPORTED);
		return;
	}
	none = open_one();
	assert_int_equal(eval_in(none, (sb_command){ 0 }, "1", NULL).rc, SB_ERR_UNSUPPORTED);
	sb_session_free(none);
	how.max_evals = 1;
	assert_int_equal(try_open(&none), SB_ERR_INVALID);
}

static void other_languages(void **state)
{
	static const struct {
		const char *language, *assign, *show, *said;
	} all[] = {
		{ "js", "const x = 21", "x * 2", "42\n" },
		{ "lua", "x = 21", "x * 2", "42\n" },
		{ "bash", "x=21", "echo $((x * 2))", "42\n" },
		{ "ts", "enum E { A = 21 }; const x: number = E.A", "x as number * 2", "42\n" },
	};

	(void)state;
	if (w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		how.language = all[i].language;
		if (on_wasm() ? !strcmp(how.language, "bash") : !strcmp(how.language, "ts"))
			continue;
		if (try_open(&session) == SB_ERR_NOT_FOUND)
			continue; /* not installed */
		assert_non_null(session);
		ok(eval(all[i].assign), "");
		ok(eval(all[i].show), all[i].said);
		sb_session_free(session);
		session = NULL;
	}
}

/* Each in its own words; what was there before stays. */
static void each_language_is_interrupted(void **state)
{
	static const struct {
		const char *language, *assign, *loop, *exception, *show, *said;
	} all[] = {
		{ "js", "const x = 5", "console.log('go'); for (;;);", "interrupted", "x", "5\n" },
		{ "js", "const x = 5", "await new Promise((f) => setTimeout(f, 600000))", "interrupted", "x", "5\n" },
		{ "lua", "x = 5", "while true do end", "interrupted!", "x", "5\n" },
		{ "lua", "x = 5", "coroutine.wrap(function() while true do pcall(math.abs, 1) end end)()",
		  "interrupted!", "x", "5\n" },
		{ "ts", "const x: number = 5", "for (;;);", "interrupted", "x", "5\n" },
		{ "python", "x = 5", "import time; time.sleep(600)", "KeyboardInterrupt", "x", "5\n" },
	};

	(void)state;
	if (!on_wasm())
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		other o = { .code = all[i].loop };

		how.language = all[i].language;
		if (try_open(&session) == SB_ERR_NOT_FOUND)
			continue; /* not built */
		assert_non_null(session);
		ok(eval(all[i].assign), "");
		for (int round = 0; round < 2; round++) {
			start(&o);
			interrupt_until_over();
			join(&o);
			if (o.got.rc || !strstr(o.got.exception, all[i].exception))
				fail_msg("%s: %d \"%s\" \"%s\"", all[i].language, o.got.rc,
					 o.got.exception, o.got.message);
		}
		ok(eval(all[i].show), all[i].said);
		sb_session_free(session);
		session = NULL;
	}
}

/* Errors, unfinished blocks, input and exits, in the language's own form. */
static void each_language_says_it_its_way(void **state)
{
	static const sb_command partial = { .flags = SB_COMMAND_PARTIAL };
	static const struct {
		const char *language, *wrong, *exception, *open, *close, *read, *said, *leave;
	} all[] = {
		{ "js", "null.x", "TypeError", "function f() {", "function f() {\n return 7 }\nf()",
		  "std.in.getline()", "'line'\n", "std.exit(3)" },
		{ "ts", "const y: number = ;", "SyntaxError", "function f(): number {",
		  "function f(): number {\n return 7 }\nf()", "std.in.getline() as string", "'line'\n",
		  "process.exit(3)" },
		{ "lua", "error('boom')", "boom", "if true then", "if true then f = 7 end return f",
		  "io.read()", "line\n", "os.exit(3)" },
		{ "python", "1/0", "ZeroDivisionError: division by zero", "def f():", "f = lambda: 7\nf()",
		  "input()", "'line'\n", "raise SystemExit(3)" },
	};

	(void)state;
	if (!on_wasm())
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		how.language = all[i].language;
		if (try_open(&session) == SB_ERR_NOT_FOUND)
			continue; /* not built */
		assert_non_null(session);
		answer a = eval(all[i].wrong);

		if (a.rc || a.code != 1 || !strstr(a.exception, all[i].exception))
			fail_msg("%s: \"%s\"", all[i].language, a.exception);
		a = eval_in(session, partial, all[i].open, NULL);
		assert_int_equal(a.unfinished, 1);
		ok(eval(all[i].close), "7\n");
		ok(eval_in(session,
			   (sb_command){ .input_kind = SB_INPUT_BYTES, .input = "line\n", .input_len = 5 },
			   all[i].read, NULL),
		   all[i].said);
		a = eval(all[i].leave);
		assert_int_equal(a.code, 3);
		assert_int_equal(a.error, SB_ERR_SESSION_CLOSED);
		sb_session_free(session);
		session = NULL;
	}
}

/* ---- a driver that plays
 * ---------------------------------------------------------------------------------- */

#define HELLO                                                                                      \
	{ FAKE_HEAR, 0, NULL, 0 },                                                                 \
	{                                                                                          \
		FAKE_TELL, 0, "H @ 00000009\n1 ask nul", 0                                         \
	}
#define HEAR                                                                                       \
	{                                                                                          \
		FAKE_HEAR, 0, NULL, 0                                                              \
	}
#define TELL(text)                                                                                 \
	{                                                                                          \
		FAKE_TELL, 0, text, 0                                                              \
	}
#define WAIT                                                                                       \
	{                                                                                          \
		FAKE_SLEEP, 60000, NULL, 0                                                         \
	}

static void play(const fake_step *steps)
{
	if (!w.is_fake)
		skip();
	script = steps;
	session = open_one();
}

static void played_evaluations(void **state)
{
	static const fake_step steps[] = {
		HELLO,
		HEAR,
		{ FAKE_OUT, 0, "said\n", 0 },
		TELL("V @ 00000002\n42"),
		TELL("D @ 00000001\n0"),
		HEAR,
		{ FAKE_ERR, 0, "bad\n", 0 },
		TELL("X @ 00000004\nE: x"),
		TELL("D @ 00000001\n1"),
		HEAR,
		{ FAKE_OUT_FILE, 0, "left", 0 },
		TELL("D @ 00000003\n255"),
		HEAR,
		TELL("V @ 00000005\na\0b"),
		{ FAKE_TELL, 0, "\377c", 0 },
		WAIT,
		{ FAKE_END, 0, NULL, 0 },
	};

	(void)state;
	play(steps);
	answer a = eval("one");

	ok(a, "said\n");
	assert_string_equal(a.value, "42");
	a = eval("two");
	assert_int_equal(a.code, 1);
	assert_string_equal(a.exception, "E: x");
	assert_string_equal(a.err, "bad\n");
	a = eval("three");
	assert_int_equal(a.code, 255);
	assert_int_equal(a.files, 1);
}

/* What may not come ends the session, with words that say what it was. */
static void broken_frames(void **state)
{
	static const struct {
		const char *text, *why;
	} all[] = {
		{ "nonsense that is no frame at all, but quite long enough", "no frame" },
		{ "D 00000000000000000000000000000000 00000001\n0", "another evaluation" },
		{ "V @ 00100001\n", "too long" },
		{ "D @ ffffffff\n", "too long" },
		{ "D @ 00000003\n999", "no number" },
		{ "Q @ 00000008\n00000001", "none may be asked" },
		{ "U @ 00000000\n", "unfinished" },
		{ "V @ 00000001\n1V @ 00000001\n1", "second value" },
		{ "H @ 00000009\n1 ask nul", "unknown kind" },
		{ "D @ 00000001\n0D @ 00000001\n0", "behind the end" },
	};
	fake_step steps[] = { HELLO, HEAR, TELL(NULL), WAIT, { FAKE_END, 0, NULL, 0 } };

	(void)state;
	if (!w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		steps[3].text = all[i].text;
		play(steps);
		answer a = eval("code");

		assert_int_equal(a.rc, 0);
		if (!strstr(a.message, all[i].why))
			fail_msg("\"%s\" has no \"%s\"", a.message, all[i].why);
		assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
		killed(a, SB_ERR_FORBIDDEN);
		sb_session_free(session);
		session = NULL;
	}
}

static void flood_of_frames(void **state)
{
	static const fake_step steps[] = { HELLO,
					   HEAR,
					   { FAKE_TELL, 0, "V @ 00000001\n1", 0 },
					   { FAKE_OUT, 100000, "x", 0 },
					   TELL("V @ 00000001\n1"),
					   WAIT,
					   { FAKE_END, 0, NULL, 0 } };

	(void)state;
	play(steps);
	answer a = eval("code");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	assert_int_equal(a.out_len, 100000);
}

static void hung_up(void **state)
{
	static const fake_step steps[] = {
		HELLO, HEAR, { FAKE_HANG_UP, 0, NULL, 0 }, WAIT, { FAKE_END, 0, NULL, 0 }
	};

	(void)state;
	play(steps);
	answer a = eval("code");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	killed(a, SB_ERR_FORBIDDEN);
}

static void played_endings(void **state)
{
	static const struct {
		fake_step end;
		int outcome, error, cause;
	} all[] = {
		{ { FAKE_END, 3, NULL, 0 },
		  SB_OUTCOME_EXITED,
		  SB_ERR_SESSION_CLOSED,
		  SB_ERR_PROCESS_CLOSED },
		{ { FAKE_SIGNALED, 11, NULL, 0 }, SB_OUTCOME_SIGNALED, SB_ERR_SESSION_KILLED, 0 },
		{ { FAKE_LIMIT, SB_ERR_CPU_LIMIT, NULL, 0 },
		  SB_OUTCOME_BUDGET_EXCEEDED,
		  SB_ERR_SESSION_KILLED,
		  SB_ERR_CPU_LIMIT },
		{ { FAKE_LOSE, 0, NULL, 0 },
		  SB_OUTCOME_LOST,
		  SB_ERR_SESSION_KILLED,
		  SB_ERR_CONNECTION_LOST },
	};
	fake_step steps[] = {
		HELLO, HEAR, { FAKE_OUT, 0, "partial", 0 }, WAIT, { FAKE_END, 0, NULL, 0 }
	};

	(void)state;
	if (!w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		steps[4] = all[i].end;
		play(steps);
		answer a = eval("code");

		assert_int_equal(a.outcome, all[i].outcome);
		assert_int_equal(a.error, all[i].error);
		assert_int_equal(a.cause, all[i].cause);
		assert_string_equal(a.out, "partial");
		sb_session_free(session);
		session = NULL;
	}
}

static void bad_starts(void **state)
{
	static const fake_step silent[] = { { FAKE_ERR, 0, "no such module\n", 0 },
					    { FAKE_END, 1, NULL, 0 } };
	static const fake_step rude[] = {
		HEAR, TELL("D @ 00000001\n0"), WAIT, { FAKE_END, 0, NULL, 0 }
	};
	sb_session *none = NULL;

	(void)state;
	if (!w.is_fake)
		skip();
	script = silent;
	assert_int_equal(try_open(&none), SB_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "no such module"));
	script = rude;
	assert_int_equal(try_open(&none), SB_ERR_UNSUPPORTED);
	how.language = "mute";
	assert_int_equal(try_open(&none), SB_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "no sessions"));
	how.language = "scripted";
	fake.fail_at = FAKE_AT_SPAWN;
	fake.fail_code = SB_ERR_NOT_FOUND;
	assert_int_equal(try_open(&none), SB_ERR_NOT_FOUND);
	fake.fail_at = FAKE_AT_PUT;
	fake.fail_code = SB_ERR_FS_QUOTA;
	assert_int_equal(try_open(&none), SB_ERR_FS_QUOTA);
	fake.fail_at = fake.fail_code = 0;
}

static bool is_built(const char *pack)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/wasm/%s/manifest", w.helper_dir ? w.helper_dir : ".", pack);
	return access(path, R_OK) == 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(state_persists),
		TEST(exception_survives),
		TEST(time_kills),
		TEST(ignored_interrupts),
		TEST(restart),
		TEST(interpreter_exits),
		TEST(interpreter_dies_while_idle),
		TEST(killed_by_signal),
		TEST(another_program),
		TEST(junk_on_all_descriptors),
		TEST(markers_are_output),
		TEST(late_output_is_kept),
		TEST(interrupt_keeps_it),
		TEST(input_by_answer),
		TEST(interrupt_of_a_question),
		TEST(input_by_bytes_and_callback),
		TEST(unfinished_code),
		TEST(large_source),
		TEST(output_caps),
		TEST(memory_limit),
		TEST(files_of_each),
		TEST(files_in_and_out),
		TEST(files_refused),
		TEST(files_under_the_quota),
		TEST(files_against_a_busy_guest),
		TEST(cpu_time_of_each),
		TEST(idle_and_old),
		TEST(junk_on_the_control_stream),
		TEST(one_after_the_other),
		TEST(sessions_share_nothing),
		TEST(callback_and_cancel),
		TEST(closed_while_it_runs),
		TEST(reset_clears),
		TEST(evaluations_are_counted),
		TEST(refused_commands),
		TEST(other_languages),
		TEST(each_language_is_interrupted),
		TEST(each_language_says_it_its_way),
		TEST(played_evaluations),
		TEST(broken_frames),
		TEST(flood_of_frames),
		TEST(hung_up),
		TEST(played_endings),
		TEST(bad_starts),
	};

	if (argc < 2)
		return fprintf(stderr, "usage: evals BACKEND [DIRECTORY]\n"), 2;
	w.backend = argv[1];
	w.is_fake = !strcmp(w.backend, "fake");
	w.helper_dir = argc > 2 ? argv[2] : NULL;
	if (argc > 3)
		cmocka_set_test_filter(argv[3]);
	if (on_wasm() && !is_built(argc > 3 ? "lua" : "python")) {
		fputs("the languages on board are not built: make wasm\n", stderr);
		return 77;
	}
	return cmocka_run_group_tests_name(w.backend, tests, folder_enter, folder_leave);
}
