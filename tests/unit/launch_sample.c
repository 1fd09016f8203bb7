/* SPDX-License-Identifier: MIT */
/*
 * launch_sample.c - the sampler against children whose use is known.  The root is this test itself, as
 * a subreaper: its own memory does not count, whatever it starts does.
 */
#include "unit.h"

#include "launch_plan.h"

#include "../../src/launch/sample_proc.h"
#include "../../src/launch/sample_rest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1u << 20)

static int proc_fd;

/* What a look costs is told by the files that it opens: the linker leads the sampler's calls here. */
static int opened;
int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	opened++;
	return __real_openat(dir, path, flags, 0);
}

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

/* ---- What is not below the root ------------------------------------------------------------------ */

static int opens_of_a_look(int root)
{
	launch_sample s;

	opened = 0;
	assert_int_equal(sample_tree(proc_fd, root, &s), 0);
	assert_int_equal(s.processes, 0);
	return opened;
}

static void others_are_not_read(void **state)
{
	pid_t root, other[30];
	size_t i;
	int alone;

	(void)state;
	if (access("/proc/thread-self/children", R_OK) < 0)
		skip(); /* a kernel without them: everybody is read */
	root = start(body_idle);
	alone = opens_of_a_look(root);
	for (i = 0; i < UNIT_LEN(other); i++)
		other[i] = start(body_idle);
	assert_int_equal(opens_of_a_look(root), alone);
	for (i = 0; i < UNIT_LEN(other); i++)
		end(other[i]);
	end(root);
}

/* ---- A box with a /proc of its own ------------------------------------------------------------------ */

typedef struct box {
	pid_t outer;             /* who waits for pid 1 */
	int proc, talk;          /* its /proc; the other end of pid 1's `talk` */
} box;

static int talk;                 /* in the box */

/* To a process in the box that waits for it, or to the test. */
static void say(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static void hear(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(0);
}

static void send_proc(int fd)
{
	union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char letter = 0;
	struct iovec part = { &letter, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof control };

	control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	if (sendmsg(talk, &m, 0) != 1)
		_exit(1);
}

static int receive_proc(int from)
{
	union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char c;
	struct iovec part = { &c, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof control };
	int fd = -1;

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) == 1 && control.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
	return fd;
}

static void box_pid1(void (*body)(void))
{
	alarm(60);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(1);
	send_proc(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	body();
	say(talk);
	for (;;) {
		if (waitpid(-1, NULL, 0) < 0)
			pause();
	}
}

/* False: there are no namespaces to be had here. */
static bool box_open(box *b, void (*body)(void))
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	b->talk = ends[0];
	b->outer = fork();
	assert_true(b->outer >= 0);
	if (!b->outer) {
		int own = geteuid() ? CLONE_NEWUSER : 0;

		talk = ends[1];
		close(ends[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(own | CLONE_NEWPID | CLONE_NEWNS) < 0)
			_exit(0);
		if (!fork())
			box_pid1(body);
		wait(NULL);
		_exit(0);
	}
	close(ends[1]);
	b->proc = receive_proc(b->talk);
	if (b->proc < 0) {
		close(b->talk);
		waitpid(b->outer, NULL, 0);
		return false;
	}
	hear(b->talk);
	return true;
}

static void box_close(box *b)
{
	end(b->outer);
	close(b->proc);
	close(b->talk);
}

static launch_sample look_into(const box *b)
{
	launch_sample s;

	assert_int_equal(sample_tree(b->proc, SAMPLE_BOX, &s), 0);
	return s;
}

static void *fork_in_thread(void *fd)
{
	if (!fork()) {
		take(10 * MIB, MAP_PRIVATE);
		say(*(int *)fd);
	}
	pause();
	return NULL;
}

/* A child; one that is nobody's any more, in a session of its own; one that a thread has forked. */
static void body_family(void)
{
	pthread_t thread;
	int fds[2];

	start(body_private);
	start(body_escape);
	if (pipe(fds))
		_exit(1);
	if (!fork()) {
		if (pthread_create(&thread, NULL, fork_in_thread, &fds[1]))
			_exit(1);
		for (;;)
			pause();
	}
	hear(fds[0]);
}

static void a_box_is_listed_whole(void **state)
{
	launch_sample s;
	box b;

	(void)state;
	if (!box_open(&b, body_family))
		skip();
	s = look_into(&b);
	assert_int_equal(s.processes, 5);
	assert_int_equal(s.tasks, 6);
	assert_in_range(s.memory_bytes, 70 * MIB, 90 * MIB);
	assert_int_equal(sample_exact(b.proc, SAMPLE_BOX, &s.memory_bytes), 0);
	assert_in_range(s.memory_bytes, 70 * MIB, 90 * MIB);
	box_close(&b);
}

/* Processes that stay, and around them some that fork, leave the session and end, as fast as they can. */
static void body_storm(void)
{
	int i;

	for (i = 0; i < 4; i++)
		start_inner(touch_all, take(40 * MIB, MAP_PRIVATE));
	for (i = 0; i < 3; i++) {
		if (fork())
			continue;
		for (;;) {
			if (!fork()) {
				setsid();
				_exit(fork() < 0);
			}
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
		}
	}
}

static void none_is_missed_in_a_storm(void **state)
{
	box b;
	int i;

	(void)state;
	if (!box_open(&b, body_storm))
		skip();
	for (i = 0; i < 300; i++)
		assert_true(look_into(&b).memory_bytes >= 160 * (uint64_t)MIB);
	box_close(&b);
}

/* Memory that goes from parent to child, again and again: the one that had it has always just ended. */
static void body_hopping(void)
{
	int fds[2];

	if (pipe(fds))
		_exit(1);
	if (fork()) {
		hear(fds[0]);
		return;
	}
	take(16 * MIB, MAP_PRIVATE);
	say(fds[1]);
	for (;;) {
		pid_t next = fork();

		if (next > 0)
			_exit(0);
	}
}

static void memory_that_moves_is_seen(void **state)
{
	int i, missed = 0, in_a_row = 0, most = 0;
	box b;

	(void)state;
	if (!box_open(&b, body_hopping))
		skip();
	for (i = 0; i < 300; i++) {
		bool seen = look_into(&b).memory_bytes >= 16 * (uint64_t)MIB;

		missed += !seen;
		in_a_row = seen ? 0 : in_a_row + 1;
		most = in_a_row > most ? in_a_row : most;
	}
	box_close(&b);
	if (most > 20)
		fail_msg("missed %d of 300 times, %d times in a row", missed, most);
}

/* ---- A box at rest ------------------------------------------------------------------------------------ */

static int wake_read, wake_thread;

static void *grow_in_thread(void *box_talk)
{
	while (box_talk) {
		hear(wake_thread);
		take(4 * MIB, MAP_PRIVATE);
		say(talk);
	}
	return NULL;
}

/* One takes 4 MiB and forks another that takes as much, one does so in a second thread; each when it is told. */
static void body_sleepers(void)
{
	int first[2], second[2];
	pthread_t thread;

	if (pipe(first) || pipe(second))
		_exit(1);
	wake_read = first[0];
	wake_thread = second[0];
	if (!fork()) {
		for (;;) {
			hear(wake_read);
			take(4 * MIB, MAP_PRIVATE);
			if (!fork()) {
				take(4 * MIB, MAP_PRIVATE);
				say(talk);
				for (;;)
					pause();
			}
		}
	}
	if (!fork()) {
		if (pthread_create(&thread, NULL, grow_in_thread, &talk))
			_exit(1);
		for (;;)
			pause();
	}
	if (!fork()) { /* takes the test's word to one of them */
		char c;

		while (read(talk, &c, 1) == 1)
			if (write(c == '1' ? first[1] : second[1], "x", 1) != 1)
				_exit(1);
		_exit(0);
	}
}

/* The kernel counts how often a task was put on a processor. */
static bool runs_are_counted(void)
{
	unsigned long long ran, waited, runs = 0;
	FILE *f = fopen("/proc/self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu %llu", &ran, &waited, &runs) != 3)
		runs = 0;
	if (f)
		fclose(f);
	return runs;
}

/* Looks until one opens nothing (where a sanitizer has the calls, nobody counts). */
static launch_sample rest(const box *b, sample_rest *r)
{
	launch_sample s;
	int looks;

	for (looks = 0; looks < 2000; looks++) {
		opened = 0;
		assert_int_equal(sample_rest_look(r, b->proc, &s), 0);
		if (!opened && r->sure)
			return s;
		usleep(1000);
	}
	fail_msg("it is never found at rest");
	return s;
}

/* The same, and a whole look taken meanwhile: who has been woken and waits for a processor has not run yet. */
static launch_sample rest_and_look(const box *b, sample_rest *r, launch_sample *whole)
{
	launch_sample s, after;
	int looks;

	for (looks = 0; looks < 2000; looks++) {
		s = rest(b, r);
		*whole = look_into(b);
		opened = 0;
		assert_int_equal(sample_rest_look(r, b->proc, &after), 0);
		if (!opened && r->sure)
			return s;
	}
	fail_msg("it does not stay at rest");
	return s;
}

/* Before Linux 6.2 each task counts up to 64 pages by itself first. */
#define COUNTED_LATER (2 * 64 * 4096u)

static void one_that_rests_costs_nothing(void **state)
{
	sample_rest r = { .count = 0 };
	launch_sample s, whole;
	uint64_t more;
	char c;
	box b;
	int round;

	(void)state;
	if (!runs_are_counted() || !box_open(&b, body_sleepers))
		skip();
	for (round = 0; round < 30; round++) {
		s = rest_and_look(&b, &r, &whole);
		assert_int_equal(s.memory_bytes, whole.memory_bytes);
		assert_int_equal(s.processes, whole.processes);
		if (write(b.talk, round % 2 ? "1" : "2", 1) != 1 || read(b.talk, &c, 1) != 1)
			fail();
		/* the very next look sees all of it */
		assert_int_equal(sample_rest_look(&r, b.proc, &s), 0);
		more = (round % 2 ? 8 : 4) * (uint64_t)MIB - COUNTED_LATER;
		if (s.memory_bytes < whole.memory_bytes + more)
			fail_msg("round %d: %llu bytes, and then %llu", round, (unsigned long long)whole.memory_bytes,
				 (unsigned long long)s.memory_bytes);
	}
	assert_true(s.processes >= 18);
	box_close(&b);
	while (r.count)
		close(r.task[--r.count].fd);
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
		cmocka_unit_test(others_are_not_read), cmocka_unit_test(a_box_is_listed_whole),
		cmocka_unit_test(none_is_missed_in_a_storm), cmocka_unit_test(memory_that_moves_is_seen),
		cmocka_unit_test(one_that_rests_costs_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
