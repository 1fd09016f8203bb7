/* SPDX-License-Identifier: MIT */
/*
 * cgroups.c - boxes with control groups (v1, as root; skipped elsewhere): limits end the guest and never
 * pid 1, counters come with EXITED, and the directories are gone at GONE.
 */
#include "fixture.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static char parents[2][512]; /* of memory and pids; below where this test runs */

/* "/sys/fs/cgroup/NAME" and our own path in it; false if it is not there for us. */
static bool find_parent(const char *name, char *out, size_t cap)
{
	char line[512], want[32];
	FILE *file = fopen("/proc/self/cgroup", "r");
	bool found = false;

	snprintf(want, sizeof want, ":%s:/", name);
	while (file && !found && fgets(line, sizeof line, file)) {
		const char *at = strstr(line, want);

		line[strcspn(line, "\n")] = 0;
		if (!at)
			continue;
		at += strlen(want) - 1;
		snprintf(out, cap, "/sys/fs/cgroup/%s%s", name, at[1] ? at : "");
		found = access(out, W_OK) == 0;
	}
	if (file)
		fclose(file);
	return found;
}

static bool available(void)
{
	return fix_root && find_parent("memory", parents[0], sizeof parents[0]) &&
	       find_parent("pids", parents[1], sizeof parents[1]);
}

/* Each test names its directories after itself. */
static void up(fix *f, uint64_t memory_bytes, uint64_t pids)
{
	static unsigned count;
	char name[64];

	if (!available())
		skip();
	fix_open(f);
	fix_plan(f);
	snprintf(name, sizeof name, "sb-launch-test-%d-%u", (int)getpid(), ++count);
	f->plan->fixed.cgroup_kind = LP_CG_V1;
	f->plan->fixed.cgroup_name = lh_plan_string(f->plan, name);
	f->plan->fixed.memory_bytes = memory_bytes;
	f->plan->fixed.pids = pids;
	lh_plan_cgroup(f->plan, parents[0], LP_CTL_MEMORY);
	lh_plan_cgroup(f->plan, parents[1], LP_CTL_PIDS);
	fix_start(f, NULL, NULL);
	assert_true(fix_exists(parents[0], name));
	assert_true(fix_exists(parents[1], name));
}

static void down(fix *f)
{
	char name[64];
	lh_answer gone;
	sb_error err = { 0 };
	int i;

	snprintf(name, sizeof name, "%s", f->plan->strings + f->plan->fixed.cgroup_name);
	assert_int_equal(lh_stop(f->box, 0, &err), 0);
	fix_await(f, LP_GONE, 0, &gone);
	assert_int_equal(gone.gone.leftovers, 0);
	for (i = 0; i < 2; i++)
		assert_false(fix_exists(parents[i], name));
	fix_close(f);
}

static void memory_ends_the_guest_alone(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	up(&f, 24u << 20, SB_UNLIMITED);
	fix_sh(&f, "ulimit -v 400000; exec tail /dev/zero", &run);
	assert_int_equal(run.end.head.kind, LP_EXITED);
	assert_int_equal(run.end.exited.signo, SIGKILL);
	assert_true(run.end.exited.usage.oom_kills >= 1);
	assert_in_range(run.end.exited.usage.peak_memory_bytes, 20u << 20, 24u << 20);
	fix_sh(&f, "echo still here", &run);
	fix_expect_out(&run, "still here\n");
	down(&f);
}

/* The limit is met before the program is executed, while the child copies its arguments. */
static void no_memory_for_the_arguments(void **state)
{
	enum { COUNT = 14, LONG = 120000 };
	const char *argv[COUNT + 2] = { "/bin/true" };
	static char big[LONG + 1]; /* up() may skip and not come back */
	fix_run run;
	int i;
	fix f;

	(void)state;
	memset(big, 'x', LONG);
	big[LONG] = 0;
	for (i = 1; i <= COUNT; i++)
		argv[i] = big;
	up(&f, 1u << 20, SB_UNLIMITED);
	fix_run_argv(&f, argv, "/", &run);
	if (run.end.head.kind == LP_EXITED)
		assert_int_equal(run.end.exited.signo, SIGKILL);
	else
		assert_true(run.end.failed.os_errno == ENOMEM || run.end.failed.os_errno == E2BIG);
	fix_run_argv(&f, (const char *const[]){ "/bin/true", NULL }, "/", &run);
	fix_expect_exit(&run, 0);
	down(&f);
}

static void processes_are_counted(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	up(&f, SB_UNLIMITED, 6);
	fix_sh(&f, "ulimit -u 60; i=0; while [ $i -lt 20 ]; do sleep 100 & i=$((i+1)); done; echo all", &run);
	assert_null(strstr(run.out, "all"));
	assert_non_null(strstr(run.out, "fork"));
	assert_true(run.end.exited.usage.pids_refused >= 1);
	assert_true(run.end.exited.empty);
	down(&f);
}

static void absent_parent(void **state)
{
	lh_answer failed;
	fix f;

	(void)state;
	if (!available())
		skip();
	fix_open(&f);
	fix_plan(&f);
	f.plan->fixed.cgroup_kind = LP_CG_V1;
	f.plan->fixed.cgroup_name = lh_plan_string(f.plan, "sb-launch-test");
	lh_plan_cgroup(f.plan, "/sys/fs/cgroup/memory/not/there", LP_CTL_MEMORY);
	fix_start_failed(&f, &failed);
	assert_string_equal(failed.failed.where, "cgroup");
	assert_int_equal(failed.failed.os_errno, ENOENT);
	fix_close(&f);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_ends_the_guest_alone),
		cmocka_unit_test(no_memory_for_the_arguments),
		cmocka_unit_test(processes_are_counted), cmocka_unit_test(absent_parent) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return fix_main(argc, argv, run);
}
