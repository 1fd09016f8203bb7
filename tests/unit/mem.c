/* SPDX-License-Identifier: MIT */
/*
 * Files of a running guest: quotas at the moment of the write, cookies that stay, paths that never lead
 * out; and the same random operations here and on a real tmpfs, compared one by one.
 */
#include "unit.h"

#include "src/vfs/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sandbox/sandbox.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

typedef struct world {
	mem_fs *fs;
	vfs *v;
	vfs_file *root;
} world;

static world world_new(uint64_t bytes, uint64_t nodes)
{
	world w = { .fs = mem_new(bytes, nodes) };

	assert_non_null(w.fs);
	w.v = mem_vfs(w.fs);
	w.root = mem_root(w.fs);
	return w;
}

static int write_at(world *w, const char *path, uint32_t flags, const void *data, size_t len,
		    size_t *done)
{
	vfs_file *f;
	uint64_t end;
	int rc = w->v->ops->open(w->v, w->root, path, VFS_WRITE | VFS_FOLLOW | flags, &f);

	*done = 0;
	if (rc)
		return rc;
	rc = w->v->ops->write(w->v, f, flags & VFS_TRUNC ? 0 : VFS_APPEND, data, len, done, &end);
	w->v->ops->close(w->v, f);
	return rc;
}

static uint64_t used(const world *w)
{
	mem_usage u;

	mem_tell(w->fs, &u);
	return u.bytes;
}

/* ---- Quotas ---- */

static void bytes_are_counted_at_the_write(void **state)
{
	world w = world_new(1000, SB_UNLIMITED);
	char data[800] = "";
	mem_usage u;
	size_t n;

	(void)state;
	assert_int_equal(write_at(&w, "a", VFS_CREATE, data, 800, &n), 0);
	assert_int_equal(write_at(&w, "b", VFS_CREATE, data, 800, &n), 0);
	assert_int_equal(n, 200); /* what still fits, as on a full disk */
	assert_int_equal(write_at(&w, "b", 0, data, 1, &n), -ENOSPC);
	mem_tell(w.fs, &u);
	assert_int_equal(u.bytes, 1000);
	assert_int_equal(u.bytes_refused, 2);
	assert_int_equal(write_at(&w, "a", VFS_TRUNC, data, 100, &n), 0); /* shrunk: room again */
	assert_int_equal(used(&w), 300);
	assert_int_equal(w.v->ops->unlink(w.v, w.root, "b"), 0);
	assert_int_equal(used(&w), 100);
	mem_free(w.fs);
}

static void an_open_file_keeps_its_bytes(void **state)
{
	world w = world_new(100, SB_UNLIMITED);
	vfs_file *f;
	uint64_t end;
	size_t n;

	(void)state;
	assert_int_equal(w.v->ops->open(w.v, w.root, "a", VFS_WRITE | VFS_READ | VFS_CREATE, &f), 0);
	assert_int_equal(w.v->ops->write(w.v, f, 0, "0123456789", 10, &n, &end), 0);
	assert_int_equal(w.v->ops->unlink(w.v, w.root, "a"), 0);
	assert_int_equal(used(&w), 10);
	assert_int_equal(w.v->ops->set_size(w.v, f, 101), -ENOSPC);
	assert_int_equal(w.v->ops->set_size(w.v, f, 100), 0);
	w.v->ops->close(w.v, f);
	assert_int_equal(used(&w), 0);
	mem_free(w.fs);
}

static void names_are_counted(void **state)
{
	world w = world_new(SB_UNLIMITED, 3);
	mem_usage u;
	size_t n;

	(void)state;
	assert_int_equal(w.v->ops->mkdir(w.v, w.root, "d"), 0);
	assert_int_equal(write_at(&w, "d/f", VFS_CREATE, "x", 1, &n), 0);
	assert_int_equal(w.v->ops->link(w.v, w.root, "d/f", false, w.root, "l"), 0); /* a name, too */
	assert_int_equal(w.v->ops->symlink(w.v, "d", w.root, "s"), -ENOSPC);
	assert_int_equal(w.v->ops->rename(w.v, w.root, "l", w.root, "m"), 0); /* none more */
	assert_int_equal(w.v->ops->unlink(w.v, w.root, "m"), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "d", w.root, "s"), 0);
	mem_tell(w.fs, &u);
	assert_int_equal(u.nodes, 3);
	assert_int_equal(u.nodes_refused, 1);
	mem_free(w.fs);
}

static void what_is_given_counts_or_not(void **state)
{
	world w = world_new(10, 2);

	(void)state;
	assert_int_equal(mem_add_file(w.fs, "/pack/std.zip", "0123456789abcdef", 16,
				      MEM_READONLY | MEM_FREE | MEM_BORROWED), 0);
	assert_int_equal(used(&w), 0);
	assert_int_equal(mem_add_file(w.fs, "/in/x", "0123456789a", 11, MEM_READONLY), -ENOSPC);
	mem_free(w.fs);
}

static void what_is_given_stays(void **state)
{
	world w = world_new(SB_UNLIMITED, SB_UNLIMITED);
	vfs_file *f;
	size_t n;

	(void)state;
	assert_int_equal(mem_add_file(w.fs, "/in/x", "abc", 3, MEM_READONLY), 0);
	assert_int_equal(mem_add_dir(w.fs, "/in", MEM_READONLY), 0);
	assert_int_equal(mem_add_dir(w.fs, "/work", 0), 0);
	assert_int_equal(mem_add_dir(w.fs, "/", MEM_READONLY), 0);
	assert_int_equal(write_at(&w, "in/x", 0, "y", 1, &n), -EROFS);
	assert_int_equal(write_at(&w, "in/y", VFS_CREATE, "y", 1, &n), -EROFS);
	assert_int_equal(w.v->ops->unlink(w.v, w.root, "in/x"), -EROFS);
	assert_int_equal(w.v->ops->rmdir(w.v, w.root, "work"), -EROFS);
	assert_int_equal(w.v->ops->rename(w.v, w.root, "in/x", w.root, "work/x"), -EROFS);
	assert_int_equal(w.v->ops->rename(w.v, w.root, "work", w.root, "w"), -EROFS);
	assert_int_equal(w.v->ops->link(w.v, w.root, "in/x", false, w.root, "work/x"), -EXDEV);
	assert_int_equal(w.v->ops->set_times_at(w.v, w.root, "in/x", false, 1, 1), -EROFS);
	assert_int_equal(w.v->ops->mkdir(w.v, w.root, "new"), -EROFS);
	assert_int_equal(w.v->ops->open(w.v, w.root, "in/x", VFS_READ | VFS_TRUNC, &f), -EROFS);
	assert_int_equal(write_at(&w, "work/y", VFS_CREATE, "y", 1, &n), 0);
	mem_free(w.fs);
}

/* ---- Paths ---- */

static void no_path_leads_out(void **state)
{
	static const char *const out[] = { "..", "../x", "d/../../x", "./..", "/x", "/", "l/../../../x",
					   "up", "up/x", "far", "d/..//..", "d/up2/x" };
	world w = world_new(SB_UNLIMITED, SB_UNLIMITED);
	vfs_file *f, *d;
	vfs_stat st;

	(void)state;
	assert_int_equal(w.v->ops->mkdir(w.v, w.root, "d"), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "d", w.root, "l"), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "..", w.root, "up"), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "../..", w.root, "d/up2"), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "../../etc/passwd", w.root, "far"), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "/etc/passwd", w.root, "abs"), -EPERM);
	for (size_t i = 0; i < UNIT_LEN(out); i++) {
		unit_row(i, w.v->ops->open(w.v, w.root, out[i], VFS_READ | VFS_FOLLOW, &f) == -EPERM);
		unit_row(i, w.v->ops->stat_at(w.v, w.root, out[i], true, &st) == -EPERM);
	}
	/* a directory that was opened is a world of its own: not even its parent is reached from it */
	assert_int_equal(w.v->ops->open(w.v, w.root, "d", VFS_READ | VFS_DIRECTORY, &d), 0);
	assert_int_equal(w.v->ops->stat_at(w.v, d, "../d", true, &st), -EPERM);
	assert_int_equal(w.v->ops->rename(w.v, d, "up2", d, "../x"), -EPERM);
	w.v->ops->close(w.v, d);
	mem_free(w.fs);
}

static void links_end(void **state)
{
	world w = world_new(SB_UNLIMITED, SB_UNLIMITED);
	char name[300];
	vfs_stat st;

	(void)state;
	assert_int_equal(w.v->ops->symlink(w.v, "b", w.root, "a"), 0);
	assert_int_equal(w.v->ops->symlink(w.v, "a", w.root, "b"), 0);
	assert_int_equal(w.v->ops->stat_at(w.v, w.root, "a", true, &st), -ELOOP);
	memset(name, 'x', sizeof name);
	name[255] = '\0';
	assert_int_equal(w.v->ops->mkdir(w.v, w.root, name), 0);
	name[255] = 'x';
	name[256] = '\0';
	assert_int_equal(w.v->ops->mkdir(w.v, w.root, name), -ENAMETOOLONG);
	mem_free(w.fs);
}

/* ---- Listings ---- */

typedef struct seen {
	char names[64][16];
	size_t count, max;
	uint64_t next;
} seen;

static bool note(void *user, const char *name, size_t len, uint64_t ino, int type, uint64_t next)
{
	seen *s = user;

	(void)ino;
	(void)type;
	if (s->count == s->max)
		return false;
	snprintf(s->names[s->count++], 16, "%.*s", (int)len, name);
	s->next = next;
	return true;
}

static void a_listing_goes_on_where_it_was(void **state)
{
	world w = world_new(SB_UNLIMITED, SB_UNLIMITED);
	seen s = { .max = 7 };
	char name[8];
	size_t n;

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "f%d", i);
		assert_int_equal(write_at(&w, name, VFS_CREATE, "", 0, &n), 0);
	}
	assert_int_equal(w.v->ops->list(w.v, w.root, 0, note, &s), 0);
	assert_string_equal(s.names[0], ".");
	assert_string_equal(s.names[1], "..");
	assert_string_equal(s.names[6], "f4");
	/* what was read goes, what comes next goes, something is added: nothing is told twice or lost */
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof name, "f%d", i);
		assert_int_equal(w.v->ops->unlink(w.v, w.root, name), 0);
	}
	assert_int_equal(write_at(&w, "f0", VFS_CREATE, "", 0, &n), 0);
	s = (seen){ .max = 64, .next = s.next };
	assert_int_equal(w.v->ops->list(w.v, w.root, s.next, note, &s), 0);
	assert_int_equal(s.count, 14);
	assert_string_equal(s.names[0], "f7");
	assert_string_equal(s.names[13], "f0");
	mem_free(w.fs);
}

static bool count_whole(void *user, const char *path, int type, const void *data, uint64_t len,
			bool whole)
{
	(void)path;
	(void)type;
	(void)data;
	(void)len;
	*(size_t *)user += whole ? 1 : 1000;
	return true;
}

static void a_walk_is_bounded(void **state)
{
	world w = world_new(SB_UNLIMITED, SB_UNLIMITED);
	char path[400] = "/out";
	size_t met = 0;

	(void)state;
	for (int i = 0; i < 70; i++) {
		strcat(path, "/d");
		assert_int_equal(mem_add_dir(w.fs, path, 0), 0);
	}
	assert_int_equal(mem_walk(w.fs, "/out", count_whole, &met), 0);
	assert_int_equal(met, 63 + 1000);
	assert_int_equal(mem_walk(w.fs, "/none", count_whole, &met), -ENOENT);
	mem_free(w.fs);
}

/* ---- The same here and on a tmpfs ---- */

typedef struct twin {
	world w;
	int dir;
	uint64_t seed;
} twin;

/* Small names, so that things meet; never above the start by its letters. */
static void random_path(twin *t, char out[64])
{
	static const char *const parts[] = { "a", "b", "c", "d", "a", "b", ".", "..", "a/" };
	int depth = 0, n = 1 + (int)(unit_random(&t->seed) % 3);

	out[0] = '\0';
	for (int i = 0; i < n; i++) {
		const char *part = parts[unit_random(&t->seed) % UNIT_LEN(parts)];

		if (part[0] == '.' && part[1] == '.' && depth-- == 0) {
			depth = 0;
			continue;
		}
		depth += part[0] != '.';
		strcat(out, i && out[0] ? "/" : "");
		strcat(out, part);
	}
	if (!out[0])
		strcat(out, "a");
}

static int real(int rc)
{
	return rc < 0 ? -errno : 0;
}

static int both_open(twin *t, const char *path, int *theirs)
{
	static const struct { uint32_t ours; int theirs; } sets[] = {
		{ VFS_READ | VFS_FOLLOW, O_RDONLY }, { VFS_READ, O_RDONLY | O_NOFOLLOW },
		{ VFS_WRITE | VFS_FOLLOW | VFS_CREATE, O_WRONLY | O_CREAT },
		{ VFS_WRITE | VFS_CREATE | VFS_EXCL, O_WRONLY | O_CREAT | O_EXCL },
		{ VFS_WRITE | VFS_FOLLOW | VFS_TRUNC, O_WRONLY | O_TRUNC },
		{ VFS_READ | VFS_DIRECTORY | VFS_FOLLOW, O_RDONLY | O_DIRECTORY },
	};
	size_t i = unit_random(&t->seed) % UNIT_LEN(sets);
	char data[40];
	size_t n, len = unit_random(&t->seed) % sizeof data;
	uint64_t end, at = unit_random(&t->seed) % 60;
	int fd = openat(t->dir, path, sets[i].theirs | O_CLOEXEC, 0644);
	vfs_file *f;
	int rc = t->w.v->ops->open(t->w.v, t->w.root, path, sets[i].ours, &f);

	*theirs = real(fd);
	memset(data, 'a' + (char)(len % 26), sizeof data);
	if (!rc && (sets[i].ours & VFS_WRITE)) {
		assert_int_equal(t->w.v->ops->write(t->w.v, f, at, data, len, &n, &end), 0);
		if (fd >= 0)
			assert_int_equal(pwrite(fd, data, len, (off_t)at), (ssize_t)n);
	}
	if (!rc)
		t->w.v->ops->close(t->w.v, f);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int both_look(twin *t, const char *path, bool follow, int *theirs)
{
	struct stat st;
	vfs_stat ours;
	int rc = t->w.v->ops->stat_at(t->w.v, t->w.root, path, follow, &ours);

	*theirs = real(fstatat(t->dir, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW));
	if (rc || *theirs)
		return rc;
	assert_int_equal(ours.type == VFS_DIR, S_ISDIR(st.st_mode));
	assert_int_equal(ours.type == VFS_LINK, S_ISLNK(st.st_mode));
	if (ours.type == VFS_FILE) {
		assert_int_equal(ours.size, st.st_size);
		assert_int_equal(ours.links, st.st_nlink);
	}
	return rc;
}

static int both_readlink(twin *t, const char *path, int *theirs)
{
	char ours[64] = "", text[64] = "";
	size_t len = 0;
	int rc = t->w.v->ops->readlink(t->w.v, t->w.root, path, ours, sizeof ours - 1, &len);
	ssize_t n = readlinkat(t->dir, path, text, sizeof text - 1);

	*theirs = n < 0 ? -errno : 0;
	if (!rc && !*theirs)
		assert_string_equal(ours, text);
	return rc;
}

/* One operation on both; false = they differ. */
static bool step(twin *t, char told[200])
{
	static const char *const texts[] = { "a", "b", "a/b", "c/d", "none", "d" };
	const vfs_ops *o = t->w.v->ops;
	uint32_t what = unit_random(&t->seed) % 12, text = unit_random(&t->seed) % UNIT_LEN(texts);
	char path[64], to[64];
	int ours, theirs = 0;

	random_path(t, path);
	random_path(t, to);
	switch (what) {
	case 0: case 1:
		ours = o->mkdir(t->w.v, t->w.root, path);
		theirs = real(mkdirat(t->dir, path, 0755));
		break;
	case 2:
		ours = o->rmdir(t->w.v, t->w.root, path);
		theirs = real(unlinkat(t->dir, path, AT_REMOVEDIR));
		break;
	case 3:
		ours = o->unlink(t->w.v, t->w.root, path);
		theirs = real(unlinkat(t->dir, path, 0));
		break;
	case 4: case 5:
		ours = o->rename(t->w.v, t->w.root, path, t->w.root, to);
		theirs = real(renameat(t->dir, path, t->dir, to));
		break;
	case 6:
		ours = o->link(t->w.v, t->w.root, path, what & 1, t->w.root, to);
		theirs = real(linkat(t->dir, path, t->dir, to, 0));
		break;
	case 7:
		ours = o->symlink(t->w.v, texts[text], t->w.root, path);
		theirs = real(symlinkat(texts[text], t->dir, path));
		break;
	case 8:
		ours = both_readlink(t, path, &theirs);
		break;
	case 9:
		ours = both_look(t, path, text & 1, &theirs);
		break;
	default:
		ours = both_open(t, path, &theirs);
	}
	snprintf(told, 200, "operation %u of \"%s\" (\"%s\", \"%s\"): ours %s, theirs %s", what, path, to,
		 texts[text], strerror(-ours), strerror(-theirs));
	return ours == theirs;
}

static size_t real_names(int fd)
{
	DIR *dir = fdopendir(dup(fd));
	size_t n = 0;

	rewinddir(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void clear(int dir, int depth)
{
	DIR *d = fdopendir(dup(dir));
	struct dirent *e;

	rewinddir(d);
	while ((e = readdir(d))) {
		int sub;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(dir, e->d_name, 0) == 0 || depth > 200)
			continue;
		sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			continue;
		clear(sub, depth + 1);
		close(sub);
		unlinkat(dir, e->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

static void the_same_as_a_tmpfs(void **state)
{
	char path[] = "/dev/shm/sb-unit-mem-XXXXXX", told[200];
	struct statfs st;
	twin t;

	(void)state;
	if (statfs("/dev/shm", &st) < 0 || st.f_type != 0x01021994 || !mkdtemp(path))
		skip();
	for (uint64_t round = 0; round < 60; round++) {
		seen s = { .max = 64 };

		t = (twin){ .w = world_new(SB_UNLIMITED, SB_UNLIMITED), .seed = round + 1 };
		t.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(t.dir >= 0);
		for (int i = 0; i < 400; i++)
			if (!step(&t, told)) {
				clear(t.dir, 0);
				rmdir(path);
				fail_msg("round %d, step %d: %s", (int)round, i, told);
			}
		assert_int_equal(t.w.v->ops->list(t.w.v, t.w.root, 0, note, &s), 0);
		assert_int_equal(s.count, real_names(t.dir));
		clear(t.dir, 0);
		close(t.dir);
		mem_free(t.w.fs);
	}
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_counted_at_the_write),
		cmocka_unit_test(an_open_file_keeps_its_bytes),
		cmocka_unit_test(names_are_counted),
		cmocka_unit_test(what_is_given_counts_or_not),
		cmocka_unit_test(what_is_given_stays),
		cmocka_unit_test(no_path_leads_out),
		cmocka_unit_test(links_end),
		cmocka_unit_test(a_listing_goes_on_where_it_was),
		cmocka_unit_test(a_walk_is_bounded),
		cmocka_unit_test(the_same_as_a_tmpfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
