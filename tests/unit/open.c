/* SPDX-License-Identifier: MIT */
/* open.c - paths with links in them, with openat2() and, in a child that a filter keeps from it, without. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/base.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

static char top[] = "/tmp/unit-open-XXXXXX";
static int dir = -1;

static const struct {
	const char *path;
	int flags;
	bool beneath;
	int error; /* 0 = it is opened */
} rows[] = {
	{ "d/f", O_RDONLY, false, 0 },
	{ "d/f", O_PATH, false, 0 },
	{ "./d//f", O_PATH, false, 0 },
	{ "d/", O_PATH | O_DIRECTORY, false, 0 },
	{ ".", O_PATH | O_DIRECTORY, false, 0 },
	{ "d/../d/f", O_PATH, false, 0 },
	{ "d/none", O_PATH, false, ENOENT },
	{ "none/f", O_PATH, false, ENOENT },
	{ "d/f/x", O_PATH, false, ENOTDIR },
	{ "", O_PATH, false, ENOENT },
	{ "to-d/f", O_PATH, false, ELOOP },
	{ "to-d/f", O_RDONLY, false, ELOOP },
	{ "to-d", O_PATH, false, ELOOP },
	{ "to-d", O_PATH | O_NOFOLLOW, false, 0 }, /* the link */
	{ "to-d/", O_PATH | O_DIRECTORY, false, ELOOP },
	{ "to-none", O_RDONLY, false, ELOOP },
	{ "d/to-f", O_RDONLY, false, ELOOP },
	{ "d/f", O_RDONLY, true, 0 },
	{ "d/f", O_PATH, true, 0 },
	{ "to-d/f", O_RDONLY, true, 0 },
	{ "d/to-f", O_PATH, true, 0 },
	{ "d/../d", O_PATH | O_DIRECTORY, true, 0 },
	{ "..", O_PATH | O_DIRECTORY, true, EXDEV },
	{ "d/../..", O_PATH | O_DIRECTORY, true, EXDEV },
	{ "to-etc", O_PATH | O_DIRECTORY, true, EXDEV },
	{ "to-etc/passwd", O_RDONLY, true, EXDEV },
	{ "up/d", O_PATH | O_DIRECTORY, true, EXDEV },
	{ "/etc", O_PATH | O_DIRECTORY, true, EXDEV },
	{ "to-etc/none/x", O_RDONLY, true, EXDEV },
	{ "d/none", O_RDONLY, true, ENOENT },
};

static int check_rows(void)
{
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		int fd = rows[i].beneath ? open_beneath(dir, rows[i].path, rows[i].flags)
					 : open_plain(dir, rows[i].path, rows[i].flags);
		int error = fd < 0 ? errno : 0;

		if (error != rows[i].error || (fd >= 0 && fcntl(fd, F_GETFD) != FD_CLOEXEC)) {
			fprintf(stderr, "row %zu \"%s\": %s\n", i, rows[i].path, strerror(error));
			return 1;
		}
		fd_close(&fd);
	}
	return 0;
}

static void with_the_call(void **state)
{
	(void)state;
	assert_int_equal(check_rows(), 0);
}

static int refuse_openat2(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { UNIT_LEN(code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0;
}

static void without_it(void **state)
{
	static const int errors[] = { ENOSYS, EPERM };

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(errors); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(refuse_openat2(errors[i]) ? 77 : check_rows());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip(); /* no filters here, as under an emulator */
		assert_int_equal(status, 0);
	}
}

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(top) || (dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -1;
	int file = mkdirat(dir, "d", 0755) ? -1 : openat(dir, "d/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	fd_close(&file);
	return symlinkat("d", dir, "to-d") || symlinkat("f", dir, "d/to-f") || symlinkat("none", dir, "to-none") ||
	       symlinkat("/etc", dir, "to-etc") || symlinkat("..", dir, "up") || mkfifoat(dir, "pipe", 0644) ||
	       symlinkat("pipe", dir, "to-pipe");
}

/* Nothing but a file is opened, and nothing keeps whoever asks. */
static void files_alone(void **state)
{
	static const struct {
		const char *path;
		int error;
	} all[] = { { "d/f", 0 },         { "d/to-f", 0 },   { "to-d/f", 0 },      { "d", EINVAL },    { "pipe", EINVAL },
		    { "to-pipe", EINVAL }, { "none", ENOENT }, { "to-none", ENOENT }, { "d/f/x", ENOTDIR }, { "/dev/zero", EINVAL },
		    { "/proc/self/stat", 0 } };

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(all); i++) {
		int fd = (errno = 0, open_regular(dir, all[i].path)), why = fd < 0 ? errno : 0;

		if (why != all[i].error)
			fail_msg("\"%s\": error %d, wanted %d", all[i].path, why, all[i].error);
		fd_close(&fd);
	}
}

static int unmake(void **state)
{
	static const char *const files[] = { "d/f", "d/to-f", "to-d", "to-none", "to-etc", "up", "pipe", "to-pipe" };

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(files); i++)
		unlinkat(dir, files[i], 0);
	unlinkat(dir, "d", AT_REMOVEDIR);
	fd_close(&dir);
	return rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_the_call),
		cmocka_unit_test(without_it),
		cmocka_unit_test(files_alone),
	};

	return cmocka_run_group_tests_name("open", tests, make, unmake);
}
