/* SPDX-License-Identifier: MIT */
/*
 * ends.c - however it ends, nothing is left: host, supervisor or pid 1 gone at any moment.
 *
 * Also the subreaper, which has no namespaces.
 */
#include "fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const tree[] = { "/bin/sh", "-c",
	"sleep $M & setsid sleep $M & (setsid sh -c 'trap \"\" TERM HUP; sleep $M' &); echo up; "
	"kill -STOP $$", NULL };

static void up(fix *f, lh_answer *ready)
{
	fix_open(f);
	fix_plan(f);
	fix_start(f, ready, NULL);
}

static void spawn_tree(fix *f, int *out, int *exited)
{
	char text[8];

	fix_spawn(f, tree, "/", 0, out, exited);
	assert_int_equal(read(*out, text, sizeof text), 3);
}

/* The exit pipe closes only when no one has it: what the host waits for, whatever happened. */
static void expect_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	assert_int_equal(poll(&p, 1, FIX_WAIT_MS), 1);
	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
}

static void host_closes(void **state)
{
	int out, exited;
	fix f;

	(void)state;
	up(&f, NULL);
	spawn_tree(&f, &out, &exited);
	fix_expect_count(f.mark, 3);
	lh_close(f.box); /* returns when sb-launch has ended: nothing may be left by then */
	f.box = NULL;
	assert_int_equal(fix_count(f.mark), 0);
	expect_closed(exited);
	close(out);
	fix_close(&f);
}

/* A host that is killed cannot close anything by itself. */
static void host_is_killed(void **state)
{
	int told[2], status;
	char byte;
	pid_t pid;
	fix f = { .dir = "" };

	(void)state;
	fix_open(&f);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int out, exited;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is given up leaves nothing either */
		fix_plan(&f);
		fix_start(&f, NULL, NULL);
		spawn_tree(&f, &out, &exited);
		if (write(told[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	fix_expect_count(f.mark, 3);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fix_expect_none(f.mark);
	fix_close(&f);
}

static void supervisor_is_killed(void **state)
{
	int out, exited;
	fix f;

	(void)state;
	up(&f, NULL);
	spawn_tree(&f, &out, &exited);
	assert_int_equal(kill((pid_t)lh_pid(f.box), SIGKILL), 0);
	expect_closed(exited);
	fix_expect_none(f.mark);
	close(out);
	fix_close(&f);
}

/* GONE without EXITED. */
static void pid1_is_killed(void **state)
{
	lh_answer answer;
	int out, exited;
	fix f;

	(void)state;
	up(&f, &answer);
	spawn_tree(&f, &out, &exited);
	assert_int_equal(kill(answer.ready.pid1, SIGKILL), 0);
	do
		fix_next(&f, &answer, NULL);
	while (answer.head.kind == LP_SPAWNED);
	assert_int_equal(answer.head.kind, LP_GONE);
	assert_int_equal(fix_count(f.mark), 0);
	expect_closed(exited);
	close(out);
	fix_close(&f);
}

/* A guest that stops every process it sees, so also the child that pid 1 waits for until it has executed
 * its program.  pid 1 may stand still then; the box can be ended all the same. */
static void guest_stops_everyone(void **state)
{
	static const char *const stopper[] = { "/bin/sh", "-c", "echo; : $M; while :; do kill -STOP -1; done",
		NULL };
	static const char *const victim[] = { "/bin/sh", "-c", "sleep $M", NULL };
	int out[9], i;
	char byte;
	fix f;

	(void)state;
	up(&f, NULL);
	fix_spawn(&f, stopper, "/", 0, &out[0], NULL);
	assert_int_equal(read(out[0], &byte, 1), 1);
	for (i = 1; i < 9; i++)
		fix_spawn(&f, victim, "/", 0, &out[i], NULL);
	usleep(20000);
	lh_close(f.box);
	f.box = NULL;
	assert_int_equal(fix_count(f.mark), 0);
	for (i = 0; i < 9; i++) {
		while (read(out[i], &byte, 1) > 0)
			;
		close(out[i]); /* end of file: nobody has it any more */
	}
	fix_close(&f);
}

/* Signals that end other programs do not end sb-launch: the host decides. */
static void supervisor_ignores_signals(void **state)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGUSR1, SIGPIPE };
	fix_run run;
	size_t i;
	fix f;

	(void)state;
	up(&f, NULL);
	for (i = 0; i < UNIT_LEN(signals); i++)
		assert_int_equal(kill((pid_t)lh_pid(f.box), signals[i]), 0);
	fix_sh(&f, "echo here", &run);
	fix_expect_out(&run, "here\n");
	fix_close(&f);
}

/* Kills after 0, 100, 200 ... microseconds: in the middle of every step of the start. */
static void killed_while_it_starts(void **state)
{
	const char *const argv[] = { "/bin/sh", "-c", "sleep $M & exec sleep $M", NULL };
	unsigned i;

	(void)state;
	for (i = 0; i < 60; i++) {
		int out, exited;
		fix f;
		sb_error err = { 0 };

		fix_open(&f);
		fix_plan(&f);
		lh_plan_mount(f.plan, LP_M_REMOUNT_RO, NULL, NULL, 0, 0);
		assert_int_equal(lh_start(fix_launch, f.plan, &f.box, &err), 0);
		fix_spawn(&f, argv, "/", 0, &out, &exited);
		usleep(i * 100);
		if (i % 2)
			kill((pid_t)lh_pid(f.box), SIGKILL);
		lh_close(f.box);
		f.box = NULL;
		expect_closed(exited);
		fix_expect_none(f.mark);
		close(out);
		fix_close(&f);
	}
}

/* ---- Without namespaces -------------------------------------------------------------------------- */

static void subreaper_plan(fix *f)
{
	fix_open(f);
	f->plan = lh_plan_new();
	assert_non_null(f->plan);
	f->plan->fixed.steps = LP_SUBREAPER | LP_SESSION | LP_CLOSE_FDS | LP_UNDUMPABLE |
		LP_NO_NEW_PRIVS | LP_NO_CAPS | LP_SECCOMP;
	f->plan->fixed.uid_outside = f->plan->fixed.uid_outer = f->plan->fixed.uid_inside = getuid();
	f->plan->fixed.gid_outside = f->plan->fixed.gid_outer = f->plan->fixed.gid_inside = getgid();
	if (fix_root) {
		f->plan->fixed.steps |= LP_OWN_GROUP;
		f->plan->fixed.uid_outside = f->plan->fixed.gid_outside = 54321;
	}
}

static void subreaper_start(fix *f, lh_answer *ready)
{
	sb_error err = { 0 };

	assert_int_equal(lh_start(fix_launch, f->plan, &f->box, &err), 0);
	fix_next(f, ready, NULL);
	assert_int_equal(ready->head.kind, LP_READY);
}

static void subreaper_runs(void **state)
{
	lh_answer ready;
	fix_run run;
	fix f;

	(void)state;
	subreaper_plan(&f);
	subreaper_start(&f, &ready);
	assert_int_equal(ready.ready.held, f.plan->fixed.steps);
	fix_sh(&f, "sleep $M & (setsid sleep $M &); id -u; id -G; grep -e NoNew -e Seccomp: -e CapEff "
		   "/proc/self/status | tr -s '\\t\\n' '  '; exit 5", &run);
	fix_expect_exit(&run, 5);
	assert_non_null(strstr(run.out, fix_root ? "54321\n54321\n" : "1000\n1000\n"));
	assert_non_null(strstr(run.out, "CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2"));
	assert_true(run.end.exited.empty);
	assert_int_equal(fix_count(f.mark), 0);
	fix_close(&f);
}

static void subreaper_dies_with_the_host(void **state)
{
	lh_answer ready;
	int out, exited;
	fix f;

	(void)state;
	subreaper_plan(&f);
	subreaper_start(&f, &ready);
	spawn_tree(&f, &out, &exited);
	fix_expect_count(f.mark, 3);
	lh_close(f.box);
	f.box = NULL;
	assert_int_equal(fix_count(f.mark), 0);
	expect_closed(exited);
	close(out);
	fix_close(&f);
}

/* Landlock without a root of its own: only what the rows name. */
static void subreaper_is_confined(void **state)
{
	static const char *const shown[] = { "/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache" };
	lh_answer ready;
	char script[512];
	fix_run run;
	size_t i;
	fix f;

	(void)state;
	subreaper_plan(&f);
	fix_write(f.dir, "outside", "secret");
	f.plan->fixed.steps |= LP_LANDLOCK;
	if (fix_root)
		assert_int_equal(chown(f.ws, 54321, 54321), 0);
	for (i = 0; i < UNIT_LEN(shown); i++)
		lh_plan_mount(f.plan, LP_M_BIND, shown[i], shown[i], LP_F_READONLY | LP_F_OPTIONAL, 0);
	lh_plan_mount(f.plan, LP_M_DEVICE, "/dev/null", "/dev/null", LP_F_WRITE, 0);
	lh_plan_mount(f.plan, LP_M_BIND, f.ws, f.ws, LP_F_WRITE, 0);
	subreaper_start(&f, &ready);
	assert_int_equal(ready.ready.held, f.plan->fixed.steps);
	assert_true(ready.ready.landlock_abi > 0);
	snprintf(script, sizeof script, "cd %s && echo in > made && cat made; cat ../outside; ls /; "
		 ": > ../new", f.ws);
	fix_sh(&f, script, &run);
	assert_int_equal(run.end.head.kind, LP_EXITED);
	assert_int_equal(strncmp(run.out, "in\n", 3), 0);
	assert_null(strstr(run.out, "secret"));
	assert_null(strstr(run.out, "proc"));
	assert_true(fix_exists(f.ws, "made"));
	assert_false(fix_exists(f.dir, "new"));
	fix_close(&f);
}

static void subreaper_watches(void **state)
{
	lh_answer answer;
	uint32_t id;
	int out;
	const char *const argv[] = { "/bin/sh", "-c", "sleep $M & while :; do :; done", NULL };
	fix f;

	(void)state;
	subreaper_plan(&f);
	f.plan->fixed.steps |= LP_SAMPLE;
	f.plan->fixed.sample_us = 20000;
	f.plan->fixed.cpu_us = 200000;
	subreaper_start(&f, &answer);
	id = fix_spawn(&f, argv, "/", 0, &out, NULL);
	fix_await(&f, LP_LIMIT, 0, &answer);
	assert_int_equal(answer.limit.limit, LP_LIMIT_CPU);
	fix_await(&f, LP_EXITED, id, &answer);
	assert_int_equal(answer.exited.limit, LP_LIMIT_CPU);
	assert_int_equal(answer.exited.signo, SIGKILL);
	assert_true(answer.exited.usage.user_us + answer.exited.usage.system_us >= 150000);
	assert_int_equal(fix_count(f.mark), 0);
	close(out);
	fix_close(&f);
}

/* ---- The watcher of a box ------------------------------------------------------------------------- */

static void watched(const char *script, uint32_t limit)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	lh_answer answer;
	uint32_t id;
	int out;
	fix f;

	fix_open(&f);
	fix_plan(&f);
	f.plan->fixed.tmpfs_bytes = 64u << 20;
	f.plan->fixed.steps |= LP_SAMPLE;
	f.plan->fixed.sample_us = 20000;
	f.plan->fixed.cpu_us = 400000;
	f.plan->fixed.memory_bytes = 48u << 20;
	fix_start(&f, NULL, NULL);
	id = fix_spawn(&f, argv, "/", 0, &out, NULL);
	fix_await(&f, LP_LIMIT, 0, &answer);
	assert_int_equal(answer.limit.limit, limit);
	fix_await(&f, LP_EXITED, id, &answer);
	assert_int_equal(answer.exited.limit, limit);
	assert_true(answer.exited.empty);
	close(out);
	fix_close(&f);
}

static void watches_cpu_time(void **state)
{
	(void)state;
	watched("(while :; do :; done) & (while :; do :; done) & wait", LP_LIMIT_CPU);
}

/* The hogs are limited by themselves, in case that nobody looks. */
static void watches_memory(void **state)
{
	(void)state;
	watched("ulimit -v 200000; exec tail /dev/zero", LP_LIMIT_MEMORY);
	watched("dd if=/dev/zero of=/tmp/f bs=1M count=60 2>/dev/null; exec sleep 100", LP_LIMIT_MEMORY);
}

/* What is left of such a command is killed before its end is told, at once, and not waited for: the end of its
 * output, which it had open, comes by itself. */
static void what_holds_is_killed(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "trap '' TERM HUP; sleep 1000 & echo $!; exit 3", NULL };
	lh_answer answer;
	char text[64];
	uint32_t id;
	int out, i;
	fix f;

	(void)state;
	for (i = 0; i < 2; i++) {
		fix_open(&f);
		fix_plan(&f);
		fix_start(&f, NULL, NULL);
		id = fix_spawn(&f, argv, "/", i ? LP_S_HELD | LP_S_LAST : LP_S_LAST, &out, NULL);
		fix_await(&f, LP_EXITED, id, &answer);
		assert_int_equal(answer.exited.code, 3);
		assert_int_equal(answer.exited.killed, !i); /* counted are those that were waited for */
		assert_true(i || answer.exited.empty);
		while (read(out, text, sizeof text) > 0)
			;
		close(out);
		fix_close(&f);
	}
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_closes), cmocka_unit_test(host_is_killed),
		cmocka_unit_test(supervisor_is_killed), cmocka_unit_test(pid1_is_killed),
		cmocka_unit_test(supervisor_ignores_signals), cmocka_unit_test(guest_stops_everyone),
		cmocka_unit_test(killed_while_it_starts),
		cmocka_unit_test(subreaper_runs), cmocka_unit_test(subreaper_dies_with_the_host),
		cmocka_unit_test(subreaper_watches), cmocka_unit_test(subreaper_is_confined),
		cmocka_unit_test(watches_cpu_time),
		cmocka_unit_test(watches_memory),
		cmocka_unit_test(what_holds_is_killed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return fix_main(argc, argv, run);
}
