/* SPDX-License-Identifier: MIT */
/*
 * result.c - how it ended, and /out, behind the job in its file.
 *
 * Also called by the handler of a signal that ends the guest: no memory is taken, and the tree is not
 * changing (no call of the interface is under way).  The head is written last: without its magic
 * nothing counts.
 */
#include "worker.h"

#include <string.h>
#include <unistd.h>

typedef struct output {
	const worker *k;
	uint64_t at, room;
	uint32_t entries, links, too_deep;
	bool cut;
} output;

static bool put(output *o, const void *data, uint64_t len)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = pwrite(o->k->fd, p, len, (off_t)o->at);

		if (n <= 0)
			return false;
		p += n;
		o->at += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return true;
}

static bool pad(output *o)
{
	static const uint8_t zeros[JOB_ALIGN];

	return put(o, zeros, (JOB_ALIGN - o->at % JOB_ALIGN) % JOB_ALIGN);
}

static bool each(void *user, const char *path, int type, const void *data, uint64_t len, bool whole)
{
	output *o = user;
	job_entry e = { .path_len = (uint32_t)strlen(path), .data_len = len };

	if (!whole || (type != VFS_FILE && type != VFS_DIR)) {
		o->too_deep += !whole;
		o->links += whole;
		return true;
	}
	e.kind = type == VFS_FILE ? JOB_FILE : JOB_DIR;
	if (len > o->room) {
		o->cut = true;
		return true;
	}
	o->room -= len;
	if (!put(o, &e, sizeof e) || !put(o, path, (uint64_t)e.path_len + 1) || !pad(o) ||
	    !put(o, data, len) || !pad(o)) {
		o->cut = true;
		return false;
	}
	o->entries++;
	return true;
}

void result_write(worker *k, uint32_t kind, int32_t code)
{
	const uint64_t begin = k->at + (k->head->bytes + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
	output o = { .k = k, .at = begin + sizeof(result_head), .room = k->head->collect_bytes };
	result_head r = { .magic = JOB_RESULT_MAGIC, .kind = kind, .code = code };
	mem_usage used = { 0 };
	const char *why = k->why[0] ? k->why : k->run.why;

	if (k->fs) {
		mem_tell(k->fs, &used);
		mem_walk(k->fs, "/out", each, &o);
	}
	r.bytes = o.at - begin;
	r.entries = o.entries;
	r.links = o.links;
	r.too_deep = o.too_deep;
	r.cut = o.cut;
	r.peak_bytes = k->run.peak_bytes;
	r.memory_refused = k->memory_refused;
	r.fs_bytes = used.bytes;
	r.fs_nodes = used.nodes;
	r.bytes_refused = used.bytes_refused;
	r.nodes_refused = used.nodes_refused;
	r.calls = k->w.calls;
	r.stack_overflow = k->run.stack_overflow;
	memcpy(r.why, why, strnlen(why, sizeof r.why - 1));
	o.at = begin;
	put(&o, &r, sizeof r);
}
