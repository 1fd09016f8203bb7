/* SPDX-License-Identifier: MIT */
/*
 * live.c - files of a guest that stays: put in, taken out, taken away, while it waits.
 *
 * The worker answers on a socket of its own (wasm/job.h), which the guest never sees.  Whatever comes
 * back was written by a process that may be in the guest's hands: every length is looked at.
 */
#include "wasm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK_SLACK ((uint64_t)16 << 20) /* of heads and names, beside the bytes of files */

/* The worker's end goes along the control stream, before it closes itself in. */
int live_open(wasm_box *own, int control, sb_error *err)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} more = { 0 };
	char hello = ASK_HELLO;
	struct iovec iov = { &hello, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &more,
			    .msg_controllen = sizeof more };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], rc = fd_pair(SOCK_STREAM, pair);

	if (!rc)
		rc = fd_nonblock(pair[0]);
	else
		pair[0] = pair[1] = -1;
	if (!rc) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pair[1], sizeof(int));
		/* a worker that is gone by now has an end, which says more than a pipe does */
		rc = sendmsg(control, &m, MSG_NOSIGNAL) == 1 || errno == EPIPE || errno == ECONNRESET ? 0 : -errno;
	}
	fd_close(&pair[1]);
	own->ask = pair[0];
	return rc ? error_errno(err, SB_ERR_IO, -rc, "spawn", "cannot reach the worker") : 0;
}

/* ---- Bytes -------------------------------------------------------------------------------------------- */

/* The stream is no use any more, whatever is asked next. */
static int broken(wasm_box *own, const char *why, sb_error *err)
{
	fd_close(&own->ask);
	return error_set(err, SB_ERR_CONNECTION_LOST, "files", "the guest's worker %s", why);
}

static ssize_t put_some(int fd, void *at, size_t len)
{
	return send(fd, at, len, MSG_NOSIGNAL);
}

static ssize_t get_some(int fd, void *at, size_t len)
{
	return recv(fd, at, len, 0);
}

typedef struct waiting {
	const sb_call *call;
	short events;
	sb_error *err;
	int rc;
} waiting;

static bool await(void *user, int fd)
{
	waiting *w = user;

	w->rc = sb_call_wait(w->call, fd, w->events, w->err);
	return w->rc >= 0;
}

int live_move(const wasm_box *own, void *data, uint64_t len, bool to, const sb_call *call, sb_error *err)
{
	waiting w = { .call = call, .events = to ? POLLOUT : POLLIN, .err = err };
	int rc = fd_move_all(own->ask, data, len, to ? put_some : get_some, await, &w);

	return rc == -ECANCELED ? w.rc : rc != 0;
}

static int move_all(wasm_box *own, void *data, uint64_t len, bool to, const sb_call *call, sb_error *err)
{
	int rc = live_move(own, data, len, to, call, err);

	if (rc > 0)
		return broken(own, "has gone", err);
	if (rc < 0)
		fd_close(&own->ask); /* half a question, or half an answer */
	return rc;
}

static int send_all(wasm_box *own, const void *data, uint64_t len, const sb_call *call, sb_error *err)
{
	return move_all(own, (void *)(uintptr_t)data, len, true, call, err);
}

static int receive_all(wasm_box *own, void *data, uint64_t len, const sb_call *call, sb_error *err)
{
	return move_all(own, data, len, false, call, err);
}

/* ---- A question ----------------------------------------------------------------------------------------- */

static int told(const ask_head *head, sb_error *err)
{
	if (head->rc == -ENOSPC)
		return error_set(err, SB_ERR_FS_QUOTA, "files",
				 "the files do not fit the limit of the disk; allow more with --disk (fs_bytes)");
	if (head->rc)
		return error_errno(err, SB_ERR_IO, ask_errno(head->rc), "files", "the files cannot be changed");
	return 0;
}

/* `body`: entries.  *out: those of the answer, for free(). */
static int ask(wasm_box *own, ask_head *head, const buf *body, const sb_call *call, uint8_t **out,
	       sb_error *err)
{
	uint64_t most = head->room < JOB_MAX_BYTES - ASK_SLACK ? head->room + ASK_SLACK : JOB_MAX_BYTES;
	int rc;

	*out = NULL;
	if (own->ask < 0)
		return error_set(err, SB_ERR_CONNECTION_LOST, "files", "the guest's worker has gone");
	if (body->failed)
		return error_no_memory(err, "files");
	head->magic = ASK_MAGIC;
	head->bytes = sizeof *head + body->len;
	rc = send_all(own, head, sizeof *head, call, err);
	if (!rc)
		rc = send_all(own, body->data, body->len, call, err);
	if (!rc)
		rc = receive_all(own, head, sizeof *head, call, err);
	if (rc)
		return rc;
	if (head->magic != ASK_MAGIC || head->bytes < sizeof *head || head->bytes > most)
		return broken(own, "sends what is no answer", err);
	head->bytes -= sizeof *head;
	*out = malloc(head->bytes ? head->bytes : 1);
	if (!*out) {
		fd_close(&own->ask);
		return error_no_memory(err, "files");
	}
	rc = receive_all(own, *out, head->bytes, call, err);
	return rc ? rc : told(head, err);
}

int live_put(wasm_box *own, const sb_call *call, sb_error *err)
{
	ask_head head = { .what = ASK_PUT, .entries = own->entries };
	uint8_t *answer = NULL;
	int rc = ask(own, &head, &own->job, call, &answer, err);

	free(answer);
	return rc;
}

static int take(sb_tree *tree, const uint8_t *data, uint64_t len, sb_error *err)
{
	const job_entry *e;
	const uint8_t *content;
	const char *path;
	uint64_t at = 0;
	int rc = 0;

	while (!rc && job_next(data, len, &at, &e, &path, &content)) {
		rc = result_take(tree, e, path, content, err);
		if (rc != SB_ERR_FS_QUOTA && rc != SB_ERR_TOO_MANY_FILES && rc != SB_ERR_NO_MEMORY)
			rc = 0; /* a name that no tree takes: it is left out, as of a run */
	}
	return rc;
}

static int ask_about(wasm_box *own, ask_head *head, const char *path, const sb_call *call,
		     uint8_t **answer, sb_error *err)
{
	wasm_box one = { .ask = -1 };
	int rc;

	buf_init(&one.job, JOB_PATH_MAX + 64);
	job_add(&one, JOB_DIR, 0, path, NULL, 0);
	rc = ask(own, head, &one.job, call, answer, err);
	buf_release(&one.job);
	return rc;
}

int live_only(sb_error *err)
{
	return error_set(err, SB_ERR_UNSUPPORTED, "files",
			 "a session of backend \"wasm\" takes files with an evaluation, into /in, and gives those of "
			 "/out with its result; for others use --backend linux");
}

int wasm_get(sb_box *box, const char *path, const sb_call *call, sb_tree *tree, sb_error *err)
{
	wasm_box *own = box_own(box);
	const sb_limits *l = &box->limits;
	uint64_t room = l->collect_bytes ? l->collect_bytes : l->fs_bytes;
	ask_head head = { .what = ASK_GET, .room = room && room < JOB_MAX_BYTES ? room : JOB_MAX_BYTES / 2 };
	uint8_t *answer = NULL;
	int rc = strcmp(path, "/out") ? live_only(err) : ask_about(own, &head, path, call, &answer, err);

	if (!rc)
		rc = take(tree, answer, head.bytes, err);
	if (!rc)
		rc = result_tell_left_out(tree, head.links, head.too_deep, head.cut, err);
	free(answer);
	return rc;
}

int wasm_remove(sb_box *box, const char *path, const sb_call *call, sb_error *err)
{
	ask_head head = { .what = ASK_CLEAR };
	uint8_t *answer = NULL;
	int rc = strcmp(path, "/out") ? live_only(err) :
					  ask_about(box_own(box), &head, path, call, &answer, err);

	free(answer);
	return rc;
}
