/* SPDX-License-Identifier: MIT */
/*
 * warm.c - runs that take a waiting interpreter over are runs like any: the same output to the byte,
 * behind the same walls, and with nothing in them of another run.
 *
 * usage: warm root|user DIRECTORY-OF-SB-LAUNCH
 */
#include "world.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sb_sandbox *hot, *cold;
static char *program;

/* The next run will find a worker. */
static void heat(sb_sandbox *sandbox)
{
	sb_result_free(world_do(sandbox, &(world_run){ .code = "pass" }));
	world_ready(2);
}

static int begin(void **state)
{
	(void)state;
	hot = world_sandbox(SB_SANDBOX_WARM);
	cold = world_sandbox(0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sb_sandbox_free(hot);
	sb_sandbox_free(cold);
	hot = cold = NULL;
	return world_children("sb-launch", NULL, 0) != 0;
}

/* ---- the same as cold --------------------------------------------------------------------------- */

static const char *const programs[] = {
	"print(1)",
	"import sys; print(sys.argv, sys.path[0], __file__, __name__, sys.orig_argv, sys.flags)",
	"print(sorted(globals()), __doc__, __spec__, type(__loader__), __package__, __annotations__)",
	"\"\"\"doc\"\"\"\nprint(__doc__)",
	"1/0",
	"def f():\n  raise ValueError('x')\ntry:\n  f()\nexcept Exception as e:\n  raise KeyError('y') from e",
	"x = = 1",
	"import sys; sys.exit(7)",
	"import sys; sys.exit('bye')",
	"import sys; sys.exit(300)",
	"import sys; sys.exit(-1)",
	"def g():\n  raise SystemExit(3)\ng()",
	"raise KeyboardInterrupt",
	"import os; os._exit(5)",
	"import os, signal; os.kill(os.getpid(), 15)",
	"import sys; print(repr(sys.stdin.read()), sys.stdin.isatty(), sys.stdout.isatty(),\n"
	"  sys.stdout.line_buffering, sys.stdout.encoding, sys.stdout.errors, sys.stdin.fileno())",
	"import os, stat; print([stat.S_IFMT(os.fstat(n).st_mode) for n in (0, 1, 2)])",
	"import os; print(sorted(os.listdir('/proc/self/fd')))",
	"import os; print(sorted(os.environ.items()), os.getcwd(), os.umask(0), os.getpid() > 1, os.getpgrp() "
	"== os.getpid(), os.getsid(0) == os.getpid())",
	"import os; print([(d, sorted(os.listdir(d))) for d in ('/in', '/out', '/work', '/tmp', '/home/sandbox', "
	"'/run/code')])",
	"print(open(__file__).read(), __import__('os').stat(__file__).st_mode)",
	"f = open('/out/x', 'w'); f.write('data')",
	"f = open('/out/x', 'w'); f.write('data'); 1/0",
	"import json; json.x = open('/out/x', 'w'); json.x.write('data')",
	"import builtins; builtins.x = open('/out/x', 'w'); x.write('data')",
	"import functools\n@functools.lru_cache\ndef f(x): return x\nf(open('/out/x', 'w')).write('data')",
	"class A:\n  def __del__(s): print('del')\na = A()",
	"class A:\n  __slots__ = ()\n  def __del__(s): print('del')\na = A()",
	"class A:\n  def __del__(s): print('del', B)\nB = 3\na = A()\nb = [a]; b.append(b)",
	"class A: pass\nA.__del__ = lambda s: print('late')\na = A()",
	"class M(type):\n  def __del__(c): print('meta')\nclass A(metaclass=M): pass",
	"import gc\nclass A:\n  def __del__(s): print('del')\na = A()\ngc.freeze()",
	"def g():\n  try:\n    yield 1\n  finally: print('fin')\nx = g(); next(x)",
	"import weakref\nclass A: pass\na = A()\nr = weakref.ref(a, lambda x: print('callback'))",
	"import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')",
	"import atexit; atexit.register(print, 'exit')",
	"import atexit; atexit._clear(); print(1)",
	"import sys\nsys.excepthook = lambda t, v, tb: print('hook', t, v, tb.tb_lineno)\n1/0",
	"import sys; sys.stdout.write('no newline'); sys.stderr.write('e')",
	"import sys, io; sys.stdout = io.StringIO(); print('x')",
	"import os; os.close(1); print('x')",
	"print('x'); __import__('sys').stdout.close()",
	"import os\nprint('x', flush=True)\nif os.fork(): os.wait()\nprint('y', flush=True)",
	"import threading, time\nt = threading.Thread(target=lambda: (time.sleep(.1), print('t'))); t.start()",
	"import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(2)'], capture_output=True))",
	"import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
	"  m.set_start_method('spawn')\n  with m.Pool(2) as p: print(p.map(f, [1, 2, 3]))",
	"import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))))",
	"import warnings; warnings.warn('w')",
	"import asyncio\nasync def m(): print('a')\nasyncio.run(m())",
	"# -*- coding: latin-1 -*-\nprint('\xe9'.encode())",
	"from __future__ import annotations\nx: int = 3\nprint(__annotations__)",
	"import json, re, datetime; print(json.dumps({'a': [1, 2]}), re.findall('a+', 'caat'), datetime.date(2020, "
	"1, 2))",
};

/* Addresses and the like differ from one interpreter to the next. */
static char *plain(const char *text)
{
	char *out = strdup(text), *to = out;

	for (const char *at = text; *at;) {
		if (at[0] == '0' && at[1] == 'x') {
			to = stpcpy(to, "0x");
			at += 2 + strspn(at + 2, "0123456789abcdef");
		} else {
			*to++ = *at++;
		}
	}
	*to = 0;
	return out;
}

static void same_text(size_t row, const char *a, const char *b)
{
	char *x = plain(a), *y = plain(b);

	if (strcmp(x, y))
		fail_msg("program %zu:\n%s\nis not\n%s", row, x, y);
	free(x);
	free(y);
}

static void same_files(size_t row, const sb_tree *a, const sb_tree *b)
{
	sb_node x = { .size = sizeof x }, y = { .size = sizeof y };

	assert_int_equal(sb_tree_count(a), sb_tree_count(b));
	for (size_t i = 0; i < sb_tree_count(a); i++) {
		assert_int_equal(sb_tree_at(a, i, &x), 0);
		assert_int_equal(sb_tree_at(b, i, &y), 0);
		unit_row(row, !strcmp(x.path, y.path) && x.len == y.len && !memcmp(x.data, y.data, x.len));
	}
}

static void same_run(size_t row, const world_run *run)
{
	heat(hot);
	sb_result *a = world_do(hot, run), *b = world_do(cold, run);

	same_text(row, world_out(a), world_out(b));
	same_text(row, world_err(a), world_err(b));
	unit_row(row, sb_result_outcome(a) == sb_result_outcome(b));
	unit_row(row, sb_result_code(a) == sb_result_code(b));
	unit_row(row, sb_result_signal(a) == sb_result_signal(b));
	unit_row(row, sb_result_error(a) == sb_result_error(b));
	same_files(row, sb_result_files(a), sb_result_files(b));
	sb_result_free(a);
	sb_result_free(b);
}

static void same_as_cold(void **state)
{
	(void)state;
	heat(hot);
	world_says(hot, "print(" IS_WARM ")", "True\n");
	world_says(cold, "print(" IS_WARM ")", "False\n");
	for (size_t i = 0; i < UNIT_LEN(programs); i++)
		same_run(i, &(world_run){ .code = programs[i] });
}

static void same_with_input(void **state)
{
	static const char code[] = "import sys; print(sys.argv[1:], sys.stdin.read(), open('/in/a/b').read())";
	static char big[100000];
	const sb_file file = { .size = sizeof file, .path = "a/b", .data = "file", .len = 4 };
	const sb_file *const files[] = { &file, NULL };
	const char *few[] = { "a", "b \xc3\xbc", "", "\xff", NULL }, *many[] = { big, "x", NULL };
	sb_command c = { .files = files, .args = few, .input_kind = SB_INPUT_BYTES, .input = "in",
		.input_len = 2 };

	(void)state;
	memset(big, 'z', sizeof big - 1);
	same_run(0, &(world_run){ .code = code, .command = c });
	c.args = many;
	same_run(1, &(world_run){ .code = "import sys; print(len(sys.argv[1]), sys.argv[2:])", .command = c });
}

static void same_with_descriptor(void **state)
{
	sb_command c = { .input_kind = SB_INPUT_FD };

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fds[2];

		heat(hot);
		assert_int_equal(pipe(fds), 0);
		c.input_fd = fds[0];
		assert_int_equal(write(fds[1], "line\n", 5), 5);
		close(fds[1]);
		sb_result *r = world_do(i ? cold : hot, &(world_run){ .code = "print(input())", .command = c });

		assert_string_equal(world_out(r), "line\n");
		sb_result_free(r);
		close(fds[0]);
	}
}

/* What the kernel says of the process itself: ids, capabilities, filters, limits, mounts, namespaces. */
static const char walls[] =
	"import re, os\n"
	"for line in open('/proc/self/status'):\n"
	"  if re.match('Cap|NoNew|Seccomp|NSpid|NStgid|NSsid|Groups|Sig(Blk|Ign|Cgt)|TracerPid', line):\n"
	"    print(line, end='')\n"
	"print(open('/proc/self/limits').read())\n"
	"for line in open('/proc/self/mountinfo'):\n"
	"  line = re.sub(r'^\\d+ \\d+ \\d+:\\d+|[ug]id=\\d+', '', line); print(line, end='')\n"
	"print(re.sub('[0-9a-f-]+', '', open('/proc/self/cgroup').read()))\n"
	"print(re.sub(r' \\d+ ', ' N ', open('/proc/self/uid_map').read()))\n"
	"print(sorted(os.listdir('/proc')) == sorted(os.listdir('/proc')), len([p for p in os.listdir('/proc') "
	"if p.isdigit()]))\n"
	"print(os.getpriority(0, 0), os.sched_getaffinity(0), os.getresuid(), os.getresgid())\n"
	"for path in ('/etc/shadow', '/proc/1/mem', '/proc/1/environ', '/root', '/sys', '/proc/sys/kernel/x'):\n"
	"  try: open(path, 'w' if 'sys' in path else 'r'); print(path, 'open')\n"
	"  except OSError as e: print(path, e)\n"
	"import socket\n"
	"for kind in (socket.AF_INET, socket.AF_NETLINK, socket.AF_PACKET):\n"
	"  try:\n"
	"    s = socket.socket(kind, socket.SOCK_RAW if kind == socket.AF_PACKET else socket.SOCK_STREAM)\n"
	"    s.connect(('10.0.0.1', 80)); print(kind, 'connected')\n"
	"  except OSError as e: print(kind, e)\n";

static void same_walls(void **state)
{
	(void)state;
	same_run(0, &(world_run){ .code = walls });
}

/* ---- limits, and the end ------------------------------------------------------------------------- */

static void ends_as(const world_run *run, int outcome, int error)
{
	sb_sandbox *own = world_sandbox(SB_SANDBOX_WARM);

	sb_result_free(world_do(own, &(world_run){ .code = "pass", .limits = run->limits }));
	world_ready(2);
	sb_result *r = world_do(own, run);

	if (sb_result_outcome(r) != outcome || sb_result_error(r) != error)
		fail_msg("%.60s: %s", run->code, sb_result_json(r));
	sb_result_free(r);
	sb_sandbox_free(own);
}

static void limits_hold(void **state)
{
	const sb_limits time = { .wall_ms = 300 }, cpu = { .cpu_ms = 400, .wall_ms = 100000 },
			pids = { .procs = 12 };

	(void)state;
	ends_as(&(world_run){ .code = "import time; time.sleep(600)", .limits = time },
		SB_OUTCOME_TIMED_OUT, SB_ERR_TIMEOUT);
	ends_as(&(world_run){ .code = "while True: pass", .limits = cpu },
		SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_CPU_LIMIT);
	ends_as(&(world_run){ .code = "x = b'x' * (200 << 20); print(len(x))" },
		SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_MEMORY_LIMIT);
	ends_as(&(world_run){ .code = "open('/tmp/x', 'wb').write(b'x' * (40 << 20))" },
		SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_FS_QUOTA);
	ends_as(&(world_run){ .code = "print('x' * (2 << 20))" }, SB_OUTCOME_BUDGET_EXCEEDED,
		SB_ERR_OUTPUT_LIMIT);
	if (world_root) /* else there may be no cgroup that counts them */
		ends_as(&(world_run){ .code = "import os\nwhile True: os.fork()", .limits = pids },
			SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_PIDS_LIMIT);
}

/* Limits of one's own are a kind of one's own: it takes one run before there is a worker for it. */
static void kinds_apart(void **state)
{
	const sb_limits small = { .memory_bytes = 48 << 20 };
	const char *const env[] = { "PYTHONHASHSEED=0", NULL };
	const world_run runs[] = {
		{ .code = "print(" IS_WARM ")", .limits = small },
		{ .code = "import sys; print(" IS_WARM ", sys.flags.hash_randomization)",
		  .command = { .env = env } },
	};

	(void)state;
	heat(hot);
	for (size_t i = 0; i < UNIT_LEN(runs); i++) {
		sb_result *first = world_do(hot, &runs[i]);

		unit_row(i, !strncmp(world_out(first), "False", 5));
		sb_result_free(first);
		world_ready(2 * (i + 2));
		sb_result *second = world_do(hot, &runs[i]);

		unit_row(i, !strncmp(world_out(second), "True", 4));
		unit_row(i, i == 0 || !strcmp(world_out(second), "True 0\n"));
		sb_result_free(second);
	}
}

static void files_too_large(void **state)
{
	static char much[3 << 20];
	const sb_limits limits = { .fs_bytes = 4 << 20, .fs_nodes = 8 };
	const sb_file one = { .size = sizeof one, .path = "a/b/c/d/e/f/g/h/i/j", .data = much, .len = 1 };
	const sb_file *const files[] = { &one, NULL };
	world_run run = { .code = "print(1)", .limits = limits };
	sb_result *r;
	int codes[2];

	(void)state;
	sb_result_free(world_do(hot, &run));
	world_ready(2);
	run.command.files = files;
	codes[0] = world_try(hot, &run, &r);
	codes[1] = world_try(cold, &run, &r);
	assert_int_equal(codes[0], codes[1]);
	assert_true(codes[0] < 0);
}

static void cancelled(void **state)
{
	sb_cancel *cancel;
	sb_result *r;
	const sb_wait later = { .size = sizeof later, .timeout_ms = 3000 };
	sb_wait now = { .size = sizeof now };

	(void)state;
	heat(hot);
	assert_int_equal(sb_cancel_new(&cancel, NULL), 0);
	sb_cancel_fire(cancel);
	now.cancel = cancel;
	assert_int_equal(world_try(hot, &(world_run){ .code = "print(1)", .wait = &now }, &r),
			 SB_ERR_CANCELLED);
	r = world_do(hot, &(world_run){ .code = "import time; time.sleep(600)", .wait = &later });
	assert_int_equal(sb_result_outcome(r), SB_OUTCOME_TIMED_OUT);
	sb_result_free(r);
	sb_cancel_free(cancel);
	heat(hot);
	world_says(hot, "print(" IS_WARM ")", "True\n");
}

/* ---- killed ----------------------------------------------------------------------------------------- */

static void kill_all(const char *name)
{
	pid_t pids[16];
	size_t n = world_children(name, pids, 16);

	for (size_t i = 0; i < n && i < 16; i++)
		kill(pids[i], SIGKILL);
}

/* Whoever of a worker is killed while it waits, the run only starts cold. */
static void killed_while_waiting(void **state)
{
	static const char *const whom[] = { "python3", "sb-launch" };

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(whom); i++)
		for (int at_once = 0; at_once < 2; at_once++) {
			heat(hot);
			kill_all(whom[i]);
			if (!at_once)
				world_await("python3", 0);
			world_says(hot, "print(1)", "1\n");
		}
}

static void *killer(void *arg)
{
	_Atomic int *stop = arg;
	struct timespec pause = { .tv_nsec = 700000 };
	unsigned turn = 0;
	uint64_t seed = 1;

	while (!*stop) {
		pid_t pids[16];
		size_t n = world_children(turn++ % 2 ? "python3" : "sb-launch", pids, 16);

		n = n > 16 ? 16 : n;
		/* one of many, and a run may well be in it */
		if (n > 1)
			kill(pids[unit_random(&seed) % n], SIGKILL);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Killed at any moment, the starting of a worker or the taking over included: each run has one defined end,
 * its own or a signal's, and nothing is left. */
static void killed_at_any_moment(void **state)
{
	_Atomic int stop = 0;
	pthread_t thread;
	sb_result *r;

	(void)state;
	heat(hot);
	assert_int_equal(pthread_create(&thread, NULL, killer, (void *)&stop), 0);
	for (int i = 0; i < 30; i++) {
		int code = world_try(hot, &(world_run){ .code = "print(1)" }, &r);

		if (code < 0) { /* the launcher of a cold start was killed before anything ran */
			assert_true(code == SB_ERR_CONNECTION_LOST || code == SB_ERR_BACKEND_UNAVAILABLE);
			continue;
		}
		if (sb_result_outcome(r) == SB_OUTCOME_EXITED && sb_result_code(r) == 0)
			assert_string_equal(world_out(r), "1\n");
		else if (sb_result_outcome(r) == SB_OUTCOME_SIGNALED)
			assert_int_equal(sb_result_signal(r), SIGKILL);
		else
			assert_int_equal(sb_result_outcome(r), SB_OUTCOME_LOST);
		sb_result_free(r);
	}
	stop = 1;
	pthread_join(thread, NULL);
	world_says(hot, "print(1)", "1\n");
}

/* Started anew, so that nothing of this process is in it: heats a sandbox, says so, and waits. */
static int host_main(void)
{
	sb_sandbox *own = world_sandbox(SB_SANDBOX_WARM);
	sb_result *r;

	if (world_try(own, &(world_run){ .code = "pass" }, &r) < 0)
		return 1;
	sb_result_free(r);
	if (write(1, "x", 1) != 1)
		return 1;
	pause();
	return 0;
}

static void has_gone(pid_t pid)
{
	struct timespec pause = { .tv_nsec = 5000000 };

	for (int i = 0; i < 4000 && kill(pid, 0) == 0; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(kill(pid, 0), -1);
}

/* A host that is killed takes the workers along. */
static void host_killed(void **state)
{
	char *const argv[] = { (char *)"warm", (char *)"host", (char *)world_helpers(), NULL };
	struct pollfd said = { .events = POLLIN };
	pid_t pid, pids[16];
	int told[2];
	size_t n;

	(void)state;
	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (!pid) {
		dup2(told[1], 1);
		close(told[0]);
		close(told[1]);
		execv(program, argv);
		_exit(127);
	}
	close(told[1]);
	said.fd = told[0];
	assert_int_equal(poll(&said, 1, 60000), 1);
	world_await("python3", 2);
	n = world_children("python3", pids, 16);
	n += world_children("sb-launch", pids + n, 16 - n);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (size_t i = 0; i < n && i < 16; i++)
		has_gone(pids[i]);
	close(told[0]);
}

/* ---- nothing of another run ------------------------------------------------------------------------- */

/* Looks for what TENANT's other one left, and leaves all that it can. */
static const char tenant[] =
	"import builtins, gc, json, math, os, random, re, signal, sys, socket, threading\n"
	"import collections, datetime\n"
	"me = sys.argv[1]\n"
	"bad = []\n"
	"def check(what, fine):\n"
	"  if not fine: bad.append(what)\n"
	"check('builtins', not hasattr(builtins, 'mark'))\n"
	"check('module', not hasattr(json, 'mark') and json.dumps(1) == '1' and math.pi > 3)\n"
	"check('globals', 'mark' not in globals())\n"
	"check('environ', 'MARK' not in os.environ and b'MARK' not in open('/proc/self/environ', 'rb').read())\n"
	"check('argv', sys.argv == ['/run/code/__main__.py', me])\n"
	"check('cwd', os.getcwd() == '/work')\n"
	"for d in ('/tmp', '/work', '/out', '/home/sandbox', '/dev/shm'):\n"
	"  check(d, os.listdir(d) == [])\n"
	"check('in', os.listdir('/in') == [me])\n"
	"check('code', os.listdir('/run/code') == ['__main__.py'])\n"
	"check('fds', sorted(os.listdir('/proc/self/fd')) == ['0', '1', '2', '3'])\n"
	"check('path', '/mark' not in sys.path and 'mark' not in sys.modules)\n"
	"check('signal', signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL)\n"
	"check('umask', os.umask(0o77) == 0o22)\n"
	"check('re', not any('mark' in str(k) for k in re._cache))\n"
	"check('processes', sorted(p for p in os.listdir('/proc') if p.isdigit()) == ['1', str(os.getpid())])\n"
	"check('threads', threading.active_count() == 1)\n"
	"check('host', socket.gethostname() == 'sandbox')\n"
	"check('memory', not any(isinstance(o, dict) and 'secret-of' in o for o in gc.get_objects()))\n"
	"print(hash('x'), random.random(), id(object()), bad)\n"
	"builtins.mark = json.mark = mark = me\n"
	"json.dumps = lambda x: 'mark'; math.pi = 1\n"
	"os.environ['MARK'] = me; sys.path.insert(0, '/mark'); sys.modules['mark'] = json\n"
	"held = {'secret-of': me}\n"
	"for d in ('/tmp', '/work', '/home/sandbox', '/dev/shm'):\n"
	"  open(d + '/' + me, 'w').write(me)\n"
	"os.chdir('/tmp'); random.seed(1); re.compile('mark')\n"
	"signal.signal(signal.SIGUSR1, lambda *a: None)\n"
	"kept = [os.open('/tmp/' + me, os.O_RDONLY) for i in range(20)]\n"
	"if os.fork() == 0:\n"
	"  os.setsid(); os.close(1); os.close(2); signal.pause()\n";

typedef struct drawn {
	long long hash;
	double number;
	unsigned long long address;
} drawn;

static void one_tenant(sb_sandbox *sandbox, const char *name, drawn *out)
{
	const sb_file file = { .size = sizeof file, .path = name, .data = name, .len = strlen(name) };
	const sb_file *const files[] = { &file, NULL };
	const char *const args[] = { name, NULL };
	sb_result *r = world_do(sandbox, &(world_run){ .code = tenant,
		.command = { .args = args, .files = files } });
	char bad[400] = "";

	if (sb_result_code(r) ||
	    sscanf(world_out(r), "%lld %lf %llu %399[^\n]", &out->hash, &out->number, &out->address, bad) != 4 ||
	    strcmp(bad, "[]"))
		fail_msg("%s: %s", name, sb_result_json(r));
	sb_result_free(r);
}

static void two_tenants(void **state)
{
	size_t runs = getenv("LONG") ? 1000 : 60, same_address = 0;
	drawn *all = calloc(2 * runs, sizeof *all);

	(void)state;
	assert_non_null(all);
	for (size_t i = 0; i < 2 * runs; i++)
		one_tenant(hot, i % 2 ? "alice" : "bob", &all[i]);
	for (size_t i = 0; i < 2 * runs; i++)
		for (size_t j = 0; j < i; j++) {
			unit_row(i, all[i].hash != all[j].hash && all[i].number != all[j].number);
			same_address += all[i].address == all[j].address;
		}
	/* drawn anew by the kernel from 2^28 or more */
	assert_true(same_address < runs / 50 + 2);
	free(all);
}

/* ---- many threads, and what stays -------------------------------------------------------------------- */

static void *several(void *arg)
{
	for (int i = 0; i < 6; i++) {
		char code[64], text[64];
		sb_result *r;

		snprintf(code, sizeof code, "print(%d, %d)", *(int *)arg, i);
		snprintf(text, sizeof text, "%d %d\n", *(int *)arg, i);
		const sb_command command = { .size = sizeof command, .language = "python", .code = code,
			.code_len = strlen(code) };
		sb_error err;

		if (sb_run(hot, NULL, &command, NULL, &r, &err) < 0) {
			fprintf(stderr, "%s: %s\n", err.where, err.message);
			return arg;
		}
		bool fine = !strcmp(world_out(r), text);

		sb_result_free(r);
		if (!fine)
			return arg;
	}
	return NULL;
}

static void threads_at_once(void **state)
{
	pthread_t threads[4];
	int number[4];
	void *bad;

	(void)state;
	for (int i = 0; i < 4; i++) {
		number[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, several, &number[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	/* no more than the most of one kind */
	assert_true(world_children("python3", NULL, 0) <= 4);
}

static void nothing_stays(void **state)
{
	int before = open_descriptors();
	sb_sandbox *own = world_sandbox(SB_SANDBOX_WARM);

	(void)state;
	heat(own);
	world_says(own, "print(" IS_WARM ")", "True\n");
	assert_int_equal(sb_sandbox_close(own, NULL, &world_error), 0);
	world_await("python3", 0);
	assert_int_equal(world_children("sb-launch", NULL, 0), 0);
	sb_sandbox_free(own);
	assert_int_equal(open_descriptors(), before);
}

static void child_ignored(void **state)
{
	(void)state;
	signal(SIGCHLD, SIG_IGN);
	heat(hot);
	world_says(hot, "print(" IS_WARM ")", "True\n");
	signal(SIGCHLD, SIG_DFL);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(same_as_cold), TEST(same_with_input), TEST(same_with_descriptor), TEST(same_walls),
		TEST(limits_hold), TEST(kinds_apart), TEST(files_too_large), TEST(cancelled),
		TEST(killed_while_waiting), TEST(killed_at_any_moment), TEST(two_tenants),
		TEST(threads_at_once), TEST(nothing_stays), TEST(child_ignored),
		cmocka_unit_test(host_killed),
	};
	int rc = world_begin(argc, argv);

	program = (char *)"/proc/self/exe";
	if (!rc && !strcmp(argv[1], "host"))
		return host_main();
	return rc ? rc : cmocka_run_group_tests_name("warm", tests, NULL, NULL);
}
