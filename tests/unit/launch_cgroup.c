/* SPDX-License-Identifier: MIT */
/*
 * launch_cgroup.c - control groups: v1 for real where root finds its controllers, below the group that
 * the test runs in; v2 on a directory of plain files (what is written where, what is read out of what).
 */
#include "unit.h"

#include "launch_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char name[64];

static lh_plan *plan_make(uint32_t kind)
{
	lh_plan *plan = lh_plan_new();

	assert_non_null(plan);
	plan->fixed.cgroup_kind = kind;
	plan->fixed.cgroup_name = lh_plan_string(plan, name);
	plan->fixed.memory_bytes = (32 << 20) + 123; /* not whole pages */
	plan->fixed.pids = 5;
	plan->fixed.cpu_millicores = 500;
	return plan;
}

static void read_text(const char *dir, const char *file, char *text, size_t cap)
{
	char path[700];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	n = read(fd, text, cap - 1);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	close(fd);
}

static void expect_text(const char *dir, const char *file, const char *want)
{
	char text[256];

	read_text(dir, file, text, sizeof text);
	if (strcmp(text, want))
		fail_msg("%s/%s is \"%s\", not \"%s\"", dir, file, text, want);
}

/* ---- v1 -------------------------------------------------------------------------------------- */

/* The directory of our own group in a v1 hierarchy; false = there is none. */
static bool own_group(const char *controller, char *out, size_t cap)
{
	char line[600], mount[64];
	FILE *f = fopen("/proc/self/cgroup", "r");
	bool found = false;

	snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controller);
	while (f && !found && fgets(line, sizeof line, f)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

		line[strcspn(line, "\n")] = 0;
		if (!path)
			continue;
		*path++ = 0;
		found = !strcmp(names + 1, controller) && !access(mount, W_OK);
		if (found)
			snprintf(out, cap, "%s%s", mount, strcmp(path, "/") ? path : "");
	}
	if (f)
		fclose(f);
	return found && !access(out, W_OK);
}

static const struct {
	const char *controller;
	uint32_t bits;
} v1_rows[] = { { "memory", LP_CTL_MEMORY }, { "pids", LP_CTL_PIDS }, { "cpu", LP_CTL_CPU },
	{ "cpuacct", LP_CTL_CPUACCT } };

static bool add_v1(lh_plan *plan)
{
	char dir[400];
	size_t i;

	if (geteuid())
		return false;
	for (i = 0; i < UNIT_LEN(v1_rows); i++) {
		if (!own_group(v1_rows[i].controller, dir, sizeof dir))
			return false;
		lh_plan_cgroup(plan, dir, v1_rows[i].bits);
	}
	return true;
}

static void v1_make(lh_plan **plan, launch_cgroup *cg)
{
	launch_failure f = { 0 };
	lp_plan_view v;

	*plan = plan_make(LP_CG_V1);
	if (!add_v1(*plan)) {
		lh_plan_free(*plan);
		skip();
	}
	v = plan_view(*plan);
	if (cgroup_make(&v, cg, &f) < 0)
		fail_msg("%s", f.message);
}

static void v1_limits(void **state)
{
	launch_cgroup cg;
	lh_plan *plan;
	uint32_t i;

	(void)state;
	v1_make(&plan, &cg);
	assert_int_equal(cg.count, 4);
	expect_text(cg.path[0], "memory.limit_in_bytes", "33554432");
	expect_text(cg.path[1], "pids.max", "5");
	expect_text(cg.path[2], "cpu.cfs_quota_us", "50000");
	for (i = 0; i < cg.count; i++)
		assert_true(fcntl(cg.join[i], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(cgroup_remove(&cg), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(access(cg.path[i], F_OK), -1);
	cgroup_close(&cg);
	lh_plan_free(plan);
}

/* Runs body in a child that has joined; its wait status. */
static int in_group(const launch_cgroup *cg, void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (cgroup_join(cg))
			_exit(99);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void spin(void)
{
	struct timespec t;
	volatile uint64_t n = 0;
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		memset(p, 1, 1 << 20);
	do {
		n = n + 1;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec == 0 && t.tv_nsec < 60000000);
}

static void take_memory(void)
{
	char *p = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	memset(p, 1, 100 << 20);
}

static void take_pids(void)
{
	int i, refused = 0;

	for (i = 0; i < 8; i++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(30);
			for (;;)
				pause();
		}
		refused += pid < 0 && errno == EAGAIN;
	}
	_exit(refused == 4 ? 0 : 1); /* itself and four children */
}

static void leave_sleepers(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (!fork()) {
			alarm(30);
			for (;;)
				pause();
		}
	}
}

static void v1_counters(void **state)
{
	launch_cgroup cg;
	lh_plan *plan;
	lp_usage usage = { 0 };
	int status;

	(void)state;
	v1_make(&plan, &cg);
	assert_int_equal(in_group(&cg, spin), 0);
	cgroup_usage(&cg, &usage);
	assert_in_range(usage.user_us + usage.system_us, 50000, 2000000);
	assert_int_equal(usage.user_us + usage.system_us, cgroup_cpu_us(&cg));
	assert_int_equal(usage.oom_kills | usage.memory_refused | usage.pids_refused, 0);
	assert_in_range(usage.peak_memory_bytes, 1 << 20, 8 << 20);

	status = in_group(&cg, take_memory);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = in_group(&cg, take_pids);
	assert_int_equal(status, 0);
	cgroup_usage(&cg, &usage);
	assert_int_equal(usage.oom_kills, 1);
	assert_int_equal(usage.memory_refused, 1);
	assert_int_equal(usage.pids_refused, 4);
	assert_in_range(usage.peak_memory_bytes, 30 << 20, 32 << 20);

	/* four sleepers are left: removing kills them */
	cgroup_close(&cg);
	assert_int_equal(cgroup_remove(&cg), 0);
	assert_int_equal(access(cg.path[0], F_OK), -1);
	lh_plan_free(plan);
}

static void failure_leaves_nothing(void **state)
{
	launch_failure f = { 0 };
	launch_cgroup cg;
	char dir[400], path[500];
	lh_plan *plan = plan_make(LP_CG_V1);
	lp_plan_view v;

	(void)state;
	if (geteuid() || !own_group("pids", dir, sizeof dir)) {
		lh_plan_free(plan);
		skip();
	}
	lh_plan_cgroup(plan, dir, LP_CTL_PIDS);
	lh_plan_cgroup(plan, "/sys/fs/cgroup/nonexistent", LP_CTL_MEMORY);
	v = plan_view(plan);
	assert_int_equal(cgroup_make(&v, &cg, &f), -1);
	assert_string_equal(f.where, "cgroup");
	assert_non_null(strstr(f.message, "\"/sys/fs/cgroup/nonexistent\""));
	snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_int_equal(access(path, F_OK), -1);
	lh_plan_free(plan);
}

static void make_named(const char *dir, const char *text)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", dir, text);
	assert_int_equal(mkdir(path, 0755), 0);
}

static bool named_exists(const char *dir, const char *text)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", dir, text);
	return !access(path, F_OK);
}

/* On plain directories: the rule about names is the same. */
static void sweep(void **state)
{
	char dir[] = "/tmp/unit-sweep-XXXXXX", alive[64], reused[64], suffixed[80];
	static const char *const foreign[] = { "sandbox-", "sandbox-1", "sandbox-x-1", "sandbox-1-",
		"sandbox-12-3x", "other-99999999-1" };
	uint64_t start = cgroup_start_time(getpid());
	char path[128];
	size_t i;

	(void)state;
	assert_true(start > 0);
	assert_int_equal(cgroup_start_time(0x3fffffff), 0);
	assert_non_null(mkdtemp(dir));
	snprintf(alive, sizeof alive, "sandbox-%d-%llu", getpid(), (unsigned long long)start);
	snprintf(suffixed, sizeof suffixed, "%s-7", alive);
	snprintf(reused, sizeof reused, "sandbox-%d-%llu-7", getpid(), (unsigned long long)start + 1);
	make_named(dir, alive);
	make_named(dir, suffixed);
	make_named(dir, reused);
	make_named(dir, "sandbox-1073741823-55");
	for (i = 0; i < UNIT_LEN(foreign); i++)
		make_named(dir, foreign[i]);
	assert_int_equal(cgroup_sweep(dir), 2);
	assert_false(named_exists(dir, reused));
	assert_false(named_exists(dir, "sandbox-1073741823-55"));
	assert_true(named_exists(dir, alive) && named_exists(dir, suffixed));
	for (i = 0; i < UNIT_LEN(foreign); i++) {
		unit_row(i, named_exists(dir, foreign[i]));
		snprintf(path, sizeof path, "%s/%s", dir, foreign[i]);
		rmdir(path);
	}
	snprintf(path, sizeof path, "%s/%s", dir, alive);
	rmdir(path);
	snprintf(path, sizeof path, "%s/%s", dir, suffixed);
	rmdir(path);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(cgroup_sweep("/nonexistent"), 0);
}

static void spin_on(void)
{
	struct timespec begin, now;
	volatile uint64_t n = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		n = n + 1;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 <
		 begin.tv_sec * 1000 + begin.tv_nsec / 1000000 + 700);
}

/* Nobody looks: the kernel alone keeps it within the second. */
static void v1_budget_is_lent(void **state)
{
	lh_plan *plan = plan_make(LP_CG_V1);
	launch_failure f = { 0 };
	launch_cgroup cg;
	lp_plan_view v;
	uint64_t used;

	(void)state;
	plan->fixed.cpu_millicores = UINT64_MAX;
	plan->fixed.cpu_us = 100000;
	if (!add_v1(plan)) {
		lh_plan_free(plan);
		skip();
	}
	v = plan_view(plan);
	if (cgroup_make(&v, &cg, &f) < 0)
		fail_msg("%s", f.message);
	expect_text(cg.path[2], "cpu.cfs_period_us", "1000000");
	expect_text(cg.path[2], "cpu.cfs_quota_us", "110000");
	assert_int_equal(in_group(&cg, spin_on), 0); /* 0.7 s of the clock, within a period or over one end */
	used = cgroup_cpu_us(&cg);
	assert_in_range(used, 1000, 2 * 110000 + 20000);
	cgroup_lease_cpu(&cg, v.plan, 60000);
	expect_text(cg.path[2], "cpu.cfs_quota_us", "50000");
	cgroup_lease_cpu(&cg, v.plan, 500000); /* used up */
	expect_text(cg.path[2], "cpu.cfs_quota_us", "10000");
	assert_false(cgroup_vanished(&cg));
	assert_int_equal(rmdir(cg.path[0]), 0);
	assert_true(cgroup_vanished(&cg));
	assert_int_equal(cgroup_remove(&cg), 0);
	cgroup_close(&cg);
	lh_plan_free(plan);
}

/* ---- v2, on plain files ------------------------------------------------------------------------ */

static void write_text(const char *dir, const char *file, const char *text)
{
	char path[700];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* Files appear by themselves in a real group; here a counter is opened on what a test put there. */
static int open_text(const char *dir, const char *file, const char *text)
{
	char path[700];

	write_text(dir, file, text);
	snprintf(path, sizeof path, "%s/%s", dir, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void v2_counters(void **state)
{
	char dir[] = "/tmp/unit-cgroup2-XXXXXX", command[100];
	launch_cgroup cg;
	lp_usage usage = { .user_us = 1, .memory_refused = 9 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	cgroup_init(&cg);
	cgroup_usage(&cg, &usage);
	assert_int_equal(usage.user_us, 1); /* what is not known stays */
	assert_int_equal(usage.memory_refused, 9);
	assert_true(cgroup_cpu_us(&cg) == UINT64_MAX);
	assert_int_equal(cgroup_join(&cg), 0);
	assert_int_equal(cgroup_remove(&cg), 0);

	cg.kind = LP_CG_V2;
	cg.memory_peak = open_text(dir, "memory.peak", "7340032\n");
	cg.memory_oom = open_text(dir, "memory.events",
				  "low 1\nhigh 2\nmax 30\noom 4\noom_kill 3\noom_group_kill 7\n");
	cg.pids_events = open_text(dir, "pids.events", "max 12\n");
	cg.cpu_stat = open_text(dir, "cpu.stat",
				"usage_usec 1000\nuser_usec 750\nsystem_usec 250\nnr_periods 5\n");
	cgroup_usage(&cg, &usage);
	assert_int_equal(usage.user_us, 750);
	assert_int_equal(usage.system_us, 250);
	assert_int_equal(usage.peak_memory_bytes, 7340032);
	assert_int_equal(usage.memory_refused, 4);
	assert_int_equal(usage.oom_kills, 3);
	assert_int_equal(usage.pids_refused, 12);
	assert_int_equal(cgroup_cpu_us(&cg), 1000);
	cgroup_close(&cg);
	cgroup_close(&cg);
	snprintf(command, sizeof command, "%s", dir);
	if (!fork()) {
		execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
		_exit(1);
	}
	wait(NULL);
}

/* Our own group where v2 is mounted, with controllers or without. */
static bool own_group2(char *out, size_t cap)
{
	const char *mount = access("/sys/fs/cgroup/cgroup.procs", F_OK) ? "/sys/fs/cgroup/unified"
									: "/sys/fs/cgroup";
	char line[600];
	FILE *f = fopen("/proc/self/cgroup", "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		found = !strncmp(line, "0::", 3);
		if (found)
			snprintf(out, cap, "%s%s", mount, strcmp(line + 3, "/") ? line + 3 : "");
	}
	if (f)
		fclose(f);
	return found && !access(out, W_OK);
}

/* What v2 gives without any controller: joining, CPU time, killing. */
static void v2_for_real(void **state)
{
	lh_plan *plan = plan_make(LP_CG_V2);
	launch_failure f = { 0 };
	lp_usage usage = { 0 };
	launch_cgroup cg;
	lp_plan_view v;
	char dir[700];

	(void)state;
	if (geteuid() || !own_group2(dir, sizeof dir) || strlen(dir) > 300) {
		lh_plan_free(plan);
		skip();
	}
	lh_plan_cgroup(plan, dir, LP_CTL_CPUACCT);
	v = plan_view(plan);
	if (cgroup_make(&v, &cg, &f) < 0)
		fail_msg("%s", f.message);
	assert_int_equal(in_group(&cg, spin), 0);
	cgroup_usage(&cg, &usage);
	assert_in_range(usage.user_us + usage.system_us, 50000, 2000000);
	assert_int_equal(in_group(&cg, leave_sleepers), 0);
	assert_int_equal(rmdir(cg.path[0]), -1); /* they are in it */
	assert_int_equal(cgroup_remove(&cg), 0);
	assert_int_equal(access(cg.path[0], F_OK), -1);
	cgroup_close(&cg);
	lh_plan_free(plan);
}

/* A plain directory gets no files by being made: the first limit cannot be written, and that is told. */
static void v2_without_files(void **state)
{
	char dir[] = "/tmp/unit-cgroup2-XXXXXX", path[128];
	lh_plan *plan = plan_make(LP_CG_V2);
	launch_failure f = { 0 };
	launch_cgroup cg;
	lp_plan_view v;

	(void)state;
	assert_non_null(mkdtemp(dir));
	lh_plan_cgroup(plan, dir, LP_CTL_MEMORY | LP_CTL_PIDS | LP_CTL_CPU);
	v = plan_view(plan);
	assert_int_equal(cgroup_make(&v, &cg, &f), -1);
	assert_non_null(strstr(f.message, "cgroup.subtree_control"));
	write_text(dir, "cgroup.subtree_control", "cpu memory pids\n");
	assert_int_equal(cgroup_make(&v, &cg, &f), -1);
	assert_non_null(strstr(f.message, "memory.max"));
	snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_int_equal(access(path, F_OK), -1);
	expect_text(dir, "cgroup.subtree_control", "cpu memory pids"); /* all on: not touched */
	snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	lh_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v1_limits), cmocka_unit_test(v1_counters), cmocka_unit_test(v1_budget_is_lent),
		cmocka_unit_test(failure_leaves_nothing), cmocka_unit_test(sweep),
		cmocka_unit_test(v2_counters), cmocka_unit_test(v2_for_real),
		cmocka_unit_test(v2_without_files),
	};

	snprintf(name, sizeof name, "unit-cgroup-%d", getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
