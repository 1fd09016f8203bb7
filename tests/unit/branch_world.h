/* SPDX-License-Identifier: MIT */
/* branch_world.h - a guest's world without an engine, and drawn changes of it: for the test and the fuzzing of branches. */
#ifndef SB_TESTS_BRANCH_WORLD_H
#define SB_TESTS_BRANCH_WORLD_H

#include "src/wasm/branch.h"
#include "src/wasi/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD_BYTES = 20000, WORLD_NODES = 64, WORLD_FILES = 24, WORLD_PAGE = 65536, WORLD_MEMORY = 4 * WORLD_PAGE,
       WORLD_BUILD = 77 };

typedef struct branch_world {
	mem_fs *fs, *shown;
	wasi w;
	branch_parts parts;
	uint8_t *fresh;
} branch_world;

static inline int world_grow(void *user, uint64_t bytes)
{
	(void)user;
	return bytes <= WORLD_MEMORY ? 0 : -ENOMEM;
}

/* As a worker lays it out, a file of the pack's and something of the host's in it. */
static inline bool world_begin(branch_world *x)
{
	static const char text[] = "given";

	memset(x, 0, sizeof *x);
	x->fs = mem_new(WORLD_BYTES, WORLD_NODES);
	x->shown = mem_new(1000, 10);
	wasi_init(&x->w, WORLD_FILES);
	x->parts = (branch_parts){ .build = WORLD_BUILD, .fs = x->fs, .w = &x->w, .memory = calloc(1, WORLD_MEMORY),
		.memory_bytes = WORLD_PAGE, .fresh = calloc(1, WORLD_MEMORY), .fresh_bytes = WORLD_PAGE, .globals = 2,
		.global = { { .kind = 1, .bits = 65536 }, { .kind = 3 } }, .grow = world_grow };
	x->fresh = (uint8_t *)(uintptr_t)x->parts.fresh;
	if (!x->fs || !x->shown || !x->parts.memory || !x->fresh)
		return false;
	memset(x->fresh + 8192, 7, 5000); /* as the module brings it */
	memcpy(x->parts.memory, x->fresh, WORLD_PAGE);
	x->w.mem = x->parts.memory;
	x->w.mem_len = x->parts.memory_bytes;
	for (int i = 0; i < 3; i++)
		wasi_add_stream(&x->w, i, WASI_T_UNKNOWN, WASI_R_POLL | WASI_R_STAT | (i ? WASI_R_WRITE : WASI_R_READ));
	wasi_add_preopen(&x->w, mem_vfs(x->fs), mem_root(x->fs), "/", false);
	wasi_add_control(&x->w, 3, WASI_T_STREAM, WASI_R_READ | WASI_R_WRITE);
	wasi_start_clocks(&x->w);
	return !mem_add_dir(x->fs, "/run", MEM_READONLY | MEM_FREE) && !mem_add_dir(x->fs, "/work", 0) &&
	       !mem_add_dir(x->fs, "/in", MEM_READONLY) &&
	       !mem_add_file(x->fs, "/lib/code.zip", text, sizeof text, MEM_READONLY | MEM_FREE | MEM_BORROWED | MEM_GIVEN) &&
	       !mem_mount(x->fs, "/work/shown", mem_vfs(x->shown), mem_root(x->shown), NULL);
}

static inline void world_end(branch_world *x)
{
	wasi_release(&x->w);
	mem_free(x->fs);
	mem_free(x->shown);
	free(x->parts.memory);
	free(x->fresh);
	for (int i = 0; i < 2; i++) {
		char **list = i ? x->parts.env : x->parts.argv;

		for (char **p = list; p && *p; p++)
			free(*p);
		free(list);
	}
}

/* ---- Drawn changes ------------------------------------------------------------------------------- */

static inline uint32_t world_draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % below;
}

static inline void world_open(branch_world *x, uint64_t *dice, const char *path)
{
	uint32_t flags = VFS_READ | VFS_FOLLOW | (world_draw(dice, 2) ? VFS_WRITE | VFS_CREATE : 0);
	vfs *fs = mem_vfs(x->fs);
	vfs_file *file;
	vfs_stat st;
	int n;

	if (!strcmp(path, "work/shown") || fs->ops->open(fs, mem_root(x->fs), path, flags, &file) != 0)
		return; /* whoever opens that is in the other file system */
	fs->ops->stat(fs, file, &st);
	n = fds_place(&x->w);
	if (n < 0) {
		fs->ops->close(fs, file);
		return;
	}
	x->w.fd[n] = (wasi_fd){ .fs = fs, .file = file, .host = -1, .open = true, .offset = world_draw(dice, 100),
		.type = st.type == VFS_DIR ? WASI_T_DIR : WASI_T_FILE, .flags = (uint16_t)world_draw(dice, 2),
		.rights = st.type == VFS_DIR ? WASI_DIR_RIGHTS : WASI_FILE_RIGHTS & ~(uint64_t)WASI_R_SYNC,
		.inherits = WASI_FILE_RIGHTS };
}

static inline void world_write(branch_world *x, uint64_t *dice)
{
	uint32_t n = x->w.fd_count ? world_draw(dice, x->w.fd_count) : 0;
	vfs *fs = mem_vfs(x->fs);
	uint8_t data[700];
	uint64_t end;
	size_t done;

	if (n >= x->w.fd_count || !x->w.fd[n].open || x->w.fd[n].type != WASI_T_FILE)
		return;
	memset(data, (int)world_draw(dice, 255), sizeof data);
	fs->ops->write(fs, x->w.fd[n].file, world_draw(dice, 900), data, world_draw(dice, sizeof data), &done, &end);
	fs->ops->set_times(fs, x->w.fd[n].file, (int64_t)world_draw(dice, 1000000) * 1000, VFS_TIME_OMIT);
}

static inline void world_close(branch_world *x, uint64_t *dice)
{
	uint32_t n = world_draw(dice, x->w.fd_count + 1);

	if (n != 3 && n < x->w.fd_count)
		fds_close(&x->w.fd[n]);
}

static inline void world_change(branch_world *x, uint64_t *dice)
{
	static const char *const paths[] = {
		"work/a", "work/b", "work/a/b", "work/a/b/c", "work/b/a", "work/c", "work/c/d", "work/l", "work/m", "work/l/a",
		"work/n", "run/x", "lib/code.zip", "work/shown", "in/x", "work/o", "work/p", ".", "work",
	};
	const uint32_t count = sizeof paths / sizeof *paths;
	const char *path = paths[world_draw(dice, count)], *to = paths[world_draw(dice, count)];
	vfs *fs = mem_vfs(x->fs);
	vfs_file *root = mem_root(x->fs);

	switch (world_draw(dice, 12)) {
	case 0: fs->ops->mkdir(fs, root, path); break;
	case 1: fs->ops->unlink(fs, root, path); break;
	case 2: fs->ops->rmdir(fs, root, path); break;
	case 3: fs->ops->rename(fs, root, path, root, to); break;
	case 4: fs->ops->link(fs, root, path, false, root, to); break;
	case 5: fs->ops->symlink(fs, "../b/x", root, path); break;
	case 6: world_close(x, dice); break;
	case 7: x->parts.memory[world_draw(dice, (uint32_t)x->parts.memory_bytes)]++; break;
	case 8:
		if (world_draw(dice, 20) == 0 && x->parts.memory_bytes < WORLD_MEMORY)
			x->w.mem_len = x->parts.memory_bytes += WORLD_PAGE;
		x->parts.global[world_draw(dice, 2)].bits = *dice;
		break;
	case 9: world_write(x, dice); break;
	default: world_open(x, dice, path);
	}
}

static inline void world_draw_all(branch_world *x, uint64_t seed, unsigned changes)
{
	static const char *const argv[] = { "prog", "-x", NULL }, *const env[] = { "A=1", NULL };
	uint64_t dice = 0x9e3779b97f4a7c15u * (seed + 1);

	for (unsigned i = 0; i < changes; i++)
		world_change(x, &dice);
	x->w.bell[0].at = 64;
	x->w.bell[0].bits = 3;
	x->w.bells = 1;
	x->w.argv = argv;
	x->w.env = env;
}

/* ---- Streams ------------------------------------------------------------------------------------- */

typedef struct world_bytes {
	uint8_t *data;
	size_t len, room;
} world_bytes;

static inline bool world_put(void *user, const void *data, uint64_t len)
{
	world_bytes *b = user;

	if (len > b->room - b->len)
		return false;
	memcpy(b->data + b->len, data, len);
	b->len += len;
	return true;
}

static inline bool world_get(void *user, void *data, uint64_t len)
{
	world_bytes *b = user;

	if (len > b->room - b->len)
		return false;
	memcpy(data, b->data + b->len, len);
	b->len += len;
	return true;
}

/* The length, counted first as it is written then; 0 = it has no room, or the world cannot be carried. */
static inline size_t world_save(const branch_world *x, uint8_t *out, size_t room)
{
	world_bytes b = { .data = out, .room = room };
	state_sink count = { .put = NULL }, to = { .put = world_put, .user = &b };
	branch_saving *s;

	if (branch_save_begin(&x->parts, &s) != 0)
		return 0;
	branch_save(s, &count);
	branch_save(s, &to);
	branch_saved(s);
	return to.failed || to.bytes != count.bytes || to.bytes != b.len ? 0 : b.len;
}

/* `len` bytes, of a stream that says that it has `left`. */
static inline int world_load_some(branch_world *x, uint8_t *data, size_t len, uint64_t left)
{
	world_bytes b = { .data = data, .room = len };
	state_source from = { .get = world_get, .user = &b, .left = left };
	int rc = branch_load(&x->parts, &from);

	x->w.argv = (const char *const *)x->parts.argv;
	x->w.env = (const char *const *)x->parts.env;
	return rc;
}

static inline int world_load(branch_world *x, uint8_t *data, size_t len)
{
	return world_load_some(x, data, len, len);
}

#endif /* SB_TESTS_BRANCH_WORLD_H */
