/* SPDX-License-Identifier: MIT */
/*
 * Directories of the host as a guest sees them: no path leads out of one, whoever swaps what meanwhile; what
 * is no file is none; and how such a directory is entered and left again from the tree in memory.
 */
#include "unit.h"

#include "src/vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sandbox/sandbox.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* TOP/outside and TOP/shown: the second is what a guest sees. */
static char top[] = "/tmp/sbtest-host.XXXXXX";

typedef struct world {
	host_fs *host;
	vfs *h;              /* of the host alone */
	vfs_file *dir;
	mem_fs *mem;         /* with the same at /home/user/shown, and one file of it at /one */
	vfs *v;
	vfs_file *root, *one;
} world;

static void sh(const char *command)
{
	char line[1000];

	snprintf(line, sizeof line, "cd %s && %s", top, command);
	assert_int_equal(system(line), 0);
}

static vfs_file *open_shown(void)
{
	char path[100];
	int fd;

	snprintf(path, sizeof path, "%s/shown", top);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return host_dir(fd);
}

static world world_new(void)
{
	world w = { .host = host_new(), .mem = mem_new(SB_UNLIMITED, SB_UNLIMITED) };

	sh("rm -rf outside shown && mkdir -p outside/d shown/d/e shown/s && echo out >outside/secret && "
	   "echo out >outside/d/secret && echo in >shown/f && echo deep >shown/d/e/f && "
	   "ln -s ../outside shown/out && ln -s ../outside/secret shown/far && ln -s /etc/passwd shown/abs && "
	   "ln -s out shown/chain && ln -s d/../../outside shown/d_up && ln -s d/e shown/inside && "
	   "ln -s ../../f shown/d/e/back && mkfifo shown/fifo");
	host_may_change(w.host);
	w.h = host_vfs(w.host);
	w.dir = open_shown();
	w.one = open_shown();
	w.v = mem_vfs(w.mem);
	w.root = mem_root(w.mem);
	assert_int_equal(mem_add_dir(w.mem, "/work", 0), 0);
	assert_int_equal(mem_mount(w.mem, "/home/user/shown", w.h, w.dir, NULL), 0);
	assert_int_equal(mem_mount(w.mem, "/one", w.h, w.one, "f"), 0);
	return w;
}

static void world_end(world *w)
{
	w->h->ops->close(w->h, w->dir);
	w->h->ops->close(w->h, w->one);
	mem_free(w->mem);
	host_free(w->host);
}

/* As the interface of the guest does it. */
static int open_at(const world *w, const char *path, uint32_t flags, vfs **fs, vfs_file **file)
{
	vfs_crossing to;
	int rc = w->v->ops->cross(w->v, w->root, path, vfs_walk_of(flags), &to);

	*fs = rc ? to.fs : w->v;
	return rc < 0 ? rc : (*fs)->ops->open(*fs, rc ? to.dir : w->root, rc ? to.path : path, flags, file);
}

static int try_open(const world *w, const char *path, uint32_t flags)
{
	vfs_file *file;
	vfs *fs;
	int rc = open_at(w, path, flags, &fs, &file);

	if (!rc)
		fs->ops->close(fs, file);
	return rc;
}

static bool reads(const world *w, const char *path, const char *text)
{
	char data[64] = "";
	size_t n = 0;
	vfs_file *file;
	vfs *fs;

	if (open_at(w, path, VFS_READ | VFS_FOLLOW, &fs, &file))
		return false;
	if (fs->ops->read(fs, file, 0, data, sizeof data - 1, &n))
		n = 0;
	fs->ops->close(fs, file);
	return n == strlen(text) && !memcmp(data, text, n);
}

/* ---- No path leads out ----------------------------------------------------------------------------- */

static void no_path_leads_out(void **state)
{
	static const char *const out[] = { "..", "../outside/secret", "d/../../outside/secret", "out/secret", "far",
		"abs", "chain/secret", "d_up/secret", "/etc/passwd", "inside/../../../outside/secret", "out/", "./../shown/f",
		"d/e/../../../shown/f" };
	world w = world_new();
	const vfs_ops *o = w.h->ops;
	vfs_file *file;
	vfs_stat st;

	(void)state;
	for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
		unit_row(i, o->open(w.h, w.dir, out[i], VFS_READ | VFS_FOLLOW, &file) == -EPERM);
		unit_row(i, o->stat_at(w.h, w.dir, out[i], true, &st) == -EPERM);
		unit_row(i, o->set_times_at(w.h, w.dir, out[i], true, 1, 1) == -EPERM);
		unit_row(i, o->link(w.h, w.dir, out[i], true, w.dir, "new") == -EPERM);
	}
	assert_int_equal(o->open(w.h, w.dir, "out/new", VFS_WRITE | VFS_CREATE | VFS_FOLLOW, &file), -EPERM);
	assert_int_equal(o->mkdir(w.h, w.dir, "out/new"), -EPERM);
	assert_int_equal(o->unlink(w.h, w.dir, "out/secret"), -EPERM);
	assert_int_equal(o->rmdir(w.h, w.dir, "out/d"), -EPERM);
	assert_int_equal(o->rename(w.h, w.dir, "f", w.dir, "out/f"), -EPERM);
	assert_int_equal(o->rename(w.h, w.dir, "out/secret", w.dir, "g"), -EPERM);
	assert_int_equal(o->symlink(w.h, "x", w.dir, "out/x"), -EPERM);
	assert_int_equal(o->symlink(w.h, "/etc/passwd", w.dir, "x"), -EPERM);
	assert_int_equal(o->open(w.h, w.dir, "far", VFS_READ, &file), -ELOOP);
	/* a link that leads out is itself a name like any other */
	assert_int_equal(o->rename(w.h, w.dir, "far", w.dir, "d/far"), 0);
	assert_int_equal(o->unlink(w.h, w.dir, "d/far"), 0);
	sh("[ \"$(cat outside/secret outside/d/secret)\" = \"$(printf 'out\\nout')\" ] && [ ! -e outside/new ] && [ ! -e outside/x ]");
	world_end(&w);
}

/* The guest's own directory, from which ".." does not lead out either. */
static void an_open_directory_is_a_start(void **state)
{
	world w = world_new();
	const vfs_ops *o = w.h->ops;
	vfs_file *d, *file;

	(void)state;
	assert_int_equal(o->open(w.h, w.dir, "d", VFS_READ | VFS_DIRECTORY, &d), 0);
	assert_int_equal(o->open(w.h, d, "../f", VFS_READ | VFS_FOLLOW, &file), -EPERM);
	assert_int_equal(o->open(w.h, d, "e/back", VFS_READ | VFS_FOLLOW, &file), -EPERM);
	assert_int_equal(o->rename(w.h, d, "e", d, "../e"), -EPERM);
	o->close(w.h, d);
	world_end(&w);
}

/* Another process puts a link that leads out in the place of a directory, and back, all the time. */
static void no_race_leads_out(void **state)
{
	enum { TRIES = 20000 };
	world w = world_new();
	const vfs_ops *o = w.h->ops;
	int through = 0, good = 0, fd;
	char path[100], data[8];
	pid_t pid;

	(void)state;
	snprintf(path, sizeof path, "%s/shown", top);
	sh("cp shown/f shown/d/secret && ln -s ../outside/d shown/swap");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid = fork();
	if (pid == 0)
		for (prctl(PR_SET_PDEATHSIG, SIGKILL);;)
			syscall(SYS_renameat2, fd, "d", fd, "swap", 2 /* RENAME_EXCHANGE */);
	for (int i = 0; i < TRIES || !good; i++) {
		vfs_file *file;
		size_t n = 0;

		if (o->open(w.h, w.dir, "d/secret", VFS_READ | VFS_FOLLOW, &file))
			continue;
		if (o->read(w.h, file, 0, data, sizeof data, &n) || n != 3 || memcmp(data, "in\n", 3))
			through++;
		good++;
		o->close(w.h, file);
	}
	assert_int_equal(through, 0);
	/* the control: the kernel's own walk does get there */
	for (;;) {
		int plain = openat(fd, "d/secret", O_RDONLY | O_CLOEXEC);
		bool out = plain >= 0 && read(plain, data, sizeof data) == 4;

		if (plain >= 0)
			close(plain);
		if (out)
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	world_end(&w);
}

/* ---- What is shown ----------------------------------------------------------------------------------- */

static void only_files_are_files(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	world w = world_new();
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	vfs_file *file;
	vfs_stat st;

	(void)state;
	snprintf(at.sun_path, sizeof at.sun_path, "%s/shown/socket", top);
	assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
	/* does not wait for whoever reads, either */
	assert_int_equal(w.h->ops->open(w.h, w.dir, "fifo", VFS_READ | VFS_FOLLOW, &file), -EOPNOTSUPP);
	assert_true(w.h->ops->open(w.h, w.dir, "fifo", VFS_WRITE | VFS_FOLLOW, &file) < 0);
	assert_true(w.h->ops->open(w.h, w.dir, "socket", VFS_READ | VFS_FOLLOW, &file) < 0);
	assert_int_equal(w.h->ops->stat_at(w.h, w.dir, "fifo", true, &st), 0);
	assert_int_equal(st.type, VFS_OTHER);
	close(s);
	world_end(&w);
}

static void readonly_changes_nothing(void **state)
{
	host_fs *host = host_new();
	world w = world_new();
	vfs *h = host_vfs(host);
	const vfs_ops *o = h->ops;
	vfs_file *file;
	uint64_t end;
	size_t n;

	(void)state;
	assert_int_equal(o->open(h, w.dir, "f", VFS_WRITE, &file), -EROFS);
	assert_int_equal(o->open(h, w.dir, "f", VFS_READ | VFS_TRUNC, &file), -EROFS);
	assert_int_equal(o->open(h, w.dir, "new", VFS_READ | VFS_CREATE, &file), -EROFS);
	assert_int_equal(o->mkdir(h, w.dir, "new"), -EROFS);
	assert_int_equal(o->rmdir(h, w.dir, "s"), -EROFS);
	assert_int_equal(o->unlink(h, w.dir, "f"), -EROFS);
	assert_int_equal(o->symlink(h, "f", w.dir, "l"), -EROFS);
	assert_int_equal(o->link(h, w.dir, "f", false, w.dir, "l"), -EROFS);
	assert_int_equal(o->rename(h, w.dir, "f", w.dir, "g"), -EROFS);
	assert_int_equal(o->set_times_at(h, w.dir, "f", false, 1, 1), -EROFS);
	assert_int_equal(o->open(h, w.dir, "f", VFS_READ | VFS_CREATE, &file), 0);
	assert_int_equal(o->write(h, file, 0, "x", 1, &n, &end), -EROFS);
	assert_int_equal(o->set_size(h, file, 0), -EROFS);
	assert_int_equal(o->allocate(h, file, 0, 100), -EROFS);
	assert_int_equal(o->set_times(h, file, 1, 1), -EROFS);
	o->close(h, file);
	host_free(host);
	world_end(&w);
}

/* QEMU's emulation of one program has no pwritev2(). */
static bool can_append(void)
{
	struct iovec none = { 0 };
	int fd = memfd_create("append", MFD_CLOEXEC);
	bool ok = fd >= 0 && pwritev2(fd, &none, 1, -1, RWF_APPEND) >= 0;

	close(fd);
	return ok;
}

static void appending_tells_the_end(void **state)
{
	world w = world_new();
	const vfs_ops *o = w.h->ops;
	vfs_file *a, *b;
	uint64_t end = 0;
	size_t n;

	(void)state;
	if (!can_append()) {
		world_end(&w);
		skip();
	}
	assert_int_equal(o->open(w.h, w.dir, "f", VFS_WRITE, &a), 0);
	assert_int_equal(o->open(w.h, w.dir, "f", VFS_WRITE, &b), 0);
	assert_int_equal(o->write(w.h, a, VFS_APPEND, "12", 2, &n, &end), 0);
	assert_int_equal(end, 5);
	assert_int_equal(o->write(w.h, b, VFS_APPEND, "345", 3, &n, &end), 0);
	assert_int_equal(end, 8);
	assert_int_equal(o->write(w.h, a, VFS_APPEND, "6", 1, &n, &end), 0);
	assert_int_equal(end, 9);
	o->close(w.h, a);
	o->close(w.h, b);
	assert_true(reads(&w, "one", "in\n123456"));
	world_end(&w);
}

static void too_deep_is_refused(void **state)
{
	world w = world_new();
	char path[2 * 400 + 2] = "";
	vfs_stat st;

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(path, "d/");
	sh("mkdir -p \"shown/$(printf 'd/%.0s' $(seq 140))\"");
	assert_int_equal(w.h->ops->stat_at(w.h, w.dir, path, true, &st), 0);
	for (int i = 0; i < 39; i++)
		strcat(path, "d/");
	assert_int_equal(w.h->ops->stat_at(w.h, w.dir, path, true, &st), -ENAMETOOLONG);
	world_end(&w);
}

/* ---- In the tree in memory ----------------------------------------------------------------------------- */

static void a_mount_is_entered_and_left(void **state)
{
	static const struct { const char *path, *text; } row[] = {
		{ "home/user/shown/f", "in\n" },
		{ "home/./user//shown/./f", "in\n" },
		{ "home/user/shown/../shown/f", "in\n" },
		{ "home/user/shown/d/../f", "in\n" },
		{ "home/user/shown/d/e/../../../shown/f", "in\n" },
		{ "home/user/shown/d/../../../user/shown/d/e/f", "deep\n" },
		{ "home/user/shown/../../../work/m", "mem\n" },
		{ "home/user/shown/d/../../../../work/m", "mem\n" },
		{ "home/user/shown/inside/f", "deep\n" },
		{ "home/user/shown/d/e/back", "in\n" },
		{ "work/to/f", "in\n" },
		{ "work/to/d/../../../../work/m", "mem\n" },
		{ "one", "in\n" },
		/* into a link that leads to another depth, and up from there: what the kernel says of it */
		{ "home/user/shown/inside/../../f", "in\n" },
	};
	world w = world_new();

	(void)state;
	assert_int_equal(mem_add_file(w.mem, "/work/m", "mem\n", 4, 0), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "../home/user/shown", w.root, "work/to"), 0);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		unit_row(i, reads(&w, row[i].path, row[i].text));
	assert_int_equal(try_open(&w, "home/user/shown/../../../../etc", VFS_READ), -EPERM);
	assert_int_equal(try_open(&w, "home/user/shown/d/../../../../../etc", VFS_READ), -EPERM);
	assert_int_equal(try_open(&w, "home/user/shown/nowhere/../../f", VFS_READ), -ENOENT);
	assert_int_equal(try_open(&w, "home/user/shown/out/../x", VFS_READ), -EPERM);
	assert_int_equal(try_open(&w, "one/", VFS_READ), -ENOTDIR);
	assert_int_equal(try_open(&w, "one/x", VFS_READ), -ENOTDIR);
	assert_int_equal(try_open(&w, "one/../work/m", VFS_READ), -ENOTDIR);
	assert_int_equal(try_open(&w, "home/user/shown", VFS_READ | VFS_DIRECTORY), 0);
	assert_int_equal(try_open(&w, "home/user/shown/", VFS_READ | VFS_DIRECTORY), 0);
	assert_int_equal(try_open(&w, "home/user/shown/.", VFS_READ | VFS_DIRECTORY), 0);
	assert_int_equal(try_open(&w, "home/user/shown/d/..", VFS_READ | VFS_DIRECTORY), 0);
	world_end(&w);
}

static void a_mount_stays_where_it_is(void **state)
{
	world w = world_new();
	const vfs_ops *o = w.v->ops;
	vfs_crossing to;

	(void)state;
	assert_int_equal(mem_mount(w.mem, "/work/inner", w.h, w.dir, NULL), 0);
	assert_int_equal(o->cross(w.v, w.root, "work/inner", VFS_WALK_NAME, &to), 0);
	assert_int_equal(o->rmdir(w.v, w.root, "work/inner"), -EBUSY);
	assert_int_equal(o->unlink(w.v, w.root, "one"), -EBUSY);
	assert_int_equal(o->rename(w.v, w.root, "work/inner", w.root, "work/x"), -EBUSY);
	assert_int_equal(o->mkdir(w.v, w.root, "work/d"), 0);
	assert_int_equal(o->rename(w.v, w.root, "work/d", w.root, "work/inner"), -EBUSY);
	assert_int_equal(o->mkdir(w.v, w.root, "work/inner"), -EEXIST);
	/* what is above may move, with it */
	assert_int_equal(mem_mount(w.mem, "/work/d/moved", w.h, w.dir, NULL), 0);
	assert_int_equal(o->rename(w.v, w.root, "work/d", w.root, "work/e"), 0);
	assert_true(reads(&w, "work/e/moved/f", "in\n"));
	assert_int_equal(o->rmdir(w.v, w.root, "work/e"), -ENOTEMPTY);
	/* and over nothing that is there */
	assert_int_equal(mem_mount(w.mem, "/work", w.h, w.dir, NULL), -EEXIST);
	assert_int_equal(mem_mount(w.mem, "/work/inner", w.h, w.dir, NULL), -EEXIST);
	world_end(&w);
}

static int begin(void **state)
{
	(void)state;
	return !mkdtemp(top);
}

static int end(void **state)
{
	(void)state;
	sh("rm -rf outside shown");
	return rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_path_leads_out),
		cmocka_unit_test(an_open_directory_is_a_start),
		cmocka_unit_test(no_race_leads_out),
		cmocka_unit_test(only_files_are_files),
		cmocka_unit_test(readonly_changes_nothing),
		cmocka_unit_test(appending_tells_the_end),
		cmocka_unit_test(too_deep_is_refused),
		cmocka_unit_test(a_mount_is_entered_and_left),
		cmocka_unit_test(a_mount_stays_where_it_is),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
