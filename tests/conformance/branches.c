/* SPDX-License-Identifier: MIT */
/* branches.c - branches of sessions: one suite over every backend that makes them.  Elsewhere they are refused. */
#include "evals.h"
#include "../lib/descriptors.h"
#include "../unit/folder.h"

#include <sys/resource.h>
#include <sys/stat.h>

static bool can_fork(void)
{
	const sb_backend *table = sb_backend_builtin(w.backend);

	return table && table->caps & SB_CAP_FORK && table->fork;
}

#define NEEDS_BRANCHES()                                                                                               \
	do {                                                                                                           \
		(void)state;                                                                                           \
		if (!can_fork())                                                                                       \
			skip();                                                                                        \
	} while (0)
#define NEEDS_PYTHON()                                                                                                 \
	do {                                                                                                           \
		NEEDS_BRANCHES();                                                                                      \
		session = open_one();                                                                                  \
	} while (0)

static sb_session *branch(sb_session *of)
{
	sb_session *out = NULL;

	memset(&err, 0, sizeof err);
	if (sb_session_fork(of, NULL, NULL, &out, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return out;
}

static int refused(void)
{
	sb_session *out = NULL;

	memset(&err, 0, sizeof err);
	int code = sb_session_fork(session, NULL, NULL, &out, &err);

	assert_null(out);
	return code;
}

static answer in(sb_session *s, const char *code)
{
	return eval_in(s, (sb_command){ 0 }, code, NULL);
}

/* Runs, and its output is no matter. */
static void run(sb_session *s, const char *code)
{
	answer a = in(s, code);

	if (a.rc < 0)
		fail_msg("%s: %s: %s", code, err.where, err.message);
	if (a.code || a.error)
		fail_msg("%s: %d \"%s\" \"%s\" \"%s\"", code, a.code, a.exception, a.message, a.err);
}

static void refused_here(void **state)
{
	const sb_backend *wasm = sb_backend_builtin("wasm");

	(void)state;
	if (can_fork())
		skip();
	if (w.is_fake || try_open(&session) == SB_ERR_NOT_FOUND)
		skip();
	assert_non_null(session);
	assert_int_equal(refused(), SB_ERR_UNSUPPORTED);
	if (!strstr(err.message, w.backend))
		fail_msg("\"%s\"", err.message);
	if (wasm && wasm->caps & SB_CAP_FORK && !strstr(err.message, "\"wasm\""))
		fail_msg("\"%s\"", err.message);
	ok(eval("6 * 7"), "42\n");
}

static void plan_says_so(void **state)
{
	NEEDS_PYTHON();
	assert_true(sb_plan_caps(sb_session_plan(session)) & SB_CAP_FORK);
}

/* ---- each language ------------------------------------------------------------------------------------------ */

typedef struct language {
	const char *name, *define, *look, *said, *change, *said_then, *random;
} language;

static const language languages[] = {
	{ "python", "x = [1, 2]\ndef f(n):\n    return n + x[0]\nimport json, random", "json.dumps(f(41))", "'42'\n",
	  "x[0] = 100", "'141'\n", "random.random()" },
	{ "js", "let x = [1, 2]; function f(n) { return n + x[0] }", "f(41)", "42\n", "x[0] = 100", "141\n",
	  "Math.random()" },
	{ "ts", "let x: number[] = [1, 2]; function f(n: number): number { return n + x[0] }", "f(41) as number",
	  "42\n", "x[0] = 100 as number", "141\n", "Math.random()" },
	{ "lua", "x = {1, 2} function f(n) return n + x[1] end", "f(41)", "42\n", "x[1] = 100", "141\n",
	  "math.random(1 << 60)" },
};

static void each_of(const language *l)
{
	sb_session *at_once, *a, *b, *c;

	at_once = branch(session); /* before anything was evaluated */
	run(session, l->define);
	ok(eval(l->look), l->said);
	a = branch(session);
	b = branch(session);
	run(session, l->change);
	ok(in(a, l->look), l->said);
	ok(eval(l->look), l->said_then);
	run(a, l->change);
	ok(in(b, l->look), l->said);
	c = branch(b); /* of a branch */
	sb_session_free(b);
	sb_session_free(session); /* the original goes first */
	session = NULL;
	ok(in(a, l->look), l->said_then);
	ok(in(c, l->look), l->said);
	assert_true(in(at_once, l->look).code == 1); /* it knows nothing of that */
	run(at_once, l->define);
	ok(in(at_once, l->look), l->said);
	sb_session_free(at_once);
	sb_session_free(a);
	sb_session_free(c);
}

/* Opens a session of it; false: not built. */
static bool open_language(const language *l)
{
	how.language = l->name;
	if (try_open(&session) == SB_ERR_NOT_FOUND)
		return false;
	if (!session)
		fail_msg("%s: %s", err.where, err.message);
	return true;
}

static void each_language(void **state)
{
	NEEDS_BRANCHES();
	for (size_t i = 0; i < COUNT(languages); i++)
		if (open_language(&languages[i]))
			each_of(&languages[i]);
}

/* Every branch, and the original, draws numbers of its own. */
static void random_numbers(void **state)
{
	NEEDS_BRANCHES();
	for (size_t i = 0; i < COUNT(languages); i++) {
		const language *l = &languages[i];
		answer drawn[4];

		if (!open_language(l))
			continue;
		run(session, l->define);
		run(session, l->random);
		sb_session *a = branch(session), *b = branch(session), *c = branch(a);

		drawn[0] = eval(l->random);
		drawn[1] = in(a, l->random);
		drawn[2] = in(b, l->random);
		drawn[3] = in(c, l->random);
		for (size_t j = 0; j < COUNT(drawn); j++)
			for (size_t k = 0; k < j; k++)
				assert_string_not_equal(drawn[j].out, drawn[k].out);
		sb_session_free(a);
		sb_session_free(b);
		sb_session_free(c);
		sb_session_free(session);
		session = NULL;
	}
}

static void more_random_numbers(void **state)
{
	static const char *const draws[] = { "os.urandom(16).hex()", "uuid.uuid4().hex", "secrets.token_hex(16)",
					     "own.random()", "random.SystemRandom().random()",
					     "tempfile.mkdtemp()" };

	NEEDS_PYTHON();
	run(session, "import os, uuid, secrets, random, tempfile\nown = random.Random()\nown.random()\nd = {'a': 1, 'b': 2}\n"
		     "s = {'x', 'y', 'z'}\nh = hash('word')");
	for (size_t i = 0; i < COUNT(draws); i++)
		run(session, draws[i]);
	sb_session *b = branch(session);

	for (size_t i = 0; i < COUNT(draws); i++) {
		if (!strcmp(draws[i], "own.random()"))
			continue; /* a generator of the code's own is its state */
		answer one = eval(draws[i]), two = in(b, draws[i]);

		if (one.code || two.code || !strcmp(one.out, two.out))
			fail_msg("%s: \"%s\" \"%s\" \"%s\"", draws[i], one.out, two.out, two.err);
	}
	/* what was hashed is found */
	ok(in(b, "d['a'], d['b'], 'x' in s, 'word' in {'word'}, h == hash('word')"), "(1, 2, True, True, True)\n");
	sb_session_free(b);
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static void files_go_along(void **state)
{
	const sb_file given = { .size = sizeof given, .path = "given.txt", .data = "given", .len = 5 };

	NEEDS_PYTHON();
	run(session, "import os\n"
		     "def read(p): return open(p).read()\n"
		     "def write(p, t):\n    with open(p, 'w') as f: f.write(t)\n"
		     "write('/work/a', 'one')\n"
		     "os.makedirs('/work/sub/deep')\n"
		     "write('/work/sub/deep/b', 'two')\n"
		     "os.symlink('../a', '/work/sub/link')\n"
		     "os.chmod('/work/a', 0o600)\n"
		     "os.utime('/work/a', (1000, 2000))\n"
		     "write('/tmp/t', 'tmp')\n"
		     "write('/work/empty', '')\n"
		     "os.chdir('/work/sub')");
	assert_int_equal(eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &given, NULL } }, "pass", NULL)
				 .code, 0);
	sb_session *b = branch(session);

	run(session, "write('/work/a', 'changed')\nos.remove('/work/sub/deep/b')\nos.remove('/tmp/t')");
	ok(in(b, "read('/work/a'), read('link'), read('deep/b'), read('/tmp/t'), read('/work/empty')"),
	   "('one', 'one', 'two', 'tmp', '')\n");
	ok(in(b, "os.getcwd(), os.readlink('link'), sorted(os.listdir('/work'))"),
	   "('/work/sub', '../a', ['a', 'empty', 'sub'])\n");
	ok(in(b, "s = os.stat('/work/a')\nint(s.st_mtime)"), "2000\n");
	ok(in(b, "read('/in/given.txt')"), "'given'\n");
	run(b, "write('/work/a', 'of the branch')\nwrite('/work/new', 'x')");
	ok(eval("read('/work/a'), os.path.exists('/work/new'), os.path.exists('deep/b')"), "('changed', False, False)\n");
	/* and what is brought later */
	ok(eval_in(b, (sb_command){ .files = (const sb_file *const[]){ &given, NULL } }, "read('/in/given.txt')", NULL),
	   "'given'\n");
	sb_session_free(b);
}

static void open_files_go_along(void **state)
{
	NEEDS_PYTHON();
	run(session, "import os\n"
		     "log = open('/work/log', 'w+')\nlog.write('one\\n')\nlog.flush()\n"
		     "text = open('/work/text', 'w+')\ntext.write('abcdef')\ntext.flush()\ntext.seek(2)\n"
		     "end = open('/work/end', 'a')\nend.write('1')\nend.flush()\n"
		     "gone = open('/work/gone', 'w+')\ngone.write('still here')\ngone.flush()\nos.remove('/work/gone')\n"
		     "here = os.open('/work', os.O_RDONLY)\n"
		     "kept = open('/work/kept', 'w')\nkept.write('not yet written')");
	sb_session *b = branch(session), *c = branch(b);

	ok(in(b, "_ = log.write('two\\n')\nlog.flush()\n_ = log.seek(0)\nlog.read()"), "'one\\ntwo\\n'\n");
	ok(eval("_ = log.write('2\\n')\nlog.flush()\n_ = log.seek(0)\nlog.read()"), "'one\\n2\\n'\n");
	ok(in(c, "text.read()"), "'cdef'\n");
	ok(eval("text.read()"), "'cdef'\n");
	ok(in(b, "gone.seek(0), gone.read()"), "(0, 'still here')\n");
	ok(eval("gone.seek(0), gone.read()"), "(0, 'still here')\n");
	ok(in(b, "os.path.exists('/work/gone')"), "False\n");
	ok(in(b, "_ = end.write('2')\nend.flush()\nopen('/work/end').read()"), "'12'\n");
	ok(eval("open('/work/end').read()"), "'1'\n");
	ok(in(b, "os.stat(here).st_ino == os.stat('/work').st_ino"), "True\n");
	ok(in(b, "kept.close()\nopen('/work/kept').read()"), "'not yet written'\n");
	ok(eval("open('/work/kept').read()"), "''\n");
	sb_session_free(b);
	sb_session_free(c);
}

static void names_of_one_file(void **state)
{
	NEEDS_PYTHON();
	answer a = eval("import os\nopen('/work/a', 'w').write('one') and None\nos.link('/work/a', '/work/b')");

	if (a.code) { /* it has no hard links */
		skip();
		return;
	}
	sb_session *b = branch(session);

	run(b, "f = open('/work/a', 'w')\nf.write('two')\nf.close()");
	ok(in(b, "open('/work/b').read(), os.stat('/work/a').st_ino == os.stat('/work/b').st_ino, os.stat('/work/a').st_nlink"),
	   "('two', True, 2)\n");
	ok(eval("open('/work/b').read(), os.stat('/work/a').st_nlink"), "('one', 2)\n");
	run(b, "os.remove('/work/a')");
	ok(in(b, "open('/work/b').read(), os.stat('/work/b').st_nlink"), "('two', 1)\n");
	sb_session_free(b);
}

static void files_of_lua_and_js(void **state)
{
	static const struct {
		const char *language, *open, *go_on, *said, *said_first;
	} all[] = {
		{ "lua", "f = io.open('/work/f', 'w+') f:write('one') f:flush()",
		  "f:write('two') f:seek('set') return f:read('a')", "onetwo\n", "onetwo\n" },
		{ "js", "const f = std.open('/work/f', 'w+'); f.puts('one'); f.flush()",
		  "f.puts('two'); f.seek(0, std.SEEK_SET); f.readAsString()", "'onetwo'\n", "'onetwo'\n" },
	};

	NEEDS_BRANCHES();
	for (size_t i = 0; i < COUNT(all); i++) {
		how.language = all[i].language;
		if (try_open(&session) == SB_ERR_NOT_FOUND)
			continue;
		assert_non_null(session);
		run(session, all[i].open);
		sb_session *b = branch(session);

		ok(in(b, all[i].go_on), all[i].said);
		ok(eval(all[i].go_on), all[i].said_first);
		sb_session_free(b);
		sb_session_free(session);
		session = NULL;
	}
}

static void out_of_each(void **state)
{
	NEEDS_PYTHON();
	answer a = eval("open('/out/first', 'w').write('1') and None");

	assert_int_equal(a.files, 1);
	sb_session *b = branch(session);

	a = in(b, "import os\nlen(os.listdir('/out'))");
	ok(a, "0\n");
	assert_int_equal(a.files, 0);
	a = in(b, "open('/out/second', 'w').write('2') and None");
	assert_int_equal(a.files, 1);
	assert_string_equal(a.first, "second");
	ok(eval("import os\nos.listdir('/out')"), "[]\n");
	sb_session_free(b);
}

/* ---- it rests, or it is refused --------------------------------------------------------------------------------- */

static void not_while_busy(void **state)
{
	other o = { .code = "time.sleep(600)" };

	NEEDS_PYTHON();
	run(session, "import time\nstop = False");
	start(&o);
	await_state(SB_STATE_BUSY);
	assert_int_equal(refused(), SB_ERR_CONFLICT);
	assert_int_equal(sb_session_interrupt(session, NULL, &err), 0);
	join(&o);
	assert_string_equal(o.got.exception, "KeyboardInterrupt");
	sb_session *b = branch(session);

	ok(in(b, "stop"), "False\n");
	sb_session_free(b);
	o = (other){ .code = "input()", .command = { .input_kind = SB_INPUT_OPEN } };
	start(&o);
	await_state(SB_STATE_INPUT);
	assert_int_equal(refused(), SB_ERR_CONFLICT);
	assert_int_equal(sb_session_answer(session, "x", 1, NULL, &err), 0);
	join(&o);
	ok(o.got, "'x'\n");
	b = branch(session);
	ok(in(b, "time.monotonic() > 0"), "True\n");
	sb_session_free(b);
}

/* Code that has raised, was interrupted or is unfinished leaves a session that rests like any. */
static void after_what_went_wrong(void **state)
{
	static const sb_command partial = { .flags = SB_COMMAND_PARTIAL };

	NEEDS_PYTHON();
	run(session, "x = 1");
	assert_int_equal(eval("x = 2\n1/0").code, 1);
	assert_int_equal(eval("def (").code, 1);
	assert_int_equal(eval_in(session, partial, "def f():", NULL).unfinished, 1);
	sb_session *b = branch(session);

	ok(in(b, "x"), "2\n");
	assert_int_equal(eval_in(b, partial, "def f():", NULL).unfinished, 1);
	assert_int_equal(in(b, "1/0").code, 1);
	ok(in(b, "x"), "2\n");
	sb_session_free(b);
}

static void original_goes_while_it_runs(void **state)
{
	other o = { .code = "go = open('/work/go', 'w')\nsum(i for i in range(300000))" };

	NEEDS_PYTHON();
	sb_session *b = branch(session);

	o.session = b;
	start(&o);
	sb_session_free(session);
	session = NULL;
	join(&o);
	ok(o.got, "44999850000\n");
	ok(in(b, "6 * 7"), "42\n");
	sb_session_free(b);
}

static void gone(void **state)
{
	NEEDS_PYTHON();
	assert_int_equal(eval("raise SystemExit(3)").error, SB_ERR_SESSION_CLOSED);
	assert_int_equal(refused(), SB_ERR_SESSION_CLOSED);
	sb_session_free(session);
	limits.wall_ms = 300;
	session = open_one();
	killed(eval("while True: pass"), SB_ERR_TIMEOUT);
	assert_int_equal(refused(), SB_ERR_SESSION_KILLED);
	assert_int_equal(sb_session_reset(session, NULL, &err), 0);
	sb_session *b = branch(session);

	ok(in(b, "6 * 7"), "42\n");
	sb_session_free(b);
}

static void reset_is_empty(void **state)
{
	NEEDS_PYTHON();
	run(session, "x = 1\nopen('/work/f', 'w').close()");
	sb_session *b = branch(session);

	assert_int_equal(sb_session_reset(b, NULL, &err), 0);
	ok(in(b, "import os\n'x' in globals(), os.listdir('/work')"), "(False, [])\n");
	ok(eval("x"), "1\n");
	sb_session_free(b);
}

static void interrupted(void **state)
{
	NEEDS_BRANCHES();
	for (size_t i = 0; i < COUNT(languages); i++) {
		static const char *const loops[] = { "while True: pass", "for (;;);", "for (;;);", "while true do end" };
		other o = { .code = loops[i] };

		if (!open_language(&languages[i]))
			continue;
		run(session, languages[i].define);
		sb_session *b = branch(session), *of = session;

		session = b;
		start(&o);
		interrupt_after(2000);
		join(&o);
		assert_int_equal(o.got.rc, 0);
		assert_int_equal(o.got.error, 0);
		ok(eval(languages[i].look), languages[i].said);
		session = of;
		ok(eval(languages[i].look), languages[i].said);
		sb_session_free(b);
		sb_session_free(session);
		session = NULL;
	}
}

/* ---- limits of each ------------------------------------------------------------------------------------------- */

static void memory_of_each(void **state)
{
	NEEDS_BRANCHES();
	limits.memory_bytes = 96 << 20;
	session = open_one();
	run(session, "a = bytes(30 << 20)");
	sb_session *b = branch(session), *of = session;

	run(b, "b = bytes(20 << 20)");
	run(session, "b = bytes(20 << 20)"); /* what the branch took is not the original's */
	assert_int_equal(eval("len(a) + len(b)").code, 0);
	session = b;
	answer a = eval("c = bytes(90 << 20)");

	assert_true(a.rc == 0 && (a.code == 1 || a.error == SB_ERR_SESSION_KILLED));
	session = of;
	ok(eval("len(a)"), "31457280\n");
	sb_session_free(b);
}

static void disk_of_each(void **state)
{
	NEEDS_BRANCHES();
	limits.fs_bytes = 1 << 20;
	session = open_one();
	run(session, "def fill(name, n):\n    with open('/work/' + name, 'wb') as f: f.write(bytes(n))\nfill('a', 600000)");
	sb_session *b = branch(session);

	run(b, "fill('b', 300000)");
	run(session, "fill('b', 300000)");
	assert_int_equal(in(b, "fill('c', 300000)").code, 1); /* what lay there when it began counts */
	assert_int_equal(eval("fill('c', 300000)").code, 1);
	run(b, "import os\nos.remove('/work/a')\nfill('c', 300000)");
	assert_int_equal(eval("fill('c', 300000)").code, 1);
	sb_session_free(b);
}

static void time_and_output_of_each(void **state)
{
	NEEDS_BRANCHES();
	limits.wall_ms = 700;
	limits.out_total_bytes = limits.out_stream_bytes = 4000;
	limits.out_mode = SB_OUT_STOP;
	session = open_one();
	run(session, "x = 5");
	sb_session *a = branch(session), *b = branch(session);

	assert_int_equal(in(a, "while True: pass").error, SB_ERR_SESSION_KILLED);
	assert_int_equal(in(a, "x").rc, SB_ERR_SESSION_KILLED);
	assert_int_equal(in(b, "print('y' * 8000)").error, SB_ERR_SESSION_KILLED);
	ok(eval("x"), "5\n");
	sb_session_free(a);
	sb_session_free(b);
}

/* ---- many ------------------------------------------------------------------------------------------------------- */

static void many(void **state)
{
	int rounds = getenv("LONG") ? 500 : 25;

	NEEDS_BRANCHES();
	for (size_t i = 0; i < COUNT(languages); i += 3) { /* the heaviest and the lightest */
		if (!open_language(&languages[i]))
			continue;
		run(session, languages[i].define);
		for (int n = 0; n < rounds; n++) {
			sb_session *b = branch(session);

			if (n % 5 == 0)
				ok(in(b, languages[i].look), languages[i].said);
			sb_session_free(b);
		}
		ok(eval(languages[i].look), languages[i].said);
		sb_session_free(session);
		session = NULL;
	}
}

static void chain(void **state)
{
	NEEDS_BRANCHES();
	how.language = "lua";
	if (try_open(&session) == SB_ERR_NOT_FOUND)
		skip();
	run(session, "n = 0");
	for (int i = 0; i < 20; i++) {
		sb_session *next = branch(session);

		run(next, "n = n + 1");
		sb_session_free(session);
		session = next;
	}
	ok(eval("n"), "20\n");
}

typedef struct worker {
	pthread_t thread;
	int failed;
} worker;

static void *branches_and_evaluates(void *arg)
{
	worker *of = arg;

	for (int i = 0; i < 8 && !of->failed; i++) {
		const sb_command code = { .size = sizeof code, .code = "x = x + 1", .code_len = 9 };
		sb_session *b = NULL;
		sb_result *r = NULL;
		int rc = sb_session_fork(session, NULL, NULL, &b, NULL);

		if (rc < 0 && rc != SB_ERR_CONFLICT)
			of->failed = rc;
		if (rc == 0 && (sb_session_eval(b, &code, NULL, &r, NULL) < 0 || sb_result_error(r)))
			of->failed = 1;
		sb_result_free(r);
		r = NULL;
		if (sb_session_eval(session, &code, NULL, &r, NULL) < 0 || sb_result_error(r))
			of->failed = 2;
		sb_result_free(r);
		sb_session_free(b);
	}
	return NULL;
}

static void threads_at_once(void **state)
{
	worker all[3] = { 0 };

	NEEDS_BRANCHES();
	how.language = "lua";
	if (try_open(&session) == SB_ERR_NOT_FOUND)
		skip();
	run(session, "x = 0");
	for (size_t i = 0; i < COUNT(all); i++)
		assert_int_equal(pthread_create(&all[i].thread, NULL, branches_and_evaluates, &all[i]), 0);
	for (size_t i = 0; i < COUNT(all); i++) {
		pthread_join(all[i].thread, NULL);
		assert_int_equal(all[i].failed, 0);
	}
	ok(eval("x"), "24\n");
}

/* ---- steps that fail -------------------------------------------------------------------------------------------- */

/* It rests as before: it evaluates, takes files and gives some, and makes a branch. */
static void goes_on(const char *look, const char *said)
{
	const sb_file given = { .size = sizeof given, .path = "given.txt", .data = "given", .len = 5 };
	answer a = eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &given, NULL } },
			   "open('/out/o', 'w').write(open('/in/given.txt').read()) and None", NULL);

	if (a.rc < 0 || a.code || a.files != 1)
		fail_msg("%d %d %zu: %s", a.rc, a.code, a.files, a.err);
	sb_session *b = branch(session);

	ok(in(b, look), said);
	sb_session_free(b);
}

/* What the evaluation before has closed by then may still have been counted. */
static bool descriptors_left(int before)
{
	const struct timespec tick = { 0, 5000000 };

	for (int i = 0; i < 2000 && open_descriptors() > before; i++)
		nanosleep(&tick, NULL);
	return open_descriptors() > before;
}

/* One descriptor after the other is missing, here and in what is started from here. */
static void no_descriptors(void **state)
{
	struct rlimit was, few;
	sb_session *b = NULL;
	int before, code = -1, base;

	NEEDS_PYTHON();
	run(session, "x = 7");
	goes_on("x", "7\n");
	before = open_descriptors();
	base = dup(1);
	close(base);
	getrlimit(RLIMIT_NOFILE, &was);
	for (int n = 0; code < 0 && n < 200; n++) {
		few = (struct rlimit){ .rlim_cur = (rlim_t)(base + n), .rlim_max = was.rlim_max };
		setrlimit(RLIMIT_NOFILE, &few);
		b = NULL;
		code = sb_session_fork(session, NULL, NULL, &b, &err);
		setrlimit(RLIMIT_NOFILE, &was);
		if (code < 0 && (b || descriptors_left(before)))
			fail_msg("%d more: %d descriptors left by \"%s\"", n, open_descriptors() - before, err.message);
	}
	assert_int_equal(code, 0);
	ok(in(b, "x"), "7\n");
	sb_session_free(b);
	assert_false(descriptors_left(before));
	goes_on("x", "7\n");
}

/* Given up at any moment. */
static void no_time(void **state)
{
	sb_session *b;
	int before, code = -1;

	NEEDS_PYTHON();
	run(session, "x = bytes(4000000)");
	goes_on("len(x)", "4000000\n");
	before = open_descriptors();
	for (uint64_t ms = 1; code < 0 && ms < 60000; ms += ms < 40 ? 1 : ms) {
		const sb_wait wait = { .size = sizeof wait, .timeout_ms = ms };

		b = NULL;
		code = sb_session_fork(session, NULL, &wait, &b, &err);
		if (code < 0 && (code != SB_ERR_TIMEOUT || b || descriptors_left(before)))
			fail_msg("%d ms: %d, %s; %d descriptors, %d before", (int)ms, code, err.message,
				 open_descriptors(), before);
	}
	assert_int_equal(code, 0);
	sb_session_free(b);
	goes_on("len(x)", "4000000\n");
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* What is shown of the host both see; an open file of it is nothing that a branch could be given. */
static void shown_folder(void **state)
{
	char folder[] = "/tmp/sbtest-branch.XXXXXX", file[64], code[200];
	const char *const backends[] = { w.backend, NULL };
	const sb_spec spec = { .size = sizeof spec, .limits = &limits, .backends = backends, .workspace = folder,
			       .workspace_mode = SB_WORKSPACE_READ };

	NEEDS_BRANCHES();
	if (w.is_fake)
		skip();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(file, sizeof file, "%s/f", folder);
	write_file(file, "one");
	if (sb_session_open(w.sandbox, &spec, &how, NULL, &session, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	snprintf(code, sizeof code, "f = open('%s')", file);
	run(session, code);
	assert_int_equal(refused(), SB_ERR_CONFLICT);
	if (!strstr(err.message, "close it first"))
		fail_msg("\"%s\"", err.message);
	run(session, "f.close()");
	sb_session *b = branch(session);

	snprintf(code, sizeof code, "open('%s').read()", file);
	ok(in(b, code), "'one'\n");
	write_file(file, "two");
	ok(in(b, code), "'two'\n");
	ok(eval(code), "'two'\n");
	sb_session_free(b);
	sb_session_free(session);
	session = NULL;
	unlink(file);
	assert_int_equal(rmdir(folder), 0);
}

typedef struct forking {
	pthread_t thread;
	sb_session *made;
	const sb_wait *wait;
	int code;
} forking;

static void *forking_main(void *arg)
{
	forking *f = arg;

	f->code = sb_session_fork(session, NULL, f->wait, &f->made, NULL);
	return NULL;
}

/* By the caller, or under him, at any moment: a branch or none, and nothing is left of what was begun. */
static void cancelled_or_closed(void **state)
{
	NEEDS_BRANCHES();
	how.language = "lua";
	if (try_open(&session) == SB_ERR_NOT_FOUND)
		skip();
	run(session, "x = 5");
	for (unsigned i = 0; i < 40; i++) {
		const struct timespec pause = { 0, i / 2 * 300000 };
		sb_cancel *cancel = NULL;
		bool close = i % 2;

		assert_int_equal(sb_cancel_new(&cancel, &err), 0);
		const sb_wait wait = { .size = sizeof wait, .cancel = cancel };
		forking f = { .wait = &wait };

		assert_int_equal(pthread_create(&f.thread, NULL, forking_main, &f), 0);
		nanosleep(&pause, NULL);
		if (close)
			assert_int_equal(sb_session_close(session, NULL, &err), 0);
		else
			sb_cancel_fire(cancel);
		pthread_join(f.thread, NULL);
		if (f.code < 0)
			assert_int_equal(f.code, close ? SB_ERR_SESSION_CLOSED : SB_ERR_CANCELLED);
		else
			ok(in(f.made, "x"), "5\n");
		sb_session_free(f.made);
		sb_cancel_free(cancel);
		if (close) {
			sb_session_free(session);
			session = open_one();
			run(session, "x = 5");
		}
		ok(eval("x"), "5\n");
	}
}

EVALS_MAIN(TEST(refused_here), TEST(plan_says_so), TEST(each_language), TEST(random_numbers), TEST(more_random_numbers),
	   TEST(files_go_along), TEST(open_files_go_along), TEST(names_of_one_file), TEST(files_of_lua_and_js),
	   TEST(out_of_each), TEST(not_while_busy), TEST(after_what_went_wrong), TEST(original_goes_while_it_runs),
	   TEST(gone), TEST(reset_is_empty), TEST(interrupted), TEST(memory_of_each), TEST(disk_of_each),
	   TEST(time_and_output_of_each), TEST(many), TEST(chain), TEST(threads_at_once),
	   TEST(no_descriptors), TEST(no_time), TEST(shown_folder), TEST(cancelled_or_closed))
