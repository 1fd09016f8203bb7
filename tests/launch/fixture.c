/* SPDX-License-Identifier: MIT */
/* fixture.c - see fixture.h. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTER_UID 1879048192u    /* kernel id of a root caller's guest: owns nothing */

const char *fix_launch;
bool fix_root;

/* The library's own lies in a layer above. */
int sb_call_wait(const sb_call *call, int fd, short events, sb_error *err)
{
	struct pollfd p = { .fd = fd, .events = events };

	(void)call;
	(void)err;
	return poll(&p, 1, FIX_WAIT_MS) > 0 ? 0 : SB_ERR_TIMEOUT;
}

void fix_open(fix *f)
{
	*f = (fix){ .dir = "/tmp/sb-launch-test-XXXXXX" };
	snprintf(f->mark, sizeof f->mark, "1000.5%07u1", (unsigned)getpid());
	snprintf(f->other, sizeof f->other, "1000.5%07u2", (unsigned)getpid());
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(chmod(f->dir, 0755), 0);
	snprintf(f->ws, sizeof f->ws, "%s/ws", f->dir);
	assert_int_equal(mkdir(f->ws, 0755), 0);
}

void fix_write(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

bool fix_exists(const char *dir, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

static void plan_ids(lp_plan *p)
{
	if (fix_root) {
		p->steps |= LP_OWN_GROUP;
		p->uid_outside = p->gid_outside = OUTER_UID + (uint32_t)getpid() % 60000;
		p->uid_outer = p->gid_outer = 0;
		p->uid_inside = p->gid_inside = 1000;
	} else {
		p->uid_outside = p->uid_outer = p->uid_inside = getuid();
		p->gid_outside = p->gid_outer = p->gid_inside = getgid();
	}
}

static void plan_system(lh_plan *p)
{
	static const char *const dirs[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
	static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };
	char path[64], text[64];
	size_t i;

	lh_plan_mount(p, LP_M_BIND, "/usr", "/usr", LP_F_READONLY, 0);
	for (i = 0; i < UNIT_LEN(dirs); i++) {
		struct stat st;

		snprintf(path, sizeof path, "/%s", dirs[i]);
		snprintf(text, sizeof text, "usr/%s", dirs[i]);
		if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
			lh_plan_mount(p, LP_M_SYMLINK, text, path, 0, 0);
		else if (stat(path, &st) == 0)
			lh_plan_mount(p, LP_M_BIND, path, path, LP_F_READONLY, 0);
	}
	lh_plan_mount(p, LP_M_BIND, "/etc/ld.so.cache", "/etc/ld.so.cache", LP_F_READONLY | LP_F_OPTIONAL, 0);
	lh_plan_mount(p, LP_M_BIND, "/etc/alternatives", "/etc/alternatives", LP_F_READONLY | LP_F_OPTIONAL, 0);
	lh_plan_mount(p, LP_M_FILE, "sandbox:x:1000:1000::/home/sandbox:/bin/sh\n", "/etc/passwd", 0, 0444);
	for (i = 0; i < UNIT_LEN(devices); i++) {
		snprintf(path, sizeof path, "/dev/%s", devices[i]);
		lh_plan_mount(p, LP_M_DEVICE, path, path, LP_F_WRITE, 0);
	}
	lh_plan_mount(p, LP_M_DEVPTS, NULL, "/dev/pts", LP_F_WRITE, 0);
	lh_plan_mount(p, LP_M_PROC, NULL, "/proc", LP_F_WRITE, 0);
}

void fix_plan(fix *f)
{
	static const struct { const char *part, *target; int flags, mode; } scratch[] = {
		{ "tmp", "/tmp", LP_F_WRITE, 01777 }, { "shm", "/dev/shm", LP_F_WRITE, 01777 },
		{ "in", "/in", LP_F_READONLY, 0755 }, { "work", "/work", LP_F_WRITE, 0755 },
		{ "out", "/out", LP_F_WRITE, 0755 }, { "code", "/run/code", LP_F_READONLY, 0755 } };
	int fd = open(f->ws, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t i;

	assert_true(fd >= 0);
	f->plan = lh_plan_new();
	assert_non_null(f->plan);
	f->plan->fixed.steps = LP_USERNS | LP_PIDNS | LP_MOUNTNS | LP_IPCNS | LP_UTSNS | LP_CGROUPNS |
		LP_NETNS | LP_LO_UP | LP_ROOT | LP_MASK_PROC | LP_NO_CAPS | LP_NO_NEW_PRIVS |
		LP_UNDUMPABLE | LP_LANDLOCK | LP_SECCOMP | LP_SESSION | LP_CLOSE_FDS | LP_NESTED_USERNS;
	plan_ids(&f->plan->fixed);
	f->plan->fixed.tmpfs_bytes = 8u << 20;
	f->plan->fixed.tmpfs_nodes = 512;
	f->plan->fixed.hostname = lh_plan_string(f->plan, "sandbox");
	plan_system(f->plan);
	for (i = 0; i < UNIT_LEN(scratch); i++)
		lh_plan_mount(f->plan, LP_M_SCRATCH, scratch[i].part, scratch[i].target,
			      scratch[i].flags, (uint64_t)scratch[i].mode);
	lh_plan_mount_fd(f->plan, LP_M_BIND, fd, f->ws, f->ws,
			 LP_F_WRITE | (fix_root ? LP_F_IDMAP : 0), 0);
}

static void start(fix *f)
{
	sb_error err = { 0 };

	lh_plan_mount(f->plan, LP_M_REMOUNT_RO, NULL, NULL, 0, 0);
	if (lh_start(fix_launch, f->plan, &f->box, &err))
		fail_msg("lh_start: %s", err.message);
}

void fix_next(fix *f, lh_answer *answer, int *fd)
{
	sb_call call = { .deadline_ns = SB_UNLIMITED };
	sb_error err = { 0 };
	int dummy;

	if (lh_next(f->box, &call, true, answer, &dummy, &err))
		fail_msg("lh_next: %s", err.message);
	if (fd)
		*fd = dummy;
	else
		fd_close(&dummy);
}

void fix_start(fix *f, lh_answer *ready, int *scratch)
{
	lh_answer mine;

	ready = ready ? ready : &mine;
	start(f);
	fix_next(f, ready, scratch);
	if (ready->head.kind == LP_FAILED)
		fail_msg("FAILED %s: %s", ready->failed.where, ready->failed.message);
	assert_int_equal(ready->head.kind, LP_READY);
}

void fix_start_failed(fix *f, lh_answer *failed)
{
	lh_answer gone;

	start(f);
	fix_next(f, failed, NULL);
	assert_int_equal(failed->head.kind, LP_FAILED);
	fix_next(f, &gone, NULL);
	assert_int_equal(gone.head.kind, LP_GONE);
}

uint32_t fix_spawn(fix *f, const char *const *argv, const char *cwd, uint32_t flags, int *out,
		   int *exited)
{
	char mark[40], other[40];
	const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C", mark, other, NULL };
	int pipe_out[2], pipe_exit[2];
	sb_error err = { 0 };
	lh_spawn s = { .argv = argv, .env = env, .cwd = cwd, .flags = flags, .in = -1,
		.control = -1, .code = -1, .id = ++f->last_id };

	snprintf(mark, sizeof mark, "M=%s", f->mark);
	snprintf(other, sizeof other, "N=%s", f->other);
	assert_int_equal(pipe2(pipe_out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(pipe_exit, O_CLOEXEC), 0);
	s.out = s.err = pipe_out[1];
	s.exit_pipe = pipe_exit[1];
	if (lh_spawn_send(f->box, &s, &err))
		fail_msg("lh_spawn_send: %s", err.message);
	close(pipe_out[1]);
	close(pipe_exit[1]);
	*out = pipe_out[0];
	if (exited)
		*exited = pipe_exit[0];
	else
		close(pipe_exit[0]);
	return s.id;
}

static void read_out(int out, fix_run *run)
{
	ssize_t n;

	while (run->out_len < sizeof run->out - 1 &&
	       (n = read(out, run->out + run->out_len, sizeof run->out - 1 - run->out_len)) > 0)
		run->out_len += (size_t)n;
	run->out[run->out_len] = 0;
}

void fix_run_argv(fix *f, const char *const *argv, const char *cwd, fix_run *run)
{
	int out;
	uint32_t id = fix_spawn(f, argv, cwd, 0, &out, NULL);

	memset(run, 0, sizeof *run);
	do
		fix_next(f, &run->end, NULL);
	while (run->end.head.kind == LP_SPAWNED);
	assert_int_equal(run->end.head.id, id);
	read_out(out, run);
	close(out);
}

void fix_sh(fix *f, const char *script, fix_run *run)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };

	fix_run_argv(f, argv, "/", run);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

void fix_close(fix *f)
{
	lh_close(f->box);
	if (f->plan) {
		uint32_t i;

		for (i = 0; i < f->plan->fd_count; i++)
			close(f->plan->fds[i]);
	}
	lh_plan_free(f->plan);
	nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	*f = (fix){ .dir = "" };
}

void fix_await(fix *f, uint32_t kind, uint32_t id, lh_answer *answer)
{
	do
		fix_next(f, answer, NULL);
	while (answer->head.kind != kind || answer->head.id != id);
}

/* ---- Processes ------------------------------------------------------------------------------ */

static bool has_mark(const char *pid, const char *mark)
{
	char path[300], text[4096];
	ssize_t n, i;
	int fd;

	snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	fd_close(&fd);
	if (n <= 0)
		return false;
	for (i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	text[n] = 0;
	return strstr(text, mark) != NULL;
}

unsigned fix_count(const char *mark)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(proc);
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			count += has_mark(entry->d_name, mark);
	closedir(proc);
	return count;
}

void fix_expect_count(const char *mark, unsigned count)
{
	uint64_t end = clock_now_ns() + FIX_WAIT_MS * 1000000ull;
	unsigned now;

	while ((now = fix_count(mark)) != count) {
		if (clock_now_ns() > end)
			fail_msg("%u processes instead of %u have \"%s\"", now, count, mark);
		usleep(2000);
	}
}

void fix_expect_none(const char *mark)
{
	fix_expect_count(mark, 0);
}

/* ---- As whom ---------------------------------------------------------------------------------- */

static char copy_dir[] = "/tmp/sb-launch-copy-XXXXXX", copy_path[64];

static void copy_remove(void)
{
	unlink(copy_path);
	rmdir(copy_dir);
}

/* A build directory need not be readable for everybody. */
static int become_user(void)
{
	char data[65536];
	ssize_t n;
	int in = open(fix_launch, O_RDONLY | O_CLOEXEC), out;

	if (in < 0 || !mkdtemp(copy_dir) || chown(copy_dir, 1000, 1000) < 0 || chmod(copy_dir, 0755) < 0)
		return -1;
	snprintf(copy_path, sizeof copy_path, "%s/sb-launch", copy_dir);
	out = open(copy_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	while (out >= 0 && (n = read(in, data, sizeof data)) > 0)
		if (write(out, data, (size_t)n) != n)
			return -1;
	close(in);
	close(out);
	fix_launch = copy_path;
	if (setgroups(0, NULL) < 0 || setgid(1000) < 0 || setuid(1000) < 0)
		return -1;
	/* Else /proc/PID of this process would not be ours, as it is for a program just started. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return atexit(copy_remove);
}

int fix_main(int argc, char **argv, int (*run)(void))
{
	bool user = argc > 1 && !strcmp(argv[1], "user");

	fix_launch = getenv("SB_LAUNCH");
	if (!fix_launch || access(fix_launch, X_OK) < 0) {
		fprintf(stderr, "no sb-launch at SB_LAUNCH: run `make programs` first\n");
		return 77;
	}
	if (user && geteuid() == 0 && become_user() < 0) {
		perror("cannot become a plain user");
		return 1;
	}
	fix_root = geteuid() == 0;
	if (!user && !fix_root)
		return 77;
	return run();
}
