/* SPDX-License-Identifier: MIT */
/*
 * host_send.c - what the host sends: plan, files, commands, signals.  Nothing here waits for an
 * answer.
 */
#include "host_box.h"
#include "build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SEND_WAIT_MS 10000

/* ---- Sending -------------------------------------------------------------------------------- */

static int send_error(const lh_box *box, int os_errno, const char *what, sb_error *err)
{
	/* pid 1 has ended, and said why: that is heard next, as it would be of a supervisor */
	if ((os_errno == EPIPE || os_errno == ECONNRESET) && box->self)
		return 0;
	if (os_errno == EPIPE || os_errno == ECONNRESET)
		return host_lost(box, err);
	return error_errno(err, SB_ERR_IO, os_errno, "launch", "cannot send %s to sb-launch", what);
}

/* One record.  The queue holds some 200 KiB; it is full only if pid 1 does not read. */
static int send_record(lh_box *box, struct iovec *iov, size_t parts, const int *fds, size_t fd_count,
		       const char *what, sb_error *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * LP_MAX_FDS)];
	} control;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = parts };
	struct pollfd ready = { .fd = box->socket, .events = POLLOUT };

	if (fd_count) {
		struct cmsghdr *c = &control.align;

		memset(&control, 0, CMSG_SPACE(sizeof(int) * fd_count));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	for (;;) {
		if (sendmsg(box->socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return send_error(box, errno, what, err);
		if (poll(&ready, 1, SEND_WAIT_MS) == 0)
			return error_set(err, SB_ERR_CONNECTION_LOST, "launch",
					 "sb-launch does not read: cannot send %s", what);
	}
}

static int send_fixed(lh_box *box, void *record, size_t bytes, uint32_t kind, uint32_t id,
		      const int *fds, size_t fd_count, const char *what, sb_error *err)
{
	lp_head *head = record;
	struct iovec iov = { record, bytes };

	*head = (lp_head){ .version = LP_VERSION, .kind = kind, .bytes = (uint32_t)bytes, .id = id };
	return send_record(box, &iov, 1, fds, fd_count, what, err);
}

int host_send_plan(lh_box *box, const lh_plan *plan, sb_error *err)
{
	lp_plan p = plan->fixed;
	size_t mounts = plan->mount_count * sizeof(lp_mount);
	struct iovec iov[3] = { { &p, sizeof p }, { (void *)plan->mounts, mounts },
		{ (void *)plan->strings, plan->string_bytes } };

	p.head = (lp_head){ .version = LP_VERSION, .kind = LP_PLAN,
		.bytes = (uint32_t)(sizeof p + mounts + plan->string_bytes) };
	memset(p.build_id, 0, sizeof p.build_id);
	memcpy(p.build_id, SB_BUILD_ID, sizeof SB_BUILD_ID);
	p.fd_count = plan->fd_count;
	p.mount_count = plan->mount_count;
	p.string_bytes = plan->string_bytes;
	_Static_assert(sizeof SB_BUILD_ID <= sizeof p.build_id, "the build id fits");
	_Static_assert(sizeof p + LP_MAX_MOUNTS * sizeof(lp_mount) + LP_MAX_STRINGS <= LP_MAX_MESSAGE,
		       "a full plan fits into one record");
	return send_record(box, iov, 3, plan->fds, plan->fd_count, "the plan", err);
}

int lh_signal(lh_box *box, uint32_t id, int signo, bool whole_box, uint32_t answer, sb_error *err)
{
	lp_signal s = { .signo = signo, .whole_box = whole_box, .answer = answer };

	return send_fixed(box, &s, sizeof s, LP_SIGNAL, id, NULL, 0, "a signal", err);
}

int lh_resize(lh_box *box, uint32_t id, uint16_t rows, uint16_t cols, sb_error *err)
{
	lp_resize r = { .rows = rows, .cols = cols };

	return send_fixed(box, &r, sizeof r, LP_RESIZE, id, NULL, 0, "a terminal size", err);
}

int lh_relay(lh_box *box, int socket, const void *data, size_t len, int more, sb_error *err)
{
	lp_relay r = { .len = (uint32_t)len };
	struct iovec iov[2] = { { &r, sizeof r }, { (void *)data, len } };
	const int fds[2] = { socket, more };

	if (!len || len > LP_MAX_RELAY || socket < 0)
		return error_set(err, SB_ERR_INVALID, "launch", "a record to relay has %zu bytes", len);
	r.head = (lp_head){ .version = LP_VERSION, .kind = LP_RELAY,
		.bytes = (uint32_t)(sizeof r + len) };
	return send_record(box, iov, 2, fds, more < 0 ? 1 : 2, "a record to relay", err);
}

int lh_renew(lh_box *box, sb_error *err)
{
	lp_renew r = { .head = { 0 } };

	return send_fixed(box, &r, sizeof r, LP_RENEW, 0, NULL, 0, "a new budget", err);
}

int lh_stop(lh_box *box, uint64_t grace_ms, sb_error *err)
{
	lp_stop s = { .grace_ms = grace_ms };

	return send_fixed(box, &s, sizeof s, LP_STOP, 0, NULL, 0, "the order to stop", err);
}

/* ---- Files ---------------------------------------------------------------------------------- */

/* A file in memory that could not be made or filled. */
static int memory_file_error(int os_errno, const char *where, sb_error *err)
{
	int code = os_errno == ENOSPC || os_errno == ENOMEM ? SB_ERR_NO_MEMORY : SB_ERR_IO;

	if (os_errno != EFBIG)
		return error_errno(err, code, os_errno, where, "cannot make a memory file");
	error_set(err, code, where, "cannot make a memory file: the limit of file sizes (`ulimit -f`) is too "
		  "low; raise it");
	if (err)
		err->os_errno = os_errno;
	return code;
}

static size_t padding(size_t n)
{
	return (0 - n) & (LP_PUT_ALIGN - 1);
}

static int archive_write(int fd, const lh_file *file)
{
	static const char zeros[LP_PUT_ALIGN];
	size_t path_len = strlen(file->path) + 1;
	lp_put_entry entry = { (uint32_t)path_len, file->mode & 0777, file->len };
	int rc = fd_write_file(fd, &entry, sizeof entry);

	if (!rc)
		rc = fd_write_file(fd, file->path, path_len);
	if (!rc)
		rc = fd_write_file(fd, zeros, padding(path_len));
	if (!rc && file->len)
		rc = fd_write_file(fd, file->data, file->len);
	if (!rc)
		rc = fd_write_file(fd, zeros, padding(file->len));
	return rc;
}

static int archive_size(const lh_file *files, size_t count, uint64_t *bytes, sb_error *err)
{
	size_t i;

	for (*bytes = 0, i = 0; i < count; i++) {
		size_t path_len = strlen(files[i].path) + 1;

		if (path_len < 2 || path_len > PATH_MAX)
			return error_set(err, SB_ERR_INVALID_PATH, "put",
					 "a file's path is empty or over %d bytes", PATH_MAX - 1);
		if (files[i].len > LP_MAX_PUT)
			*bytes = LP_MAX_PUT;
		else
			*bytes += files[i].len + padding(files[i].len);
		*bytes += sizeof(lp_put_entry) + path_len + padding(path_len);
		if (*bytes > LP_MAX_PUT)
			return error_set(err, SB_ERR_INVALID, "put",
					 "the files together exceed %u bytes", LP_MAX_PUT);
	}
	return 0;
}

static int put_send(lh_box *box, const lh_file *files, size_t count, uint32_t id, bool from_root,
		    sb_error *err)
{
	int FD_AUTO fd = -1;
	lp_put put = { .from_root = from_root };
	uint64_t bytes;
	size_t i;
	int rc = archive_size(files, count, &bytes, err);

	if (rc)
		return rc;
	fd = memfd_create("sandbox-files", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return memory_file_error(errno, "put", err);
	for (i = 0; i < count; i++) {
		rc = archive_write(fd, &files[i]);
		if (rc)
			return memory_file_error(-rc, "put", err);
	}
	/* sealed: pid 1 maps it, and a shorter file would be a SIGBUS there */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return error_errno(err, SB_ERR_IO, errno, "put", "cannot seal a memory file");
	put.archive_bytes = bytes;
	return send_fixed(box, &put, sizeof put, LP_PUT, id, &fd, 1, "the files", err);
}

int lh_put(lh_box *box, const lh_file *files, size_t count, uint32_t id, sb_error *err)
{
	return put_send(box, files, count, id, false, err);
}

int lh_put_anywhere(lh_box *box, const lh_file *file, uint32_t id, sb_error *err)
{
	return put_send(box, file, 1, id, true, err);
}

int lh_path(lh_box *box, uint32_t kind, const char *path, uint32_t id, sb_error *err)
{
	lp_path p = { .head = { 0 } };
	size_t len = strlen(path);

	if (!len || len >= sizeof p.path)
		return error_set(err, SB_ERR_INVALID_PATH, "files", "a path is empty or over %zu bytes",
				 sizeof p.path - 1);
	memcpy(p.path, path, len + 1);
	return send_fixed(box, &p, sizeof p, kind, id, NULL, 0, "a path", err);
}

/* ---- Spawning ------------------------------------------------------------------------------- */

static int args_add(buf *block, const char *const *list, uint32_t *count)
{
	for (*count = 0; list && list[*count]; ++*count) {
		buf_add(block, list[*count], strlen(list[*count]) + 1);
		if (block->failed)
			return -1;
	}
	return 0;
}

/* argv and env one behind the other; 0 or an error. */
static int args_block(const lh_spawn *spawn, buf *block, sb_error *err)
{
	uint32_t counts[2] = { 0, 0 };

	if (!spawn->argv || !spawn->argv[0])
		return error_set(err, SB_ERR_INVALID, "spawn", "there is no program to run");
	buf_add(block, counts, sizeof counts);
	args_add(block, spawn->argv, &counts[0]);
	args_add(block, spawn->env, &counts[1]);
	if (!block->failed) {
		memcpy(block->data, counts, sizeof counts);
		return 0;
	}
	if (block->failed == SB_ERR_NO_MEMORY)
		return error_no_memory(err, "spawn");
	return error_set(err, block->failed, "spawn", "arguments and environment exceed %u bytes",
			 LP_MAX_ARGS);
}

static int null_device(int *null, sb_error *err)
{
	if (*null < 0)
		*null = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
	if (*null < 0)
		return error_errno(err, SB_ERR_IO, errno, "spawn", "cannot open \"/dev/null\"");
	return *null;
}

/* Descriptors in the order of the record; number of them, or an error. */
static int spawn_fds(const lh_spawn *spawn, int args, int *null, int fds[7], sb_error *err)
{
	const int std[3] = { spawn->in, spawn->out, spawn->err };
	int i, count = 0;

	if (spawn->exit_pipe < 0 || ((spawn->flags & LP_S_CONTROL) && spawn->control < 0) ||
	    ((spawn->flags & LP_S_CODE_FD) && spawn->code < 0))
		return error_set(err, SB_ERR_INVALID, "spawn", "a descriptor of the spawn is missing");
	if (args >= 0)
		fds[count++] = args;
	fds[count++] = spawn->exit_pipe;
	for (i = 0; i < 3; i++) {
		int fd = std[i] >= 0 ? std[i] : null_device(null, err);

		if (fd < 0)
			return fd;
		fds[count++] = fd;
	}
	if (spawn->flags & LP_S_CONTROL)
		fds[count++] = spawn->control;
	if (spawn->flags & LP_S_CODE_FD)
		fds[count++] = spawn->code;
	return count;
}

/* A short block goes along, a long one in a memory file. */
static int spawn_send(lh_box *box, const lh_spawn *spawn, lp_spawn *s, const buf *block, sb_error *err)
{
	int FD_AUTO args = -1;
	int FD_AUTO null = -1;
	struct iovec iov[2] = { { s, sizeof *s }, { block->data, block->len } };
	bool inlined = block->len <= LP_INLINE_ARGS;
	int fds[7], count;

	if (!inlined) {
		args = fd_memfd("sandbox-args", block->data, block->len);
		if (args < 0)
			return memory_file_error(-args, "spawn", err);
	}
	count = spawn_fds(spawn, args, &null, fds, err);
	if (count < 0)
		return count;
	s->args_bytes = (uint32_t)block->len;
	s->flags = spawn->flags | (inlined ? LP_S_INLINE : 0);
	s->head = (lp_head){ .version = LP_VERSION, .kind = LP_SPAWN, .id = spawn->id,
		.bytes = (uint32_t)(sizeof *s + (inlined ? block->len : 0)) };
	if (spawn->flags & LP_S_LAST)
		box->last = spawn->id;
	return send_record(box, iov, inlined ? 2 : 1, fds, (size_t)count, "the command", err);
}

int lh_spawn_send(lh_box *box, const lh_spawn *spawn, sb_error *err)
{
	lp_spawn s = { .rows = spawn->rows, .cols = spawn->cols };
	size_t cwd_len = spawn->cwd ? strlen(spawn->cwd) : 0;
	buf block;
	int rc;

	if (!spawn->id || !cwd_len || spawn->cwd[0] != '/' || cwd_len >= sizeof s.cwd)
		return error_set(err, SB_ERR_INVALID_PATH, "spawn",
				 "the working directory must be an absolute path of less than %zu bytes",
				 sizeof s.cwd);
	memcpy(s.cwd, spawn->cwd, cwd_len + 1);
	buf_init(&block, LP_MAX_ARGS);
	rc = args_block(spawn, &block, err);
	if (!rc)
		rc = spawn_send(box, spawn, &s, &block, err);
	buf_release(&block);
	return rc;
}
