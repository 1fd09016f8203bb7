/* SPDX-License-Identifier: MIT */
/*
 * result.c - what a worker has left behind its job.
 *
 * It was written by a process that ran the guest: every length is looked at, and a record that does not
 * fit counts as none.  It can only tell lies about that guest.
 */
#include "wasm.h"
#include "../../vfs/tree.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEFT_OUT_TOLD 65536u /* more are counted as that many */
#define SLACK ((uint64_t)16 << 20) /* of heads and names, beside the bytes of /out */

static int read_all(int fd, uint8_t *data, uint64_t len, uint64_t at)
{
	while (len) {
		ssize_t n = pread(fd, data, len, (off_t)at);

		if (n <= 0)
			return -1;
		data += n;
		at += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

const result_head *result_of(wasm_box *box, const sb_limits *limits)
{
	uint64_t begin = box->job_at + (box->job_bytes + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN, most;
	result_head head;
	struct stat st;

	if (box->looked)
		return (const result_head *)(const void *)box->result;
	box->looked = true;
	most = limits && limits->collect_bytes && limits->collect_bytes < JOB_MAX_BYTES ?
		       limits->collect_bytes + SLACK : JOB_MAX_BYTES;
	if (box->fd < 0 || fstat(box->fd, &st) < 0 || (uint64_t)st.st_size < begin + sizeof head ||
	    read_all(box->fd, (uint8_t *)&head, sizeof head, begin) < 0)
		return NULL;
	if (head.magic != JOB_RESULT_MAGIC || head.bytes < sizeof head || head.bytes > most ||
	    head.bytes > (uint64_t)st.st_size - begin || head.kind < RESULT_EXITED || head.kind > RESULT_CPU)
		return NULL;
	box->result = malloc(head.bytes);
	if (!box->result)
		return NULL;
	if (read_all(box->fd, box->result, head.bytes, begin) < 0) {
		free(box->result);
		box->result = NULL;
		return NULL;
	}
	/* read again with the rest: nobody is alive any more who could have changed it */
	memcpy(box->result, &head, sizeof head);
	((result_head *)(void *)box->result)->why[sizeof head.why - 1] = '\0';
	utf8_make_plain(((result_head *)(void *)box->result)->why);
	box->result_bytes = head.bytes;
	return (const result_head *)(const void *)box->result;
}

bool result_foreign(const result_head *r, const sb_guest_exit *end)
{
	return !r && end->outcome == SB_OUTCOME_EXITED && end->code == JOB_NOT_MINE;
}

int result_tell_foreign(const char *program, sb_error *err)
{
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "build-id",
			 "%s and sandbox are of different builds: `make wasm` renews it where they were built, else "
			 "install both together", program);
}

/* ---- How it ended ------------------------------------------------------------------------------------ */

static int limit_of(const result_head *r)
{
	if (r->memory_refused)
		return SB_ERR_MEMORY_LIMIT;
	if (r->nodes_refused)
		return SB_ERR_TOO_MANY_FILES;
	return r->bytes_refused ? SB_ERR_FS_QUOTA : 0;
}

static int refused(const result_head *r, sb_error *err)
{
	if (r->kind == RESULT_NO_MEMORY)
		return error_set(err, SB_ERR_MEMORY_LIMIT, "memory",
				 "the module needs more memory to begin with than is allowed; allow more with "
				 "--mem (memory_bytes)");
	if (strstr(r->why, "limit of the disk"))
		return error_set(err, SB_ERR_FS_QUOTA, "disk", "%s; allow more with --disk (fs_bytes)", r->why);
	return error_set(err, SB_ERR_INVALID_SPEC, "module", "%s", r->why[0] ? r->why : "the module cannot be run");
}

static void fill(const result_head *r, sb_guest_exit *end)
{
	sb_usage *u = end->usage;

	if (u) {
		u->peak_memory_bytes = r->peak_bytes;
		u->memory_refused = r->memory_refused;
		u->disk_refused = r->bytes_refused + r->nodes_refused;
		u->fs_bytes = r->fs_bytes;
		u->fs_nodes = r->fs_nodes;
	}
	if (r->kind == RESULT_STOPPED && end->error)
		return; /* for what sb-launch stopped it */
	end->error = 0;
	end->signal_number = 0;
	end->code = -1;
	if (r->kind == RESULT_EXITED && r->code == 0) {
		end->outcome = SB_OUTCOME_EXITED;
		end->code = 0;
		return;
	}
	end->error = r->kind == RESULT_CPU ? SB_ERR_CPU_LIMIT : r->kind == RESULT_STOPPED ? 0 : limit_of(r);
	if (end->error) {
		end->outcome = SB_OUTCOME_BUDGET_EXCEEDED;
	} else if (r->kind == RESULT_EXITED) {
		end->outcome = SB_OUTCOME_EXITED;
		end->code = r->code & 0xff;
	} else {
		/* a trap is the machine's fault signal; what was stopped was ended by one */
		end->outcome = SB_OUTCOME_SIGNALED;
		end->signal_number = r->kind == RESULT_STOPPED ? SIGKILL :
				     r->stack_overflow	       ? SIGSEGV : SIGILL;
	}
}

int wasm_reap(sb_guest *guest, sb_guest_exit *end, sb_error *err)
{
	const result_head *r;
	int rc = launched_reap(guest, end, err);

	if (rc < 0)
		return rc;
	box_own(guest->box)->over = true;
	r = result_of(box_own(guest->box), &guest->box->limits);
	if (result_foreign(r, end))
		return result_tell_foreign("sb-wasm", err);
	if (!r || end->outcome == SB_OUTCOME_UNENFORCEABLE || end->outcome == SB_OUTCOME_LOST)
		return rc;
	if (end->outcome == SB_OUTCOME_VIOLATION)
		return rc; /* a wall ended the worker: what it says of itself is not the end */
	if (r->kind == RESULT_REFUSED || r->kind == RESULT_NO_MEMORY)
		return refused(r, err);
	fill(r, end);
	return 0;
}

/* ---- /out ------------------------------------------------------------------------------------------ */

int result_take(sb_tree *tree, const job_entry *e, const char *path, const uint8_t *data, sb_error *err)
{
	const sb_node node = { .size = sizeof node, .path = path, .data = e->data_len ? (const void *)data : "",
			       .len = e->data_len, .what = SB_NODE_FILE };
	int rc;

	if (e->kind == JOB_DIR)
		tree_pass_dir(tree);
	if (strlen(path) != e->path_len || e->kind != JOB_FILE)
		return 0;
	rc = tree_put_raw(tree, &node, err); /* the guest's own bytes, as of any backend */
	if (rc == SB_ERR_INVALID_PATH)
		tree_leave_out(tree, SB_LEFT_TOO_DEEP);
	return rc;
}

static void leave_out(sb_tree *tree, uint32_t count, int why)
{
	for (uint32_t i = 0; i < count && i < LEFT_OUT_TOLD; i++)
		tree_leave_out(tree, why);
}

/* The worker's own numbers, which are only as true as the guest lets them be. */
int result_tell_left_out(sb_tree *tree, uint32_t links, uint32_t too_deep, uint32_t cut, sb_error *err)
{
	leave_out(tree, links, SB_LEFT_LINK);
	leave_out(tree, too_deep, SB_LEFT_TOO_DEEP);
	if (cut)
		return error_set(err, SB_ERR_FS_QUOTA, "collect",
				 "not all of /out fits the limit of what is collected (collect_bytes)");
	return 0;
}

int wasm_collect(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err)
{
	wasm_box *own = box_own(box);
	const result_head *r = result_of(own, &box->limits);
	uint64_t at = sizeof *r;
	const job_entry *e;
	const uint8_t *data;
	const char *path;
	int rc = sb_call_check(call, err);

	if (!r || rc)
		return rc;
	while (job_next(own->result, own->result_bytes, &at, &e, &path, &data)) {
		rc = result_take(tree, e, path, data, err);
		if (rc == SB_ERR_FS_QUOTA || rc == SB_ERR_TOO_MANY_FILES || rc == SB_ERR_NO_MEMORY)
			return rc;
	}
	return result_tell_left_out(tree, r->links, r->too_deep, r->cut, err);
}

int wasm_usage(sb_box *box, sb_guest *guest, sb_usage *usage)
{
	const result_head *r = box_own(box)->looked ? result_of(box_own(box), &box->limits) : NULL;
	int rc = launched_usage(box, guest, usage);

	if (r) {
		usage->peak_memory_bytes = r->peak_bytes;
		usage->memory_refused = r->memory_refused;
		usage->disk_refused = r->bytes_refused + r->nodes_refused;
		usage->fs_bytes = r->fs_bytes;
		usage->fs_nodes = r->fs_nodes;
	}
	return rc;
}
