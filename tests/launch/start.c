/* SPDX-License-Identifier: MIT */
/* start.c - PLAN to READY: what is held, what is refused, and that every namespace is a new one. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void holds_what_it_was_told(void **state)
{
	lh_answer ready;
	fix f;
	int scratch;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	fix_start(&f, &ready, &scratch);
	assert_int_equal(ready.ready.held, f.plan->fixed.steps);
	assert_true(ready.ready.landlock_abi >= 1);
	assert_true(ready.ready.has_scratch);
	assert_int_equal(faccessat(scratch, "out", F_OK, 0), 0);
	close(scratch);
	assert_int_equal(kill(ready.ready.pid1, 0), 0);
	fix_close(&f);
}

static void namespaces_are_new(void **state)
{
	static const char *const names[] = { "user", "pid", "mnt", "ipc", "uts", "net", "cgroup" };
	fix_run run;
	size_t i;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	fix_start(&f, NULL, NULL);
	for (i = 0; i < UNIT_LEN(names); i++) {
		char script[64], ours[64] = "", path[64];

		snprintf(script, sizeof script, "readlink /proc/self/ns/%s", names[i]);
		fix_sh(&f, script, &run);
		fix_expect_exit(&run, 0);
		snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
		assert_true(readlink(path, ours, sizeof ours - 1) > 0);
		assert_int_equal(strncmp(run.out, names[i], strlen(names[i])), 0);
		assert_int_not_equal(strncmp(run.out, ours, strlen(ours)), 0);
	}
	fix_close(&f);
}

/* The value of a line of a status file, up to its end. */
static void status_line(const char *text, const char *key, char *out, size_t cap)
{
	const char *at = strstr(text, key);
	size_t len;

	assert_non_null(at);
	at += strlen(key);
	at += strspn(at, " \t");
	len = strcspn(at, "\n");
	assert_true(len < cap);
	memcpy(out, at, len);
	out[len] = 0;
}

static void guest_has_no_privilege(void **state)
{
	static const char *const keys[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:",
		"SigBlk:", "SigIgn:" };
	char value[64];
	fix_run run;
	size_t i;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	fix_start(&f, NULL, NULL);
	fix_sh(&f, "cat /proc/self/status; umask", &run);
	fix_expect_exit(&run, 0);
	for (i = 0; i < UNIT_LEN(keys); i++) {
		status_line(run.out, keys[i], value, sizeof value);
		assert_string_equal(value, "0000000000000000");
	}
	status_line(run.out, "NoNewPrivs:", value, sizeof value);
	assert_string_equal(value, "1");
	status_line(run.out, "Seccomp:", value, sizeof value);
	assert_string_equal(value, "2");
	assert_string_equal(run.out + run.out_len - 5, "0022\n");
	fix_sh(&f, "id -u; id -g; hostname", &run);
	fix_expect_out(&run, "1000\n1000\nsandbox\n");
	fix_close(&f);
}

/* Root's guest: a kernel id of its own, no group of the caller's. */
static void kernel_ids(void **state)
{
	char path[64], text[4096], value[128], want[64];
	const char *const argv[] = { "/bin/sleep", "100.5", NULL };
	lh_answer ready;
	int out, fd;
	ssize_t n;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	fix_start(&f, &ready, NULL);
	fix_spawn(&f, argv, "/", 0, &out, NULL);
	snprintf(path, sizeof path, "/proc/%d/status", ready.ready.pid1);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof text - 1);
	assert_true(n > 0);
	text[n] = 0;
	status_line(text, "\nUid:", value, sizeof value);
	snprintf(want, sizeof want, "%u\t", f.plan->fixed.uid_outside);
	assert_int_equal(strncmp(value, want, strlen(want)), 0);
	assert_true(!fix_root || f.plan->fixed.uid_outside > 65536);
	if (fix_root) {
		status_line(text, "\nGroups:", value, sizeof value);
		assert_string_equal(value, "");
	}
	close(fd);
	close(out);
	fix_close(&f);
}

/* pid 1 cannot be looked into, nor be killed by a guest. */
static void pid1_is_out_of_reach(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	fix_start(&f, NULL, NULL);
	fix_sh(&f, "for f in mem environ maps fd exe root cwd auxv stack; do "
		   "if [ -r /proc/1/$f ] && (cat /proc/1/$f || ls /proc/1/$f/ || readlink /proc/1/$f) "
		   ">/dev/null 2>&1; then echo $f; fi; done; "
		   "for s in 1 2 3 9 10 11 14 15 17 19 20; do kill -$s 1; done; echo alive", &run);
	fix_expect_out(&run, "alive\n");
	fix_sh(&f, "echo again", &run);
	fix_expect_out(&run, "again\n");
	fix_close(&f);
}

/* ---- Refused ------------------------------------------------------------------------------------ */

static void swapped_workspace(void **state)
{
	char other[100], seen[100];
	lh_answer answer;
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	fix_write(f.ws, "first", "");
	fix_plan(&f);
	snprintf(other, sizeof other, "%s/moved", f.dir);
	assert_int_equal(rename(f.ws, other), 0);
	assert_int_equal(mkdir(f.ws, 0755), 0);
	fix_write(f.ws, "second", "");
	if (fix_root) { /* the descriptor counts, not the path */
		fix_start(&f, NULL, NULL);
		snprintf(seen, sizeof seen, "ls %s", f.ws);
		fix_sh(&f, seen, &run);
		fix_expect_out(&run, "first\n");
	} else {
		fix_start_failed(&f, &answer);
		assert_string_equal(answer.failed.where, "mount.source");
		assert_non_null(strstr(answer.failed.message, "swapped"));
		assert_non_null(strstr(answer.failed.message, f.ws));
	}
	fix_close(&f);
}

static void absent_source(void **state)
{
	lh_answer answer;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	lh_plan_mount(f.plan, LP_M_BIND, "/usr/is-not-there", "/a", LP_F_READONLY | LP_F_OPTIONAL, 0);
	lh_plan_mount(f.plan, LP_M_BIND, "/usr/neither", "/b", LP_F_READONLY, 0);
	fix_start_failed(&f, &answer);
	assert_string_equal(answer.failed.where, "mount.source");
	assert_int_equal(answer.failed.os_errno, ENOENT);
	assert_non_null(strstr(answer.failed.message, "\"/usr/neither\""));
	fix_close(&f);
}

static void map_that_is_not_ours(void **state)
{
	lh_answer answer;
	fix f;

	(void)state;
	if (fix_root)
		return; /* root may map anyone */
	fix_open(&f);
	fix_plan(&f);
	f.plan->fixed.uid_outside = 0;
	fix_start_failed(&f, &answer);
	assert_string_equal(answer.failed.where, "userns");
	assert_int_equal(answer.failed.os_errno, EPERM);
	fix_close(&f);
}

static void too_small_tmpfs(void **state)
{
	lh_answer answer;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	f.plan->fixed.tmpfs_nodes = 8;
	fix_start_failed(&f, &answer);
	assert_int_equal(answer.failed.os_errno, ENOSPC);
	fix_close(&f);
}

/* ---- Raw records ---------------------------------------------------------------------------------- */

/* Sends one record to a fresh sb-launch; the first answer. */
static void raw_exchange(const void *record, size_t bytes, lh_answer *answer)
{
	int pair[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(pair[1], 3);
		if (pair[1] == 3)
			fcntl(3, F_SETFD, 0);
		execl(fix_launch, "sb-launch", (char *)NULL);
		_exit(9);
	}
	close(pair[1]);
	if (record)
		assert_int_equal(send(pair[0], record, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
	else
		shutdown(pair[0], SHUT_WR);
	memset(answer, 0, sizeof *answer);
	assert_true(recv(pair[0], answer, sizeof *answer, 0) > 0);
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 1 << 8);
}

static void broken_plans(void **state)
{
	static union { lp_plan plan; char bytes[LP_MAX_MESSAGE]; } record;
	lh_answer answer;

	(void)state;
	raw_exchange(NULL, 0, &answer);
	assert_int_equal(answer.head.kind, LP_FAILED);
	raw_exchange("x", 1, &answer);
	assert_string_equal(answer.failed.where, "protocol");
	record.plan.head = (lp_head){ LP_VERSION, LP_PLAN, sizeof(lp_plan), 0 };
	snprintf(record.plan.build_id, sizeof record.plan.build_id, "0.0.1-of-another-day");
	raw_exchange(&record, sizeof(lp_plan), &answer);
	assert_string_equal(answer.failed.where, "build-id");
	memset(&record, 0xff, sizeof record);
	raw_exchange(&record, sizeof record, &answer);
	assert_int_equal(answer.head.kind, LP_FAILED);
}

/* Started by hand, it says so and does nothing. */
static void started_by_hand(void **state)
{
	char text[256] = "";
	int out[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], 2);
		close(3);
		execl(fix_launch, "sb-launch", (char *)NULL);
		_exit(9);
	}
	close(out[1]);
	assert_true(read(out[0], text, sizeof text - 1) > 0);
	assert_non_null(strstr(text, "not by hand"));
	close(out[0]);
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 2);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_it_was_told), cmocka_unit_test(namespaces_are_new),
		cmocka_unit_test(guest_has_no_privilege), cmocka_unit_test(kernel_ids),
		cmocka_unit_test(pid1_is_out_of_reach), cmocka_unit_test(swapped_workspace),
		cmocka_unit_test(absent_source), cmocka_unit_test(map_that_is_not_ours),
		cmocka_unit_test(too_small_tmpfs), cmocka_unit_test(broken_plans),
		cmocka_unit_test(started_by_hand) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return fix_main(argc, argv, run);
}
