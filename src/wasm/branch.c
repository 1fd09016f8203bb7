/* SPDX-License-Identifier: MIT */
/*
 * branch.c - see branch.h; docs/internals/branch-stream.md has the form.
 *
 * The memory goes page by page: those which are as the module brings them are left out, for the branch's own
 * instance has them.  Which ones go is found out first, so that the length is known before the first byte is sent.
 */
#include "branch.h"

#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>

#define BRANCH_MAGIC 0x3148434e415242u
#define BRANCH_END 0x444e4548434e5242u
#define WASM_PAGE 65536u
#define MEMORY_MOST ((uint64_t)1 << 32)

typedef struct branch_head {
	uint64_t magic, build, memory_bytes;
	uint32_t runs, globals;
} branch_head;

/* Pages one behind the other. */
typedef struct page_run {
	uint32_t first, count;
} page_run;

struct branch_saving {
	const branch_parts *parts;
	page_run *run;
	size_t runs, room;
	mem_index *index;
};

/* ---- Writing ------------------------------------------------------------------------------------- */

static bool page_changed(const branch_parts *p, uint64_t at)
{
	static const uint8_t zeros[BRANCH_PAGE];

	if (!p->fresh)
		return true;
	return memcmp(p->memory + at, at < p->fresh_bytes ? p->fresh + at : zeros, BRANCH_PAGE) != 0;
}

static int find_runs(branch_saving *s)
{
	const branch_parts *p = s->parts;

	for (uint64_t at = 0; at + BRANCH_PAGE <= p->memory_bytes; at += BRANCH_PAGE) {
		uint32_t page = (uint32_t)(at / BRANCH_PAGE);
		page_run *last = s->runs ? &s->run[s->runs - 1] : NULL;
		void *grown;

		if (!page_changed(p, at))
			continue;
		if (last && last->first + last->count == page) {
			last->count++;
			continue;
		}
		grown = buf_grow(s->run, s->runs, &s->room, sizeof *s->run);
		if (!grown)
			return -ENOMEM;
		s->run = grown;
		s->run[s->runs++] = (page_run){ .first = page, .count = 1 };
	}
	return 0;
}

int branch_save_begin(const branch_parts *parts, branch_saving **out)
{
	branch_saving *s = calloc(1, sizeof *s);
	vfs_file **files = NULL;
	size_t count = 0;
	int rc = s ? wasi_state_files(parts->w, mem_vfs(parts->fs), &files, &count) : -ENOMEM;

	if (!rc) {
		s->parts = parts;
		s->index = mem_index_new(parts->fs, files, count);
		rc = s->index ? find_runs(s) : -ENOMEM;
	}
	free(files);
	if (rc)
		branch_saved(s);
	*out = rc ? NULL : s;
	return rc;
}

void branch_save(const branch_saving *s, state_sink *to)
{
	const branch_parts *p = s->parts;
	const branch_head head = { .magic = BRANCH_MAGIC, .build = p->build, .memory_bytes = p->memory_bytes,
				   .runs = (uint32_t)s->runs, .globals = p->globals };
	const uint64_t end = BRANCH_END;

	state_put(to, &head, sizeof head);
	state_put(to, p->global, p->globals * sizeof *p->global);
	state_put(to, s->run, s->runs * sizeof *s->run);
	for (size_t i = 0; i < s->runs; i++)
		state_put(to, p->memory + (uint64_t)s->run[i].first * BRANCH_PAGE,
			  (uint64_t)s->run[i].count * BRANCH_PAGE);
	mem_save(s->index, to);
	wasi_save(p->w, to);
	state_put(to, &end, sizeof end);
}

void branch_saved(branch_saving *s)
{
	if (!s)
		return;
	mem_index_free(s->index);
	free(s->run);
	free(s);
}

/* ---- Reading ------------------------------------------------------------------------------------- */

static int read_globals(branch_parts *p, uint32_t count, state_source *from)
{
	int rc = 0;

	if (count != p->globals)
		return -EPROTO;
	for (uint32_t i = 0; !rc && i < count; i++) {
		branch_global g;

		rc = state_get(from, &g, sizeof g);
		if (!rc && (g.kind != p->global[i].kind || g.reserved))
			rc = -EPROTO;
		p->global[i].bits = rc ? 0 : g.bits;
	}
	return rc;
}

/* In order and apart, within the memory. */
static bool runs_fit(const page_run *run, uint32_t count, uint64_t memory_bytes)
{
	uint64_t behind = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!run[i].count || run[i].first < behind)
			return false;
		behind = (uint64_t)run[i].first + run[i].count;
		if (behind > memory_bytes / BRANCH_PAGE)
			return false;
	}
	return true;
}

static int read_pages(const branch_parts *p, uint32_t count, state_source *from)
{
	page_run *run;
	int rc;

	if (!state_has(from, count, sizeof *run))
		return -EPROTO;
	run = calloc((size_t)count + 1, sizeof *run);
	if (!run)
		return -ENOMEM;
	rc = state_get(from, run, count * sizeof *run);
	if (!rc && !runs_fit(run, count, p->memory_bytes))
		rc = -EPROTO;
	for (uint32_t i = 0; !rc && i < count; i++)
		rc = state_get(from, p->memory + (uint64_t)run[i].first * BRANCH_PAGE,
			       (uint64_t)run[i].count * BRANCH_PAGE);
	free(run);
	return rc;
}

static int read_memory(branch_parts *p, const branch_head *head, state_source *from)
{
	int rc;

	if (head->memory_bytes > MEMORY_MOST || head->memory_bytes % WASM_PAGE || head->memory_bytes < p->memory_bytes)
		return -EPROTO;
	rc = head->memory_bytes > p->memory_bytes ? p->grow(p->user, head->memory_bytes) : 0;
	if (rc)
		return rc;
	p->memory_bytes = head->memory_bytes;
	p->w->mem = p->memory;
	p->w->mem_len = p->memory_bytes;
	return read_pages(p, head->runs, from);
}

static int read_files(branch_parts *p, state_source *from)
{
	mem_index *index = NULL;
	int rc = mem_load(p->fs, from, &index);

	if (!rc)
		rc = wasi_load(p->w, mem_vfs(p->fs), index, from, &p->argv, &p->env);
	mem_index_settle(p->fs, index);
	return rc;
}

int branch_load(branch_parts *p, state_source *from)
{
	branch_head head;
	uint64_t end = 0;
	int rc = state_get(from, &head, sizeof head);

	if (!rc && (head.magic != BRANCH_MAGIC || head.build != p->build))
		rc = -EPROTO;
	if (!rc)
		rc = read_globals(p, head.globals, from);
	if (!rc)
		rc = read_memory(p, &head, from);
	if (!rc)
		rc = read_files(p, from);
	if (!rc)
		rc = state_get(from, &end, sizeof end);
	return rc ? rc : end != BRANCH_END || from->left ? -EPROTO : 0;
}
