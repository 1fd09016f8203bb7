/* SPDX-License-Identifier: MIT */
/*
 * What a guest at rest holds as a stream, and back: drawn worlds come again byte for byte; what is cut, bent or larger
 * than allowed is refused, and leaves nothing.
 */
#include "unit.h"

#include "branch_world.h"

#include <errno.h>
#include <sandbox/sandbox.h>

#define ROOM ((size_t)1 << 20)

static uint8_t first[ROOM], second[ROOM];

static void begin(branch_world *x)
{
	assert_true(world_begin(x));
}

/* Whatever is still open or named goes, and no quota counts anything more. */
static void end_empty(branch_world *x)
{
	mem_usage used;

	wasi_release(&x->w);
	mem_clear(x->fs, "/.");
	mem_tell(x->fs, &used);
	assert_int_equal(used.bytes, 0);
	assert_int_equal(used.nodes, 0);
	world_end(x);
}

static void drawn_worlds_come_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		branch_world x, y;
		mem_usage was, is;
		size_t len;

		begin(&x);
		begin(&y);
		world_draw_all(&x, i, 10 * (i % 60));
		len = world_save(&x, first, ROOM);
		unit_row(i, len > 0);
		unit_row(i, world_load(&y, first, len) == 0);
		unit_row(i, world_save(&y, second, ROOM) == len && !memcmp(first, second, len));
		unit_row(i, x.parts.memory_bytes == y.parts.memory_bytes &&
				    !memcmp(x.parts.memory, y.parts.memory, x.parts.memory_bytes));
		unit_row(i, x.parts.global[1].bits == y.parts.global[1].bits && y.w.bells == 1);
		unit_row(i, !strcmp(y.w.argv[1], "-x") && !strcmp(y.w.env[0], "A=1") && !y.w.env[1]);
		mem_tell(x.fs, &was);
		mem_tell(y.fs, &is);
		unit_row(i, was.bytes == is.bytes && was.nodes == is.nodes);
		end_empty(&x);
		end_empty(&y);
	}
}

/* ---- One world, looked at ---- */

typedef struct listing {
	char names[200];
	uint64_t next;
	unsigned most;
} listing;

static bool note(void *user, const char *name, size_t len, uint64_t ino, int type, uint64_t next)
{
	listing *l = user;

	(void)len;
	(void)ino;
	(void)type;
	strcat(l->names, name);
	strcat(l->names, " ");
	l->next = next;
	return --l->most > 0;
}

static vfs_file *open_in(branch_world *x, const char *path, uint32_t flags)
{
	vfs *fs = mem_vfs(x->fs);
	vfs_file *file = NULL;

	assert_int_equal(fs->ops->open(fs, mem_root(x->fs), path, flags, &file), 0);
	return file;
}

static void put_fd(branch_world *x, vfs_file *file, uint8_t type, uint64_t offset)
{
	x->w.fd[fds_place(&x->w)] = (wasi_fd){ .fs = mem_vfs(x->fs), .file = file, .host = -1, .open = true, .type = type,
		.offset = offset, .rights = type == WASI_T_DIR ? WASI_R_READDIR : WASI_R_READ | WASI_R_WRITE };
}

static void links_open_files_and_listings(void **state)
{
	listing l = { .most = 5 };
	branch_world x, y;
	char text[8] = "";
	uint64_t end;
	size_t done, len;
	vfs_file *f;
	vfs_stat st;
	vfs *fs;

	(void)state;
	begin(&x);
	begin(&y);
	fs = mem_vfs(x.fs);
	f = open_in(&x, "work/a", VFS_WRITE | VFS_CREATE);
	assert_int_equal(fs->ops->write(fs, f, 0, "bytes", 5, &done, &end), 0);
	assert_int_equal(fs->ops->set_times(fs, f, 11, 22), 0);
	assert_int_equal(fs->ops->link(fs, mem_root(x.fs), "work/a", false, mem_root(x.fs), "work/b"), 0);
	assert_int_equal(fs->ops->symlink(fs, "b", mem_root(x.fs), "work/c"), 0);
	put_fd(&x, f, WASI_T_FILE, 3);
	f = open_in(&x, "work/gone", VFS_WRITE | VFS_CREATE);
	assert_int_equal(fs->ops->write(fs, f, 0, "still", 5, &done, &end), 0);
	assert_int_equal(fs->ops->unlink(fs, mem_root(x.fs), "work/gone"), 0);
	put_fd(&x, f, WASI_T_FILE, 0);
	f = open_in(&x, "work", VFS_READ | VFS_DIRECTORY);
	assert_int_equal(fs->ops->list(fs, f, 0, note, &l), 0);
	assert_string_equal(l.names, ". .. shown a b ");
	put_fd(&x, f, WASI_T_DIR, 0);

	len = world_save(&x, first, ROOM);
	assert_int_equal(world_load(&y, first, len), 0);
	fs = mem_vfs(y.fs);
	assert_int_equal(y.w.fd_count, 7);
	assert_int_equal(y.w.fd[4].offset, 3);
	assert_int_equal(fs->ops->stat(fs, y.w.fd[4].file, &st), 0);
	assert_true(st.links == 2 && st.size == 5 && st.atime_ns == 11 && st.mtime_ns == 22);
	assert_int_equal(fs->ops->stat(fs, y.w.fd[5].file, &st), 0);
	assert_int_equal(st.links, 0);
	assert_int_equal(fs->ops->read(fs, y.w.fd[5].file, 0, text, sizeof text, &done), 0);
	assert_memory_equal(text, "still", 5);
	/* a listing that was begun goes on */
	memset(l.names, 0, sizeof l.names);
	l.most = 9;
	assert_int_equal(fs->ops->list(fs, y.w.fd[6].file, l.next, note, &l), 0);
	assert_string_equal(l.names, "c ");
	/* one file by both names, and none of it the other's */
	f = open_in(&y, "work/b", VFS_WRITE | VFS_FOLLOW);
	assert_ptr_equal(f, y.w.fd[4].file);
	assert_int_equal(fs->ops->write(fs, f, 0, "BYTES", 5, &done, &end), 0);
	fs->ops->close(fs, f);
	fs = mem_vfs(x.fs);
	assert_int_equal(fs->ops->read(fs, x.w.fd[4].file, 0, text, sizeof text, &done), 0);
	assert_memory_equal(text, "bytes", 5);
	end_empty(&x);
	end_empty(&y);
}

/* Nobody but its own side says what is given, and what is mounted. */
static void what_is_given_is_its_own(void **state)
{
	branch_world x, y;
	vfs_crossing to;
	vfs_file *f;
	uint64_t end;
	size_t done, len;

	(void)state;
	begin(&x);
	begin(&y);
	len = world_save(&x, first, ROOM);
	assert_int_equal(world_load(&y, first, len), 0);
	assert_int_equal(mem_vfs(y.fs)->ops->cross(mem_vfs(y.fs), mem_root(y.fs), "work/shown/z", VFS_WALK_NAME, &to), 1);
	assert_ptr_equal(to.fs, mem_vfs(y.shown));
	assert_int_equal(mem_vfs(y.fs)->ops->open(mem_vfs(y.fs), mem_root(y.fs), "lib/code.zip", VFS_WRITE, &f), -EROFS);
	f = open_in(&y, "lib/code.zip", VFS_READ);
	assert_int_equal(mem_vfs(y.fs)->ops->write(mem_vfs(y.fs), f, 0, "x", 1, &done, &end), -EROFS);
	mem_vfs(y.fs)->ops->close(mem_vfs(y.fs), f);
	end_empty(&x);
	end_empty(&y);
	/* not given here */
	begin(&y);
	assert_int_equal(mem_drop(y.fs, "/lib"), 0);
	assert_int_equal(world_load(&y, first, len), -ENOENT);
	end_empty(&y);
}

/* An open file of another file system cannot go along, and is not left out in silence. */
static void other_file_systems_are_refused(void **state)
{
	branch_saving *saving;
	branch_world x;
	vfs *fs;

	(void)state;
	begin(&x);
	fs = mem_vfs(x.shown);
	x.w.fd[fds_place(&x.w)] = (wasi_fd){ .fs = fs, .host = -1, .open = true, .type = WASI_T_DIR, .borrowed = true,
		.file = mem_root(x.shown) };
	assert_int_equal(branch_save_begin(&x.parts, &saving), -EXDEV);
	assert_null(saving);
	world_end(&x);
}

/* ---- What is refused ---- */

static size_t full_world(void)
{
	branch_world x;
	size_t len;

	begin(&x);
	world_draw_all(&x, 3, 200);
	len = world_save(&x, first, ROOM);
	assert_true(len > 0);
	end_empty(&x);
	return len;
}

static void every_cut_is_noticed(void **state)
{
	size_t len = full_world(), step = len / 400 + 1;

	(void)state;
	for (size_t cut = 0; cut < len; cut += cut < 400 || len - cut < 1500 ? 1 : step) {
		branch_world y;

		begin(&y);
		unit_row(cut, world_load(&y, first, cut) < 0);
		end_empty(&y);
		begin(&y); /* it says that there is more */
		unit_row(cut, world_load_some(&y, first, cut, len) == -EIO);
		end_empty(&y);
	}
}

static void more_than_all_is_refused(void **state)
{
	size_t len = full_world();
	branch_world y;

	(void)state;
	first[len] = 0;
	begin(&y);
	assert_int_equal(world_load(&y, first, len + 1), -EPROTO);
	end_empty(&y);
}

/* Any four bytes as large as can be: refused or taken, but within the quotas, and nothing is left. */
static void large_numbers_are_refused(void **state)
{
	size_t len = full_world();

	(void)state;
	for (size_t at = 0; at + 4 <= len; at += at < 200 || len - at < 3000 ? 4 : 1024) {
		uint8_t kept[4];
		branch_world y;
		mem_usage used;

		memcpy(kept, first + at, 4);
		memset(first + at, 255, 4);
		begin(&y);
		world_load(&y, first, len);
		mem_tell(y.fs, &used);
		unit_row(at, used.bytes <= WORLD_BYTES && used.nodes <= WORLD_NODES && y.w.fd_count <= WORLD_FILES &&
				     y.parts.memory_bytes <= WORLD_MEMORY);
		end_empty(&y);
		memcpy(first + at, kept, 4);
	}
}

/* The branch's limits are its own. */
static void quotas_are_the_readers(void **state)
{
	size_t done, len;
	branch_world x, y;
	char data[5000];
	uint64_t end;
	vfs_file *f;

	(void)state;
	begin(&x);
	memset(data, 1, sizeof data);
	f = open_in(&x, "work/a", VFS_WRITE | VFS_CREATE);
	assert_int_equal(mem_vfs(x.fs)->ops->write(mem_vfs(x.fs), f, 0, data, sizeof data, &done, &end), 0);
	mem_vfs(x.fs)->ops->close(mem_vfs(x.fs), f);
	len = world_save(&x, first, ROOM);
	begin(&y);
	f = open_in(&y, "work/b", VFS_WRITE | VFS_CREATE); /* it goes: the quota is free again */
	assert_int_equal(mem_vfs(y.fs)->ops->set_size(mem_vfs(y.fs), f, WORLD_BYTES), 0);
	mem_vfs(y.fs)->ops->close(mem_vfs(y.fs), f);
	assert_int_equal(world_load(&y, first, len), 0);
	end_empty(&y);
	for (int what = 0; what < 2; what++) {
		begin(&y);
		mem_free(y.fs);
		wasi_release(&y.w);
		y.fs = y.parts.fs = mem_new(what ? WORLD_BYTES : sizeof data - 1, what ? 2 : WORLD_NODES);
		wasi_init(&y.w, WORLD_FILES);
		assert_int_equal(mem_add_file(y.fs, "/lib/code.zip", "given", 6,
					      MEM_READONLY | MEM_FREE | MEM_BORROWED | MEM_GIVEN), 0);
		assert_int_equal(mem_mount(y.fs, "/work/shown", mem_vfs(y.shown), mem_root(y.shown), NULL), 0);
		assert_int_equal(mem_add_dir(y.fs, "/run", MEM_FREE), 0);
		unit_row(what, world_load(&y, first, len) == -ENOSPC);
		end_empty(&y);
	}
	end_empty(&x);
}

static void fewer_open_files(void **state)
{
	branch_world x, y;
	size_t len;

	(void)state;
	begin(&x);
	for (int i = 0; i < 6; i++)
		put_fd(&x, open_in(&x, "work", VFS_READ), WASI_T_DIR, 0);
	len = world_save(&x, first, ROOM);
	begin(&y);
	y.w.fd_max = 9;
	assert_int_equal(world_load(&y, first, len), -EMFILE);
	end_empty(&y);
	end_empty(&x);
}

/* Rights that were not laid here, and streams that there are not. */
static void rights_are_the_readers(void **state)
{
	branch_world x, y;
	size_t len;

	(void)state;
	for (int what = 0; what < 4; what++) {
		begin(&x);
		begin(&y);
		if (what == 0)
			x.w.fd[0].rights |= WASI_R_WRITE;
		else if (what == 1)
			x.w.fd[1].rights |= WASI_R_READ;
		else if (what == 2)
			x.w.fd[3].rights |= WASI_R_ACCEPT;
		else
			put_fd(&x, open_in(&x, "in", VFS_READ), WASI_T_FILE, 0); /* of a file, on a folder */
		len = world_save(&x, first, ROOM);
		unit_row(what, len && world_load(&y, first, len) == -EPROTO);
		end_empty(&x);
		end_empty(&y);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn_worlds_come_again), cmocka_unit_test(links_open_files_and_listings),
		cmocka_unit_test(what_is_given_is_its_own), cmocka_unit_test(other_file_systems_are_refused),
		cmocka_unit_test(every_cut_is_noticed), cmocka_unit_test(more_than_all_is_refused),
		cmocka_unit_test(large_numbers_are_refused), cmocka_unit_test(quotas_are_the_readers),
		cmocka_unit_test(fewer_open_files), cmocka_unit_test(rights_are_the_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
