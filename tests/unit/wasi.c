/* SPDX-License-Identifier: MIT */
/*
 * WASI preview 1, function by function, without an engine: what each does, which errno it refuses with,
 * and that nothing outside the guest's memory is touched whatever its arguments are.
 * tests/wasi/COVERAGE lists what is looked at where.
 */
#include "unit.h"

#include "src/wasi/call.h"

#include <fcntl.h>
#include <poll.h>
#include <sandbox/sandbox.h>
#include <time.h>
#include <unistd.h>

#define MEM 65536u
#define ROOT 3

typedef struct guest {
	wasi w;
	mem_fs *fs;
	int pipe[2][2]; /* stdin, stdout: the test's ends are [0][1] and [1][0] */
} guest;

static const char *const argv_of[] = { "prog", "-x", NULL };
static const char *const env_of[] = { "A=1", "LANG=C.UTF-8", NULL };

static void guest_begin(guest *g)
{
	memset(g, 0, sizeof *g);
	g->fs = mem_new(10000, 100);
	wasi_init(&g->w, 32);
	g->w.argv = argv_of;
	g->w.env = env_of;
	g->w.mem = calloc(1, MEM);
	g->w.mem_len = MEM;
	assert_int_equal(pipe(g->pipe[0]), 0);
	assert_int_equal(pipe(g->pipe[1]), 0);
	wasi_add_stream(&g->w, g->pipe[0][0], WASI_T_UNKNOWN, WASI_R_READ | WASI_R_POLL | WASI_R_STAT);
	wasi_add_stream(&g->w, g->pipe[1][1], WASI_T_UNKNOWN,
			WASI_R_WRITE | WASI_R_POLL | WASI_R_STAT | WASI_R_SET_FLAGS);
	wasi_add_stream(&g->w, g->pipe[1][1], WASI_T_CHAR, WASI_R_WRITE | WASI_R_STAT);
	assert_int_equal(wasi_add_preopen(&g->w, mem_vfs(g->fs), mem_root(g->fs), "/", false), ROOT);
	wasi_start_clocks(&g->w);
}

static void guest_end(guest *g)
{
	wasi_release(&g->w);
	mem_free(g->fs);
	free(g->w.mem);
	for (int i = 0; i < 4; i++)
		close(g->pipe[i / 2][i % 2]);
}

static const wasi_import *import_of(const wasi_import *list, const char *name)
{
	for (; list->name; list++)
		if (!strcmp(list->name, name))
			return list;
	fail_msg("no function \"%s\"", name);
	return NULL;
}

static uint32_t vcall(guest *g, const wasi_import *list, const char *name, va_list ap)
{
	const wasi_import *i = import_of(list, name);
	uint64_t a[9] = { 0 };

	for (size_t n = 0; i->params[n]; n++)
		a[n] = va_arg(ap, uint64_t);
	return i->call(&g->w, a);
}

/* All arguments are uint64_t. */
static uint32_t call(guest *g, const char *name, ...)
{
	va_list ap;
	uint32_t rc;

	va_start(ap, name);
	rc = vcall(g, wasi_preview1, name, ap);
	va_end(ap);
	return rc;
}

static uint32_t call_old(guest *g, const char *name, ...)
{
	va_list ap;
	uint32_t rc;

	va_start(ap, name);
	rc = vcall(g, wasi_unstable, name, ap);
	va_end(ap);
	return rc;
}

#define U(x) ((uint64_t)(x))
static uint32_t load32(const guest *g, uint32_t at)
{
	return call_load32(g->w.mem + at);
}

static uint64_t load64(const guest *g, uint32_t at)
{
	return call_load64(g->w.mem + at);
}

static uint64_t text(guest *g, const char *s)
{
	strcpy((char *)g->w.mem + 1000, s);
	return strlen(s);
}

/* With these oflags; what path_open says, and the number at 400. */
static uint32_t open_path(guest *g, const char *path, uint32_t oflags, uint64_t rights)
{
	uint64_t len = text(g, path);

	return call(g, "path_open", U(ROOT), U(1), U(1000), len, U(oflags), rights, rights, U(0), U(400));
}

static uint32_t write_text(guest *g, uint64_t fd, const char *s)
{
	strcpy((char *)g->w.mem + 2000, s);
	call_store32(g->w.mem + 300, 2000);
	call_store32(g->w.mem + 304, (uint32_t)strlen(s));
	return call(g, "fd_write", fd, U(300), U(1), U(308));
}

static uint32_t read_into(guest *g, uint64_t fd, uint32_t len)
{
	call_store32(g->w.mem + 300, 3000);
	call_store32(g->w.mem + 304, len);
	memset(g->w.mem + 3000, 0, len + 1);
	return call(g, "fd_read", fd, U(300), U(1), U(308));
}

#define ALL (WASI_FILE_RIGHTS | WASI_DIR_RIGHTS)

/* ---- Arguments, clocks, random ---- */

static void arguments_and_environment(void **state)
{
	guest g;

	(void)state;
	guest_begin(&g);
	assert_int_equal(call(&g, "args_sizes_get", U(0), U(4)), 0);
	assert_int_equal(load32(&g, 0), 2);
	assert_int_equal(load32(&g, 4), 8);
	assert_int_equal(call(&g, "args_get", U(16), U(64)), 0);
	assert_string_equal((char *)g.w.mem + load32(&g, 16), "prog");
	assert_string_equal((char *)g.w.mem + load32(&g, 20), "-x");
	assert_int_equal(call(&g, "environ_sizes_get", U(0), U(4)), 0);
	assert_int_equal(load32(&g, 0), 2);
	assert_int_equal(call(&g, "environ_get", U(16), U(64)), 0);
	assert_string_equal((char *)g.w.mem + load32(&g, 20), "LANG=C.UTF-8");
	assert_int_equal(call(&g, "args_get", U(MEM - 4), U(64)), WASI_EFAULT);
	assert_int_equal(call(&g, "args_get", U(16), U(MEM - 3)), WASI_EFAULT);
	guest_end(&g);
}

static void clocks(void **state)
{
	struct timespec now;
	guest g;

	(void)state;
	guest_begin(&g);
	for (uint64_t id = 0; id < 4; id++) {
		assert_int_equal(call(&g, "clock_res_get", id, U(8)), 0);
		assert_true(load64(&g, 8) > 0);
		assert_int_equal(call(&g, "clock_time_get", id, U(1), U(8)), 0);
	}
	clock_gettime(CLOCK_REALTIME, &now);
	assert_int_equal(call(&g, "clock_time_get", U(0), U(1), U(8)), 0);
	assert_true(load64(&g, 8) / 1000000000 - (uint64_t)now.tv_sec < 60);
	assert_int_equal(call(&g, "clock_time_get", U(1), U(1), U(8)), 0);
	assert_true(load64(&g, 8) < UINT64_C(60000000000)); /* since the guest's start, not the machine's */
	assert_int_equal(call(&g, "clock_time_get", U(4), U(1), U(8)), WASI_EINVAL);
	assert_int_equal(call(&g, "clock_res_get", U(9), U(8)), WASI_EINVAL);
	assert_int_equal(call(&g, "clock_time_get", U(0), U(1), U(MEM - 7)), WASI_EFAULT);
	guest_end(&g);
}

static void random_and_the_end(void **state)
{
	uint8_t zeros[32] = { 0 };
	guest g;

	(void)state;
	guest_begin(&g);
	assert_int_equal(call(&g, "random_get", U(100), U(32)), 0);
	assert_memory_not_equal(g.w.mem + 100, zeros, 32);
	assert_int_equal(call(&g, "random_get", U(MEM - 1), U(2)), WASI_EFAULT);
	assert_int_equal(call(&g, "random_get", U(UINT32_MAX), U(UINT32_MAX)), WASI_EFAULT);
	assert_int_equal(call(&g, "sched_yield"), 0);
	assert_int_equal(call(&g, "proc_raise", U(6)), WASI_ENOTSUP);
	assert_int_equal(call(&g, "proc_exit", U(300)), WASI_ENDED);
	assert_int_equal(g.w.exit_code, 300 & 255);
	guest_end(&g);
}

static void sockets(void **state)
{
	guest g;
	int pair[2];

	(void)state;
	guest_begin(&g);
	assert_int_equal(call(&g, "sock_accept", U(0), U(0), U(0)), WASI_ENOTSOCK);
	assert_int_equal(call(&g, "sock_recv", U(ROOT), U(0), U(0), U(0), U(0), U(0)), WASI_ENOTSOCK);
	assert_int_equal(call(&g, "sock_send", U(1), U(0), U(0), U(0), U(0)), WASI_ENOTSOCK);
	assert_int_equal(call(&g, "sock_shutdown", U(77), U(1)), WASI_EBADF);
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(wasi_add_stream(&g.w, pair[1], WASI_T_STREAM, WASI_R_WRITE), 4);
	assert_int_equal(call(&g, "sock_accept", U(4), U(0), U(0)), WASI_EINVAL);
	assert_int_equal(call(&g, "sock_send", U(4), U(0), U(0), U(1), U(0)), WASI_EINVAL);
	assert_int_equal(call(&g, "sock_shutdown", U(4), U(0)), WASI_EINVAL);
	assert_int_equal(call(&g, "sock_shutdown", U(4), U(3)), WASI_ENOTSOCK); /* a pipe, in truth */
	close(pair[0]);
	close(pair[1]);
	guest_end(&g);
}

/* ---- Streams ---- */

static void streams(void **state)
{
	guest g;
	char out[16] = "";

	(void)state;
	guest_begin(&g);
	assert_int_equal(write(g.pipe[0][1], "hello", 5), 5);
	assert_int_equal(read_into(&g, 0, 3), 0);
	assert_int_equal(load32(&g, 308), 3);
	assert_string_equal((char *)g.w.mem + 3000, "hel");
	assert_int_equal(write_text(&g, 1, "out\n"), 0);
	assert_int_equal(read(g.pipe[1][0], out, sizeof out), 4);
	assert_string_equal(out, "out\n");
	assert_int_equal(write_text(&g, 0, "x"), WASI_EBADF);
	assert_int_equal(read_into(&g, 1, 1), WASI_EBADF);
	assert_int_equal(call(&g, "fd_seek", U(0), U(0), U(1), U(8)), WASI_ESPIPE);
	assert_int_equal(call(&g, "fd_tell", U(1), U(8)), WASI_ESPIPE);
	assert_int_equal(call(&g, "fd_pread", U(0), U(300), U(1), U(0), U(8)), WASI_ESPIPE);
	assert_int_equal(call(&g, "fd_sync", U(1)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_fdstat_get", U(2), U(8)), 0);
	assert_int_equal(g.w.mem[8], WASI_T_CHAR);
	assert_int_equal(call(&g, "fd_filestat_get", U(1), U(8)), 0);
	assert_int_equal(g.w.mem[8 + 16], WASI_T_UNKNOWN);
	guest_end(&g);
}

static void lists_of_stretches_are_looked_at_first(void **state)
{
	static const struct { uint32_t at, count, base, len; uint32_t wanted; } rows[] = {
		{ 300, 1, 2000, 0xffffffff, WASI_EFAULT }, { 300, 1, 0xffffffff, 1, WASI_EFAULT },
		{ 300, 1, MEM - 1, 2, WASI_EFAULT },       { MEM - 4, 1, 0, 0, WASI_EFAULT },
		{ 300, 1025, 0, 0, WASI_EINVAL },          { 300, 0xffffffff, 0, 0, WASI_EINVAL },
		{ 300, 1, MEM, 0, 0 },                     { 300, 0, 0, 0, 0 },
	};
	guest g;

	(void)state;
	guest_begin(&g);
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		call_store32(g.w.mem + 300, rows[i].base);
		call_store32(g.w.mem + 304, rows[i].len);
		unit_row(i, call(&g, "fd_write", U(1), U(rows[i].at), U(rows[i].count), U(8)) == rows[i].wanted);
	}
	guest_end(&g);
}

/* ---- Files ---- */

static void files(void **state)
{
	guest g;
	uint64_t fd;

	(void)state;
	guest_begin(&g);
	assert_int_equal(open_path(&g, "f", 0, ALL), WASI_ENOENT);
	assert_int_equal(open_path(&g, "f", 1, ALL), 0);
	fd = load32(&g, 400);
	assert_int_equal(fd, 4); /* the lowest free one */
	assert_int_equal(write_text(&g, fd, "0123456789"), 0);
	assert_int_equal(call(&g, "fd_tell", fd, U(8)), 0);
	assert_int_equal(load64(&g, 8), 10);
	assert_int_equal(call(&g, "fd_seek", fd, U(-4), U(2), U(8)), 0);
	assert_int_equal(load64(&g, 8), 6);
	assert_int_equal(call(&g, "fd_seek", fd, U(-7), U(1), U(8)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_seek", fd, U(0), U(3), U(8)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_seek", fd, U(INT64_MAX), U(1), U(8)), WASI_EINVAL);
	assert_int_equal(read_into(&g, fd, 10), 0);
	assert_string_equal((char *)g.w.mem + 3000, "6789");
	assert_int_equal(call(&g, "fd_pread", fd, U(300), U(1), U(2), U(308)), 0);
	assert_int_equal(call(&g, "fd_pwrite", fd, U(300), U(1), U(-1), U(308)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_filestat_set_size", fd, U(3)), 0);
	assert_int_equal(call(&g, "fd_filestat_get", fd, U(8)), 0);
	assert_int_equal(load64(&g, 8 + 32), 3);
	assert_int_equal(g.w.mem[8 + 16], WASI_T_FILE);
	assert_int_equal(call(&g, "fd_allocate", fd, U(0), U(20)), 0);
	assert_int_equal(call(&g, "fd_allocate", fd, U(0), U(0)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_allocate", fd, U(0), U(20000)), WASI_ENOSPC);
	assert_int_equal(call(&g, "fd_filestat_set_size", fd, U(20000)), WASI_ENOSPC);
	assert_int_equal(call(&g, "fd_filestat_set_times", fd, U(5), U(7), U(1 | 4)), 0);
	assert_int_equal(call(&g, "fd_filestat_get", fd, U(8)), 0);
	assert_int_equal(load64(&g, 8 + 40), 5);
	assert_int_equal(load64(&g, 8 + 48), 7);
	assert_int_equal(call(&g, "fd_filestat_set_times", fd, U(5), U(7), U(3)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_advise", fd, U(0), U(1), U(5)), 0);
	assert_int_equal(call(&g, "fd_advise", fd, U(0), U(1), U(6)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_sync", fd), 0);
	assert_int_equal(call(&g, "fd_datasync", fd), 0);
	assert_int_equal(call(&g, "fd_close", fd), 0);
	assert_int_equal(call(&g, "fd_close", fd), WASI_EBADF);
	guest_end(&g);
}

static void flags_and_rights(void **state)
{
	guest g;
	uint64_t fd;

	(void)state;
	guest_begin(&g);
	assert_int_equal(open_path(&g, "f", 1, ALL), 0);
	fd = load32(&g, 400);
	assert_int_equal(write_text(&g, fd, "ab"), 0);
	assert_int_equal(call(&g, "fd_fdstat_set_flags", fd, U(WASI_F_APPEND)), 0);
	assert_int_equal(call(&g, "fd_seek", fd, U(0), U(0), U(8)), 0);
	assert_int_equal(write_text(&g, fd, "cd"), 0);
	assert_int_equal(call(&g, "fd_tell", fd, U(8)), 0);
	assert_int_equal(load64(&g, 8), 4);
	assert_int_equal(call(&g, "fd_fdstat_set_flags", fd, U(WASI_F_SYNC)), WASI_ENOTSUP);
	assert_int_equal(call(&g, "fd_fdstat_set_flags", fd, U(64)), WASI_EINVAL);
	assert_int_equal(call(&g, "fd_fdstat_get", fd, U(8)), 0);
	assert_int_equal(g.w.mem[8], WASI_T_FILE);
	assert_int_equal(call(&g, "fd_fdstat_set_rights", fd, U(WASI_R_READ | WASI_R_SEEK), U(0)), 0);
	assert_int_equal(call(&g, "fd_fdstat_set_rights", fd, U(WASI_R_WRITE), U(0)), WASI_ENOTCAPABLE);
	assert_int_equal(write_text(&g, fd, "x"), WASI_EBADF);
	assert_int_equal(call(&g, "fd_filestat_set_size", fd, U(0)), WASI_EBADF);
	assert_int_equal(open_path(&g, "f", 0, WASI_R_READ), 0);
	assert_int_equal(write_text(&g, load32(&g, 400), "x"), WASI_EBADF);
	guest_end(&g);
}

static void renumbered(void **state)
{
	guest g;

	(void)state;
	guest_begin(&g);
	assert_int_equal(open_path(&g, "f", 1, ALL), 0);
	assert_int_equal(open_path(&g, "g", 1, ALL), 0);
	assert_int_equal(write_text(&g, 5, "g"), 0);
	assert_int_equal(call(&g, "fd_renumber", U(5), U(4)), 0);
	assert_int_equal(call(&g, "fd_renumber", U(5), U(4)), WASI_EBADF);
	assert_int_equal(call(&g, "fd_renumber", U(4), U(9)), WASI_EBADF);
	assert_int_equal(call(&g, "fd_tell", U(4), U(8)), 0);
	assert_int_equal(load64(&g, 8), 1);
	for (int i = 0; i < 40; i++)
		if (open_path(&g, "f", 0, WASI_R_READ) != 0) {
			assert_int_equal(open_path(&g, "f", 0, WASI_R_READ), WASI_EMFILE);
			assert_int_equal(g.w.fd_count, 32);
			guest_end(&g);
			return;
		}
	fail_msg("no limit of descriptors");
}

static void preopens(void **state)
{
	guest g;

	(void)state;
	guest_begin(&g);
	assert_int_equal(call(&g, "fd_prestat_get", U(ROOT), U(8)), 0);
	assert_int_equal(load32(&g, 8), 0);
	assert_int_equal(load32(&g, 12), 1);
	assert_int_equal(call(&g, "fd_prestat_dir_name", U(ROOT), U(8), U(1)), 0);
	assert_int_equal(g.w.mem[8], '/');
	assert_int_equal(call(&g, "fd_prestat_dir_name", U(ROOT), U(8), U(0)), WASI_ENAMETOOLONG);
	assert_int_equal(call(&g, "fd_prestat_get", U(4), U(8)), WASI_EBADF); /* where a libc stops to look */
	assert_int_equal(call(&g, "fd_prestat_get", U(1), U(8)), WASI_EBADF);
	guest_end(&g);
}

/* ---- Paths ---- */

static uint32_t one_path(guest *g, const char *name, const char *path)
{
	uint64_t len = text(g, path);

	return call(g, name, U(ROOT), U(1000), len);
}

static uint32_t two_paths(guest *g, const char *name, const char *from, const char *to)
{
	uint64_t len = text(g, from);

	strcpy((char *)g->w.mem + 1500, to);
	if (!strcmp(name, "path_symlink"))
		return call(g, name, U(1000), len, U(ROOT), U(1500), U(strlen(to)));
	if (!strcmp(name, "path_link"))
		return call(g, name, U(ROOT), U(0), U(1000), len, U(ROOT), U(1500), U(strlen(to)));
	return call(g, name, U(ROOT), U(1000), len, U(ROOT), U(1500), U(strlen(to)));
}

static void paths(void **state)
{
	guest g;

	(void)state;
	guest_begin(&g);
	assert_int_equal(one_path(&g, "path_create_directory", "d"), 0);
	assert_int_equal(one_path(&g, "path_create_directory", "d"), WASI_EEXIST);
	assert_int_equal(open_path(&g, "d/f", 1 | 4, ALL), 0);
	assert_int_equal(open_path(&g, "d/f", 1 | 4, ALL), WASI_EEXIST);
	assert_int_equal(open_path(&g, "d", 2, ALL & ~WASI_CHANGING), 0);
	assert_int_equal(open_path(&g, "d/f", 2, WASI_R_READ), WASI_ENOTDIR);
	assert_int_equal(open_path(&g, "d", 0, WASI_R_WRITE), WASI_EISDIR);
	assert_int_equal(open_path(&g, "d/f", 16, ALL), WASI_EINVAL);
	assert_int_equal(two_paths(&g, "path_link", "d/f", "g"), 0);
	assert_int_equal(two_paths(&g, "path_symlink", "d/f", "s"), 0);
	assert_int_equal(two_paths(&g, "path_symlink", "/etc/passwd", "t"), WASI_EPERM);
	text(&g, "s");
	assert_int_equal(call(&g, "path_readlink", U(ROOT), U(1000), U(1), U(600), U(2), U(8)), 0);
	assert_int_equal(load32(&g, 8), 2);
	assert_memory_equal(g.w.mem + 600, "d/", 2);
	assert_int_equal(call(&g, "path_filestat_get", U(ROOT), U(0), U(1000), U(1), U(600)), 0);
	assert_int_equal(g.w.mem[616], WASI_T_LINK);
	assert_int_equal(call(&g, "path_filestat_get", U(ROOT), U(1), U(1000), U(1), U(600)), 0);
	assert_int_equal(g.w.mem[616], WASI_T_FILE);
	assert_int_equal(load64(&g, 624), 2);
	assert_int_equal(call(&g, "path_filestat_set_times", U(ROOT), U(1), U(1000), U(1), U(3), U(4), U(5)), 0);
	assert_int_equal(two_paths(&g, "path_rename", "g", "d/g"), 0);
	assert_int_equal(one_path(&g, "path_remove_directory", "d"), WASI_ENOTEMPTY);
	assert_int_equal(one_path(&g, "path_unlink_file", "d"), WASI_EISDIR);
	assert_int_equal(one_path(&g, "path_unlink_file", "d/f"), 0);
	assert_int_equal(one_path(&g, "path_unlink_file", "../d"), WASI_EPERM);
	assert_int_equal(one_path(&g, "path_unlink_file", "a\xff"), WASI_EILSEQ);
	assert_int_equal(one_path(&g, "path_unlink_file", ""), WASI_ENOENT);
	assert_int_equal(call(&g, "path_unlink_file", U(ROOT), U(1000), U(5000)), WASI_ENAMETOOLONG);
	assert_int_equal(call(&g, "path_unlink_file", U(ROOT), U(MEM - 1), U(2)), WASI_EFAULT);
	memcpy(g.w.mem + 1000, "a\0b", 3);
	assert_int_equal(call(&g, "path_unlink_file", U(ROOT), U(1000), U(3)), WASI_EINVAL);
	assert_int_equal(call(&g, "path_unlink_file", U(0), U(1000), U(1)), WASI_ENOTDIR);
	assert_int_equal(call(&g, "path_unlink_file", U(50), U(1000), U(1)), WASI_EBADF);
	guest_end(&g);
}

static void a_listing_in_small_pieces(void **state)
{
	char names[16][8];
	uint64_t cookie = 0;
	size_t count = 0;
	guest g;

	(void)state;
	guest_begin(&g);
	for (int i = 0; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof name, "n%d", i);
		assert_int_equal(one_path(&g, "path_create_directory", name), 0);
	}
	for (;;) {
		uint32_t used, at = 600;

		assert_int_equal(call(&g, "fd_readdir", U(ROOT), U(600), U(70), cookie, U(8)), 0);
		used = load32(&g, 8);
		while (at + 24 <= 600 + used && at + 24 + load32(&g, at + 16) <= 600 + used) {
			assert_true(count < 16);
			snprintf(names[count++], 8, "%.*s", (int)load32(&g, at + 16), (char *)g.w.mem + at + 24);
			cookie = load64(&g, at);
			at += 24 + load32(&g, at + 16);
		}
		if (used < 70)
			break;
	}
	assert_int_equal(count, 10);
	assert_string_equal(names[0], ".");
	assert_string_equal(names[9], "n7");
	assert_int_equal(call(&g, "fd_readdir", U(0), U(600), U(70), U(0), U(8)), WASI_ENOTDIR);
	assert_int_equal(call(&g, "fd_readdir", U(ROOT), U(600), U(MEM), U(0), U(8)), WASI_EFAULT);
	guest_end(&g);
}

/* ---- Waiting ---- */

static void wish_clock(guest *g, uint32_t at, uint32_t id, uint64_t timeout, uint32_t flags)
{
	memset(g->w.mem + at, 0, 48);
	call_store64(g->w.mem + at, at);
	call_store32(g->w.mem + at + 16, id);
	call_store64(g->w.mem + at + 24, timeout);
	call_store16(g->w.mem + at + 40, (uint16_t)flags);
}

static void wish_stream(guest *g, uint32_t at, uint8_t kind, uint32_t fd)
{
	memset(g->w.mem + at, 0, 48);
	call_store64(g->w.mem + at, at);
	g->w.mem[at + 8] = kind;
	call_store32(g->w.mem + at + 16, fd);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void waits(void **state)
{
	uint64_t begin = now_ns();
	guest g;

	(void)state;
	guest_begin(&g);
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(0), U(8)), WASI_EINVAL);
	wish_clock(&g, 0, 1, 0, 0); /* no time at all; an instant that is over; both tell at once */
	wish_clock(&g, 48, 0, 5, 1);
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(2), U(8)), 0);
	assert_int_equal(load32(&g, 8), 2);
	assert_int_equal(load64(&g, 4000), 0);
	assert_int_equal(load64(&g, 4032), 48);
	wish_clock(&g, 0, 1, 20000000, 0);
	wish_stream(&g, 48, 1, 0); /* nothing to read: the clock ends it */
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(2), U(8)), 0);
	assert_int_equal(load32(&g, 8), 1);
	assert_true(now_ns() - begin >= 20000000);
	wish_clock(&g, 0, 1, now_ns() - (uint64_t)g.w.monotonic_base_ns + 10000000, 1); /* absolute */
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(1), U(8)), 0);
	assert_int_equal(write(g.pipe[0][1], "x", 1), 1);
	wish_clock(&g, 0, 1, UINT64_C(60000000000), 0);
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(2), U(8)), 0);
	assert_int_equal(load32(&g, 8), 1);
	assert_int_equal(load64(&g, 4000), 48);
	close(g.pipe[0][1]);
	g.pipe[0][1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read_into(&g, 0, 1), 0);
	assert_int_equal(call(&g, "poll_oneoff", U(48), U(4000), U(1), U(8)), 0);
	assert_int_equal(g.w.mem[4000 + 24], 1); /* hung up */
	wish_stream(&g, 0, 1, 99);
	wish_stream(&g, 48, 2, 1);
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(2), U(8)), 0);
	assert_int_equal(call_load32(g.w.mem + 4008) & 0xffff, WASI_EBADF);
	wish_clock(&g, 0, 2, 1, 0);
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(1), U(8)), 0);
	assert_int_equal(call_load32(g.w.mem + 4008) & 0xffff, WASI_ENOTSUP);
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(MEM - 31), U(1), U(8)), WASI_EFAULT);
	assert_int_equal(call(&g, "poll_oneoff", U(0), U(4000), U(4097), U(8)), WASI_EINVAL);
	guest_end(&g);
}

static void not_blocking(void **state)
{
	guest g;

	(void)state;
	guest_begin(&g);
	g.w.fd[0].rights |= WASI_R_SET_FLAGS;
	assert_int_equal(call(&g, "fd_fdstat_set_flags", U(0), U(WASI_F_NONBLOCK)), 0);
	assert_int_equal(read_into(&g, 0, 1), WASI_EAGAIN);
	assert_int_equal(call(&g, "fd_fdstat_set_flags", U(1), U(WASI_F_NONBLOCK)), 0);
	for (int i = 0; i < 100000; i++)
		if (write_text(&g, 1, "0123456789abcdef0123456789abcdef") == WASI_EAGAIN) {
			assert_true(i > 10);
			assert_int_equal(fcntl(g.pipe[1][1], F_GETFL) & O_NONBLOCK, 0); /* not ours to change */
			guest_end(&g);
			return;
		}
	fail_msg("a full pipe did not refuse");
}

/* ---- The older interface ---- */

static void the_older_one(void **state)
{
	guest g;

	(void)state;
	guest_begin(&g);
	assert_ptr_equal(wasi_interface("wasi_unstable", 13), wasi_unstable);
	assert_ptr_equal(wasi_interface("wasi_snapshot_preview1", 22), wasi_preview1);
	assert_null(wasi_interface("env", 3));
	assert_int_equal(open_path(&g, "f", 1, ALL), 0);
	assert_int_equal(write_text(&g, 4, "abc"), 0);
	assert_int_equal(call_old(&g, "fd_seek", U(4), U(-1), U(1), U(8)), 0); /* from the end */
	assert_int_equal(load64(&g, 8), 2);
	assert_int_equal(call_old(&g, "fd_seek", U(4), U(1), U(2), U(8)), 0); /* from the start */
	assert_int_equal(load64(&g, 8), 1);
	assert_int_equal(call_old(&g, "fd_filestat_get", U(4), U(600)), 0);
	assert_int_equal(load32(&g, 620), 1);
	assert_int_equal(load64(&g, 624), 3);
	text(&g, "f");
	assert_int_equal(call_old(&g, "path_filestat_get", U(ROOT), U(0), U(1000), U(1), U(600)), 0);
	assert_int_equal(load64(&g, 624), 3);
	memset(g.w.mem + 4096, 0, 56);
	call_store32(g.w.mem + 4096 + 24, 1); /* its clock stands behind an identifier */
	assert_int_equal(call_old(&g, "poll_oneoff", U(4096), U(8000), U(1), U(8)), 0);
	assert_int_equal(load32(&g, 8), 1);
	guest_end(&g);
}

/* ---- Rubbish: every function with any arguments ---- */

static uint64_t rubbish(uint64_t *seed)
{
	static const uint32_t odd[] = { 0, 1, 2, 3, 4, 8, 1000, MEM - 1, MEM, MEM + 1, 0x7fffffff,
					0x80000000, 0xffffffff };
	uint32_t r = unit_random(seed);

	if (r % 4 == 0)
		return unit_random(seed) % 64;
	if (r % 4 == 1)
		return unit_random(seed) % MEM;
	return (uint64_t)odd[unit_random(seed) % UNIT_LEN(odd)] | (r % 32 == 2 ? UINT64_MAX << 32 : 0);
}

static bool blocks(const guest *g, const wasi_import *i, const uint64_t *a)
{
	const wasi_fd *fd = fds_get(&g->w, a[0]);

	return !strcmp(i->name, "poll_oneoff") ||
	       (fd && !fd->file && (!strcmp(i->name, "fd_read") || !strcmp(i->name, "fd_write")));
}

static void a_bell(void **state)
{
	const wasi_import *bell = import_of(wasi_ours, "bell");
	const uint64_t two[] = { 64, 2 }, none[] = { 64, 0 }, many[] = { 64, WASI_BELL_MAX + 1 },
		       outside[] = { MEM - 8, 2 }, far[] = { UINT32_MAX, 1 };
	uint32_t *words;
	guest g;

	(void)state;
	guest_begin(&g);
	words = (uint32_t *)(void *)g.w.mem;
	wasi_ring(&g.w); /* nothing was named: nothing happens */
	words[16] = 1024;
	words[17] = 0x10;
	words[18] = MEM - 4;
	words[19] = 0x80000001;
	assert_int_equal(bell->call(&g.w, two), WASI_OK);
	words[256] = 1;
	wasi_ring(&g.w);
	assert_int_equal(words[256], 0x11);
	assert_int_equal(words[MEM / 4 - 1], 0x80000001);
	assert_int_equal(words[255] | words[257] | words[MEM / 4 - 2], 0);

	/* what is refused leaves none */
	words[18] = MEM - 3;
	assert_int_equal(bell->call(&g.w, two), WASI_EFAULT);
	words[18] = MEM;
	assert_int_equal(bell->call(&g.w, two), WASI_EFAULT);
	words[18] = UINT32_MAX - 3;
	assert_int_equal(bell->call(&g.w, two), WASI_EFAULT);
	words[18] = 1026;
	assert_int_equal(bell->call(&g.w, two), WASI_EFAULT);
	words[256] = 0;
	wasi_ring(&g.w);
	assert_int_equal(words[256], 0);

	words[18] = 2048;
	assert_int_equal(bell->call(&g.w, two), WASI_OK);
	assert_int_equal(bell->call(&g.w, many), WASI_EINVAL);
	assert_int_equal(bell->call(&g.w, outside), WASI_EFAULT);
	assert_int_equal(bell->call(&g.w, far), WASI_EFAULT);
	wasi_ring(&g.w); /* the two of before */
	assert_int_equal(words[256], 0x10);
	assert_int_equal(bell->call(&g.w, none), WASI_OK);
	words[256] = 0;
	wasi_ring(&g.w);
	assert_int_equal(words[256], 0);
	guest_end(&g);
}

static void a_rest(void **state)
{
	const wasi_import *rest = import_of(wasi_ours, "rest"), *close = import_of(wasi_preview1, "fd_close");
	const uint64_t control[] = { WASI_CONTROL_FD };
	guest g;

	(void)state;
	guest_begin(&g);
	assert_int_equal(rest->call(&g.w, NULL), WASI_OK); /* nobody would wake it */
	wasi_add_control(&g.w, 0, WASI_T_STREAM, WASI_R_READ);
	assert_int_equal(rest->call(&g.w, NULL), WASI_RESTS);
	assert_int_equal(close->call(&g.w, control), WASI_OK);
	assert_int_equal(rest->call(&g.w, NULL), WASI_OK);
	guest_end(&g);
}

static void rubbish_is_refused(void **state)
{
	uint64_t seed = 7;
	guest g;

	(void)state;
	guest_begin(&g);
	free(g.w.mem);
	g.w.mem = malloc(MEM); /* exactly as large as it says: a sanitizer sees a byte beyond */
	memset(g.w.mem, 0, MEM);
	for (int round = 0; round < 60000; round++) {
		const wasi_import *list = round & 1 ? wasi_preview1 : wasi_unstable, *i = list;
		uint64_t a[9];

		i += unit_random(&seed) % 46;
		assert_non_null(i->name);
		for (int n = 0; n < 9; n++)
			a[n] = rubbish(&seed);
		if (unit_random(&seed) % 3 == 0)
			a[0] = unit_random(&seed) % 8;
		if (!blocks(&g, i, a))
			i->call(&g.w, a);
		if (round % 100 == 0 && !fds_get(&g.w, ROOT)) {
			/* it closed its root: lay it anew */
			wasi_fd *fd = g.w.fd;

			fds_close(&fd[ROOT]);
			fd[ROOT] = (wasi_fd){ .fs = mem_vfs(g.fs), .file = mem_root(g.fs), .host = -1,
					      .rights = ALL, .inherits = ALL, .type = WASI_T_DIR,
					      .open = true, .preopen = true, .borrowed = true, .name = "/" };
		}
	}
	guest_end(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_and_environment),
		cmocka_unit_test(clocks),
		cmocka_unit_test(random_and_the_end),
		cmocka_unit_test(sockets),
		cmocka_unit_test(streams),
		cmocka_unit_test(lists_of_stretches_are_looked_at_first),
		cmocka_unit_test(files),
		cmocka_unit_test(flags_and_rights),
		cmocka_unit_test(renumbered),
		cmocka_unit_test(preopens),
		cmocka_unit_test(paths),
		cmocka_unit_test(a_listing_in_small_pieces),
		cmocka_unit_test(waits),
		cmocka_unit_test(not_blocking),
		cmocka_unit_test(the_older_one),
		cmocka_unit_test(a_bell),
		cmocka_unit_test(a_rest),
		cmocka_unit_test(rubbish_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
