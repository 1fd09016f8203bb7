/* SPDX-License-Identifier: MIT */
/* commands.c - SPAWN to EXITED: what starts, with which descriptors, limits and terminal, and how it ends. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

static void up(fix *f)
{
	fix_open(f);
	fix_plan(f);
	fix_start(f, NULL, NULL);
}

/* ---- Programs that do not start ------------------------------------------------------------------ */

static void cannot_run(void **state)
{
	static const struct { const char *program, *cwd; uint32_t exec; int os_errno; } rows[] = {
		{ "/usr/bin/is-not-there", "/", 1, ENOENT },
		{ "is-not-there", "/", 1, ENOENT },
		{ "", "/", 1, ENOENT },
		{ "/usr", "/", 1, EACCES },
		{ "/etc/passwd", "/", 1, EACCES },
		{ "/etc/passwd/x", "/", 1, ENOTDIR },
		{ "/bin/true", "/not/there", 2, ENOENT },
		{ "/bin/true", "/etc/passwd", 2, ENOTDIR } };
	fix_run run;
	size_t i;
	fix f;

	(void)state;
	up(&f);
	for (i = 0; i < UNIT_LEN(rows); i++) {
		const char *const argv[] = { rows[i].program, NULL };

		fix_run_argv(&f, argv, rows[i].cwd, &run);
		unit_row(i, run.end.head.kind == LP_FAILED);
		unit_row(i, run.end.failed.exec == rows[i].exec);
		unit_row(i, run.end.failed.os_errno == rows[i].os_errno);
		unit_row(i, strstr(run.end.failed.message, rows[i].exec == 1 ? rows[i].program : rows[i].cwd));
		unit_row(i, run.out_len == 0);
	}
	fix_sh(&f, "echo still; set -- /proc/[0-9]*; echo $#", &run); /* pid 1 and sh */
	fix_expect_out(&run, "still\n2\n");
	fix_close(&f);
}

/* Found in PATH, but without the right to run: that is not "not found". */
static void found_but_not_executable(void **state)
{
	static const lh_file file = { "work/tool", "#!/bin/sh\n", 10, 0644 };
	static const char *const argv[] = { "tool", NULL };
	static const char *const env[] = { "PATH=/nowhere:/work:/usr/bin", NULL };
	int out[2], exited[2];
	lh_answer answer;
	sb_error err = { 0 };
	lh_spawn s = { .argv = argv, .env = env, .cwd = "/", .in = -1, .err = -1, .control = -1,
		.code = -1, .id = 5 };
	char byte;
	fix f;

	(void)state;
	up(&f);
	assert_int_equal(lh_put(f.box, &file, 1, 0, &err), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(exited, O_CLOEXEC), 0);
	s.out = out[1];
	s.exit_pipe = exited[1];
	assert_int_equal(lh_spawn_send(f.box, &s, &err), 0);
	close(out[1]);
	close(exited[1]);
	fix_next(&f, &answer, NULL);
	assert_int_equal(answer.head.kind, LP_FAILED);
	assert_int_equal(answer.head.id, 5);
	assert_int_equal(answer.failed.os_errno, EACCES);
	assert_int_equal(read(exited[0], &byte, 1), 0); /* closed: nothing is left of it */
	close(out[0]);
	close(exited[0]);
	fix_close(&f);
}

static void script_without_interpreter(void **state)
{
	static const char *const argv[] = { "/work/script", "a b", NULL };
	static const lh_file file = { "work/script", "echo $# $1\n", 11, 0755 };
	sb_error err = { 0 };
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	assert_int_equal(lh_put(f.box, &file, 1, 0, &err), 0);
	fix_run_argv(&f, argv, "/", &run);
	fix_expect_out(&run, "1 a b\n");
	fix_close(&f);
}

static void many_arguments(void **state)
{
	enum { COUNT = 20000, LONG = 200000 };
	const char **argv = calloc(COUNT + 8, sizeof *argv);
	char *big = malloc(LONG + 1);
	const char *const too_long[] = { "/bin/echo", big, NULL };
	fix_run run;
	size_t i;
	fix f;

	(void)state;
	assert_non_null(argv);
	assert_non_null(big);
	up(&f);
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = "echo $#";
	for (i = 3; i < COUNT + 4; i++) /* the first of them is $0 */
		argv[i] = "argument";
	fix_run_argv(&f, argv, "/", &run);
	fix_expect_out(&run, "20000\n");
	memset(big, 'x', LONG);
	big[LONG] = 0;
	fix_run_argv(&f, too_long, "/", &run); /* the kernel takes 128 KiB in one */
	assert_int_equal(run.end.head.kind, LP_FAILED);
	assert_int_equal(run.end.failed.os_errno, E2BIG);
	assert_non_null(strstr(run.end.failed.message, "\": argument list too long"));
	fix_close(&f);
	free(argv);
	free(big);
}

/* ---- Ends ----------------------------------------------------------------------------------------- */

static void codes_and_signals(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	fix_sh(&f, "exit 7", &run);
	fix_expect_exit(&run, 7);
	fix_sh(&f, "kill -SEGV $$", &run);
	assert_int_equal(run.end.exited.code, -1);
	assert_int_equal(run.end.exited.signo, SIGSEGV);
	fix_sh(&f, "ulimit -c; dd if=/dev/zero of=/work/f bs=64k count=32 2>/dev/null; "
		   "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done", &run);
	fix_expect_out(&run, "0\n");
	assert_true(run.end.exited.empty);
	assert_true(run.end.exited.usage.user_us > 0);
	assert_true(run.end.exited.usage.peak_memory_bytes > 100000);
	assert_in_range(run.end.exited.usage.scratch_free_bytes, 4u << 20, 6u << 20);
	assert_in_range(run.end.exited.usage.scratch_free_nodes, 200, 511);
	fix_close(&f);
}

static void signals_by_id(void **state)
{
	static const char *const traps[] = { "/bin/sh", "-c",
		"trap 'echo got; exit 3' USR1; echo up; while :; do sleep 0.01; done", NULL };
	static const char *const quiet[] = { "/bin/sh", "-c", "exec sleep $M", NULL };
	int out, other;
	uint32_t id, second;
	sb_error err = { 0 };
	lh_answer answer;
	char text[16];
	fix f;

	(void)state;
	up(&f);
	second = fix_spawn(&f, quiet, "/", 0, &other, NULL);
	id = fix_spawn(&f, traps, "/", 0, &out, NULL);
	assert_int_equal(read(out, text, sizeof text), 3);
	assert_int_equal(lh_signal(f.box, id, SIGUSR1, false, 0, &err), 0);
	fix_await(&f, LP_EXITED, id, &answer);
	assert_int_equal(answer.exited.code, 3);
	assert_false(answer.exited.empty); /* the other one goes on */
	assert_int_equal(lh_signal(f.box, second, SIGTERM, false, 0, &err), 0);
	fix_await(&f, LP_EXITED, second, &answer);
	assert_int_equal(answer.exited.signo, SIGTERM);
	assert_true(answer.exited.empty);
	close(out);
	close(other);
	fix_close(&f);
}

static void whole_box(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "echo; setsid sleep $M & kill -STOP $$", NULL };
	int out;
	uint32_t id;
	sb_error err = { 0 };
	lh_answer answer;
	char byte;
	fix f;

	(void)state;
	up(&f);
	id = fix_spawn(&f, argv, "/", 0, &out, NULL);
	assert_int_equal(read(out, &byte, 1), 1);
	assert_int_equal(lh_signal(f.box, 0, SIGKILL, true, 0, &err), 0);
	fix_await(&f, LP_EXITED, id, &answer);
	assert_int_equal(answer.exited.signo, SIGKILL);
	assert_true(answer.exited.empty);
	close(out);
	fix_close(&f);
}

/* ---- Several at once --------------------------------------------------------------------------------- */

static void as_many_as_there_are_places(void **state)
{
	static const char *const argv[] = { "/bin/cat", NULL };
	int out[LP_MAX_SPAWNS + 1], in[2];
	uint32_t i, exited = 0, refused = 0;
	sb_error err = { 0 };
	lh_answer answer;
	bool seen[LP_MAX_SPAWNS + 2] = { false };
	fix f;

	(void)state;
	up(&f);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	for (i = 0; i <= LP_MAX_SPAWNS; i++) {
		int pipe_out[2];
		lh_spawn s = { .argv = argv, .env = NULL, .cwd = "/", .in = in[0], .err = -1,
			.control = -1, .code = -1, .id = i + 1 };

		assert_int_equal(pipe2(pipe_out, O_CLOEXEC), 0);
		out[i] = pipe_out[0];
		s.out = s.exit_pipe = pipe_out[1];
		assert_int_equal(lh_spawn_send(f.box, &s, &err), 0);
		close(pipe_out[1]);
		fix_next(&f, &answer, NULL);
		if (answer.head.kind == LP_FAILED) {
			refused++;
			assert_int_equal(answer.head.id, LP_MAX_SPAWNS + 1);
			assert_int_equal(answer.failed.os_errno, EAGAIN);
		}
	}
	assert_int_equal(refused, 1);
	close(in[0]);
	close(in[1]); /* end of file for all of them */
	while (exited < LP_MAX_SPAWNS) {
		fix_next(&f, &answer, NULL);
		assert_int_equal(answer.head.kind, LP_EXITED);
		assert_false(seen[answer.head.id]);
		seen[answer.head.id] = true;
		exited++;
	}
	for (i = 0; i <= LP_MAX_SPAWNS; i++)
		close(out[i]);
	fix_close(&f);
}

/* What one command leaves behind dies with it, the other commands do not. */
static void leaves_nothing_beside_another(void **state)
{
	static const char *const stays[] = { "/bin/sh", "-c", "exec sleep $M", NULL };
	fix_run run;
	int out;
	fix f;

	(void)state;
	up(&f);
	fix_spawn(&f, stays, "/", 0, &out, NULL);
	fix_sh(&f, "sleep $N & set -m; sleep $N & exit 0", &run);
	fix_expect_exit(&run, 0);
	fix_expect_none(f.other);
	fix_expect_count(f.mark, 1);
	close(out);
	lh_close(f.box);
	f.box = NULL;
	assert_int_equal(fix_count(f.mark), 0);
	fix_close(&f);
}

static void leaves_nothing_alone(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	fix_sh(&f, "sleep $M & (setsid sleep $M &) ; setsid -f sh -c 'trap \"\" HUP TERM; sleep $M' "
		   ">/dev/null 2>&1; exit 4", &run);
	fix_expect_exit(&run, 4);
	assert_true(run.end.exited.empty);
	assert_in_range(run.end.exited.killed, 3, 4); /* two sleeps, a shell, and the one it may have made */
	assert_int_equal(fix_count(f.mark), 0); /* at once: EXITED means it */
	fix_close(&f);
}

static void detached_stays(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "sleep $M >/dev/null 2>&1 & exit 0", NULL };
	lh_answer answer;
	fix_run run;
	uint32_t id;
	int out;
	fix f;

	(void)state;
	up(&f);
	id = fix_spawn(&f, argv, "/", LP_S_DETACHED, &out, NULL);
	fix_await(&f, LP_EXITED, id, &answer);
	assert_false(answer.exited.empty);
	fix_sh(&f, "exit 0", &run); /* the end of another does not end it */
	fix_expect_count(f.mark, 1);
	close(out);
	lh_close(f.box);
	f.box = NULL;
	assert_int_equal(fix_count(f.mark), 0);
	fix_close(&f);
}

/* ---- STOP ------------------------------------------------------------------------------------------------ */

static void stop_by(const char *script, uint64_t grace_ms, lh_answer *answer)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	sb_error err = { 0 };
	uint32_t id;
	char byte;
	int out;
	fix f;

	up(&f);
	id = fix_spawn(&f, argv, "/", 0, &out, NULL);
	assert_int_equal(read(out, &byte, 1), 1);
	assert_int_equal(lh_stop(f.box, grace_ms, &err), 0);
	fix_await(&f, LP_EXITED, id, answer);
	fix_await(&f, LP_GONE, 0, &(lh_answer){ 0 });
	close(out);
	fix_close(&f);
}

static void stops(void **state)
{
	lh_answer answer;

	(void)state;
	stop_by("trap 'exit 9' TERM; echo; while :; do sleep 0.01; done", 15000, &answer);
	assert_int_equal(answer.exited.code, 9);
	stop_by("trap '' TERM; echo; while :; do sleep 0.01; done", 30, &answer);
	assert_int_equal(answer.exited.signo, SIGKILL);
	stop_by("echo; kill -STOP $$", 15000, &answer); /* woken up, so that it hears TERM */
	assert_int_equal(answer.exited.signo, SIGTERM);
	stop_by("trap '' TERM; echo; while :; do sleep 0.01; done", 0, &answer);
	assert_int_equal(answer.exited.signo, SIGKILL);
}

/* ---- Descriptors, limits, terminal ---------------------------------------------------------------------- */

/* Looks without opening anything itself. */
#define LIST_OPEN "i=0; while [ $i -lt 300 ]; do [ -h /proc/$$/fd/$i ] && echo -n \"$i \"; i=$((i+1)); done"

static void descriptors(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		LIST_OPEN "; cat <&4; echo ok >&3", NULL };
	int control[2], code, out, pipe_out[2], exited[2];
	sb_error err = { 0 };
	lh_spawn s = { .argv = argv, .env = NULL, .cwd = "/", .in = -1, .err = -1,
		.flags = LP_S_CONTROL | LP_S_CODE_FD, .id = 1 };
	char text[64] = "";
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	fix_sh(&f, LIST_OPEN, &run);
	fix_expect_out(&run, "0 1 2 ");
	assert_int_equal(pipe2(control, O_CLOEXEC), 0);
	assert_int_equal(pipe2(pipe_out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(exited, O_CLOEXEC), 0);
	code = fd_memfd("code", "the code ", 9);
	assert_true(code >= 0);
	s.out = pipe_out[1];
	s.exit_pipe = exited[1];
	s.control = control[1];
	s.code = code;
	lseek(code, 0, SEEK_SET);
	assert_int_equal(lh_spawn_send(f.box, &s, &err), 0);
	close(pipe_out[1]);
	close(control[1]);
	close(exited[1]);
	close(code);
	out = pipe_out[0];
	fix_await(&f, LP_EXITED, 1, &run.end);
	assert_true(read(out, text, sizeof text - 1) > 0);
	assert_string_equal(text, "0 1 2 3 4 the code ");
	assert_int_equal(read(control[0], text, sizeof text), 3);
	close(out);
	close(control[0]);
	close(exited[0]);
	fix_close(&f);
}

static unsigned count_descriptors(int pid)
{
	char path[64];
	unsigned count = 0;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* EXITED is sent a moment before the exit pipe is closed: the least of some looks. */
static unsigned count_settled(int pid)
{
	unsigned least = count_descriptors(pid);
	int i;

	for (i = 0; i < 20; i++) {
		unsigned now;

		usleep(1000);
		now = count_descriptors(pid);
		least = now < least ? now : least;
	}
	return least;
}

/* In pid 1 and in the supervisor, over commands that run and that do not.  (Only root may look.) */
static void descriptors_do_not_pile_up(void **state)
{
	static const char *const none[] = { "/none", NULL };
	static const lh_file file = { "work/f", "x", 1, 0644 };
	lh_answer ready;
	unsigned inside, outside;
	sb_error err = { 0 };
	fix_run run;
	int i;
	fix f;

	(void)state;
	if (!fix_root)
		skip();
	fix_open(&f);
	fix_plan(&f);
	fix_start(&f, &ready, NULL);
	fix_sh(&f, "exit 0", &run);
	inside = count_settled(ready.ready.pid1);
	outside = count_descriptors((int)lh_pid(f.box));
	assert_in_range(inside, 8, 12); /* 0 to 3, link, scratch, signals, "." and ".." */
	for (i = 0; i < 40; i++) {
		assert_int_equal(lh_put(f.box, &file, 1, 0, &err), 0);
		fix_run_argv(&f, none, "/", &run);
		fix_sh(&f, "sleep 0.001 & exit 0", &run);
	}
	assert_int_equal(count_settled(ready.ready.pid1), inside);
	assert_int_equal(count_descriptors((int)lh_pid(f.box)), outside);
	fix_close(&f);
}

static void limits(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	f.plan->fixed.open_files = 77;
	f.plan->fixed.file_bytes = 1u << 20;
	f.plan->fixed.cpu_us = 3000000;
	fix_start(&f, NULL, NULL);
	fix_sh(&f, "ulimit -c; ulimit -n; ulimit -t; ulimit -Hn; "
		   "dd if=/dev/zero of=/work/f bs=1M count=2 2>/dev/null || echo cut; wc -c < /work/f", &run);
	fix_expect_out(&run, "0\n77\n5\n77\ncut\n1048576\n");
	fix_close(&f);
}

/* Counted in the nested user namespace: the caller's other processes do not matter. */
static void processes_are_limited(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	f.plan->fixed.pids = 8;
	fix_start(&f, NULL, NULL);
	fix_sh(&f, "i=0; while [ $i -lt 7 ]; do sleep 100 & i=$((i+1)); done; echo all", &run);
	fix_expect_out(&run, "all\n");
	fix_sh(&f, "i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done; echo all", &run);
	assert_int_equal(run.end.head.kind, LP_EXITED);
	assert_int_not_equal(run.end.exited.code, 0);
	assert_null(strstr(run.out, "all"));
	assert_non_null(strstr(run.out, "fork"));
	fix_close(&f);
}

/* A terminal of the box: the controlling one, size, new size, interrupt. */
static void terminal(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		"stty -echo; stty size; trap 'stty size' WINCH; trap 'echo int; exit 6' INT; "
		"echo up; while :; do sleep 0.01; done", NULL };
	int master = -1, exited[2];
	sb_error err = { 0 };
	lh_spawn s = { .argv = argv, .cwd = "/", .flags = LP_S_TTY, .rows = 12, .cols = 34,
		.control = -1, .code = -1, .id = 1 };
	lh_answer answer;
	char text[512] = "";
	size_t len = 0;
	static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	fix f;

	(void)state;
	up(&f);
	assert_int_equal(pipe2(exited, O_CLOEXEC), 0);
	s.in = s.out = s.err = -1;
	s.env = env;
	s.exit_pipe = exited[1];
	assert_int_equal(lh_spawn_send(f.box, &s, &err), 0);
	close(exited[1]);
	fix_next(&f, &answer, &master);
	assert_int_equal(answer.head.kind, LP_SPAWNED);
	assert_true(master >= 0);
	while (!strstr(text, "up"))
		len += (size_t)read(master, text + len, sizeof text - 1 - len);
	assert_non_null(strstr(text, "12 34"));
	assert_int_equal(lh_resize(f.box, 1, 21, 43, &err), 0);
	while (!strstr(text, "21 43"))
		len += (size_t)read(master, text + len, sizeof text - 1 - len);
	assert_int_equal(write(master, "\003", 1), 1);
	fix_await(&f, LP_EXITED, 1, &answer);
	assert_int_equal(answer.exited.code, 6);
	close(exited[0]);
	close(master);
	fix_close(&f);
}

static void dials(void **state)
{
	static const char *const argv[] = { "/usr/bin/python3", "-c",
		"import socket; s=socket.create_server(('127.0.0.1',8123)); print('up',flush=True);"
		"c,_=s.accept(); c.sendall(b'hello'); c.close()", NULL };
	lp_dial d = { .head = { LP_VERSION, LP_DIAL, sizeof d, 3 }, .port = 8123, .family = AF_INET };
	lh_answer answer;
	char text[16] = "";
	uint32_t id;
	int out, fd;
	fix f;

	(void)state;
	if (access(argv[0], X_OK) < 0)
		skip();
	up(&f);
	id = fix_spawn(&f, argv, "/", 0, &out, NULL);
	assert_int_equal(read(out, text, sizeof text), 3);
	d.port = 8124; /* nobody there */
	assert_int_equal(send(lh_socket(f.box), &d, sizeof d, 0), sizeof d);
	fix_await(&f, LP_DIALED, 3, &answer);
	assert_int_equal(answer.dialed.os_errno, ECONNREFUSED);
	d.port = 8123;
	assert_int_equal(send(lh_socket(f.box), &d, sizeof d, 0), sizeof d);
	fix_next(&f, &answer, &fd);
	assert_int_equal(answer.head.kind, LP_DIALED);
	assert_int_equal(answer.dialed.os_errno, 0);
	assert_int_equal(read(fd, text, sizeof text), 5);
	close(fd);
	fix_await(&f, LP_EXITED, id, &answer);
	close(out);
	fix_close(&f);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cannot_run), cmocka_unit_test(found_but_not_executable),
		cmocka_unit_test(script_without_interpreter), cmocka_unit_test(many_arguments),
		cmocka_unit_test(codes_and_signals), cmocka_unit_test(signals_by_id),
		cmocka_unit_test(whole_box), cmocka_unit_test(as_many_as_there_are_places),
		cmocka_unit_test(leaves_nothing_beside_another), cmocka_unit_test(leaves_nothing_alone),
		cmocka_unit_test(detached_stays), cmocka_unit_test(stops), cmocka_unit_test(descriptors),
		cmocka_unit_test(descriptors_do_not_pile_up),
		cmocka_unit_test(limits), cmocka_unit_test(processes_are_limited),
		cmocka_unit_test(terminal), cmocka_unit_test(dials) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return fix_main(argc, argv, run);
}
