/* SPDX-License-Identifier: MIT */
/* The sampler of groups, over real processes: who counts, what ends them, and what is told. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sandbox/backend.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define HANG_S 30

static void take(size_t mib)
{
	char *at = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(9);
	memset(at, 1, mib * MIB);
}

static void spin(unsigned ms)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < (long)ms);
}

/* Leads a group, waits for a byte, then does it. */
static pid_t start(void (*body)(void), int *go)
{
	int pair[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		close(pair[1]);
		if (read(pair[0], &c, 1) != 1)
			_exit(8);
		alarm(HANG_S);
		body();
		_exit(0);
	}
	setpgid(pid, pid);
	close(pair[0]);
	*go = pair[1];
	return pid;
}

/* How the leader ended, and what the watch says of it. */
static int watched(void (*body)(void), uint64_t memory, uint64_t cpu_ms, char *word, int *broken)
{
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = memory, .cpu_ms = cpu_ms };
	sb_group_watch *watch = NULL;
	sb_error err = { 0 };
	int go, status;
	pid_t pid = start(body, &go);

	if (sb_group_watch_start(pid, &limits, &watch, &err) < 0)
		fail_msg("%s", err.message);
	assert_non_null(watch);
	assert_int_equal(write(go, "x", 1), 1);
	close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	sb_group_watch_stop(watch);
	sb_group_watch_stop(watch);
	*broken = sb_group_watch_unenforceable(watch, &err);
	snprintf(word, 16, "%s", sb_group_watch_exceeded(watch));
	sb_group_watch_free(watch);
	return status;
}

static void ordinary(void)
{
	take(8);
	spin(30);
}

static void four_children(void)
{
	int i;

	for (i = 0; i < 4; i++)
		if (!fork()) {
			take(40);
			pause();
		}
	while (wait(NULL) > 0)
		;
	pause();
}

static void left_the_group(void)
{
	if (!fork()) {
		pid_t parent = setsid();

		if (!fork()) { /* an orphan soon, and in another session */
			alarm(HANG_S);
			while (getppid() == parent)
				usleep(1000);
			take(160);
			pause();
		}
		usleep(1500000); /* a look or more, on a machine that does much else besides */
		_exit(0);
	}
	wait(NULL);
	pause();
}

static void job_of_its_own(void)
{
	if (!fork()) {
		setpgid(0, 0);
		spin(10000);
	}
	pause();
}

/* Each ends before the next look, or nearly so; the sum is in the leader's children. */
static void short_burners(void)
{
	for (;;) {
		if (!fork()) {
			spin(15);
			_exit(0);
		}
		wait(NULL);
	}
}

/* Nobody waits for them: their time is in nobody's sum. */
static void unwaited_burners(void)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		if (!fork()) {
			spin(80);
			_exit(0);
		}
		usleep(40000);
	}
}

static void __attribute__((unused)) shares_pages(void)
{
	int i;

	take(40);
	for (i = 0; i < 5; i++)
		if (!fork()) {
			usleep(150000);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void limits_hold_over_all_of_them(void **state)
{
	static const struct {
		const char *name;
		void (*body)(void);
		uint64_t memory, cpu_ms;
		const char *word;
	} rows[] = {
		{ "ordinary", ordinary, 128 * MIB, 10000, "" },
#ifndef __SANITIZE_THREAD__ /* it has pages of its own for each process */
		{ "shared pages count once", shares_pages, 128 * MIB, SB_UNLIMITED, "" },
#endif
		{ "four children", four_children, 128 * MIB, SB_UNLIMITED, "memory" },
		{ "one that left", left_the_group, 128 * MIB, SB_UNLIMITED, "memory" },
		{ "a job", job_of_its_own, SB_UNLIMITED, 200, "cpu" },
		{ "short ones", short_burners, SB_UNLIMITED, 300, "cpu" },
		{ "unwaited ones", unwaited_burners, SB_UNLIMITED, 300, "cpu" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		char word[16];
		int broken, status = watched(rows[i].body, rows[i].memory, rows[i].cpu_ms, word, &broken);
		bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

		if (broken || strcmp(word, rows[i].word) || killed != !!*rows[i].word)
			fail_msg("%s: status %x, \"%s\", %d", rows[i].name, status, word, broken);
	}
}

static void nothing_to_watch(void **state)
{
	const sb_limits none = { .size = sizeof none, .memory_bytes = SB_UNLIMITED },
			some = { .size = sizeof some, .cpu_ms = 5 };
	sb_group_watch *watch = (sb_group_watch *)&none;
	sb_error err = { 0 };

	(void)state;
	assert_int_equal(sb_group_watch_supported(), 1);
	assert_int_equal(sb_group_watch_start(getpgrp(), &none, &watch, &err), 0);
	assert_null(watch);
	assert_string_equal(sb_group_watch_exceeded(NULL), "");
	assert_int_equal(sb_group_watch_unenforceable(NULL, NULL), 0);
	sb_group_watch_stop(NULL);
	sb_group_watch_free(NULL);
	assert_int_equal(sb_group_watch_start(0, &some, &watch, &err), SB_ERR_INVALID);
	assert_int_equal(sb_group_watch_start(0x7ffffffe, &some, &watch, &err), SB_ERR_NOT_FOUND);
	assert_int_equal(sb_group_watch_start(getpgrp(), &some, NULL, &err), SB_ERR_INVALID);
}

static void wait_for_ever(void)
{
	pause();
}

/* It is stopped while everything runs: nothing is killed. */
static void stopping_is_enough(void **state)
{
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = 64 * MIB };
	sb_group_watch *watch;
	int go, status;
	pid_t pid = start(wait_for_ever, &go);

	(void)state;
	assert_int_equal(sb_group_watch_start(pid, &limits, &watch, NULL), 0);
	assert_int_equal(write(go, "x", 1), 1);
	sb_group_watch_free(watch);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(go);
}

/* Nothing can be opened any more: what cannot be measured does not go on. */
static void a_sampler_that_fails_ends_it(void **state)
{
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = 512 * MIB };
	struct rlimit old, few;
	sb_group_watch *watch;
	sb_error err = { 0 };
	int go, status;
	pid_t pid = start(wait_for_ever, &go);

	(void)state;
	assert_int_equal(sb_group_watch_start(pid, &limits, &watch, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(write(go, "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	sb_group_watch_stop(watch);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(sb_group_watch_unenforceable(watch, &err), SB_ERR_UNENFORCEABLE);
	assert_int_equal(err.code, SB_ERR_UNENFORCEABLE);
	assert_string_equal(sb_group_watch_exceeded(watch), "");
	sb_group_watch_free(watch);
	close(go);
}

/* One that has made itself undumpable would be in no list.  Before any other: what was found once is remembered. */
static void a_proc_that_hides_is_refused(void **state)
{
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = 64 * MIB };
	sb_group_watch *watch = NULL;
	sb_error err = { 0 };
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("proc", "/proc", "proc", 0, "hidepid=2") || setgroups(0, NULL) ||
		    setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
			_exit(7);
		_exit(sb_group_watch_start(getpgrp(), &limits, &watch, &err) == SB_ERR_UNENFORCEABLE ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 7) /* root of a container */
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proc_that_hides_is_refused),
		cmocka_unit_test(limits_hold_over_all_of_them), cmocka_unit_test(nothing_to_watch),
		cmocka_unit_test(stopping_is_enough), cmocka_unit_test(a_sampler_that_fails_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
