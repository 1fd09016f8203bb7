/* SPDX-License-Identifier: MIT */
/*
 * launch_sample.c - the sampler against children whose use is known.  The root is this test itself, as
 * a subreaper: its own memory does not count, whatever it starts does.
 */
#include "unit.h"

#include "launch_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1u << 20)

static int proc_fd;

static int set_up(void **state)
{
	(void)state;
	proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static int tear_down(void **state)
{
	(void)state;
	sample_kill_tree(proc_fd, getpid(), 20);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return close(proc_fd);
}

static void *take(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		memset(p, 1, bytes);
	return p;
}

static void burn(long milliseconds)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < milliseconds);
}

/* Runs body in a child, waits until it says so; its pid. */
static pid_t start(void (*body)(void))
{
	int fds[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(30);
		body();
		if (write(fds[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static launch_sample look(void)
{
	launch_sample s;

	assert_int_equal(sample_tree(proc_fd, getpid(), &s), 0);
	return s;
}

static void body_private(void)
{
	take(40 * MIB, MAP_PRIVATE);
}

static void body_shared(void)
{
	take(40 * MIB, MAP_SHARED);
}

static void body_idle(void)
{
}

static int headless_said = -1;

static void *outlive_first_thread(void *unused)
{
	char path[64], text[256] = "";
	int tries;

	(void)unused;
	take(40 * MIB, MAP_PRIVATE);
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
	for (tries = 0; tries < 5000 && !strstr(text, ") Z"); tries++) {
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

		text[n > 0 ? n : 0] = 0;
		close(fd);
		usleep(1000);
	}
	if (write(headless_said, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* A process whose first thread has ended looks like a zombie, and runs on: it is measured, its
 * children are found, and it is killed like any other. */
static void headless_processes_count(void **state)
{
	uint64_t exact;
	launch_sample s;
	int fds[2];
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t thread;

		alarm(30);
		headless_said = fds[1];
		if (pthread_create(&thread, NULL, outlive_first_thread, NULL))
			_exit(1);
		syscall(SYS_exit, 0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	s = look();
	assert_int_equal(s.processes, 1);
	assert_in_range(s.memory_bytes, 40 * MIB, 60 * MIB);
	assert_int_equal(sample_exact(proc_fd, getpid(), &exact), 0);
	assert_in_range(exact, 40 * MIB, 60 * MIB);
	assert_int_equal(sample_kill_tree(proc_fd, getpid(), 200), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void nothing_runs(void **state)
{
	launch_sample s = look();
	void *own = take(50 * MIB, MAP_PRIVATE);

	(void)state;
	assert_int_equal(s.processes, 0);
	assert_int_equal(s.memory_bytes, 0);
	s = look();
	assert_int_equal(s.memory_bytes, 0); /* the root's own does not count */
	munmap(own, 50 * MIB);
}

static void memory_counts(void **state)
{
	void (*const bodies[])(void) = { body_private, body_shared };
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		pid_t pid = start(bodies[i]);
		launch_sample s = look();
		uint64_t exact;

		assert_int_equal(s.processes, 1);
		assert_in_range(s.memory_bytes, 40 * MIB, 48 * MIB);
		assert_int_equal(sample_exact(proc_fd, getpid(), &exact), 0);
		assert_in_range(exact, 40 * MIB, 48 * MIB);
		end(pid);
	}
}

/* A child that says when body(arg) is done, then sleeps. */
static void start_inner(void (*body)(void *), void *arg)
{
	int fds[2];
	char c;

	if (pipe(fds))
		_exit(1);
	if (!fork()) {
		alarm(30);
		body(arg);
		if (write(fds[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1)
		_exit(1);
}

static void touch_all(void *p)
{
	memset(p, 2, 40 * MIB);
}

static void body_sharing_family(void)
{
	void *p = take(40 * MIB, MAP_SHARED);
	int i;

	for (i = 0; i < 3; i++)
		start_inner(touch_all, p);
}

static void shared_pages_count_once_when_exact(void **state)
{
	pid_t pid = start(body_sharing_family);
	launch_sample s = look();
	uint64_t exact;

	(void)state;
	assert_int_equal(s.processes, 4);
	assert_in_range(s.memory_bytes, 160 * MIB, 190 * MIB);
	assert_int_equal(sample_exact(proc_fd, getpid(), &exact), 0);
	assert_in_range(exact, 40 * MIB, 50 * MIB);
	assert_true(exact <= s.memory_bytes);
	kill(pid, SIGKILL);
	assert_int_equal(sample_kill_tree(proc_fd, getpid(), 1000), 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void body_burn(void)
{
	burn(200);
}

static void body_burn_in_children(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (!pid) {
			burn(100);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void cpu_counts(void **state)
{
	uint64_t before = look().cpu_us, living;
	pid_t pid = start(body_burn);

	(void)state;
	living = look().cpu_us - before;
	assert_in_range(living, 180000, 1000000);
	end(pid); /* reaped: now it is in our own children's time */
	assert_in_range(look().cpu_us - before, living - 20000, 1000000);

	before = look().cpu_us;
	pid = start(body_burn_in_children);
	assert_in_range(look().cpu_us - before, 160000, 1000000);
	end(pid);
}

/* setsid and a double fork: the orphan falls to the root. */
static void take_away(void *unused)
{
	(void)unused;
	setsid();
	if (fork())
		_exit(0); /* its child writes the word */
	alarm(30);
	take(20 * MIB, MAP_PRIVATE);
}

static void body_escape(void)
{
	start_inner(take_away, NULL);
}

static void orphans_are_found_and_killed(void **state)
{
	pid_t pid = start(body_escape);
	launch_sample s;

	(void)state;
	end(pid);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	s = look();
	assert_int_equal(s.processes, 1);
	assert_in_range(s.memory_bytes, 20 * MIB, 28 * MIB);
	assert_int_equal(sample_kill_tree(proc_fd, getpid(), 1000), 0);
	assert_true(waitpid(-1, NULL, 0) > 0);
	assert_int_equal(look().processes, 0);
}

/* A chain of twelve, each with a sleeping child beside it. */
static void body_tree(void)
{
	int depth;

	for (depth = 0; depth < 12; depth++) {
		if (!fork()) {
			alarm(30);
			for (;;)
				pause();
		}
		if (fork())
			return;
		alarm(30);
	}
}

static void whole_trees_die(void **state)
{
	uint32_t left;

	(void)state;
	start(body_tree);
	assert_true(look().processes >= 2);
	left = sample_kill_tree(proc_fd, getpid(), 1000);
	assert_int_equal(left, 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(look().processes, 0);
	assert_int_equal(sample_kill_tree(proc_fd, getpid(), 0), 0);
}

static void survivors_are_counted(void **state)
{
	pid_t pid = start(body_idle);

	(void)state;
	assert_int_equal(sample_kill_tree(proc_fd, getpid(), 0), 1);
	assert_int_equal(look().processes, 1);
	end(pid);
}

static void root_that_is_not_there(void **state)
{
	launch_sample s;

	(void)state;
	assert_int_equal(sample_tree(proc_fd, 0x3fffffff, &s), -ENOENT);
	assert_true(sample_tree(-1, 1, &s) < 0);
}

static void next_look(void **state)
{
	static const struct {
		uint64_t memory_limit, cpu_limit, memory, cpu, took;
		uint32_t cpus;
		uint64_t want;
	} rows[] = {
		{ UINT64_MAX, UINT64_MAX, 0, 0, 0, 1, 50000 },   /* no limit: the longest gap */
		{ UINT64_MAX, 1000000, 0, 0, 0, 1, 50000 },      /* far */
		{ UINT64_MAX, 1000000, 0, 980000, 0, 1, 20000 }, /* what is left, on one cpu */
		{ UINT64_MAX, 1000000, 0, 980000, 0, 2, 10000 }, /* on two */
		{ UINT64_MAX, 1000000, 0, 999999, 0, 1, 5000 },  /* never below 5 ms */
		{ UINT64_MAX, 1000000, 0, 2000000, 0, 1, 5000 }, /* over */
		{ 64 * MIB, UINT64_MAX, 0, 0, 0, 1, 31257 },
		{ 64 * MIB, UINT64_MAX, 64 * MIB, 0, 0, 1, 5000 },
		{ 64 * MIB, UINT64_MAX, 100 * MIB, 0, 0, 1, 5000 },
		{ 64 * MIB, UINT64_MAX, 64 * MIB, 0, 2000, 1, 18000 }, /* looking is dear */
		{ 64 * MIB, UINT64_MAX, 64 * MIB, 0, 20000, 1, 50000 }, /* but never beyond the gap */
		{ 64 * MIB, UINT64_MAX, 0, 0, 0, 0, 31257 },
	};
	lh_plan *plan = lh_plan_new();
	size_t i;

	(void)state;
	plan->fixed.sample_us = 50000;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		launch_sample now = { .memory_bytes = rows[i].memory, .cpu_us = rows[i].cpu, .processes = 1,
			.took_us = rows[i].took };

		plan->fixed.memory_bytes = rows[i].memory_limit;
		plan->fixed.cpu_us = rows[i].cpu_limit;
		unit_row(i, sample_next_us(&plan->fixed, &now, rows[i].cpus) == rows[i].want);
	}
	lh_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_runs), cmocka_unit_test(memory_counts),
		cmocka_unit_test(shared_pages_count_once_when_exact), cmocka_unit_test(cpu_counts),
		cmocka_unit_test(orphans_are_found_and_killed), cmocka_unit_test(whole_trees_die),
		cmocka_unit_test(survivors_are_counted), cmocka_unit_test(root_that_is_not_there),
		cmocka_unit_test(next_look), cmocka_unit_test(headless_processes_count),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
