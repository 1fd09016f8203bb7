/* SPDX-License-Identifier: MIT */
/* evals.c - one suite over every backend that can evaluate: what an interpreter that stays promises. */
#include "evals.h"
#include "../unit/folder.h"

#include <sys/resource.h>

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
	/* in time for its answer, or while that is on its way */
	(void)eval("import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), "
		   "os._exit(4))).start()");
	const struct timespec while_it_dies = { 0, 50000000 };
	uint64_t late = now_ms() + 30000;
	int rc;

	do {
		nanosleep(&while_it_dies, NULL);
		rc = eval("1").rc;
	} while (rc == 0 && now_ms() < late);
	assert_int_equal(rc, SB_ERR_SESSION_CLOSED);
}

/* Whoever looks at it sees so, before anybody evaluates. */
static void killed_while_idle(void **state)
{
	const struct timespec pause = { 0, 5000000 };
	uint64_t late = now_ms() + HANG_MS;

	NEEDS_PROCESSES();
	(void)eval("import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), "
		   "os.kill(os.getpid(), 9))).start()");
	while (sb_session_state(session) != SB_STATE_KILLED && now_ms() < late)
		nanosleep(&pause, NULL);
	assert_int_equal(sb_session_state(session), SB_STATE_KILLED);
	assert_int_equal(eval("1").rc, SB_ERR_SESSION_KILLED);
	assert_int_equal(sb_session_state(session), SB_STATE_KILLED);
	assert_int_equal(sb_session_reset(session, NULL, &err), 0);
	ok(eval("2"), "2\n");
}

static void killed_by_signal(void **state)
{
	NEEDS_PROCESSES();
	answer a = eval("import os\nos.kill(os.getpid(), 9)");

	assert_int_equal(a.outcome, SB_OUTCOME_SIGNALED);
	assert_int_equal(a.error, SB_ERR_SESSION_KILLED);
	assert_int_equal(a.cause, 0);
	assert_string_equal(a.message, "the interpreter was ended by signal 9: the session has ended");
}

static void killed_by_signal_and_restarted(void **state)
{
	how.flags = SB_SESSION_AUTO_RESTART;
	NEEDS_PROCESSES();
	answer a = eval("import os\nos.kill(os.getpid(), 9)");

	assert_int_equal(a.outcome, SB_OUTCOME_SIGNALED);
	assert_int_equal(a.error, SB_ERR_SESSION_KILLED);
	assert_string_equal(a.message, "the interpreter was ended by signal 9");
	assert_int_equal(eval("1").restarted, 1);
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

static void interrupt_keeps_it(void **state)
{
	other o = { .code = "print('go', flush=True)\nwhile True: pass" };

	NEEDS_REAL();
	ok(eval("x = 5"), "");
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0); /* nothing runs */
	for (unsigned i = 0; i < 20; i++) {
		start(&o);
		interrupt_after(i * i * 10);
		join(&o);
		if (o.got.rc || o.got.error || strcmp(o.got.exception, "KeyboardInterrupt"))
			fail_msg("%u: %d, %s, \"%s\", \"%s\", \"%s\"", i, o.got.rc, sb_outcome_name(o.got.outcome),
				 o.got.exception, o.got.message, o.got.out);
	}
	ok(eval("print(x)"), "5\n");
}

/* Wherever it comes between the code's arrival and its first step: it counts. */
static void interrupts_of_what_begins(void **state)
{
	other o = { .code = "while True: pass" };

	NEEDS_REAL();
	for (unsigned i = 0; i < 150; i++) {
		start(&o);
		interrupt_after(i % 50 * 4);
		join(&o);
		if (o.got.rc || o.got.error || strcmp(o.got.exception, "KeyboardInterrupt"))
			fail_msg("%u: %d, %s, \"%s\", \"%s\"", i, o.got.rc, sb_outcome_name(o.got.outcome),
				 o.got.exception, o.got.message);
	}
	ok(eval("5"), "5\n");
}

static pid_t child_of(pid_t pid)
{
	char path[64];
	int child = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *f = fopen(path, "r");

	if (!f)
		return 0;
	if (fscanf(f, "%d", &child) != 1)
		child = 0;
	fclose(f);
	return child;
}

/* It is slow to pass an interrupt on, and the code has ended by then: the next code is not struck. */
static void late_signal(void **state)
{
	other o = { .code = "import time\nprint('up', flush=True)\ntime.sleep(1.5)" };
	pid_t first;

	if (strcmp(w.backend, "linux"))
		skip();
	NEEDS_REAL();
	first = child_of(child_of(getpid())); /* of the box, below its supervisor */
	if (!first)
		skip();
	start(&o);
	await_state(SB_STATE_BUSY);
	usleep(300000);
	assert_int_equal(kill(first, SIGSTOP), 0);
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
	usleep(2500000);
	other next = { .code = "import time\ntime.sleep(.5)\nprint('whole')" };

	start(&next);
	usleep(200000);
	assert_int_equal(kill(first, SIGCONT), 0);
	join(&o);
	join(&next);
	assert_int_equal(o.got.rc, 0);
	ok(next.got, "whole\n");
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

#define BURN "import time\nend = time.process_time() + %s\nwhile time.process_time() < end: pass\n"

/* Of an instance there is one budget, of the whole session: each evaluation takes from it. */
static void cpu_time_of_all(void **state)
{
	answer a;
	char code[200];
	int fine = 0;

	if (!on_wasm())
		skip();
	limits.cpu_ms = 2000;
	NEEDS_REAL();
	snprintf(code, sizeof code, BURN, ".55");
	while ((a = eval(code)).rc == 0 && a.outcome == SB_OUTCOME_EXITED && fine < 4)
		fine++;
	assert_in_range(fine, 1, 3);
	assert_int_equal(a.outcome, SB_OUTCOME_BUDGET_EXCEEDED);
	killed(a, SB_ERR_CPU_LIMIT);
}

/* Twice as much together as one of them may use. */
static void cpu_time_of_each(void **state)
{
	char code[200];

	if (on_wasm())
		skip(); /* see cpu_time_of_all() */
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

static void used(answer a, uint64_t least_ms, uint64_t most_ms)
{
	assert_int_equal(a.rc, 0);
	if (a.cpu_us < least_ms * 1000 || a.cpu_us > most_ms * 1000)
		fail_msg("%llu us are not %llu to %llu ms", (unsigned long long)a.cpu_us,
			 (unsigned long long)least_ms, (unsigned long long)most_ms);
}

/* Each has what it used, and not what others before it did. */
static void usage_of_each(void **state)
{
	char code[300];

	limits.cpu_ms = 20000;
	NEEDS_PROCESSES(); /* of an instance it is not known */
	answer a = eval("import os, time\ntime.sleep(.3)");

	used(a, 0, 200);
	assert_true(a.wall_us >= 300000 && a.cpu_us > 0);
	snprintf(code, sizeof code, BURN, ".4");
	used(eval(code), 350, 5000);
	used(eval("1"), 0, 300);
	/* of children that it has waited for as well */
	snprintf(code, sizeof code, "pid = os.fork()\nif pid == 0:\n    end = time.process_time() + .4\n"
				    "    while time.process_time() < end: pass\n    os._exit(0)\n_ = os.waitpid(pid, 0)");
	used(eval(code), 350, 5000);
	/* and of one that ends the session */
	used(eval("end = time.process_time() + .4\nwhile time.process_time() < end: pass\nos._exit(0)"), 350, 5000);
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

/* Its number is known to the code, which may lie, and ends nothing but itself. */
static void junk_on_the_control_stream(void **state)
{
	if (!on_wasm()) {
		skip();
		return;
	}
	NEEDS_REAL();
	answer a = eval("import os\nos.closerange(4, 3000)\n"
			"for n in range(4, 3000):\n"
			" try: os.write(n, b'D' * 99); print(n)\n"
			" except OSError: pass");

	ok(a, "");
	a = eval("os.write(10 ** 9, b'D' * 99)");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	killed(a, SB_ERR_FORBIDDEN);
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

EVALS_MAIN(TEST(state_persists), TEST(exception_survives), TEST(time_kills),
	   TEST(ignored_interrupts), TEST(restart), TEST(interpreter_exits),
	   TEST(interpreter_dies_while_idle), TEST(killed_while_idle), TEST(killed_by_signal), TEST(killed_by_signal_and_restarted), TEST(another_program),
	   TEST(junk_on_all_descriptors), TEST(markers_are_output), TEST(late_output_is_kept),
	   TEST(interrupt_keeps_it), TEST(interrupts_of_what_begins), TEST(late_signal), TEST(input_by_answer), TEST(interrupt_of_a_question),
	   TEST(input_by_bytes_and_callback), TEST(unfinished_code), TEST(large_source),
	   TEST(output_caps), TEST(memory_limit), TEST(cpu_time_of_each), TEST(cpu_time_of_all), TEST(usage_of_each), TEST(idle_and_old),
	   TEST(junk_on_the_control_stream), TEST(one_after_the_other),
	   TEST(sessions_share_nothing), TEST(callback_and_cancel), TEST(closed_while_it_runs),
	   TEST(reset_clears), TEST(evaluations_are_counted), TEST(refused_commands));
