/* SPDX-License-Identifier: MIT */
/* job.c - the memory file that a worker gets: see wasm/job.h for its form. */
#include "wasm.h"
#include "build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define OPEN_FILES 1024u /* that a guest may have open where nothing else was said */

static void pad(buf *b)
{
	static const char zeros[JOB_ALIGN];

	buf_add(b, zeros, (JOB_ALIGN - b->len % JOB_ALIGN) % JOB_ALIGN);
}

void job_add(wasm_box *box, uint32_t kind, uint32_t flags, const char *path, const void *data,
	     size_t len)
{
	const job_entry e = { .kind = kind, .flags = flags, .path_len = (uint32_t)strlen(path),
			      .data_len = len };
	buf *b = &box->job;

	buf_add(b, &e, sizeof e);
	buf_add(b, path, (size_t)e.path_len + 1);
	pad(b);
	if (len)
		buf_add(b, data, len);
	pad(b);
	box->entries++;
}

static uint64_t collect_limit(const sb_limits *limits)
{
	return limits->collect_bytes ? limits->collect_bytes : limits->fs_bytes;
}

static job_head head_of(const wasm_box *box, const sb_limits *limits, uint64_t cpu_ms, bool control, uint32_t flags)
{
	return (job_head){
		.magic = JOB_MAGIC, .bytes = sizeof(job_head) + box->job.len,
		.memory_bytes = limits->memory_bytes ? limits->memory_bytes : SB_UNLIMITED,
		.fs_bytes = limits->fs_bytes ? limits->fs_bytes : SB_UNLIMITED,
		.fs_nodes = limits->fs_nodes ? limits->fs_nodes : SB_UNLIMITED,
		.cpu_us = cpu_ms && cpu_ms < SB_UNLIMITED / 1000 ? cpu_ms * 1000 : SB_UNLIMITED,
		.stack_bytes = box->stack_bytes, .collect_bytes = collect_limit(limits), .entries = box->entries,
		.open_files = limits->open_files && limits->open_files < OPEN_FILES ?
				      (uint32_t)limits->open_files : OPEN_FILES,
		.control = control, .flags = flags,
	};
}

static int check(const wasm_box *box, sb_error *err)
{
	if (!box->job.failed)
		return 0;
	return box->job.failed == SB_ERR_NO_MEMORY ? error_no_memory(err, "job") :
		error_set(err, SB_ERR_INVALID_SPEC, "job", "code, files and arguments are too large");
}

static int fill(wasm_box *box, int fd, const job_head *head, sb_error *err)
{
	int rc = fd_write_file(fd, head, sizeof *head);

	if (!rc)
		rc = fd_write_file(fd, box->job.data ? box->job.data : "", box->job.len);
	if (rc)
		return error_errno(err, SB_ERR_IO, -rc, "job", "cannot fill a memory file");
	box->job_bytes = head->bytes;
	buf_release(&box->job);
	buf_init(&box->job, JOB_MAX_BYTES);
	box->entries = 0;
	return 0;
}

int job_make(wasm_box *box, const sb_limits *limits, uint64_t cpu_ms, bool control, uint32_t flags, sb_error *err)
{
	const job_head head = head_of(box, limits, cpu_ms, control, flags);
	int fd, rc = check(box, err);

	if (rc)
		return rc;
	fd = memfd_create("sandbox-job", MFD_CLOEXEC);
	if (fd < 0)
		return error_errno(err, SB_ERR_IO, errno, "job", "cannot make a memory file");
	rc = fill(box, fd, &head, err);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

int job_append(wasm_box *box, const sb_limits *limits, uint64_t cpu_ms, sb_error *err)
{
	const job_head head = head_of(box, limits, cpu_ms, false, 0);
	uint64_t at = (box->job_bytes + JOB_GO_ALIGN - 1) / JOB_GO_ALIGN * JOB_GO_ALIGN;
	int rc = check(box, err);

	if (rc)
		return rc;
	if (lseek(box->fd, (off_t)at, SEEK_SET) < 0)
		return error_errno(err, SB_ERR_IO, errno, "job", "cannot fill a memory file");
	box->job_at = at;
	return fill(box, box->fd, &head, err);
}
