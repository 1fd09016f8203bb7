/* SPDX-License-Identifier: MIT */
/*
 * job.c - entries of a worker's job, of its result and of what is asked of it, as both sides read them; and
 * the tree that they make.  The first byte: bit 0, what is laid is read-only; bit 1, all of it goes over
 * itself a second time.
 */
#include "fuzz.h"

#include "../src/vfs/vfs.h"
#include "../src/wasm/job.h"

enum { LEAD = 8, MOST_BYTES = 4096, MOST_NODES = 64 };

static bool check_name(void *user, const char *path, int type, const void *data, uint64_t len, bool whole)
{
	uint64_t *bytes = user;

	FUZZ_CHECK(!whole || (*path && *path != '/' && strlen(path) < VFS_PATH_MAX));
	FUZZ_CHECK(type == VFS_FILE || type == VFS_DIR || type == VFS_LINK || !whole);
	FUZZ_CHECK(!len || data);
	*bytes += type == VFS_FILE ? len : 0;
	return true;
}

static void check_tree(mem_fs *fs)
{
	uint64_t bytes = 0;
	mem_usage used;

	mem_tell(fs, &used);
	FUZZ_CHECK(used.bytes <= MOST_BYTES && used.nodes <= MOST_NODES);
	FUZZ_CHECK(mem_walk(fs, "/.", check_name, &bytes) == 0 || bytes == 0);
}

static int lay(mem_fs *fs, const job_entry *e, const char *path, const uint8_t *content, bool readonly)
{
	uint32_t flags = readonly ? MEM_READONLY : 0;

	if (e->kind == JOB_DIR)
		return mem_add_dir(fs, path, flags);
	if (e->kind != JOB_FILE)
		return -1;
	int rc = mem_drop(fs, path);

	return rc ? rc : mem_add_file(fs, path, content, e->data_len, flags);
}

/* 1 = all of it was entries, and fine ones. */
static int read_all(mem_fs *fs, const uint8_t *data, uint64_t len, bool readonly)
{
	const job_entry *e;
	const uint8_t *content;
	const char *path;
	uint64_t at = 0, before = 0;
	int fine = 1;

	while (job_next(data, len, &at, &e, &path, &content)) {
		FUZZ_CHECK(at > before && at <= len && path[e->path_len] == '\0');
		FUZZ_CHECK((const uint8_t *)path > data && content + e->data_len <= data + len);
		before = at;
		if (lay(fs, e, path, content, readonly) < 0)
			fine = 0;
	}
	return fine && at == len;
}

int fuzz_one(uint8_t *data, size_t len)
{
	mem_fs *fs;
	mem_usage used;
	uint8_t *body;
	int valid;

	if (len < LEAD)
		return 0;
	body = malloc(len); /* of its own: entries lie at multiples of eight */
	fs = mem_new(MOST_BYTES, MOST_NODES);
	FUZZ_CHECK(body && fs);
	memcpy(body, data + LEAD, len - LEAD);
	valid = read_all(fs, body, len - LEAD, data[0] & 1);
	check_tree(fs);
	if (data[0] & 2)
		read_all(fs, body, len - LEAD, data[0] & 1);
	check_tree(fs);
	mem_clear(fs, "/.");
	mem_tell(fs, &used);
	FUZZ_CHECK(used.bytes == 0 && used.nodes == 0);
	mem_free(fs);
	free(body);
	return valid;
}

static size_t put(uint8_t *out, uint32_t kind, const char *path, const char *text)
{
	const job_entry e = { .kind = kind, .path_len = (uint32_t)strlen(path), .data_len = strlen(text) };
	size_t name = (strlen(path) + JOB_ALIGN) / JOB_ALIGN * JOB_ALIGN;

	memcpy(out, &e, sizeof e);
	memset(out + sizeof e, 0, name + JOB_ALIGN * 4);
	memcpy(out + sizeof e, path, strlen(path));
	memcpy(out + sizeof e + name, text, strlen(text));
	return sizeof e + name + (strlen(text) + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	size_t len = LEAD;

	if (at > 2 || cap < 1024)
		return 0;
	memset(out, 0, LEAD);
	out[0] = (uint8_t)at;
	len += put(out + len, JOB_DIR, "/out", "");
	len += put(out + len, JOB_FILE, "/out/a", "text");
	len += at ? put(out + len, JOB_FILE, "/out/deep/er/b", "more") : 0;
	len += at > 1 ? put(out + len, JOB_DIR, "/in/x", "") : 0;
	return len;
}
