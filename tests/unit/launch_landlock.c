/* SPDX-License-Identifier: MIT */
/*
 * launch_landlock.c - rules out of a mount table, in a child, on the machine's own files; what is
 * refused there works in the control, which differs by the rules alone.
 */
#include "unit.h"

#include "launch_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[] = "/tmp/unit-landlock-XXXXXX";
static char open_dir[64], other_dir[64], shut_dir[64];

static int prctl_no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void path_in(char *out, size_t cap, const char *dir, const char *name)
{
	snprintf(out, cap, "%s/%s", dir, name);
}

static int write_file(const char *dir, const char *name)
{
	char path[128];
	int fd, rc = 0;

	path_in(path, sizeof path, dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno;
	if (write(fd, "x", 1) != 1)
		rc = errno;
	close(fd);
	return rc;
}

static int make_world(void **state)
{
	(void)state;
	if (!mkdtemp(base))
		return -1;
	path_in(open_dir, sizeof open_dir, base, "open");
	path_in(other_dir, sizeof other_dir, base, "other");
	path_in(shut_dir, sizeof shut_dir, base, "shut");
	if (mkdir(open_dir, 0755) || mkdir(other_dir, 0755) || mkdir(shut_dir, 0755))
		return -1;
	return write_file(shut_dir, "there") || write_file(open_dir, "there");
}

static int remove_world(void **state)
{
	char command[128];
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		snprintf(command, sizeof command, "%s", base);
		execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

/* ---- Attempts: 0, or the errno --------------------------------------------------------------- */

static int try_write_open(void)
{
	return write_file(open_dir, "new");
}

static int try_write_shut(void)
{
	return write_file(shut_dir, "new");
}

static int try_overwrite_shut(void)
{
	return write_file(shut_dir, "there");
}

static int try_truncate_shut(void)
{
	char path[128];

	path_in(path, sizeof path, shut_dir, "there");
	return truncate(path, 0) ? errno : 0;
}

static int try_read_shut(void)
{
	char path[128];
	int fd;

	path_in(path, sizeof path, shut_dir, "there");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_mkdir_shut(void)
{
	char path[128];

	path_in(path, sizeof path, shut_dir, "dir");
	return mkdir(path, 0755) ? errno : 0;
}

static int try_symlink_shut(void)
{
	char path[128];

	path_in(path, sizeof path, shut_dir, "link");
	return symlink("/etc/passwd", path) ? errno : 0;
}

static int try_unlink_shut(void)
{
	char path[128];

	path_in(path, sizeof path, shut_dir, "there");
	return unlink(path) ? errno : 0;
}

static int move(const char *from_dir, const char *from, const char *to_dir, const char *to)
{
	char a[128], b[128];

	path_in(a, sizeof a, from_dir, from);
	path_in(b, sizeof b, to_dir, to);
	return rename(a, b) ? errno : 0;
}

static int try_rename_inside(void)
{
	return move(open_dir, "there", open_dir, "renamed");
}

static int try_rename_across(void)
{
	return move(open_dir, "renamed", other_dir, "moved");
}

static int try_rename_out(void)
{
	return move(other_dir, "moved", shut_dir, "moved");
}

static int try_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (isatty(fd) || errno != ENOTTY)
		return errno ? errno : EIO;
	close(fd);
	return 0;
}

static int try_zero(void)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_proc_comm(void)
{
	int fd = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "me", 2) != 2)
		return errno;
	close(fd);
	return 0;
}

static int try_run(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/sh", "sh", "-c", "echo x >/dev/null; ls / >/dev/null", (char *)NULL);
		_exit(100);
	}
	waitpid(pid, &status, 0);
	return status ? EACCES : 0;
}

static int try_abstract(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, "%s", base);
	rc = connect(fd, (struct sockaddr *)&addr, sizeof addr) ? errno : 0;
	close(fd);
	return rc;
}

static int try_signal_out(void)
{
	return kill(getppid(), 0) ? errno : 0;
}

typedef struct attempt {
	const char *name;
	int (*run)(void);
	int want;          /* behind the rules */
	uint32_t abi;      /* from which on */
	bool control;      /* run it without rules: it must work there */
} attempt;

static const attempt attempts[] = {
	{ "write where it is allowed", try_write_open, 0, 1, true },
	{ "write elsewhere", try_write_shut, EACCES, 1, true },
	{ "overwrite elsewhere", try_overwrite_shut, EACCES, 1, true },
	{ "truncate elsewhere", try_truncate_shut, EACCES, 3, true },
	{ "read elsewhere", try_read_shut, 0, 1, true },
	{ "mkdir elsewhere", try_mkdir_shut, EACCES, 1, true },
	{ "symlink elsewhere", try_symlink_shut, EACCES, 1, true },
	{ "rename inside", try_rename_inside, 0, 1, true },
	{ "rename across", try_rename_across, 0, 2, true },
	{ "rename out", try_rename_out, EACCES, 2, true },
	{ "unlink elsewhere", try_unlink_shut, EACCES, 1, true },
	{ "device of the table", try_null, 0, 1, true },
	{ "device not of the table", try_zero, EACCES, 1, true },
	{ "own name", try_proc_comm, 0, 1, true },
	{ "run a program", try_run, 0, 1, true },
	{ "abstract socket of the host", try_abstract, EPERM, 6, true },
	{ "signal to the host", try_signal_out, EPERM, 6, true },
};

/* ---- The rules ------------------------------------------------------------------------------- */

static lh_plan *make_plan(uint64_t steps)
{
	lh_plan *plan = lh_plan_new();

	assert_non_null(plan);
	plan->fixed.steps = steps;
	lh_plan_mount(plan, LP_M_BIND, "/usr", "/usr", LP_F_READONLY, 0);
	lh_plan_mount(plan, LP_M_BIND, open_dir, open_dir, LP_F_WRITE, 0);
	lh_plan_mount(plan, LP_M_BIND, other_dir, other_dir, LP_F_WRITE, 0);
	lh_plan_mount(plan, LP_M_BIND, "/nonexistent", "/nonexistent", LP_F_OPTIONAL | LP_F_WRITE, 0);
	lh_plan_mount(plan, LP_M_DEVICE, "/dev/null", "/dev/null", 0, 0);
	lh_plan_mount(plan, LP_M_PROC, NULL, "/proc", 0, 0);
	return plan;
}

static int listener(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, "%s", base);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void run_attempts(const lp_plan_view *v, int pipe_fd)
{
	int answers[UNIT_LEN(attempts)];
	uint32_t abi = landlock_abi();
	launch_failure f;
	size_t i;

	if (v && landlock_apply(v, NULL, 0, -1, abi >= 6, &abi, &f) < 0)
		_exit(1);
	for (i = 0; i < UNIT_LEN(attempts); i++)
		answers[i] = attempts[i].run();
	if (write(pipe_fd, answers, sizeof answers) != sizeof answers)
		_exit(2);
	_exit(0);
}

static void in_child(const lp_plan_view *v, int *answers)
{
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (v && prctl_no_new_privs())
			_exit(3);
		run_attempts(v, fds[1]);
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], answers, sizeof(int) * UNIT_LEN(attempts)),
			 sizeof(int) * UNIT_LEN(attempts));
	close(fds[0]);
}

static void rules_hold(void **state)
{
	int answers[UNIT_LEN(attempts)], fd;
	uint32_t abi = landlock_abi();
	lh_plan *plan;
	lp_plan_view v;
	size_t i;

	(void)state;
	if (!abi)
		skip();
	fd = listener();
	plan = make_plan(LP_MOUNTNS | LP_ROOT | LP_LANDLOCK);
	v = plan_view(plan);
	in_child(&v, answers);
	for (i = 0; i < UNIT_LEN(attempts); i++)
		if (abi >= attempts[i].abi && answers[i] != attempts[i].want)
			fail_msg("%s: %s", attempts[i].name, strerror(answers[i]));
	assert_int_equal(move(other_dir, "moved", open_dir, "there"), 0);
	in_child(NULL, answers);
	for (i = 0; i < UNIT_LEN(attempts); i++)
		if (attempts[i].control && answers[i])
			fail_msg("without rules: %s: %s", attempts[i].name, strerror(answers[i]));
	close(fd);
	lh_plan_free(plan);
}

/* Without a root of our own: what no row names cannot be read at all. */
static void no_root_of_our_own(void **state)
{
	lh_plan *plan = make_plan(LP_LANDLOCK);
	lp_plan_view v = plan_view(plan);
	int status;
	pid_t pid;

	(void)state;
	if (!landlock_abi())
		skip();
	assert_int_equal(write_file(shut_dir, "there"), 0);
	pid = fork();
	if (!pid) {
		launch_failure f;
		uint32_t abi;

		if (prctl_no_new_privs() || landlock_apply(&v, NULL, 0, -1, false, &abi, &f) < 0)
			_exit(1);
		if (try_read_shut() != EACCES || try_write_shut() != EACCES)
			_exit(2);
		if (try_write_open())
			_exit(3);
		_exit(open("/usr/bin/env", O_RDONLY | O_CLOEXEC) < 0 ? 4 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	lh_plan_free(plan);
}

static void scratch_is_open(void **state)
{
	lh_plan *plan = make_plan(LP_MOUNTNS | LP_ROOT | LP_LANDLOCK);
	lp_plan_view v = plan_view(plan);
	int status, fd = open(shut_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t pid;

	(void)state;
	if (!landlock_abi())
		skip();
	pid = fork();
	if (!pid) {
		launch_failure f;
		uint32_t abi;

		if (prctl_no_new_privs() || landlock_apply(&v, NULL, 0, fd, false, &abi, &f) < 0)
			_exit(1);
		_exit(openat(fd, "put", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0 ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	lh_plan_free(plan);
}

static void a_row_that_is_not_there(void **state)
{
	lh_plan *plan = make_plan(LP_MOUNTNS | LP_ROOT | LP_LANDLOCK);
	lp_plan_view v;
	launch_failure f = { 0 };
	uint32_t abi;

	(void)state;
	if (!landlock_abi())
		skip();
	lh_plan_mount(plan, LP_M_BIND, "/nonexistent", "/nonexistent", LP_F_WRITE, 0);
	v = plan_view(plan);
	assert_int_equal(landlock_apply(&v, NULL, 0, -1, false, &abi, &f), -1);
	assert_string_equal(f.where, "landlock");
	assert_non_null(strstr(f.message, "\"/nonexistent\""));
	assert_int_equal(f.os_errno, ENOENT);
	lh_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_hold), cmocka_unit_test(no_root_of_our_own),
		cmocka_unit_test(scratch_is_open), cmocka_unit_test(a_row_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, make_world, remove_world);
}
