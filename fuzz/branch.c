/* SPDX-License-Identifier: MIT */
/*
 * branch.c - what a worker reads as the state of the guest that it is to go on with: written by another worker,
 * which may be in its guest's hands.  What is taken keeps to the reader's quotas, can be written again, and reads
 * as the same; nothing is left behind of what is not.
 */
#include "../tests/unit/branch_world.h"
#include "fuzz.h"

#define ROOM ((size_t)1 << 20)

static bool check_name(void *user, const char *path, int type, const void *data, uint64_t len, bool whole)
{
	uint64_t *names = user;

	FUZZ_CHECK(!whole || (*path && *path != '/' && !strstr(path, "//")));
	FUZZ_CHECK(!whole || !len || data || type == VFS_DIR);
	(*names)++;
	return true;
}

static void check_quotas(const branch_world *x)
{
	uint64_t names = 0;
	mem_usage used;

	mem_tell(x->fs, &used);
	FUZZ_CHECK(used.bytes <= WORLD_BYTES && used.nodes <= WORLD_NODES);
	FUZZ_CHECK(mem_walk(x->fs, "/.", check_name, &names) == 0);
	FUZZ_CHECK(names <= WORLD_NODES + 4u); /* those that cost nothing */
}

/* The guest goes on, with whatever came. */
static void use(branch_world *x)
{
	uint64_t dice = x->parts.global[0].bits;

	for (unsigned i = 0; i < 60; i++)
		world_change(x, &dice);
	wasi_ring(&x->w);
	check_quotas(x);
}

static void check_empty(branch_world *x)
{
	mem_usage used;

	wasi_release(&x->w);
	mem_clear(x->fs, "/.");
	mem_tell(x->fs, &used);
	FUZZ_CHECK(used.bytes == 0 && used.nodes == 0);
}

static void check_again(branch_world *x)
{
	uint8_t *first = malloc(ROOM), *second = malloc(ROOM);
	branch_world y;
	size_t len;

	FUZZ_CHECK(first && second && world_begin(&y));
	len = world_save(x, first, ROOM);
	FUZZ_CHECK(len && world_load(&y, first, len) == 0);
	FUZZ_CHECK(world_save(&y, second, ROOM) == len && !memcmp(first, second, len));
	FUZZ_CHECK(!memcmp(x->parts.memory, y.parts.memory, x->parts.memory_bytes));
	world_end(&y);
	free(first);
	free(second);
}

int fuzz_one(uint8_t *data, size_t len)
{
	branch_world x;
	int rc;

	FUZZ_CHECK(world_begin(&x));
	rc = world_load(&x, data, len);
	FUZZ_CHECK(x.parts.memory_bytes <= WORLD_MEMORY && x.w.fd_count <= WORLD_FILES);
	if (!rc) {
		check_quotas(&x);
		check_again(&x);
		use(&x);
	}
	check_empty(&x);
	world_end(&x);
	return !rc;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	branch_world x;
	size_t len;

	if (at > 11)
		return 0;
	FUZZ_CHECK(world_begin(&x));
	world_draw_all(&x, at, (unsigned)at * 40);
	len = world_save(&x, out, cap);
	FUZZ_CHECK(len);
	world_end(&x);
	return len;
}
