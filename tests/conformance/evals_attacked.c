/* SPDX-License-Identifier: MIT */
/*
 * evals_attacked.c - code that has found the control descriptor and does with it what it wants.
 *
 * It may lie about its own evaluation, or end the session; it never shifts a result into another evaluation,
 * never reaches the host otherwise, and costs it no descriptor.
 */
#include "evals.h"
#include "../unit/folder.h"

static const char find_it[] =
	"import os, socket, sys\n"
	"def control():\n"
	"    for f in map(int, os.listdir('/proc/self/fd')):\n"
	"        try:\n"
	"            if os.readlink(f'/proc/self/fd/{f}').startswith('socket:'): return f\n"
	"        except OSError: pass\n"
	"def word():\n"
	"    f = sys._getframe()\n"
	"    while 'nonce' not in f.f_locals: f = f.f_back\n"
	"    return f.f_locals['nonce']\n"
	"c = control()\n"
	"assert c >= 70\n";

/* Whatever became of it: an evaluation says what is its own, or the session is over. */
static void not_shifted(const char *attack)
{
	for (int i = 0; i < 3; i++) {
		answer a = eval("print('mine')");

		if (a.rc == 0 && !a.error) {
			if (strcmp(a.out, "mine\n") || a.outcome != SB_OUTCOME_EXITED)
				fail_msg("%s\nthen: \"%s\"", attack, a.out);
			continue;
		}
		assert_true(a.rc == 0 || a.rc == SB_ERR_SESSION_CLOSED || a.rc == SB_ERR_SESSION_KILLED);
		assert_in_range(sb_session_state(session), SB_STATE_KILLED, SB_STATE_CLOSED);
		break;
	}
	assert_int_equal(sb_session_reset(session, NULL, &err), 0);
	ok(eval("print('anew')"), "anew\n");
}

static answer attacked(const char *attack)
{
	ok(eval(find_it), "");
	return eval(attack);
}

/* What breaks the protocol is seen at once, and ends the session. */
static void breaches(void **state)
{
	static const char *const all[] = {
		"os.write(c, b'D ' + b'0' * 32 + b' 00000001\\n0')",
		"os.write(c, b'rubbish that is no frame, and is long enough for one')",
		"os.write(c, b'V ' + word() + b' 7fffffff\\n')",
		"os.write(c, b'Z ' + word() + b' 00000000\\n')",
		"try:\n    while True: os.write(c, b'V ' + word() + b' 00000001\\n1')\nexcept OSError: pass\n",
		"s = socket.socket(fileno=os.dup(c))\nsocket.send_fds(s, [b'here' * 20], [0, 1, 2] * 30)",
	};

	NEEDS_PROCESSES();
	for (size_t i = 0; i < COUNT(all); i++) {
		answer a = attacked(all[i]);

		if (a.rc || a.outcome != SB_OUTCOME_VIOLATION || a.cause != SB_ERR_FORBIDDEN)
			fail_msg("%s\n%d, %s", all[i], a.rc, sb_outcome_name(a.outcome));
		not_shifted(all[i]);
	}
}

/* What leaves the driver without its descriptor, or without its frames, ends with it or goes on. */
static void taken_over(void **state)
{
	static const char *const all[] = {
		"os.close(c)",
		"os.dup2(os.open('/dev/null', os.O_RDWR), c)",
		"a, b = socket.socketpair()\nos.dup2(a.fileno(), c)",
		"s = socket.socket(fileno=os.dup(c))\ns.shutdown(socket.SHUT_RDWR)",
		"s = socket.socket(fileno=os.dup(c))\ns.shutdown(socket.SHUT_WR)",
		"os.set_blocking(c, False)",
		"os.write(c, b'D ' + word()[:9])\nos._exit(0)",
		"os.write(c, b'D ' + word()[:9])",
		/* its own end, before the end */
		"os.write(c, b'D ' + word() + b' 00000001\\n0')\nprint('late')",
		/* a child says so, later */
		"d = os.dup(c)\nn = word()\nif os.fork() == 0:\n    import time\n    time.sleep(.02)\n"
		"    os.write(d, b'D ' + n + b' 00000001\\n0')\n    os._exit(0)\n",
		/* somebody else reads what is sent */
		"d = os.dup(c)\nif os.fork() == 0:\n    os.read(d, 20)\n    os._exit(0)\n",
	};

	NEEDS_PROCESSES();
	for (size_t i = 0; i < COUNT(all); i++) {
		answer a = attacked(all[i]);

		assert_true(a.rc == 0);
		not_shifted(all[i]);
	}
}

/* Pid 1 holds the walls: nothing inside can signal, trace or read it, and the session goes on. */
static void first_process(void **state)
{
	if (strcmp(w.backend, "linux"))
		skip(); /* elsewhere it is none of theirs */
	NEEDS_REAL();
	ok(eval("import os, signal\n"
		"def refused(f, *a):\n"
		"    try: f(*a)\n"
		"    except OSError: return True\n"
		"    return False\n"
		"for s in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT): refused(os.kill, 1, s)\n"
		"None"),
	   "");
	ok(eval("[refused(os.listdir, '/proc/1/fd'), refused(open, '/proc/1/mem', 'rb'), "
		"refused(os.readlink, '/proc/1/exe'), refused(open, '/proc/1/environ')]"),
	   "[True, True, True, True]\n");
	ok(eval("print('there')"), "there\n");
}

EVALS_MAIN(TEST(breaches), TEST(taken_over), TEST(first_process));
